//! The system calls on AF_PACKET sockets that rustix does not wrap.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Packets in one system call at most.
pub const BATCH: usize = 64;

/// Sends packets, of which the first [`BATCH`] count: the pieces of each, as `iovec`s, and their number.
/// Returns how many the kernel has taken, of those that there are at least one.
///
/// # Safety
/// The pieces can be read during the call.
pub unsafe fn send_many(
    socket: BorrowedFd<'_>,
    packets: impl Iterator<Item = (*const libc::iovec, usize)>,
) -> io::Result<usize> {
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; BATCH];
    let mut count = 0;
    for (message, (pieces, number)) in messages.iter_mut().zip(packets) {
        // SAFETY: all zeros are a message without address and data.
        let header = unsafe { &mut message.assume_init_mut().msg_hdr };
        header.msg_iov = pieces.cast_mut();
        header.msg_iovlen = number as _;
        count += 1;
    }
    // SAFETY: the kernel reads `count` messages, alive during the call, and by contract their pieces.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr().cast(), count, libc::MSG_DONTWAIT)
    };
    let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
    Ok(sent.min(count as usize))
}

/// Frames that the kernel dropped since the last call, by whomever: reading clears the number.
pub fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut stats = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
    let mut length = size_of_val(&stats) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `stats`, which is as long and alive.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut length,
        )
    };
    check(result)?;
    Ok(stats.tp_drops)
}

/// The index of the interface that an AF_PACKET socket is bound to; negative when that has gone, and 0
/// where there has never been one.
pub fn bound_to(socket: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    // SAFETY: all zeros are such an address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `address`, which is as long and alive.
    let result = unsafe {
        libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length)
    };
    check(result)?;
    if address.sll_family != libc::AF_PACKET as libc::c_ushort {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(address.sll_ifindex)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
