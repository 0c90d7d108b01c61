//! Sending: the frames in slots up to `head`, put down as blocks for the file.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG, NS_REPORT};
use ringway_kring::{Accepted, Driver, Kring};
use ringway_region::{Layout, Recorded};

use crate::{
    error::Error,
    recorder::{Direction, Record, Recorder, now},
    threads::ThreadOwner,
};

/// In a slot's shadow word: in front of its buffer stands what is [recorded] of the packet
/// that begins there, and is to stay so. Each sync takes the mark away.
///
/// [recorded]: ringway_region::RingView::recorded
pub const RECORDED: u32 = 0x4652_4543;

/// Driver of a tx ring whose frames go to a file. Their time is that of the sync, and their length
/// what the slots have, unless it is [known](RECORDED).
///
/// All slots are free again after a sync, whatever the file does meanwhile. Frames that the file is too
/// slow for are dropped, and counted as `ring_full`; slots without a buffer as `bad_slot`; packets
/// with a slot that is longer than its buffer as `too_long` (S-SYNC-9). In a child of `fork` a sync fails:
/// what is in the ring is the parent's to write.
#[derive(Debug)]
pub struct FileTx {
    writer: ThreadOwner,
    recorder: Mutex<Recorder>,
    /// Frames dropped that the ring has counted.
    noted: AtomicU64,
    data_size: u32,
}

impl FileTx {
    /// For a region of this layout. Frames are recorded as those of the first interface.
    pub fn new(recorder: Recorder, layout: &Layout) -> FileTx {
        let (writer, noted) = (recorder.writer().clone(), AtomicU64::new(0));
        FileTx { writer, recorder: Mutex::new(recorder), noted, data_size: layout.data_size() }
    }

    /// Why nothing is written any more, if that is so.
    pub fn error(&self) -> Option<Error> {
        self.writer.check().err().or_else(|| self.recorder().error())
    }

    /// Ends the file; see [`Recorder::finish`]. What was lost after the last sync is counted.
    pub fn finish(&self, kring: &Kring) {
        if self.writer.is_parent() {
            return;
        }
        let mut recorder = self.recorder();
        recorder.finish();
        if let Some(_guard) = kring.try_lock() {
            self.note_drops(kring, &recorder);
        }
    }

    fn note_drops(&self, kring: &Kring, recorder: &Recorder) {
        let dropped = recorder.totals().dropped;
        let news = dropped.saturating_sub(self.noted.swap(dropped, Relaxed));
        if news > 0 {
            kring.note(|c| &c.ring_full, news);
        }
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for FileTx {
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let head = kring.within(head);
        let from = kring.hwcur();
        let at = if from == head { from } else { self.record(kring, from, head) };
        kring.csb().service.publish(at, kring.ring().prev(at));
    }

    /// In a child of `fork`, whose copy of the lock may be held for ever.
    fn fails(&self, _kring: &Kring) -> bool {
        self.writer.is_parent()
    }
}

impl FileTx {
    /// Records the packets from slot `from` on; returns the slot behind the last that is whole.
    fn record(&self, kring: &Kring, from: u32, head: u32) -> u32 {
        let ring = kring.ring();
        let mut recorder = self.recorder();
        let mut burst = recorder.burst();
        let (now, direction) = (now(), Direction::Unknown);
        let (mut first, mut frames, mut bytes) = (from, 0, 0);
        while let Some(Packet { end, length, bad_slots, too_long }) =
            self.packet(kring, first, head)
        {
            let mark = kring.shadow(first).swap(0, Relaxed);
            let known =
                if mark == RECORDED { ring.recorded(ring.slot(first).buf_idx) } else { None };
            let known = known.unwrap_or(Recorded { time: now, length });
            let Recorded { time, length: wire_length } = known;
            let record = Record { interface: 0, direction, time, length, wire_length };
            let recorded = length > 0
                && !too_long
                && burst.record(&record, |mut room| {
                    let mut at = first;
                    while at != end && !room.is_empty() {
                        let slot = ring.slot(at);
                        let length = room.len().min(slot.len.into());
                        let done =
                            ring.buf(slot.buf_idx).map_or(0, |buf| buf.copy_to(length, room));
                        room = &mut std::mem::take(&mut room)[done..];
                        at = ring.next(at);
                    }
                });
            match recorded {
                true => (frames, bytes) = (frames + 1, bytes + u64::from(length)),
                false if too_long => kring.note(|c| &c.too_long, 1),
                // The recorder counts it, unless it is empty.
                false => {}
            }
            if bad_slots > 0 {
                kring.note(|c| &c.bad_slot, bad_slots);
            } else if length == 0 {
                kring.note(|c| &c.too_short, 1);
            }
            kring.consume(first, end, NS_REPORT | NS_BUF_CHANGED);
            first = end;
        }
        kring.count(frames);
        kring.note(|c| &c.bytes, bytes);
        drop(burst);
        self.note_drops(kring, &recorder);
        first
    }

