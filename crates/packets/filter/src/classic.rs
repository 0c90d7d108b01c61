//! Classic BPF: the instructions, as `bpf(4)` and libpcap's `bpf.h` have them.

use serde::{Deserialize, Serialize};

use crate::{Fault, assembler::Size};

/// An instruction of classic BPF: `struct sock_filter`, `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Insn {
    pub code: u16,
    /// How many instructions to skip if a test is true, and if not.
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

const _: () = assert!(size_of::<Insn>() == 8);

/// Words of scratch memory.
pub(crate) const WORDS: u32 = 16;
/// Offsets from here on are negative, and stand for what the kernel knows beside the packet.
const EXTENSIONS: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    A,
    X,
}

/// The second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    K(u32),
    X,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Constant(u32),
    Length,
    Memory(u32),
    /// The packet, from its start.
    Absolute(u32, Size),
    /// The packet, from X on.
    Indexed(u32, Size),
    /// Four times the low half of a byte: the length of an IPv4 header.
    HeaderLength(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Or,
    And,
    Xor,
    Shl,
    Shr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

/// What an instruction does. Its place is needed to know where a jump goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Load(Register, Source),
    Store(Register, u32),
    Compute(Arithmetic, Operand),
    Negate,
    Jump(u32),
    Branch {
        test: Test,
        with: Operand,
        yes: u8,
        no: u8,
    },
    ReturnConstant(u32),
    ReturnA,
    /// `TAX` (to X), `TXA` (to A).
    Transfer(Register),
}

impl Insn {
    /// What it does, if that is something and does no harm by itself.
    pub(crate) fn decode(&self) -> Result<Op, Fault> {
        let k = self.k;
        let operand = if self.code & 0x08 == 0 { Operand::K(k) } else { Operand::X };
        let memory = || if k < WORDS { Ok(k) } else { Err(Fault::Memory) };
        let packet = || if k < EXTENSIONS { Ok(k) } else { Err(Fault::Extension) };
        let size = match self.code & 0x18 {
            0x00 => Size::Word,
            0x08 => Size::Half,
            _ => Size::Byte,
        };
        use Register::{A, X};
        Ok(match self.code {
            0x00 => Op::Load(A, Source::Constant(k)),
            0x20 | 0x28 | 0x30 => Op::Load(A, Source::Absolute(packet()?, size)),
            0x40 | 0x48 | 0x50 => Op::Load(A, Source::Indexed(packet()?, size)),
            0x60 => Op::Load(A, Source::Memory(memory()?)),
            0x80 => Op::Load(A, Source::Length),
            0x01 => Op::Load(X, Source::Constant(k)),
            0x61 => Op::Load(X, Source::Memory(memory()?)),
            0x81 => Op::Load(X, Source::Length),
            0xb1 => Op::Load(X, Source::HeaderLength(packet()?)),
            0x02 => Op::Store(A, memory()?),
            0x03 => Op::Store(X, memory()?),
            0x84 => Op::Negate,
            code if code & 0x07 == 0x04 => Op::Compute(arithmetic(code & !0x0f, operand)?, operand),
            0x05 => Op::Jump(k),
            code if code & 0x07 == 0x05 => {
                let test = match code & !0x0f {
                    0x10 => Test::Equal,
                    0x20 => Test::Greater,
                    0x30 => Test::GreaterOrEqual,
                    0x40 => Test::AnyBit,
                    _ => return Err(Fault::Unknown),
                };
                Op::Branch { test, with: operand, yes: self.jt, no: self.jf }
            }
            0x06 => Op::ReturnConstant(k),
            0x16 => Op::ReturnA,
            0x07 => Op::Transfer(X),
            0x87 => Op::Transfer(A),
            _ => return Err(Fault::Unknown),
        })
    }
}

fn arithmetic(code: u16, by: Operand) -> Result<Arithmetic, Fault> {
    let nothing = by == Operand::K(0);
    let too_far = matches!(by, Operand::K(32..));
    Ok(match code {
        0x00 => Arithmetic::Add,
        0x10 => Arithmetic::Sub,
        0x20 => Arithmetic::Mul,
        0x30 | 0x90 if nothing => return Err(Fault::Division),
        0x30 => Arithmetic::Div,
        0x40 => Arithmetic::Or,
        0x50 => Arithmetic::And,
        0x60 | 0x70 if too_far => return Err(Fault::Shift),
        0x60 => Arithmetic::Shl,
        0x70 => Arithmetic::Shr,
        0x90 => Arithmetic::Mod,
        0xa0 => Arithmetic::Xor,
        _ => return Err(Fault::Unknown),
    })
}
