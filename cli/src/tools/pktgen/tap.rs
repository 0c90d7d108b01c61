//! A TAP device in place of a port.

use super::options::Options;
use super::packet::Packet;
use super::report::Counters;
use super::tx::{pacer, pause, whole};
use crate::course::Course;
use crate::error::{Error, Result};
use crate::tools::log::log;
use rustix::event::PollFlags;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// An open TAP device; it goes when this is closed, unless it was made to stay.
pub struct Tap(File);

const SILENCE: Duration = Duration::from_secs(1);

/// Opens the TAP device of that name, or makes it; an empty name lets the kernel choose one.
pub fn open(name: &str) -> Result<Tap> {
    let fail = |source| Error::System { what: "opening the TAP device", source };
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .map_err(fail)?;
    // SAFETY: an ifreq is plain old data, for which zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(Error::Value(format!("{name}: a TAP device's name has at most 15 characters")));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: `request` is an initialised ifreq with a name that ends in a zero, and outlives the
    // call, which reads and writes nothing else.
    match unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } {
        0 => Ok(Tap(file)),
        _ => Err(fail(io::Error::last_os_error())),
    }
}

/// Writes the share of packets, or until the user has had enough.
pub fn send(
    tap: &mut Tap,
    options: &Options,
    course: &Course,
    counters: &Counters,
    packet: &mut Packet,
    share: u64,
) -> Result<()> {
    let start = Instant::now();
    let mut pacer = pacer(options, start);
    let mut left = whole(share);
    while left > 0 && !course.is_interrupted() {
        if pause(course, &mut pacer)? {
            continue;
        }
        match tap.0.write(packet.bytes()) {
            Ok(written) => {
                left -= 1;
                counters.add(1, written as u64);
                if let Some(pacer) = &mut pacer {
                    pacer.spend(1, written as u64);
                }
                if packet.changes() {
                    packet.step();
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                course.sleep_on(tap.0.as_fd(), PollFlags::OUT, Instant::now() + SILENCE)?;
            }
            Err(source) => return Err(Error::System { what: "writing to the TAP device", source }),
        }
    }
    counters.ran(start, Instant::now());
    Ok(())
}

/// Reads the share of packets, or until the user has had enough.
pub fn receive(
    tap: &mut Tap,
    options: &Options,
    course: &Course,
    counters: &Counters,
    share: u64,
) -> Result<()> {
    let mut bytes = vec![0; 1 << 16];
    let mut left = whole(share);
    let mut span: Option<(Instant, Instant)> = None;
    while left > 0 && !course.is_interrupted() {
        match tap.0.read(&mut bytes) {
            Ok(read) => {
                left -= 1;
                counters.add(1, read as u64);
                let now = Instant::now();
                span = Some((span.map_or(now, |span| span.0), now));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let until = Instant::now() + SILENCE;
                course.sleep_on(tap.0.as_fd(), PollFlags::IN, until)?;
                let silent = Instant::now() >= until;
                match span {
                    None if silent => {
                        log!("receiver_body", "waiting for initial packets, poll returns 0 0");
                    }
                    Some(_) if silent && options.stop_when_silent => break,
                    _ => (),
                }
            }
            Err(source) => return Err(Error::System { what: "reading the TAP device", source }),
        }
    }
    if let Some((from, to)) = span {
        counters.ran(from, to);
    }
    Ok(())
}