    /// The packet that begins in slot `first`; `None` if it is not whole yet.
    fn packet(&self, kring: &Kring, first: u32, head: u32) -> Option<Packet> {
        let ring = kring.ring();
        let (mut at, mut length, mut bad_slots, mut too_long) = (first, 0, 0, false);
        while at != head {
            let slot = ring.slot(at);
            if ring.buf(slot.buf_idx).is_some() {
                length += u32::from(slot.len);
                too_long |= u32::from(slot.len) > self.data_size;
            } else {
                bad_slots += 1;
            }
            at = ring.next(at);
            // One that takes the whole ring has no end in it.
            let is_last = slot.flags & NS_MOREFRAG == 0 || ring.next(at) == first;
            if is_last {
                return Some(Packet { end: at, length, bad_slots, too_long });
            }
        }
        None
    }
}

/// What the slots up to `end` hold.
struct Packet {
    end: u32,
    length: u32,
    /// Slots without a buffer.
    bad_slots: u64,
    /// A slot is longer than its buffer.
    too_long: bool,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringway_abi::Dir;
    use ringway_kring::Outcome;
    use ringway_region::{Region, RingInit, Sizes};

    use super::*;
    use crate::Recording;

    /// A slot of a packet that is not whole yet is looked at by each sync, and counts once.
    #[test]
    fn a_bad_slot_counts_once() {
        const SLOTS: u32 = 8;
        let sizes = Sizes::private([1, 1], [SLOTS; 2], 0, 0);
        let layout = Layout::new(&sizes, 0).unwrap();
        let region = Arc::new(Region::create(1, layout).unwrap());
        let init = RingInit { dir: Dir::Tx, ringid: 0, num_slots: SLOTS };
        let bufs: Vec<u32> = (2..SLOTS + 2).collect();
        let kring = Kring::create(&region, 0, &init, &bufs).unwrap();
        let file =
            std::env::temp_dir().join(format!("ringway-bad-slot-{}.pcap", std::process::id()));
        let driver = FileTx::new(Recorder::new(&Recording::to(&file, "a")).unwrap(), &layout);
        let send = |at: u32, buf_idx: u32, flags: u16| {
            kring.ring().set_slot(at, buf_idx, 60, flags);
            kring.ring().set_cur(at + 1);
            kring.ring().set_head(at + 1);
            kring.sync(&driver);
        };
        send(0, 0, NS_MOREFRAG);
        (0..3).for_each(|_| assert_eq!(kring.sync(&driver), Outcome::Done));
        let counts = || {
            let counted = kring.counters();
            [&counted.packets, &counted.bad_slot].map(|count| count.load(Relaxed))
        };
        send(1, 3, 0);
        assert_eq!(counts(), [1, 1]);
        // The only one of its packet.
        send(2, 0, 0);
        driver.finish(&kring);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(counts(), [1, 2]);
    }
}
