//! A ring with its service-side state, as the process that drives it sees it.

use std::sync::{
    Arc,
    atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
    },
};

use ringway_abi::{Dir, NR_TIMESTAMP};
use ringway_region::{BLOCK_SIZE, Region, RingInit, RingView, View, shared_struct};

use crate::{
    csb::Csb,
    csb_mode::CsbMode,
    feed::{Turn, before_reuse},
    lock::Guard,
    owner::{Counters, MoreCounters, Owner, RingFeed, add},
};

/// The control block of a ring in shared memory.
#[repr(C)]
struct Block {
    csb: Csb,
    owner: Owner,
    counters: Counters,
    feed: RingFeed,
    csb_mode: CsbMode,
    more_counters: MoreCounters,
}

shared_struct!(Block { csb, owner, counters, feed, csb_mode, more_counters });

/// One ring, mapped.
#[derive(Clone, Debug)]
pub struct Kring {
    ring: RingView,
    block: View<Block>,
    dir: Dir,
    object: u32,
}

impl Kring {
    /// The ring in ring object `object` of the region, as it stands in memory. `None` if the
    /// region has no such object or the slots do not fit it.
    pub fn open(region: &Arc<Region>, object: u32, dir: Dir, num_slots: u32) -> Option<Kring> {
        let ring = RingView::new(region, object, num_slots)?;
        let block = region.block(object)?;
        Some(Kring { ring, block, dir, object })
    }

    /// Makes a fresh ring there (S-NIFP-4). `bufs` are its buffers, one a slot.
    pub fn create(
        region: &Arc<Region>,
        object: u32,
        init: &RingInit,
        bufs: &[u32],
    ) -> Option<Kring> {
        let kring = Kring::open(region, object, init.dir, init.num_slots)?;
        let n = init.num_slots;
        let words = region.block::<[AtomicU64; BLOCK_SIZE / 8]>(object)?;
        before_reuse();
        words.iter().for_each(|word| word.store(0, Relaxed));
        kring.ring.init(object, init);
        let size = kring.ring.region().layout().bufs.size.min(u32::from(u16::MAX)) as u16;
        for (i, &buf) in (0..n).zip(bufs) {
            kring.ring.set_slot_words(i, [u64::from(buf) | u64::from(size) << 32, 0]);
        }
        let tail = match init.dir {
            Dir::Tx => n - 1,
            Dir::Rx => 0,
        };
        kring.csb().service.publish(0, tail);
        kring.owner().rtail.store(tail, Relaxed);
        Some(kring)
    }

    #[inline]
    fn block(&self) -> &Block {
        &self.block
    }

    /// The two lines that are shared with the service side.
    #[inline]
    pub fn csb(&self) -> &Csb {
        &self.block().csb
    }

    /// The program's side's own line.
    #[inline]
    pub fn owner(&self) -> &Owner {
        &self.block().owner
    }

    /// The marks of CSB mode, where this is the first ring of a binding.
    #[inline]
    pub fn csb_mode(&self) -> &CsbMode {
        &self.block().csb_mode
    }

    /// What the ring has done.
    #[inline]
    pub fn counters(&self) -> &Counters {
        &self.block().counters
    }

    /// What few rings count.
    #[inline]
    pub fn more_counters(&self) -> &MoreCounters {
        &self.block().more_counters
    }

    /// The ring itself, which the program reads and writes.
    #[inline]
    pub fn ring(&self) -> &RingView {
        &self.ring
    }

    /// Which way its packets go.
    #[inline]
    pub fn dir(&self) -> Dir {
        self.dir
    }

    /// Index of the ring object within its region.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// The shadow word of slot `i`: a place for the driver to note what it lent to the
    /// kernel, out of the way of the program's slots.
    #[inline]
    pub fn shadow(&self, i: u32) -> &AtomicU32 {
        self.ring.shadow(i)
    }

    /// Whether the program has slots to use: what POLLIN and POLLOUT report (S-POLL-3, S-POLL-4).
    #[inline]
    pub fn ready(&self) -> bool {
        self.ring.cur() != self.owner().rtail.load(Relaxed)
    }

    /// Whether the program has moved `head` since the last accepted sync (S-POLL-2).
    #[inline]
    pub fn pending(&self) -> bool {
        self.ring.head() != self.owner().rhead.load(Relaxed)
    }

    /// First slot that the service side has not consumed: an index of this ring, whatever
    /// stands in memory.
    #[inline]
    pub fn hwcur(&self) -> u32 {
        self.bounded(self.csb().service.hwcur())
    }

    /// The `tail` that the program was told last: an index of this ring, whatever stands in
    /// memory.
    #[inline]
    pub fn last_tail(&self) -> u32 {
        self.bounded(self.owner().rtail.load(Relaxed))
    }

    /// Generation of the monitors that the driver of this ring serves. It is another one each
    /// time that they change, and 0 as long as there has never been any.
    #[inline]
    pub fn monitors(&self) -> u32 {
        self.owner().monitors.load(SeqCst)
    }

    /// Announces other monitors.
    pub fn set_monitors(&self, generation: u32) {
        self.owner().monitors.store(generation, SeqCst);
    }

