//! AF_PACKET sockets: how they are made, and the options that rustix does not wrap.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::check;

/// A socket for frames with their Ethernet headers. Of no protocol: it receives nothing before it is
/// [bound](bind) to one. Needs CAP_NET_RAW.
pub fn new() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// A socket that keeps an interface promiscuous as long as it is open, and receives nothing. The kernel
/// counts such members, and takes the mode back with the last, however its process ends; the interface's own
/// flag, the administrator's, is left alone.
pub fn hold_promiscuous(ifindex: u32) -> io::Result<OwnedFd> {
    let socket = new()?;
    join_promiscuous(socket.as_fd(), ifindex)?;
    Ok(socket)
}

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
// SAFETY: numbers without a gap: 4, 2, 2 and 8 bytes.
unsafe impl Plain for libc::packet_mreq {}
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

/// Reads an option into `value`, of which the kernel writes as many bytes as the option has.
pub fn get_option<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `value`, which is as long, alive during the call; any
    // bytes are a value of it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    };
    check(result)
}

/// Frames that the kernel dropped since the last call, by whomever: reading clears the number.
pub fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut stats = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
    get_option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
    Ok(stats.tp_drops)
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

/// The interface is promiscuous as long as the socket is open.
pub fn join_promiscuous(socket: BorrowedFd<'_>, ifindex: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous(ifindex))
}

/// The socket holds the interface no longer.
pub fn leave_promiscuous(socket: BorrowedFd<'_>, ifindex: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_DROP_MEMBERSHIP, &promiscuous(ifindex))
}

fn promiscuous(ifindex: u32) -> libc::packet_mreq {
    libc::packet_mreq {
        mr_ifindex: ifindex as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    }
}

/// `struct ethtool_drvinfo`: a command, and then texts of 32 bytes, the first of them the driver's name.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

const _: () = assert!(size_of::<DriverInfo>() == 196);

const ETHTOOL_GDRVINFO: u32 = 3;

/// The drivers of pairs of interfaces, whose ends refuse what is longer than the other's MTU.
const PAIRS: [&str; 2] = ["veth", "netkit"];

/// Whether the interface that the socket is bound to is an end of a pair.
pub fn is_pair(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let ifindex = super::bound_to(socket)?.sll_ifindex;
    let name = index_to_name(socket, u32::try_from(ifindex).unwrap_or(0))?;
    Ok(PAIRS.contains(&driver_by(socket, &name)?.as_str()))
}

/// The name of an interface's driver, as `ethtool -i` shows it.
pub fn driver(interface: &str) -> io::Result<String> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    driver_by(socket.as_fd(), interface)
}

/// The same of an interface in a socket's network namespace.
fn driver_by(socket: BorrowedFd<'_>, interface: &str) -> io::Result<String> {
    // SAFETY: an ifreq is made of numbers and addresses that may be null: zeros are a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: the kernel reads and writes the request, alive during the call, and what its data points to: `info`,
    // exclusively ours, of the layout and size that the command in it stands for.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
    let name = info.driver.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}
