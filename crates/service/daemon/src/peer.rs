//! Who a client is, and which network namespace its requests come from: as the kernel tells of the
//! sockets, whatever the client says.
//!
//! **Users.** A connection belongs to the user id that the kernel noted when it was made. User 0 is the
//! machine's root only if its process is in the daemon's user namespace and pid namespace, and may have the
//! capabilities that the daemon itself began with to set up interfaces. Else it is root of a container that has no
//! user namespace of its own, say: an account apart, [`CONTAINED_ROOT`], with no rights but those that
//! the configuration gives to user 0 by name. A process that ended before it was looked at is not known
//! to be root.
//!
//! **Namespaces.** Names of interfaces are meant in the network namespace of the socket that the answer
//! goes to, which is the one that the thread was in which made the pair: `ringway_ipc` takes ends of pairs
//! alone, for a socket that was connected is of the namespace of the program that connected it. A socket
//! is a handle to its namespace for the kernel, too: the ioctls of `netdevice(7)` go by it. So that no
//! program speaks for a namespace by a socket that strangers have given away, the pair's maker must be the
//! connection's user, or the very process that connected, whatever user it is by now. For root of a container it
//! must be that process: the machine's root has the same user id. This process makes pairs too, the connections
//! for barriers, which are of its own namespace: they are no client's.

use std::{
    fs, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use ringway_nic_setup::netns_of;
use ringway_registry::Netns;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::CWD,
};

use crate::{
    closer::{Closer, Kind},
    sys,
};

/// Stands for user 0 where that is not the machine's root. No process has it for its user id.
pub const CONTAINED_ROOT: u32 = u32::MAX;

/// Of `capabilities(7)`: NET_ADMIN, NET_RAW and SYS_ADMIN, which setting up interfaces takes.
const NIC_SETUP: u64 = 1 << 12 | 1 << 13 | 1 << 21;

/// The process at the other end of a socket, as it was when that was connected, or of a pair's maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Credentials {
    /// 0: it is in no pid namespace that this process sees.
    pid: libc::pid_t,
    uid: u32,
}

/// A client's user.
#[derive(Clone, Copy, Debug)]
pub struct User {
    /// Whose ports and costs its are.
    pub account: u32,
    connected: Credentials,
}

impl User {
    /// The process that has connected, if it is in a pid namespace that this process sees.
    pub fn pid(&self) -> Option<u32> {
        u32::try_from(self.connected.pid).ok().filter(|pid| *pid != 0)
    }

    /// The user id that a configuration may name.
    pub fn uid(&self) -> u32 {
        self.connected.uid
    }

    /// Whether the user, or the process that has connected, is the maker of a pair; `daemon` is this process.
    fn has_made(&self, maker: Credentials, daemon: libc::pid_t) -> bool {
        let is_user = maker.uid == self.connected.uid && self.account != CONTAINED_ROOT;
        let is_process = maker.pid == self.connected.pid && maker.pid != 0;
        maker.pid != daemon && (is_user || is_process)
    }
}

/// How a daemon tells users apart.
pub enum Trust {
    /// There is but one user, and root.
    OneUser,
    /// User 0 may be root of a container.
    Users {
        /// The map of the user namespace that the daemon is in.
        own_map: String,
        /// Capabilities that root may have.
        root_has: u64,
    },
}

impl Trust {
    /// For a daemon of several users. To be called before the process gives up capabilities.
    pub fn users() -> io::Result<Trust> {
        let own_map = fs::read_to_string("/proc/self/uid_map")?;
        let status = fs::read_to_string("/proc/self/status")?;
        let root_has = permitted(&status).unwrap_or(0) & NIC_SETUP;
        Ok(Trust::Users { own_map, root_has })
    }

    /// The user at the other end of an accepted connection.
    pub fn user(&self, connection: BorrowedFd<'_>) -> io::Result<User> {
        let connected = credentials(connection)?;
        let account = match connected.uid {
            0 if !self.is_root(connection, connected.pid) => CONTAINED_ROOT,
            uid => uid,
        };
        Ok(User { account, connected })
    }

