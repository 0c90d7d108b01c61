//! The errno by which a program that knows netmap's API learns why a request was refused: the one
//! place that has it.
#![forbid(unsafe_code)]

use ringway_proto::{Cause, OptionStatus};

/// The errno of a cause.
pub fn errno(cause: Cause) -> i32 {
    match cause {
        Cause::Invalid => libc::EINVAL,
        Cause::Busy => libc::EBUSY,
        Cause::NoRoom => libc::ENOMEM,
        Cause::NoPort => libc::ENXIO,
        Cause::NotFound => libc::ENOENT,
        Cause::NoDevice => libc::ENODEV,
        Cause::Exists => libc::EEXIST,
        Cause::Unsupported => libc::EOPNOTSUPP,
        Cause::Denied => libc::EPERM,
        Cause::HeadersNotAccepted => libc::EIO,
        Cause::Closed => libc::EBADF,
        // S-VALE-19, S-EXT-1.
        Cause::AlreadySo | Cause::BadMemory => libc::EFAULT,
        Cause::TooManyDescriptors => libc::EMFILE,
        Cause::TooLong => libc::EMSGSIZE,
        Cause::Unreachable => libc::ENXIO,
        Cause::Untrusted => libc::EACCES,
        Cause::Gone => libc::EIO,
        Cause::Version => libc::EPROTO,
        Cause::System(errno) => errno,
    }
}

/// The status of an option, as `nro_status` has it; `None`: it was not looked at.
pub fn status(status: OptionStatus) -> Option<i32> {
    match status {
        OptionStatus::Unseen => None,
        OptionStatus::Accepted => Some(0),
        OptionStatus::Refused(cause) => Some(errno(cause)),
    }
}
