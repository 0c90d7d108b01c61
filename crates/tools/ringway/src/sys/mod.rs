//! The commands' unsafe code: what has no safe interface, each behind a function that any code may call.
#![allow(unsafe_code)]

mod addresses;
mod bpf;
mod frames;
mod interfaces;
mod local_time;
mod memory;
mod stop;
pub mod syslog;

pub use addresses::{InterfaceAddresses, addresses_of};
pub use bpf::make_socket_map;
pub use frames::{be_tap, hear_all};
pub use interfaces::{driver, has_link, index_of, is_up, rx_queues};
pub use local_time::local_time;
pub use memory::advise_huge_pages;
pub use stop::Stop;

use std::io;

/// A request about the interface of that name, or about one to be made. Longer names than interfaces have
/// are refused.
fn named(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an ifreq is made of numbers and addresses that may be null: zeros are a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}
