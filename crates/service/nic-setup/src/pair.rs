//! A pair of interfaces that leads from a stack to this process: the one end in the stack's network
//! namespace, the other in a namespace that no other process knows.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::netns::{netns_here, on_thread};
use crate::operation::{LookAtDevice, MakePair, RemovePair};
use crate::parcel::Fd;
use crate::privileges::{Missing, device_privileges};
use crate::rtnl::{Message, link_by_index, link_by_name};
use crate::{Error, Interface, LinkState, LinkWatch, helper, in_netns, offload, sys};

/// The largest MTU that a veth has.
const LONGEST: u32 = 65535;
const VETH_INFO_PEER: u16 = 1;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
/// `struct ifinfomsg`, which stands before the attributes of a peer.
const PEER: [u8; 16] = [0; 16];

/// What the inner end is called: the one, or where the outer end is called so, the other.
const INNER: [&str; 2] = ["inner0", "inner1"];

/// What the outer end is to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OuterEnd {
    /// A network device like any other: down, for its user to configure.
    Device,
    /// A mere way to the inner end: up, and the stack says nothing through it by itself.
    Internal,
    /// The same, by which frames pass as they are: many in one, and with checksums that are left to do.
    Whole,
}

/// What to make.
#[derive(Clone, Copy, Debug)]
pub struct PairConfig<'a> {
    /// Name of the outer end; messages about the inner end call it so too.
    pub name: &'a str,
    /// Of the outer end as a device; of the frames that are to be expected, where it is a passage.
    pub mtu: u32,
    /// Address of the outer end; `None`: the kernel chooses.
    pub mac: Option<[u8; 6]>,
    /// Receive and transmit queues of each end.
    pub queues: u32,
    pub outer: OuterEnd,
}

/// What an administrator may change about a device, and a new one in its place is to have again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSettings {
    pub mac: [u8; 6],
    pub mtu: u32,
}

/// A veth pair. What the stack sends through the outer end arrives at the inner end, complete unless the
/// outer end is [whole](OuterEnd::Whole): checksummed, and no longer than the MTU; and the other way round. How long that is, the stack
/// says: the inner end, and an outer end that is a mere passage, let pass frames of any length, so
/// that nothing is lost when it changes.
///
/// The inner end's namespace is held by this value and by sockets that are open in it, and by
/// nothing else. When they have gone, however their processes ended, so have both ends. Dropping it
/// removes both ends at once. Kernel 3.19 and newer.
#[derive(Debug)]
pub struct PrivatePair(Pair);

/// What a pair is, in whatever process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pair {
    netns: Fd,
    inner: Interface,
    outer: Interface,
}

/// What the names of outer ends begin with; the number of the interface that they are for follows.
pub(crate) const TO_HOST: &str = "rwhost";
pub(crate) const OF_PORT: &str = "rwport";
pub(crate) const OF_RECEIVER: &str = "rwrecv";

