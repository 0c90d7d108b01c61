//! The end of the broker, as the processes learn of it that end with it.
//!
//! They are told by their sockets, whose other ends the broker has. But a killed broker can keep all its descriptors:
//! one of its threads may be closing a descriptor of a file system in user space (FUSE) that does not answer, and no
//! signal ends that ([closer](crate::closer)). A pidfd tells of the end of all threads, so it does not tell of this one.
//! The kernel sends a signal when the thread ends that has started the process, which is the first of its process: the
//! launcher hears of the broker, and what it has started of the launcher, which ends first.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    thread,
};

use ringway_ipc::has_ended;
use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{Shutdown, shutdown},
    process::{Signal, set_parent_process_death_signal},
};

use crate::sys;

/// The broker, watched by another process.
pub struct BrokerEnd {
    pid: u32,
    /// Readable when the process's parent has ended.
    told: OwnedFd,
}

impl BrokerEnd {
    /// Watches process `pid`. To be called by a process before it has a second thread.
    pub fn watch(pid: u32) -> io::Result<BrokerEnd> {
        let told = sys::as_descriptor(&[libc::SIGUSR1])?;
        set_parent_process_death_signal(Some(Signal::USR1))?;
        Ok(BrokerEnd { pid, told })
    }

    /// Waits until there is something to be read from a socket, or its other end is closed: then true. False: the
    /// broker has ended.
    pub fn await_message(&self, socket: BorrowedFd<'_>) -> bool {
        self.wait(Some(socket))
    }

    fn wait(&self, socket: Option<BorrowedFd<'_>>) -> bool {
        loop {
            // The parent may have ended before the signal was asked for; and that of the launcher alone ends nothing.
            if has_ended(self.pid) {
                return false;
            }
            let mut fds = vec![PollFd::new(&self.told, PollFlags::IN)];
            fds.extend(socket.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
            let heard = poll(&mut fds, None).is_ok();
            let mut heard = fds.iter().map(|fd| heard && !fd.revents().is_empty());
            if heard.next() == Some(true) {
                let mut signal = [0u8; size_of::<libc::signalfd_siginfo>()];
                let _ = rustix::io::read(&self.told, &mut signal);
            } else if heard.next() == Some(true) {
                return true;
            }
        }
    }

    /// Starts a thread that hangs up a socket when the broker has ended, as if the broker had done so.
    pub fn hang_up(self, socket: &OwnedFd) -> io::Result<()> {
        let socket = socket.try_clone()?;
        let wait = move || {
            while self.wait(None) {}
            let _ = shutdown(&socket, Shutdown::Both);
        };
        thread::Builder::new().name("broker-end".into()).spawn(wait).map(drop)
    }
}
