//! What a receiver learns from sequence numbers: lost, late, doubled and damaged frames.

use crate::frame_check::{FrameCheck, read};
use crate::payload::{Mark, Pattern};
use serde::Serialize;
use std::fmt;

/// What one frame told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame that was due.
    InOrder,
    /// So many frames between the last one and this one have not come (yet).
    Gap(u64),
    /// It comes after a later one.
    Reordered,
    /// It has come before, or is so late that this cannot be told.
    Duplicate,
    /// A generator's frame with wrong bytes in it.
    Corrupt,
    /// No generator's frame.
    Foreign,
}

/// The sum of all verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "verify")]
pub struct Tally {
    /// Frames with the right content, in any order; those that came late or twice are among them.
    pub good: u64,
    /// Frames that later ones overtook and that have not come since.
    pub missing: u64,
    pub reordered: u64,
    pub duplicate: u64,
    pub corrupt: u64,
    pub foreign: u64,
}

impl Tally {
    /// True if every frame of every stream came once, in order and unharmed. Foreign frames are
    /// no fault: a switch floods, a host talks.
    pub fn is_clean(&self) -> bool {
        self.missing == 0 && self.reordered == 0 && self.duplicate == 0 && self.corrupt == 0
    }

    /// The message for a user that asked for verification, if any.
    pub fn fault(&self) -> Option<String> {
        let Tally { missing, reordered, duplicate, corrupt, .. } = self;
        if !self.is_clean() {
            let lost = *missing > 0 || *reordered > 0 || *corrupt > 0;
            let remedies = [
                (lost, "look at the drops of both ports, and send slower"),
                (
                    *duplicate > 0,
                    "frames come twice if two runs of `ringway gen` have one --stream, or if they \
                     reach the port by two ways",
                ),
            ];
            let needed = remedies.iter().filter(|(is_needed, _)| *is_needed);
            let remedy: Vec<_> = needed.map(|(_, remedy)| *remedy).collect();
            return Some(format!(
                "{missing} frames are missing, {reordered} came late, {duplicate} came twice and \
                 {corrupt} were damaged; {}",
                remedy.join("; ")
            ));
        }
        let nothing = "no frame of a generator came; send with `ringway gen`";
        (self.good == 0).then(|| nothing.into())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { good, missing, reordered, duplicate, corrupt, foreign } = self;
        write!(
            f,
            "  verified: {good} good, {missing} missing, {reordered} reordered, {duplicate} \
             duplicate, {corrupt} corrupt, {foreign} foreign"
        )
    }
}

/// Follows the streams of any number of generators.
///
/// A stream begins with the first of its frames that arrives: what was sent before the receiver
/// was there is not missing.
pub struct Verifier {
    pattern: Pattern,
    streams: Vec<Stream>,
    /// The stream of the last frame; usually that of the next one too.
    last: usize,
    /// The stream that gives way when there are too many.
    oldest: usize,
    tally: Tally,
}

/// Streams followed at a time. One more takes the place of the oldest.
const MAX_STREAMS: usize = 1024;

impl Verifier {
    pub fn new() -> Verifier {
        Verifier {
            pattern: Pattern::new(),
            streams: Vec::with_capacity(MAX_STREAMS),
            last: 0,
            oldest: 0,
            tally: Tally::default(),
        }
    }

    /// Looks at one received frame and counts it.
    pub fn frame(&mut self, frame: &[u8]) -> Verdict {
        match read(frame, &self.pattern) {
            FrameCheck::Good(mark) => self.arrive(mark),
            FrameCheck::Corrupt => {
                self.tally.corrupt += 1;
                Verdict::Corrupt
            }
            FrameCheck::Foreign => {
                self.tally.foreign += 1;
                Verdict::Foreign
            }
        }
    }

    pub fn tally(&self) -> Tally {
        self.tally
    }

