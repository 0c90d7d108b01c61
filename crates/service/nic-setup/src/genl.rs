//! Generic netlink, and what the kernel tells of an interface by its family `netdev`
//! (`Documentation/netlink/specs/netdev.yaml`).

use std::io;

use rustix::net::netlink::GENERIC;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::netlink::{ERROR, find, messages};

/// Of `struct nlmsghdr` and `struct genlmsghdr`.
const HEADERS: usize = 20;
pub(crate) const GENERAL_HEADER: usize = 4;

/// The family that knows the others (`linux/genetlink.h`).
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const FAMILY_GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;

/// Of the family `netdev` (`linux/netdev.h`).
const DEV_GET: u8 = 1;
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;
const DEV_XDP_ZC_MAX_SEGS: u16 = 4;
const DEV_XDP_RX_METADATA: u16 = 5;
/// What a driver has that takes the memory of AF_XDP sockets: programs, redirection, the sockets.
const FEATURES_ZERO_COPY: u64 = 1 | 2 | 8;
const METADATA_TIMESTAMP: u64 = 1;
const METADATA_VLAN_TAG: u64 = 4;

/// Whether the driver tells XDP programs when the hardware has received a frame. Kernels before 6.7 do
/// not say: then it may.
pub fn tells_rx_time(ifindex: u32) -> bool {
    metadata(ifindex).unwrap_or(METADATA_TIMESTAMP) & METADATA_TIMESTAMP != 0
}

/// Whether it tells them the VLAN tag that is not in the frame. Kernels that do not say have no way to ask
/// it.
pub fn tells_vlan_tags(ifindex: u32) -> bool {
    metadata(ifindex).unwrap_or(0) & METADATA_VLAN_TAG != 0
}

/// Whether the driver can read and write the memory of AF_XDP sockets itself. Kernels before 6.3 do not
/// say.
pub fn takes_zero_copy(ifindex: u32) -> Option<bool> {
    let features = number(ifindex, DEV_XDP_FEATURES)?;
    Some(features & FEATURES_ZERO_COPY == FEATURES_ZERO_COPY)
}

/// Descriptors that a packet to be sent in zero copy may have. `None`: the driver has no zero copy, or the kernel does
/// not say: before 6.6 it takes one.
pub fn zero_copy_segments(ifindex: u32) -> Option<u32> {
    let segments = number(ifindex, DEV_XDP_ZC_MAX_SEGS)?;
    u32::try_from(segments).ok().filter(|segments| *segments > 0)
}

fn metadata(ifindex: u32) -> Option<u64> {
    number(ifindex, DEV_XDP_RX_METADATA)
}

/// What an attribute of a device says; `None`: the kernel does not tell.
fn number(ifindex: u32, attribute: u16) -> Option<u64> {
    let family = id_of(&family("netdev").ok()?)?;
    let device = ask(family, DEV_GET, DEV_IFINDEX, &ifindex.to_ne_bytes()).ok()?;
    value(find(&device, attribute)?)
}

/// A number as the kernel writes it, of 4 bytes or 8.
fn value(payload: &[u8]) -> Option<u64> {
    let long = || payload.try_into().ok().map(u64::from_ne_bytes);
    payload.try_into().ok().map(|short| u64::from(u32::from_ne_bytes(short))).or_else(long)
}

/// What the kernel tells of a family: attributes.
fn family(name: &str) -> io::Result<Vec<u8>> {
    ask(CONTROL, GET_FAMILY, FAMILY_NAME, format!("{name}\0").as_bytes())
}

fn id_of(family: &[u8]) -> Option<u16> {
    find(family, FAMILY_ID)?.try_into().ok().map(u16::from_ne_bytes)
}

/// The numbers of a family and of one of its groups of listeners.
pub(crate) fn family_with_group(name: &str, group: &str) -> io::Result<(u16, u32)> {
    let family = family(name)?;
    let id = || {
        let is_it = |of: &&[u8]| {
            find(of, GROUP_NAME)
                .is_some_and(|name| name.strip_suffix(&[0]) == Some(group.as_bytes()))
        };
        let of = list(find(&family, FAMILY_GROUPS)?).find(is_it)?;
        Some(u32::from_ne_bytes(find(of, GROUP_ID)?.try_into().ok()?))
    };
    Ok((id_of(&family).zip(id())).ok_or(io::ErrorKind::Unsupported)?)
}

/// The payloads of the attributes of a list, in which a kind is no more than a place.
fn list(mut attributes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?) as usize;
        let payload = attributes.get(4..length)?;
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(payload)
    })
}

/// An attribute, with the padding behind it.
pub(crate) fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + payload.len().next_multiple_of(4));
    bytes.extend((4 + payload.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A question with one attribute.
pub(crate) fn request(family: u16, command: u8, kind: u16, payload: &[u8]) -> Vec<u8> {
    let attribute = attribute(kind, payload);
    let length = HEADERS + attribute.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // Number and sender of the message, of which there is but one.
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(attribute);
    bytes
}

/// Asks it in the calling thread's network namespace; the attributes of the answer.
fn ask(family: u16, command: u8, kind: u16, payload: &[u8]) -> io::Result<Vec<u8>> {
    let bytes = request(family, command, kind, payload);
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(GENERIC))?;
    send(&socket, &bytes, SendFlags::empty())?;
    let mut answer = vec![0; 32 << 10];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(length);
    attributes(&answer)
}

/// The attributes of an answer.
pub(crate) fn attributes(answer: &[u8]) -> io::Result<Vec<u8>> {
    match messages(answer).next() {
        Some((kind, body)) if kind != ERROR => {
            Ok(body.get(GENERAL_HEADER..).unwrap_or_default().to_vec())
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests {
    use ringway_testkit::{Netns, isolate_thread, skip_without_root};

    use super::*;
    use crate::Interface;

    #[test]
    fn numbers_have_four_bytes_or_eight() {
        assert_eq!(value(&8u32.to_ne_bytes()), Some(8));
        assert_eq!(value(&(7u64 << 33).to_ne_bytes()), Some(7 << 33));
        assert_eq!([&[][..], &[1; 3], &[1; 9]].map(value), [None; 3]);
    }

    #[test]
    fn a_driver_says_whether_it_takes_memory() {
        if skip_without_root("a_driver_says_whether_it_takes_memory") {
            return;
        }
        isolate_thread();
        Netns::root().run("ip link add n0 type veth peer name n1");
        let index = Interface::by_name("n0").unwrap().index;
        let features = number(index, DEV_XDP_FEATURES);
        // A veth pair takes programs, on kernels that tell.
        assert!(features.is_none_or(|features| features & 3 == 3), "{features:?}");
        assert_eq!(takes_zero_copy(index), features.map(|_| false));
        assert_eq!(takes_zero_copy(u32::MAX >> 1), None);
        // Only drivers with zero-copy say how many descriptors they take there.
        assert_eq!(zero_copy_segments(index), None);
        // The interface itself is told by a number of 4 bytes.
        let itself = number(index, DEV_IFINDEX);
        assert!(itself.is_none_or(|itself| itself == u64::from(index)), "{itself:?}");
        assert_eq!(itself.is_some(), features.is_some());
    }
}
