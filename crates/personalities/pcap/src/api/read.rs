//! Packets for the program.

use std::{
    ffi::{c_char, c_int},
    ptr::null,
    sync::atomic::Ordering::Relaxed,
};

use ringway_filter::Insn;
use ringway_live_capture::{End, Reading};

use super::whose;
use crate::{abi::*, handle::Handle, system};

/// Reads once.
fn read(
    handle: &Handle,
    most: Option<u32>,
    waits: bool,
    keeps: bool,
    mut sink: impl FnMut(&pcap_pkthdr, *const u8),
) -> Result<u32, c_int> {
    let reading = Reading {
        signals: &handle.signals,
        most,
        nonblocking: !waits && handle.is_nonblocking(),
        keeps,
    };
    let sink = |header: &pcap_pkthdr, packet, _| sink(header, packet);
    let live = handle.live()?;
    let _handing_out = if keeps { None } else { live.handing_out() };
    live.read(reading, sink).map_err(|end| match end {
        End::Broken => PCAP_ERROR_BREAK,
        End::Failed(text) => handle.fail(PCAP_ERROR, &text),
    })
}

/// How many packets a program wants: all that there are, unless it says a number.
fn most(count: c_int) -> Option<u32> {
    u32::try_from(count).ok().filter(|count| *count > 0)
}

/// Hands packets to a program's function.
fn to(callback: pcap_handler, user: *mut u8) -> impl FnMut(&pcap_pkthdr, *const u8) {
    move |header, packet| {
        if let Some(callback) = callback {
            // SAFETY: the program's own function, with the argument that it has asked for, and a packet that
            // stays where it is until it returns.
            unsafe { callback(user, header, packet) };
        }
    }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dispatch(
    p: *mut pcap_t,
    count: c_int,
    callback: pcap_handler,
    user: *mut u8,
) -> c_int {
    let ours = |handle: &Handle| {
        let packets = read(handle, most(count), false, false, to(callback, user));
        packets.map_or_else(|code| code, |packets| packets as c_int)
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_dispatch(p, count, callback, user)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_loop(
    p: *mut pcap_t,
    count: c_int,
    callback: pcap_handler,
    user: *mut u8,
) -> c_int {
    let ours = |handle: &Handle| {
        let mut left = most(count);
        loop {
            let packets = match read(handle, left, true, false, to(callback, user)) {
                Ok(packets) => packets,
                Err(code) => return code,
            };
            left = left.map(|left| left.saturating_sub(packets));
            if left == Some(0) {
                return 0;
            }
        }
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_loop(p, count, callback, user)) }
}

/// One packet, where it lies, with a header that is the handle's.
fn next(handle: &Handle) -> Result<Option<(*mut pcap_pkthdr, *const u8)>, c_int> {
    let header = handle.header();
    let mut found = None;
    read(handle, Some(1), false, true, |of_packet, packet| {
        // SAFETY: only this call, and the program after it, use the header.
        unsafe { header.write(*of_packet) };
        found = Some((header, packet));
    })?;
    Ok(found)
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_next_ex(
    p: *mut pcap_t,
    header: *mut *mut pcap_pkthdr,
    packet: *mut *const u8,
) -> c_int {
    let ours = |handle: &Handle| {
        // SAFETY: the program has given a place for it. It is the handle's header also where nothing comes, as in libpcap.
        unsafe { header.write(handle.header()) };
        match next(handle) {
            Ok(Some((_, found))) => {
                // SAFETY: the program has given a place for it.
                unsafe { packet.write(found) };
                1
            }
            Ok(None) => 0,
            Err(code) => code,
        }
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_next_ex(p, header, packet)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_next(p: *mut pcap_t, header: *mut pcap_pkthdr) -> *const u8 {
    let ours = |handle: &Handle| match next(handle) {
        Ok(Some((found, packet))) => {
            // SAFETY: the program has given room for a header.
            unsafe { *header = *found };
            packet
        }
        _ => null(),
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, null(), system::pcap_next(p, header)) }
}

/// # Safety
/// As libpcap says. Signal handlers may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_breakloop(p: *mut pcap_t) {
    // SAFETY: the program's handle.
    unsafe {
        whose!(p, |handle: &Handle| handle.signals.break_loop(), (), system::pcap_breakloop(p))
    }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setfilter(p: *mut pcap_t, program: *mut bpf_program) -> c_int {
    let ours = |handle: &Handle| {
        let live = match handle.live() {
            Ok(live) => live,
            Err(code) => return code,
        };
        // SAFETY: the program's filter, or null.
        let Some(program) = (unsafe { program.as_ref() }) else {
            return handle.fail(PCAP_ERROR, "setfilter: No filter specified");
        };
        let (first, count) = (program.bf_insns.cast_const(), program.bf_len);
        // SAFETY: so many instructions are there.
        if first.is_null() || unsafe { system::bpf_validate(first, count as c_int) } == 0 {
            return handle.fail(PCAP_ERROR, "BPF program is not valid");
        }
        // SAFETY: as above, and nothing changes them during the call.
        let insns: &[Insn] = unsafe { std::slice::from_raw_parts(first, count as usize) };
        match live.set_filter(insns, &handle.signals) {
            Ok(()) => 0,
            Err(error) => handle.fail(PCAP_ERROR, &error.to_string()),
        }
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_setfilter(p, program)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setdirection(p: *mut pcap_t, direction: c_int) -> c_int {
    let ours = |handle: &Handle| match handle.live() {
        Err(code) => code,
        Ok(live) if [PCAP_D_INOUT, PCAP_D_IN, PCAP_D_OUT].contains(&direction) => {
            live.set_direction(direction);
            0
        }
        Ok(_) => handle.fail(PCAP_ERROR, "Invalid direction"),
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_setdirection(p, direction)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_getnonblock(p: *mut pcap_t, errbuf: *mut c_char) -> c_int {
    let ours = |handle: &Handle| match handle.live() {
        Ok(_) => c_int::from(handle.is_nonblocking()),
        Err(code) => code,
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_getnonblock(p, errbuf)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setnonblock(
    p: *mut pcap_t,
    on: c_int,
    errbuf: *mut c_char,
) -> c_int {
    let ours = |handle: &Handle| {
        handle.nonblocking.store(on != 0, Relaxed);
        0
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_setnonblock(p, on, errbuf)) }
}