/// Whether the outer end of a private pair has a name like that.
pub(crate) fn is_private_name(name: &str) -> bool {
    [TO_HOST, OF_PORT, OF_RECEIVER].into_iter().any(|begin| {
        let number = name.strip_prefix(begin);
        number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

impl From<Pair> for PrivatePair {
    fn from(pair: Pair) -> PrivatePair {
        PrivatePair(pair)
    }
}

impl PrivatePair {
    /// Makes a pair whose outer end is in the calling thread's network namespace.
    ///
    /// Errors: [`Error::Privileges`] without CAP_NET_ADMIN in that namespace, or CAP_SYS_ADMIN,
    /// which makes the other; [`Error::Refused`] with EEXIST when the name is taken there.
    pub fn new(config: &PairConfig<'_>) -> Result<PrivatePair, Error> {
        let &PairConfig { name, mtu, mac, queues, outer } = config;
        helper::run(MakePair { name: name.into(), mtu, mac, queues, outer }).map(PrivatePair)
    }

    /// A pair to try on what a kernel can do, before anything is made of `interface`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_probe(interface: &Interface) -> Result<PrivatePair, Error> {
        let name = format!("{OF_RECEIVER}{}", interface.index);
        let (mtu, outer) = (interface.mtu, OuterEnd::Internal);
        PrivatePair::new(&PairConfig { name: &name, mtu, mac: None, queues: 1, outer })
    }

    /// Runs `f` with the inner end, which is up, in its namespace: to make sockets there.
    pub fn inside<T: Send>(
        &self,
        f: impl FnOnce(&Interface) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let Pair { netns, inner, .. } = &self.0;
        in_netns(netns.as_fd(), || f(inner))
            .unwrap_or_else(|error| Err(refused(&inner.name)(error)))
    }

    /// Begins to watch the inner end, which goes where the outer one goes. By the name that it has in its
    /// namespace: with another one it would seem to have been renamed.
    pub fn watch(&self) -> Result<LinkWatch, Error> {
        let name = inner_name(&self.0.inner.name).into();
        self.inside(|inner| LinkWatch::open(&Interface { name, ..inner.clone() }))
    }

    /// What the outer end is set to now, wherever it has been moved to. Kernel 5.0 and newer.
    ///
    /// Errors: [`Error::Refused`] when it has gone, or is where this process has no privileges.
    pub fn device_settings(&self) -> Result<DeviceSettings, Error> {
        let name = self.0.outer.name.clone();
        self.inside(|inner| helper::run(LookAtDevice { name, inner: inner.index }))
    }

    /// The outer end, as it was when it was made.
    pub fn outer(&self) -> &Interface {
        &self.0.outer
    }
}

impl Drop for PrivatePair {
    fn drop(&mut self) {
        self.0.remove();
    }
}

impl Pair {
    /// Removes both ends, even while other processes have sockets there.
    pub fn remove(&self) {
        let index = self.inner.index;
        // Without a helper, or a thread, it goes with the last holder of its namespace.
        let _ = in_netns(self.netns.as_fd(), || helper::run(RemovePair { index }));
    }

    pub fn outer(&self) -> &Interface {
        &self.outer
    }

    #[cfg(feature = "simulated")]
    pub fn new(netns: Fd, inner: Interface, outer: Interface) -> Pair {
        Pair { netns, inner, outer }
    }
}

/// Makes a pair, which the caller removes.
pub(crate) fn make_here(config: &PairConfig<'_>) -> Result<Pair, Error> {
    let name = config.name;
    device_privileges().map_err(|missing| privileges(name, missing))?;
    let here = netns_here().map_err(refused(name))?;
    if config.outer != OuterEnd::Device {
        await_end(name);
    }
    let inside = on_thread("pair", || make(config, here.as_fd()));
    let (netns, inner) = inside.map_err(|cause| match cause.raw_os_error() {
        // All capabilities are there, but not in the namespace that the caller is in.
        Some(libc::EPERM) => {
            privileges(name, Missing { capabilities: vec!["CAP_NET_ADMIN".into()] })
        }
        _ => refused(name)(cause),
    })?;
    let outer = Interface { name: name.into(), ..inner.clone() };
    let mut pair = Pair { netns: Fd(netns), inner, outer };
    let finish = || -> Result<Interface, Error> {
        let outer = Interface::by_name_here(name)?;
        if config.outer != OuterEnd::Device {
            raise(outer.index).map_err(refused(name))?;
        }
        Ok(outer)
    };
    pair.outer = finish().inspect_err(|_| pair.remove())?;
    Ok(pair)
}

/// Waits for the end of a passage of that name, which a killed daemon has left: the kernel removes it when it clears up
/// that daemon's namespaces, a moment later.
fn await_end(name: &str) {
    /// One of a daemon that runs does not end.
    const PATIENCE: Duration = Duration::from_millis(500);
    let Ok(old) = Interface::by_name_here(name) else { return };
    let Ok(mut watch) = LinkWatch::open_here(&old) else { return };
    let until = Instant::now() + PATIENCE;
    loop {
        watch.news();
        let left = until.saturating_duration_since(Instant::now());
        if watch.state() == LinkState::Gone || left.is_zero() {
            return;
        }
        let time = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let _ = poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&time));
    }
}

/// Removes the pair whose inner end is of that number here, and no other interface.
pub(crate) fn remove_here(index: u32) {
    // There is none when it has gone already: with the outer end, or the outer end's namespace.
    let Ok(link) = link_by_index(index) else { return };
    if link.text(libc::IFLA_IFNAME).is_some_and(|name| INNER.contains(&name)) {
        // With one end goes the other.
        let _ = Message::new(libc::RTM_DELLINK, 0, index).carry_out();
    }
}

fn inner_name(outer: &str) -> &'static str {
    let [one, other] = INNER;
    if outer == one { other } else { one }
}

