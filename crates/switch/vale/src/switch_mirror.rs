//! Mirrors of the bridge itself: one of its ports gets copies of what others send and receive.
//!
//! A frame is copied once for each mirror, however many of the mirror's ports have sent it and get it. What a
//! port sends is copied when it is done with, as the port has sent it; what only a receiver shows, when the
//! first of them is given it, as that gets it. A copy is forwarded to no port but the mirror's own, so it is not
//! mirrored again; nor is what that port sends. A port that is a mirror's gets nothing else.
//!
//! Copies are charged to the port that has sent the frame, wait for nothing, and count at the mirror, and at the
//! port that gets them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use ringway_switch_port::{Burst, Delivered, Drops, Frame, FrameStatus, PortIndex};

use crate::{
    access::{Access, PortFilter},
    budget::Budget,
    lossless_queue::{MirrorSet, PortSet},
};

/// Mirrors of a bridge at most.
pub const MAX_MIRRORS: usize = 16;

const _: () = assert!(MAX_MIRRORS <= MirrorSet::BITS as usize);

/// A mirror, whose ports are all there.
#[derive(Clone, Debug)]
pub struct SwitchMirror {
    /// The ports that it shows; what its own port sends is never shown.
    pub from: MirrorSources,
    /// Whether it shows what they send, and what they receive.
    pub sent: bool,
    pub received: bool,
    /// The port that gets the copies.
    pub to: PortIndex,
    /// Which frames it shows, if not all.
    pub filter: Option<Arc<PortFilter>>,
    /// What it counts.
    pub counters: Arc<MirrorCounters>,
}

/// The ports that a mirror shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorSources {
    /// All that there are and will be.
    All,
    Ports(Vec<PortIndex>),
}

/// What has become of the copies of a mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorTotals {
    /// Copies that its port was given, and their bytes.
    pub copied_packets: u64,
    pub copied_bytes: u64,
    /// Its port had no room.
    pub ring_full: u64,
    /// They did not fit the port.
    pub too_long: u64,
    /// The filter of its port does not match them.
    pub denied: u64,
    /// A free slot of its port names no buffer.
    pub bad_slot: u64,
    /// What their virtio-net headers ask for cannot be done.
    pub bad_offload: u64,
    /// Its port receives nothing: no program reads there, the link is down, or the port is blocked.
    pub no_destination: u64,
}

/// The same, as the worker adds to it and others read it.
#[derive(Debug, Default)]
pub struct MirrorCounters([AtomicU64; 8]);

impl MirrorCounters {
    /// So much more.
    pub(crate) fn add(&self, more: &MirrorTotals) {
        for (count, more) in self.0.iter().zip(more.list()) {
            // There is one worker, which alone writes.
            count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
        }
    }

    /// What was counted so far.
    pub fn totals(&self) -> MirrorTotals {
        let [
            copied_packets,
            copied_bytes,
            ring_full,
            too_long,
            denied,
            bad_slot,
            bad_offload,
            no_destination,
        ] = self.0.each_ref().map(|count| count.load(Relaxed));
        MirrorTotals {
            copied_packets,
            copied_bytes,
            ring_full,
            too_long,
            denied,
            bad_slot,
            bad_offload,
            no_destination,
        }
    }
}

impl MirrorTotals {
    fn list(&self) -> [u64; 8] {
        let &MirrorTotals {
            copied_packets,
            copied_bytes,
            ring_full,
            too_long,
            denied,
            bad_slot,
            bad_offload,
            no_destination,
        } = self;
        [
            copied_packets,
            copied_bytes,
            ring_full,
            too_long,
            denied,
            bad_slot,
            bad_offload,
            no_destination,
        ]
    }

    /// Copies that were given to a port, which counted `before` and `after`, and those that could not be made.
    pub(crate) fn of(
        delivered: Delivered,
        before: &Drops,
        after: &Drops,
        not_made: &Drops,
    ) -> MirrorTotals {
        MirrorTotals {
            copied_packets: delivered.packets,
            copied_bytes: delivered.bytes,
            ring_full: after.ring_full - before.ring_full,
            too_long: after.too_long - before.too_long,
            denied: after.denied - before.denied,
            bad_slot: after.bad_slot - before.bad_slot,
            no_destination: 0,
            bad_offload: not_made.bad_offload,
        }
    }
}

/// What mirrors have to do with a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MirrorMarks {
    /// The mirrors that may show what it sends: as it sends it, or as others get it.
    pub of_sent: MirrorSet,
    /// Those that show what it receives.
    pub of_received: MirrorSet,
    /// Whether any shows what it sends or receives.
    pub is_source: bool,
    /// Whether it gets copies, and nothing else.
    pub is_target: bool,
}

/// The mirrors of a bridge.
pub(crate) struct Mirroring {
    copiers: Vec<Copier>,
    /// Those that show what the burst at hand is to its receivers.
    at_hand: MirrorSet,
}

/// A mirror as the worker has it.
struct Copier {
    mirror: SwitchMirror,
    /// Its ports.
    from: PortSet,
    filter: Option<Access>,
    /// The frames of the burst at hand that it shows.
    copies: Vec<Frame>,
    /// Where they begin among its pieces, a bit for each: so it has each once.
    taken: Vec<u64>,
}

