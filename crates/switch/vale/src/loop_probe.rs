//! Finds loops: interfaces that are connected outside the switch, so that what leaves by one comes back
//! by another, for ever.
//!
//! A loop shows by frames of interfaces that are flooded, by the thousand: but so does much multicast. So
//! the worker sends a frame of its own by each interface, no more than one a second, with a source address
//! that it has made up: where that comes back, there is a loop, whatever others send. It is one of the
//! Ethernet Configuration Testing Protocol (Ethernet 2.0, chapter 8), which hosts ignore. It belongs to the
//! VLAN of the frames that were flooded, since there may be a loop in one VLAN and none in another: what
//! goes round is flooded most often, so that VLAN is tried soon, whatever else is flooded. What comes back in another
//! VLAN goes on: a machine may join two.

use std::hash::{BuildHasher, RandomState};

use ringway_switch_port::{Burst, FrameStatus, PortIndex};

use crate::vlan::{PortVlans, TAG, vlan_of};

/// Flooded frames of interfaces in a second from which on the worker looks. Two switches that are
/// connected twice should not look at the same moment: so there is a random number more.
const FLOODED: u64 = 500;

/// If they do, each would block another of the two cables. So a switch that meets another's frame with a
/// lower address leaves it to the other, so many times in a row: longer only a forger would keep it from
/// ending a loop.
const DEFERRED: u32 = 3;

/// Bytes of a probe: Ethernet's shortest frame, which a tag makes longer.
const LENGTH: usize = 60;
const TAGGED: usize = LENGTH + 4;

/// For what assists in looking for loops, and its type.
const GROUP: [u8; 6] = [0xcf, 0, 0, 0, 0, 0];
const GROUP_MAC: u64 = 0xcf;
const TYPE: [u8; 2] = [0x90, 0x00];

/// The first five bytes of a source address; the last one is the port's index.
const SECRET: u64 = 0xff_ffff_ffff;

/// The worker's suspicion, and what it has sent.
#[derive(Debug)]
pub(crate) struct LoopProbe {
    flooded: u64,
    /// The VLAN of the last of them.
    vlan: u16,
    /// From how many on it looks.
    limit: u64,
    /// It has looked within this second.
    has_looked: bool,
    /// The source of what it has sent, and the VLAN of that.
    secret: Option<u64>,
    looks_in: u16,
    /// Another switch looks at the same time, and its address is lower.
    has_rival: bool,
    /// How often another switch was to end the loop.
    deferred: u32,
}

impl LoopProbe {
    pub fn new() -> LoopProbe {
        let limit = FLOODED + RandomState::new().hash_one(0) % FLOODED;
        LoopProbe {
            flooded: 0,
            vlan: 0,
            limit,
            has_looked: false,
            secret: None,
            looks_in: 0,
            has_rival: false,
            deferred: 0,
        }
    }

    /// So many frames of interfaces were flooded, the last of them in this VLAN; 0: in none.
    pub fn note_flooded(&mut self, frames: u64, vlan: u16) {
        if frames > 0 {
            (self.flooded, self.vlan) = (self.flooded + frames, vlan);
        }
    }

    /// The VLAN in which it looks.
    pub fn vlan(&self) -> u16 {
        self.vlan
    }

    /// Whether it is time to look.
    pub fn is_due(&self) -> bool {
        self.flooded > self.limit && !self.has_looked
    }

    /// Begins to look, with a source address of its own.
    pub fn begin(&mut self) {
        let random = RandomState::new().hash_one(self.flooded);
        (self.has_looked, self.has_rival, self.looks_in) = (true, false, self.vlan);
        // An address of one machine, given by no maker of machines.
        self.secret = Some(random & SECRET & !0x03 | 0x02);
    }