/// Moves the calling thread into a new namespace, makes the pair there, and moves the outer end to
/// where it belongs: so the inner end is never seen elsewhere, and the outer end has left its offloads
/// before others can rename it. The new namespace, and what the inner end is.
fn make(config: &PairConfig<'_>, outer: BorrowedFd<'_>) -> io::Result<(OwnedFd, Interface)> {
    sys::leave_netns()?;
    let netns = netns_here()?;
    let inner = inner_name(config.name);
    let end = |message: Message, name, mtu| {
        message
            .text(libc::IFLA_IFNAME, name)
            .number(libc::IFLA_MTU, mtu)
            .number(libc::IFLA_NUM_TX_QUEUES, config.queues)
            .number(libc::IFLA_NUM_RX_QUEUES, config.queues)
    };
    let new = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, 0);
    let address = |peer: Message| match &config.mac {
        Some(mac) => peer.attribute(libc::IFLA_ADDRESS, mac),
        None => peer,
    };
    let outer_mtu = match config.outer {
        OuterEnd::Device => config.mtu,
        OuterEnd::Internal | OuterEnd::Whole => LONGEST,
    };
    end(new, inner, LONGEST)
        .nest(libc::IFLA_LINKINFO, &[], |info| {
            info.text(libc::IFLA_INFO_KIND, "veth").nest(libc::IFLA_INFO_DATA, &[], |data| {
                data.nest(VETH_INFO_PEER, &PEER, |peer| address(end(peer, config.name, outer_mtu)))
            })
        })
        .carry_out()?;
    if config.outer != OuterEnd::Whole {
        offload::turn_off(config.name)?;
    }
    let index = link_by_name(config.name)?.index;
    Message::new(libc::RTM_SETLINK, 0, index)
        .number(libc::IFLA_NET_NS_FD, outer.as_raw_fd() as u32)
        .carry_out()?;
    let inner = Interface::by_name_here(inner).map_err(io::Error::other)?;
    raise(inner.index)?;
    Ok((netns, Interface { name: config.name.into(), mtu: config.mtu, ..inner }))
}

/// The settings of the other end, called `name`, of a pair of which this thread's network namespace has link
/// `index`.
pub(crate) fn settings_here(name: &str, index: u32) -> Result<DeviceSettings, Error> {
    peer_settings(index).map_err(refused(name))
}

fn peer_settings(index: u32) -> io::Result<DeviceSettings> {
    let gone = || io::Error::from_raw_os_error(libc::ENODEV);
    let link = link_by_index(index)?;
    let peer = link.number(libc::IFLA_LINK).ok_or_else(gone)?;
    // Without the number of a namespace it is in this one.
    let question = Message::new(libc::RTM_GETLINK, 0, peer);
    let question = match link.number(libc::IFLA_LINK_NETNSID) {
        Some(netns) => question.number(libc::IFLA_TARGET_NETNSID, netns),
        None => question,
    };
    let peer = question.ask_link()?;
    let mac = peer.find(libc::IFLA_ADDRESS).and_then(|mac| mac.try_into().ok());
    Ok(DeviceSettings {
        mac: mac.ok_or_else(gone)?,
        mtu: peer.number(libc::IFLA_MTU).ok_or_else(gone)?,
    })
}

/// Sets a link up, on which the stack is to say nothing by itself.
fn raise(index: u32) -> io::Result<()> {
    let set = || Message::new(libc::RTM_SETLINK, 0, index);
    let silent = set()
        .nest(libc::IFLA_AF_SPEC, &[], |families| {
            families.nest(libc::AF_INET6 as u16, &[], |v6| {
                v6.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE])
            })
        })
        .carry_out();
    match silent {
        // A kernel without IPv6 is silent enough.
        Err(e) if e.raw_os_error() != Some(libc::EAFNOSUPPORT) => return Err(e),
        _ => {}
    }
    let up = libc::IFF_UP | libc::IFF_NOARP;
    set().flags(up, up).carry_out()
}

fn privileges(name: &str, missing: Missing) -> Error {
    Error::Privileges { interface: name.into(), missing }
}

fn refused(name: &str) -> impl FnOnce(io::Error) -> Error {
    let remedy = "the kernel needs CONFIG_VETH and CONFIG_NET_NS: see `ringway doctor`";
    Error::refused(name, "the interface cannot be made", remedy)
}

#[cfg(test)]
mod tests {
    use ringway_testkit::{Netns, isolate_thread, skip_without_root};

    use super::*;

    /// A broker that an attacker controls is to have no interface removed that it did not have made.
    #[test]
    fn no_interface_but_a_pairs_is_removed() {
        if skip_without_root("no_interface_but_a_pairs_is_removed") {
            return;
        }
        isolate_thread();
        Netns::root().run("ip link add n0 type veth peer name n1");
        for name in ["n0", "n1"] {
            let index = Interface::by_name(name).unwrap().index;
            remove_here(index);
            assert_eq!(Interface::by_name(name).unwrap().index, index);
        }
    }
}
