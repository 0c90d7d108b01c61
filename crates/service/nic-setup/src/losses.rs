//! What an interface and its driver count: as lost, under their own names, and as received, before any XDP program,
//! filter or socket.
//!
//! The same lost frame may be in several counters, and in those of an AF_XDP socket: each layer counts what it
//! sees. So they are never added up.

use std::io;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

use crate::operation::{ReadLosses, ReadReceived};
use crate::privileges::unprivileged;
use crate::rtnl::{LinkAnswer, Message, TcHeader, find, link_by_index};
use crate::sys::ethtool::statistics;
use crate::{Error, Interface, helper};

/// Attribute of a link: `struct rtnl_link_stats64`.
const IFLA_STATS64: u16 = 23;

/// The place of what was received.
const RX_PACKETS: usize = 0;

/// Its counters that stand for losses, each with its place among the structure's numbers. `rx_nohandler` and
/// `rx_otherhost_dropped` are the stack's own.
const OF_INTERFACE: [(&str, usize); 14] = [
    ("rx_errors", 4),
    ("tx_errors", 5),
    ("rx_dropped", 6),
    ("tx_dropped", 7),
    ("rx_length_errors", 10),
    ("rx_over_errors", 11),
    ("rx_crc_errors", 12),
    ("rx_frame_errors", 13),
    ("rx_fifo_errors", 14),
    ("rx_missed_errors", 15),
    ("tx_aborted_errors", 16),
    ("tx_carrier_errors", 17),
    ("tx_fifo_errors", 18),
    ("tx_window_errors", 20),
];

/// What the interface's queueing discipline drops, which the interface does not count (`tc -s qdisc`).
const OF_QDISC: &str = "qdisc_dropped";

/// `struct tcmsg`: the discipline through which all goes that is sent.
const ROOT: u32 = 0xffff_ffff;
/// Attributes: its counters, and among these `struct gnet_stats_queue`.
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCounter {
    pub name: String,
    /// It is the driver's (`ethtool -S`); else it is among the interface's (`ip -s -s link`), or its queueing
    /// discipline's.
    pub driver: bool,
    pub count: u64,
}

/// Reads the counters of losses. A driver may take its time for that: some ask the card. Needs no privilege.
pub fn losses(interface: &Interface) -> Result<Vec<LossCounter>, Error> {
    let (name, index) = (interface.name.clone(), interface.index);
    helper::run_where_needed(ReadLosses { name, index })
}

pub(crate) fn losses_here(name: &str, index: u32) -> Result<Vec<LossCounter>, Error> {
    let ask = || -> io::Result<Vec<LossCounter>> {
        let link = link_by_index(index)?;
        let of_interface = OF_INTERFACE.iter().filter_map(|&(name, place)| {
            Some(LossCounter { name: name.into(), driver: false, count: counter(&link, place)? })
        });
        let mut all: Vec<_> = of_interface.collect();
        all.push(LossCounter {
            name: OF_QDISC.into(),
            driver: false,
            count: dropped_by_qdisc(index),
        });
        // It may have been renamed.
        let name = link.text(libc::IFLA_IFNAME).unwrap_or(name);
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        // Many drivers have none.
        let of_driver = unprivileged(|| statistics(socket.as_fd(), name))?.unwrap_or_default();
        let of_driver = of_driver.into_iter().filter(|(name, _)| is_loss(name));
        all.extend(of_driver.map(|(name, count)| LossCounter { name, driver: true, count }));
        Ok(all)
    };
    ask().map_err(Error::refused(
        name,
        "its counters cannot be read",
        "see `ip -s link show`, and the limit of open files",
    ))
}

/// Reads how many frames the interface has received (`rx_packets`). A driver may take its time for that: some ask the card. Needs no privilege.
pub fn received(interface: &Interface) -> Result<u64, Error> {
    let (name, index) = (interface.name.clone(), interface.index);
    helper::run_where_needed(ReadReceived { name, index })
}

pub(crate) fn received_here(name: &str, index: u32) -> Result<u64, Error> {
    let ask = || -> io::Result<u64> {
        let link = link_by_index(index)?;
        counter(&link, RX_PACKETS).ok_or_else(|| io::ErrorKind::InvalidData.into())
    };
    ask().map_err(Error::refused(
        name,
        "its counters cannot be read",
        "see `ip -s link show`, and the limit of open files",
    ))
}

