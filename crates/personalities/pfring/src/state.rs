//! Whether a receive is a plain one: of a ring with one device, which has nothing more to look after than its packets.
//! Each thing that says otherwise has a bit, so that all of them are one look.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::abi::{REENTRANT, RX_PACKET_BOUNCE};

/// The ring is not enabled.
pub const DISABLED: u32 = 1;
/// Its mode lets the program receive nothing.
pub const SENDS_ONLY: u32 = 1 << 1;
/// It has been shut down.
pub const CLOSING: u32 = 1 << 2;
/// The program has not received yet: until then a thread may apply its rules.
pub const NOT_READ: u32 = 1 << 3;
/// What is received goes out by a reflector.
pub const REFLECTS: u32 = 1 << 4;
/// Several threads read.
pub const SHARED: u32 = 1 << 5;
/// What was received last may be sent.
pub const BOUNCES: u32 = 1 << 6;
/// It has several devices, or none.
pub const NOT_ONE: u32 = 1 << 7;

/// What there is of these.
pub struct State(AtomicU32);

impl State {
    /// Of a ring that was opened with these flags, on so many devices.
    pub fn new(flags: u32, devices: usize) -> State {
        let of_flags = [(REENTRANT, SHARED), (RX_PACKET_BOUNCE, BOUNCES)];
        let of_flags = of_flags.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, bit)| bit);
        let not_one = if devices == 1 { 0 } else { NOT_ONE };
        State(AtomicU32::new(of_flags.fold(DISABLED | NOT_READ | not_one, |all, bit| all | bit)))
    }

    #[inline]
    pub fn is_plain(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    #[inline]
    pub fn has(&self, bit: u32) -> bool {
        self.0.load(Relaxed) & bit != 0
    }

    pub fn set(&self, bit: u32, is_set: bool) {
        match is_set {
            true => self.0.fetch_or(bit, Relaxed),
            false => self.0.fetch_and(!bit, Relaxed),
        };
    }
}
