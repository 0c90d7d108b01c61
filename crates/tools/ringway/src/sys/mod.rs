//! The commands' unsafe code: what has no safe interface, each behind a function that any code may call.
#![allow(unsafe_code)]

mod addresses;
mod beside;
mod bpf;
mod frames;
mod interfaces;
mod memory;
mod netns;
mod stop;
pub mod syslog;

pub use addresses::{InterfaceAddresses, addresses_of};
pub use beside::start_beside;
#[cfg(test)]
pub use beside::{map_code, raw_call, raw_call_of};
pub use bpf::make_socket_map;
pub use frames::{be_tap, hear_all};
pub use interfaces::{driver, has_link, index_of, is_up, rx_queues};
pub use memory::advise_huge_pages;
pub use netns::netns_cookie;
pub use stop::Stop;
