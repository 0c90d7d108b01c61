//! Lines about packets.

use std::ffi::c_int;

use crate::{
    abi::*,
    argument::{Bytes, Out},
    print,
};

/// # Safety
/// As PF_RING says: room for so many bytes, a packet, and its header.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_print_parsed_pkt(
    buffer: Bytes,
    length: u32,
    packet: Bytes,
    header: Out<pfring_pkthdr>,
) -> c_int {
    let Some(header) = header.get() else { return ERROR_INVALID_ARGUMENT };
    let packet = packet.get(header.caplen.min(MAX_CAPLEN) as usize).unwrap_or_default();
    buffer.print(length, &print::parsed(packet, &header))
}

/// # Safety
/// As PF_RING says: room for so many bytes, and a packet of which so many were captured.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_print_pkt(
    buffer: Bytes,
    length: u32,
    packet: Bytes,
    packet_length: u32,
    captured: u32,
) -> c_int {
    let packet = packet.get(captured.min(MAX_CAPLEN) as usize).unwrap_or_default();
    buffer.print(length, &print::packet(packet, packet_length))
}
