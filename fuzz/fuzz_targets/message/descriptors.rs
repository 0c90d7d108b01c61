//! Descriptors of all kinds.

use std::{
    fs::File,
    io::IoSlice,
    mem::MaybeUninit,
    net::{TcpStream, UdpSocket},
};

use ringway_testkit::lingering;
use rustix::{
    event::{EventfdFlags, epoll, eventfd},
    fd::{AsFd, OwnedFd},
    fs::{
        CWD, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, inotify,
        memfd_create, openat,
    },
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
        SocketType, send, sendmsg, shutdown, socketpair,
    },
    pipe::{PipeFlags, pipe_with},
    process::{PidfdFlags, getpid, pidfd_open},
    time::{TimerfdClockId, TimerfdFlags, timerfd_create},
};

pub fn pair(kind: SocketType) -> [OwnedFd; 2] {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, kind, flags, None).expect("there are descriptors").into()
}

/// What keeps descriptors as they are that were sent, and those that were got for them.
#[derive(Default)]
pub struct Kept {
    /// First of all: what lingers is closed at once when these are.
    peers: Vec<TcpStream>,
    pub granted: Vec<OwnedFd>,
    others: Vec<OwnedFd>,
}

fn open(path: &str, flags: OFlags) -> Option<OwnedFd> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn memfd(seals: SealFlags) -> Option<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = memfd_create("fuzz", flags).ok()?;
    ftruncate(&memfd, 1 << 20).ok()?;
    fcntl_add_seals(&memfd, seals).ok()?;
    Some(memfd)
}

impl Kept {
    /// The first of two; the other is kept.
    fn one(&mut self, [one, other]: [OwnedFd; 2]) -> Option<OwnedFd> {
        self.others.push(other);
        Some(one)
    }

    /// A socket in which these are queued.
    fn holding<const N: usize>(&mut self, all: [OwnedFd; N]) -> Option<OwnedFd> {
        let [holder, to] = pair(SocketType::SEQPACKET);
        let fds: Vec<_> = all.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
        let sent = sendmsg(&to, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::DONTWAIT);
        self.others.extend(all);
        sent.ok()?;
        self.one([holder, to])
    }

    /// An end that takes no answer: there is no room in it.
    fn full(&mut self, kind: SocketType) -> Option<OwnedFd> {
        let ends = pair(kind);
        while send(&ends[0], &[0; 4096], SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok() {}
        self.one(ends)
    }

    fn granted(&self, which: u8) -> Option<OwnedFd> {
        let which = usize::from(which).checked_rem(self.granted.len())?;
        self.granted[which].try_clone().ok()
    }

    fn tcp(&mut self) -> Option<OwnedFd> {
        let (slow, peer) = lingering();
        self.peers.push(peer);
        Some(slow)
    }

    /// Keeps what was sent, lest this process closes it.
    pub fn keep(&mut self, sent: Vec<OwnedFd>) {
        self.others.extend(sent);
    }

    /// A descriptor of some kind; `connection` leads to the daemon.
    pub fn descriptor(&mut self, kind: u8, connection: &OwnedFd) -> Option<OwnedFd> {
        match kind % 40 {
            0..8 => self.one(pair(SocketType::SEQPACKET)),
            8 => self.one(pair(SocketType::STREAM)),
            9 => self.one(pair(SocketType::DGRAM)),
            // The other end is closed.
            10 => pair(SocketType::SEQPACKET).into_iter().next(),
            11 => self.full(SocketType::SEQPACKET),
            12 => self.full(SocketType::STREAM),
            13 => {
                let [end, other] = pair(SocketType::SEQPACKET);
                shutdown(&other, Shutdown::Both).ok()?;
                self.one([end, other])
            }
            // Itself on its way in itself, and what leads to the daemon.
            14 => {
                let [holder, to] = pair(SocketType::SEQPACKET);
                let (this, that) = (holder.try_clone().ok()?, to.try_clone().ok()?);
                self.others.push(holder);
                self.others.push(to);
                self.holding([this, that])
            }
            15 => connection.try_clone().ok(),
            16 => self.holding([connection.try_clone().ok()?]),
            17 => {
                let sealed = memfd(SealFlags::SEAL)?;
                self.holding([sealed, File::open("/dev/null").ok()?.into()])
            }
            18 => {
                let slow = self.tcp()?;
                let within = self.holding([slow])?;
                self.holding([within])
            }
            19 => self.tcp(),
            20 => UdpSocket::bind("127.0.0.1:0").ok().map(OwnedFd::from),
            21 => memfd(SealFlags::empty()),
            22 => memfd(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL),
            23 => memfd(SealFlags::WRITE | SealFlags::SEAL),
            24 => pidfd_open(getpid(), PidfdFlags::empty()).ok(),
            25 => open("/proc/self/ns/net", OFlags::RDONLY),
            26 => open("/proc/self/ns/user", OFlags::RDONLY),
            27 => open("/dev/null", OFlags::RDWR),
            28 => open("/", OFlags::RDONLY),
            29 => open("/proc/self/mem", OFlags::RDONLY),
            30 => open("/", OFlags::PATH),
            31 => {
                let set = epoll::create(epoll::CreateFlags::CLOEXEC).ok()?;
                let data = epoll::EventData::new_u64(0);
                epoll::add(&set, connection, data, epoll::EventFlags::IN).ok()?;
                Some(set)
            }
            32 => eventfd(u32::MAX - 1, EventfdFlags::CLOEXEC).ok(),
            33 => timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok(),
            34 => inotify::init(inotify::CreateFlags::CLOEXEC).ok(),
            35 => pipe_with(PipeFlags::CLOEXEC).ok().map(|(reader, _)| reader),
            36 => pipe_with(PipeFlags::CLOEXEC).ok().map(|(_, writer)| writer),
            // What the daemon has made.
            _ => self.granted(kind),
        }
    }
}
