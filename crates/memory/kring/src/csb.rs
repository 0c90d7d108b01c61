//! The pair of cache lines, and the need-kick protocol.
//!
//! The shape is netmap's CSB (`nm_csb_atok`, `nm_csb_ktoa`); the words that netmap leaves
//! as padding hold the bookkeeping of the kicks.
//!
//! ```text
//!   party that waits                      party that produces
//!   ----------------                      -------------------
//!   arm: need_kick = new number           publish the work
//!   fence                                 fence
//!   look for work                         read need_kick
//!   none: sleep on the doorbell               new number: ring the doorbell, remember it
//! ```
//!
//! Whichever fence comes first, the other party's read sees what was written before it: the
//! waiter sees the work, or the producer sees the number. A number is answered once, so a
//! busy producer does not ring for a waiter that is on its way. It is remembered when the doorbell
//! has been rung: one that is killed between the two, whose ring another process goes on with,
//! makes the doorbell ring twice, not never. And since a wait is never taken back, several waiters may share one ring. They share its doorbell then, and with it the
//! answer: one that silences the doorbell, and finds work after all, rings it again for the others.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};

/// Written by the program's side of a ring, read by the service side. One cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct AppLine {
    head: AtomicU32,
    cur: AtomicU32,
    need_kick: AtomicU32,
    sync_flags: AtomicU32,
    kicked: AtomicU32,
    yielded: AtomicU32,
}

/// Written by the service side of a ring, read by the program's side. One cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ServiceLine {
    hwcur: AtomicU32,
    hwtail: AtomicU32,
    need_kick: AtomicU32,
    kicked: AtomicU32,
    held: AtomicU32,
    takes_back: AtomicU32,
    no_room: AtomicU64,
    too_long: AtomicU64,
    bytes: AtomicU64,
    yield_wanted: AtomicU32,
}

/// The two lines of one ring.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Csb {
    /// The program's line.
    pub app: AppLine,
    /// The service side's line.
    pub service: ServiceLine,
}

#[cfg(not(loom))]
mod shared {
    use super::{AppLine, Csb, ServiceLine};

    ringway_region::shared_struct!(AppLine { head, cur, need_kick, sync_flags, kicked, yielded });
    ringway_region::shared_struct!(ServiceLine {
        hwcur,
        hwtail,
        need_kick,
        kicked,
        held,
        takes_back,
        no_room,
        too_long,
        bytes,
        yield_wanted
    });
    ringway_region::shared_struct!(Csb { app, service });

    const _: () = assert!(size_of::<Csb>() == 128);
}

impl AppLine {
    /// Publishes the program's cursors: everything written to slots and buffers before is
    /// visible to a reader of this `head`.
    #[inline]
    pub fn publish(&self, head: u32, cur: u32) {
        self.cur.store(cur, Relaxed);
        self.head.store(head, Release);
    }

    /// The published `head`; acquires what [`publish`](Self::publish) released.
    #[inline]
    pub fn head(&self) -> u32 {
        self.head.load(Acquire)
    }

    /// The published `cur`.
    #[inline]
    pub fn cur(&self) -> u32 {
        self.cur.load(Relaxed)
    }

    /// Announces that the program is about to sleep. It must look for work once more
    /// between this and sleeping.
    #[inline]
    pub fn arm(&self) {
        arm(&self.need_kick);
    }

    /// Rings the program's doorbell by `ring` if the program waits for a kick that `by` has not given
    /// yet; returns whether it has. Call it after publishing.
    #[inline]
    pub fn kick(&self, by: &ServiceLine, ring: impl FnOnce()) -> bool {
        kick(&self.need_kick, &by.kicked, ring)
    }

    /// A hint that costs no fence: true if the program certainly waits for a kick of `by`. When it
    /// says no, [`kick`](Self::kick) has to be called before long.
    #[inline]
    pub fn seems_to_wait(&self, by: &ServiceLine) -> bool {
        self.need_kick.load(Relaxed) != by.kicked.load(Relaxed)
    }

    /// Whether the service side has asked the program to yield since the last call.
    #[inline]
    pub fn is_asked_to_yield(&self, to: &ServiceLine) -> bool {
        let asked = to.yield_wanted.load(Relaxed);
        let news = asked != self.yielded.load(Relaxed);
        if news {
            self.yielded.store(asked, Relaxed);
        }
        news
    }

    /// As [`kick`](Self::kick), when the other party is itself the program's side of a ring: the two
    /// ends of a pipe.
    #[inline]
    pub fn kick_peer(&self, by: &AppLine, ring: impl FnOnce()) -> bool {
        kick(&self.need_kick, &by.kicked, ring)
    }
}

