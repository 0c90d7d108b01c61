//! What a personality is, and what it has to say about its descriptors.

use std::{
    any::Any,
    ffi::{CStr, c_char, c_int, c_uint},
    ops::Range,
    os::fd::{BorrowedFd, OwnedFd, RawFd},
    sync::atomic::{AtomicPtr, Ordering::*},
};

use libc::c_short;
use ringway_kring::BusyPoll;

use crate::{fd_table::End, real_libc::keep_errno, uaccess};

/// A foreign API that lives behind descriptors. Errors are errnos.
pub trait Personality: Sync {
    /// The program opens `path`. `None`: it is nothing of this personality's.
    fn open(&self, path: UserPath, flags: c_int) -> Option<Result<Opened, c_int>>;

    /// The file that the program opens `path` for, where it is no more than that: a stream may have it,
    /// too. [`open`](Self::open) claims the same. With `O_PATH` among the flags, one that has the
    /// attributes of what the path names, whatever that is: `stat` and its kin ask for it. `None`: it is
    /// nothing of this personality's.
    fn file(&self, path: UserPath, flags: c_int) -> Option<Result<OwnedFd, c_int>> {
        let _ = (path, flags);
        None
    }

    /// The program makes a socket. `None`: it is nothing of this personality's.
    fn socket(&self, domain: c_int, kind: c_int, protocol: c_int) -> Option<Result<Opened, c_int>> {
        let _ = (domain, kind, protocol);
        None
    }

    /// The program sets an option of a descriptor that is no personality's. True: from now on the number is this
    /// personality's, which has put what stands for it in its place, and which is asked for the option again.
    fn adopts(&self, fd: RawFd, option: SocketOption, value: u64, len: u32) -> bool {
        let _ = (fd, option, value, len);
        false
    }

    /// The index by which the program is to know an interface of this `name`. `None`: it is the kernel's affair.
    fn interface_index(&self, name: &InterfaceName) -> Option<c_uint> {
        let _ = name;
        None
    }

    /// The name that has an [index](Self::interface_index) of this personality's.
    fn interface_name(&self, index: c_uint) -> Option<InterfaceName> {
        let _ = index;
        None
    }

    /// What the interface of this `name` is. `None`: it is the kernel's affair.
    fn interface(&self, name: &InterfaceName) -> Option<Interface> {
        let _ = name;
        None
    }

    /// Whether an open descriptor that was never seen before, because it was inherited or received,
    /// is this personality's.
    fn recognises(&self, fd: BorrowedFd<'_>) -> bool;

    /// Whether an `ioctl` with this number on a descriptor that was never seen before is reason to
    /// look at it.
    fn is_request(&self, number: u32) -> bool;

    /// The program is about to unmap these addresses, which are whole pages: from now on nothing uses
    /// them. What is returned is told whether the kernel has done so; if it has not, all is as before.
    fn unmaps(&self, addresses: Range<usize>) -> Option<Unmapping> {
        let _ = addresses;
        None
    }

    /// A descriptor's state, before it [begins](Descriptor::begin): it lives as long as the process,
    /// and is used again and again.
    fn new_descriptor(&self) -> &'static dyn Descriptor;
}

/// The end of an attempt to unmap memory: see [`Personality::unmaps`].
pub type Unmapping = Box<dyn FnOnce(bool)>;

/// What a personality has made of an `open` or a `socket`.
pub enum Opened {
    /// A descriptor of its own.
    Own(OwnedFd),
    /// A descriptor that needs nothing more: the kernel answers for it.
    Plain(OwnedFd),
}

/// To be dropped when the last number of a descriptor is closed.
pub struct AfterClose(Option<Box<dyn Any + Send>>);

impl AfterClose {
    /// Drops `what` then.
    pub fn new(what: impl Any + Send) -> AfterClose {
        AfterClose(Some(Box::new(what)))
    }
}

impl Drop for AfterClose {
    fn drop(&mut self) {
        keep_errno(|| drop(self.0.take()));
    }
}

/// A name of a network interface, as `struct ifreq` has it: with a nul behind it, or cut short.
pub type InterfaceName = [u8; libc::IFNAMSIZ];

/// What a program is told of an interface that it knows by a name of a personality's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// What the kernel says of the one with this name.
    Kernels {
        /// The kernel's name.
        name: InterfaceName,
        /// The program's name is that of a monitor, which takes nothing from others.
        is_monitor: bool,
    },
    /// That it is an Ethernet interface of this address: up, and without addresses of IP.
    Port([u8; 6]),
}

