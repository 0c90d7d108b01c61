//! The learning forwarding function (S-VALE-6, S-VALE-7), which forgets what was not seen for long.
//!
//! netmap's remembers the last address of each port, so that most packets need not touch the
//! table. So does this one, and keeps that memory true: it holds for a second, so that an
//! address in use does not age, and not at all once another port has taken the address, so that
//! one that moves away and back is learned again.
#![expect(clippy::indexing_slicing, reason = "256 entries, indexed by a port's number of 8 bits")]

use std::sync::Arc;

use ringway_fastpath::FastPath;

use crate::{
    function::{Forward, LearningCounters, Packet, Verdict},
    table::{AddressFilter, Key, Learned, LearnedAddress, StaticAddress, Table},
};
use ringway_switch_port::{Burst, Frame, FrameStatus, PortIndex, is_group};

const NOBODY: Key = Key::MAX;

pub(crate) struct Learning {
    table: Table,
    /// The last address of each port, if the table has it there, seen within this second.
    last: Box<[Key; 256]>,
    counters: Box<[LearningCounters; 256]>,
    /// The table has not taken an address since that was last asked.
    has_refused: bool,
    /// An address has moved since that was last asked.
    has_moved: bool,
}

impl Learning {
    pub fn new(ageing_seconds: u32) -> Learning {
        Learning {
            table: Table::new(ageing_seconds),
            last: Box::new([NOBODY; 256]),
            counters: Box::new([LearningCounters::default(); 256]),
            has_refused: false,
            has_moved: false,
        }
    }

    /// From now on the program behind `fast` forwards by the same table.
    pub fn share(&mut self, fast: Arc<FastPath>) {
        self.table.share(fast);
        self.last.fill(NOBODY);
    }

    /// These addresses are static from now on, and no others.
    pub fn set_statics(&mut self, all: Vec<StaticAddress>) {
        self.table.set_statics(all);
        self.last.fill(NOBODY);
    }

    /// Those addresses.
    pub fn statics(&self) -> &[StaticAddress] {
        self.table.statics()
    }

    /// As [`Table::flush`].
    pub fn flush(&mut self, which: &AddressFilter) -> usize {
        self.last.fill(NOBODY);
        self.table.flush(which)
    }

    /// Seconds for which an address is known that is not seen; 0: for ever.
    pub fn ageing(&self) -> u32 {
        self.table.ageing()
    }

    /// How many addresses are behind `port`, static ones with them.
    pub fn known(&self, port: PortIndex) -> u16 {
        self.table.known(port) + self.table.fixed(port)
    }

    /// Marks the frames whose source would be one more address than `most` behind the port that sent them.
    #[cold]
    #[inline(never)]
    pub fn check(&mut self, burst: &mut Burst<'_>, most: u16) {
        let port = burst.source.port;
        for frame in burst.frames.iter_mut().filter(|f| f.status == FrameStatus::Fine) {
            let key = key(frame.src(), frame.vid);
            if key == self.last[usize::from(port)] || is_group(key) {
                continue;
            }
            if self.known(port) >= most && self.table.lookup(key) != Some(port) {
                frame.status = FrameStatus::Spoofed;
            } else {
                self.learn(key, port);
            }
        }
    }

    /// How many of these frames, which `port` has sent and are done with, have a source that was not learned. What waits for
    /// a port is decided again and again, and is not counted by that.
    #[inline]
    pub fn count_unlearned(&mut self, frames: &[Frame], port: PortIndex) -> u64 {
        if self.has_refused { self.count_refused(frames, port) } else { 0 }
    }

    /// Whether an address has moved since this was last asked.
    #[inline]
    pub fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    #[cold]
    #[inline(never)]
    fn count_refused(&mut self, frames: &[Frame], port: PortIndex) -> u64 {
        self.has_refused = false;
        let fine = frames.iter().filter(|frame| frame.status == FrameStatus::Fine);
        let sources = fine.map(|frame| key(frame.src(), frame.vid));
        sources.filter(|key| !is_group(*key) && self.table.lookup(*key) != Some(port)).count()
            as u64
    }

    /// As [`Table::list`].
    pub fn list(&self, from: usize, most: usize) -> (Vec<LearnedAddress>, Option<usize>) {
        self.table.list(from, most)
    }

    #[inline(never)]
    fn learn(&mut self, key: Key, port: PortIndex) {
        let counters = &mut self.counters[usize::from(port)];
        let lost = match self.table.learn(key, port) {
            Learned::There => None,
            Learned::Moved(old) => {
                counters.moved += 1;
                self.has_moved = true;
                Some((key, old))
            }
            Learned::Instead(lost, old) => Some((lost, old)),
            Learned::No => {
                self.has_refused = true;
                return;
            }
        };
        if let Some((lost, old)) = lost {
            let last = &mut self.last[usize::from(old)];
            if *last == lost {
                *last = NOBODY;
            }
        }
        self.last[usize::from(port)] = key;
    }
}

/// How the table has an address.
#[inline]
fn key(address: u64, vid: u16) -> Key {
    address | Key::from(vid) << 48
}

impl Forward for Learning {
    #[inline]
    fn decide(&mut self, packet: &Packet<'_>) -> Verdict {
        let (frame, port) = (packet.frame, packet.source());
        let src = key(frame.src(), frame.vid);
        if src != self.last[usize::from(port)] && !is_group(src) {
            self.learn(src, port);
        }
        let dst = key(frame.dst(), frame.vid);
        let known = if is_group(dst) { None } else { self.table.lookup(dst) };
        known.map_or(Verdict::Flood, Verdict::Port)
    }

    fn forget(&mut self, port: PortIndex) {
        self.table.purge(port);
        self.last[usize::from(port)] = NOBODY;
    }

    fn tick(&mut self, seconds: u32) {
        self.table.tick(seconds);
        self.last.fill(NOBODY);
    }

    fn take_counters(&mut self, port: PortIndex) -> LearningCounters {
        std::mem::take(&mut self.counters[usize::from(port)])
    }
}
