//! Requests: what a program asks of the control device, and how the answer gets back to it.

mod body;
mod ctrl;
mod extmem;
mod legacy;
mod options;
mod register;

use std::os::fd::RawFd;

use ringway_abi::{NIOCCONFIG, NIOCCTRL, NIOCGINFO, NIOCREGIF};

pub use options::Options;

use crate::{table::InUse, user::Fault};

impl From<Fault> for i32 {
    fn from(_: Fault) -> i32 {
        libc::EFAULT
    }
}

/// Answers an `ioctl` that is no sync. The error is the errno.
pub fn answer(netmap: &InUse, fd: RawFd, number: u32, arg: u64) -> Result<(), i32> {
    if arg == 0 && [NIOCCTRL, NIOCREGIF, NIOCGINFO, NIOCCONFIG].contains(&number) {
        return Err(libc::EINVAL);
    }
    match number {
        NIOCCTRL => ctrl::answer(netmap, fd, arg),
        NIOCREGIF => legacy::register(netmap, fd, arg),
        NIOCGINFO => legacy::info(netmap, fd, arg),
        NIOCCONFIG => legacy::config(arg),
        _ => Err(libc::EOPNOTSUPP),
    }
}
