//! The network cards that a guest can have.

use ringway::NicMode;

use crate::kernel::Version;

/// A kind of card. A guest has two of it, on one cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// What it is called on the command line, and in tables.
    pub name: &'static str,
    /// What a reader has to know of it.
    pub about: &'static str,
    pub made: Made,
    /// Processors of the guest: igb has a queue for each.
    pub cpus: u32,
    /// The first kernel whose driver has native XDP, and zero copy.
    native: Option<Version>,
    zero_copy: Option<Version>,
}

/// What makes the cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// QEMU, which has such a device; the guest's kernel has the module.
    ByQemu { device: &'static str, module: &'static str, iommu: bool, cable: Cable },
    /// The guest, by this script: interface `near` with the address `$NEAR`, and in the namespace `$FAR_NETNS` the
    /// interface `far` with the address `$FAR`.
    ByGuest(&'static str),
}

/// What is between two of QEMU's cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cable {
    /// Two UDP sockets: one queue of frames each way.
    Sockets,
    /// Two tap devices with so many queues, and a bridge between them, in a namespace of the host's. Takes root.
    Taps(u32),
    /// A switch of Ringway's, by vhost-user, with so many queues for each card.
    Switch(u32),
    /// The same by streams of frames.
    Streams,
}

/// virtio-net with these options. Offloads that change frames on the way are off: the checks compare frames byte
/// by byte.
macro_rules! virtio {
    ($options:literal) => {
        concat!(
            "virtio-net-pci,disable-legacy=on,guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_csum=off",
            $options
        )
    };
}

