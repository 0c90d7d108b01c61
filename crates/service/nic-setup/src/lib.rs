//! The privileged part of network interfaces: what is changed on the machine so that the drivers can
//! move packets without privileges, and how each change is undone.
//!
//! A process with capabilities looks at an interface ([`Interface`]), attaches the XDP program
//! ([`XdpProgram`]), opens a socket on a queue ([`Xsk`], [`RxSocket`], [`TxSocket`]), and points the
//! program at the socket ([`XdpProgram::set_queue`]). A process that gets the socket needs no
//! capabilities: `ringway-xdp` and `ringway-packet` move the packets. [`open_nic_port`] and
//! [`open_packet_port`] do both for a port of a switch.
//!
//! A host's stack is reached like a NIC: [`PrivatePair`] makes an interface whose other end is ours,
//! [`HostEnd`] and [`EgressRedirect`] connect such a pair with a NIC.
//!
//! What is changed, and what undoes it, however the process ends:
//!
//! | change | undone when |
//! | --- | --- |
//! | XDP program attached ([`XdpProgram`]) | the last descriptor of its link is closed: the stack gets every frame |
//! | what the stack sends is redirected ([`EgressRedirect`]) | the last descriptor of its link is closed: it goes out again |
//! | what the interface receives is kept from the stack ([`IngressDrop`]) | the last descriptor of its link is closed |
//! | what the interface receives is redirected ([`IngressRedirect`]) | it is dropped, or the last descriptor of its link is closed |
//! | a switch's program at an interface ([`SwitchedInterface`], [`SwitchedStack`]) | the last descriptor of its link is closed |
//! | a filter and a qdisc `clsact` by which these are attached without tcx | likewise, by a [`Guard`] |
//! | a queue is bound ([`Xsk`]) | the socket's descriptor **and** every mapping of its rings are closed, some 20 ms later |
//! | promiscuous mode ([`Promiscuous`]) | the last descriptor of its socket is closed |
//! | a veth pair and a namespace ([`PrivatePair`]) | it is dropped, or its namespace's last holder has gone |
//! | RSS table and flow rules ([`steer::Plan`]) | [`steer::Plan::undo`] is called, by the janitor if the daemon cannot |
//!
//! A process without capabilities does the same by a helper that has them: see [`use_helper`].
//!
//! Programs are attached by links, or in a way that ends like one (`tc/`), so they do not stay behind after a crash.
//!
//! | files | idea |
//! | --- | --- |
//! | `iface.rs`, `watch.rs`, `losses.rs`, `netns.rs`, `privileges.rs` | looking: an interface, what becomes of it, what it loses and receives, its namespace, our capabilities |
//! | `program.rs`, `loader.rs`, `attached.rs` | the XDP program and its link; programs with rules, put in the place of others; a program that was there before |
//! | `generate.rs`, `rule.rs`, `action.rs`, `filter.rs`, `tags.rs`, `timestamps.rs`, `btf.rs` | programs made for an interface: action programs, filters, VLAN tags, timestamps |
//! | `ingress_redirect.rs` | what is redirected beside the traffic control |
//! | `host.rs`, `mark.rs`, `pair.rs`, `ingress_drop.rs`, `offload.rs` | the host's stack: redirected, reached, kept apart |
//! | `tc/` | programs beside the traffic control, by tcx or `clsact`, and who removes their filters |
//! | `xsk.rs`, `packet/` | sockets for queues, AF_XDP and AF_PACKET |
//! | `port.rs`, `switch.rs` | an interface as a port of a switch; a switch's program in the kernel |
//! | `kept.rs` | what of that program outlives the daemon, for the next one |
//! | `promisc.rs`, `steer/` | settings of the interface |
//! | `helper.rs`, `operation.rs`, `parcel.rs` | who does it: this process, or a helper with the privileges; the protocol between them |
//! | `simulated.rs` | a kernel in the helper's place, for simulations |
//! | `object.rs`, `sys.rs`, `rtnl.rs`, `genl.rs` | the kernel's interfaces: BPF, ioctl, netlink |
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented,
        clippy::string_slice
    )
)]

mod action;
mod attached;
mod btf;
mod error;
mod filter;
mod generate;
mod genl;
mod helper;
mod host;
mod iface;
mod ingress_drop;
mod ingress_redirect;
pub mod kept;
mod loader;
mod losses;
mod mark;
mod netlink;
mod netns;
mod object;
mod offload;
mod once;
mod operation;
mod packet;
mod pair;
mod parcel;
#[cfg(feature = "parsers")]
pub mod parsers;
mod port;
mod privileges;
mod program;
mod promisc;
mod queue_watch;
mod rtnl;
mod rule;
#[cfg(feature = "simulated")]
pub mod simulated;
pub mod steer;
mod switch;
mod sys;
mod tags;
mod tc;
mod timestamps;
mod watch;
mod xsk;
mod zero_copy;

/// Reads what the first interface would wait for, the types of the kernel: tens of milliseconds. Without it, that
/// one does.
pub fn prepare() {
    object::prepare();
    tags::Tags::find();
}

pub use action::{Action, ActionCounters};
pub use attached::AttachedProgram;
pub use error::Error;
pub use filter::{Filter, FilterCounters};
pub use helper::{Helper, beside, carry_out, use_helper};
pub use host::{EgressFilter, EgressFilterLoad, EgressRedirect, HostEnd, InjectMark};
pub use iface::{Interface, longest_frame};
pub use ingress_drop::{INJECTED, IngressDrop};
pub use ingress_redirect::IngressRedirect;
pub use loader::{InstalledRules, Installer, LoadedRules, Loader};
pub use losses::{LossCounter, growth, losses, received};
pub use mark::Mark;
pub use netns::{in_netns, named_netns, netns_cookie, netns_of};
pub use packet::{RxSocket, Source, TxSocket};
pub use pair::{DeviceSettings, OuterEnd, PairConfig, PrivatePair};
pub use parcel::Parcel;
pub use port::{
    PortAttachment, STACK_PORT_MEMORY, nic_port_memory, open_nic_port, open_nic_port_as,
    open_packet_port,
};
pub use privileges::{Missing, device_privileges, privileges};
pub use program::{AttachMode, QUEUES, XdpProgram, check_queues};
pub use promisc::Promiscuous;
pub use rule::{QueueRule, QueueRules};
pub use switch::{SWITCHED_PORT_MEMORY, SwitchProgram, Switched, SwitchedInterface, SwitchedStack};
pub use tc::{Guard, TcFilter, tc_filter_descriptors, use_guard};
pub use watch::{Link, LinkState, LinkWatch};
pub use xsk::{Mode, UnboundXsks, Xsk, XskConfig, takes_chunks_of};
pub use zero_copy::{ZERO_COPY_CHUNK, zero_copy_room};
