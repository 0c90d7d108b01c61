//! What AF_PACKET V4 answers where `interpose` asks.

use std::{
    any::Any,
    ffi::{c_int, c_uint},
    num::NonZeroU32,
    ops::Range,
    os::fd::{BorrowedFd, OwnedFd, RawFd},
};

use libc::{POLLERR, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM, c_short};
use ringway_abi::Dir;
use ringway_interpose::{
    AfterClose, Descriptor, End, Interface, InterfaceName, Opened, Personality, SocketOption,
    Unmapping, UserPath,
};
use rustix::{
    fs::{OFlags, fcntl_getfl},
    io::Errno,
    net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with},
};

use crate::{address, names, options, socket::Socket, socket::stand_in, sys, sysfs};

/// AF_PACKET V4.
pub struct Tpacket4;

pub static TPACKET4: Tpacket4 = Tpacket4;

const RX: c_short = POLLIN | POLLRDNORM;
const TX: c_short = POLLOUT | POLLWRNORM;

impl Personality for Tpacket4 {
    fn open(&self, path: UserPath, flags: c_int) -> Option<Result<Opened, c_int>> {
        self.file(path, flags).map(|file| file.map(Opened::Plain))
    }

    /// What sysfs says of an interface.
    fn file(&self, path: UserPath, flags: c_int) -> Option<Result<OwnedFd, c_int>> {
        sysfs::file(path, flags)
    }

    /// The kernel's, where it gives the program one. A program that may not have packet sockets may have Ringway's
    /// ports all the same: for it there is one that can do nothing but version 4.
    fn socket(&self, domain: c_int, kind: c_int, protocol: c_int) -> Option<Result<Opened, c_int>> {
        let all = (libc::ETH_P_ALL as u16).to_be();
        if (domain, kind, protocol) != (libc::AF_PACKET, libc::SOCK_RAW, all.into()) {
            return None;
        }
        let protocol = NonZeroU32::new(all.into()).map(Protocol::from_raw);
        let cloexec = SocketFlags::CLOEXEC;
        match socket_with(AddressFamily::PACKET, SocketType::RAW, cloexec, protocol) {
            Ok(socket) => Some(Ok(Opened::Plain(socket))),
            Err(Errno::PERM) => Some(stand_in().map(Opened::Own)),
            Err(_) => None,
        }
    }

    fn adopts(&self, fd: RawFd, option: SocketOption, value: u64, len: u32) -> bool {
        options::makes_ours(fd, option, value, len) && take_over(fd).is_ok()
    }

    fn interface_index(&self, name: &InterfaceName) -> Option<c_uint> {
        names::index_of(name)
    }

    fn interface_name(&self, index: c_uint) -> Option<InterfaceName> {
        names::name_of(index)
    }

    fn interface(&self, name: &InterfaceName) -> Option<Interface> {
        names::interface(name)
    }

    fn recognises(&self, _fd: BorrowedFd<'_>) -> bool {
        false
    }

    fn is_request(&self, _number: u32) -> bool {
        false
    }

    fn new_descriptor(&self) -> &'static dyn Descriptor {
        Socket::leaked()
    }

    fn unmaps(&self, addresses: Range<usize>) -> Option<Unmapping> {
        let memory = addresses.start as u64..addresses.end as u64;
        let leave = |socket: &'static Socket| Some((socket, socket.leave_memory(&memory)?));
        let left: Vec<_> = Socket::all().filter_map(leave).collect();
        if left.is_empty() {
            return None;
        }
        let end = move |gone| {
            left.iter().for_each(|(socket, left)| socket.end_leave(left, &memory, gone));
        };
        Some(Box::new(end))
    }
}

/// Puts our socket in the place of the kernel's, which has collected packets of all interfaces since it was made.
fn take_over(fd: RawFd) -> Result<(), i32> {
    sys::replace(fd, stand_in()?).map_err(|error| error.raw_os_error())
}

impl Descriptor for Socket {
    fn may_begin(&self) -> bool {
        Socket::may_begin(self)
    }

    fn begin(&self, _flags: c_int) {
        Socket::begin(self);
    }

    fn end(&self, _unused: &End) -> Option<AfterClose> {
        Socket::end(self);
        None
    }

    /// Those about interfaces, which any socket answers.
    fn ioctl(&self, _fd: RawFd, number: u32, argument: u64) -> Result<c_int, c_int> {
        match number {
            0x8900..=0x89ff => sys::interface_ioctl(number, argument),
            _ => Err(libc::ENOTTY),
        }
    }

