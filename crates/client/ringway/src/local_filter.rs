//! Filters that run in this process: for ports in front of which the kernel has none.
//!
//! What a sync has brought is looked at in the ring. Slots that do not match change places with
//! those that do, so that they come first, and are released; what the program finds in the ring
//! matches.
//!
//! ```text
//!   head                tail            head          tail
//!   | a  x  b  x  c  x  |       -->     x  x  x | a  b  c |         x: does not match
//! ```

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_filter::{Bytes, Foreign, Insn, Interpreter, Program};
use ringway_region::{Buf, RingView};

/// In the shadow word of a slot whose packet does not match.
const REFUSED: u32 = 0x4652_5246;

/// The filter of one receive ring.
pub(crate) struct LocalFilter {
    matcher: Matcher,
    /// Takes one in so many of what matches.
    one_in: u32,
    /// Frames that have matched since the last one that was taken.
    matched: AtomicU32,
    /// The first slot that has not been looked at.
    next: AtomicU32,
    /// Frames come out of a capture file, which may have only a part of them.
    of_file: bool,
}

enum Matcher {
    Steps(Interpreter),
    /// With loops, which the interpreter does not take (`protochain`): for the system's library.
    Foreign(Foreign),
}

/// A buffer's data, as a filter reads it.
struct Packet<'a>(Buf<'a>);

impl Bytes for Packet<'_> {
    #[inline]
    fn read<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        self.0.read(at as usize)
    }
}

impl std::fmt::Debug for LocalFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalFilter").field("one_in", &self.one_in).finish_non_exhaustive()
    }
}

impl LocalFilter {
    pub fn new(filter: &ringway_proto::Filter, of_file: bool) -> LocalFilter {
        let ringway_proto::Filter { insns, one_in, .. } = filter;
        let one_in = (*one_in).max(1);
        LocalFilter {
            matcher: Matcher::new(insns),
            one_in,
            // The first that matches is taken.
            matched: AtomicU32::new(one_in - 1),
            next: AtomicU32::new(u32::MAX),
            of_file,
        }
    }

    /// Leaves only what matches for the program of `ring`. True: slots are to be released by a
    /// sync.
    pub fn apply(&self, ring: &RingView) -> bool {
        let (head, tail, slots) = (ring.head(), ring.tail(), ring.num_slots());
        if head >= slots || tail >= slots {
            return false;
        }
        let held = ring.distance(head, tail);
        // What was looked at before is left alone, if it is still there.
        let known = self.next.load(Relaxed);
        let known = if known < slots { ring.distance(head, known) } else { 0 };
        let known = if known <= held { known } else { 0 };
        let (whole, refused) = self.look(ring, head, [known, held]);
        self.next.store(ring.advance(head, whole), Relaxed);
        if refused == 0 {
            return false;
        }
        let (mut to, mut from) = (whole, whole);
        while from > 0 {
            from -= 1;
            if ring.shadow(ring.advance(head, from)).swap(0, Relaxed) != REFUSED {
                to -= 1;
                if to != from {
                    exchange(ring, ring.advance(head, from), ring.advance(head, to));
                }
            }
        }
        let first = ring.advance(head, refused);
        let cur = ring.cur();
        if cur >= slots || ring.distance(head, cur) < refused {
            ring.set_cur(first);
        }
        ring.set_head(first);
        true
    }

    /// Marks the packets in slots `[from, end)` behind `head` that do not match. How far there are
    /// whole ones, and how many slots were marked.
    fn look(&self, ring: &RingView, head: u32, [from, end]: [u32; 2]) -> (u32, u32) {
        let (mut whole, mut refused, mut length) = (from, 0, 0);
        for n in from..end {
            let slot = ring.slot(ring.advance(head, n));
            length += u32::from(slot.len);
            if slot.flags & NS_MOREFRAG != 0 {
                continue;
            }
            if !self.takes(ring, ring.advance(head, whole), length) {
                for at in whole..=n {
                    ring.shadow(ring.advance(head, at)).store(REFUSED, Relaxed);
                }
                refused += n + 1 - whole;
            }
            (whole, length) = (n + 1, 0);
        }
        (whole, refused)
    }

    /// Whether the packet of so many bytes that begins in slot `first` is wanted. A filter sees
    /// what is in the first buffer, and the length of all.
    fn takes(&self, ring: &RingView, first: u32, length: u32) -> bool {
        let slot = ring.slot(first);
        let data = ring.buf(slot.buf_idx);
        let Some(data) = data.and_then(|data| data.part(0, u32::from(slot.len).min(data.size())))
        else {
            return false;
        };
        let recorded = if self.of_file { ring.recorded(slot.buf_idx) } else { None };
        let length = recorded.map_or(length, |recorded| recorded.length.max(length));
        if !self.matcher.takes(data, length) {
            return false;
        }
        // One thread at a time syncs a ring: nothing comes between the load and the store.
        let matched = self.matched.load(Relaxed) + 1;
        self.matched.store(if matched >= self.one_in { 0 } else { matched }, Relaxed);
        matched >= self.one_in
    }
}

/// The two slots change places.
fn exchange(ring: &RingView, a: u32, b: u32) {
    let changed = u64::from(NS_BUF_CHANGED) << 48;
    let [[first, ptr], [other, other_ptr]] = [a, b].map(|at| ring.slot_words(at));
    ring.set_slot_words(a, [other | changed, other_ptr]);
    ring.set_slot_words(b, [first | changed, ptr]);
}

impl Matcher {
    fn new(insns: &[Insn]) -> Matcher {
        match Program::new(insns.to_vec()) {
            Ok(program) => Matcher::Steps(Interpreter::new(&program)),
            Err(_) => Matcher::Foreign(Foreign::new(insns.to_vec())),
        }
    }

    fn takes(&self, data: Buf<'_>, length: u32) -> bool {
        match self {
            Matcher::Steps(steps) => steps.run(&Packet(data), length) != 0,
            Matcher::Foreign(foreign) => {
                // Other processes may change the bytes where they are.
                let mut bytes = vec![0; data.size() as usize];
                data.copy_to(bytes.len(), &mut bytes);
                foreign.run(&bytes, length) != 0
            }
        }
    }
}