    /// The frame that leaves by a port, with the VLAN's tag or without.
    pub fn frame(&self, port: PortIndex, is_tagged: bool) -> Vec<u8> {
        let [a, b, c, d, e, ..] = self.secret.unwrap_or_default().to_le_bytes();
        let mut frame = [&GROUP[..], &[a, b, c, d, e, port]].concat();
        if is_tagged {
            frame.extend(TAG);
            frame.extend(self.vlan.to_be_bytes());
        }
        frame.extend(TYPE);
        frame.resize(if is_tagged { TAGGED } else { LENGTH }, 0);
        frame
    }

    /// What its frames are recognised by, as long as it looks.
    pub fn secret(&self) -> Option<u64> {
        self.secret
    }

    /// Marks the frames of an interface that are its own, before filters, guards or limits of the port can drop them; notes
    /// those of other switches. Returns the port by which one had left. `vlans`: those of the port, if the switch looks at tags.
    #[inline]
    pub fn check(&mut self, burst: &mut Burst<'_>, vlans: Option<&PortVlans>) -> Option<PortIndex> {
        self.secret.and_then(|secret| self.find_own(secret, burst, vlans))
    }

    #[cold]
    #[inline(never)]
    fn find_own(
        &mut self,
        secret: u64,
        burst: &mut Burst<'_>,
        vlans: Option<&PortVlans>,
    ) -> Option<PortIndex> {
        let mut found = None;
        for at in 0..burst.frames.len() {
            let Some(frame) = burst.frames.get(at).filter(|f| f.status == FrameStatus::Fine) else {
                continue;
            };
            if is_probe(frame.dst(), frame.src()) {
                self.note_probe(probe_source(frame.src()));
            }
            let Some(left) = left_by(frame.src(), secret) else { continue };
            let vlan = vlans.map_or(Some(vlan_of(frame)), |vlans| vlans.vlan_in(frame, burst));
            if vlan == Some(self.looks_in)
                && let Some(frame) = burst.frames.get_mut(at)
            {
                frame.status = FrameStatus::CameBack;
                found = Some(left);
            }
        }
        found
    }

    /// A switch that looks has sent frames with this [source](probe_source), perhaps this one.
    fn note_probe(&mut self, source: u64) {
        self.has_rival |= self.secret.is_some_and(|own| source < own);
    }

    /// It has found a loop, and looks no longer. Returns whether it is to end the loop.
    pub fn end(&mut self) -> bool {
        let defers = self.has_rival && self.deferred < DEFERRED;
        self.deferred = if defers { self.deferred + 1 } else { 0 };
        (self.flooded, self.secret) = (0, None);
        !defers
    }

    /// Another second begins. What was sent before the last one does not come back any more.
    pub fn tick(&mut self) {
        self.secret = self.secret.filter(|_| self.has_looked);
        (self.flooded, self.has_looked) = (0, false);
    }
}

/// Whether a frame is one of a switch that looks, by its addresses.
#[inline]
fn is_probe(destination: u64, source: u64) -> bool {
    destination == GROUP_MAC && source & 0x03 == 0x02
}

/// What the source addresses of all frames have in common that a switch looks by.
#[inline]
fn probe_source(source: u64) -> u64 {
    source & SECRET
}

