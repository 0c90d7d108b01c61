//! AF_PACKET sockets and the rings that the kernel maps for them: see `packet(7)` and
//! `Documentation/networking/packet_mmap.rst`.

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice::name_to_index, socket_with};

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A socket bound to one interface.
pub struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// A socket for frames with their Ethernet headers, whose rings have the layout `version`.
    pub fn new(version: libc::tpacket_versions) -> io::Result<Socket> {
        let flags = SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let socket = Socket { fd };
        socket.set(libc::PACKET_VERSION, &(version as libc::c_int))?;
        // Straight to the driver, and nothing of it back to where packets are received.
        socket.set(libc::PACKET_QDISC_BYPASS, &1)?;
        socket.set(libc::PACKET_IGNORE_OUTGOING, &1)?;
        Ok(socket)
    }

    /// Sets an option of the level SOL_PACKET; `T` is the option's own type.
    pub fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        let (fd, from) = (self.fd.as_raw_fd(), ptr::from_ref(value).cast());
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads `value`, of that length, alive during the call.
        done(unsafe { libc::setsockopt(fd, libc::SOL_PACKET, option, from, length) })
    }

    /// Binds to `interface`; packets are received from now on, if it `receives`.
    pub fn bind(&self, interface: &str, receives: bool) -> io::Result<()> {
        let index = name_to_index(&self.fd, interface)?;
        // SAFETY: the structure is made of numbers: all of its bytes may be 0.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index as libc::c_int;
        address.sll_protocol = if receives { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
        let (fd, length) = (self.fd.as_raw_fd(), size_of_val(&address) as libc::socklen_t);
        // SAFETY: the kernel reads `address`, of that length, alive during the call.
        done(unsafe { libc::bind(fd, (&raw const address).cast(), length) })
    }

    /// Maps the rings, which were asked for before: first that to receive, then that to send, of
    /// `length` bytes in all.
    pub fn map(&self, length: usize) -> io::Result<Memory> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: without an address the kernel chooses one where nothing is. It maps all of the rings or
        // nothing: the pages stay, whatever becomes of the socket.
        let base = unsafe { mmap(ptr::null_mut(), length, access, flags, &self.fd, 0)? };
        Ok(Memory { base: NonNull::new(base.cast()).expect("mmap never returns null"), length })
    }

    /// Has the kernel send what is marked in the ring. What it cannot send now stays marked.
    pub fn kick(&self) {
        // SAFETY: a null buffer of length 0 is never read.
        unsafe { libc::send(self.fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT) };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The mapped rings of a socket. The kernel writes to them at any time.
pub struct Memory {
    base: NonNull<u8>,
    length: usize,
}

impl Memory {
    /// Where `length` bytes at `offset` are. Panics if they are not inside.
    #[inline]
    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(length <= self.length && offset <= self.length - length);
        // SAFETY: just checked to be inside the mapping.
        unsafe { self.base.add(offset).as_ptr() }
    }

    /// A packet of `length` bytes at `offset`.
    #[inline]
    pub fn piece(&self, offset: usize, length: usize) -> Piece<'_> {
        Piece { at: self.at(offset, length), length, memory: PhantomData }
    }

    /// Copies a packet to `offset`, where there is room for `room` bytes. Panics if it does not fit.
    #[inline]
    pub fn put(&self, offset: usize, room: usize, packet: Piece<'_>) {
        assert!(packet.length <= room);
        let to = self.at(offset, packet.length);
        // SAFETY: both are inside memory that lives, of that length. They may be the same, for a packet may
        // lie anywhere; what the kernel writes meanwhile are bytes, and any will do.
        unsafe { ptr::copy(packet.at, to, packet.length) };
    }

    /// A word by which the kernel and the program tell each other whose the memory behind it is.
    #[inline]
    pub fn status(&self, offset: usize) -> Status<'_> {
        assert!(offset.is_multiple_of(align_of::<AtomicU32>()));
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned.
        Status(unsafe { AtomicU32::from_ptr(self.at(offset, size_of::<u32>()).cast()) })
    }

    /// Reads a header at `offset`.
    #[inline]
    pub fn read<T: Header>(&self, offset: usize) -> T {
        // SAFETY: inside the mapping; any bytes make a header.
        unsafe { self.at(offset, size_of::<T>()).cast::<T>().read_unaligned() }
    }

    /// Writes a number at `offset`.
    #[inline]
    pub fn write(&self, offset: usize, value: u32) {
        // SAFETY: inside the mapping. Nothing refers to it but by words that may change at any time.
        unsafe { self.at(offset, size_of::<u32>()).cast::<u32>().write_unaligned(value) };
    }
}

/// What the kernel writes in front of packets.
///
/// # Safety
/// Made of numbers: any bytes are a value.
pub unsafe trait Header: Copy {}
// SAFETY: made of numbers.
unsafe impl Header for libc::tpacket2_hdr {}
// SAFETY: made of numbers.
unsafe impl Header for libc::tpacket3_hdr {}
// SAFETY: made of numbers, and a union of two that are.
unsafe impl Header for libc::tpacket_hdr_v1 {}

/// A packet in memory that lives, and may be written to by the kernel.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    at: *const u8,
    length: usize,
    memory: PhantomData<&'a [u8]>,
}

impl Piece<'_> {
    /// Copies it, or as much as there is room for; returns how much.
    #[inline]
    pub fn copy_to(&self, to: &mut [u8]) -> usize {
        let length = self.length.min(to.len());
        // SAFETY: inside memory that lives, of that length, and the other is no part of it. What the kernel writes
        // meanwhile are bytes, and any will do.
        unsafe { ptr::copy_nonoverlapping(self.at, to.as_mut_ptr(), length) };
        length
    }
}

impl<'a> From<&'a [u8]> for Piece<'a> {
    fn from(bytes: &'a [u8]) -> Piece<'a> {
        Piece { at: bytes.as_ptr(), length: bytes.len(), memory: PhantomData }
    }
}

/// Room for `N` messages to the kernel, of a packet each.
pub struct Messages<const N: usize> {
    vectors: Box<[libc::iovec; N]>,
    messages: Box<[libc::mmsghdr; N]>,
}

impl<const N: usize> Messages<N> {
    pub fn new() -> Messages<N> {
        let vectors = Box::new([libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; N]);
        // SAFETY: made of numbers and addresses: all zero is a message of nothing.
        let messages = Box::new(unsafe { mem::zeroed::<[libc::mmsghdr; N]>() });
        Messages { vectors, messages }
    }

    /// Sends the packets, `N` at most; returns how many the kernel took.
    #[inline]
    pub fn send<'a>(&mut self, socket: &Socket, packets: impl Iterator<Item = Piece<'a>>) -> usize {
        let mut count = 0;
        let places = self.vectors.iter_mut().zip(self.messages.iter_mut());
        for ((vector, message), packet) in places.zip(packets) {
            *vector = libc::iovec { iov_base: packet.at.cast_mut().cast(), iov_len: packet.length };
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (vector, 1);
            count += 1;
        }
        let (fd, flags) = (socket.fd.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: the first `count` messages, each of which points to a vector of this value, and that to a
        // packet in memory that lives as long as 'a: the kernel reads them during the call.
        let sent = unsafe { libc::sendmmsg(fd, self.messages.as_mut_ptr(), count, flags) };
        sent.max(0) as usize
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `map` mapped exactly this, and borrows of it have ended.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// See [`Memory::status`].
pub struct Status<'a>(&'a AtomicU32);

impl Status<'_> {
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    pub fn set(&self, status: u32) {
        self.0.store(status, Ordering::Release);
    }
}
