//! `/dev/netmap`.

use std::ffi::c_int;

use ringway_abi::{NIOCCTRL, nmreq_header};

use crate::{
    ctx::Ctx,
    errno::{self, Cause, Errno},
};

/// An open descriptor, closed with its owner.
pub struct Device(c_int);

impl Device {
    pub fn open(ctx: Ctx) -> Result<Device, Errno> {
        // SAFETY: a nul-terminated path.
        let fd = unsafe { libc::open(c"/dev/netmap".as_ptr(), libc::O_RDWR) };
        if fd >= 0 {
            return Ok(Device(fd));
        }
        let errno = errno::get();
        if errno == libc::ENOENT {
            let how = "start the program with `ringway run --`, or link it with -lringway_netmap";
            return ctx.fail(errno, format_args!("there is no /dev/netmap; {how}"));
        }
        ctx.fail(errno, format_args!("cannot open /dev/netmap: {}", Cause(errno)))
    }

    /// A request. What to say of a failure is the caller's business.
    ///
    /// # Safety
    /// Body and options of the header are where it says they are, and nobody else uses them.
    pub unsafe fn control(&self, header: *mut nmreq_header) -> Result<(), Errno> {
        // SAFETY: by the contract above.
        match unsafe { libc::ioctl(self.0, NIOCCTRL as libc::c_ulong, header) } {
            -1 => Err(errno::get()),
            _ => Ok(()),
        }
    }

    /// Hands the descriptor to somebody else.
    pub fn into_fd(self) -> c_int {
        let fd = self.0;
        std::mem::forget(self);
        fd
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: our own descriptor.
        unsafe { libc::close(self.0) };
    }
}
