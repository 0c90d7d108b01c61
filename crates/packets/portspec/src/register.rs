//! What follows the name: which rings, with which flags, in which region.

use crate::Error;

/// Rings of a port, at most: what twelve bits of a request number, less one.
pub const RINGS_MAX: u16 = 4095;

/// Which rings of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rings {
    /// All but the host rings.
    All,
    /// `^`: all host rings.
    Host,
    /// `*`: all, the host rings included.
    AllAndHost,
    /// `-N` and `~N`: the tx and the rx ring of this index.
    One(u16),
    /// `^N`: the same of the host rings.
    OneHost(u16),
}

/// What the letters after `/` say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `x`: no other handle may have these rings.
    pub exclusive: bool,
    /// `R`: the rx rings only. `~N` says so as well.
    pub rx_only: bool,
    /// `T`: the tx rings only.
    pub tx_only: bool,
    /// `t`: a monitor of what the port sends.
    pub monitor_tx: bool,
    /// `r`: a monitor of what it receives.
    pub monitor_rx: bool,
    /// `z`: a monitor without copies.
    pub zero_copy_monitor: bool,
}

/// The part of a registration that a name decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Which rings.
    pub rings: Rings,
    /// How they are opened.
    pub flags: Flags,
    /// Region, 0 for the default.
    pub mem_id: u16,
}

/// Reads `[^[N] | * | -N | ~N]` and then any number of `/FLAGS` and `@REGION`, up to the end or to
/// an `@` that no digit follows, where a list of [options](crate::option()) begins. Returns what
/// was read and the rest. `mem_id` is the region that the port has already, or 0: a name may
/// repeat it, and not change it.
pub fn register(mode: &[u8], mem_id: u16) -> Result<(Register, &[u8]), Error> {
    let (rings, flags, mut rest) = rings(mode)?;
    let mut how = Register { rings, flags, mem_id };
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

/// Which rings, how `~N` opens its one, and what follows.
fn rings(mode: &[u8]) -> Result<(Rings, Flags, &[u8]), Error> {
    let ring = |rest| number(rest).filter(|(ring, _)| *ring < RINGS_MAX);
    let plain = Flags::default();
    Ok(match mode {
        [b'^', rest @ ..] if starts_with_digit(rest) => {
            let (ring, rest) = ring(rest).ok_or(Error::HostRing)?;
            (Rings::OneHost(ring), plain, rest)
        }
        [b'^', rest @ ..] => (Rings::Host, plain, rest),
        [b'*', rest @ ..] => (Rings::AllAndHost, plain, rest),
        [b'-', rest @ ..] => {
            let (ring, rest) = ring(rest).ok_or(Error::Ring)?;
            (Rings::One(ring), plain, rest)
        }
        // Ringway's own: one receive queue, while the stack keeps the others and sends as before.
        [b'~', rest @ ..] => {
            let (ring, rest) = ring(rest).ok_or(Error::Queue)?;
            (Rings::One(ring), Flags { rx_only: true, ..plain }, rest)
        }
        rest => (Rings::All, plain, rest),
    })
}

/// Letters up to an `@` or the end.
fn read_flags<'a>(text: &'a [u8], flags: &mut Flags) -> Result<&'a [u8], Error> {
    if text.is_empty() {
        return Err(Error::Flag);
    }
    let end = text.iter().position(|byte| *byte == b'@').unwrap_or(text.len());
    for letter in &text[..end] {
        let flag = match letter {
            b'x' => &mut flags.exclusive,
            b'R' => &mut flags.rx_only,
            b'T' => &mut flags.tx_only,
            b't' => &mut flags.monitor_tx,
            b'r' => &mut flags.monitor_rx,
            b'z' => &mut flags.zero_copy_monitor,
            _ => return Err(Error::Flag),
        };
        *flag = true;
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
