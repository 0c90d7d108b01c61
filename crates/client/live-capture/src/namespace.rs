//! Which port an interface's name means: interfaces of several network namespaces may have one name.

use std::{fs, os::unix::fs::MetadataExt};

use ringway::PortInfo;
use rustix::net::{AddressFamily, SocketType, netdevice::name_to_index, socket};

/// Whether a program in the calling thread's network namespace opens this port by that name.
pub fn is_named_here(port: &PortInfo, name: &str) -> bool {
    // A pipe's name begins with that of its interface.
    let interface = name.split(['{', '}']).next().unwrap_or(name);
    port.name == name && is_of(port.netns, here(), || has_interface(interface))
}

/// The inode number of the calling thread's network namespace, as ports have it.
pub fn here() -> Option<u64> {
    fs::metadata("/proc/thread-self/ns/net").ok().map(|file| file.ino())
}

/// Whether there is such an interface.
fn has_interface(name: &str) -> bool {
    let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None);
    any.is_ok_and(|any| name_to_index(&any, name).is_ok())
}

/// By the daemon's grant a name without an interface `here` is that of the daemon's namespace.
fn is_of(netns: Option<u64>, here: Option<u64>, has_own: impl FnOnce() -> bool) -> bool {
    netns.is_none() || here.is_none() || netns == here || !has_own()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_the_own_interface_if_there_is_one() {
        let (own, other) = (Some(7), Some(8));
        for (netns, here, has_own, is_meant) in [
            (own, own, true, true),
            (other, own, true, false),
            // By a grant.
            (other, own, false, true),
            // The interface has gone, and its port has not yet.
            (own, own, false, true),
            // Pipes and ports of switches, and daemons older than version 7.
            (None, own, true, true),
            (None, own, false, true),
            // Without /proc.
            (other, None, true, true),
        ] {
            assert_eq!(is_of(netns, here, || has_own), is_meant, "{netns:?} {here:?} {has_own}");
        }
    }

    #[test]
    fn this_namespace_has_a_number_and_a_loopback() {
        assert!(here().is_some() && has_interface("lo") && !has_interface("rwnosuch0"));
    }
}