/// The counter of a link at this place of `struct rtnl_link_stats64`.
fn counter(link: &LinkAnswer, place: usize) -> Option<u64> {
    let bytes = link.find(IFLA_STATS64)?.get(place * 8..place * 8 + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// 0 where there is no queueing discipline.
fn dropped_by_qdisc(index: u32) -> u64 {
    let root = TcHeader { index, parent: ROOT, ..TcHeader::default() };
    let count = || {
        let answer = Message::tc(libc::RTM_GETQDISC, 0, root).ask().ok()??;
        let counters = find(answer.get(TcHeader::LEN..)?, TCA_STATS2)?;
        // Waiting frames, their bytes, and dropped ones.
        let dropped = find(counters, TCA_STATS_QUEUE)?.get(8..12)?;
        dropped.try_into().ok().map(u32::from_ne_bytes)
    };
    count().map_or(0, u64::from)
}

/// How each counter has grown from `before` to `now`: those that have, each with its place in `before`, which
/// stays the same from one look to the next. A driver that has begun to count anew has counted since then what
/// it says now; of a counter that was not there before, nothing is known.
pub fn growth<'a>(
    before: &'a [LossCounter],
    now: &'a [LossCounter],
) -> impl Iterator<Item = (u32, LossCounter)> + 'a {
    (0..).zip(before).filter_map(|(place, before)| {
        let is_it = |it: &&LossCounter| (&it.name, it.driver) == (&before.name, before.driver);
        // Mostly they are all there, and a driver may have two of one name.
        let there = now.get(place as usize).filter(is_it);
        let now = there.or_else(|| now.iter().find(is_it))?;
        let count = now.count.checked_sub(before.count).unwrap_or(now.count);
        (count > 0).then(|| (place, LossCounter { count, ..now.clone() }))
    })
}

