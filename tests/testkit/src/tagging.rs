//! VLAN tags beside frames, as an 802.1Q device leaves them to hardware: what the kernel knows of a frame,
//! and its data does not say.

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, netdevice::name_to_index, socket};

use crate::{
    Netns,
    sys::{Tagger, detach},
};

/// A program at an interface that gives frames a tag, or takes it; dropping it ends that.
pub struct Tagging {
    link: OwnedFd,
}

impl Drop for Tagging {
    fn drop(&mut self) {
        // To close the link is not enough: a process that another test is just starting has a copy of it until
        // it executes its program.
        if let Err(e) = detach(&self.link) {
            eprintln!("tags go on: {e}");
        }
    }
}

impl Netns {
    /// Gives every frame that the stack or a packet socket sends through `interface` from now on a tag
    /// of this kind (0x8100 or 0x88a8) and value, outside those that it has.
    ///
    /// What AF_XDP sockets send does not come by.
    pub fn tag(&self, interface: &str, kind: u16, value: u16) -> Tagging {
        let ifindex = self.ifindex(interface);
        let attach = || Tagger::load(kind, value)?.attach(ifindex);
        let link = self.enter(attach);
        Tagging { link: link.unwrap_or_else(|e| panic!("{interface}: no tags: {e}")) }
    }

    /// Takes the tag off every frame that comes by `interface` from now on.
    pub fn untag(&self, interface: &str) -> Tagging {
        let ifindex = self.ifindex(interface);
        let attach = || Tagger::untagger()?.attach(ifindex);
        let link = self.enter(attach);
        Tagging { link: link.unwrap_or_else(|e| panic!("{interface}: tags stay: {e}")) }
    }

    /// The number of an interface here.
    pub fn ifindex(&self, interface: &str) -> u32 {
        self.enter(|| find(interface)).unwrap_or_else(|e| panic!("{interface}: {e}"))
    }
}

/// The number of an interface in the calling thread's namespace.
pub(crate) fn find(interface: &str) -> rustix::io::Result<u32> {
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    name_to_index(&socket, interface)
}
