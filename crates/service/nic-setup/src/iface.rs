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
use crate::pair::is_private_name;
use crate::privileges::unprivileged;
use crate::rtnl::{LinkAnswer, find, link_by_index, link_by_name};
use crate::sys::ethtool::{active_features, channels, driver};
use crate::{AttachMode, Error, Mode};

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
    /// Its frames have Ethernet headers: an Ethernet interface's, or a loopback's.
    pub has_headers: bool,
    /// Set up by the administrator; whether there is a carrier is another matter.
    pub up: bool,
    /// Queues in use that receive; at least 1.
    pub rx_queues: u32,
    /// Queues in use that send; at least 1.
    pub tx_queues: u32,
    /// The driver's name; empty when it tells none.
    pub driver: String,
    /// The kernel makes it, of others or of nothing (`ip -d link` tells its kind): there is no hardware.
    pub software: bool,
    /// Whether the driver says that it reads and writes the memory of AF_XDP sockets itself.
    pub zero_copy: bool,
}

/// Drivers of interfaces to a hypervisor's other machines, and to its own stack, whose frames may come with partial
/// checksums. Xen's are both called `vif`, by their devices on its bus: the front end in a machine
/// (`XEN_NETRXF_csum_blank`), and the back end beside the hypervisor (`XEN_NETTXF_csum_blank`).
const HYPERVISORS: [&str; 2] = ["virtio_net", "vif"];

/// What joins received frames before the stack sees them.
struct Joins {
    /// Its name among the features, and that by which it is switched.
    feature: &'static str,
    switch: &'static str,
    what: &'static str,
}

const JOINS: [Joins; 2] = [
    Joins { feature: "rx-lro", switch: "lro", what: "large receive offload" },
    Joins { feature: "rx-gro-hw", switch: "rx-gro-hw", what: "receive offload by the card (GRO)" },
];

impl Interface {
    /// Looks up `name`, which may be an alternative one: then the result has the other.
    /// [`Error::NoInterface`] when it is not in this namespace.
    pub fn by_name(name: &str) -> Result<Interface, Error> {
        helper::run_where_needed(LookUp { name: name.into() })
    }

