//! Filters of a ring, and filters by themselves.

use std::ffi::c_int;

use ringway_filter::{Insn, Program, compile};

use super::of_ring;
use crate::{
    abi::*,
    argument::{Bytes, Out, Text},
    bpf::{self, Filter},
    errno::fails,
    ring::{Ring, lock},
    source::Refused,
};

fn set(ring: &Ring, text: Text) -> c_int {
    let Some(text) = text.get() else { return fails(ERROR_GENERIC, libc::EINVAL) };
    let Some(compiled) = Filter::compile(&text) else { return fails(ERROR_GENERIC, libc::EINVAL) };
    let (filter, insns) = match compiled {
        Some((filter, insns)) => (Some(filter), insns),
        None => (None, Program::everything().insns().to_vec()),
    };
    if filter.is_some() || lock(&ring.filter).is_some() {
        let set = ring.sources.iter().try_for_each(|source| source.set_filter(&insns));
        if let Err(error) = set {
            return fails(ERROR_GENERIC, Refused::from(error).0);
        }
    }
    *lock(&ring.filter) = filter;
    0
}

fn remove(ring: &Ring) -> c_int {
    if lock(&ring.filter).take().is_none() {
        let is_here = ring.flags & (USERSPACE_BPF | TX_BPF) != 0;
        return if is_here { ERROR_NOT_SUPPORTED } else { ERROR_GENERIC };
    }
    let everything = Program::everything();
    let set = ring.sources.iter().try_for_each(|source| source.set_filter(everything.insns()));
    set.map_or_else(|error| fails(ERROR_GENERIC, Refused::from(error).0), |()| 0)
}

of_ring! {
    fn pfring_set_bpf_filter(text: Text) -> c_int, else ERROR_GENERIC, |ring| set(ring, text);
    fn pfring_remove_bpf_filter() -> c_int, else ERROR_GENERIC, |ring| remove(ring);
}

/// # Safety
/// As PF_RING says: a text, and room for a filter.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_parse_bpf_filter(
    text: Text,
    _caplen: u32,
    filter: Out<bpf_program>,
) -> c_int {
    let Some(Ok(program)) = text.get().map(|text| compile(&text)) else { return ERROR_GENERIC };
    let insns: Box<[Insn]> = program.insns().into();
    let (len, insns) = (insns.len() as u32, Box::into_raw(insns).cast::<Insn>());
    if filter.put(bpf_program { len, insns }) {
        return 0;
    }
    free(bpf_program { len, insns });
    ERROR_GENERIC
}

fn free(filter: bpf_program) {
    if !filter.insns.is_null() {
        let insns = std::ptr::slice_from_raw_parts_mut(filter.insns, filter.len as usize);
        // SAFETY: a box of `pfring_parse_bpf_filter`, freed once.
        drop(unsafe { Box::from_raw(insns) });
    }
}

/// # Safety
/// As PF_RING says: a filter of `pfring_parse_bpf_filter`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_free_bpf_filter(filter: Out<bpf_program>) {
    if let Some(found) = filter.get() {
        filter.put(bpf_program { len: 0, insns: std::ptr::null_mut() });
        free(found);
    }
}

/// # Safety
/// As PF_RING says: a valid filter, and a packet of which so many bytes were captured.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_bpf_filter(
    insns: Out<Insn>,
    packet: Bytes,
    captured: u32,
    length: u32,
) -> u32 {
    let none = Insn { code: 0xffff, jt: 0, jf: 0, k: 0 };
    let program = bpf::behind(|at| insns.at(at).get().unwrap_or(none));
    match (program, packet.get(captured as usize)) {
        (Some(program), Some(packet)) => bpf::run(&program, packet, length),
        _ => 0,
    }
}
