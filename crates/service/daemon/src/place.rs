//! Where something was that is to be set up again: a network namespace, by the number that the kernel
//! gives no other while the machine runs.
//!
//! A namespace is found again if it is the daemon's own, has a name (`ip netns`), or a socket of the daemon's is
//! still there. Another, of a container
//! say, can be reached through its processes alone, and the daemon may not look into these.

use std::os::fd::AsFd;
use std::sync::Arc;

use ringway_nic_setup::{LinkWatch, named_netns, netns_cookie, netns_of};
use ringway_proto::{Error, Result};
use ringway_registry::{LastingNetns, Netns};

/// The namespace, which is looked for when something there is looked up: by a `socket` there, or by its name.
pub fn place(netns: LastingNetns, socket: Option<Arc<LinkWatch>>) -> Result<Netns> {
    let LastingNetns::Cookie(cookie) = netns else {
        return Err(Error::absent("the kernel does not tell network namespaces apart")
            .remedy("it takes Linux 5.14; attach it again from where it is"));
    };
    if netns_cookie().is_ok_and(|own| own == cookie) {
        return Ok(Netns::Own);
    }
    const NO_NAME: &str = "its network namespace has no name, or has gone; attach it again from there, or give \
                           it up: `ringway switch detach`";
    let found = move || match socket {
        Some(socket) => netns_of(socket.as_fd()),
        None => named_netns(cookie),
    };
    Ok(Netns::on_demand(None, Some(cookie), move || match found() {
        Ok(netns) => Netns::known_as(netns, Some(cookie)),
        Err(_) => Netns::Unknown(NO_NAME),
    }))
}
