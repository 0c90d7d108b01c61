//! An interface that no program has open, listened to beside its stack: what `netmap:eth1/rt` stands
//! for then, as in the libraries for programs that capture.

use crate::error::{Error, Result};
use crate::filter::Chosen;
use crate::frame_uses::FrameUses;
use crate::recording::Origin;
use ringway::Cause;
use ringway_live_capture::name::{Found, open};
use ringway_live_capture::{Direction, End, Settings, Signals, Tap};
use std::io;
use std::os::fd::BorrowedFd;

/// Milliseconds that the kernel keeps packets until there are more.
const TIMEOUT: i32 = 100;

/// One that is listened to.
pub struct Listening {
    pub name: String,
    pub origin: Origin,
    tap: Tap,
    signals: Signals,
    /// One in so many packets is taken, and so many have come since the last.
    one_in: u32,
    passed_over: u32,
    copy: Vec<u8>,
    /// Nothing comes any more.
    pub is_over: bool,
}

impl Listening {
    /// Listens to the interface that `name` asks for a look at, and that no program has open; else the
    /// `error` that the port could not be opened for. `number` is the port's in a capture file.
    pub fn instead(name: &str, number: u32, chosen: &Chosen, error: Error) -> Result<Listening> {
        let settings = Settings {
            promiscuous: true,
            nanoseconds: true,
            timeout: TIMEOUT,
            ..Settings::default()
        };
        let is_free = matches!(&error, Error::Ringway(error) if error.cause() == Cause::Invalid);
        let found = if is_free { open(name, &settings).ok() } else { None };
        let Some(Found::Unused { interface, direction }) = found else { return Err(error) };
        let tap = Tap::new(&interface, direction, &settings)
            .map_err(|source| refused(name, &interface, &source))?;
        let signals = Signals::default();
        if let Some(expression) = chosen.text() {
            let program = ringway_filter::compile(&expression).map_err(ringway::Error::from)?;
            tap.set_filter(program.insns(), &signals);
        }
        Ok(Listening {
            name: name.into(),
            origin: Origin::listening(number, name),
            tap,
            signals,
            one_in: chosen.one_in(),
            passed_over: 0,
            copy: Vec::new(),
            is_over: false,
        })
    }

    /// Takes what has come, `most` packets at the most; packets and bytes of these.
    pub fn take(&mut self, uses: &mut FrameUses, most: u64) -> Result<(u64, u64)> {
        let Listening { name, origin, tap, signals, one_in, passed_over, copy, .. } = self;
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let (mut packets, mut bytes) = (0, 0);
        let mut batch = uses.begin(origin);
        let read = tap.read_copies(signals, most, copy, |header, data, metadata| {
            *passed_over += 1;
            if *passed_over < *one_in {
                return;
            }
            *passed_over = 0;
            let time = header.seconds as u64 * 1_000_000_000 + header.fraction as u64;
            batch.take_copy(data, header.len, time, metadata.direction == Direction::Out);
            packets += 1;
            bytes += u64::from(header.len);
        });
        read.map_err(|end| match end {
            End::Failed(problem) => Error::Value(problem),
            _ => Error::Value(format!("{name}: the capture has ended")),
        })?;
        Ok((packets, bytes))
    }

    /// Readable while there are packets.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }

    /// What found no room.
    pub fn lost(&self) -> u64 {
        self.tap.stats().ps_drop.into()
    }
}

fn refused(name: &str, interface: &str, error: &io::Error) -> Error {
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM) => "it takes CAP_NET_RAW to listen beside the stack",
        Some(libc::EAFNOSUPPORT) => {
            return Error::Value(format!(
                "{name}: cannot listen: its packets have no Ethernet headers; `tcpdump -i {interface}` captures from \
                 this one"
            ));
        }
        _ => "`ip -br link` lists the interfaces that exist",
    };
    Error::Value(format!("{name}: cannot listen: {error}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_what_is_wrong_with_the_interface() {
        let text = |number| {
            let error = io::Error::from_raw_os_error(number);
            refused("netmap:wg0/rt", "wg0", &error).to_string()
        };
        assert!(text(libc::ENODEV).ends_with("`ip -br link` lists the interfaces that exist"));
        let foreign = text(libc::EAFNOSUPPORT);
        let told = "netmap:wg0/rt: cannot listen: its packets have no Ethernet headers; `tcpdump -i wg0` captures";
        assert!(foreign.starts_with(told), "{foreign}");
    }
}
