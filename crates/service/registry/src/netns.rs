//! The network namespace in which a caller means names of interfaces.

use std::{
    fmt,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, LazyLock},
};

use ringway_nic_setup::{Interface, in_netns, netns_cookie};
use ringway_proto::{Cause, Error, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Where the names of interfaces in a request are meant. To be told by who knows, never by the request.
#[derive(Clone, Debug, Default)]
pub enum Netns {
    /// This process's.
    #[default]
    Own,
    Other(OtherNetns),
    /// It is not known, or not to be entered, for that reason: what takes an interface is refused.
    Unknown(&'static str),
    /// It is found when an interface there is looked up.
    OnDemand(OnDemand),
}

/// Another namespace than this process's.
#[derive(Clone, Debug)]
pub struct OtherNetns {
    fd: Arc<OwnedFd>,
    /// The number by which the kernel knows it, and no other while the machine runs (Linux 5.14).
    cookie: Option<u64>,
}

/// A socket in a namespace. Any thread may drop it last.
pub type SocketThere = Arc<dyn AsFd + Send + Sync>;

/// See [`Netns::on_demand`].
#[derive(Clone)]
pub struct OnDemand {
    socket: Option<SocketThere>,
    cookie: Option<u64>,
    netns: Arc<LazyLock<Box<Netns>, Find>>,
}

type Find = Box<dyn FnOnce() -> Box<Netns> + Send>;

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDemand")
    }
}

impl Netns {
    /// The namespace of a descriptor. The kernel is asked, in the namespace, which number it has.
    pub fn other(fd: OwnedFd) -> Netns {
        let cookie = in_netns(fd.as_fd(), netns_cookie).flatten().ok();
        Netns::known_as(fd, cookie)
    }

    /// The same with the number that the kernel has told; `None`: it tells none.
    pub fn known_as(fd: OwnedFd, cookie: Option<u64>) -> Netns {
        Netns::Other(OtherNetns { fd: Arc::new(fd), cookie })
    }

    /// One that `find` finds at most once, for which it may take its time: on a thread that others do not wait
    /// for. Until then it is known by `cookie`, if the kernel tells one, and a `socket` there, if there is any, tells
    /// which names no interface has.
    pub fn on_demand(
        socket: Option<SocketThere>,
        cookie: Option<u64>,
        find: impl FnOnce() -> Netns + Send + 'static,
    ) -> Netns {
        let find: Find = Box::new(move || Box::new(find()));
        Netns::OnDemand(OnDemand { socket, cookie, netns: Arc::new(LazyLock::new(find)) })
    }

    /// Whether an interface there may have that name: false is certain. It waits for nothing.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        match self {
            Netns::Own => {
                let flags = SocketFlags::CLOEXEC;
                let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None);
                socket.map_or(true, |socket| Interface::may_exist(socket.as_fd(), name))
            }
            Netns::OnDemand(OnDemand { socket: Some(socket), .. }) => {
                Interface::may_exist((**socket).as_fd(), name)
            }
            Netns::OnDemand(_) | Netns::Other(_) | Netns::Unknown(_) => true,
        }
    }

    /// The same, found: that may wait for a process that looks for it. What looks up an interface does so first,
    /// where nothing else waits; after that it waits for nothing.
    pub(crate) fn known(&self) -> &Netns {
        match self {
            Netns::OnDemand(OnDemand { netns, .. }) => netns.known(),
            known => known,
        }
    }

    /// A descriptor, where it is [known](Self::known) and another one than this process's.
    pub(crate) fn other_fd(&self) -> Option<BorrowedFd<'_>> {
        match self.known() {
            Netns::Other(other) => Some(other.fd.as_fd()),
            _ => None,
        }
    }

    /// Whether names of this process's interfaces are meant.
    pub(crate) fn is_own(&self) -> bool {
        match self {
            // Who makes one compares the numbers.
            Netns::OnDemand(OnDemand { cookie: Some(_), .. }) => false,
            _ => matches!(self.known(), Netns::Own),
        }
    }

    /// What tells the namespace from others; `None`: it is this process's. It waits only on a kernel that has no
    /// numbers for namespaces.
    pub(crate) fn id(&self) -> Option<u64> {
        match self {
            Netns::Own => None,
            Netns::Other(OtherNetns { cookie: Some(cookie), .. })
            | Netns::OnDemand(OnDemand { cookie: Some(cookie), .. }) => Some(*cookie),
            // It fails for a descriptor that is none: no namespace has this number.
            Netns::Other(OtherNetns { fd, .. }) => {
                Some(rustix::fs::fstat(fd).map_or(u64::MAX, |stat| stat.st_ino))
            }
            Netns::Unknown(_) => Some(u64::MAX),
            Netns::OnDemand(_) => self.known().id(),
        }
    }

    /// The number by which the kernel knows it, and no other while the machine runs.
    pub(crate) fn cookie(&self) -> Option<u64> {
        match self {
            Netns::Own => netns_cookie().ok(),
            Netns::Other(OtherNetns { cookie, .. }) | Netns::OnDemand(OnDemand { cookie, .. }) => {
                *cookie
            }
            Netns::Unknown(_) => None,
        }
    }
}

