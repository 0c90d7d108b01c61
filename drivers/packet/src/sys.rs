//! The system calls on AF_PACKET sockets that rustix does not wrap.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Types whose every byte is a socket option's.
///
/// # Safety
/// The type has no padding, and any bytes are a value of it. Pointers within are valid for what the
/// option does with them, as long as the call lasts.
pub unsafe trait Plain {}
// SAFETY: a number.
unsafe impl Plain for libc::c_int {}
// SAFETY: seven numbers of one size.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: three numbers of one size.
unsafe impl Plain for libc::tpacket_stats_v3 {}

pub fn set_option<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads the bytes of `value`, alive during the call, and by the contract of
    // `Plain` whatever it points to.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result)
}

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

/// Gives the socket a filter. `program` has at most 65535 instructions.
pub fn set_filter(socket: BorrowedFd<'_>, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program =
        libc::sock_fprog { len: program.len() as libc::c_ushort, filter: program.as_mut_ptr() };
    // SAFETY: the kernel reads `program` and the instructions that it names, alive during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    check(result)
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

/// Binds an AF_PACKET socket to an interface: frames of `protocol` in network byte order come from
/// now on, none for 0.
pub fn bind(socket: BorrowedFd<'_>, ifindex: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: protocol,
        sll_ifindex: ifindex as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is `address`, alive during the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    check(result)
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
