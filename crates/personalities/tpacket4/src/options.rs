//! Options of a socket.

use std::os::fd::RawFd;

use libc::{
    PACKET_ADD_MEMBERSHIP, PACKET_DROP_MEMBERSHIP, PACKET_FANOUT, PACKET_IGNORE_OUTGOING,
    PACKET_LOSS, PACKET_QDISC_BYPASS, PACKET_RESERVE, PACKET_RX_RING, PACKET_STATISTICS,
    PACKET_TX_RING, PACKET_VERSION, SOL_PACKET, SOL_SOCKET, c_int,
};
use ringway_abi::Dir;
use ringway_interpose::{SocketOption, uaccess, with_descriptor};
use rustix::net::{
    AddressFamily, SocketType,
    sockopt::{socket_domain, socket_type},
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    abi::{
        PACKET_MEMREG, PACKET_ZEROCOPY, TPACKET_V1, TPACKET_V4, tpacket_memreg_req, tpacket_req4,
        tpacket_stats_v3,
    },
    area::Area,
    setup::Setup,
    shared,
    socket::Socket,
    socket_filter::SocketFilter,
    stack::StackOptions,
    sys,
};

/// The value of an option that is a `T`: of its size, or longer with zeros behind it.
fn value<T: FromBytes + IntoBytes + Immutable>(address: u64, len: u32) -> Result<T, i32> {
    const LONGEST: usize = 256;
    let len = len as usize;
    if len < size_of::<T>() || len > LONGEST {
        return Err(libc::EINVAL);
    }
    let mut bytes = [0; LONGEST];
    uaccess::read(address, &mut bytes[..len])?;
    let (value, rest) = T::read_from_prefix(&bytes[..len]).map_err(|_| libc::EINVAL)?;
    if rest.iter().any(|byte| *byte != 0) {
        return Err(libc::EINVAL);
    }
    Ok(value)
}

/// Whether a descriptor that is no personality's becomes one of ours by this option: a packet socket of the kernel's
/// that is to be of version 4, or to have memory.
pub fn makes_ours(fd: RawFd, option: SocketOption, address: u64, len: u32) -> bool {
    let asks = match (option.level, option.name) {
        (SOL_PACKET, PACKET_VERSION) => value(address, len) == Ok(TPACKET_V4),
        (SOL_PACKET, PACKET_MEMREG) => true,
        _ => false,
    };
    asks && is_packet_socket(fd)
}

fn is_packet_socket(fd: RawFd) -> bool {
    let Ok(fd) = sys::of_program(fd) else { return false };
    socket_domain(fd) == Ok(AddressFamily::PACKET) && socket_type(fd) == Ok(SocketType::RAW)
}

/// Whether it is an option of all kinds of sockets, such as the size of a buffer, that the one in a packet socket's place
/// has as well.
pub fn is_of_any_socket(option: SocketOption) -> bool {
    let ours = [
        libc::SO_TYPE,
        libc::SO_DOMAIN,
        libc::SO_PROTOCOL,
        libc::SO_ERROR,
        libc::SO_ATTACH_FILTER,
        libc::SO_DETACH_FILTER,
        libc::SO_ATTACH_BPF,
    ];
    option.level == SOL_SOCKET && !ours.contains(&option.name)
}

