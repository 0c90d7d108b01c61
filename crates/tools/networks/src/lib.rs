//! Networks of containers on Ringway's switches, for the runtimes that have one of two interfaces to plugins:
//! CNI (containerd, CRI-O, podman 4) and netavark (later podman).
//!
//! A container's interface is one end of a veth pair. The other end is attached to a switch of the system
//! daemon, in the network namespace where the runtime calls the plugin, so frames between containers pass in
//! the kernel. The gateway of a network is another pair, whose far end is in the host's stack.
//!
//! | module | idea |
//! | --- | --- |
//! | [`attachment`] | a container's interface: made, given addresses, compared, removed |
//! | [`gateway`] | the network's address in the host's stack |
//! | [`switch`] | ports of the daemon's switches |
//! | [`names`] | names that follow from a network and a container: nothing else is kept |
//! | [`link`], [`netlink`], [`mac`] | interfaces, addresses and routes, by rtnetlink |
//! | [`ipam`] | another CNI plugin that gives the addresses |
//! | [`lock`] | one at a time for a network's gateway |
//! | [`cni`], [`netavark`] | what runtimes say and hear |
//! | [`error`] | what goes wrong, with the specification's numbers |
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a program reads its own environment")]

pub mod attachment;
pub mod cni;
pub mod error;
pub mod gateway;
pub mod ipam;
pub mod link;
pub mod lock;
pub mod mac;
pub mod names;
pub mod netavark;
pub mod netlink;
pub mod switch;
