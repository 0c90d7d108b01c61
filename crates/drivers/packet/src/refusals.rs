//! Why the kernel had no room (ENOBUFS) for frames that were given up: because they are too long, or because nothing
//! moved.
//!
//! The error is the same for a device whose queue is full and for a device that will never have a frame of that length: a
//! veth pair whose other end has a smaller MTU, say. What comes next tells them apart. A device that takes shorter frames
//! behind those that it has refused, and none so long, refuses them for their length. If it has refused a shorter
//! frame as well, or takes a frame so long, it was full. Where nothing has come behind, it was full: what was taken
//! before says nothing, since a device may fill up by other ways than this socket.

/// Of a socket that sends frames in their order.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// The least length that was given up, since one so long was taken.
    least: Option<u32>,
    /// A shorter one was taken since.
    is_passed: bool,
    /// Frames that were given up, of which it is not known yet.
    open: u64,
    too_long: u64,
}

impl Refusals {
    /// A frame of `bytes` bytes was given up.
    #[cold]
    pub fn given_up(&mut self, bytes: u32) {
        match self.least {
            Some(least) if bytes >= least && self.is_passed => self.too_long += 1,
            Some(least) if bytes >= least => self.open += 1,
            // If a longer one was given up before, then not for its length.
            _ => (self.least, self.is_passed, self.open) = (Some(bytes), false, 1),
        }
    }

    /// Frames of these lengths were taken.
    #[inline]
    pub fn taken(&mut self, lengths: impl Iterator<Item = u32>) {
        if self.least.is_some() {
            lengths.for_each(|bytes| self.was_taken(bytes));
        }
    }

    #[cold]
    fn was_taken(&mut self, bytes: u32) {
        if self.least.is_some_and(|least| bytes < least) {
            self.is_passed = true;
            self.too_long += std::mem::take(&mut self.open);
        } else {
            (self.least, self.is_passed, self.open) = (None, false, 0);
        }
    }

    /// How many of those that were given up since the last call were too long. Of the others it is known by now that
    /// they were not, or never will be.
    pub fn take_too_long(&mut self) -> u64 {
        self.open = 0;
        std::mem::take(&mut self.too_long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_next_tells_why() {
        enum Event {
            Refused(u32),
            Taken(&'static [u32]),
            TooLong(u64),
        }
        use Event::{Refused, Taken, TooLong};
        let cases: [&[Event]; 7] = [
            // Full, by frames of other ways: what was taken long ago was shorter.
            &[Taken(&[60]), Refused(100), Refused(100), TooLong(0), Taken(&[100]), TooLong(0)],
            // The other end takes shorter ones alone.
            &[Refused(1514), Refused(1600), Taken(&[60]), Refused(1514), TooLong(3)],
            &[Refused(1514), TooLong(0), Taken(&[60]), TooLong(0), Refused(1514), TooLong(1)],
            // A shorter one is refused as well, and passes when there is room.
            &[Refused(1514), Refused(60), Taken(&[60]), TooLong(0), Refused(1514), TooLong(0)],
            // One so long passes.
            &[Refused(1000), Taken(&[1000, 60]), Refused(1514), TooLong(0)],
            &[Refused(1514), Taken(&[60, 1514]), TooLong(1), Refused(1514), TooLong(0)],
            // A smaller MTU than before.
            &[Refused(1514), Taken(&[1000]), Refused(1000), Taken(&[60]), TooLong(2)],
        ];
        for (number, events) in cases.iter().enumerate() {
            let mut refusals = Refusals::default();
            for (at, event) in events.iter().enumerate() {
                match event {
                    Refused(bytes) => refusals.given_up(*bytes),
                    Taken(lengths) => refusals.taken(lengths.iter().copied()),
                    TooLong(count) => {
                        assert_eq!(refusals.take_too_long(), *count, "case {number}, {at}");
                    }
                }
            }
        }
    }
}