    fn arrive(&mut self, mark: Mark) -> Verdict {
        let stream = self.stream(mark);
        let heals = mark.sequence >= stream.first;
        let verdict = stream.arrive(mark.sequence);
        let tally = &mut self.tally;
        tally.good += 1;
        match verdict {
            Verdict::Gap(frames) => tally.missing = tally.missing.saturating_add(frames),
            Verdict::Reordered => {
                tally.reordered += 1;
                tally.missing -= u64::from(heals && tally.missing > 0);
            }
            Verdict::Duplicate => tally.duplicate += 1,
            Verdict::InOrder | Verdict::Corrupt | Verdict::Foreign => (),
        }
        verdict
    }

    fn stream(&mut self, mark: Mark) -> &mut Stream {
        let known = self.streams.get(self.last).is_some_and(|stream| stream.id == mark.stream);
        if !known {
            self.last = self.find_or_add(mark);
        }
        &mut self.streams[self.last]
    }

    fn find_or_add(&mut self, mark: Mark) -> usize {
        if let Some(at) = self.streams.iter().position(|stream| stream.id == mark.stream) {
            return at;
        }
        let stream = Stream::starting_at(mark);
        if self.streams.len() < MAX_STREAMS {
            self.streams.push(stream);
            return self.streams.len() - 1;
        }
        let at = self.oldest;
        self.streams[at] = stream;
        self.oldest = (at + 1) % MAX_STREAMS;
        at
    }
}

/// How far back a late frame is told from a doubled one, in frames.
const WINDOW: u64 = 4096;

struct Stream {
    id: u32,
    /// The sequence number seen first.
    first: u64,
    /// One more than the highest sequence number seen.
    next: u64,
    /// One bit for each of the last [`WINDOW`] sequence numbers: it has come.
    seen: Box<[u64; (WINDOW / 64) as usize]>,
}

impl Stream {
    fn starting_at(mark: Mark) -> Stream {
        let (id, first) = (mark.stream, mark.sequence);
        Stream { id, first, next: first, seen: Box::new([0; (WINDOW / 64) as usize]) }
    }

    fn arrive(&mut self, sequence: u64) -> Verdict {
        if sequence >= self.next {
            let skipped = sequence - self.next;
            for late in self.next..self.next + skipped.min(WINDOW) {
                self.mark(late, false);
            }
            self.mark(sequence, true);
            self.next = sequence.saturating_add(1);
            return if skipped == 0 { Verdict::InOrder } else { Verdict::Gap(skipped) };
        }
        if self.next - sequence > WINDOW || self.is_marked(sequence) {
            return Verdict::Duplicate;
        }
        self.mark(sequence, true);
        Verdict::Reordered
    }

