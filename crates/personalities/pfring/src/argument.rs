//! Pointers that a program hands over with a call: null, or what the function's documentation says. Whoever calls
//! an exported function promises that; nothing else makes these.

use std::{
    borrow::Cow,
    ffi::{CStr, c_char, c_int},
    ptr::null_mut,
    sync::{Arc, Mutex},
};

use crate::{
    abi::pfring,
    ring::{Ring, lock},
    rules, text_thread,
};

/// Room for a value.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A place of our own.
    #[cfg(feature = "stepped")]
    pub fn of(place: &mut T) -> Out<T> {
        Out(place)
    }

    /// Whether there was a place to put it.
    pub fn put(self, value: T) -> bool {
        if !self.0.is_null() {
            // SAFETY: room for one, as the caller of the exported function promises.
            unsafe { self.0.write_unaligned(value) };
        }
        !self.0.is_null()
    }

    /// 0, or -1 where there is no value, or no place.
    pub fn put_some(self, value: Option<T>) -> c_int {
        if value.is_some_and(|value| self.put(value)) { 0 } else { -1 }
    }

    pub fn ptr(self) -> *mut T {
        self.0
    }

    /// One of several.
    pub fn at(self, place: usize) -> Out<T> {
        if self.0.is_null() { self } else { Out(self.0.wrapping_add(place)) }
    }
}

impl<T: Copy> Out<T> {
    pub fn get(self) -> Option<T> {
        // SAFETY: a value, as the caller of the exported function promises.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
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

/// Bytes, of which another argument says how many there are.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Bytes(*mut u8);

impl Bytes {
    pub const NULL: Bytes = Bytes(std::ptr::null_mut());

    pub fn get<'a>(self, count: usize) -> Option<&'a [u8]> {
        if self.0.is_null() || count > isize::MAX as usize {
            return None;
        }
        // SAFETY: so many, which stay as they are during the call.
        Some(unsafe { std::slice::from_raw_parts(self.0, count) })
    }

    pub fn get_mut<'a>(self, count: usize) -> Option<&'a mut [u8]> {
        if self.0.is_null() || count > isize::MAX as usize {
            return None;
        }
        // SAFETY: room for so many, which nothing else uses during the call.
        Some(unsafe { std::slice::from_raw_parts_mut(self.0, count) })
    }

    /// A text with the zero that ends it, cut where it does not fit; its whole length.
    pub fn print(self, count: u32, text: &str) -> c_int {
        if count > 0
            && let Some(room) = self.get_mut(count as usize)
        {
            let fits = text.len().min(room.len() - 1);
            room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
            room[fits] = 0;
        }
        c_int::try_from(text.len()).unwrap_or(c_int::MAX)
    }
}

/// A ring. What stands for a closed one is used again, and never freed: calls of a program that goes on with it find
/// no ring.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Handle(*mut pfring);

impl Handle {
    pub const NULL: Handle = Handle(null_mut());

    pub fn new(ring: Ring) -> Handle {
        let ring = Arc::new(ring);
        ring.rule_thread.set_ring(&ring);
        rules::offer(&ring);
        text_thread::add(&ring);
        let fresh = pfring {
            head: [0; 88],
            functions: [0; 77],
            flags: ring.flags,
            caplen: ring.caplen,
            slot_header_len: ring.slot_header_len(),
            mtu: u16::try_from(ring.mtu()).unwrap_or(u16::MAX),
            rest: [0; 55],
            ring: Arc::into_raw(ring).cast_mut(),
        };
        match lock(&CLOSED).pop() {
            Some(Closed(place)) => {
                // SAFETY: one of `new` that was closed.
                unsafe { place.write(fresh) };
                Handle(place)
            }
            None => Handle(Box::into_raw(Box::new(fresh))),
        }
    }

    /// The ring, which stays open during the call.
    #[inline]
    pub fn get<'a>(self) -> Option<&'a Ring> {
        // SAFETY: null, or one of `new`, whose ring is null if it is closed.
        unsafe { self.0.as_ref().and_then(|handle| handle.ring.as_ref()) }
    }

    /// Takes it away from the program, which does nothing with it any more.
    pub fn take(self) -> Option<Arc<Ring>> {
        let mut closed = lock(&CLOSED);
        // SAFETY: null, or one of `new`; the lock is held by those that change it.
        let ring = std::mem::replace(&mut unsafe { self.0.as_mut() }?.ring, null_mut());
        if ring.is_null() {
            return None;
        }
        closed.push(Closed(self.0));
        drop(closed);
        // SAFETY: of `new`, and taken once.
        let ring = unsafe { Arc::from_raw(ring) };
        text_thread::remove(&ring);
        Some(ring)
    }
}

/// What stood for rings that are closed.
static CLOSED: Mutex<Vec<Closed>> = Mutex::new(Vec::new());

struct Closed(*mut pfring);

// SAFETY: an address, of memory that is never freed.
unsafe impl Send for Closed {}
