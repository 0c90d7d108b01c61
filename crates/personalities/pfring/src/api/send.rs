//! Packets of the program.

use std::{
    ffi::{c_int, c_void},
    sync::atomic::Ordering::Relaxed,
};

use super::of_ring;
use crate::{
    abi::*,
    argument::{Bytes, Out},
    errno::fails,
    error,
    ring::{Ring, lock},
    state::BOUNCES,
};

/// Ethernet's header, and a tag.
const OVERHEAD: u32 = 18;

/// Sends a packet: its bytes, or what is wrong.
fn send(ring: &Ring, packet: Bytes, length: u32) -> c_int {
    if !ring.is_enabled() {
        return ERROR_RING_NOT_ENABLED;
    }
    if ring.has_mode(RECV_ONLY) || ring.has_mode(MANAGEMENT_ONLY) {
        return ERROR_NOT_SUPPORTED;
    }
    let Some(bytes) = packet.get(length as usize) else {
        return fails(error::of_sending(libc::EINVAL), libc::EINVAL);
    };
    let Some(source) = ring.sources.first() else {
        ring.sent.fetch_add(1, Relaxed);
        return 0;
    };
    if length > source.mtu_at_open.saturating_add(OVERHEAD) {
        return fails(error::of_sending(libc::EMSGSIZE), libc::EMSGSIZE);
    }
    if ring.flags & TX_BPF != 0
        && lock(&ring.filter).as_ref().is_some_and(|filter| !filter.matches(bytes))
    {
        return 0;
    }
    match source.send(bytes) {
        Ok(()) => {
            ring.sent.fetch_add(1, Relaxed);
            c_int::try_from(length).unwrap_or(c_int::MAX)
        }
        Err(errno) => {
            ring.send_errors.fetch_add(1, Relaxed);
            fails(error::of_sending(errno), errno)
        }
    }
}

of_ring! {
    fn pfring_send(packet: Bytes, length: u32, _flush: u8) -> c_int, else ERROR_GENERIC,
        |ring| send(ring, packet, length);
    fn pfring_send_get_time(_packet: Bytes, _length: u32, _time: Out<timespec>) -> c_int, else ERROR_GENERIC,
        |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_flush_tx_packets() -> c_int, else ERROR_GENERIC, |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_set_tx_watermark(_packets: u16) -> c_int, else ERROR_GENERIC, |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_send_last_rx_packet(interface: c_int) -> c_int, else ERROR_GENERIC, |ring| {
        if !ring.state.has(BOUNCES) {
            return ERROR_WRONG_CONFIGURATION;
        }
        if !ring.is_long() || ring.is_reentrant() {
            return ERROR_NOT_SUPPORTED;
        }
        ring.bounce(interface)
    };
    fn pfring_loopback_test(buffer: Bytes, buffer_len: u32, test_len: u32) -> c_int, else ERROR_GENERIC, |_ring| {
        const MOST: u32 = 4 << 20;
        let room = buffer.get_mut(buffer_len as usize);
        let Some(room) = room.filter(|_| test_len <= MOST) else { return fails(ERROR_GENERIC, libc::EFAULT) };
        room.iter_mut().take(test_len as usize).enumerate().for_each(|(at, byte)| *byte = at as u8);
        0
    };
    fn pfring_get_metadata(_place: Out<*mut c_void>, _length: Out<u32>) -> c_int, else ERROR_GENERIC,
        |_ring| ERROR_NOT_SUPPORTED;
}
