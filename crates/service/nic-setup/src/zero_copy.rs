//! What zero-copy takes: buffers that hold what a driver receives; and why a kernel refuses it.
//!
//! A driver that is given chunks of memory to receive into has less of each than the chunk: in front the
//! kernel keeps [`RX_HEADROOM`] bytes; behind, on newer kernels, `struct skb_shared_info` for
//! frames of several chunks (`xsk_pool_get_rx_frame_size`, `include/net/xdp_sock_drv.h`); and what is
//! left a card may count in units of its own: igb, as the largest, in KiB (`SRRCTL.BSIZEPKT`). A frame
//! that does not fit is lost in the card, mostly without a count. The memory of a page is what
//! every driver was made for.

use ringway_xdp::{RX_HEADROOM, VLAN_TAG};
use rustix::io::Errno;

use crate::Interface;

/// Bytes of a chunk that hold a frame of every driver, with the MTU of Ethernet and more.
pub const ZERO_COPY_CHUNK: u32 = 4096;

/// `struct skb_shared_info`, with the padding to a cache line.
const KEPT_BEHIND: u32 = 320;
/// The largest unit that a card counts a buffer's size in.
const UNIT: u32 = 1024;
/// What comes on top of a frame as the MTU allows it: two VLAN tags, the check sequence, and in front the timestamp
/// that a card may write there (igb, igc and tsnep have up to 16 bytes).
const ON_TOP: u32 = 2 * VLAN_TAG + 4 + 16;

/// Bytes of the longest frame, without VLAN tags, that a chunk of `size` bytes holds under every driver.
pub fn zero_copy_room(size: u32) -> u32 {
    let left = size.saturating_sub(RX_HEADROOM + KEPT_BEHIND);
    (left / UNIT * UNIT).saturating_sub(ON_TOP)
}

/// Why an interface's frames do not fit chunks of `size` bytes, where each has one chunk.
pub(crate) fn too_small(interface: &Interface, size: u32) -> Option<String> {
    let (room, longest) = (zero_copy_room(size), interface.longest_frame());
    if longest <= room {
        return None;
    }
    let remedy = if longest <= zero_copy_room(ZERO_COPY_CHUNK) {
        format!("open it with @buffers={ZERO_COPY_CHUNK}")
    } else {
        format!("set an MTU of {} or less", zero_copy_room(ZERO_COPY_CHUNK) - 14)
    };
    Some(format!(
        "its frames have up to {longest} bytes, and buffers of {size} hold {room} of what every driver \
         receives; {remedy}"
    ))
}

/// What the driver of an interface says by refusing zero-copy; of frames of several chunks, if so: the kernel refuses
/// these where the driver has one chunk for each.
pub(crate) fn refusal_of(interface: &Interface, size: u32, frags: bool, errno: Errno) -> String {
    let is_of_frags = frags && interface.zero_copy && errno == Errno::OPNOTSUPP;
    let too_small = if is_of_frags { too_small(interface, size) } else { None };
    too_small.unwrap_or_else(|| refusal(interface, errno))
}

/// The same, of frames of any length.
pub(crate) fn refusal(interface: &Interface, errno: Errno) -> String {
    let Interface { name, driver, .. } = interface;
    match (errno, driver.as_str()) {
        (Errno::OPNOTSUPP, "") => "it has no driver with zero-copy".into(),
        (Errno::OPNOTSUPP, _) => format!("its driver, {driver}, has no zero-copy"),
        // `virtnet_xsk_pool_enable`: the device's memory is mapped by the driver, not by virtio.
        (Errno::INVAL, "virtio_net") => {
            "virtio-net needs a device behind an IOMMU, which has it use DMA addresses (QEMU: \
             iommu_platform=on)"
                .into()
        }
        // Of a queue that cannot be set up anew, and of buffers for long frames.
        (Errno::NOENT, "virtio_net") => format!(
            "virtio-net needs queues that the machine's monitor can reset (VIRTIO_F_RING_RESET, which QEMU has \
             for taps and user networking, not for vhost-user), and mergeable buffers, or an MTU of 1500 and no \
             receive offloads (`ethtool -K {name} lro off gro-hw off`)"
        ),
        (Errno::INVAL, _) => format!(
            "its driver, {driver}, takes no such memory or queue as it is set up now; the kernel's log may \
             tell why (`dmesg`)"
        ),
        (Errno::NOMEM | Errno::NOBUFS, _) => "the kernel has no memory for it".into(),
        _ => format!("its driver, {driver}, refuses it: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By what Linux 7.2 was seen to receive: igb has 1024 of a chunk of 2048, virtio-net 1472.
    #[test]
    fn a_page_holds_a_frame_and_half_a_page_does_not() {
        assert!(zero_copy_room(2048) < 1024);
        assert!(zero_copy_room(4096) >= 1514);
    }

    /// A driver with zero-copy, for frames of one chunk, is not said to have none.
    #[test]
    fn long_frames_are_refused_with_the_mtu_that_would_do() {
        let interface = |zero_copy, mtu| Interface {
            name: "e0".into(),
            index: 7,
            mtu,
            mac: [2; 6],
            ethernet: true,
            has_headers: true,
            up: true,
            rx_queues: 1,
            tx_queues: 1,
            driver: "igb".into(),
            software: false,
            zero_copy,
        };
        let says = |interface: &Interface, frags| {
            refusal_of(interface, ZERO_COPY_CHUNK, frags, Errno::OPNOTSUPP)
        };
        let room = zero_copy_room(ZERO_COPY_CHUNK);
        let long = says(&interface(true, 9000), true);
        assert!(long.ends_with(&format!("set an MTU of {} or less", room - 14)), "{long}");
        let none = "its driver, igb, has no zero-copy";
        assert_eq!(says(&interface(false, 9000), true), none);
        assert_eq!(says(&interface(true, 9000), false), none);
        assert_eq!(says(&interface(true, 1500), true), none);
    }

    proptest! {
        /// With tags, check sequence, timestamp and what the kernel keeps it is within the chunk.
        #[test]
        fn what_fits_fits(size in 0u32..1 << 20) {
            let room = zero_copy_room(size);
            prop_assert!(room == 0 || room + 28 + 320 + 256 <= size);
            prop_assert!(room == 0 || (room + 28).is_multiple_of(1024));
        }
    }
}
