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

    /// As [`Mirrored::show_sent`](crate::Mirrored::show_sent).
    pub fn show_sent(&mut self, ring: usize, bytes: &[u8], slots: &[Shown]) {
        if let Some(mirrors) = self.mirrors.tx.get_mut(ring) {
            mirrors.show(bytes, slots);
        }
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
