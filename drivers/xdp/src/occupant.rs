//! Who holds an interface's XDP hook: for the error message alone.

use std::fmt;
use std::io;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::AttachMode;
use crate::sys;

/// An XDP program of someone else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    pub mode: AttachMode,
    /// The kernel's id of the program, as `bpftool prog` shows it.
    pub id: u32,
    /// The program's name; needs CAP_SYS_ADMIN to be read.
    pub name: Option<String>,
}

impl Occupant {
    /// How to be rid of it.
    pub(crate) fn remedy(&self, interface: &str) -> String {
        let mode = match self.mode {
            AttachMode::Native => "xdpdrv",
            AttachMode::Generic => "xdpgeneric",
        };
        format!(
            "detach it with `ip link set dev {interface} {mode} off`, or, when a link holds it, end \
             the program that owns it"
        )
    }
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "another XDP program ({} mode, id {}", self.mode, self.id)?;
        if let Some(name) = &self.name {
            write!(f, ", {name:?}")?;
        }
        write!(f, ")")
    }
}

const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const NESTED_MASK: u16 = 0x3fff;

/// The program on the hook of interface `index`, if there is one.
pub(crate) fn occupant(index: u32) -> io::Result<Option<Occupant>> {
    let answer = link_message(index)?;
    // `struct nlmsghdr` and `struct ifinfomsg`, 16 bytes each, then attributes.
    let xdp = find(answer.get(32..).unwrap_or_default(), libc::IFLA_XDP).unwrap_or_default();
    let modes =
        [(IFLA_XDP_DRV_PROG_ID, AttachMode::Native), (IFLA_XDP_SKB_PROG_ID, AttachMode::Generic)];
    Ok(modes.into_iter().find_map(|(attribute, mode)| {
        let id = u32::from_ne_bytes(find(xdp, attribute)?.try_into().ok()?);
        Some(Occupant { mode, id, name: sys::program_name(id).ok().filter(|n| !n.is_empty()) })
    }))
}

/// One `RTM_GETLINK` and its answer. Protocol 0, hence `None`, is NETLINK_ROUTE.
fn link_message(index: u32) -> io::Result<Vec<u8>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut request = [0u8; 32];
    request[0..4].copy_from_slice(&32u32.to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    request[20..24].copy_from_slice(&index.to_ne_bytes());
    send(&socket, &request, SendFlags::empty())?;
    let mut answer = vec![0u8; 32 << 10];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(length);
    Ok(answer)
}

/// The payload of the first attribute of `kind`: length and kind (16 bits each), payload, padding
/// to four bytes.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = u16::from_ne_bytes(attributes.get(0..2)?.try_into().ok()?) as usize;
        let this = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?) & NESTED_MASK;
        let payload = attributes.get(4..length)?;
        if this == kind {
            return Some(payload);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn attributes_are_found_and_bad_ones_end_the_search() {
        let list = [5, 0, 1, 0, 9, 0, 0, 0, 8, 0, 2, 0x80, 1, 2, 3, 4];
        assert_eq!(find(&list, 1), Some(&[9][..]));
        assert_eq!(find(&list, 2), Some(&[1, 2, 3, 4][..]));
        assert_eq!(find(&list, 3), None);
        assert_eq!(find(&[0, 0, 1, 0], 1), None);
        assert_eq!(find(&[200, 0, 1, 0], 1), None);
        assert_eq!(find(&[], 1), None);
    }
}
