//! What a sleeping thread is woken by.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

use rustix::{
    event::{EventfdFlags, eventfd},
    pipe::{PipeFlags, pipe_with},
};

/// A descriptor that becomes readable when there is something to do, once until it is cleared.
#[derive(Debug)]
pub struct Notifier {
    read: OwnedFd,
    /// The other end of a pipe; an eventfd is its own.
    write: Option<OwnedFd>,
    raised: AtomicBool,
}

impl Notifier {
    /// An eventfd.
    ///
    /// # Errors
    /// The kernel's, where there are no descriptors left.
    pub fn new() -> io::Result<Notifier> {
        let read = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Notifier { read, write: None, raised: AtomicBool::new(false) })
    }

    /// A pipe with four bytes in it when it is raised, for programs that read as many.
    ///
    /// # Errors
    /// The kernel's, where there are no descriptors left.
    pub fn pipe() -> io::Result<Notifier> {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        Ok(Notifier { read, write: Some(write), raised: AtomicBool::new(false) })
    }

    /// What to poll for reading.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// Makes the descriptor readable. From any thread, any number of times: a system call the first time.
    pub fn raise(&self) {
        if self.raised.swap(true, SeqCst) {
            return;
        }
        // It has room: one message is in it at most, unless the program takes part in it itself.
        let _ = match &self.write {
            Some(pipe) => rustix::io::write(pipe, &1u32.to_ne_bytes()),
            None => rustix::io::write(&self.read, &1u64.to_ne_bytes()),
        };
    }

    /// Takes back what was raised: before looking for what there is to do, or what comes meanwhile is missed.
    pub fn clear(&self) {
        // All of it: the thread that raised it may write after it was cleared once.
        let _ = rustix::io::read(&self.read, &mut [0; 64]);
        self.raised.store(false, SeqCst);
    }

    /// The program has read the message itself.
    pub fn has_been_read(&self) {
        self.raised.store(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(notifier: &Notifier) -> bool {
        let fd = notifier.fd();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&Timespec::default())).unwrap() == 1
    }

    #[test]
    fn it_is_readable_from_raise_to_clear() {
        for notifier in [Notifier::new().unwrap(), Notifier::pipe().unwrap()] {
            for _ in 0..3 {
                assert!(!is_readable(&notifier));
                notifier.raise();
                notifier.raise();
                assert!(is_readable(&notifier));
                notifier.clear();
                notifier.clear();
            }
        }
    }

    #[test]
    fn a_pipe_has_four_bytes() {
        let notifier = Notifier::pipe().unwrap();
        notifier.raise();
        assert_eq!(rustix::io::read(notifier.fd(), &mut [0; 16]).unwrap(), 4);
        notifier.has_been_read();
        notifier.raise();
        assert!(is_readable(&notifier));
    }
}