/// An option of a socket, by level and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOption {
    /// `SOL_*`.
    pub level: c_int,
    /// The option within the level.
    pub name: c_int,
}

/// A personality's descriptor, during one life of it. `fd` is always the number that the call was
/// made with, which is open as long as the program does not close it meanwhile. Errors are errnos.
pub trait Descriptor: Sync {
    /// Whether it can have a new life. In a child of `fork` it may have a lock that a thread of the parent's has held.
    fn may_begin(&self) -> bool {
        true
    }

    /// A new life, opened with `flags`; `O_RDWR` where these are not known. No call is in progress.
    fn begin(&self, flags: c_int);

    /// The last number and the last mapping have gone, and no call is in progress.
    fn end(&self, unused: &End) -> Option<AfterClose>;

    /// `argument` is what the program gave: a number, or an address that may be wrong.
    fn ioctl(&self, fd: RawFd, number: u32, argument: u64) -> Result<c_int, c_int>;

    /// What `F_GETFL` answers, where the kernel says `flags` of the descriptor that stands for it.
    fn status_flags(&self, flags: c_int) -> c_int {
        flags
    }

    /// The file that is mapped where the program maps `len` bytes at `offset` of the descriptor.
    fn mapped_file(&self, fd: RawFd, offset: i64, len: usize) -> Result<BorrowedFd<'_>, c_int>;

    /// A mapping was made. The descriptor does not end before it.
    fn keep(&self) {}

    /// A mapping has gone, or what was left of it.
    fn release(&self) {}

    /// `None`: the kernel's descriptor answers.
    fn read(&self, fd: RawFd) -> Option<Result<usize, c_int>>;

    /// As [`read`](Self::read).
    fn write(&self, fd: RawFd) -> Option<Result<usize, c_int>>;

    /// `None`: the kernel's descriptor answers.
    fn set_option(
        &self,
        fd: RawFd,
        option: SocketOption,
        value: u64,
        len: u32,
    ) -> Option<Result<(), c_int>> {
        let _ = (fd, option, value, len);
        None
    }

    /// As [`set_option`](Self::set_option); `len` is the address of the length.
    fn get_option(
        &self,
        fd: RawFd,
        option: SocketOption,
        value: u64,
        len: u64,
    ) -> Option<Result<(), c_int>> {
        let _ = (fd, option, value, len);
        None
    }

    /// The program binds a socket to `len` bytes at `address`. `None`: the kernel's descriptor answers.
    fn bind(&self, fd: RawFd, address: u64, len: u32) -> Option<Result<(), c_int>> {
        let _ = (fd, address, len);
        None
    }

    /// The program asks what a socket is bound to: the address goes to `to`, its length to `len`, where the program has
    /// said how much room there is. `None`: the kernel's descriptor answers.
    fn socket_name(&self, fd: RawFd, to: u64, len: u64) -> Option<Result<(), c_int>> {
        let _ = (fd, to, len);
        None
    }

    /// The program sends a message with `flags`, whatever is in it. `None`: the kernel's descriptor answers.
    fn send(&self, fd: RawFd, flags: c_int) -> Option<Result<usize, c_int>> {
        let _ = (fd, flags);
        None
    }

    /// The program receives a message, as [`read`](Self::read).
    fn receive(&self, fd: RawFd) -> Option<Result<usize, c_int>> {
        self.read(fd)
    }

    /// The descriptor itself, for its personality: see [`with_descriptor`](crate::with_descriptor).
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Does what a `poll` for `events` does, and tells which of them there are.
    fn look(&self, fd: RawFd, events: c_short) -> c_short;

