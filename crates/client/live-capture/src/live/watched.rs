//! The descriptor that a program watches: readable while there are packets for its next reads, and only then.

use std::sync::{PoisonError, atomic::Ordering::Relaxed};

use ringway::{Error, Interest};
use rustix::fd::RawFd;

use super::{Live, Reader};

impl Live {
    /// The program is going to watch the descriptor: from now on it is readable while there are packets, and only
    /// then. What a read has kept for the program stays until the next read, which makes it so.
    pub fn watch(&self) -> RawFd {
        if !self.watched.swap(true, Relaxed)
            && !self.has_early()
            && let Some(mut reader) = self.try_reader()
            && reader.reopening.is_none()
        {
            if reader.taken == 0 {
                // An error is the next read's.
                let _ = self.prepare_watched();
            } else {
                // It was to end with a packet that stays in the ring.
                reader.turn -= reader.run.end();
            }
        }
        self.fd
    }

    /// Has the descriptor be readable, if the program watches it, until a read finds nothing, or
    /// [`settle`](Self::settle): for a caller that has read a packet and keeps it for the program.
    pub fn hold(&self) {
        if self.watched.load(Relaxed) {
            self.hold_watched();
        }
    }

    /// The descriptor, if the program watches it, is readable while there are packets for the next reads.
    pub fn settle(&self) {
        if self.watched.load(Relaxed)
            && !self.has_early()
            && let Some(mut reader) = self.try_reader()
            && reader.reopening.is_none()
        {
            self.settle_watched(&mut reader);
        }
    }

    /// Syncs; whether there is something. If not, the descriptor is not readable until there is. It costs a few calls more
    /// than a sleep without it.
    pub(super) fn prepare_watched(&self) -> Result<bool, Error> {
        let mut port = self.port.write().unwrap_or_else(PoisonError::into_inner);
        port.prepare(Interest::Rx)
    }

    /// After a read: the descriptor is readable if there is more.
    pub(super) fn settle_watched(&self, reader: &mut Reader) {
        if reader.taken > 0 {
            // A packet is kept in the ring, and there are others behind it: the last one is copied.
            self.hold_watched();
        } else {
            reader.found = None;
            // An error is the next read's.
            let _ = self.prepare_watched();
        }
    }

    /// A sync takes what has come out of an interface's socket, which is not readable any more then: as long as slots
    /// are left in the ring, the descriptor is readable without it. Where it is already, this makes no system call.
    fn hold_watched(&self) {
        self.port.write().unwrap_or_else(PoisonError::into_inner).hold();
    }
}
