//! Frame queues of the program by 32-bit numbers, which go into `contextB` and `tag`.

use std::{
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicPtr, Ordering::*},
    },
};

use crate::{abi::qman_fq, argument::Fq, message::CHANGING};

/// As many as the reference has on 64-bit hosts; 0 is none.
const HANDLES: usize = 32 << 10;

static TABLE: [AtomicPtr<qman_fq>; HANDLES] = [const { AtomicPtr::new(ptr::null_mut()) }; HANDLES];

/// Those that were given back, and the first that never was in use.
static FREE: Mutex<(Vec<u32>, u32)> = Mutex::new((Vec::new(), 1));

/// A handle for a queue; `None` when there are no more.
pub fn add(fq: Fq) -> Option<u32> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = free.0.pop().or_else(|| {
        let next = free.1;
        free.1 += ((next as usize) < HANDLES) as u32;
        ((next as usize) < HANDLES).then_some(next)
    })?;
    TABLE[handle as usize].store(fq.ptr(), Release);
    Some(handle)
}

/// The handle of a queue that was added, and not removed.
#[inline]
pub fn of(fq: Fq) -> Option<u32> {
    let handle = fq.handle();
    let is_its = TABLE.get(handle).is_some_and(|place| place.load(Relaxed) == fq.ptr());
    is_its.then_some(handle as u32)
}

#[inline]
pub fn get(handle: u32) -> Option<Fq> {
    TABLE.get(handle as usize).and_then(|place| Fq::new(place.load(Acquire)))
}

/// The queue with a number, for what is said of it: by its handle, if context B is that, as it is not where an interface
/// takes the frames.
pub fn of_queue(handle: u32, fqid: u32) -> Option<Fq> {
    let is_it = |fq: &Fq| fq.fqid() == fqid && fq.flags().load(Relaxed) & CHANGING != 0;
    let entries = || TABLE.iter().filter_map(|place| Fq::new(place.load(Acquire)));
    get(handle).filter(|fq| fq.fqid() == fqid).or_else(|| entries().find(is_it))
}

pub fn remove(fq: Fq) {
    if let Some(handle) = of(fq) {
        TABLE[handle as usize].store(ptr::null_mut(), Release);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(handle);
    }
}
