//! An interface and the host's stack behind it: frames for all pass between the two in the kernel, and
//! the worker, which has copies, gives those to the other ports alone.
//!
//! The worker says when that begins, and then looks how many frames the program has handed over so far:
//! those may not have passed, and it gives them to all. When it ends, the worker sees to all ports at
//! once: a frame on its way comes twice then, and none is lost.
//!
//! What is for one machine passes unless the program knows that machine behind a third port. When an address moves
//! from there to the stack, or is configured there, frames that were handed over before have not passed, and the
//! worker gives those for one machine to the port beside: some come twice, and none is lost.

use ringway_switch_port::PortIndex;

/// What the worker knows of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    port: Option<PortIndex>,
    /// All frames after so many have passed.
    since: u64,
    /// But for those to an address that has moved: those after so many.
    moved: u64,
}

/// The port that has a burst already, where that is for it, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// What is for all.
    pub all: Option<PortIndex>,
    /// What is for it alone.
    pub own: Option<PortIndex>,
}

impl Beside {
    /// From now on frames pass to `port`, or to none; `begun` frames were handed over before.
    pub fn set(&mut self, port: Option<PortIndex>, begun: u64) {
        if port != self.port {
            *self = Beside { port, since: begun, moved: begun };
        }
    }

    /// An address has moved to port `to`, or to any if `None`, after `begun` frames were handed over.
    pub fn note_moved(&mut self, to: Option<PortIndex>, begun: impl FnOnce() -> u64) {
        if self.port.is_some_and(|port| to.is_none_or(|to| to == port)) {
            self.moved = begun();
        }
    }

    /// The port that has what was handed over after the first `received` frames.
    pub fn of(&self, received: u64) -> Passed {
        let after = |number| self.port.filter(|_| received >= number);
        Passed { all: after(self.since), own: after(self.since.max(self.moved)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_were_on_their_way_are_given_to_all() {
        let both = |port| Passed { all: port, own: port };
        let mut beside = Beside::default();
        assert_eq!(beside.of(0), both(None));
        beside.set(Some(7), 9);
        assert_eq!(beside.of(8), both(None), "the ninth had begun before");
        assert_eq!(beside.of(9), both(Some(7)));
        beside.set(Some(7), 20);
        assert_eq!(beside.of(12), both(Some(7)), "nothing has changed");
        beside.note_moved(Some(6), || 30);
        assert_eq!(beside.of(12), both(Some(7)), "to another");
        beside.note_moved(Some(7), || 30);
        assert_eq!(beside.of(29), Passed { all: Some(7), own: None });
        assert_eq!(beside.of(30), both(Some(7)));
        beside.note_moved(None, || 31);
        assert_eq!(beside.of(30), Passed { all: Some(7), own: None });
        beside.set(None, 40);
        assert_eq!(beside.of(41), both(None));
    }
}
