//! From classic BPF to eBPF.
//!
//! Each classic instruction becomes a few of the other kind. What the classic machine promises has
//! to be written out: a read beyond the packet, or a division by zero, is no match. The kernel's
//! verifier must see it too, so every read stands behind a comparison with the packet's end, and
//! an index behind one with a constant. An skb's bytes may lie anywhere: what is not where its headers are, the
//! kernel is asked for.
//!
//! Where an XDP frame takes several buffers, it is the first that can be looked at; its length is
//! that of the whole.

use crate::{
    Assembler, Label, Operand, Program, Size,
    assembler::alu,
    classic::{self, Arithmetic, Op, Register, Source, Test, WORDS},
    jump,
    program::{REACH, never},
    reg::*,
};

/// What a filter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// The `struct xdp_md` of an XDP program.
    Xdp,
    /// The same, where the kernel is asked for each read: without CAP_PERFMON, the verifier takes no other
    /// that begins where the frame says. Kernel 5.18 and newer.
    XdpByCopy,
    /// The `struct __sk_buff` of a tc program.
    Skb,
}

/// The register that holds what describes the packet, before a filter and after.
pub const CONTEXT: u8 = R6;
/// Bytes at the end of the stack that a filter overwrites.
pub const STACK: i16 = 72;

/// Where in memory the packet begins and ends.
const DATA: u8 = R2;
const END: u8 = R3;
/// Where in the packet a read ends.
const AT: u8 = R4;
const A: u8 = R7;
const X: u8 = R8;
/// Scratch memory, and the length of the frame below it, from the stack's end.
const MEMORY: i16 = -64;
const LENGTH: i16 = -STACK;
/// Between the two: bytes of an skb.
const BYTES: i16 = MEMORY - 4;
const _: () = assert!(-MEMORY == 4 * WORDS as i16 && LENGTH + 4 == BYTES);

/// Offsets in `struct xdp_md`.
const MD_DATA: i16 = 0;
const MD_DATA_END: i16 = 4;

/// Offsets in `struct __sk_buff`.
const SKB_LEN: i16 = 0;
const SKB_DATA: i16 = 76;
const SKB_DATA_END: i16 = 80;

const SKB_LOAD_BYTES: u32 = 26;
/// `bpf_xdp_load_bytes`; kernel 5.18 and newer.
pub const XDP_LOAD_BYTES: u32 = 189;
/// `bpf_xdp_get_buff_len`; kernel 5.18 and newer.
const GET_BUFF_LEN: u32 = 188;

/// Appends the filter to a program that holds its context in [`CONTEXT`]. It goes to `accept` for
/// a packet that matches, else to `reject`; there, R0 to R5, R7, R8 and the last [`STACK`] bytes of
/// the stack hold nothing of use, and the others what they held. A filter may never go to one of
/// the two.
pub fn translate(
    program: &Program,
    packet: Packet,
    asm: &mut Assembler,
    accept: Label,
    reject: Label,
) {
    let ops = program.reachable();
    let loads = |source| move |(_, op): &(usize, Op)| matches!(op, Op::Load(_, s) if *s == source);
    if ops.iter().any(loads(Source::Length)) {
        match packet {
            Packet::Xdp | Packet::XdpByCopy => {
                asm.set(R1, Operand::Register(CONTEXT));
                asm.call(GET_BUFF_LEN);
            }
            Packet::Skb => asm.load(Size::Word, R0, CONTEXT, SKB_LEN),
        }
        asm.store(Size::Word, R10, LENGTH, Operand::Register(R0));
    }
    for word in 0..WORDS {
        if ops.iter().any(loads(Source::Memory(word))) {
            asm.store(Size::Word, R10, memory(word), Operand::Constant(0));
        }
    }
    if packet == Packet::Xdp {
        asm.load(Size::Word, DATA, CONTEXT, MD_DATA);
        asm.load(Size::Word, END, CONTEXT, MD_DATA_END);
    }
    asm.set(A, Operand::Constant(0));
    asm.set(X, Operand::Constant(0));

    let labels = program.insns().iter().map(|_| asm.label()).collect();
    let mut filter = Filter { asm, packet, labels, accept, reject };
    for (at, op) in ops {
        filter.asm.place(filter.labels[at]);
        filter.emit(at, op);
    }
}

