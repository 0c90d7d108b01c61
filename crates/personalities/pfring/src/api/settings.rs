//! What a program asks of a ring.

use std::{
    ffi::c_int,
    sync::atomic::{
        AtomicI32, AtomicU32,
        Ordering::{self, Relaxed},
    },
};

use super::of_ring;
use crate::{abi::*, argument::Text, errno::fails, interface::Interface, ring::Ring};

fn store<T>(to: impl FnOnce(T, Ordering), value: T) -> c_int {
    to(value, Relaxed);
    0
}

fn number(to: &AtomicU32, value: u32) -> c_int {
    store(|value, order| to.store(value, order), value)
}

fn choice(to: &AtomicI32, value: c_int, most: c_int) -> c_int {
    if !(0..=most).contains(&value) {
        return fails(ERROR_GENERIC, libc::EINVAL);
    }
    store(|value, order| to.store(value, order), value)
}

fn set_promiscuous(ring: &Ring, on: bool) -> c_int {
    let set = |source: &crate::source::Source| source.set_promiscuous(on).is_ok();
    if ring.sources.iter().all(set) { 0 } else { ERROR_GENERIC }
}

of_ring! {
    fn pfring_set_socket_mode(mode: c_int) -> c_int, else ERROR_GENERIC, |ring| {
        if ring.is_enabled() { ERROR_GENERIC } else { choice(&ring.mode, mode, MANAGEMENT_ONLY) }
    };
    fn pfring_set_direction(direction: c_int) -> c_int, else ERROR_GENERIC, |ring| {
        let result = choice(&ring.direction, direction, TX_ONLY);
        if result == 0 {
            ring.sources.iter().for_each(|source| source.set_direction(direction));
        }
        result
    };
    fn pfring_set_poll_watermark(packets: u16) -> c_int, else ERROR_GENERIC,
        |ring| number(&ring.watermark, u32::from(packets.clamp(1, 2048)));
    fn pfring_set_poll_watermark_timeout(milliseconds: u16) -> c_int, else ERROR_GENERIC,
        |ring| number(&ring.watermark_timeout, milliseconds.into());
    fn pfring_set_poll_duration(milliseconds: u32) -> c_int, else ERROR_GENERIC,
        |ring| number(&ring.poll_duration, milliseconds.max(1));
    fn pfring_set_promisc(on: c_int) -> c_int, else ERROR_GENERIC, |ring| set_promiscuous(ring, on != 0);
    fn pfring_set_vlan_id(vlan: u16) -> c_int, else ERROR_GENERIC, |ring| {
        if ring.direction.load(Relaxed) == TX_ONLY {
            return fails(ERROR_GENERIC, libc::EINVAL);
        }
        // The reference masks "any" as well, which then matches next to nothing: here it stays what it says.
        ring.admission.set_vlan(if vlan == ANY_VLAN { vlan } else { vlan & 0xfff });
        0
    };
    fn pfring_set_channel_id(channel: u32) -> c_int, else ERROR_GENERIC, |ring| {
        let mask = if channel < u64::BITS { 1 << channel } else { u64::MAX };
        ring.admission.set_channels(mask);
        0
    };
    fn pfring_set_channel_mask(mask: u64) -> c_int, else ERROR_GENERIC, |ring| {
        ring.admission.set_channels(mask);
        0
    };
    fn pfring_set_sampling_rate(rate: u32) -> c_int, else ERROR_GENERIC, |ring| {
        ring.admission.set_sampling(rate);
        0
    };
    fn pfring_enable_rss_rehash() -> c_int, else ERROR_GENERIC,
        |ring| store(|on, order| ring.rehashes.store(on, order), true);
}

/// # Safety
/// As PF_RING says: a name, or a list of them.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_set_if_promisc(device: Text, on: c_int) -> c_int {
    let Some(device) = device.get() else { return -3 };
    let mut result = 0;
    for name in device.split([',', ';']) {
        let name = name.split_once('@').map_or(name, |(name, _)| name);
        let Some(interface) = Interface::new(name).filter(|interface| interface.index().is_some())
        else {
            return -2;
        };
        match interface.set_promiscuous(on != 0) {
            Some(before) => result = before,
            None => return -1,
        }
    }
    result
}