impl ServiceLine {
    /// Publishes the service side's cursors: everything written to slots and buffers before
    /// is visible to a reader of this `hwtail`.
    #[inline]
    pub fn publish(&self, hwcur: u32, hwtail: u32) {
        self.hwcur.store(hwcur, Relaxed);
        self.hwtail.store(hwtail, Release);
    }

    /// First slot that the service side has not consumed.
    #[inline]
    pub fn hwcur(&self) -> u32 {
        self.hwcur.load(Relaxed)
    }

    /// Tells the program whether what it has published is held back, for as long as somebody
    /// else takes: there is no use in waiting for it.
    #[inline]
    pub fn hold_back(&self, held: bool) {
        self.held.store(held.into(), Relaxed);
    }

    /// Asks the program to yield its processor once, at its next sync.
    #[inline]
    pub fn ask_to_yield(&self) {
        self.yield_wanted.store(self.yield_wanted.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Says whether the service side takes receive slots back as soon as they are released, and
    /// tells so by [`hwcur`](Self::hwcur): a program may wait for it then.
    pub fn set_takes_back(&self, takes_back: bool) {
        self.takes_back.store(takes_back.into(), Relaxed);
    }

    /// See [`set_takes_back`](Self::set_takes_back).
    #[inline]
    pub fn takes_back(&self) -> bool {
        self.takes_back.load(Relaxed) != 0
    }

    /// Adds packets that were lost on their way to the program: those that found no room, and those that were too
    /// long.
    pub fn count_lost(&self, [no_room, too_long]: [u64; 2]) {
        add(&self.no_room, no_room);
        add(&self.too_long, too_long);
    }

    /// Adds bytes of packets that went through the ring.
    #[inline]
    pub fn count_bytes(&self, bytes: u64) {
        add(&self.bytes, bytes);
    }

    /// Bytes that the service side has counted, modulo 2^64.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Packets lost on their way here, counted modulo 2^64 from an unknown number on.
    pub fn lost(&self) -> [u64; 2] {
        [&self.no_room, &self.too_long].map(|counter| counter.load(Relaxed))
    }

    /// Whether what the program has published is held back.
    #[inline]
    pub fn holds_back(&self) -> bool {
        self.held.load(Relaxed) != 0
    }

    /// First slot that is not the program's; acquires what [`publish`](Self::publish)
    /// released.
    #[inline]
    pub fn hwtail(&self) -> u32 {
        self.hwtail.load(Acquire)
    }

    /// Announces that the service side is about to sleep; as [`AppLine::arm`].
    #[inline]
    pub fn arm(&self) {
        arm(&self.need_kick);
    }

    /// Whether the service side has ever announced a sleep. Where it mostly does not, this
    /// spares the program the fence of [`kick`](Self::kick). There is no fence
    /// here: who is to begin to wait arms once, long before the wait that it means.
    #[inline]
    pub fn has_waited(&self) -> bool {
        self.need_kick.load(Relaxed) != 0
    }

    /// Rings the service side's doorbell; as [`AppLine::kick`].
    #[inline]
    pub fn kick(&self, by: &AppLine, ring: impl FnOnce()) -> bool {
        kick(&self.need_kick, &by.kicked, ring)
    }
}

/// Others may write there: what stands there is theirs to spoil.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// An addition in one step: a second waiter that stored what it had read a while ago would
/// bring back a number that is answered already.
#[inline]
fn arm(need_kick: &AtomicU32) {
    if need_kick.fetch_add(1, Relaxed) == u32::MAX {
        // 0 stands for "nobody has ever waited".
        need_kick.fetch_add(1, Relaxed);
    }
    store_load_fence();
}

/// The producer's half of the protocol: `need_kick` is the waiter's word, `kicked` the producer's own.
#[inline]
fn kick(need_kick: &AtomicU32, kicked: &AtomicU32, ring: impl FnOnce()) -> bool {
    store_load_fence();
    let number = need_kick.load(Relaxed);
    if number == kicked.load(Relaxed) || number == 0 {
        return false;
    }
    ring();
    kicked.store(number, Relaxed);
    true
}

/// Orders what was stored before with what is loaded after, on both sides. Building with
/// `--cfg ringway_no_fence` leaves it out: the model checker must then find the lost wake-up.
#[inline]
fn store_load_fence() {
    if cfg!(not(ringway_no_fence)) {
        fence(SeqCst);
    }
}