/// A network namespace, for work that is done later.
#[derive(Clone)]
pub(crate) struct OpenNetns {
    /// `None`: it is this process's.
    other: Option<Arc<OwnedFd>>,
    inode: Option<u64>,
}

impl OpenNetns {
    /// A caller's, which is [found](Netns::known) first.
    pub fn of(netns: &Netns) -> Result<OpenNetns> {
        if let Netns::Unknown(why) = netns.known() {
            let problem = format!("no names of network interfaces are known here: {why}");
            return Err(Error::new(Cause::Denied, problem));
        }
        let other = netns.other_fd().map(|ns| ns.try_clone_to_owned()).transpose();
        let other = other.map_err(|e| Error::io("cannot keep the network namespace", e))?;
        let stat = match &other {
            Some(ns) => rustix::fs::fstat(ns),
            None => rustix::fs::stat("/proc/thread-self/ns/net"),
        };
        Ok(OpenNetns { other: other.map(Arc::new), inode: stat.ok().map(|stat| stat.st_ino) })
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.other.as_ref().map(|ns| ns.as_fd())
    }

    /// The number by which users see it (`ls -i /run/netns`), if there is a `/proc` that tells it.
    pub fn inode(&self) -> Option<u64> {
        self.inode
    }

    /// Descriptors that it takes up.
    pub fn descriptors(&self) -> usize {
        usize::from(self.other.is_some())
    }

    /// Runs `f` there.
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        enter(self.fd(), f)
    }
}

/// Runs `f` in that network namespace; `None`: this process's.
fn enter<T: Send>(netns: Option<BorrowedFd<'_>>, f: impl FnOnce() -> T + Send) -> Result<T> {
    match netns {
        None => Ok(f()),
        Some(ns) => in_netns(ns, f).map_err(|e| match e.raw_os_error() {
            Some(errno @ libc::EAGAIN) => {
                Error::new(Cause::System(errno), format!("ringwayd gets no further thread: {e}"))
                    .remedy("raise its limit of processes (TasksMax= of its unit, RLIMIT_NPROC)")
            }
            _ => {
                let problem = format!("cannot enter the caller's network namespace: {e}");
                Error::new(Cause::Denied, problem)
                    .remedy("run ringwayd there, or with CAP_SYS_ADMIN")
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    use super::*;

    #[test]
    fn one_on_demand_is_found_once_and_not_before() {
        let found = Arc::new(AtomicU32::new(0));
        let finds = found.clone();
        let socket = || -> SocketThere {
            let flags = SocketFlags::CLOEXEC;
            Arc::new(socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None).unwrap())
        };
        let within = socket();
        let netns = Netns::on_demand(Some(socket()), None, move || {
            finds.fetch_add(1, Relaxed);
            Netns::on_demand(Some(within), None, || Netns::Unknown("a reason"))
        });
        assert!(netns.may_have("lo") && !netns.may_have("rwnosuch"));
        assert!(Netns::Own.may_have("lo") && !Netns::Own.may_have("rwnosuch"));
        assert!(!Netns::Own.may_have("a-name-that-is-too-long"));
        assert_eq!((found.load(Relaxed), format!("{netns:?}").as_str()), (0, "OnDemand(OnDemand)"));
        assert!(!netns.is_own() && netns.other_fd().is_none() && netns.id() == Some(u64::MAX));
        assert!(matches!(netns.known(), Netns::Unknown("a reason")));
        assert_eq!(found.load(Relaxed), 1);
    }

    #[test]
    fn one_with_a_number_is_told_from_others_and_not_found_for_that() {
        let netns = Netns::on_demand(None, Some(7), || panic!("nobody looks anything up"));
        assert_eq!((netns.id(), netns.cookie(), netns.is_own()), (Some(7), Some(7), false));
        assert!(netns.clone().may_have("rwnosuch"));
        let own = std::fs::File::open("/proc/self/ns/net").unwrap();
        assert_eq!(Netns::known_as(own.into(), Some(7)).id(), Some(7));
    }
}
