//! A TAP device, or a packet socket, in place of a port: each read and write is a frame.

use super::options::Options;
use super::paced::{paced, whole};
use super::packet::Packet;
use super::report::Counters;
use crate::error::{Error, Result};
use crate::run_loop::RunLoop;
use crate::sys;
use crate::tools::log::log;
use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// An open device.
pub struct Raw {
    file: File,
    /// For messages.
    reading: &'static str,
    writing: &'static str,
}

/// Characters of an interface's name.
const LONGEST: usize = libc::IFNAMSIZ - 1;

const SILENCE: Duration = Duration::from_secs(1);

/// Opens the TAP device of that name, or makes it; an empty name lets the kernel choose one. It goes
/// when this is closed, unless it was made to stay.
pub fn open_tap(name: &str) -> Result<Raw> {
    let fail = |source| Error::System { what: "opening the TAP device", source };
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .map_err(fail)?;
    match sys::be_tap(&file, name) {
        Ok(()) => Ok(Raw {
            file,
            reading: "reading the TAP device",
            writing: "writing to the TAP device",
        }),
        Err(error) if error.kind() == ErrorKind::InvalidInput && name.len() > LONGEST => Err(
            Error::Value(format!("{name}: a TAP device's name has at most {LONGEST} characters")),
        ),
        Err(error) => Err(fail(error)),
    }
}

/// Listens to an interface beside its stack, as libpcap does: to all that comes in, to whomever, and
/// to what goes out; and sends by it.
pub fn open_socket(interface: &str) -> Result<Raw> {
    let fail = |source: io::Error| Error::System { what: "opening a packet socket", source };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    // It hears nothing before it is bound.
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
        .map_err(|errno| fail(errno.into()))?;
    let index = sys::index_of(interface)
        .map_err(|error| Error::Value(format!("{interface}: no such interface: {error}")))?;
    sys::hear_all(&socket, index).map_err(fail)?;
    Ok(Raw {
        file: socket.into(),
        reading: "reading from the interface",
        writing: "writing to the interface",
    })
}

/// Whether there is nothing to read, or no room to write, for now.
fn must_wait(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Writes the share of packets, or until the user has had enough.
pub fn send(
    raw: &mut Raw,
    options: &Options,
    run_loop: &RunLoop,
    counters: &Counters,
    packet: &mut Packet,
    share: u64,
) -> Result<()> {
    let start = Instant::now();
    paced(options, run_loop, share, |_| match raw.file.write(packet.bytes()) {
        Ok(written) => {
            counters.add(1, written as u64);
            if packet.changes() {
                packet.step();
            }
            Ok((1, written as u64))
        }
        Err(error) if must_wait(&error) => {
            run_loop.sleep_on(raw.file.as_fd(), PollFlags::OUT, Instant::now() + SILENCE)?;
            Ok((0, 0))
        }
        Err(source) => Err(Error::System { what: raw.writing, source }),
    })?;
    counters.ran(start, Instant::now());
    Ok(())
}

/// Reads the share of packets, or until the user has had enough.
pub fn receive(
    raw: &mut Raw,
    options: &Options,
    run_loop: &RunLoop,
    counters: &Counters,
    share: u64,
) -> Result<()> {
    let mut bytes = vec![0; 1 << 16];
    let mut left = whole(share);
    let mut span: Option<(Instant, Instant)> = None;
    while left > 0 && !run_loop.is_interrupted() {
        match raw.file.read(&mut bytes) {
            Ok(read) => {
                left -= 1;
                counters.add(1, read as u64);
                let now = Instant::now();
                span = Some((span.map_or(now, |span| span.0), now));
            }
            Err(error) if must_wait(&error) => {
                let until = Instant::now() + SILENCE;
                run_loop.sleep_on(raw.file.as_fd(), PollFlags::IN, until)?;
                let silent = Instant::now() >= until;
                match span {
                    None if silent => {
                        log!("receiver_body", "waiting for initial packets, poll returns 0 0");
                    }
                    Some(_) if silent && options.stop_when_silent => break,
                    _ => (),
                }
            }
            Err(source) => return Err(Error::System { what: raw.reading, source }),
        }
    }
    if let Some((from, to)) = span {
        counters.ran(from, to);
    }
    Ok(())
}