    /// Whether the process of user 0 that connected is the machine's root, and is there still.
    fn is_root(&self, connection: BorrowedFd<'_>, pid: libc::pid_t) -> bool {
        let Trust::Users { own_map, root_has } = self else { return true };
        let looks_like_root = || {
            let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
            let status = read("status")?;
            // By its map alone a user namespace is not told from others: a container's root that may set ids
            // makes another with the map of this one, and has all capabilities in it. It does not get out of the
            // pid namespace of the container.
            Some(
                read("uid_map")? == *own_map
                    && is_in_this_pid_namespace(&status)
                    && permitted(&status)? & root_has == *root_has,
            )
        };
        // As long as the process has not ended, no other process has its number.
        looks_like_root() == Some(true)
            && sys::peer_pidfd(connection).is_ok_and(|process| !has_ended(&process))
    }
}

/// A copy of the socket that an answer goes to: closed by the closer, whichever thread is the last that has it. What is
/// queued in it may take as long as its maker likes.
struct Lent {
    socket: Option<OwnedFd>,
    account: u32,
    closer: Closer,
}

impl AsFd for Lent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // Without a socket: what no call about sockets takes.
        self.socket.as_ref().map_or(CWD, |socket| socket.as_fd())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.closer.close(self.account, Kind::Known, self.socket.take());
    }
}

/// Where the names of interfaces in a request are meant, by the socket that its answer goes to. The result may have a
/// copy of that, which is closed by `closer` for `account`.
pub fn namespace(reply_to: BorrowedFd<'_>, user: &User, closer: &Closer, account: u32) -> Netns {
    const STRANGE: &str = "the socket for the answer was not made, as a pair, by the process that asks; \
                           open the port in one process";
    const UNKNOWN: &str = "ringwayd may not enter the caller's network namespace; run it there, or \
                           with CAP_NET_ADMIN and CAP_SYS_ADMIN";
    let Ok(maker) = credentials(reply_to) else { return Netns::Unknown(STRANGE) };
    if !user.has_made(maker, own_pid()) {
        return Netns::Unknown(STRANGE);
    }
    if is_of_this(reply_to).is_ok_and(|it_is| it_is) {
        return Netns::Own;
    }
    // The helper is asked, which no other request is to wait for.
    let cookie = sys::netns_cookie(reply_to).ok();
    let found = move |socket: &Lent| match netns_of(socket.as_fd()) {
        Ok(netns) if is_this(&netns) => Netns::Own,
        Ok(netns) => Netns::known_as(netns, cookie),
        Err(_) => Netns::Unknown(UNKNOWN),
    };
    let Ok(socket) = reply_to.try_clone_to_owned() else { return Netns::Unknown(UNKNOWN) };
    let socket = Arc::new(Lent { socket: Some(socket), account, closer: closer.clone() });
    let asked = socket.clone();
    Netns::on_demand(Some(socket), cookie, move || found(&asked))
}

/// Whether that is the network namespace of this process.
fn is_this(netns: &OwnedFd) -> bool {
    let own = rustix::fs::stat("/proc/self/ns/net");
    let theirs = rustix::fs::fstat(netns);
    own.is_ok_and(|own| {
        theirs.is_ok_and(|theirs| (own.st_dev, own.st_ino) == (theirs.st_dev, theirs.st_ino))
    })
}

/// Whether a socket is of the network namespace of this process, which need not be privileged. Kernel
/// 5.14 and newer.
fn is_of_this(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let (own, _) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(sys::netns_cookie(own.as_fd())? == sys::netns_cookie(socket)?)
}

/// The number of this process.
fn own_pid() -> libc::pid_t {
    rustix::process::getpid().as_raw_pid()
}

fn credentials(socket: BorrowedFd<'_>) -> io::Result<Credentials> {
    let (pid, uid) = sys::connected_by(socket)?;
    Ok(Credentials { pid, uid })
}

fn has_ended(process: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)) != Ok(0)
}

