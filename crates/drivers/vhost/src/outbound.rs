//! Frames from the machine: chains that it offers, into slots of a transmit ring.

use ringway_abi::NS_MOREFRAG;
use ringway_flow::HASHED_BYTES;
use ringway_region::{Buf, RingView};
use ringway_vnet::{Header, MAX_FRAME};

use crate::{
    chain::{MAX_PIECES, Piece, Taken},
    features::Features,
    memory::GuestMemory,
    moved::Moved,
    queue::{FETCHED, Queue},
    steering::Steering,
};

/// Bytes of a chain that tell its frame's flow.
const BEGIN: usize = Header::LONG + HASHED_BYTES;

/// Shortest frame: an Ethernet header.
const SHORTEST: usize = 14;

/// Moves up to `budget` frames of `queue` into free slots of `ring`, whose frames have a header of `header_len`
/// bytes, and fewer where they are many pieces. `discard`: they go nowhere, as the guest has this queue disabled. `learn`: flows that leave by this pair of
/// queues are to come back by it.
pub(crate) fn send(
    queue: &mut Queue,
    memory: &GuestMemory,
    features: Features,
    (ring, header_len): (&RingView, usize),
    budget: u32,
    discard: bool,
    mut learn: Option<(&mut Steering, usize)>,
) -> Moved {
    let own_header = features.header_len();
    let (slots, mut free, mut at) = (ring.num_slots(), ring.held(), ring.head());
    let mut moved = Moved::default();
    if at >= slots {
        // Others have spoiled it; the next sync puts it right.
        moved.no_room = true;
        return moved;
    }
    let mut taken = Taken::with_capacity(FETCHED);
    let (mut left, mut work) = (budget as usize, 0);
    'turn: while left > 0 && work < MAX_PIECES && !moved.no_room {
        // Several at once, so that the first bytes of all are on their way while one is copied.
        taken.clear();
        queue.take(memory, &mut taken, FETCHED.min(left));
        taken.pieces.iter().for_each(|piece| piece.buf.prefetch());
        work += taken.work();
        let Taken { pieces, chains, .. } = &taken;
        if chains.is_empty() {
            break;
        }
        left -= chains.len();
        let mut first = 0;
        for (i, &(chain, behind)) in chains.iter().enumerate() {
            let pieces = &pieces[first..behind];
            first = behind;
            let len = match pieces {
                // The usual case, without a loop.
                [piece] => piece.buf.size() as usize,
                pieces => pieces.iter().map(|piece| piece.buf.size() as usize).sum(),
            };
            let frame = len.checked_sub(own_header);
            match frame.filter(|frame| (SHORTEST..=MAX_FRAME).contains(frame)) {
                _ if discard => moved.disabled += 1,
                None if len > MAX_FRAME => moved.too_long += 1,
                None => moved.too_short += 1,
                Some(frame) => {
                    let whole = Whole::find(ring, at, header_len, pieces, own_header);
                    let needed = match whole {
                        Some(_) => 1,
                        None => slots_of(ring, at, header_len + frame, free),
                    };
                    if needed > free {
                        moved.no_room = needed < slots;
                        if moved.no_room {
                            chains[i..]
                                .iter()
                                .rev()
                                .for_each(|&(chain, _)| queue.take_back(&[chain]));
                            break 'turn;
                        }
                        moved.too_long += 1;
                    } else {
                        if let Some((steering, pair)) = &mut learn {
                            let begin = first_bytes::<BEGIN>(pieces, own_header + HASHED_BYTES);
                            steering.learn(&begin[own_header..], *pair);
                        }
                        let behind = match whole {
                            Some(whole) => whole.copy(ring, at, header_len),
                            None => fill(ring, at, header_len, pieces, own_header, frame),
                        };
                        match behind {
                            Some(behind) => {
                                at = behind;
                                free -= needed;
                                moved.frames += 1;
                                moved.bytes += frame as u64;
                            }
                            None => moved.bad_offload += 1,
                        }
                    }
                }
            }
            queue.put(chain);
        }
    }
    if moved.frames > 0 {
        ring.set_cur(at);
        ring.set_head(at);
    }
    if moved.no_room {
        // What is free now is too little: more than that is waited for.
        ring.set_cur(ring.tail());
    }
    queue.publish();
    moved
}

