//! The native protocol of systemd's journal: a datagram an event, a line a field
//! (`systemd.io/JOURNAL_NATIVE_PROTOCOL`).

use std::{
    fmt::{Display, Write},
    io,
    os::fd::OwnedFd,
    path::Path,
};

use ringway_proto::{Event, Level};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};

/// Where journald listens.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// A connection to the journal.
pub struct Journal(OwnedFd);

impl From<Journal> for OwnedFd {
    fn from(Journal(socket): Journal) -> OwnedFd {
        socket
    }
}

impl From<OwnedFd> for Journal {
    fn from(socket: OwnedFd) -> Journal {
        Journal(socket)
    }
}

impl Journal {
    /// The service manager keeps the socket when journald is started anew.
    pub fn open(path: &Path) -> io::Result<Journal> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Journal(socket))
    }

    /// Never waits: WOULDBLOCK if journald has too much to read.
    pub fn write(&self, event: &Event, sentence: &str) -> io::Result<()> {
        let message = encode(event, sentence);
        Ok(send(&self.0, message.as_bytes(), SendFlags::NOSIGNAL).map(drop)?)
    }
}

/// As `syslog(3)` numbers it.
pub fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug => 7,
    }
}

/// All values are printable, and on one line.
fn encode(event: &Event, sentence: &str) -> String {
    let mut message = String::new();
    let mut field = |name: &str, value: &dyn Display| {
        // A string has room.
        let _ = writeln!(message, "{name}={value}");
    };
    field("MESSAGE", &sentence);
    field("PRIORITY", &priority(event.level));
    field("SYSLOG_IDENTIFIER", &"ringwayd");
    field("RINGWAY_KIND", &event.kind);
    for (name, value) in [("RINGWAY_UID", event.uid), ("RINGWAY_PID", event.pid)] {
        if let Some(value) = value {
            field(name, &value);
        }
    }
    for (name, value) in [
        ("RINGWAY_PORT", &event.port),
        ("RINGWAY_SWITCH", &event.switch),
        ("RINGWAY_MODE", &event.mode),
        ("RINGWAY_CAUSE", &event.cause),
    ] {
        if !value.is_empty() {
            field(name, value);
        }
    }
    if let Some(netns) = event.netns {
        field("RINGWAY_NETNS", &netns);
    }
    if event.left_out > 0 {
        field("RINGWAY_LEFT_OUT", &event.left_out);
    }
    if event.audit {
        field("RINGWAY_AUDIT", &1);
    }
    message
}

#[cfg(test)]
mod tests {
    use ringway_proto::EventKind;
    use ringway_testkit::Folder;
    use rustix::net::{RecvFlags, bind, recv};

    use super::*;
    use crate::log::fixture;

    #[test]
    fn an_event_is_a_datagram_of_fields() {
        let folder = Folder::new();
        let path = folder.path().join("socket");
        let journald = socket_with(
            AddressFamily::UNIX,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .unwrap();
        assert!(Journal::open(&path).is_err());
        bind(&journald, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        let journal = Journal::open(&path).unwrap();
        let event = Event {
            level: Level::Warn,
            kind: EventKind::Refused,
            audit: true,
            uid: Some(1000),
            pid: Some(77),
            port: "eth0".into(),
            cause: "Denied".into(),
            left_out: 3,
            text: "no".into(),
            netns: Some(4026532008),
            ..fixture::event()
        };
        journal.write(&event, "no (3 more)").unwrap();
        let mut bytes = [0; 4096];
        let (length, _) = recv(&journald, &mut bytes[..], RecvFlags::empty()).unwrap();
        assert_eq!(
            std::str::from_utf8(&bytes[..length]).unwrap(),
            "MESSAGE=no (3 more)\nPRIORITY=4\nSYSLOG_IDENTIFIER=ringwayd\nRINGWAY_KIND=refused\n\
             RINGWAY_UID=1000\nRINGWAY_PID=77\nRINGWAY_PORT=eth0\nRINGWAY_CAUSE=Denied\n\
             RINGWAY_NETNS=4026532008\nRINGWAY_LEFT_OUT=3\nRINGWAY_AUDIT=1\n"
        );
        // A reader that does not read holds up nobody.
        let full = (0..100_000).find_map(|_| journal.write(&event, "x").err());
        assert_eq!(full.unwrap().kind(), io::ErrorKind::WouldBlock);
    }
}