/// Whether a process has a number in the pid namespace of `/proc` alone, by its `status`. Kernels without pid
/// namespaces do not tell.
fn is_in_this_pid_namespace(status: &str) -> bool {
    let mut lines = status.lines();
    let numbers = lines.find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_none_or(|numbers| numbers.split_whitespace().count() == 1)
}

/// The permitted capabilities in a process's `status`.
fn permitted(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use ringway_testkit::lingering;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        socketpair(AddressFamily::UNIX, kind, flags, None).unwrap()
    }

    /// The last thread that has the copy does not close it: what is queued in it may take for ever.
    #[test]
    fn a_copy_of_the_socket_is_closed_by_the_closer() {
        let (holder, behind) = pair();
        let (slow, other) = lingering();
        ringway_ipc::send(behind.as_fd(), &[], &[slow.as_fd()], SendFlags::empty()).unwrap();
        drop(slow);
        let closer = Closer::new().unwrap();
        let lent = Arc::new(Lent { socket: Some(holder), account: 1, closer: closer.clone() });
        assert!(is_of_this(lent.as_fd()).unwrap());
        let last = lent.clone();
        drop(lent);
        closer.await_progress();
        let done = std::thread::spawn(move || drop(last));
        done.join().unwrap();
        let word = poll(&mut [PollFd::new(&closer, PollFlags::IN)], None);
        assert_eq!(word, Ok(1), "the closer has closed it");
        drop(other);
    }

    const DAEMON: libc::pid_t = 1;

    /// Whether process `connected`, which is a client with that account, is taken for the maker of a pair.
    fn is_own(account: u32, connected: (libc::pid_t, u32), maker: (libc::pid_t, u32)) -> bool {
        let [connected, maker] = [connected, maker].map(|(pid, uid)| Credentials { pid, uid });
        User { account, connected }.has_made(maker, DAEMON)
    }

    #[test]
    fn what_strangers_made_counts_for_nothing() {
        assert!(!is_own(7, (20, 7), (21, 8)));
        // The same process, as another user; another process of the same user.
        assert!(is_own(7, (20, 7), (20, 8)));
        assert!(is_own(7, (20, 7), (21, 7)));
        // Processes that this one does not see have no number that tells them apart.
        assert!(!is_own(7, (0, 7), (0, 8)));
    }

    #[test]
    fn a_containers_root_is_one_process() {
        assert!(is_own(0, (20, 0), (21, 0)));
        assert!(is_own(CONTAINED_ROOT, (20, 0), (20, 0)));
        assert!(!is_own(CONTAINED_ROOT, (20, 0), (21, 0)));
        assert!(!is_own(CONTAINED_ROOT, (0, 0), (0, 0)));
    }

    #[test]
    fn a_pair_of_this_process_is_no_clients() {
        for account in [0, CONTAINED_ROOT] {
            assert!(!is_own(account, (20, 0), (DAEMON, 0)), "{account}");
        }
        let (one, _other) = pair();
        let user = Trust::OneUser.user(one.as_fd()).unwrap();
        let netns = namespace(one.as_fd(), &user, &Closer::new().unwrap(), user.account);
        assert!(matches!(netns, Netns::Unknown(_)));
    }

    #[test]
    fn a_process_of_another_pid_namespace_has_more_numbers() {
        assert!(is_in_this_pid_namespace("Name:\tx\nNSpid:\t12\nNSsid:\t1\t2\n"));
        assert!(!is_in_this_pid_namespace("Name:\tx\nNSpid:\t12\t1\n"));
        assert!(is_in_this_pid_namespace("Name:\tx\n"));
    }

    #[test]
    fn a_process_is_root_by_what_it_may_and_where_it_is() {
        let (one, _other) = pair();
        let own_map = fs::read_to_string("/proc/self/uid_map").unwrap();
        let is_root = |own_map: &str, root_has| {
            let trust = Trust::Users { own_map: own_map.into(), root_has };
            trust.is_root(one.as_fd(), own_pid())
        };
        assert!(is_root(&own_map, 0));
        assert!(!is_root("0 0 1\n", 0));
        // No kernel has so many.
        assert!(!is_root(&own_map, 1 << 63));
    }
}
