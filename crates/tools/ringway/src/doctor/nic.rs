//! What to expect of each network interface: which modes it can be driven in, by what is known of its
//! driver. Nothing is tried out, for that would change the interface.

use super::check::{Check, Need, version};
use crate::filter::ranges;

/// An interface as sysfs shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    pub name: String,
    /// The driver's name, or the kind of a virtual interface (`veth`, `tun`, `bridge` …).
    pub driver: String,
    /// Whether its frames have Ethernet headers; they have where that is not known.
    pub has_headers: bool,
    pub rx_queues: usize,
    pub tx_queues: usize,
}

/// A driver, and about the first kernel whose version of it can do zero copy.
struct Driver(&'static str, Option<(u32, u32)>);

/// Drivers that are known to have native XDP, by the names that sysfs uses.
///
/// A hint for the choice of hardware, not checked card by card: vendors' kernels differ, and
/// so do models. What a port really got is found out when it is opened; `ringway ports` says it.
const NATIVE: [Driver; 31] = [
    Driver("bnxt_en", None),
    Driver("ena", None),
    Driver("fec", None),
    Driver("fsl_dpaa2_eth", Some((6, 2))),
    Driver("fsl_enetc", None),
    Driver("gve", Some((6, 4))),
    Driver("hv_netvsc", None),
    Driver("i40e", Some((4, 20))),
    Driver("ice", Some((5, 5))),
    Driver("igb", Some((6, 14))),
    Driver("igc", Some((5, 14))),
    Driver("ionic", None),
    Driver("ixgbe", Some((4, 20))),
    Driver("ixgbevf", None),
    Driver("mana", None),
    Driver("mlx4_core", None),
    Driver("mlx5_core", Some((5, 3))),
    Driver("mvneta", None),
    Driver("mvpp2", None),
    Driver("nfp", Some((5, 18))),
    Driver("octeontx2-nicpf", Some((6, 15))),
    Driver("qede", None),
    Driver("sfc", None),
    Driver("thunder-nicvf", None),
    Driver("tsnep", Some((6, 3))),
    Driver("tun", None),
    Driver("veth", None),
    Driver("virtio_net", Some((6, 13))),
    Driver("vmxnet3", None),
    Driver("dwmac-intel", Some((5, 13))),
    Driver("intel-eth-pci", Some((5, 13))),
];

/// Drivers among them that tell XDP programs the VLAN tags that are not in frames, from Linux 6.8 on;
/// and those that take none out.
const TELL_TAGS: [&str; 3] = ["ice", "mlx5_core", "veth"];
const LEAVE_TAGS: [&str; 1] = ["tun"];

/// What becomes of tags.
fn tags(Nic { name, driver, .. }: &Nic, release: &str) -> String {
    let is_among = |drivers: &[&str]| drivers.contains(&driver.as_str());
    if is_among(&LEAVE_TAGS) {
        return String::new();
    }
    if !is_among(&TELL_TAGS) {
        return format!(
            "; VLAN tags that it takes out of frames are lost, but in packet mode, or with \
             `ethtool -K {name} rxvlan off`"
        );
    }
    let modes =
        if version(release) >= Some((6, 8)) { "in generic mode" } else { "but in packet mode" };
    format!("; VLAN tags beside frames are lost {modes}")
}

/// What to do about generic XDP: between network namespaces an interface of another kind can have native XDP.
fn slower(driver: &str) -> &'static str {
    match driver {
        "netkit" | "macvlan" | "ipvlan" => {
            "expect the slower generic XDP, as `ringway ports` will tell; where that is too slow, a veth pair has native \
             XDP"
        }
        _ => {
            "expect the slower generic XDP, as `ringway ports` will tell; where that is too slow, take a card whose \
             driver has native XDP"
        }
    }
}

