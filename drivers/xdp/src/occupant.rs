//! Who holds an interface's XDP hook: for the error message alone.

use std::fmt;
use std::io;

use crate::AttachMode;
use crate::rtnl::{Message, find};
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

/// The program on the hook of interface `index`, if there is one.
pub(crate) fn occupant(index: u32) -> io::Result<Option<Occupant>> {
    let link = Message::new(libc::RTM_GETLINK, 0, index).ask()?;
    let xdp = find(&link, libc::IFLA_XDP).unwrap_or_default();
    let modes =
        [(IFLA_XDP_DRV_PROG_ID, AttachMode::Native), (IFLA_XDP_SKB_PROG_ID, AttachMode::Generic)];
    Ok(modes.into_iter().find_map(|(attribute, mode)| {
        let id = u32::from_ne_bytes(find(xdp, attribute)?.try_into().ok()?);
        Some(Occupant { mode, id, name: sys::program_name(id).ok().filter(|n| !n.is_empty()) })
    }))
}