    /// A number that changes when what `events` are about has moved: for edge-triggered waits.
    fn position(&self, events: c_short) -> u64;

    /// Announces a wait for `events`, after a look that found nothing. [Look](Self::look) once more
    /// before sleeping; if there is something after all, and this returned true, [`disarm`](Self::disarm).
    fn arm(&self, events: c_short) -> bool;

    /// The announced wait does not come to be, and another thread's may have lost its wake-up to it.
    fn disarm(&self, events: c_short);

    /// What decides whether a wait begins with looking for a moment. `None`: it does not.
    fn busy_poll(&self) -> Option<&BusyPoll> {
        None
    }

    /// What to sleep on after [`arm`](Self::arm): descriptors, with the events to ask for.
    fn wait_sources(&self, fd: RawFd, events: c_short, add: &mut dyn FnMut(RawFd, c_short));

    /// A sleep has ended, and the kernel said this of one of the [sources](Self::wait_sources).
    fn woken(&self, fd: RawFd, source: RawFd, revents: c_short) {
        let _ = (fd, source, revents);
    }

    /// Whether an event that is asked for is about to come, so that a wait whose time is up goes on
    /// for a moment.
    fn is_about_to(&self, events: c_short) -> bool {
        let _ = events;
        false
    }

    /// Whether others wait for it to be closed, when the process ends.
    fn is_closed_at_exit(&self) -> bool {
        false
    }
}

/// A path that the program names: it may be anything, or nothing.
#[derive(Clone, Copy)]
pub struct UserPath(*const c_char);

impl UserPath {
    pub(crate) fn new(path: *const c_char) -> UserPath {
        UserPath(path)
    }

    /// Whether the path is `name`.
    pub fn is(self, name: &CStr) -> bool {
        self.starts_with(name.to_bytes_with_nul())
    }

    /// What follows `start`, if the path begins with that.
    pub fn behind(self, start: &[u8]) -> Option<UserPath> {
        self.starts_with(start).then(|| UserPath(self.0.wrapping_add(start.len())))
    }

    /// The name of an interface that the path begins with, up to a slash or its end, and the path
    /// behind it.
    pub fn interface<'a>(self) -> Option<(InterfaceName, &'a CStr)> {
        let mut name = InterfaceName::default();
        for (at, place) in name.iter_mut().enumerate() {
            let from = self.0.wrapping_add(at);
            if !uaccess::readable(from, 1) {
                return None;
            }
            // SAFETY: it can be read, as above.
            let byte = unsafe { from.cast::<u8>().read_volatile() };
            if byte == 0 || byte == b'/' {
                // SAFETY: a string of the program's, which it does not change while the call lasts.
                return Some((name, unsafe { CStr::from_ptr(from) }));
            }
            *place = byte;
        }
        None
    }

    /// Whether the path begins with these bytes, which may include the nul at the end.
    pub fn starts_with(self, start: &[u8]) -> bool {
        if !uaccess::readable(self.0, start.len()) {
            return false;
        }
        // SAFETY: so many bytes can be read, each once, whatever another thread does to them; what lies
        // behind the end of a shorter string does not matter.
        let byte = |at| unsafe { self.0.cast::<u8>().add(at).read_volatile() };
        start.iter().enumerate().all(|(at, wanted)| byte(at) == *wanted)
    }
}

/// The personalities of this library: a pointer to a slice that lives for ever.
static PERSONALITIES: AtomicPtr<&'static [&'static dyn Personality]> =
    AtomicPtr::new(std::ptr::null_mut());

/// From now on the hooks know these personalities. To be called once, when the library is loaded.
pub fn start(personalities: &'static &'static [&'static dyn Personality]) {
    PERSONALITIES.store(std::ptr::from_ref(personalities).cast_mut(), Release);
    crate::real_libc::at_load();
    crate::vfork::at_load();
    crate::fork::at_load();
}

#[inline]
pub(crate) fn all() -> &'static [&'static dyn Personality] {
    // SAFETY: null, or what `start` was given, which is never changed.
    unsafe { PERSONALITIES.load(Acquire).as_ref() }.copied().unwrap_or_default()
}