/// Whether a driver's counter stands for frames that are lost, or for what loses them, by its name. There is no
/// other mark; drivers name them alike, some with blanks.
fn is_loss(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase().replace(' ', "_");
    // Interrupts that say that frames are being lost (stmmac).
    const INTERRUPTS: [&str; 2] = ["buf_unav_irq", "overflow_irq"];
    // What is counted, but was received or sent all the same: checksums that were not found right, bits
    // that were corrected, interrupts, look-ups of pages and of flows.
    const HARMLESS: [&str; 8] =
        ["csum", "checksum", "correct", "lane", "irq", "cache", "fdir", "arfs"];
    const PARTS: [&str; 17] = [
        "drop",
        "discard",
        "no_buf",
        "nobuf",
        "no_dma",
        "no_mem",
        "no_space",
        "oob",
        "out_of_buf",
        "empty_rx",
        "overrun",
        "overflow",
        "exceeded",
        "oversize",
        "undersize",
        "too_big",
        "jabber",
    ];
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    let is_error = |word: &str| {
        ["err", "errs", "error", "errors", "miss", "missed"].iter().any(|end| word.ends_with(end))
    };
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    // Of frames beyond the usual sizes, these were good (stmmac).
    let is_good = name.ends_with("size_g");
    let lacks_memory = name.contains("alloc") && name.contains("fail");
    // Shorter than a frame may be, on the way in.
    let is_fragment = name.contains("rx") && words().any(|word| word == "fragments");
    has(&INTERRUPTS)
        || !has(&HARMLESS)
            && !is_good
            && (has(&PARTS) || lacks_memory || is_fragment || words().any(is_error))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn losses_are_known_by_their_names() {
        let losses: [(&str, &[&str]); 12] = [
            ("veth", &["rx_queue_0_drops", "rx_queue_0_xdp_drops", "tx_queue_0_xdp_xmit_errors"]),
            (
                "igb",
                &[
                    "rx_no_buffer_count",
                    "rx_long_length_errors",
                    "rx_missed_errors",
                    "dropped_smbus",
                ],
            ),
            ("igc", &["rx_queue_1_alloc_failed", "rx_queue_0_drops"]),
            (
                "ixgbe",
                &[
                    "alloc_rx_page_failed",
                    "alloc_rx_buff_failed",
                    "rx_no_dma_resources",
                    "rx_missed_errors",
                ],
            ),
            (
                "i40e",
                &[
                    "port.rx_crc_errors",
                    "port.rx_oversize",
                    "port.rx_undersize",
                    "port.rx_fragments",
                    "port.rx_jabber",
                    "rx_alloc_fail",
                ],
            ),
            (
                "mlx5",
                &[
                    "rx_out_of_buffer",
                    "rx_discards_phy",
                    "rx_oversize_pkts_phy",
                    "rx0_xsk_buff_alloc_err",
                ],
            ),
            ("virtio-net", &["rx0_drops", "tx0_xdp_tx_drops"]),
            (
                "ena",
                &[
                    "bw_in_allowance_exceeded",
                    "bw_out_allowance_exceeded",
                    "pps_allowance_exceeded",
                    "conntrack_allowance_exceeded",
                    "linklocal_allowance_exceeded",
                    "queue_0_rx_empty_rx_ring",
                    "queue_0_rx_dma_mapping_err",
                    "queue_0_rx_page_alloc_fail",
                ],
            ),
            (
                "vmxnet3",
                &[
                    "  pkts rx OOB",
                    "  rx buf alloc fail",
                    "  pkts rx discard",
                    "     drv dropped rx total",
                ],
            ),
            ("hv_netvsc", &["rx_no_memory", "tx_no_memory", "tx_no_space", "tx_too_big"]),
            ("stmmac", &["rx_buf_unav_irq", "rx_overflow_irq", "mmc_rx_jabber_error"]),
            ("others", &["InErrors", "alloc_rx_buff_failed_no_dma", "rx_jabbers"]),
        ];
        let harmless: [(&str, &[&str]); 10] = [
            ("veth", &["peer_ifindex", "rx_queue_0_xdp_packets", "rx_pp_recycle_ring_full"]),
            ("igb", &["rx_queue_0_csum_err", "tx_broadcast", "rx_long_byte_count"]),
            ("ixgbe", &["fdir_match", "fdir_miss", "fdir_overflow", "rx_csum_offload_errors"]),
            ("i40e", &["port.fdir_flush_cnt", "port.rx_size_big"]),
            ("mlx5", &["rx_err_lane_0_phy", "rx_corrected_bits_phy", "rx0_arfs_err"]),
            ("ena", &["conntrack_allowance_available", "queue_0_tx_unmask_interrupt"]),
            ("vmxnet3", &["  ucast pkts rx", "  LRO pkts rx", "  ring full"]),
            ("hv_netvsc", &["tx_busy", "wake_queue", "vf_rx_packets"]),
            ("stmmac", &["rx_early_irq", "fatal_bus_error_irq", "mmc_rx_oversize_g"]),
            (
                "others",
                &["interrupts", "rx_cache_miss", "permission", "tx_fragments", "alloc_pages"],
            ),
        ];
        for (names, expected) in [(&losses[..], true), (&harmless[..], false)] {
            for (driver, names) in names {
                for name in *names {
                    assert_eq!(is_loss(name), expected, "{driver}: {name}");
                }
            }
        }
    }

    #[test]
    fn growth_is_since_the_first_look() {
        let counter = |name: &str, count| LossCounter { name: name.into(), driver: true, count };
        let before = [counter("same", 3), counter("grown", 3), counter("anew", 9)];
        let now = [counter("same", 3), counter("grown", 5), counter("anew", 1), counter("new", 7)];
        let grown = |now: &[LossCounter]| growth(&before, now).collect::<Vec<_>>();
        assert_eq!(grown(&now), [(1, counter("grown", 2)), (2, counter("anew", 1))]);
        // The interface's are others.
        let of_interface = LossCounter { driver: false, ..counter("grown", 8) };
        assert_eq!(grown(&[of_interface]), []);
    }

    #[test]
    fn an_interface_tells_its_own() {
        let lo = Interface::by_name("lo").unwrap();
        let told = losses(&lo).unwrap();
        let names: Vec<_> = told.iter().map(|counter| counter.name.as_str()).collect();
        let expected: Vec<_> =
            OF_INTERFACE.iter().map(|(name, _)| *name).chain([OF_QDISC]).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn the_count_grows_with_what_is_received() {
        let lo = Interface::by_name("lo").unwrap();
        let before = received(&lo).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..3 {
            socket.send_to(b"frame", socket.local_addr().unwrap()).unwrap();
            socket.recv(&mut [0; 8]).unwrap();
        }
        assert!(received(&lo).unwrap() >= before + 3);
    }
}
