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
    /// The kernel's module.
    pub module: &'static str,
    /// QEMU's device with its options; `None` for interfaces that the guest makes.
    pub device: Option<&'static str>,
    /// Processors of the guest: igb has a queue for each.
    pub cpus: u32,
    /// Whether the guest has an IOMMU.
    pub iommu: bool,
    /// The first kernel whose driver has native XDP, and zero copy.
    native: Option<Version>,
    zero_copy: Option<Version>,
}

/// Offloads that change frames on the way are off: the checks compare frames byte by byte.
macro_rules! virtio {
    ($options:literal) => {
        concat!(
            "virtio-net-pci,guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_csum=off,",
            $options
        )
    };
}

const fn version(major: u32, minor: u32) -> Option<Version> {
    Some(Version { major, minor })
}

/// All kinds.
pub const CARDS: [Card; 7] = [
    Card {
        name: "igb",
        about: "Intel 82576, two queues",
        module: "igb",
        device: Some("igb"),
        cpus: 2,
        iommu: false,
        native: version(5, 10),
        zero_copy: version(6, 14),
    },
    Card {
        name: "igb-4q",
        about: "Intel 82576, four queues",
        module: "igb",
        device: Some("igb"),
        cpus: 4,
        iommu: false,
        native: version(5, 10),
        zero_copy: version(6, 14),
    },
    Card {
        name: "virtio-iommu",
        about: "virtio-net behind an IOMMU, which zero copy takes",
        module: "virtio_net",
        device: Some(virtio!("iommu_platform=on,ats=on,disable-legacy=on")),
        cpus: 2,
        iommu: true,
        native: version(4, 10),
        zero_copy: version(6, 11),
    },
    Card {
        name: "virtio",
        about: "virtio-net as hypervisors offer it by default",
        module: "virtio_net",
        device: Some(virtio!("disable-legacy=on")),
        cpus: 2,
        iommu: false,
        native: version(4, 10),
        zero_copy: None,
    },
    Card {
        name: "e1000e",
        about: "Intel 82574, whose driver has no XDP",
        module: "e1000e",
        device: Some("e1000e"),
        cpus: 2,
        iommu: false,
        native: None,
        zero_copy: None,
    },
    Card {
        name: "vmxnet3",
        about: "VMware's",
        module: "vmxnet3",
        device: Some("vmxnet3"),
        cpus: 2,
        iommu: false,
        native: version(6, 6),
        zero_copy: None,
    },
    Card {
        name: "veth",
        about: "a pair of virtual interfaces",
        module: "veth",
        device: None,
        cpus: 2,
        iommu: false,
        native: version(4, 19),
        zero_copy: None,
    },
];

impl Card {
    /// The card of that name.
    pub fn named(name: &str) -> Option<Card> {
        CARDS.into_iter().find(|card| card.name == name)
    }

    /// Whether the driver has the mode on that kernel.
    pub fn has(&self, mode: NicMode, kernel: Version) -> bool {
        let since = match mode {
            NicMode::ZeroCopy => self.zero_copy,
            NicMode::Copy => self.native,
            _ => return true,
        };
        since.is_some_and(|since| since <= kernel)
    }
}
