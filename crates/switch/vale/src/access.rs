//! Which frames a port may send, and which it gets: an access list, a filter in classic BPF for each.
//!
//! A filter looks at what the worker alone can change: bursts are copied before they are filtered. So
//! what it has looked at is what others get, even if the sender writes to its own meanwhile.

use std::iter;

use ringway_filter::{Bytes, Interpreter, Program};
use ringway_switch_port::{Burst, Drops, Frame, FrameStatus, HEADER};

use crate::budget::Budget;

/// A filter of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFilter {
    /// As the user wrote it, for display.
    pub text: String,
    pub program: Program,
}

/// The same, ready to be run.
pub(crate) struct Access {
    filter: Interpreter,
    /// Instructions that it may take for a frame.
    length: usize,
}

impl Access {
    pub fn new(PortFilter { program, .. }: &PortFilter) -> Access {
        Access { filter: Interpreter::new(program), length: program.insns().len() }
    }

    /// Marks the frames that the port may not send.
    pub fn check(&self, burst: &mut Burst<'_>, budget: &mut Budget) {
        self.charge(burst.frames.len(), budget);
        for at in 0..burst.frames.len() {
            let Some(frame) = burst.frames.get(at) else { break };
            if frame.status != FrameStatus::Fine || self.passes(frame, burst) {
                continue;
            }
            if let Some(frame) = burst.frames.get_mut(at) {
                frame.status = FrameStatus::Denied;
            }
        }
    }

    /// Takes the frames out of `run` that the port does not get.
    pub fn retain(
        &self,
        run: &mut Vec<Frame>,
        burst: &Burst<'_>,
        drops: &mut Drops,
        budget: &mut Budget,
    ) {
        self.charge(run.len(), budget);
        let before = run.len();
        run.retain(|frame| self.passes(frame, burst));
        drops.denied += (before - run.len()) as u64;
    }

    /// What it takes for so many frames.
    pub fn charge(&self, frames: usize, budget: &mut Budget) {
        budget.charge_filter(frames, self.length);
    }

    pub fn passes(&self, frame: &Frame, burst: &Burst<'_>) -> bool {
        let Some(length) = frame.len.checked_sub(burst.source.header_len.into()) else {
            return false;
        };
        self.filter.run(&FrameBytes { frame, burst, length }, length) != 0
    }
}

/// A frame as its receiver is to have it, without a virtio-net header.
struct FrameBytes<'a> {
    frame: &'a Frame,
    burst: &'a Burst<'a>,
    length: u32,
}

impl FrameBytes<'_> {
    /// The byte there. It is inside.
    fn byte(&self, at: u32) -> Option<u8> {
        if let Some(byte) = self.frame.header().get(at as usize) {
            return Some(*byte);
        }
        let mut at = at.checked_add_signed(self.frame.skip.into())?;
        let (first, others) = self.burst.behind_header(self.frame)?;
        for (buf, len) in iter::once(&first).chain(others) {
            match at.checked_sub(*len) {
                None => return buf.read::<1>(at as usize).map(|[byte]| byte),
                Some(rest) => at = rest,
            }
        }
        None
    }
}

impl Bytes for FrameBytes<'_> {
    #[inline]
    fn read<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        at.checked_add(N as u32).filter(|end| *end <= self.length)?;
        if at >= HEADER as u32
            && let Some((buf, len)) = self.burst.begin(self.frame)
            && let Some(at) = at.checked_add_signed(self.frame.skip.into())
            && at.saturating_add(N as u32) <= len
        {
            return buf.read(at as usize);
        }
        let mut bytes = [0; N];
        for (at, byte) in (at..).zip(&mut bytes) {
            *byte = self.byte(at)?;
        }
        Some(bytes)
    }
}
