//! What follows the name: which rings, with which flags, in which region.

use ringway_abi::{
    NETMAP_RING_MASK, NR_EXCLUSIVE, NR_MONITOR_RX, NR_MONITOR_TX, NR_REG_ALL_NIC, NR_REG_NIC_SW,
    NR_REG_ONE_NIC, NR_REG_ONE_SW, NR_REG_SW, NR_RX_RINGS_ONLY, NR_TX_RINGS_ONLY, NR_ZCOPY_MON,
    nmreq_register,
};

use crate::Error;

/// The part of a registration that a name decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// `NR_REG_*`.
    pub mode: u32,
    /// Ring of the modes for one ring, else 0.
    pub ringid: u16,
    /// `NR_*`.
    pub flags: u64,
    /// Region, 0 for the default.
    pub mem_id: u16,
}

impl Register {
    /// Writes mode, ring, flags and region; leaves the other fields.
    pub fn apply(&self, reg: &mut nmreq_register) {
        reg.nr_mode = self.mode;
        reg.nr_ringid = self.ringid;
        reg.nr_flags = self.flags;
        reg.nr_mem_id = self.mem_id;
    }
}

/// Reads `[^[N] | * | -N | ~N]` and then any number of `/FLAGS` and `@REGION`, up to the end or to
/// an `@` that no digit follows, where a list of [options](crate::option()) begins. Returns what
/// was read and the rest. `mem_id` is the region that the port has already, or 0: a name may
/// repeat it, and not change it.
pub fn register(mode: &[u8], mem_id: u16) -> Result<(Register, &[u8]), Error> {
    let ((mode, ringid, flags), mut rest) = rings(mode)?;
    let mut how = Register { mode, ringid, flags, mem_id };
    loop {
        rest = match rest {
            [] => return Ok((how, rest)),
            [b'/', flags @ ..] => read_flags(flags, &mut how.flags)?,
            [b'@', region @ ..] if starts_with_digit(region) => {
                let (id, rest) = number(region).filter(|(id, _)| *id > 0).ok_or(Error::Region)?;
                if how.mem_id != 0 && how.mem_id != id {
                    return Err(Error::OtherRegion);
                }
                how.mem_id = id;
                rest
            }
            [b'@'] => return Err(Error::Region),
            [b'@', ..] => return Ok((how, rest)),
            _ => return Err(Error::Mode),
        };
    }
}

/// Mode, ring and flags.
type Rings = (u32, u16, u64);

/// Which rings, and what follows.
fn rings(mode: &[u8]) -> Result<(Rings, &[u8]), Error> {
    let ring = |rest| number(rest).filter(|(ring, _)| *ring < NETMAP_RING_MASK);
    Ok(match mode {
        [b'^', rest @ ..] if starts_with_digit(rest) => {
            let (ring, rest) = ring(rest).ok_or(Error::HostRing)?;
            ((NR_REG_ONE_SW, ring, 0), rest)
        }
        [b'^', rest @ ..] => ((NR_REG_SW, 0, 0), rest),
        [b'*', rest @ ..] => ((NR_REG_NIC_SW, 0, 0), rest),
        [b'-', rest @ ..] => {
            let (ring, rest) = ring(rest).ok_or(Error::Ring)?;
            ((NR_REG_ONE_NIC, ring, 0), rest)
        }
        // Ringway's own: one receive queue, while the stack keeps the others and sends as before.
        [b'~', rest @ ..] => {
            let (ring, rest) = ring(rest).ok_or(Error::Queue)?;
            ((NR_REG_ONE_NIC, ring, NR_RX_RINGS_ONLY), rest)
        }
        rest => ((NR_REG_ALL_NIC, 0, 0), rest),
    })
}

/// Letters up to an `@` or the end.
fn read_flags<'a>(text: &'a [u8], flags: &mut u64) -> Result<&'a [u8], Error> {
    if text.is_empty() {
        return Err(Error::Flag);
    }
    let end = text.iter().position(|byte| *byte == b'@').unwrap_or(text.len());
    for flag in &text[..end] {
        *flags |= match flag {
            b'x' => NR_EXCLUSIVE,
            b'z' => NR_ZCOPY_MON,
            b't' => NR_MONITOR_TX,
            b'r' => NR_MONITOR_RX,
            b'R' => NR_RX_RINGS_ONLY,
            b'T' => NR_TX_RINGS_ONLY,
            _ => return Err(Error::Flag),
        };
    }
    Ok(&text[end..])
}

fn starts_with_digit(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit)
}

/// A decimal number, and what follows it.
fn number(text: &[u8]) -> Option<(u16, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((str::from_utf8(digits).ok()?.parse().ok()?, rest))
}