impl Copier {
    fn new(mirror: SwitchMirror) -> Copier {
        let mut from = match &mirror.from {
            MirrorSources::All => PortSet::all(),
            MirrorSources::Ports(ports) => {
                ports.iter().copied().map(PortSet::of).fold(PortSet::default(), PortSet::or)
            }
        };
        from.remove(mirror.to);
        let filter = mirror.filter.as_deref().map(Access::new);
        Copier { mirror, from, filter, copies: Vec::new(), taken: Vec::new() }
    }

    /// Whether it shows what `source` sends, as that sends it.
    fn shows_sent(&self, source: PortIndex) -> bool {
        self.mirror.sent && self.from.contains(source)
    }

    /// Whether it shows what `source` sends as others get it.
    fn shows_received(&self, source: PortIndex) -> bool {
        self.mirror.received
            && !self.from.is_empty()
            && self.mirror.to != source
            && !self.shows_sent(source)
    }

    fn has(&self, frame: &Frame) -> bool {
        let word = self.taken.get(usize::from(frame.first >> 6));
        word.is_some_and(|word| word >> (frame.first & 63) & 1 != 0)
    }

    /// Notes that it has a frame.
    fn take(&mut self, first: u16) {
        let at = usize::from(first >> 6);
        if at >= self.taken.len() {
            self.taken.resize(at + 1, 0);
        }
        if let Some(word) = self.taken.get_mut(at) {
            *word |= 1 << (first & 63);
        }
    }
}

/// The mirrors of a set, each with its bit.
fn each(copiers: &mut [Copier]) -> impl Iterator<Item = (MirrorSet, &mut Copier)> {
    (0..MirrorSet::BITS).map(|at| 1 << at).zip(copiers)
}

impl Mirroring {
    /// `None`: there are none. More than [there can be](MAX_MIRRORS) are left out.
    pub fn new(mirrors: Vec<SwitchMirror>) -> Option<Box<Mirroring>> {
        let copiers: Vec<_> = mirrors.into_iter().take(MAX_MIRRORS).map(Copier::new).collect();
        (!copiers.is_empty()).then(|| Box::new(Mirroring { copiers, at_hand: 0 }))
    }

    pub fn all(&self) -> impl Iterator<Item = SwitchMirror> {
        self.copiers.iter().map(|copier| copier.mirror.clone())
    }

    /// The bits that some of these mirrors have among others: a mirror that has gone has none.
    pub fn among(&self, others: &Mirroring, mirrors: MirrorSet) -> MirrorSet {
        let own = self.copiers.iter().enumerate().filter(|(at, _)| mirrors >> at & 1 != 0);
        let places = own.filter_map(|(_, copier)| {
            let counters = &copier.mirror.counters;
            others.copiers.iter().position(|it| Arc::ptr_eq(&it.mirror.counters, counters))
        });
        places.fold(0, |all, at| all | 1 << at)
    }

    pub fn marks(&mut self, port: PortIndex) -> MirrorMarks {
        let mut marks = MirrorMarks::default();
        for (bit, copier) in each(&mut self.copiers) {
            let is_shown = copier.from.contains(port);
            if copier.shows_sent(port) || copier.shows_received(port) {
                marks.of_sent |= bit;
            }
            if copier.mirror.received && is_shown {
                marks.of_received |= bit;
            }
            marks.is_source |= is_shown && (copier.mirror.sent || copier.mirror.received);
            marks.is_target |= copier.mirror.to == port;
        }
        marks
    }

    /// A burst of `source` begins. Some mirrors have its first frame already.
    pub fn begin(&mut self, source: PortIndex, have_first: MirrorSet) {
        self.at_hand = 0;
        for (bit, copier) in each(&mut self.copiers) {
            copier.copies.clear();
            copier.taken.clear();
            if copier.shows_received(source) {
                self.at_hand |= bit;
            }
            if have_first & bit != 0 {
                copier.take(0);
            }
        }
    }

    /// A port of which these mirrors show what it receives is given frames, as it gets them.
    pub fn note_received(&mut self, mirrors: MirrorSet, run: &[Frame]) {
        let mirrors = mirrors & self.at_hand;
        for (_, copier) in each(&mut self.copiers).filter(|(bit, _)| mirrors & bit != 0) {
            for frame in run {
                if !copier.has(frame) {
                    copier.take(frame.first);
                    copier.copies.push(*frame);
                }
            }
        }
    }

    /// The mirrors that have a frame of the burst.
    pub fn having(&mut self, frame: &Frame) -> MirrorSet {
        let having = each(&mut self.copiers).filter(|(_, copier)| copier.has(frame));
        having.fold(0, |set, (bit, _)| set | bit)
    }

    /// The copies that each mirror has of a burst of `source`, whose first `done` frames are done with: in their order,
    /// behind its filter.
    pub fn copies<'m>(
        &'m mut self,
        burst: &Burst<'_>,
        done: usize,
        budget: &mut Budget,
    ) -> impl Iterator<Item = (&'m SwitchMirror, &'m mut Vec<Frame>)> + use<'m> {
        for copier in &mut self.copiers {
            if copier.shows_sent(burst.source.port) {
                let done = burst.frames.get(..done).unwrap_or_default();
                let fine = done.iter().filter(|frame| frame.status == FrameStatus::Fine);
                copier.copies.extend(fine);
            } else {
                // Runs went to one port after another.
                copier.copies.sort_by_key(|frame| frame.first);
            }
            if let Some(filter) = &copier.filter {
                filter.retain(&mut copier.copies, burst, &mut Drops::default(), budget);
            }
        }
        self.copiers.iter_mut().map(|copier| (&copier.mirror, &mut copier.copies))
    }
}
