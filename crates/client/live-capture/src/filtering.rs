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

impl Filtering {
    /// The same for packets that are read one by one. It is apart from [`run`](Self::run), which is inlined only where
    /// it is called once.
    #[inline(never)]
    pub fn run_apart(&self, packet: &Packet<'_>, length: u32) -> u32 {
        match self {
            Filtering::Steps(steps) => steps.run(packet, length),
            Filtering::Foreign(foreign) => run_foreign(foreign, packet, length),
        }
    }

    /// The same of a packet in memory of ours.
    #[cold]
    pub fn run_copied(&self, packet: &[u8]) -> u32 {
        let length = packet.len() as u32;
        match self {
            Filtering::Steps(steps) => steps.run(&packet, length),
            Filtering::Foreign(foreign) => foreign.run(packet, length),
        }
    }
}

/// Where a frame's VLAN tag is, and how long it is.
const TAG: usize = 12;
const TAG_SIZE: usize = 4;

impl Filtering {
    /// The same of a packet with a VLAN tag, which the filter does not see.
    #[cold]
    pub fn run_untagged(&self, packet: &Packet<'_>, length: u32) -> u32 {
        let length = length.saturating_sub(TAG_SIZE as u32);
        let wanted = match self {
            Filtering::Steps(steps) => steps.run(&Untagged(packet), length),
            Filtering::Foreign(foreign) => {
                let mut bytes = packet.to_vec();
                bytes.drain(TAG.min(bytes.len())..(TAG + TAG_SIZE).min(bytes.len()));
                foreign.run(&bytes, length)
            }
        };
        if wanted == 0 { 0 } else { wanted.saturating_add(TAG_SIZE as u32) }
    }
}

/// Whether a program asks about VLAN tags, as the compiler of filters writes `vlan`: it looks for
/// all types of them.
pub fn asks_about_tags(insns: &[Insn]) -> bool {
    let types = [0x8100, 0x88a8, 0x9100];
    types.iter().all(|kind| insns.iter().any(|insn| insn.k == *kind))
}

#[cold]
fn run_foreign(foreign: &Foreign, packet: &Packet<'_>, length: u32) -> u32 {
    foreign.run(&packet.to_vec(), length)
}

/// A packet in a ring's buffer, or in memory of ours.
pub struct Packet<'a>(pub Buf<'a>);

impl Packet<'_> {
    /// A copy: other processes may change its bytes where they are.
    fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.size() as usize];
        self.0.copy_to(bytes.len(), &mut bytes);
        bytes
    }
}

/// A packet with a VLAN tag, as it is without.
struct Untagged<'p>(&'p Packet<'p>);

impl Bytes for Untagged<'_> {
    fn read<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        for (at, byte) in (at as usize..).zip(&mut bytes) {
            let at = if at < TAG { at } else { at + TAG_SIZE };
            [*byte] = self.0.0.read(at)?;
        }
        Some(bytes)
    }
}

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
