//! Requests: what a program asks of the control device, and how the answer gets back to it.

mod body;
mod ctrl;
mod extmem;
mod legacy;
mod neutral;
mod options;
mod register;

use std::os::fd::RawFd;

use ringway_abi::{NIOCCONFIG, NIOCCTRL, NIOCGINFO, NIOCREGIF};

pub use neutral::flags;
pub use options::Options;

use crate::{netmap_fd::NetmapFd, request::body::Asked};

/// Answers an `ioctl` that is no sync. The error is the errno.
pub fn answer(netmap: &NetmapFd, fd: RawFd, number: u32, arg: u64) -> Result<(), i32> {
    if arg == 0 && [NIOCCTRL, NIOCREGIF, NIOCGINFO, NIOCCONFIG].contains(&number) {
        return Err(libc::EINVAL);
    }
    let mut carry_out = |reqtype, name: &mut String, body: &mut [u8], options: &mut Options| {
        Asked { netmap, fd, name }.carry_out(reqtype, body, options)
    };
    match number {
        NIOCCTRL => ctrl::answer(arg, &mut carry_out),
        NIOCREGIF => legacy::register(arg, &mut carry_out),
        NIOCGINFO => legacy::info(arg, &mut carry_out),
        NIOCCONFIG => legacy::config(arg),
        _ => Err(libc::EOPNOTSUPP),
    }
}