/// The port by which a frame with that source has left, if it is the worker's own.
#[inline]
fn left_by(source: u64, secret: u64) -> Option<PortIndex> {
    (probe_source(source) == secret).then_some((source >> 40) as PortIndex)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two switches that look at the same time the one with the lower address ends the loop; one that
    /// only claims to look keeps it from that for a while.
    #[test]
    fn one_of_two_ends_a_loop() {
        let mut probe = LoopProbe::new();
        let lower = |probe: &LoopProbe| probe.secret().unwrap() - 4;
        for deferred in [true, true, true, false, true] {
            probe.begin();
            probe.note_probe(lower(&probe) + 4);
            probe.note_probe(lower(&probe) + 8);
            probe.note_probe(lower(&probe));
            assert_eq!(probe.end(), !deferred);
        }
        probe.begin();
        assert!(probe.end(), "no other looks");
    }

    fn with_limit(limit: u64) -> LoopProbe {
        LoopProbe { limit, ..LoopProbe::new() }
    }

    /// It looks when more than so many frames were flooded in a second, and once.
    #[test]
    fn it_looks_once_a_second_at_most() {
        let mut probe = with_limit(600);
        probe.note_flooded(300, 5);
        probe.note_flooded(300, 6);
        assert!(!probe.is_due());
        probe.note_flooded(0, 9);
        assert_eq!(probe.vlan(), 6, "that of the last frame");
        probe.note_flooded(1, 7);
        assert!(probe.is_due());
        assert_eq!(probe.vlan(), 7);
        probe.begin();
        assert!(!probe.is_due(), "it has");
        probe.tick();
        assert!(!probe.is_due(), "another second, in which none was flooded");
        probe.note_flooded(600, 5);
        assert!(!probe.is_due());
        probe.note_flooded(1, 5);
        assert!(probe.is_due());
    }

    #[test]
    fn switches_look_at_different_moments() {
        let limits: Vec<u64> = (0..64).map(|_| LoopProbe::new().limit).collect();
        assert!(limits.iter().all(|limit| (500..1000).contains(limit)), "{limits:?}");
        assert!(limits.iter().any(|limit| *limit != limits[0]));
    }

    /// What was sent is known when it comes back, in this second and the next.
    #[test]
    fn what_was_sent_is_recognised_until_the_second_after_the_next_begins() {
        let mut probe = with_limit(600);
        assert_eq!(probe.secret(), None);
        probe.begin();
        let secret = probe.secret();
        assert!(secret.is_some());
        probe.tick();
        assert_eq!(probe.secret(), secret);
        probe.tick();
        assert_eq!(probe.secret(), None);
        probe.begin();
        assert!(probe.end());
        assert_eq!(probe.secret(), None, "the loop was found");
    }

    fn number(mac: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(mac);
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn a_frame_says_by_which_port_it_has_left() {
        let mut probe = with_limit(600);
        probe.note_flooded(1, 0x123);
        for port in [0, 1, 253] {
            probe.begin();
            let secret = probe.secret().unwrap();
            let (plain, tagged) = (probe.frame(port, false), probe.frame(port, true));
            assert_eq!((plain.len(), tagged.len()), (60, 64));
            assert_eq!(plain[..6], GROUP);
            assert_eq!(plain[12..], [&[0x90, 0][..], &[0; 46]].concat());
            assert_eq!(tagged[..12], plain[..12]);
            assert_eq!(tagged[12..18], [0x81, 0, 0x01, 0x23, 0x90, 0]);
            assert!(tagged[18..].iter().all(|byte| *byte == 0));

            let (to, from) = (number(&plain[..6]), number(&plain[6..12]));
            assert!(is_probe(to, from));
            assert_eq!(from & 3, 2, "one machine's, given by no maker");
            assert_eq!(left_by(from, secret), Some(port));
            assert_eq!(left_by(from ^ 4, secret), None);
            assert_eq!(left_by(from ^ 1 << 39, secret), None);
            assert_eq!(probe_source(from), secret);
        }
    }

    #[test]
    fn other_frames_are_no_probes() {
        let group = number(&GROUP);
        for (to, from, expected) in [
            (group, 0x02, true),
            (group, 0xff_ffff_ff06, true),
            (group, 0x00, false),
            (group, 0x01, false),
            (group, 0x03, false),
            (group + 0x100, 0x02, false),
            (0xffff_ffff_ffff, 0x02, false),
        ] {
            assert_eq!(is_probe(to, from), expected, "{from:x} to {to:x}");
        }
    }

    /// A frame of another switch says nothing to a switch that does not look itself.
    #[test]
    fn there_is_no_rival_before_it_looks() {
        let mut probe = with_limit(600);
        probe.note_probe(0);
        probe.begin();
        assert!(probe.end());
    }
}
