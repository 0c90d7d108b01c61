//! Filters that the [`Interpreter`](crate::Interpreter) does not take, because they loop (`protochain`): for the
//! libpcap of this machine.

use crate::{Insn, sys};

/// A filter that libpcap runs.
#[derive(Clone)]
pub struct Foreign(Option<sys::Valid>);

impl Foreign {
    /// A filter that libpcap finds invalid matches nothing; so does each filter on a machine without libpcap.
    pub fn new(insns: Vec<Insn>) -> Foreign {
        Foreign(sys::validate(insns))
    }

    /// What it returns of a packet of `length` bytes, of which some were captured.
    pub fn run(&self, packet: &[u8], length: u32) -> u32 {
        self.0.as_ref().map_or(0, |valid| valid.run(packet, length))
    }
}