/// Sets an option of a socket that the program calls `fd`.
pub fn set(
    socket: &Socket,
    fd: RawFd,
    option: SocketOption,
    address: u64,
    len: u32,
) -> Result<(), i32> {
    let SocketOption { level, name } = option;
    if socket.is_inherited() {
        return Err(libc::EBADF);
    }
    // The other socket is looked at before this one's state is held: it may be the same.
    let ring = match (level, name) {
        (SOL_PACKET, PACKET_RX_RING) => Some(Dir::Rx),
        (SOL_PACKET, PACKET_TX_RING) => Some(Dir::Tx),
        _ => None,
    };
    if let Some(dir) = ring {
        let tpacket_req4 { mr_fd, desc_nr } = value(address, len)?;
        let area = if desc_nr == 0 { None } else { registered(mr_fd)? };
        area.iter().for_each(|area| socket.uses_memory(area));
        return socket.setup().set_ring(&socket.ends, socket.rings()?, dir, area, desc_nr);
    }
    let setup = &mut *socket.setup();
    match (level, name) {
        (SOL_PACKET, PACKET_VERSION) => set_version(setup, value(address, len)?),
        (SOL_PACKET, PACKET_MEMREG) => {
            let request: tpacket_memreg_req = value(address, len)?;
            if setup.area.is_some() {
                return Err(libc::EBUSY);
            }
            let area = Area::register(&request)?;
            shared::announce(fd, &request)?;
            socket.uses_memory(&area);
            setup.area = Some(area);
            Ok(())
        }
        // The kernel refuses the program packet sockets, and it has asked for nothing that we have.
        _ if setup.is_nothing() => Err(libc::EPERM),
        (SOL_PACKET, PACKET_ZEROCOPY) => {
            setup.set_queue(&socket.ends, socket.rings()?, value(address, len)?)
        }
        (SOL_PACKET, PACKET_RESERVE) => {
            let reserve: u32 = value(address, len)?;
            if setup.has_rings() {
                return Err(libc::EBUSY);
            }
            setup.reserve = reserve;
            Ok(())
        }
        (SOL_PACKET, PACKET_LOSS) => {
            let loss: c_int = value(address, len)?;
            if setup.has_rings() {
                return Err(libc::EBUSY);
            }
            setup.loss = loss != 0;
            Ok(())
        }
        (SOL_PACKET, PACKET_QDISC_BYPASS | PACKET_IGNORE_OUTGOING) => {
            let on = value::<c_int>(address, len)? != 0;
            setup.change_stack(&socket.ends, socket.rings()?, |stack| match name {
                PACKET_QDISC_BYPASS => stack.bypass = on,
                _ => stack.ignore_outgoing = on,
            })
        }
        (SOL_PACKET, PACKET_ADD_MEMBERSHIP | PACKET_DROP_MEMBERSHIP) => {
            setup.change_membership(name, value(address, len)?)
        }
        (SOL_PACKET, PACKET_FANOUT) => {
            setup.join(&socket.ends, socket.rings()?, value(address, len)?)
        }
        (SOL_PACKET, _) => Err(libc::ENOPROTOOPT),
        (SOL_SOCKET, libc::SO_ATTACH_FILTER) => {
            let filter = SocketFilter::read(&value(address, len)?, sys::of_program(fd)?)?;
            let attach = |stack: &mut StackOptions| stack.filter = Some(filter);
            setup.change_stack(&socket.ends, socket.rings()?, attach)
        }
        (SOL_SOCKET, libc::SO_DETACH_FILTER) if !setup.has_filter() => Err(libc::ENOENT),
        (SOL_SOCKET, libc::SO_DETACH_FILTER) => {
            setup.change_stack(&socket.ends, socket.rings()?, |stack| stack.filter = None)
        }
        (SOL_SOCKET, libc::SO_ATTACH_BPF) => Err(libc::EOPNOTSUPP),
        _ => Err(libc::ENOPROTOOPT),
    }
}

fn set_version(setup: &mut Setup, version: c_int) -> Result<(), i32> {
    if setup.has_rings() {
        return Err(libc::EBUSY);
    }
    if version != TPACKET_V4 {
        return Err(if setup.is_nothing() { libc::EPERM } else { libc::EINVAL });
    }
    setup.version_4 = true;
    Ok(())
}

/// The memory that was registered on a descriptor of the program's, by this process or by another one.
fn registered(fd: RawFd) -> Result<Option<Area>, i32> {
    let area = with_descriptor(fd, |other| {
        other.as_any()?.downcast_ref::<Socket>()?.look(|setup| setup.area.clone())?
    });
    match area {
        Some(area) => Ok(area),
        None => shared::announced(sys::of_program(fd)?),
    }
}

/// Answers what an option is.
pub fn get(socket: &Socket, option: SocketOption, to: u64, len: u64) -> Result<(), i32> {
    let SocketOption { level, name } = option;
    let set_up = socket.look(|setup| (setup.version_4, setup.reserve, setup.loss));
    let (version_4, reserve, loss) = set_up.ok_or(libc::EBADF)?;
    match (level, name) {
        (SOL_PACKET, PACKET_VERSION) => {
            put(to, len, &(if version_4 { TPACKET_V4 } else { TPACKET_V1 }))
        }
        (SOL_PACKET, PACKET_STATISTICS) => {
            let [packets, drops] = socket.rx().map_or([0; 2], |rx| rx.take_statistics());
            let clipped = |count: u64| count.try_into().unwrap_or(u32::MAX);
            let [tp_packets, tp_drops] = [packets, drops].map(clipped);
            put(to, len, &tpacket_stats_v3 { tp_packets, tp_drops, tp_freeze_q_cnt: 0 })
        }
        (SOL_PACKET, PACKET_RESERVE) => put(to, len, &reserve),
        (SOL_PACKET, PACKET_LOSS) => put(to, len, &c_int::from(loss)),
        (SOL_SOCKET, libc::SO_TYPE) => put(to, len, &libc::SOCK_RAW),
        (SOL_SOCKET, libc::SO_DOMAIN) => put(to, len, &libc::AF_PACKET),
        (SOL_SOCKET, libc::SO_PROTOCOL) => {
            put(to, len, &c_int::from((libc::ETH_P_ALL as u16).to_be()))
        }
        (SOL_SOCKET, libc::SO_ERROR) => put(to, len, &0 as &c_int),
        _ => Err(libc::ENOPROTOOPT),
    }
}

/// Writes a value, as far as the program has room for it, and how long it is.
fn put<T: IntoBytes + Immutable>(to: u64, len: u64, value: &T) -> Result<(), i32> {
    let room: u32 = uaccess::get(len)?;
    let room = usize::try_from(room).ok().filter(|room| *room <= c_int::MAX as usize);
    let bytes = value.as_bytes();
    let written = room.ok_or(libc::EINVAL)?.min(bytes.len());
    uaccess::write(to, &bytes[..written])?;
    uaccess::put(len, &(written as u32))?;
    Ok(())
}
