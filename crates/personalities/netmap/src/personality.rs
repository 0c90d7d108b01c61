//! What netmap answers where `interpose` asks.

use std::{
    ffi::{CStr, c_int},
    os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
};

use libc::{POLLERR, POLLHUP, c_short};
use ringway::{Binding, BusyPoll};
use ringway_abi::{Dir, NIOCCONFIG, NIOCCTRL, NIOCGINFO, NIOCREGIF, NIOCRXSYNC, NIOCTXSYNC};
use ringway_interpose::{AfterClose, Descriptor, End, Opened, Personality, UserPath};
use rustix::fs::{Mode, OFlags, open};

use crate::{
    module_parameters::parameter,
    netmap_fd::{NetmapFd, explain},
    ready, request, stream, worker,
};

const DEVICE: &CStr = c"/dev/netmap";

/// netmap.
pub struct Netmap;

pub static NETMAP: Netmap = Netmap;

impl Personality for Netmap {
    fn open(&self, path: UserPath, flags: c_int) -> Option<Result<Opened, c_int>> {
        if let Some(opened) = self.file(path, flags) {
            return Some(opened.map(Opened::Plain));
        }
        let connect = || ringway_ipc::connect().map(Opened::Own).map_err(|e| explain(&e));
        path.is(DEVICE).then(connect)
    }

    /// The device looks like one that all may read and write.
    fn file(&self, path: UserPath, flags: c_int) -> Option<Result<OwnedFd, c_int>> {
        if flags & libc::O_PATH != 0 && path.is(DEVICE) {
            let stand_in = open("/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            return Some(stand_in.map_err(|errno| errno.raw_os_error()));
        }
        parameter(path, flags)
    }

    fn recognises(&self, fd: BorrowedFd<'_>) -> bool {
        ringway_ipc::is_daemon(fd)
    }

    fn is_request(&self, number: u32) -> bool {
        [NIOCCTRL, NIOCTXSYNC, NIOCRXSYNC, NIOCGINFO, NIOCREGIF, NIOCCONFIG].contains(&number)
    }

    fn new_descriptor(&self) -> &'static dyn Descriptor {
        Box::leak(Box::new(NetmapFd::new()))
    }
}

impl Descriptor for NetmapFd {
    fn begin(&self, flags: c_int) {
        NetmapFd::begin(self, flags);
    }

    fn end(&self, unused: &End) -> Option<AfterClose> {
        NetmapFd::end(self, unused).map(AfterClose::new)
    }

    #[inline]
    fn ioctl(&self, fd: RawFd, number: u32, argument: u64) -> Result<c_int, c_int> {
        match number {
            NIOCTXSYNC => sync(self, fd, Dir::Tx)?,
            NIOCRXSYNC => sync(self, fd, Dir::Rx)?,
            _ => request::answer(self, fd, number, argument)?,
        }
        Ok(0)
    }

    fn status_flags(&self, flags: c_int) -> c_int {
        flags & !libc::O_ACCMODE | self.access()
    }

    /// The region (S-LIFE-3).
    fn mapped_file(&self, fd: RawFd, offset: i64, len: usize) -> Result<BorrowedFd<'_>, c_int> {
        let binding = self.binding(fd).ok_or(libc::EINVAL)?;
        let region = binding.region();
        let end = u64::try_from(offset).ok().and_then(|at| at.checked_add(len as u64));
        match end {
            Some(end) if len != 0 && end <= region.layout().memsize() => Ok(region.memfd()),
            _ => Err(libc::EINVAL),
        }
    }

    /// The device can be neither read nor written.
    fn read(&self, _fd: RawFd) -> Option<Result<usize, c_int>> {
        let opened = self.access() != libc::O_WRONLY;
        Some(Err(if opened { libc::EINVAL } else { libc::EBADF }))
    }

    fn write(&self, _fd: RawFd) -> Option<Result<usize, c_int>> {
        let opened = self.access() != libc::O_RDONLY;
        Some(Err(if opened { libc::EINVAL } else { libc::EBADF }))
    }

    /// The connection's messages are none of the program's, for which it is no socket.
    fn receive(&self, _fd: RawFd) -> Option<Result<usize, c_int>> {
        Some(Err(libc::ENOTSOCK))
    }

    fn look(&self, fd: RawFd, events: c_short) -> c_short {
        ready::look(self, fd, events)
    }

    fn position(&self, events: c_short) -> u64 {
        self.bound().map_or(0, |binding| ready::position(binding, events))
    }

    fn arm(&self, events: c_short) -> bool {
        let Some(binding) = self.bound() else { return false };
        ready::wanted(events).fold(false, |drained, dir| drained | binding.arm(dir))
    }

    fn disarm(&self, events: c_short) {
        let Some(binding) = self.bound() else { return };
        ready::wanted(events).for_each(|dir| binding.disarm(dir));
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        self.bound()?.busy_poll()
    }

    fn wait_sources(&self, fd: RawFd, events: c_short, add: &mut dyn FnMut(RawFd, c_short)) {
        let Some(binding) = self.bound() else { return };
        for (source, events) in ready::wanted(events).flat_map(|dir| binding.wait_sources(dir)) {
            add(source.as_raw_fd(), events.bits() as c_short);
        }
        // The connection speaks up only when the daemon hangs up, and then for ever: rings that go
        // on without it do not listen.
        if binding.is_served() {
            add(fd, 0);
        }
    }

    fn woken(&self, fd: RawFd, source: RawFd, revents: c_short) {
        if source == fd && revents & (POLLHUP | POLLERR) != 0 {
            self.set_gone();
        }
    }

    /// Where the switch itself is in the kernel there is always room (S-POLL-7), so a program that
    /// does not wait counts on it; here its worker is about to make some.
    fn is_about_to(&self, events: c_short) -> bool {
        let behind = |binding: &Binding| worker::is_behind(binding, Dir::Tx);
        ready::wanted(events).any(|dir| dir == Dir::Tx) && self.bound().is_some_and(behind)
    }

    fn is_closed_at_exit(&self) -> bool {
        self.bound().is_some_and(Binding::keeps_traffic)
    }
}

/// S-SYNC-2, S-SYNC-3: invalid cursors are no error of the call; that the interface has gone is one.
#[inline]
fn sync(netmap: &NetmapFd, fd: RawFd, dir: Dir) -> Result<(), c_int> {
    // S-LIFE-4.
    let binding = netmap.binding(fd).ok_or(libc::ENXIO)?;
    if binding.in_csb_mode() {
        // S-CSB-4.
        return Err(libc::EBUSY);
    }
    if dir == Dir::Rx {
        stream::note_receiver(binding);
    }
    // S-SYNC-1: all rings of the direction; a sync of a ring waits for nothing.
    let good = binding.sync(dir);
    if dir == Dir::Rx {
        binding.looked();
    }
    worker::catch_up(netmap, fd, binding, dir);
    if !good && binding.is_gone(dir) {
        // Of the other direction, too.
        netmap.set_gone();
    }
    if netmap.is_gone() { Err(libc::EIO) } else { Ok(()) }
}
