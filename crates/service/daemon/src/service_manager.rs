//! What the system daemon and the service manager that starts it (systemd, or another with its
//! interface) tell each other: `sd_notify(3)` and `sd_listen_fds(3)` are the sources.
//!
//! The daemon tells when it listens, that its loop goes round, and when it ends. The manager may hand
//! it the socket, already listening: clients that connect while the daemon starts, or starts anew,
//! wait in the socket's queue.
// SELinux marks each service as one with more rights (`AT_SECURE`), which would believe no variable.
#![allow(clippy::disallowed_methods, reason = "a service manager tells by variables")]

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    process,
    sync::Arc,
    time::Duration,
};

use ringway_ipc::LISTEN_FD;
use ringway_nic_setup::kept::{self, Keeper};
use ringway_proto::EventKind;
use rustix::{
    event::Timespec,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
        SocketFlags, SocketType, sendmsg_addr, socket_with,
    },
};
use sd_notify::NotifyState;

use crate::log::{Entry, JournalStream, log};
use crate::sys;

/// The manager, if there is one.
pub struct ServiceManager {
    is_there: bool,
    /// How long the loop may be silent.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// As the environment tells.
    pub fn find() -> ServiceManager {
        let is_there = env::var_os("NOTIFY_SOCKET").is_some();
        ServiceManager { is_there, watchdog: sd_notify::watchdog_enabled() }
    }

    /// Whether the daemon is started again when it fails.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// How long the loop may sleep: half of the time after which the manager ends a silent daemon.
    pub fn longest_sleep(&self) -> Option<Timespec> {
        // A time that no `timespec` holds is as good as none.
        self.watchdog.and_then(|limit| Timespec::try_from(limit / 2).ok())
    }

    /// Clients that connect from now on are served.
    pub fn ready(&self) {
        tell(&[NotifyState::Ready]);
    }

    /// The configuration is read again from now on; [`ready`](Self::ready) when that is over. The time tells a manager
    /// that has sent the signal itself (`Type=notify-reload`) that it is this reading which it waits for.
    pub fn reloading(&self) {
        let now = NotifyState::monotonic_usec_now().ok();
        let states: Vec<_> = [NotifyState::Reloading].into_iter().chain(now).collect();
        tell(&states);
    }

    /// The loop has gone round.
    pub fn alive(&self) {
        if self.watchdog.is_some() {
            tell(&[NotifyState::Watchdog]);
        }
    }

    /// The daemon ends in order.
    pub fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

/// How the daemon is doing, as the manager shows it (`systemctl status`).
pub fn tell_status(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// What belongs together, in one message. A manager that does not listen is no reason to end: it ends the daemon itself
/// if it misses something.
fn tell(states: &[NotifyState<'_>]) {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else { return };
    told(send(&name, states));
}

fn told(sent: io::Result<()>) {
    if let Err(error) = sent {
        log(Entry::warn(
            EventKind::Process,
            format_args!("cannot tell the service manager: {error}"),
        ));
    }
}

/// The manager's store of descriptors, which has what belongs to switches' programs while the daemon is restarted.
struct Store {
    socket: OsString,
    /// `FileDescriptorStoreMax=`, which systemd 254 and newer tell.
    limit: Option<usize>,
}

impl Keeper for Store {
    fn keep(&self, name: &str, fds: &[BorrowedFd<'_>]) {
        told(send_with(&self.socket, &format!("FDSTORE=1\nFDNAME={name}\n"), fds));
    }

    fn forget(&self, name: &str) {
        told(send_with(&self.socket, &format!("FDSTOREREMOVE=1\nFDNAME={name}\n"), &[]));
    }

    fn limit(&self) -> Option<usize> {
        self.limit
    }

    fn is_full(&self, limit: usize) {
        log(Entry::warn(
            EventKind::Process,
            format_args!(
                "the service manager keeps {limit} descriptors for the next daemon, and no more: interfaces that are \
                 attached from now on forward nothing while the daemon is restarted; raise \
                 FileDescriptorStoreMax= of the unit"
            ),
        ));
    }
}

/// Has the manager keep for the next daemon what belongs to switches' programs.
pub fn keep_programs() {
    let limit = env::var("FDSTORE").ok().and_then(|limit| limit.parse().ok());
    if let Some(socket) = env::var_os("NOTIFY_SOCKET") {
        kept::use_keeper(Arc::new(Store { socket, limit }));
    }
}

/// By a datagram to the manager's socket. `sd_notify::notify` would connect to it first, and the daemon makes
/// no connections.
fn send(name: &OsStr, states: &[NotifyState<'_>]) -> io::Result<()> {
    let text: String = states.iter().map(|state| format!("{state}\n")).collect();
    send_with(name, &text, &[])
}

fn send_with(name: &OsStr, text: &str, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let manager = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddrUnix::new_abstract_name(name)?,
        None => SocketAddrUnix::new(name)?,
    };
    let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    // Those of an interface: a link, and a socket.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(fds));
    }
    let text = [IoSlice::new(text.as_bytes())];
    Ok(sendmsg_addr(&socket, &manager, &text, &mut beside, SendFlags::NOSIGNAL).map(drop)?)
}

/// Device and number of standard error, where the manager has connected it to its journal.
pub fn journal_stream() -> JournalStream {
    let stream = env::var("JOURNAL_STREAM").ok()?;
    let (device, number) = stream.split_once(':')?;
    Some((device.parse().ok()?, number.parse().ok()?))
}

/// How to have the manager listen elsewhere.
pub const LISTEN_ELSEWHERE: &str = "where systemd listens, its unit has the path: give it another by the lines \
     `ListenSequentialPacket=` and `ListenSequentialPacket=PATH` in a drop-in (`systemctl edit ringwayd.socket`), with \
     the same `socket` in the configuration; then `systemctl restart ringwayd.socket`";

/// The sockets that the manager has handed over.
pub enum Sockets {
    None,
    One(OwnedFd),
    TooMany { count: usize },
}

/// What the manager has handed over, as the environment tells: its sockets, and what it has kept of the daemon before.
/// To be asked once.
pub fn sockets() -> io::Result<Sockets> {
    let is_ours = |pid: String| pid.parse() == Ok(process::id());
    if !env::var("LISTEN_PID").is_ok_and(is_ours) {
        return Ok(Sockets::None);
    }
    let count = env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    // Before they are asked for, which makes them look like descriptors of our own.
    let fds: Vec<_> = (LISTEN_FD..).take(count).map(sys::inherited).collect();
    let names = sd_notify::listen_fds_with_names()?.map(|(_, name)| name);
    let (mut sockets, mut before) = (Vec::new(), Vec::new());
    for (fd, name) in fds.into_iter().zip(names) {
        match name.starts_with(kept::NAME) {
            true => before.push((name, fd?)),
            false => sockets.push(fd?),
        }
    }
    kept::take_over(before);
    match (sockets.pop(), sockets.len()) {
        (None, _) => Ok(Sockets::None),
        (Some(socket), 0) => Ok(Sockets::One(socket)),
        (Some(_), others) => Ok(Sockets::TooMany { count: others + 1 }),
    }
}
