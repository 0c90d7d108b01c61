//! Pointers that a program hands over with a call: null, or what the function's documentation says. Whoever calls an
//! exported function promises that; nothing else makes these.

use std::{
    borrow::Cow,
    ffi::{CStr, c_char, c_int, c_ulong},
    sync::atomic::{AtomicI32, AtomicU64},
};

use crate::abi::{qman_cgr, qman_fq, qman_fq_cb};

/// A value to be read.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    pub fn get(self) -> Option<T> {
        self.at(0)
    }

    /// One of several.
    #[inline]
    pub fn at(self, place: usize) -> Option<T> {
        // SAFETY: a value, as the caller of the exported function promises.
        (!self.0.is_null()).then(|| unsafe { self.0.add(place).read_unaligned() })
    }
}

/// Room for a value.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Whether there was a place to put it.
    pub fn put(self, value: T) -> bool {
        self.put_at(0, value)
    }

    /// The same, for one of several.
    #[inline]
    pub fn put_at(self, place: usize, value: T) -> bool {
        if !self.0.is_null() {
            // SAFETY: room for it, as the caller of the exported function promises.
            unsafe { self.0.add(place).write_unaligned(value) };
        }
        !self.0.is_null()
    }

    /// Whether there is room.
    pub fn exists(&self) -> bool {
        !self.0.is_null()
    }
}

impl<T: Copy> Out<T> {
    pub fn get(self) -> Option<T> {
        In(self.0.cast_const()).get()
    }
}

/// A C string.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    pub fn get<'a>(self) -> Option<Cow<'a, str>> {
        // SAFETY: a C string that stays during the call.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) }.to_string_lossy())
    }
}

/// A frame queue of the program's, not null.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fq(*mut qman_fq);

impl Fq {
    #[inline]
    pub fn new(fq: *mut qman_fq) -> Option<Fq> {
        (!fq.is_null() && fq.is_aligned()).then_some(Fq(fq))
    }

    pub fn ptr(self) -> *mut qman_fq {
        self.0
    }

    /// Makes an object of it, with no more of the program's than the callbacks.
    pub fn begin(self, fqid: u32, flags: c_ulong, handle: usize) {
        // SAFETY: room for one, which is the program's and which nobody else uses yet; `cb` is not touched.
        unsafe {
            (&raw mut (*self.0).fqlock).write_bytes(0, 1);
            (&raw mut (*self.0).fqid).write(fqid);
            (&raw mut (*self.0).flags).write(flags);
            (&raw mut (*self.0).state).write(0);
            (&raw mut (*self.0).cgr_groupid).write(0);
            (&raw mut (*self.0).handle).write(handle);
            (&raw mut (*self.0).node_next).write(0);
        }
    }

    #[inline]
    pub fn callbacks(self) -> qman_fq_cb {
        // SAFETY: an object of the program's; null functions are none.
        unsafe { (&raw const (*self.0).cb).read() }
    }

    #[inline]
    pub fn fqid(self) -> u32 {
        // SAFETY: as above. The program may write it between calls.
        unsafe { (&raw const (*self.0).fqid).read_volatile() }
    }

    #[inline]
    pub fn handle(self) -> usize {
        // SAFETY: as above; whether it is one, `handles.rs` checks.
        unsafe { (&raw const (*self.0).handle).read() }
    }

    pub fn set_group(self, group: c_int) {
        // SAFETY: as above.
        unsafe { (&raw mut (*self.0).cgr_groupid).write(group) };
    }

    /// Its flags, which other threads change too.
    #[inline]
    pub fn flags<'a>(self) -> &'a AtomicU64 {
        // SAFETY: as above, aligned; the library accesses it by this alone.
        unsafe { AtomicU64::from_ptr((&raw mut (*self.0).flags).cast()) }
    }

    #[inline]
    pub fn state<'a>(self) -> &'a AtomicI32 {
        // SAFETY: as above.
        unsafe { AtomicI32::from_ptr(&raw mut (*self.0).state) }
    }
}

/// A congestion group of the program's, not null.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cgr(*mut qman_cgr);

impl Cgr {
    pub fn new(cgr: *mut qman_cgr) -> Option<Cgr> {
        (!cgr.is_null() && cgr.is_aligned()).then_some(Cgr(cgr))
    }

    pub fn ptr(self) -> *mut qman_cgr {
        self.0
    }

    pub fn number(self) -> u32 {
        // SAFETY: an object of the program's.
        unsafe { (&raw const (*self.0).cgrid).read() }
    }

    pub fn callback(self) -> Option<crate::abi::qman_cb_cgr> {
        // SAFETY: as above.
        unsafe { (&raw const (*self.0).cb).read() }
    }

    pub fn set_channel(self, channel: u16) {
        // SAFETY: as above.
        unsafe { (&raw mut (*self.0).chan).write(channel) };
    }
}