    fn place(sequence: u64) -> (usize, u64) {
        let bit = sequence % WINDOW;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn is_marked(&self, sequence: u64) -> bool {
        let (word, bit) = Self::place(sequence);
        self.seen[word] & bit != 0
    }

    fn mark(&mut self, sequence: u64, come: bool) {
        let (word, bit) = Self::place(sequence);
        if come {
            self.seen[word] |= bit;
        } else {
            self.seen[word] &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Builder;
    use crate::frame::tests::spec;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn after(sequences: &[u64]) -> (Tally, Vec<Verdict>) {
        let mut verifier = Verifier::new();
        let verdicts = sequences
            .iter()
            .map(|sequence| verifier.arrive(Mark { stream: 1, sequence: *sequence }))
            .collect();
        (verifier.tally(), verdicts)
    }

    #[test]
    fn in_order_is_clean_wherever_it_starts() {
        let (tally, verdicts) = after(&[100, 101, 102]);
        assert!(tally.is_clean());
        assert_eq!(tally.good, 3);
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::InOrder));
    }

    #[test]
    fn faults_are_told() {
        assert_eq!(after(&[0, 1]).0.fault(), None);
        assert!(after(&[]).0.fault().unwrap().contains("no frame"));
        assert!(after(&[0, 2]).0.fault().unwrap().starts_with("1 frames are missing"));
        let slower =
            |sequences: &[u64]| after(sequences).0.fault().unwrap().contains("send slower");
        let twice = |sequences: &[u64]| after(sequences).0.fault().unwrap().contains("--stream");
        assert!(slower(&[0, 2]) && !twice(&[0, 2]));
        assert!(!slower(&[0, 1, 0]) && twice(&[0, 1, 0]));
        assert!(slower(&[0, 3, 0]) && twice(&[0, 3, 0]));
        let foreign = Tally { foreign: 5, good: 1, ..Tally::default() };
        assert_eq!(foreign.fault(), None);
    }

    #[test]
    fn a_gap_is_missing_until_it_heals() {
        let (tally, verdicts) = after(&[0, 3]);
        assert_eq!((tally.missing, verdicts[1]), (2, Verdict::Gap(2)));
        let (tally, verdicts) = after(&[0, 3, 1]);
        assert_eq!((tally.missing, tally.reordered, verdicts[2]), (1, 1, Verdict::Reordered));
        let (tally, _) = after(&[0, 3, 1, 2, 4]);
        assert_eq!((tally.missing, tally.reordered, tally.good), (0, 2, 5));
    }

    #[test]
    fn twice_is_a_duplicate() {
        let (tally, _) = after(&[0, 1, 1, 0]);
        assert_eq!((tally.duplicate, tally.missing, tally.reordered), (2, 0, 0));
        assert_eq!(tally.good, 4, "those that came twice are among them");
    }

    #[test]
    fn before_the_start_heals_nothing() {
        let (tally, _) = after(&[10, 12, 9]);
        assert_eq!((tally.missing, tally.reordered), (1, 1));
    }

    #[test]
    fn a_jump_over_the_window_forgets_old_bits() {
        let (tally, _) = after(&[0, 3 * WINDOW, 3 * WINDOW - 1, 1]);
        assert_eq!(tally.missing, 3 * WINDOW - 2);
        assert_eq!((tally.reordered, tally.duplicate), (1, 1));
    }

    #[test]
    fn the_ends_of_the_number_space_do_not_overflow() {
        let (tally, _) = after(&[0, u64::MAX, u64::MAX - 1, 0, 7]);
        assert_eq!(tally.good, 5);
        assert_eq!(tally.missing, u64::MAX - 2);
    }

    #[test]
    fn streams_do_not_mix_and_do_not_pile_up() {
        let mut verifier = Verifier::new();
        for sequence in 0..3 {
            for stream in 0..MAX_STREAMS as u32 {
                verifier.arrive(Mark { stream, sequence });
            }
        }
        assert!(verifier.tally().is_clean());
        for stream in 0..3 * MAX_STREAMS as u32 {
            verifier.arrive(Mark { stream, sequence: 0 });
        }
        assert_eq!(verifier.streams.len(), MAX_STREAMS);
    }

    #[test]
    fn frames_from_a_builder_are_followed() {
        let mut builder = Builder::new(spec("10.0.0.1", "10.0.0.2", "60")).unwrap();
        let mut verifier = Verifier::new();
        assert_eq!(verifier.frame(&builder.build().to_vec()), Verdict::InOrder);
        builder.build();
        let mut third = builder.build().to_vec();
        assert_eq!(verifier.frame(&third), Verdict::Gap(1));
        third[59] ^= 1;
        assert_eq!(verifier.frame(&third), Verdict::Corrupt);
        assert_eq!(verifier.frame(b"somebody else's frame"), Verdict::Foreign);
        let tally = verifier.tally();
        assert_eq!((tally.good, tally.missing, tally.corrupt, tally.foreign), (2, 1, 1, 1));
    }

    proptest! {
        /// Against a plain model, for arrivals that stay within the window.
        #[test]
        fn tally_agrees_with_a_set(steps in proptest::collection::vec(0u64..60, 1..200)) {
            let start = 1000;
            let arrivals: Vec<u64> =
                std::iter::once(start).chain(steps.iter().map(|s| start + s)).collect();
            let (tally, _) = after(&arrivals);
            let distinct: HashSet<u64> = arrivals.iter().copied().collect();
            let highest = arrivals.iter().max().unwrap();
            prop_assert_eq!(tally.duplicate, (arrivals.len() - distinct.len()) as u64);
            prop_assert_eq!(tally.missing, highest - start + 1 - distinct.len() as u64);
        }
    }
}
