//! Which of PF_RING's numbers a failure has.
//!
//! A call that stands for a socket option fails with -1, and the reason is in `errno`. Programs
//! that send go by the number itself: they stop at -7, skip the packet at -2, and try all others
//! again, for as long as it takes.

use std::ffi::c_int;

use libc::*;

use crate::abi::{ERROR_GENERIC, ERROR_INVALID_ARGUMENT, ERROR_NOT_SUPPORTED};

/// What comes of sending: the numbers of this table, and [`ERROR_GENERIC`] for all others, which
/// pass: no room (ENOBUFS), an interface that is down (ENETDOWN).
const SENDING: [(c_int, c_int); 14] = [
    // It cannot be sent, now or later: a monitor, a port that was opened to receive, a file that is
    // played.
    (EOPNOTSUPP, ERROR_NOT_SUPPORTED),
    (EBADF, ERROR_NOT_SUPPORTED),
    (ENOTSOCK, ERROR_NOT_SUPPORTED),
    (ESHUTDOWN, ERROR_NOT_SUPPORTED),
    // The interface or the port has gone.
    (ENODEV, ERROR_NOT_SUPPORTED),
    (ENXIO, ERROR_NOT_SUPPORTED),
    // The program may not.
    (EPERM, ERROR_NOT_SUPPORTED),
    (EACCES, ERROR_NOT_SUPPORTED),
    (EAFNOSUPPORT, ERROR_NOT_SUPPORTED),
    (EPROTONOSUPPORT, ERROR_NOT_SUPPORTED),
    // This packet cannot, others can.
    (EMSGSIZE, ERROR_INVALID_ARGUMENT),
    (EINVAL, ERROR_INVALID_ARGUMENT),
    (EFAULT, ERROR_INVALID_ARGUMENT),
    (EDESTADDRREQ, ERROR_INVALID_ARGUMENT),
];

/// The result of `pfring_send` for this reason.
pub fn of_sending(errno: c_int) -> c_int {
    let found = SENDING.iter().find(|(number, _)| *number == errno);
    found.map_or(ERROR_GENERIC, |(_, result)| *result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that tries again at all but -2 and -7 must not do so for ever.
    #[test]
    fn what_passes_is_tried_again_and_nothing_else() {
        let passes = [EAGAIN, ENOBUFS, ENOMEM, EINTR, ENETDOWN, EBUSY, EIO, ETIMEDOUT];
        for errno in passes {
            assert_eq!(of_sending(errno), -1, "{errno}");
        }
        for (errno, result) in [
            (EOPNOTSUPP, -7),
            (ENOTSUP, -7),
            (ENODEV, -7),
            (ENXIO, -7),
            (EPERM, -7),
            (EACCES, -7),
            (EBADF, -7),
            (EMSGSIZE, -2),
            (EINVAL, -2),
        ] {
            assert_eq!(of_sending(errno), result, "{errno}");
        }
        for errno in 0..200 {
            let results = [ERROR_GENERIC, ERROR_INVALID_ARGUMENT, ERROR_NOT_SUPPORTED];
            assert!(results.contains(&of_sending(errno)), "{errno}");
            let rows = SENDING.iter().filter(|(number, _)| *number == errno);
            assert!(rows.count() <= 1, "{errno} stands there twice");
        }
    }
}