/// How many slots from `at` on `bytes` take; one more than `free` where that cannot be said.
fn slots_of(ring: &RingView, at: u32, bytes: usize, free: u32) -> u32 {
    match ring.buf(ring.slot(at).buf_idx).map_or(0, |buf| buf.size()) {
        // A slot that others have spoiled names no buffer: the next sync puts it right.
        0 => free.saturating_add(1).min(ring.num_slots() - 1),
        size => (bytes as u32).div_ceil(size),
    }
}

/// The usual frame: in one piece, with the header that the port's frames have, or to be without one; and a slot's
/// buffer holds it.
#[derive(Clone, Copy)]
struct Whole<'a> {
    from: Buf<'a>,
    to: Buf<'a>,
    buf_idx: u32,
}

impl<'a> Whole<'a> {
    #[inline]
    fn find(
        ring: &'a RingView,
        at: u32,
        header_len: usize,
        pieces: &[Piece<'a>],
        own: usize,
    ) -> Option<Whole<'a>> {
        let [piece] = pieces else { return None };
        if header_len != 0 && header_len != own {
            return None;
        }
        let from = piece.buf.skip((own - header_len) as u32)?;
        let buf_idx = ring.slot(at).buf_idx;
        let to = ring.buf(buf_idx)?;
        (from.size() <= to.size()).then_some(Whole { from, to, buf_idx })
    }

    /// Copies it into the slot `at`; returns the place behind that. `None`: its header, which has `header_len` bytes, asks for
    /// what cannot be.
    #[inline]
    fn copy(&self, ring: &RingView, at: u32, header_len: usize) -> Option<u32> {
        self.to.copy_from(&self.from, self.from.size() as usize);
        if header_len > 0 {
            // The copy: the guest may change its own meanwhile.
            let copied = self.to.read::<{ Header::LONG }>(0)?;
            if copied != [0; Header::LONG] {
                let len = self.from.size() as usize - header_len;
                self.to.write(0, &checked(&copied, len)?[..header_len]);
            }
        }
        ring.set_slot(at, self.buf_idx, self.from.size() as u16, 0);
        Some(ring.next(at))
    }
}

/// The header of a frame of `len` bytes as others may get it; `None`: it asks for what cannot be.
fn checked(header: &[u8], len: usize) -> Option<[u8; Header::LONG]> {
    Some(Header::parse(header)?.checked(len).ok()?.emit())
}

/// Copies a frame of `len` bytes into the slots from `at` on, which have room for it; returns the place behind them. `None`:
/// its header asks for what cannot be.
fn fill(
    ring: &RingView,
    mut at: u32,
    header_len: usize,
    pieces: &[Piece<'_>],
    own: usize,
    len: usize,
) -> Option<u32> {
    let mut filled = 0;
    let mut slot = ring.slot(at).buf_idx;
    let mut to = ring.buf(slot);
    if header_len > 0 {
        let header = checked(&first_bytes::<{ Header::LONG }>(pieces, own), len)?;
        if let Some(to) = to {
            to.write(0, &header[..header_len]);
        }
        filled = header_len as u32;
    }
    let mut skip = own as u32;
    for piece in pieces {
        let skipped = skip.min(piece.buf.size());
        skip -= skipped;
        let mut from = piece.buf.skip(skipped);
        while let Some(source) = from.filter(|source| source.size() > 0) {
            let room = to.map_or(0, |to| to.size()).saturating_sub(filled);
            if room == 0 {
                ring.set_slot(at, slot, filled as u16, NS_MOREFRAG);
                at = ring.next(at);
                slot = ring.slot(at).buf_idx;
                to = ring.buf(slot);
                filled = 0;
                // A slot that others have spoiled: what is left of the frame has no place. It ends here.
                if to.is_none() {
                    break;
                }
                continue;
            }
            let now = room.min(source.size());
            if let Some(part) = to.and_then(|to| to.part(filled, now)) {
                part.copy_from(&source, now as usize);
            }
            filled += now;
            from = source.skip(now);
        }
    }
    ring.set_slot(at, slot, filled as u16, 0);
    Some(ring.next(at))
}

/// The first bytes of a chain, as many as `len` and it has; zeros behind them.
pub(crate) fn first_bytes<const N: usize>(pieces: &[Piece<'_>], len: usize) -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    for piece in pieces {
        if filled == len.min(N) {
            break;
        }
        let to = &mut bytes[filled..len.min(N)];
        filled += piece.buf.copy_to(to.len(), to);
    }
    bytes
}