/// A veth pair named `low` below the interfaces, then what `$script` makes of it.
macro_rules! above {
    ($script:literal) => {
        concat!(
            "ip link add low mtu 9100 type veth peer name low mtu 9100 netns $FAR_NETNS
             far() { ip -n $FAR_NETNS \"$@\"; }
             plain_far() { far link set low down; far link set low name far mtu 1500 address $FAR; }
             ip link set low up; far link set low up; ",
            $script
        )
    };
}

const fn version(major: u32, minor: u32) -> Option<Version> {
    Some(Version { major, minor })
}

const IGB: Card = Card {
    name: "igb",
    about: "Intel 82576, two queues",
    made: Made::ByQemu { device: "igb", module: "igb", iommu: false, cable: Cable::Sockets },
    cpus: 2,
    native: version(5, 10),
    zero_copy: version(6, 14),
};

const VIRTIO: Card = Card {
    name: "virtio",
    about: "virtio-net as hypervisors offer it by default",
    made: Made::ByQemu {
        device: virtio!(""),
        module: "virtio_net",
        iommu: false,
        cable: Cable::Sockets,
    },
    cpus: 2,
    native: version(4, 10),
    zero_copy: None,
};

const VIRTIO_IOMMU: Card = Card {
    name: "virtio-iommu",
    about: "virtio-net behind an IOMMU, which zero copy takes",
    made: Made::ByQemu {
        device: virtio!(",iommu_platform=on,ats=on"),
        module: "virtio_net",
        iommu: true,
        cable: Cable::Sockets,
    },
    zero_copy: version(6, 13),
    ..VIRTIO
};

/// A card of QEMU's without native XDP, on a cable of sockets.
const fn old(
    name: &'static str,
    about: &'static str,
    device: &'static str,
    module: &'static str,
) -> Card {
    let made = Made::ByQemu { device, module, iommu: false, cable: Cable::Sockets };
    Card { name, about, made, cpus: 2, native: None, zero_copy: None }
}

/// virtio-net with other options than [`VIRTIO`].
const fn virtio(name: &'static str, about: &'static str, device: &'static str) -> Card {
    let made = Made::ByQemu { device, module: "virtio_net", iommu: false, cable: Cable::Sockets };
    Card { name, about, made, ..VIRTIO }
}

/// An interface that the guest makes, without native XDP.
const fn soft(name: &'static str, about: &'static str, script: &'static str) -> Card {
    Card { name, about, made: Made::ByGuest(script), cpus: 2, native: None, zero_copy: None }
}

/// All kinds.
pub const CARDS: [Card; 28] = [
    IGB,
    Card { name: "igb-4q", about: "Intel 82576, four queues", cpus: 4, ..IGB },
    VIRTIO_IOMMU,
    Card {
        name: "virtio-iommu-2q",
        about: "the same with two pairs of queues",
        made: Made::ByQemu {
            device: virtio!(",iommu_platform=on,ats=on,mq=on,vectors=6"),
            module: "virtio_net",
            iommu: true,
            cable: Cable::Taps(2),
        },
        ..VIRTIO_IOMMU
    },
    VIRTIO,
    virtio("virtio-packed", "the same with packed rings", virtio!(",packed=on")),
    virtio(
        "virtio-bare",
        "the same without mergeable buffers, indirect descriptors and event index",
        virtio!(",mrg_rxbuf=off,indirect_desc=off,event_idx=off"),
    ),
    virtio(
        "virtio-no-ctrl",
        "the same without a control queue, and with receive offloads",
        // Linux has no driver for a card that has any of these without the queue.
        concat!(
            "virtio-net-pci,disable-legacy=on,ctrl_vq=off,ctrl_rx=off,ctrl_rx_extra=off,",
            "ctrl_vlan=off,ctrl_mac_addr=off,ctrl_guest_offloads=off,guest_announce=off"
        ),
    ),
    Card {
        // With an XDP program it receives by queues that it had not before.
        native: None,
        made: Made::ByQemu {
            device: virtio!(",mq=on,vectors=18"),
            module: "virtio_net",
            iommu: false,
            cable: Cable::Taps(8),
        },
        ..virtio("virtio-8q", "the same with more pairs of queues than processors", "")
    },
    Card {
        name: "vhost-user",
        about: "virtio-net with two pairs of queues, on a switch of the host's",
        made: Made::ByQemu {
            device: virtio!(",mq=on,vectors=6"),
            module: "virtio_net",
            iommu: false,
            cable: Cable::Switch(2),
        },
        ..VIRTIO
    },
    Card {
        name: "stream",
        about: "virtio-net on a switch of the host's, by a stream",
        made: Made::ByQemu {
            device: virtio!(""),
            module: "virtio_net",
            iommu: false,
            cable: Cable::Streams,
        },
        ..VIRTIO
    },
    Card {
        name: "e1000e",
        about: "Intel 82574, whose driver has no XDP",
        made: Made::ByQemu {
            device: "e1000e",
            module: "e1000e",
            iommu: false,
            cable: Cable::Sockets,
        },
        cpus: 2,
        native: None,
        zero_copy: None,
    },
    old("e1000", "Intel 82540EM", "e1000", "e1000"),
    old("rtl8139", "Realtek 8139", "rtl8139", "8139cp"),
    Card {
        name: "vmxnet3",
        about: "VMware's",
        made: Made::ByQemu {
            device: "vmxnet3",
            module: "vmxnet3",
            iommu: false,
            cable: Cable::Sockets,
        },
        cpus: 2,
        native: version(6, 6),
        zero_copy: None,
    },
    Card {
        native: version(4, 19),
        ..soft(
            "veth",
            "a pair of virtual interfaces, two queues",
            "ip link add near numrxqueues 2 numtxqueues 2 address $NEAR type veth \
             peer name far numrxqueues 2 numtxqueues 2 address $FAR netns $FAR_NETNS",
        )
    },
    soft(
        "vlan",
        "a VLAN of veth",
        above!(
            "ip link add link low name near mtu 1500 address $NEAR type vlan id 7
             far link add link low name far mtu 1500 address $FAR type vlan id 7"
        ),
    ),
    soft(
        "bond",
        "a bond of veth",
        above!(
            "plain_far; ip link add near type bond mode active-backup miimon 100
             ip link set low down; ip link set low mtu 1500 address $NEAR; ip link set low master near"
        ),
    ),
    soft(
        "macvlan",
        "a macvlan of veth",
        above!(
            "plain_far; ip link add link low name near mtu 1500 address $NEAR type macvlan mode bridge"
        ),
    ),
    soft(
        "ipvlan",
        "an ipvlan of veth, in the mode l2",
        above!(
            "plain_far; ip link set low address $NEAR
             ip link add link low name near mtu 1500 type ipvlan mode l2"
        ),
    ),
    soft(
        "bridge",
        "a bridge with veth in it",
        above!(
            "plain_far; ip link add near address $NEAR type bridge
             ip link set low master near; ip link set near mtu 1500"
        ),
    ),
    soft(
        "vxlan",
        "VXLAN over veth",
        above!(
            "ip addr add 10.6.0.1/24 dev low; far addr add 10.6.0.2/24 dev low
             ip link add near mtu 1500 address $NEAR type vxlan id 7 dstport 4789 local 10.6.0.1 remote 10.6.0.2
             far link add far mtu 1500 address $FAR type vxlan id 7 dstport 4789 local 10.6.0.2 remote 10.6.0.1"
        ),
    ),
    soft(
        "geneve",
        "GENEVE over veth",
        above!(
            "ip addr add 10.6.0.1/24 dev low; far addr add 10.6.0.2/24 dev low
             ip link add near mtu 1500 address $NEAR type geneve id 7 remote 10.6.0.2
             far link add far mtu 1500 address $FAR type geneve id 7 remote 10.6.0.1"
        ),
    ),
    soft(
        "qinq",
        "a VLAN in a service VLAN of veth",
        above!(
            "ip link add link low name outer mtu 9000 type vlan proto 802.1ad id 5; ip link set outer up
             far link add link low name outer mtu 9000 type vlan proto 802.1ad id 5; far link set outer up
             ip link add link outer name near mtu 1500 address $NEAR type vlan id 7
             far link add link outer name far mtu 1500 address $FAR type vlan id 7"
        ),
    ),
    soft(
        "bond-lacp",
        "a bond of two veths by LACP",
        above!(
            "ip link add low2 mtu 9100 type veth peer name low2 mtu 9100 netns $FAR_NETNS
             ip link add near address $NEAR type bond mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4
             far link add far address $FAR type bond mode 802.3ad miimon 100 lacp_rate fast
             for member in low low2; do
                 ip link set $member down; ip link set $member master near
                 far link set $member down; far link set $member master far
             done
             ip link set near mtu 1500; far link set far mtu 1500"
        ),
    ),
    soft(
        "bridge-vlans",
        "a bridge that filters VLANs, with veth in it",
        above!(
            "plain_far; ip link add near address $NEAR type bridge vlan_filtering 1
             ip link set low master near; ip link set near mtu 1500"
        ),
    ),
    soft(
        "gretap",
        "Ethernet in GRE over veth",
        above!(
            "ip addr add 10.6.0.1/24 dev low; far addr add 10.6.0.2/24 dev low
             ip link add near mtu 1500 address $NEAR type gretap local 10.6.0.1 remote 10.6.0.2
             far link add far mtu 1500 address $FAR type gretap local 10.6.0.2 remote 10.6.0.1"
        ),
    ),
    soft(
        "macsec",
        "MACsec over veth",
        above!(
            "one=11111111111111111111111111111111 two=22222222222222222222222222222222
             ip link set low address $NEAR; far link set low address $FAR
             ip link add link low name near mtu 1500 type macsec encrypt on
             far link add link low name far mtu 1500 type macsec encrypt on
             ip macsec add near tx sa 0 pn 1 on key 01 $one
             ip macsec add near rx port 1 address $FAR
             ip macsec add near rx port 1 address $FAR sa 0 pn 1 on key 02 $two
             ip -n $FAR_NETNS macsec add far tx sa 0 pn 1 on key 02 $two
             ip -n $FAR_NETNS macsec add far rx port 1 address $NEAR
             ip -n $FAR_NETNS macsec add far rx port 1 address $NEAR sa 0 pn 1 on key 01 $one"
        ),
    ),
];

/// Before, a program has no AF_XDP socket.
const MAPS_BOUND: Version = Version { major: 6, minor: 4 };

impl Card {
    /// The card of that name.
    pub fn named(name: &str) -> Option<Card> {
        CARDS.into_iter().find(|card| card.name == name)
    }

    /// Whether programs can have the mode on that kernel: its driver has it, and the kernel maps the rings of a
    /// socket that is bound.
    pub fn has(&self, mode: NicMode, kernel: Version) -> bool {
        let since = match mode {
            NicMode::ZeroCopy => self.zero_copy,
            NicMode::Copy => self.native,
            // It drops what AF_XDP sends.
            NicMode::Generic if self.name == "gretap" => None,
            NicMode::Generic => Some(MAPS_BOUND),
            NicMode::Packet => return true,
        };
        since.is_some_and(|since| since.max(MAPS_BOUND) <= kernel)
    }
}
