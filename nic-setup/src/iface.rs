//! What there is to know about an interface before a socket is bound to it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice::name_to_index, socket_with};
use serde::{Deserialize, Serialize};

use crate::genl;
use crate::helper;
use crate::operation::LookUp;
use crate::privileges::unprivileged;
use crate::rtnl::{LinkAnswer, find, link_by_name};
use crate::sys::ethtool::{channels, driver};
use crate::{Error, Mode};

/// An interface of the calling thread's network namespace, as it was when asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub name: String,
    /// The kernel's number of the interface, unique in the namespace.
    pub index: u32,
    /// Bytes of payload, without the 14 of the Ethernet header.
    pub mtu: u32,
    pub mac: [u8; 6],
    /// Its frames have Ethernet headers, and it is no loopback.
    pub ethernet: bool,
    /// Set up by the administrator; whether there is a carrier is another matter.
    pub up: bool,
    pub rx_queues: u32,
    pub tx_queues: u32,
    /// The driver's name; empty when it tells none.
    pub driver: String,
    /// The kernel makes it, of others or of nothing (`ip -d link` tells its kind): there is no hardware.
    pub software: bool,
    /// Whether the driver says that it reads and writes the memory of AF_XDP sockets itself.
    pub zero_copy: bool,
}

impl Interface {
    /// Looks up `name`, which may be an alternative one: then the result has the other.
    /// [`Error::NoInterface`] when it is not in this namespace.
    pub fn by_name(name: &str) -> Result<Interface, Error> {
        helper::run_where_needed(LookUp { name: name.into() })
    }

    /// Whether the network namespace of a socket may have an interface of that name, or alternative name: false
    /// is certain. It waits for nobody, as [`by_name`](Self::by_name) does for whoever changes interfaces.
    pub fn may_exist(socket: BorrowedFd<'_>, name: &str) -> bool {
        let found = unprivileged(|| name_to_index(socket, name));
        !matches!(found, Ok(Err(Errno::NODEV)))
    }

    pub(crate) fn by_name_here(name: &str) -> Result<Interface, Error> {
        let ask = || -> io::Result<Interface> {
            let link = link_by_name(name)?;
            let socket =
                socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
            let known_as = link.text(libc::IFLA_IFNAME).unwrap_or(name);
            Ok(Asked { socket: socket.as_fd(), name: known_as }.interface(&link))
        };
        ask().map_err(|cause| match cause.raw_os_error() {
            Some(libc::ENODEV) => Error::NoInterface { interface: name.into() },
            _ => {
                let remedy = "see `ip link show`, and the limit of open files";
                Error::refused(name, "cannot be looked up", remedy)(cause)
            }
        })
    }

    /// Whether TCP and UDP checksums of frames that sockets of this mode receive may be partial: a stack at
    /// the other end that is on this machine leaves them to hardware that is not there. That may be behind
    /// whatever the kernel makes, a veth pair below a VLAN, say; and a hypervisor's, which does not where
    /// the driver has no headers that would tell.
    pub fn leaves_partial_csum(&self, mode: Mode) -> bool {
        self.software || (self.driver == "virtio_net" && mode != Mode::ZeroCopy)
    }

    /// Why sockets would receive nothing by a program that the driver runs. Where the kernel has the members
    /// of a bond run it, what they receive is for sockets of the members alone.
    pub(crate) fn unfit_for_native(&self) -> Option<&'static str> {
        (self.driver == "bonding").then_some(
            "the members of a bond run its program, and the kernel gives what they receive to no \
             socket of the bond",
        )
    }

    /// Bytes of the longest frame without a VLAN tag.
    pub fn longest_frame(&self) -> u32 {
        longest_frame(self.mtu)
    }

    /// The queues that a socket may be bound to: 0 up to this, not included.
    pub fn queues(&self) -> u32 {
        self.rx_queues.max(self.tx_queues)
    }
}

/// Bytes of the longest frame without a VLAN tag, for an MTU.
pub fn longest_frame(mtu: u32) -> u32 {
    mtu.saturating_add(14)
}

/// The name that questions are asked about.
struct Asked<'a> {
    socket: BorrowedFd<'a>,
    name: &'a str,
}

impl Asked<'_> {
    fn interface(&self, link: &LinkAnswer) -> Interface {
        let address = link.find(libc::IFLA_ADDRESS).unwrap_or_default();
        let mut mac = [0; 6];
        mac.iter_mut().zip(address).for_each(|(to, byte)| *to = *byte);
        let (rx_queues, tx_queues) = self.queues(link.index, mac);
        Interface {
            name: self.name.into(),
            index: link.index,
            mtu: link.number(libc::IFLA_MTU).unwrap_or(0),
            mac,
            ethernet: link.hardware == libc::ARPHRD_ETHER,
            up: link.flags & libc::IFF_UP != 0,
            rx_queues,
            tx_queues,
            driver: self.driver(),
            software: link
                .find(libc::IFLA_LINKINFO)
                .is_some_and(|info| find(info, libc::IFLA_INFO_KIND).is_some()),
            zero_copy: genl::takes_zero_copy(link.index) == Some(true),
        }
    }

    fn driver(&self) -> String {
        self.ask(driver).unwrap_or_default()
    }

    /// Queues in use (receive, transmit). Devices that do not answer `ethtool -l` are looked up in
    /// sysfs, or have one of each.
    fn queues(&self, index: u32, mac: [u8; 6]) -> (u32, u32) {
        if let Ok(channels) = self.ask(channels) {
            let queues = (channels.combined + channels.rx, channels.combined + channels.tx);
            if queues != (0, 0) {
                return queues;
            }
        }
        self.sysfs_queues(index, mac).unwrap_or((1, 1))
    }

    /// sysfs shows the namespace it was mounted in, not that of this thread: so the entry must
    /// agree on index and address before it is believed.
    fn sysfs_queues(&self, index: u32, mac: [u8; 6]) -> Option<(u32, u32)> {
        let folder = Path::new("/sys/class/net").join(self.name);
        let read = |file| fs::read_to_string(folder.join(file)).ok();
        let colons = mac.map(|byte| format!("{byte:02x}")).join(":");
        if read("ifindex")?.trim() != index.to_string() || read("address")?.trim() != colons {
            return None;
        }
        let names: Vec<_> = fs::read_dir(folder.join("queues"))
            .ok()?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let count = |kind| names.iter().filter(|name| name.starts_with(kind)).count() as u32;
        Some((count("rx-"), count("tx-")))
    }

    /// A question that anybody may ask: without privileges the kernel loads no module, should the name be
    /// another's by now.
    fn ask<T>(
        &self,
        question: impl FnOnce(BorrowedFd<'_>, &str) -> io::Result<T>,
    ) -> io::Result<T> {
        unprivileged(|| question(self.socket, self.name))?
    }
}
