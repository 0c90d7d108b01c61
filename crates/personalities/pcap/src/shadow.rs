//! A handle of the system library's in the place of one of ours.

use std::{ffi::c_int, ptr::NonNull};

use crate::{abi::*, system, text::text};

/// A dead handle: with the link type, the snapshot length and the precision of ours.
pub struct Shadow(NonNull<pcap_t>);

// SAFETY: libpcap's handles belong to no thread; the program does not use one from two at once, and this
// one is used only where the program uses the handle that it stands for.
unsafe impl Send for Shadow {}
// SAFETY: as above.
unsafe impl Sync for Shadow {}

impl Shadow {
    pub fn new(snaplen: u32, nanoseconds: bool) -> Option<Shadow> {
        let snaplen = c_int::try_from(snaplen).unwrap_or(MAX_SNAPLEN);
        // SAFETY: the function takes any numbers.
        let dead = unsafe {
            system::pcap_open_dead_with_tstamp_precision(DLT_EN10MB, snaplen, nanoseconds.into())
        };
        NonNull::new(dead).map(Shadow)
    }

    pub fn as_ptr(&self) -> *mut pcap_t {
        self.0.as_ptr()
    }

    /// What its last call has failed of.
    pub fn error(&self) -> String {
        // SAFETY: an open handle; its text ends with a zero, and is copied at once.
        unsafe { text(system::pcap_geterr(self.as_ptr())) }.into_owned()
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        // SAFETY: opened by `new`, closed here alone.
        unsafe { system::pcap_close(self.as_ptr()) };
    }
}
