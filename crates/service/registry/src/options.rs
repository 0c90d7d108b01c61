//! What options ask for, checked: the pools of a program's own memory, and offsets in slots.

use ringway_kring::Offsets as RingOffsets;
use ringway_proto::{Error, Offsets, Result};
use ringway_region::Sizes;

/// The sizes asked for; the defaults are written back (S-EXT-1).
pub(crate) fn sizes(asked: &mut Sizes) -> Sizes {
    let least = Sizes::PRIVATE;
    for (asked, default) in [
        (&mut asked.if_size, least.if_size),
        (&mut asked.if_num, least.if_num),
        (&mut asked.ring_size, least.ring_size),
        (&mut asked.ring_num, least.ring_num),
        (&mut asked.buf_size, least.buf_size),
        (&mut asked.buf_num, least.buf_num),
    ] {
        if *asked == 0 {
            *asked = default;
        }
    }
    *asked
}

/// The mask, if the numbers go together and with buffers of `buf_size` bytes (S-OFF-2).
pub(crate) fn mask(asked: &Offsets, name: &str, buf_size: u32) -> Result<u64> {
    let wrong = |problem: String| Err(Error::invalid(format!("{name}: {problem}")));
    let mask = match asked.bits {
        0 | 64 => u64::MAX,
        bits @ 1..64 => (1 << bits) - 1,
        bits => return wrong(format!("offsets of {bits} bits do not fit a slot's 64")),
    };
    if asked.max > buf_size.into() {
        return wrong(format!("offset {} is outside buffers of {buf_size} bytes", asked.max));
    }
    if asked.max > mask {
        return wrong(format!("offset {} does not fit {} bits", asked.max, asked.bits));
    }
    if asked.initial > asked.max {
        return wrong(format!("offset {} is above the maximum, {}", asked.initial, asked.max));
    }
    Ok(mask)
}

/// What these offsets make of a ring that has `now` (S-OFF-3).
pub(crate) fn join(
    asked: &Offsets,
    name: &str,
    mask: u64,
    now: Option<RingOffsets>,
) -> Result<RingOffsets> {
    match now {
        None => {
            let gap = asked.min_gap.try_into().unwrap_or(u32::MAX);
            Ok(RingOffsets { mask, max: asked.max as u32, gap })
        }
        Some(now) if mask & !now.mask == 0 && asked.max <= now.max.into() => Ok(now),
        Some(now) => {
            Err(Error::busy(format!("another program uses offsets up to {} there", now.max))
                .at(name)
                .remedy("ask for no more"))
        }
    }
}
