//! Packets that are read one by one.
//!
//! Most of what a read of one packet does is for the ring: it takes the port, and looks for what has come and for what
//! it is to take over. So a read that leaves packets in the ring notes how many, a *run*, and those after it hand on the
//! run's packets. Slots are looked at several at once, and their packets prefetched.
//!
//! The ring's cursors are exact all the time: another process that has the port, as after a fork, goes on where this one
//! is, and this one where that is. A run ends when its packets have been read, when there is something to take over, and
//! with each other read. Rings with timestamps have none.

use std::{ptr::with_exposed_provenance, sync::atomic::Ordering::Relaxed};

use ringway::Port;
use ringway_abi::{Dir, NS_MOREFRAG, NS_TXMON};
use ringway_region::RingView;

use super::{Live, Reader};
use crate::{abi::*, filtering::Packet, metadata::Metadata, signals::Signals};

/// Slots that are looked at at once.
const LOOK: usize = 32;

/// The run of a reader, in the ring whose turn it is.
pub(super) struct Run {
    /// The port's receive rings.
    views: Vec<RingView>,
    /// The first slot that was not looked at, and how many there are. They are counted in the ring's turn already.
    at: u32,
    left: u32,
    /// A header with the time at which they were found.
    found: pcap_pkthdr,
    /// The reader has a filter.
    is_filtered: bool,
    /// What was looked at: the next packet, and the end.
    seen: [Seen; LOOK],
    next: u32,
    end: u32,
}

/// A packet in one slot, as it was when it was looked at.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Of its first byte.
    address: usize,
    buf_idx: u32,
    /// Its slot, and the one behind it.
    at: u32,
    behind: u32,
    length: u16,
    flags: u16,
}

impl Run {
    /// None yet, of this port.
    pub fn of(port: &Port) -> Run {
        let rings = port.binding().rings(Dir::Rx).iter();
        let views = rings.map(|ring| ring.kring().ring().clone()).collect();
        let (seen, found) = ([Seen::default(); LOOK], pcap_pkthdr::default());
        Run { views, at: 0, left: 0, found, is_filtered: false, seen, next: 0, end: 0 }
    }

    /// So many slots from `at` on were found in the ring, at the time of this header.
    #[inline]
    pub fn begin(&mut self, at: u32, slots: u32, found: pcap_pkthdr, is_filtered: bool) {
        (self.at, self.left) = (at, slots);
        (self.found, self.is_filtered) = (found, is_filtered);
    }

    /// Slots that were not read.
    #[inline]
    pub fn end(&mut self) -> u32 {
        let seen = self.end - self.next;
        self.next = self.end;
        std::mem::take(&mut self.left) + seen
    }

    /// Looks at the next packets of one slot each; whether there are any.
    #[inline(never)]
    fn look(&mut self, ring: usize) -> bool {
        let Some(view) = self.views.get(ring) else { return false };
        let (bufs, mut at, mut end) = (view.bufs(), self.at, 0);
        let room = LOOK.min(self.left as usize);
        for seen in &mut self.seen[..room] {
            let slot = view.plain_slot(at);
            let Some(buf) = bufs.get(slot.buf_idx) else { break };
            if slot.flags & NS_MOREFRAG != 0 {
                break;
            }
            buf.prefetch();
            seen.address = buf.as_ptr().expose_provenance();
            (seen.buf_idx, seen.flags) = (slot.buf_idx, slot.flags);
            seen.length = buf.size().min(slot.len.into()) as u16;
            seen.at = at;
            at = view.next(at);
            seen.behind = at;
            end += 1;
        }
        self.at = at;
        self.left -= end;
        (self.next, self.end) = (0, end);
        end > 0
    }
}

impl Live {
    /// Gives `sink` the next packet of a run, which stays where it is until the next read. False where a
    /// [`read`](Self::read) is to find out what there is.
    #[inline]
    pub(crate) fn read_run(
        &self,
        signals: &Signals,
        sink: impl FnOnce(&pcap_pkthdr, *const u8, Metadata),
    ) -> bool {
        let Ok(mut reader) = self.reader.try_lock() else { return false };
        if signals.any() {
            return false;
        }
        let Reader { run, ring, filter, .. } = &mut *reader;
        loop {
            if run.next == run.end && !run.look(*ring) {
                return false;
            }
            let seen = run.seen[run.next as usize % LOOK];
            // Another process that has the port, as after a fork, may have read the packet.
            let Some(view) = run.views.get(*ring).filter(|view| view.head() == seen.at) else {
                return false;
            };
            run.next += 1;
            view.set_cur(seen.behind);
            view.set_head(seen.behind);
            if !is_wanted(self.direction.load(Relaxed), seen.flags) {
                continue;
            }
            let mut header = run.found;
            header.len = seen.length.into();
            header.caplen = header.len.min(self.snaplen);
            if run.is_filtered
                && let Some(filter) = filter
            {
                let packet = view.buf(seen.buf_idx).and_then(|buf| buf.part(0, header.len));
                match packet.map(|packet| filter.run_apart(&Packet(packet), header.len)) {
                    None | Some(0) => continue,
                    Some(wanted) => header.caplen = header.caplen.min(wanted),
                }
            }
            // The reader's lock is held: no other thread counts.
            self.passed.store(self.passed.load(Relaxed) + 1, Relaxed);
            let metadata = Metadata::of(seen.flags & NS_TXMON != 0);
            sink(&header, with_exposed_provenance(seen.address), metadata);
            return true;
        }
    }
}

/// Whether a packet goes the way that the program wants to see.
#[inline]
pub(super) fn is_wanted(direction: i32, flags: u16) -> bool {
    direction == PCAP_D_INOUT || (flags & NS_TXMON != 0) == (direction == PCAP_D_OUT)
}
