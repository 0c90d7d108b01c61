//! Where data goes in a buffer that need not begin with it (S-OFF-6).

use std::ops::Range;

use ringway_kring::Offsets;
use ringway_region::Buf;

/// Bytes of a cache line: where in one the data begins is kept from sender to receiver.
const LINE: u32 = 64;

/// Where in the buffer `to` the `len` bytes from `from` are to begin, and where they have to end:
/// they begin where the slot says by its `ptr`, or as far behind as they lie in their cache line,
/// if there is room.
#[inline]
pub(crate) fn place(
    offsets: &Offsets,
    ptr: u64,
    from: &Buf<'_>,
    len: u32,
    to: &Buf<'_>,
) -> Range<u32> {
    let base = offsets.read(ptr);
    let end = offsets.end(base, to.size());
    // Buffers begin with a cache line.
    let phase = from.as_ptr().addr() as u32 % LINE;
    let raised = base + phase.wrapping_sub(base) % LINE;
    let fits = |last: u32| raised <= offsets.max && last <= end;
    let begin = if raised.checked_add(len).is_some_and(fits) { raised } else { base };
    begin..end
}
