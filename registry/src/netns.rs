//! The network namespace in which a caller means names of interfaces.

use std::{
    fmt,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::LazyLock,
};

use ringway_nic_setup::Interface;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Where the names of interfaces in a request are meant. To be told by who knows, never by the request.
#[derive(Debug, Default)]
pub enum Netns {
    /// This process's.
    #[default]
    Own,
    Other(OwnedFd),
    /// It is not known, or not to be entered, for that reason: what takes an interface is refused.
    Unknown(&'static str),
    /// It is found out when a request asks for it.
    OnDemand(OnDemand),
}

/// See [`Netns::on_demand`].
pub struct OnDemand {
    socket: OwnedFd,
    netns: LazyLock<Box<Netns>, Find>,
}

type Find = Box<dyn FnOnce() -> Box<Netns> + Send>;

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDemand")
    }
}

impl Netns {
    /// The one of `socket`, which `find` finds at most once, when a request is about interfaces: others do not
    /// wait for that.
    pub fn on_demand(socket: OwnedFd, find: impl FnOnce() -> Netns + Send + 'static) -> Netns {
        let find: Find = Box::new(move || Box::new(find()));
        Netns::OnDemand(OnDemand { socket, netns: LazyLock::new(find) })
    }

    /// Whether an interface there may have that name: false is certain. It waits for nothing.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        match self {
            Netns::Own => {
                let flags = SocketFlags::CLOEXEC;
                let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None);
                socket.map_or(true, |socket| Interface::may_exist(socket.as_fd(), name))
            }
            Netns::OnDemand(OnDemand { socket, .. }) => Interface::may_exist(socket.as_fd(), name),
            Netns::Other(_) | Netns::Unknown(_) => true,
        }
    }

    /// The same, found.
    pub(crate) fn known(&self) -> &Netns {
        match self {
            Netns::OnDemand(OnDemand { netns, .. }) => netns.known(),
            known => known,
        }
    }

    /// A descriptor, where it is known and another one than this process's.
    pub(crate) fn other(&self) -> Option<BorrowedFd<'_>> {
        match self.known() {
            Netns::Other(fd) => Some(fd.as_fd()),
            _ => None,
        }
    }

    /// Whether names of this process's interfaces are meant.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.known(), Netns::Own)
    }

    /// What tells the namespace from others; `None`: it is this process's.
    pub(crate) fn id(&self) -> Option<u64> {
        match self.known() {
            Netns::Own => None,
            // It fails for a descriptor that is none: no namespace has this number.
            Netns::Other(fd) => Some(rustix::fs::fstat(fd).map_or(u64::MAX, |stat| stat.st_ino)),
            Netns::Unknown(_) | Netns::OnDemand(_) => Some(u64::MAX),
        }
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
        let socket =
            || socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        let within = socket().unwrap();
        let netns = Netns::on_demand(socket().unwrap(), move || {
            finds.fetch_add(1, Relaxed);
            Netns::on_demand(within, || Netns::Unknown("a reason"))
        });
        assert!(netns.may_have("lo") && !netns.may_have("rwnosuch"));
        assert!(Netns::Own.may_have("lo") && !Netns::Own.may_have("rwnosuch"));
        assert!(!Netns::Own.may_have("a-name-that-is-too-long"));
        assert_eq!((found.load(Relaxed), format!("{netns:?}").as_str()), (0, "OnDemand(OnDemand)"));
        assert!(!netns.is_own() && netns.other().is_none() && netns.id() == Some(u64::MAX));
        assert!(matches!(netns.known(), Netns::Unknown("a reason")));
        assert_eq!(found.load(Relaxed), 1);
    }
}
