//! How packets are to be captured.

use std::ffi::c_int;

use crate::abi::MAX_SNAPLEN;

/// What is asked for before a capture begins.
#[derive(Clone, Copy, Default)]
pub struct Settings {
    pub snaplen: c_int,
    pub promiscuous: bool,
    pub timeout: c_int,
    pub buffer_size: c_int,
    pub rfmon: bool,
    pub immediate: bool,
    pub tstamp_type: c_int,
    pub nanoseconds: bool,
    /// Beside a stack, a filter sees every frame with its VLAN tag, also one that does not ask
    /// about tags.
    pub filters_with_tags: bool,
}

impl Settings {
    /// Bytes of a packet that are wanted.
    pub fn snaplen(&self) -> u32 {
        match self.snaplen {
            wanted @ 1..=MAX_SNAPLEN => wanted.unsigned_abs(),
            _ => MAX_SNAPLEN.unsigned_abs(),
        }
    }
}