    /// Whether it is the end of a pair that a daemon has made, for another interface: what passes is not for others.
    pub fn is_private(&self) -> bool {
        self.software && is_private_name(&self.name)
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
    /// whatever the kernel makes, a veth pair below a VLAN, say; and the interfaces of a hypervisor,
    /// but for those in zero copy, where virtio-net has no headers that would tell.
    pub fn leaves_partial_csum(&self, mode: Mode) -> bool {
        self.software || (HYPERVISORS.contains(&&*self.driver) && mode != Mode::ZeroCopy)
    }

    /// Whether it is an end of a pair: it takes no frames that are longer than the other end's MTU.
    pub fn is_pair(&self) -> bool {
        ["veth", "netkit"].contains(&&*self.driver)
    }

    /// Whether the driver makes other buffers of all that it receives for an XDP program, and has segmentation
    /// turned off at the other end: what the program lets pass is slower then.
    pub fn converts_for_xdp(&self) -> bool {
        self.driver == "veth"
    }

    /// Why no XDP program is to come to the interface in this way.
    ///
    /// Where the kernel has the members of a bond run it, what they receive is for sockets of the members
    /// alone. And the kernel turns off for good what joins received frames, before a program in generic mode
    /// comes (`dev_disable_lro`, `dev_disable_gro_hw`); so does a driver (vmxnet3), where others refuse the
    /// program. That is the administrator's to do.
    pub(crate) fn unfit_for(&self, mode: AttachMode) -> Option<String> {
        if let Some(why) = unfit_driver(&self.driver, mode) {
            return Some(why.into());
        }
        let joins: &[_] = match mode {
            AttachMode::Native => &JOINS[..1],
            AttachMode::Generic => &JOINS,
        };
        let on = self.joined(joins)?;
        let (what, switch, name) = (on.0.what, on.0.switch, on.1);
        Some(format!(
            "{what} of {name} is on, and an XDP program would turn it off for good; do that with \
             `ethtool -K {name} {switch} off`, or use packet mode"
        ))
    }

    /// Why a native program that has come to the interface cannot stay there: its driver has made more queues for it,
    /// and spreads what it receives over these, too (virtio-net makes one for each processor, of those that are not
    /// in use). The port has no rings for them.
    pub(crate) fn outgrown(&self) -> Option<String> {
        let now = Interface::by_name_here(&self.name).ok().filter(|now| now.index == self.index)?;
        let Interface { name, driver, rx_queues, .. } = self;
        (now.rx_queues > *rx_queues).then(|| {
            format!(
                "with an XDP program its driver, {driver}, spreads what it receives over {} queues, and has \
                 {rx_queues} without; have it use all that it has, which leaves none for that: `ethtool -l \
                 {name}` and `ethtool -L {name} combined ALL`",
                now.rx_queues
            )
        })
    }

    /// Why what the interface receives cannot be sent on as it is.
    pub(crate) fn unfit_to_forward(&self) -> Option<String> {
        let (Joins { what, switch, .. }, name) = self.joined(&JOINS[..1])?;
        Some(format!(
            "{what} of {name} is on, and frames that it has joined cannot be sent on; turn it off with \
             `ethtool -K {name} {switch} off`"
        ))
    }

    /// The first of these features that is on here, and where; the first of all also at what this is made of (a VLAN's
    /// interface, say), to which the kernel goes down.
    fn joined(&self, mut features: &'static [Joins]) -> Option<(&'static Joins, String)> {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
        let mut link = link_by_index(self.index).ok()?;
        // As deep as the kernel lets interfaces lie above each other.
        for _ in 0..8 {
            let name = link.text(libc::IFLA_IFNAME)?.to_owned();
            let on = unprivileged(|| active_features(socket.as_fd(), &name)).ok()?;
            let on = on.unwrap_or_default();
            if let Some(found) = features.iter().find(|f| on.iter().any(|name| name == f.feature)) {
                return Some((found, name));
            }
            // One of another namespace is not to be looked at from here; and a veth pair's other end lies beside it.
            let kind = link.find(libc::IFLA_LINKINFO).and_then(|of| find(of, libc::IFLA_INFO_KIND));
            if link.find(libc::IFLA_LINK_NETNSID).is_some() || kind == Some(b"veth\0") {
                return None;
            }
            link = link_by_index(link.number(libc::IFLA_LINK)?).ok()?;
            features = features.get(..1)?;
        }
        None
    }

    /// Bytes of the longest frame without a VLAN tag.
    pub fn longest_frame(&self) -> u32 {
        longest_frame(self.mtu)
    }

    /// The queues that a socket may be bound to: 0 up to this, not included. Those from
    /// [`rx_queues`](Self::rx_queues) on send only, and those from [`tx_queues`](Self::tx_queues) on receive only:
    /// the kernel takes nothing from such a socket, and does not say so.
    pub fn queues(&self) -> u32 {
        self.rx_queues.max(self.tx_queues)
    }
}

/// Why a driver's interfaces are not for a program that comes in this way.
fn unfit_driver(driver: &str, mode: AttachMode) -> Option<&'static str> {
    match (mode, driver) {
        (AttachMode::Native, "bonding") => Some(
            "the members of a bond run its program, and the kernel gives what they receive to no socket of the bond",
        ),
        // They look for the network header (`pskb_inet_may_pull`), whose place the kernel does not know in
        // frames of AF_XDP.
        (AttachMode::Generic, "gretap" | "ip6gretap" | "erspan" | "ip6erspan") => {
            Some("the kernel drops all that AF_XDP sends on interfaces of GRE")
        }
        _ => None,
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
        // Each interface has one of each, also where its driver counts none.
        let (rx_queues, tx_queues) = (rx_queues.max(1), tx_queues.max(1));
        Interface {
            name: self.name.into(),
            index: link.index,
            mtu: link.number(libc::IFLA_MTU).unwrap_or(0),
            mac,
            ethernet: link.hardware == libc::ARPHRD_ETHER,
            has_headers: [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&link.hardware),
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

#[cfg(test)]
mod tests {
    use ringway_testkit::{Netns, isolate_thread, skip_without_root};

    use super::*;

    #[test]
    fn some_drivers_are_not_for_programs() {
        use AttachMode::{Generic, Native};
        let unfit = |driver, mode| unfit_driver(driver, mode).is_some();
        assert!(unfit("bonding", Native) && !unfit("bonding", Generic));
        for driver in ["gretap", "ip6gretap", "erspan", "ip6erspan"] {
            assert!(unfit(driver, Generic), "{driver}");
        }
        assert!(!unfit("vxlan", Generic) && !unfit("veth", Native));
    }

    /// A hypervisor's other machines leave checksums undone, whichever driver brings their frames; a card does them.
    #[test]
    fn frames_of_other_machines_may_have_partial_checksums() {
        let of = |driver: &str, software, mode| {
            let interface = Interface {
                name: "n0".into(),
                index: 1,
                mtu: 1500,
                mac: [0; 6],
                ethernet: true,
                has_headers: true,
                up: true,
                rx_queues: 1,
                tx_queues: 1,
                driver: driver.into(),
                software,
                zero_copy: false,
            };
            interface.leaves_partial_csum(mode)
        };
        for mode in [Mode::Copy, Mode::Generic] {
            assert!(of("virtio_net", false, mode) && of("vif", false, mode));
            assert!(of("veth", true, mode) && of("", true, mode));
            assert!(!of("ice", false, mode) && !of("", false, mode));
        }
        assert!(!of("virtio_net", false, Mode::ZeroCopy));
    }

    /// Queues that come with a program are found.
    #[test]
    fn an_interface_that_has_more_queues_than_before_is_outgrown() {
        if skip_without_root("an_interface_that_has_more_queues_than_before_is_outgrown") {
            return;
        }
        isolate_thread();
        Netns::root().run("ip link add n0 numrxqueues 3 type veth peer name n1");
        let of = |rx_queues| Interface { rx_queues, ..Interface::by_name("n0").unwrap() };
        Netns::root().run("ethtool -L n0 rx 3");
        assert_eq!((of(3).outgrown(), of(4).outgrown()), (None, None));
        let why = of(2).outgrown().unwrap();
        assert!(why.contains("over 3 queues, and has 2 without"), "{why}");
        assert!(why.contains("`ethtool -L n0 combined ALL`"), "{why}");
    }

    /// As `ethtool -k` shows them, and where something else lies above them. No interface here can have these two, so
    /// another feature of a veth pair stands for them, that the kernel turns off for nobody.
    #[test]
    fn features_are_found_here_and_below() {
        if skip_without_root("features_are_found_here_and_below") {
            return;
        }
        const STANDS_FOR: [Joins; 1] =
            [Joins { feature: "rx-gro-list", switch: "rx-gro-list", what: "fraglist GRO" }];
        isolate_thread();
        let run = |command: &str| Netns::root().run(command);
        run(
            "ip link add n0 type veth peer name n1 && ip link add m0 link n0 type macvlan mode bridge",
        );
        let at = |name: &str| Interface::by_name(name).unwrap();
        let found = |name: &str| at(name).joined(&STANDS_FOR).map(|(_, where_it_is)| where_it_is);
        assert_eq!((found("n0"), found("m0")), (None, None));
        run("ethtool -K n0 rx-gro-list on");
        assert_eq!(found("n0").as_deref(), Some("n0"));
        assert_eq!(found("m0").as_deref(), Some("n0"));
        assert_eq!(found("lo"), None);
        assert_eq!(at("n0").unfit_for(AttachMode::Generic), None);
        run("ethtool -K n0 rx-gro-list off");
        assert_eq!(found("m0"), None);
    }
}
