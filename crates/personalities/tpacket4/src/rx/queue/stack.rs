//! Receiving in copy mode: packets are copied out of the kernel's blocks.

use std::{iter, ops::ControlFlow};

use ringway_packet::{Heard, Listener};

use super::{Found, RxQueue};

/// Blocks that are looked at in one go, at most: a program that gives frames back as fast as they are filled must not
/// hold the call for ever.
const BLOCKS: u32 = 32;

impl RxQueue {
    /// Moves packets that were heard.
    pub fn take_heard(&mut self, listener: &mut Listener) -> Found {
        // Before anything is given back: what was handed over before counts as such.
        self.ring.outstanding();
        let mut found = Found::Nothing;
        for _ in 0..BLOCKS {
            if self.next_frame().is_none() {
                break;
            }
            let walked = listener.walk(|heard| {
                self.hear(&heard);
                // What was shown does not come again.
                match self.next_frame() {
                    Some(_) => ControlFlow::Continue(()),
                    None => ControlFlow::Break(()),
                }
            });
            if walked.is_none() {
                return found;
            }
            found = Found::Packets;
        }
        listener.give_back();
        match found {
            Found::Nothing if listener.filled() > listener.returned() => Found::NoRoom,
            found => found,
        }
    }

    /// A packet, for which there is one frame at the least.
    #[inline]
    fn hear(&mut self, heard: &Heard<'_>) {
        let len = heard.data.size();
        // The kernel had no room for all of it.
        let whole = len == heard.length;
        if whole && len <= self.area.payload() {
            self.put(&heard.data, len);
        } else if whole && self.reserve(len) {
            self.fill(iter::once((Some(heard.data), len)), len);
            self.packets += 1;
        } else {
            self.dropped += 1;
        }
    }
}
