//! The program's kicks, as the mover sees them.
//!
//! While a thread polls an AF_XDP socket, the kernel signals its wait queue for each frame that the socket transmits, even
//! where the thread polls for reception only. That costs the transmitting thread more than 50 ns a frame. So the mover
//! does not poll the socket while the program kicks often and receives nothing: each kick also receives, and the mover
//! looks at the ring once in each [`REST`].

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

/// How long the mover rests between two looks. A packet may be late by that if no kick receives it.
pub const REST: Duration = Duration::from_millis(1);
/// Kicks for which a mover that sleeps on the socket is woken, to see how often they come.
const MANY: u32 = 16;
/// Kicks that are to come in a rest, at the least.
const OFTEN: u32 = 2;

/// How many there were, and how many when the mover last asked.
#[derive(Default)]
pub struct Kicks {
    made: AtomicU32,
    asked: AtomicU32,
}

impl Kicks {
    /// The program kicks. True if the mover is to ask.
    pub fn count(&self) -> bool {
        let made = self.made.fetch_add(1, Relaxed).wrapping_add(1);
        made.wrapping_sub(self.asked.load(Relaxed)) == MANY
    }

    /// Whether the program has kicked often in the `time` since the mover last asked.
    pub fn come_often(&self, time: Duration) -> bool {
        let made = self.made.load(Relaxed);
        let kicks = made.wrapping_sub(self.asked.swap(made, Relaxed));
        REST * kicks >= time * OFTEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kick(kicks: &Kicks, times: u32) -> u32 {
        (0..times).map(|_| u32::from(kicks.count())).sum()
    }

    #[test]
    fn the_mover_is_woken_once_and_rests_while_kicks_come() {
        let kicks = Kicks { made: (u32::MAX - 5).into(), asked: (u32::MAX - 5).into() };
        assert_eq!(kick(&kicks, MANY - 1), 0);
        assert_eq!(kick(&kicks, 1000), 1);
        assert!(kicks.come_often(REST));
        assert_eq!(kick(&kicks, OFTEN), 0);
        assert!(kicks.come_often(REST));
        assert_eq!(kick(&kicks, OFTEN - 1), 0);
        assert!(!kicks.come_often(REST));
        assert!(!kicks.come_often(Duration::from_secs(1)));
    }

    #[test]
    fn a_few_now_and_then_are_not_often() {
        let kicks = Kicks::default();
        assert_eq!(kick(&kicks, MANY), 1);
        assert!(!kicks.come_often(Duration::from_millis(20)));
        assert_eq!(kick(&kicks, MANY), 1);
    }
}
