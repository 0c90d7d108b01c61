//! Buffers that the kernel does not reach: a region has more than the memory of a socket, and a program may put any
//! into a slot.
//!
//! In place of such a buffer the kernel gets one of the ring's spare buffers, and the frame is copied: when it is sent, or
//! when it has come. The slot names its own buffer all the time; the shadow word names the spare one, with
//! [`SPARE`]. Those that are free are listed behind the shadow words, the first `spares` of the list. A process
//! that is killed in a sync may lose some; none is ever given out twice.

use std::sync::atomic::Ordering::Relaxed;

use ringway_kring::Kring;

/// In a shadow word: the kernel has this buffer in place of the slot's.
pub(super) const SPARE: u32 = 1 << 30;

/// Buffers from this index on the kernel does not reach.
#[inline]
pub(super) fn reach(kring: &Kring) -> u32 {
    match kring.owner().in_umem.load(Relaxed) {
        0 => u32::MAX,
        reach => reach,
    }
}

/// Takes one. `None`: there is none left, until the kernel gives some back.
pub(super) fn take(kring: &Kring) -> Option<u32> {
    let free = &kring.owner().spares;
    let last = free.load(Relaxed).checked_sub(1)?;
    let spare = kring.ring().spare(last)?;
    free.store(last, Relaxed);
    let spare = spare.load(Relaxed);
    // Whatever a program has written there: it is a buffer, and no flag.
    kring.ring().buf(spare).is_some().then_some(spare)
}

/// Of a ring that sends: whether some come back from the slots in front of `end`, which were sent.
#[cold]
pub(super) fn are_lent(kring: &Kring, end: u32) -> bool {
    let mut at = kring.ring().next(kring.hwtail());
    while at != end {
        if kring.shadow(at).load(Relaxed) & SPARE != 0 {
            return true;
        }
        at = kring.ring().next(at);
    }
    false
}

/// Gives back the spare buffer that a shadow word names.
pub(super) fn give_back(kring: &Kring, shadow: u32) {
    let free = &kring.owner().spares;
    let count = free.load(Relaxed);
    if let Some(place) = kring.ring().spare(count) {
        place.store(shadow & !SPARE, Relaxed);
        free.store(count + 1, Relaxed);
    }
}

/// The same for all of slots `[from, to)`, whose shadow words are `then`.
pub(super) fn give_all_back(kring: &Kring, from: u32, to: u32, then: u32) {
    let mut at = from;
    while at != to {
        let shadow = kring.shadow(at).load(Relaxed);
        if shadow & SPARE != 0 {
            // First the word: a process killed in between loses the buffer.
            kring.shadow(at).store(then, Relaxed);
            give_back(kring, shadow);
        }
        at = kring.ring().next(at);
    }
}
