//! Receiving: the frames of a file, copied into the buffers of released slots.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_kring::{Accepted, Driver, Kring};
use ringway_region::{Layout, Recorded};

use crate::{
    error::{Error, Result},
    playback::{Next, Playback},
    reader::Skipped,
    threads::ThreadOwner,
};

/// Slots of a packet at most (`NETMAP_MAX_FRAGS`).
const MAX_FRAGS: u32 = 64;

/// Driver of an rx ring that a file fills.
///
/// Frames longer than a buffer take several slots, NS_MOREFRAG on all but the last. What fits no ring is
/// dropped (`too_long`). Once the program has released the last frame, the ring is
/// [stopped](Kring::stop): nothing comes any more. Each frame's buffers have what the file says of
/// the frame in front of their data, if there is room. In a child of `fork` a sync fails: the parent fills
/// the ring.
#[derive(Debug)]
pub struct FileRx {
    reader: ThreadOwner,
    playback: Mutex<Playback>,
    data_size: u32,
}

impl FileRx {
    /// For a region of this layout. The playback notifies the ring's doorbell.
    pub fn new(playback: Playback, layout: &Layout) -> FileRx {
        let reader = playback.reader().clone();
        FileRx { reader, playback: Mutex::new(playback), data_size: layout.data_size() }
    }

    /// Whether the ring is filled by this process.
    ///
    /// # Errors
    /// In a child of `fork`, where nothing else is to be asked.
    pub fn check_process(&self) -> Result<()> {
        self.reader.check()
    }

    /// Why the file ended early, if it did.
    pub fn error(&self) -> Option<Error> {
        self.playback().error()
    }

    /// Where the last block begins, if the file ends in the middle of it.
    pub fn cut(&self) -> Option<u64> {
        self.playback().cut()
    }

    /// Frames of other link types that were left out.
    pub fn skipped(&self) -> Skipped {
        self.playback().skipped()
    }

    fn playback(&self) -> MutexGuard<'_, Playback> {
        self.playback.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for FileRx {
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let head = kring.within(head);
        kring.consume(kring.hwcur(), head, NS_BUF_CHANGED);
        let (hwtail, is_end) = self.fill(kring, kring.hwtail(), kring.ring().prev(head));
        kring.csb().service.publish(head, hwtail);
        if is_end && hwtail == head {
            kring.stop();
        }
    }

    /// In a child of `fork`, whose copy of the lock may be held for ever.
    fn fails(&self, _kring: &Kring) -> bool {
        self.reader.is_parent()
    }
}

impl FileRx {
    /// Puts frames into slots from `at` on, before `last`; returns how far that is, and
    /// whether the file is through.
    fn fill(&self, kring: &Kring, mut at: u32, last: u32) -> (u32, bool) {
        let mut playback = self.playback();
        let (mut frames, mut bytes, mut is_end) = (0, 0, false);
        while at != last {
            let (frame, recorded) = match playback.peek() {
                Next::Frame { bytes, time, length, .. } => (bytes, Recorded { time, length }),
                Next::Nothing => break,
                Next::End => {
                    is_end = true;
                    break;
                }
            };
            match self.put(kring, at, last, frame, recorded) {
                Some(next) => {
                    (at, frames) = (next, frames + 1);
                    bytes += frame.len() as u64;
                }
                // All slots that the ring can ever have are too few.
                None if kring.ring().next(last) == at => kring.note(|c| &c.too_long, 1),
                None => break,
            }
            playback.advance();
        }
        if frames > 0 {
            kring.count(frames);
            kring.note(|c| &c.bytes, bytes);
        }
        (at, is_end)
    }

    /// Copies one frame into slots; returns the one behind it, or `None` if there are too few.
    fn put(
        &self,
        kring: &Kring,
        mut at: u32,
        last: u32,
        mut rest: &[u8],
        recorded: Recorded,
    ) -> Option<u32> {
        let (ring, mut bad_slots) = (kring.ring(), 0);
        for slots in 0.. {
            if at == last || slots == MAX_FRAGS {
                return None;
            }
            let slot = ring.slot(at);
            let Some(buf) = ring.buf(slot.buf_idx) else {
                // It comes back in its turn, with length 0.
                bad_slots += 1;
                ring.set_slot(at, slot.buf_idx, 0, if slots == 0 { 0 } else { NS_MOREFRAG });
                at = ring.next(at);
                continue;
            };
            let (part, left) =
                rest.split_at(rest.len().min(buf.size().min(self.data_size) as usize));
            let length = buf.write(0, part);
            ring.set_recorded(slot.buf_idx, recorded);
            let flags = if left.is_empty() { 0 } else { NS_MOREFRAG };
            ring.set_slot(at, slot.buf_idx, length as u16, flags);
            at = ring.next(at);
            if left.is_empty() {
                // Here, however often the frame was tried before and found too few slots.
                if bad_slots > 0 {
                    kring.note(|c| &c.bad_slot, bad_slots);
                }
                return Some(at);
            }
            rest = left;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use ringway_abi::Dir;
    use ringway_kring::Outcome;
    use ringway_region::{Region, RingInit, Sizes};
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;
    use crate::{Record, Recorder, Recording, Replay};

    /// A frame that finds too few slots is tried again by each sync.
    #[test]
    fn a_bad_slot_counts_once() {
        const SLOTS: u32 = 8;
        let file = std::env::temp_dir().join(format!("ringway-rx-{}.pcap", std::process::id()));
        let mut recorder = Recorder::new(&Recording::to(&file, "a")).unwrap();
        for length in [60, 60, 60, 60, 60, 3000] {
            recorder.burst().record(&Record { length, ..Record::default() }, |_| {});
        }
        drop(recorder);
        let layout = Layout::new(&Sizes::private([1, 1], [SLOTS; 2], 0, 0), 0).unwrap();
        let region = Arc::new(Region::create(1, layout).unwrap());
        let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots: SLOTS };
        let kring = Kring::create(&region, 0, &init, &(2..SLOTS + 2).collect::<Vec<_>>()).unwrap();
        let news = eventfd(0, EventfdFlags::empty()).unwrap();
        let doorbell = news.try_clone().unwrap();
        let playback = Playback::open(&file, Replay::default(), Some(doorbell)).unwrap();
        fs::remove_file(&file).unwrap();
        let driver = FileRx::new(playback, &layout);
        kring.ring().set_slot(5, 0, 0, 0);
        // All frames come together.
        rustix::io::read(&news, &mut [0; 8]).unwrap();
        let bad_slots = || kring.counters().bad_slot.load(std::sync::atomic::Ordering::Relaxed);
        (0..3).for_each(|_| assert_eq!(kring.sync(&driver), Outcome::Done));
        assert_eq!((kring.ring().tail(), bad_slots()), (5, 0));
        kring.ring().set_head(5);
        kring.ring().set_cur(5);
        kring.sync(&driver);
        assert_eq!((kring.ring().tail(), bad_slots()), (0, 1));
    }
}
