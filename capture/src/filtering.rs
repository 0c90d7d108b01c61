//! The filter of a handle: what of each packet the program wants.
//!
//! A network interface's port has it in the kernel as well, in front of everything else: what does not match
//! stays with the stack. It is run here all the same: packets that were received before are in the rings, and a
//! filter also says how much of a packet is wanted.

use ringway::{Filter, Port, PortKind};
use ringway_filter::{Bytes, Foreign, Insn, Interpreter, Program};
use ringway_region::Buf;

/// A filter that can be run.
pub enum Filtering {
    Steps(Interpreter),
    /// One that the interpreter does not take, because it loops (`protochain`): for the system's library.
    Foreign(Foreign),
}

impl Filtering {
    /// Of a valid program.
    pub fn new(insns: &[Insn]) -> Filtering {
        match Program::new(insns.to_vec()) {
            Ok(program) => Filtering::Steps(Interpreter::new(&program)),
            Err(_) => Filtering::Foreign(Foreign::new(insns.to_vec())),
        }
    }

    /// Bytes that are wanted of a packet of so many, 0 for none.
    #[inline]
    pub fn run(&self, packet: &Packet<'_>, length: u32) -> u32 {
        match self {
            Filtering::Steps(steps) => steps.run(packet, length),
            Filtering::Foreign(foreign) => run_foreign(foreign, packet, length),
        }
    }
}

#[cold]
fn run_foreign(foreign: &Foreign, packet: &Packet<'_>, length: u32) -> u32 {
    // Other processes may change its bytes where they are.
    let mut bytes = vec![0; packet.0.size() as usize];
    packet.0.copy_to(bytes.len(), &mut bytes);
    foreign.run(&bytes, length)
}

/// A packet in a ring's buffer, or in memory of ours.
pub struct Packet<'a>(pub Buf<'a>);

impl Bytes for Packet<'_> {
    #[inline]
    fn read<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        self.0.read(at as usize)
    }
}

/// Puts the filter in front of a network interface's port as well, where it can be there. Where it cannot (packet
/// mode, host rings, too much for the verifier), nothing is lost but time.
pub fn push_down(port: &Port, insns: &[Insn]) {
    if port.kind() == PortKind::Nic {
        let _ = port.set_filter(Filter::classic("libpcap", insns.to_vec()));
    }
}
