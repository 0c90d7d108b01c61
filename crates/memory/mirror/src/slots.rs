//! One slot's packet, from a ring into the ring of a monitor.

use ringway_abi::{NS_BUF_CHANGED, NS_TXMON};
use ringway_kring::Offsets;
use ringway_region::{Buf, RingView, Slot};

/// Slot `at` of a ring.
#[derive(Clone, Copy)]
pub(crate) struct SlotRef<'r> {
    pub ring: &'r RingView,
    pub at: u32,
    pub offsets: Offsets,
}

impl<'r> SlotRef<'r> {
    fn slot(&self) -> Slot {
        self.ring.slot(self.at)
    }

    /// The data of a slot of this ring.
    fn data(&self, slot: &Slot) -> Option<Buf<'r>> {
        self.ring.buf(slot.buf_idx).and_then(|buf| buf.skip(self.offsets.read(slot.ptr)))
    }

    /// The part of it that may be filled.
    fn room(&self, slot: &Slot) -> Option<Buf<'r>> {
        let data = self.data(slot)?;
        data.part(0, self.offsets.end(0, data.size()))
    }
}

/// Flags of a monitor's slot. `tag` is what becomes of NS_TXMON: set, cleared, or, where the
/// ring is itself a monitor's, what it was.
fn flags(of: u16, tag: Option<u16>) -> u16 {
    let kept = of & !NS_BUF_CHANGED;
    tag.map_or(kept, |tag| kept & !NS_TXMON | tag)
}

/// Copies the packet, as far as the monitor's buffer holds it.
#[inline]
pub(crate) fn copy(from: SlotRef<'_>, to: SlotRef<'_>, tag: Option<u16>) {
    let (slot, mine) = (from.slot(), to.slot());
    let copied = match (from.data(&slot), to.room(&mine)) {
        (Some(source), Some(target)) => {
            let len = u32::from(slot.len).min(source.size()).min(target.size());
            target.copy_from(&source, len as usize);
            len as u16
        }
        _ => 0,
    };
    to.ring.set_slot(to.at, mine.buf_idx, copied, flags(slot.flags, tag));
}

/// Writes what a slot had held into the monitor's, as far as its buffer holds it.
pub(crate) fn write(bytes: &[u8], of: u16, to: SlotRef<'_>, tag: Option<u16>) {
    let mine = to.slot();
    let len = to.room(&mine).map_or(0, |target| {
        let bytes = bytes.get(..target.size() as usize).unwrap_or(bytes);
        target.write(0, bytes);
        bytes.len()
    });
    to.ring.set_slot(to.at, mine.buf_idx, len as u16, flags(of, tag));
}

/// Exchanges the buffers of both slots. Where either names none, nothing is exchanged, and the
/// monitor gets an empty slot, with whatever it names, for its program to mend.
#[inline]
pub(crate) fn swap(from: SlotRef<'_>, to: SlotRef<'_>, tag: Option<u16>) {
    let (theirs, mine) = (from.slot(), to.slot());
    let flags = flags(theirs.flags, tag);
    if from.ring.buf(theirs.buf_idx).is_none() || to.ring.buf(mine.buf_idx).is_none() {
        return to.ring.set_slot(to.at, mine.buf_idx, 0, flags);
    }
    // S-FLAGS-NS_BUF_CHANGED.
    let back = Slot { flags: theirs.flags | NS_BUF_CHANGED, ..mine };
    to.ring.exchange(to.at, &Slot { flags, ..theirs }, from.ring, from.at, &back);
}
