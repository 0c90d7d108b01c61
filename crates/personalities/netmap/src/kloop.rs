//! The sync loop: whoever calls it plays the kernel for a program in CSB mode (S-KLOOP).
//!
//! ```text
//!   program (a guest)                      the loop, inside its ioctl
//!   -----------------                      --------------------------
//!   atok: head, cur            ---->       sync of the ring, by its ordinary driver
//!   ktoa: hwcur, hwtail        <----
//!   ioeventfd, if kern_need_kick  ---->    sleeps on it, and on the ring's own doorbell
//!   irqfd                      <----       if hwtail moved and appl_need_kick
//! ```
//!
//! In the direct modes netmap processes a ring in the context of whoever writes its ioeventfd.
//! We are not there when another process does, so that the loop does it, as for the others;
//! what the program sees is the same.

mod kicks;

use std::{os::fd::RawFd, time::Duration};

use ringway::{Binding, BoundRing};
use ringway_abi::Dir;
use ringway_kring::{Running, Waiter, prepare};

use crate::{
    csb::{self, Entry},
    kloop::kicks::{Eventfd, Kicks, Pace},
    netmap_fd::NetmapFd,
    request::Options,
};

/// The longest pause between two rounds without eventfds, in microseconds.
const LONGEST_SLEEP_US: u32 = 1_000_000;

/// Rounds without work before the loop sleeps: about as long as a wake-up takes.
const IDLE_ROUNDS: u32 = 64;

/// NETMAP_REQ_SYNC_KLOOP_START: returns when the loop has been stopped.
pub fn start(
    netmap: &NetmapFd,
    fd: RawFd,
    sleep_us: u32,
    options: &mut Options,
) -> Result<(), i32> {
    // S-KLOOP-1.
    if sleep_us > LONGEST_SLEEP_US {
        return Err(libc::EINVAL);
    }
    let binding = netmap.binding(fd).ok_or(libc::ENXIO)?;
    let mode = binding.csb_mode().filter(|mode| mode.is_on()).ok_or(libc::EINVAL)?;
    let entries = csb::entries(netmap).ok_or(libc::EINVAL)?;
    let running = mode.run().ok_or(libc::EBUSY)?;
    let kicks = Kicks::new(options, binding, Duration::from_micros(sleep_us.into()))?;
    let rings = binding.all_rings().zip(entries).zip(kicks.program);
    let rings = rings.map(|((ring, entry), irq)| LoopRing { ring, entry, irq }).collect();
    Loop { binding, rings, pace: kicks.pace, running }.run();
    Ok(())
}

/// NETMAP_REQ_SYNC_KLOOP_STOP (S-KLOOP-2).
pub fn stop(netmap: &NetmapFd, fd: RawFd) -> Result<(), i32> {
    let binding = netmap.binding(fd).ok_or(libc::ENXIO)?;
    if let Some(mode) = binding.csb_mode() {
        mode.ask_to_stop();
        binding.all_rings().for_each(|ring| ring.doorbell().notify());
        mode.wait_for_end();
    }
    Ok(())
}

/// One ring, its entries, and what to write to when the program is to be told of news.
struct LoopRing<'a> {
    ring: &'a BoundRing,
    entry: Entry,
    irq: Option<Eventfd>,
}

impl LoopRing<'_> {
    /// Syncs the ring. Returns whether anything has moved.
    #[inline]
    fn sync(&self) -> bool {
        let [head, tail] = self.ring.kring().reconciled();
        // Invalid cursors move nothing, until the program has put them right.
        self.ring.sync_view(&self.entry);
        let [new_head, new_tail] = self.ring.kring().reconciled();
        if tail != new_tail
            && let Some(irq) = &self.irq
            && self.entry.wants_kick()
        {
            irq.signal();
        }
        [head, tail] != [new_head, new_tail]
    }
}

struct Loop<'a> {
    binding: &'a Binding,
    rings: Vec<LoopRing<'a>>,
    pace: Pace,
    running: Running<'a>,
}

impl Loop<'_> {
    fn run(&self) {
        self.ask_for_kicks(false);
        match &self.pace {
            Pace::Timed(pause) => self.run_timed(*pause),
            Pace::Events(events) => self.run_on(events),
        }
    }

    /// S-KLOOP-3.
    fn run_timed(&self, pause: Duration) {
        let Some(first) = self.rings.first() else { return };
        while !self.running.must_stop() {
            self.round();
            // Nobody rings for news, since nobody waits for them: it is for the end.
            kicks::pause(first.ring.doorbell(), pause);
        }
    }

    /// S-KLOOP-4, S-KLOOP-6.
    fn run_on(&self, events: &kicks::Events) {
        let mut idle = 0;
        while !self.running.must_stop() {
            idle = if self.round() { 0 } else { idle + 1 };
            if idle < IDLE_ROUNDS {
                std::hint::spin_loop();
                continue;
            }
            idle = 0;
            if !prepare(&mut Idle(self)).is_ready() {
                events.wait();
            }
            self.ask_for_kicks(false);
        }
    }

    /// Serves every ring once. Returns whether anything has moved.
    #[inline]
    fn round(&self) -> bool {
        self.rings.iter().fold(false, |moved, ring| moved | ring.sync())
    }

    fn ask_for_kicks(&self, wanted: bool) {
        self.rings.iter().for_each(|ring| ring.entry.ask_for_kicks(wanted));
    }
}

/// A loop without work.
struct Idle<'l, 'b>(&'l Loop<'b>);

impl Waiter for Idle<'_, '_> {
    /// A doorbell that was drained may have been for the end.
    fn look(&mut self) -> bool {
        self.0.running.must_stop() || self.0.round()
    }

    fn arm(&mut self) -> bool {
        self.0.ask_for_kicks(true);
        self.0.binding.arm(Dir::Tx) | self.0.binding.arm(Dir::Rx)
    }

    /// In CSB mode the rings have no other program.
    fn pass_on(&mut self) {}
}
