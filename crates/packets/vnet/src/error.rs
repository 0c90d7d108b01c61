//! What cannot be done with a frame.

/// Longest frame that [`consume`](crate::consume()) takes, in bytes: IP's longest packet with an Ethernet header
/// and two VLAN tags.
pub const MAX_FRAME: usize = 65535 + 14 + 2 * 4;

/// Why a frame cannot be given to somebody without virtio-net headers: it is to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the virtio-net header has an unknown flag or segmentation type")]
    BadHeader,
    #[error("the virtio-net header wants a checksum outside the frame")]
    BadChecksum,
    #[error("the frame is not of the kind that the virtio-net header wants segmented")]
    BadFrame,
    #[error("the virtio-net header wants more UDP datagrams than any stack puts into a frame")]
    TooMany,
    #[error("the segments do not fit the receiver's largest frame, or are too many")]
    NoRoom,
}