fn memory(word: u32) -> i16 {
    MEMORY + 4 * word as i16
}

fn register(register: Register) -> u8 {
    match register {
        Register::A => A,
        Register::X => X,
    }
}

fn operand(operand: classic::Operand) -> Operand {
    match operand {
        classic::Operand::K(k) => Operand::Constant(k),
        classic::Operand::X => Operand::Register(X),
    }
}

struct Filter<'a> {
    asm: &'a mut Assembler,
    packet: Packet,
    /// Of the classic instructions.
    labels: Vec<Label>,
    accept: Label,
    reject: Label,
}

impl Filter<'_> {
    fn emit(&mut self, at: usize, op: Op) {
        match op {
            Op::Load(to, source) => self.load(register(to), source),
            Op::Store(from, word) => {
                let from = Operand::Register(register(from));
                self.asm.store(Size::Word, R10, memory(word), from);
            }
            Op::Compute(op, by) => self.compute(op, operand(by)),
            Op::Negate => self.asm.compute(alu::NEG, A, Operand::Constant(0)),
            Op::Jump(skip) => self.go(at, at + 1 + skip as usize),
            Op::Branch { test, with, yes, no } => {
                let [yes, no] = [yes, no].map(|skip| at + 1 + usize::from(skip));
                self.branch(at, test, operand(with), yes, no);
            }
            Op::ReturnConstant(0) => self.asm.jump(self.reject),
            Op::ReturnConstant(_) => self.asm.jump(self.accept),
            Op::ReturnA => {
                self.asm.branch(jump::NE, A, Operand::Constant(0), self.accept);
                self.asm.jump(self.reject);
            }
            Op::Transfer(Register::A) => self.asm.compute(alu::MOV, A, Operand::Register(X)),
            Op::Transfer(Register::X) => self.asm.compute(alu::MOV, X, Operand::Register(A)),
        }
    }

    /// To classic instruction `to`, which stands behind instruction `at`.
    fn go(&mut self, at: usize, to: usize) {
        if to != at + 1 {
            self.asm.jump(self.labels[to]);
        }
    }

    fn branch(&mut self, at: usize, test: Test, with: Operand, yes: usize, no: usize) {
        let (is, is_not) = match test {
            Test::Equal => (jump::EQ, Some(jump::NE)),
            Test::Greater => (jump::GT, Some(jump::LE)),
            Test::GreaterOrEqual => (jump::GE, Some(jump::LT)),
            Test::AnyBit => (jump::SET, None),
        };
        match is_not {
            _ if yes == no => self.go(at, yes),
            Some(is_not) if yes == at + 1 => self.asm.branch(is_not, A, with, self.labels[no]),
            _ => {
                self.asm.branch(is, A, with, self.labels[yes]);
                self.go(at, no);
            }
        }
    }

    fn load(&mut self, to: u8, source: Source) {
        match source {
            _ if never(source) => self.asm.jump(self.reject),
            Source::Constant(k) => self.asm.compute(alu::MOV, to, Operand::Constant(k)),
            Source::Length => self.asm.load(Size::Word, to, R10, LENGTH),
            Source::Memory(word) => self.asm.load(Size::Word, to, R10, memory(word)),
            Source::Absolute(at, size) => self.read(to, None, at, size),
            Source::Indexed(at, size) => {
                let most = REACH - at - size.bytes();
                self.asm.branch_wide(jump::GT, X, Operand::Constant(most), self.reject);
                self.read(to, Some(X), at, size);
            }
            Source::HeaderLength(at) => {
                self.read(to, None, at, Size::Byte);
                self.asm.compute(alu::AND, to, Operand::Constant(0xf));
                self.asm.compute(alu::LSH, to, Operand::Constant(2));
            }
        }
    }

    /// Loads what is `offset` bytes, and those of an index, behind the start of the packet, if that is within it.
    fn read(&mut self, to: u8, index: Option<u8>, offset: u32, size: Size) {
        match self.packet {
            Packet::Xdp => self.read_there(to, index, offset, size, self.reject),
            Packet::XdpByCopy => self.read_copy(XDP_LOAD_BYTES, to, index, offset, size),
            Packet::Skb => {
                let (elsewhere, done) = (self.asm.label(), self.asm.label());
                // Calls overwrite them.
                self.asm.load(Size::Word, DATA, CONTEXT, SKB_DATA);
                self.asm.load(Size::Word, END, CONTEXT, SKB_DATA_END);
                self.read_there(to, index, offset, size, elsewhere);
                self.asm.jump(done);
                self.asm.place(elsewhere);
                self.read_copy(SKB_LOAD_BYTES, to, index, offset, size);
                self.asm.place(done);
            }
        }
        self.asm.network_order(to, size);
    }

    /// The same of what is between [`DATA`] and [`END`]; else it goes to `otherwise`.
    fn read_there(&mut self, to: u8, index: Option<u8>, offset: u32, size: Size, otherwise: Label) {
        self.asm.set(AT, Operand::Register(DATA));
        if let Some(index) = index {
            self.asm.add(AT, Operand::Register(index));
        }
        self.asm.add(AT, Operand::Constant(offset + size.bytes()));
        self.asm.branch_wide(jump::GT, AT, Operand::Register(END), otherwise);
        self.asm.load(size, to, AT, -(size.bytes() as i16));
    }

    /// The same by a helper of the kernel's.
    fn read_copy(&mut self, load: u32, to: u8, index: Option<u8>, offset: u32, size: Size) {
        self.asm.set(R1, Operand::Register(CONTEXT));
        self.asm.set(R2, index.map_or(Operand::Constant(0), Operand::Register));
        self.asm.add(R2, Operand::Constant(offset));
        self.asm.set(R3, Operand::Register(R10));
        self.asm.add(R3, Operand::Constant(BYTES as u32));
        self.asm.set(R4, Operand::Constant(size.bytes()));
        self.asm.call(load);
        self.asm.branch_wide(jump::NE, R0, Operand::Constant(0), self.reject);
        self.asm.load(size, to, R10, BYTES);
    }

    fn compute(&mut self, op: Arithmetic, by: Operand) {
        let by_register = matches!(by, Operand::Register(_));
        let code = match op {
            Arithmetic::Add => alu::ADD,
            Arithmetic::Sub => alu::SUB,
            Arithmetic::Mul => alu::MUL,
            Arithmetic::Div => alu::DIV,
            Arithmetic::Mod => alu::MOD,
            Arithmetic::Or => alu::OR,
            Arithmetic::And => alu::AND,
            Arithmetic::Xor => alu::XOR,
            Arithmetic::Shl => alu::LSH,
            Arithmetic::Shr => alu::RSH,
        };
        match op {
            Arithmetic::Div | Arithmetic::Mod if by_register => {
                self.asm.branch(jump::EQ, X, Operand::Constant(0), self.reject);
                self.asm.compute(code, A, by);
            }
            // Nothing is left of a number that is shifted that far; the machine would shift less.
            Arithmetic::Shl | Arithmetic::Shr if by_register => {
                let (far, done) = (self.asm.label(), self.asm.label());
                self.asm.branch(jump::GT, X, Operand::Constant(31), far);
                self.asm.compute(code, A, by);
                self.asm.jump(done);
                self.asm.place(far);
                self.asm.compute(alu::MOV, A, Operand::Constant(0));
                self.asm.place(done);
            }
            _ => self.asm.compute(code, A, by),
        }
    }
}
