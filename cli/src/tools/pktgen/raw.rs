//! A TAP device, or a packet socket, in place of a port: each read and write is a frame.
#![allow(unsafe_code)]

use super::options::Options;
use super::paced::{paced, whole};
use super::packet::Packet;
use super::report::Counters;
use crate::error::{Error, Result};
use crate::run_loop::RunLoop;
use crate::tools::log::log;
use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// An open device.
pub struct Raw {
    file: File,
    /// For messages.
    reading: &'static str,
    writing: &'static str,
}

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
        0 => Ok(Raw {
            file,
            reading: "reading the TAP device",
            writing: "writing to the TAP device",
        }),
        _ => Err(fail(io::Error::last_os_error())),
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
    let index = crate::sys::index_of(interface)
        .map_err(|error| Error::Value(format!("{interface}: no such interface: {error}")))?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let everything = libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: address and option are the structures above, of the sizes given, alive during the calls.
    let done = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        ) == 0
            && libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const everything).cast(),
                size_of_val(&everything) as libc::socklen_t,
            ) == 0
    };
    if !done {
        return Err(fail(io::Error::last_os_error()));
    }
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