/// Says how packets of this interface will travel, from its driver's name and the kernel release.
pub fn check(nic: &Nic, release: &str) -> Check {
    let Nic { name, driver, has_headers, rx_queues, tx_queues } = nic;
    let queues = match (rx_queues, tx_queues) {
        // Every interface has some, where sysfs shows it.
        (0, 0) => format!("{driver}, queues not known (/sys shows another network namespace)"),
        (rx, tx) => format!("{driver}, {rx} rx and {tx} tx queues"),
    };
    if !has_headers {
        return Check::warning(
            Need::Nics,
            name,
            format!("{queues}: no Ethernet interface, so it cannot be opened"),
            "use one that `ip link` shows as link/ether",
        );
    }
    let tags = tags(nic, release);
    match NATIVE.iter().find(|native| native.0 == driver) {
        Some(Driver(_, Some(since))) if version(release) >= Some(*since) => {
            let modes = "modes perhaps zerocopy, copy, generic, packet";
            Check::ok(Need::Nics, name, format!("{queues}: native XDP; {modes}{tags}"))
        }
        Some(_) => {
            let modes = "modes copy, generic, packet";
            Check::ok(Need::Nics, name, format!("{queues}: native XDP; {modes}{tags}"))
        }
        None => Check::warning(
            Need::Nics,
            name,
            format!("{queues}: not known to have native XDP; modes generic, packet{tags}"),
            slower(driver),
        ),
    }
}

/// What the device of an open port has counted since.
pub fn losses(port: &str, counters: &str) -> Check {
    Check::warning(
        Need::Information,
        port,
        format!("since it was opened as a port, its device counts {counters}"),
        "`ringway ports --rings` shows whether its programs read too slowly; other counters are explained by \
         the driver's documentation, and a frame may be in several",
    )
}

/// Queues of an open port's interface that it has no rings for.
pub fn added_queues(port: &str, queues: &[u32]) -> Check {
    let queues = ranges(queues);
    Check::warning(
        Need::Information,
        port,
        format!(
            "queues without a ring: {queues}; they were added after it was opened, and what they receive goes to \
             the stack"
        ),
        "close it in all programs, and open it again, or attach it again; or `ethtool -L` with as many queues as \
         it had",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::Level;
    use super::*;

    fn nic(driver: &str) -> Nic {
        let (name, driver) = ("eth9".into(), driver.into());
        Nic { name, driver, has_headers: true, rx_queues: 2, tx_queues: 1 }
    }

    #[test]
    fn zero_copy_depends_on_the_kernel() {
        let new = check(&nic("igc"), "6.1.0");
        assert!(new.detail.starts_with(
            "igc, 2 rx and 1 tx queues: native XDP; modes perhaps zerocopy, copy, generic, packet; "
        ));
        for (driver, release) in [("igc", "5.10.0"), ("igc", "?"), ("veth", "6.18.0")] {
            let detail = check(&nic(driver), release).detail;
            assert!(detail.contains("; modes copy, generic, packet; "), "{detail}");
        }
    }

    #[test]
    fn tags_depend_on_driver_and_kernel() {
        let detail = |driver, release| check(&nic(driver), release).detail;
        assert!(detail("veth", "6.8.0").ends_with("lost in generic mode"));
        assert!(detail("veth", "6.7.0").ends_with("lost but in packet mode"));
        assert!(detail("igc", "6.18.0").ends_with("`ethtool -K eth9 rxvlan off`"));
        assert!(!detail("tun", "6.18.0").contains("VLAN"));
    }

    /// Sysfs shows the network namespace that it was mounted in, which may be another one.
    #[test]
    fn queues_that_sysfs_does_not_show_are_not_said_to_be_none() {
        let detail = check(&Nic { rx_queues: 0, tx_queues: 0, ..nic("veth") }, "6.18.0").detail;
        assert!(detail.starts_with("veth, queues not known (/sys shows another"), "{detail}");
    }

    #[test]
    fn what_has_no_ethernet_headers_has_no_modes() {
        let said = check(&Nic { has_headers: false, ..nic("sit") }, "6.18.0");
        assert_eq!(said.level, Level::Warning);
        assert!(said.detail.ends_with("no Ethernet interface, so it cannot be opened"), "{said:?}");
    }

    #[test]
    fn an_unknown_driver_is_a_warning() {
        assert_eq!(check(&nic("e1000"), "6.18.0").level, Level::Warning);
        assert_eq!(check(&nic("veth"), "6.18.0").level, Level::Ok);
    }

    #[test]
    fn what_is_no_card_is_not_to_be_replaced_by_one() {
        for (driver, other) in [("e1000", "a card"), ("netkit", "a veth pair")] {
            let remedy = check(&nic(driver), "6.18.0").remedy.unwrap_or_default();
            assert!(remedy.contains(&format!("{other} ")), "{driver}: {remedy}");
        }
    }
}
