//! An interface and the host's stack behind it: frames for all pass between the two in the kernel, and
//! the worker, which has copies, gives those to the other ports alone.
//!
//! The worker says when that begins, and then looks how many frames the program has handed over so far:
//! those may not have passed, and it gives them to all. When it ends, the worker sees to all ports at
//! once: a frame on its way comes twice then, and none is lost.

use ringway_switch_port::PortIndex;

/// What the worker knows of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    port: Option<PortIndex>,
    /// All frames after so many have passed.
    since: u64,
}

impl Beside {
    /// From now on frames pass to `port`, or to none; `begun` frames were handed over before.
    pub fn set(&mut self, port: Option<PortIndex>, begun: u64) {
        if port != self.port {
            *self = Beside { port, since: begun };
        }
    }

    /// The port that has what was handed over after the first `received` frames.
    pub fn of(&self, received: u64) -> Option<PortIndex> {
        self.port.filter(|_| received >= self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_were_on_their_way_are_given_to_all() {
        let mut beside = Beside::default();
        assert_eq!(beside.of(0), None);
        beside.set(Some(7), 9);
        assert_eq!(beside.of(8), None, "the ninth had begun before");
        assert_eq!(beside.of(9), Some(7));
        beside.set(Some(7), 20);
        assert_eq!(beside.of(12), Some(7), "nothing has changed");
        beside.set(None, 20);
        assert_eq!(beside.of(21), None);
    }
}