    /// The right to fill this ring, a monitor's, if it is still the one with this
    /// [id](Self::feed_id).
    #[inline]
    pub fn try_feed(&self, id: u32) -> Turn<Guard<'_>> {
        self.block().feed.try_feed(id)
    }

    /// Tells this ring, a monitor's, from those that have been in its place; 0: it is not to be
    /// filled any more.
    #[inline]
    pub fn feed_id(&self) -> u32 {
        self.block().feed.id()
    }

    /// Gives the ring an id.
    pub fn set_feed_id(&self, id: u32) {
        self.block().feed.set_id(id);
    }

    /// Takes the ring away from all that fill it: until it is [made](Self::create) anew, none does.
    /// False: one is at it, so try again.
    pub fn take_away(&self) -> bool {
        self.block().feed.take_away()
    }

    /// Whether nothing more will come (S-MON-8), or move at all (S-LIFE-9).
    #[inline]
    pub fn is_ended(&self) -> bool {
        // Pairs with the Release in `end`: a reader of the flag sees the tail that was stored before it.
        self.block().feed.ended.load(Acquire) != 0
    }

    /// Nothing more will come.
    pub fn end(&self) {
        self.block().feed.ended.store(1, Release);
    }

    /// Nothing will move through this ring any more: what moved its packets has gone (S-LIFE-9).
    /// Whoever syncs it learns of that as of other monitors, so that a sync has no more to look at.
    pub fn stop(&self) {
        self.end();
        self.owner().monitors.fetch_add(1, SeqCst);
    }

    /// First slot that is not the program's: an index of this ring, whatever stands in
    /// memory.
    #[inline]
    pub fn hwtail(&self) -> u32 {
        self.bounded(self.csb().service.hwtail())
    }

    /// Whether the service side has taken all that the program has published for sending, and given
    /// it back, or will not for now.
    #[inline]
    pub fn is_taken(&self) -> bool {
        let Csb { app, service } = self.csb();
        // By what is published last: where the tail is news, so is `hwcur`, but not the other way.
        service.hwtail() == self.ring.prev(app.head()) || service.holds_back()
    }

    /// Whether the service side has the receive slots that the program has released, where it
    /// wants them at once.
    #[inline]
    pub fn is_taken_back(&self) -> bool {
        let Csb { app, service } = self.csb();
        !service.takes_back() || service.hwcur() == app.head()
    }

    /// Slots with packets, of those before the last sync: sent and not taken yet, or received and not
    /// released. Fewer than the ring has slots, whatever stands in memory. By the `head` of the program's
    /// side: the driver of an interface's ring publishes none.
    pub fn fill(&self) -> u32 {
        let ring = &self.ring;
        let head = self.bounded(self.owner().rhead.load(Relaxed));
        let programs = ring.distance(head, self.hwtail());
        match self.dir {
            Dir::Rx => programs,
            Dir::Tx => (ring.num_slots() - 1).saturating_sub(programs),
        }
    }

    /// `head`, unless it lies outside the slots that the program holds, as after a reinitialisation
    /// of a ring whose cursors somebody scribbled over: then nothing new, until it is back among them.
    #[inline]
    pub fn within(&self, head: u32) -> u32 {
        self.within_from(self.hwcur(), head)
    }

    /// As [`within`](Self::within), where the program holds the slots from `start` on.
    #[inline]
    pub fn within_from(&self, start: u32, head: u32) -> u32 {
        let held = self.ring.distance(start, self.hwtail());
        if self.ring.distance(start, head) <= held { head } else { start }
    }

    /// Takes flags that a sync consumes off the slots from `from` to the one before `to`.
    #[inline]
    pub fn consume(&self, from: u32, to: u32, flags: u16) {
        let (ring, mut at) = (&self.ring, from);
        while at != to {
            let slot = ring.slot(at);
            if slot.flags & flags != 0 {
                ring.set_slot(at, slot.buf_idx, slot.len, slot.flags & !flags);
            }
            at = ring.next(at);
        }
    }

    /// `index` if this ring has such a slot, else 0.
    #[inline]
    pub fn bounded(&self, index: u32) -> u32 {
        if index < self.ring.num_slots() { index } else { 0 }
    }

    /// Counts packets that went through the ring.
    #[inline]
    pub fn count(&self, packets: u32) {
        add(&self.counters().packets, u64::from(packets));
    }

    /// Counts something else that happened on this ring.
    #[inline]
    pub fn note(&self, which: impl Fn(&Counters) -> &std::sync::atomic::AtomicU64, n: u64) {
        add(which(self.counters()), n);
    }

    /// Counts packets whose offload headers ask for what cannot be.
    pub fn note_bad_offload(&self, n: u64) {
        add(&self.more_counters().bad_offload, n);
    }

    /// Counts something that several parties count at once: the program and the daemon, say.
    pub fn note_shared(&self, which: impl Fn(&Counters) -> &std::sync::atomic::AtomicU64, n: u64) {
        which(self.counters()).fetch_add(n, Relaxed);
    }

    /// The right to drive this ring, or `None` while somebody else does.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_>> {
        self.owner().lock.try_lock()
    }

    /// `head` at the last accepted sync, and the tail that the program was told.
    #[inline]
    pub fn reconciled(&self) -> [u32; 2] {
        [&self.owner().rhead, &self.owner().rtail].map(|at| self.bounded(at.load(Relaxed)))
    }

    /// Stamps the ring with the wall-clock time, if it is asked to (S-SYNC-10).
    #[inline]
    pub fn stamp(&self, always: bool) {
        if always || self.ring.flags() & NR_TIMESTAMP != 0 {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
            self.ring.set_ts(now.tv_sec, now.tv_nsec / 1000);
        }
    }
}
