//! The monitors of a port that has no rings of a program's, such as an interface: they get copies.

use ringway_abi::NS_MOREFRAG;
use ringway_mirror::Shown;
use ringway_region::Buf;

use crate::{
    frame::{Burst, Frame, PIECE},
    port::PortMirrors,
};

/// What shows such a port's packets to its monitors. Without any it costs a look at an empty list.
#[derive(Debug, Default)]
pub struct CopyMirrors {
    mirrors: PortMirrors,
    /// Whether any monitor is shown what is delivered.
    any_received: bool,
    /// Whether any is shown what the port sends.
    any_sent: bool,
    /// Frames that were delivered, one behind the other, and their pieces.
    bytes: Vec<u8>,
    slots: Vec<Shown>,
    /// Arrival times of the frames that the port sent last, in their order.
    times: Vec<u64>,
}

impl CopyMirrors {
    /// As [`Mirrored::set_mirrors`](crate::Mirrored::set_mirrors). Monitors that take buffers get nothing.
    pub fn set(&mut self, mirrors: PortMirrors) {
        self.any_sent = mirrors.tx.iter().any(|mirrors| !mirrors.is_empty());
        self.any_received = mirrors.rx.iter().any(|mirrors| !mirrors.is_empty());
        self.mirrors = mirrors;
    }

    /// Whether anything looks at what the port sends, so that the times of that matter.
    #[inline]
    pub fn shows_sent(&self) -> bool {
        self.any_sent
    }

    /// For the times of the frames that the port sends next: nanoseconds of CLOCK_TAI, or 0 where that is
    /// not known. `None`: nothing looks at them.
    #[inline]
    pub fn times(&mut self) -> Option<&mut Vec<u64>> {
        self.times.clear();
        self.any_sent.then_some(&mut self.times)
    }

    /// As [`Mirrored::show_sent`](crate::Mirrored::show_sent), with the [times](Self::times) that the port
    /// has noted.
    pub fn show_sent(&mut self, ring: usize, bytes: &[u8], slots: &[Shown]) {
        let Some(mirrors) = self.mirrors.tx.get_mut(ring) else { return };
        if self.times.is_empty() {
            return mirrors.show(bytes, slots);
        }
        let mut times = self.times.iter().copied();
        let mut time = times.next().unwrap_or(0);
        let timed = |slot: &Shown| {
            let timed = Shown { time, ..*slot };
            if slot.flags & NS_MOREFRAG == 0 {
                time = times.next().unwrap_or(0);
            }
            timed
        };
        mirrors.show(bytes, &slots.iter().map(timed).collect::<Vec<_>>());
    }

    /// Takes note of a frame that the port has been given.
    #[inline]
    pub fn note_received(&mut self, frame: &Frame, burst: &Burst<'_>) {
        if self.any_received {
            self.copy(frame, burst);
        }
    }

    #[cold]
    fn copy(&mut self, frame: &Frame, burst: &Burst<'_>) {
        let begin = self.bytes.len();
        self.bytes.resize(begin + frame.len as usize, 0);
        burst.gather(frame, Buf::of(self.bytes.get_mut(begin..).unwrap_or_default()));
        let mut left = frame.len;
        while left > 0 {
            let len = left.min(PIECE);
            left -= len;
            let flags = if left > 0 { NS_MOREFRAG } else { 0 };
            self.slots.push(Shown { len, flags, time: 0 });
        }
    }

    /// Shows what was noted to the monitors of receive ring `ring`.
    #[inline]
    pub fn show_received(&mut self, ring: usize) {
        if self.slots.is_empty() {
            return;
        }
        if let Some(mirrors) = self.mirrors.rx.get_mut(ring) {
            mirrors.show(&self.bytes, &self.slots);
        }
        self.bytes.clear();
        self.slots.clear();
    }

    /// Wakes the monitors that wait: all, or unless `idle` those that have been given much.
    pub fn wake(&mut self, idle: bool) {
        let PortMirrors { tx, rx } = &mut self.mirrors;
        tx.iter_mut().chain(rx).for_each(|mirrors| mirrors.wake(idle));
    }
}
