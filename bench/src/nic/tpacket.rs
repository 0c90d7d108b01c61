//! AF_PACKET sockets and the rings that the kernel maps for them: see `packet(7)` and
//! `Documentation/networking/packet_mmap.rst`.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A socket bound to one interface.
pub struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// A socket for frames with their Ethernet headers, whose rings have the layout `version`.
    pub fn new(version: libc::tpacket_versions) -> io::Result<Socket> {
        // SAFETY: the call takes no pointer, and the new descriptor is nobody else's.
        let fd = unsafe {
            match libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) {
                fd if fd < 0 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        let socket = Socket { fd };
        socket.set(libc::PACKET_VERSION, &(version as libc::c_int))?;
        // Straight to the driver, and nothing of it back to where packets are received.
        socket.set(libc::PACKET_QDISC_BYPASS, &1)?;
        socket.set(libc::PACKET_IGNORE_OUTGOING, &1)?;
        Ok(socket)
    }

    /// Sets an option of the level SOL_PACKET; `T` is the option's own type.
    pub fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the kernel reads `size_of::<T>()` bytes of the live `value`.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                option,
                ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Binds to `interface`; packets are received from now on, if it `receives`.
    pub fn bind(&self, interface: &str, receives: bool) -> io::Result<()> {
        let name = CString::new(interface)?;
        // SAFETY: the name is a C string, alive during the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: all zero is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index as libc::c_int;
        address.sll_protocol = if receives { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
        // SAFETY: the kernel reads `size_of_val(&address)` bytes of the live local.
        let result = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Maps the rings, which were asked for before: first that to receive, then that to send, of
    /// `length` bytes in all.
    pub fn map(&self, length: usize) -> io::Result<Memory> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping, placed by the kernel, overlaps nothing.
        let base = unsafe { mmap(ptr::null_mut(), length, access, flags, &self.fd, 0)? };
        Ok(Memory { base: NonNull::new(base.cast()).expect("mmap never returns null"), length })
    }

    /// Has the kernel send what is marked in the ring. What it cannot send now stays marked.
    pub fn kick(&self) {
        // SAFETY: a null buffer of length 0 is never read.
        unsafe { libc::send(self.fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT) };
    }

    /// Sends a packet for each message; returns how many were sent.
    ///
    /// # Safety
    /// The messages must point to memory that is valid to read.
    pub unsafe fn send(&self, messages: &mut [libc::mmsghdr]) -> usize {
        // SAFETY: the slice is alive during the call; what it points to is the caller's promise.
        let sent = unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        sent.max(0) as usize
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
    pub fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(length <= self.length && offset <= self.length - length);
        // SAFETY: just checked to be inside the mapping.
        unsafe { self.base.add(offset).as_ptr() }
    }

    /// A word by which the kernel and the program tell each other whose the memory behind it is.
    #[inline]
    pub fn status(&self, offset: usize) -> Status<'_> {
        assert!(offset.is_multiple_of(align_of::<AtomicU32>()));
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned.
        Status(unsafe { AtomicU32::from_ptr(self.at(offset, size_of::<u32>()).cast()) })
    }

    /// Reads a header at `offset`; any bytes must make a `T`.
    ///
    /// # Safety
    /// As `T` says.
    #[inline]
    pub unsafe fn read<T>(&self, offset: usize) -> T {
        // SAFETY: inside the mapping; the rest is the caller's promise.
        unsafe { self.at(offset, size_of::<T>()).cast::<T>().read_unaligned() }
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