    fn mapped_file(&self, _fd: RawFd, offset: i64, len: usize) -> Result<BorrowedFd<'_>, c_int> {
        match !self.is_inherited() && self.setup().is_mapping(offset, len) {
            true => self.rings(),
            false => Err(libc::EINVAL),
        }
    }

    fn keep(&self) {
        self.setup().count_mapping(true);
    }

    fn release(&self) {
        if !self.is_inherited() {
            self.setup().count_mapping(false);
        }
    }

    /// What is received is in the ring.
    fn read(&self, _fd: RawFd) -> Option<Result<usize, c_int>> {
        Some(Err(libc::EAGAIN))
    }

    fn write(&self, fd: RawFd) -> Option<Result<usize, c_int>> {
        self.send(fd, 0)
    }

    fn set_option(
        &self,
        fd: RawFd,
        option: SocketOption,
        value: u64,
        len: u32,
    ) -> Option<Result<(), c_int>> {
        if options::is_of_any_socket(option) && (self.is_inherited() || !self.setup().is_nothing())
        {
            return None;
        }
        Some(options::set(self, fd, option, value, len))
    }

    fn get_option(
        &self,
        _fd: RawFd,
        option: SocketOption,
        value: u64,
        len: u64,
    ) -> Option<Result<(), c_int>> {
        if options::is_of_any_socket(option) {
            return None;
        }
        Some(options::get(self, option, value, len))
    }

    fn bind(&self, _fd: RawFd, address: u64, len: u32) -> Option<Result<(), c_int>> {
        let bind = || {
            if self.is_inherited() {
                return Err(libc::EBADF);
            }
            let index = address::interface(address, len)?;
            self.setup().bind(&self.ends, self.rings()?, index)
        };
        Some(bind())
    }

    fn socket_name(&self, _fd: RawFd, to: u64, len: u64) -> Option<Result<(), c_int>> {
        let index = self.setup().bound();
        Some(address::put(index, to, len))
    }

    /// The kick: what is in the message does not matter.
    fn send(&self, fd: RawFd, flags: c_int) -> Option<Result<usize, c_int>> {
        let kick = || {
            if self.is_inherited() {
                return Err(libc::EBADF);
            }
            let tx = self.ends.tx().ok_or(libc::ENXIO)?;
            if self.ends.rx().is_some_and(|rx| rx.has_ended()) {
                // What is handed to the rings now goes nowhere.
                return Err(libc::ENETDOWN);
            }
            let waits = || {
                let status = sys::of_program(fd).map(fcntl_getfl);
                !matches!(status, Ok(Ok(flags)) if flags.contains(OFlags::NONBLOCK))
            };
            let sent = tx.kick(flags & libc::MSG_DONTWAIT == 0 && waits());
            if let Some(rx) = self.ends.rx() {
                rx.help();
            }
            sent.map(|()| 0)
        };
        Some(kick())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn look(&self, _fd: RawFd, events: c_short) -> c_short {
        if self.is_inherited() {
            return POLLERR;
        }
        let rx = if events & RX != 0 { self.ends.rx() } else { None };
        let tx = if events & TX != 0 { self.ends.tx() } else { None };
        let lost = |wanted, dir| events & wanted != 0 && self.setup().has_lost_memory(dir);
        let is_lost = rx.is_none() && lost(RX, Dir::Rx) || tx.is_none() && lost(TX, Dir::Tx);
        let answer = |found: Option<bool>, mask| match found {
            Some(true) => events & mask,
            Some(false) => 0,
            None => POLLERR,
        };
        let error = if is_lost { POLLERR } else { 0 };
        error | rx.map_or(0, |rx| answer(rx.look(), RX)) | tx.map_or(0, |tx| answer(tx.look(), TX))
    }

    fn position(&self, events: c_short) -> u64 {
        let rx = if events & RX != 0 { self.rx() } else { None };
        let tx = if events & TX != 0 { self.tx() } else { None };
        let [rx, tx] = [rx.map_or(0, |rx| rx.position()), tx.map_or(0, |tx| tx.position())];
        u64::from(rx) | u64::from(tx) << 32
    }

    fn arm(&self, events: c_short) -> bool {
        let rx = if events & RX != 0 { self.rx() } else { None };
        let tx = if events & TX != 0 { self.tx() } else { None };
        rx.is_some_and(|rx| rx.arm()) | tx.is_some_and(|tx| tx.device().arm(Dir::Tx))
    }

    fn disarm(&self, events: c_short) {
        if let Some(rx) = self.rx().filter(|_| events & RX != 0) {
            rx.disarm();
        }
        if let Some(tx) = self.tx().filter(|_| events & TX != 0) {
            tx.device().disarm(Dir::Tx);
        }
    }

    fn wait_sources(&self, _fd: RawFd, events: c_short, add: &mut dyn FnMut(RawFd, c_short)) {
        if let Some(rx) = self.rx().filter(|_| events & RX != 0) {
            add(rx.news(), POLLIN);
        }
        if let Some(tx) = self.tx().filter(|_| events & TX != 0) {
            tx.wait_sources(add);
        }
    }

    fn is_closed_at_exit(&self) -> bool {
        let rx = self.rx().is_some_and(|rx| rx.device().keeps_traffic());
        rx || self.tx().is_some_and(|tx| tx.device().keeps_traffic())
    }
}
