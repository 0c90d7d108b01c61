//! eBPF, as far as programs with filters need it: instructions, and jumps to labels.
//!
//! The encoding is that of the kernel's `Documentation/bpf/standardization/instruction-set.rst`.

use serde::{Deserialize, Serialize};

use crate::Error;

/// The registers. R10 is the stack's end; R1 to R5 are arguments, and gone after a call.
pub mod reg {
    pub const R0: u8 = 0;
    pub const R1: u8 = 1;
    pub const R2: u8 = 2;
    pub const R3: u8 = 3;
    pub const R4: u8 = 4;
    pub const R6: u8 = 6;
    pub const R7: u8 = 7;
    pub const R8: u8 = 8;
    pub const R9: u8 = 9;
    pub const R10: u8 = 10;
}

/// What a branch looks at; all comparisons are unsigned.
pub mod jump {
    pub const EQ: u8 = 0x10;
    pub const GT: u8 = 0x20;
    pub const GE: u8 = 0x30;
    /// Any bit that both have.
    pub const SET: u8 = 0x40;
    pub const NE: u8 = 0x50;
    pub const LT: u8 = 0xa0;
    pub const LE: u8 = 0xb0;
}

/// Arithmetic.
pub mod alu {
    pub const ADD: u8 = 0x00;
    pub const SUB: u8 = 0x10;
    pub const MUL: u8 = 0x20;
    pub const DIV: u8 = 0x30;
    pub const OR: u8 = 0x40;
    pub const AND: u8 = 0x50;
    pub const LSH: u8 = 0x60;
    pub const RSH: u8 = 0x70;
    pub const NEG: u8 = 0x80;
    pub const MOD: u8 = 0x90;
    pub const XOR: u8 = 0xa0;
    pub const MOV: u8 = 0xb0;
}

const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const ALU: u8 = 0x04;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;
const MEM: u8 = 0x60;
const DOUBLE: u8 = 0x18;
const REGISTER: u8 = 0x08;
const TO_BIG_ENDIAN: u8 = 0xd8;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// In the source of a constant of 64 bits: it is a map's descriptor.
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
/// In the source of a call: it is to a function of the program.
const PSEUDO_CALL: u8 = 1;
/// In the source of a call: it is to a function of the kernel's.
const PSEUDO_KFUNC_CALL: u8 = 2;

/// One instruction: `struct bpf_insn` of `linux/bpf.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ebpf {
    pub code: u8,
    /// The destination, and the source: which half has which is up to the machine's byte order.
    pub registers: u8,
    pub offset: i16,
    pub immediate: i32,
}

const _: () = assert!(size_of::<Ebpf>() == 8);

impl Ebpf {
    /// The source register, or what stands in its place.
    pub fn source(self) -> u8 {
        if cfg!(target_endian = "big") { self.registers & 0xf } else { self.registers >> 4 }
    }
}

/// How much is loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Byte,
    Half,
    Word,
    Double,
}

impl Size {
    /// In bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Size::Byte => 1,
            Size::Half => 2,
            Size::Word => 4,
            Size::Double => 8,
        }
    }

    fn code(self) -> u8 {
        match self {
            Size::Word => 0x00,
            Size::Half => 0x08,
            Size::Byte => 0x10,
            Size::Double => DOUBLE,
        }
    }
}

/// The second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Of 32 bits; where it takes part in 64, its sign is extended.
    Constant(u32),
    Register(u8),
}

/// A place in the program, to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

#[derive(Clone, Copy, Default)]
struct Place {
    at: Option<usize>,
    used: bool,
}

/// A program in the making.
#[derive(Default)]
pub struct Assembler {
    insns: Vec<Ebpf>,
    labels: Vec<Place>,
    /// Jumps, by place, and where they go.
    jumps: Vec<(usize, Label)>,
    /// The same of calls.
    calls: Vec<(usize, Label)>,
}

impl Assembler {
    pub fn new() -> Assembler {
        Assembler::default()
    }

    /// A label whose place is not known yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(Place::default());
        Label(self.labels.len() - 1)
    }

    /// Here it is. True if anything before jumps here: the kernel refuses code that is never
    /// reached, so what follows an unconditional jump is to be left out otherwise.
    pub fn place(&mut self, label: Label) -> bool {
        let place = &mut self.labels[label.0];
        debug_assert!(place.at.is_none(), "a label has one place");
        place.at = Some(self.insns.len());
        place.used
    }

    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, immediate: u32) {
        let (high, low) = if cfg!(target_endian = "big") { (to, from) } else { (from, to) };
        let registers = high << 4 | low;
        self.insns.push(Ebpf { code, registers, offset, immediate: immediate as i32 });
    }

    fn operate(&mut self, code: u8, to: u8, by: Operand) {
        match by {
            Operand::Constant(k) => self.push(code, to, 0, 0, k),
            Operand::Register(from) => self.push(code | REGISTER, to, from, 0, 0),
        }
    }

    /// `to = value`, all 64 bits.
    pub fn set(&mut self, to: u8, value: Operand) {
        self.operate(ALU64 | alu::MOV, to, value);
    }

    /// `to += by`, all 64 bits.
    pub fn add(&mut self, to: u8, by: Operand) {
        self.compute_wide(alu::ADD, to, by);
    }

    /// Arithmetic of 64 bits.
    pub fn compute_wide(&mut self, op: u8, to: u8, by: Operand) {
        self.operate(ALU64 | op, to, by);
    }

    /// Arithmetic of 32 bits, on the low half of `to`; the high half becomes 0.
    pub fn compute(&mut self, op: u8, to: u8, by: Operand) {
        self.operate(ALU | op, to, by);
    }

    /// Brings bytes in the network's order into the machine's, or back.
    pub fn network_order(&mut self, to: u8, size: Size) {
        if size != Size::Byte {
            self.push(ALU | TO_BIG_ENDIAN, to, 0, 0, 8 * size.bytes());
        }
    }

    /// `to = *(base + offset)`, the rest of `to` 0.
    pub fn load(&mut self, size: Size, to: u8, base: u8, offset: i16) {
        self.push(LDX | MEM | size.code(), to, base, offset, 0);
    }

    /// `*(base + offset) = value`.
    pub fn store(&mut self, size: Size, base: u8, offset: i16, value: Operand) {
        match value {
            Operand::Constant(k) => self.push(ST | MEM | size.code(), base, 0, offset, k),
            Operand::Register(from) => self.push(STX | MEM | size.code(), base, from, offset, 0),
        }
    }

    /// `to = constant`, all 64 bits.
    pub fn set_double(&mut self, to: u8, constant: u64) {
        self.push(LD | DOUBLE, to, 0, 0, constant as u32);
        self.push(0, 0, 0, 0, (constant >> 32) as u32);
    }

    /// `to` = the map of that descriptor, which must be open when the program is loaded.
    pub fn set_map(&mut self, to: u8, map: i32) {
        self.push(LD | DOUBLE, to, PSEUDO_MAP_FD, 0, map as u32);
        self.push(0, 0, 0, 0, 0);
    }

    /// `to` = the address of the value of an array of one, by its descriptor as for
    /// [`set_map`](Self::set_map). Kernel 5.2.
    pub fn set_map_value(&mut self, to: u8, map: i32) {
        self.push(LD | DOUBLE, to, PSEUDO_MAP_VALUE, 0, map as u32);
        self.push(0, 0, 0, 0, 0);
    }

    /// Calls a helper of the kernel by its number: `R0 = helper(R1, …, R5)`.
    pub fn call(&mut self, helper: u32) {
        self.push(JMP | CALL, 0, 0, 0, helper);
    }

    /// Calls a function of the kernel's by its number among the kernel's types (BTF), as
    /// [`call`](Self::call) does.
    pub fn call_function(&mut self, function: u32) {
        self.push(JMP | CALL, 0, PSEUDO_KFUNC_CALL, 0, function);
    }

    /// Calls a function of the program, `R0 = function(R1, …, R5)`, which keeps R6 to R9.
    pub fn call_label(&mut self, function: Label) {
        self.labels[function.0].used = true;
        self.calls.push((self.insns.len(), function));
        self.push(JMP | CALL, 0, PSEUDO_CALL, 0, 0);
    }

    /// Appends instructions whose jumps and calls stay among them.
    pub fn append(&mut self, insns: &[Ebpf]) {
        self.insns.extend(insns);
    }

    /// Returns R0.
    pub fn exit(&mut self) {
        self.push(JMP | EXIT, 0, 0, 0, 0);
    }

    pub fn jump(&mut self, to: Label) {
        self.go(to);
        self.push(JMP, 0, 0, 0, 0);
    }

    /// Goes to `to` if the low halves of `left` and `right` compare so; see [`jump`].
    pub fn branch(&mut self, test: u8, left: u8, right: Operand, to: Label) {
        self.go(to);
        self.operate(JMP32 | test, left, right);
    }

    /// As [`branch`](Self::branch), with all 64 bits: for pointers.
    pub fn branch_wide(&mut self, test: u8, left: u8, right: Operand, to: Label) {
        self.go(to);
        self.operate(JMP | test, left, right);
    }

    fn go(&mut self, to: Label) {
        debug_assert!(self.labels[to.0].at.is_none(), "all jumps go forward");
        self.labels[to.0].used = true;
        self.jumps.push((self.insns.len(), to));
    }

    /// The program, with all jumps in place. Panics if a label that was used has none.
    pub fn finish(mut self) -> Result<Vec<Ebpf>, Error> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].at.expect("a label that is used has a place");
            let distance = i16::try_from(target - at - 1).map_err(|_| Error::TooLong)?;
            self.insns[at].offset = distance;
        }
        for (at, label) in self.calls {
            let target = self.labels[label.0].at.expect("a function that is called has a place");
            let distance = i32::try_from(target - at - 1).map_err(|_| Error::TooLong)?;
            self.insns[at].immediate = distance;
        }
        Ok(self.insns)
    }
}

#[cfg(test)]
mod tests {
    use super::{Operand::*, Size::*, reg::*, *};

    /// Code, destination, source, offset and constant.
    type Fields = (u8, u8, u8, i16, i32);
    type Write<'w> = &'w dyn Fn(&mut Assembler);

    fn fields(write: impl FnOnce(&mut Assembler)) -> Vec<Fields> {
        let mut asm = Assembler::new();
        write(&mut asm);
        let insns = asm.finish().unwrap().into_iter();
        insns.map(|i| (i.code, destination(i), i.source(), i.offset, i.immediate)).collect()
    }

    fn destination(insn: Ebpf) -> u8 {
        if cfg!(target_endian = "big") { insn.registers >> 4 } else { insn.registers & 0xf }
    }

    /// As the kernel's `instruction-set.rst` has them.
    #[test]
    fn instructions_are_encoded_as_the_kernel_says() {
        let cases: [(Write<'_>, Fields); 25] = [
            (&|asm| asm.set(R1, Constant(5)), (0xb7, 1, 0, 0, 5)),
            (&|asm| asm.set(R1, Register(R10)), (0xbf, 1, 10, 0, 0)),
            (&|asm| asm.add(R4, Constant(u32::MAX)), (0x07, 4, 0, 0, -1)),
            (&|asm| asm.add(R4, Register(R8)), (0x0f, 4, 8, 0, 0)),
            (&|asm| asm.compute_wide(alu::RSH, R9, Constant(32)), (0x77, 9, 0, 0, 32)),
            (&|asm| asm.compute(alu::MUL, R7, Constant(3)), (0x24, 7, 0, 0, 3)),
            (&|asm| asm.compute(alu::DIV, R7, Register(R8)), (0x3c, 7, 8, 0, 0)),
            (&|asm| asm.network_order(R3, Half), (0xdc, 3, 0, 0, 16)),
            (&|asm| asm.network_order(R3, Word), (0xdc, 3, 0, 0, 32)),
            (&|asm| asm.network_order(R3, Double), (0xdc, 3, 0, 0, 64)),
            (&|asm| asm.load(Byte, R0, R2, -1), (0x71, 0, 2, -1, 0)),
            (&|asm| asm.load(Half, R0, R2, 2), (0x69, 0, 2, 2, 0)),
            (&|asm| asm.load(Word, R0, R2, 4), (0x61, 0, 2, 4, 0)),
            (&|asm| asm.load(Double, R0, R2, 8), (0x79, 0, 2, 8, 0)),
            (&|asm| asm.store(Byte, R10, -8, Constant(7)), (0x72, 10, 0, -8, 7)),
            (&|asm| asm.store(Word, R10, -8, Constant(7)), (0x62, 10, 0, -8, 7)),
            (&|asm| asm.store(Half, R10, -8, Register(R3)), (0x6b, 10, 3, -8, 0)),
            (&|asm| asm.store(Double, R10, -8, Register(R3)), (0x7b, 10, 3, -8, 0)),
            (&|asm| asm.call(26), (0x85, 0, 0, 0, 26)),
            (&|asm| asm.call_function(1234), (0x85, 0, 2, 0, 1234)),
            (&|asm| asm.exit(), (0x95, 0, 0, 0, 0)),
            (&|asm| asm.set_double(R6, 1 << 32 | 2), (0x18, 6, 0, 0, 2)),
            (&|asm| asm.set_map(R6, 3), (0x18, 6, 1, 0, 3)),
            (&|asm| asm.set_map_value(R6, 3), (0x18, 6, 2, 0, 3)),
            (
                &|asm| asm.append(&[Ebpf { code: 0x95, registers: 0, offset: 0, immediate: 0 }]),
                (0x95, 0, 0, 0, 0),
            ),
        ];
        for (n, (write, expected)) in cases.into_iter().enumerate() {
            assert_eq!(fields(write)[0], expected, "case {n}");
        }
        assert_eq!(fields(|asm| asm.set_double(R6, 1 << 32 | 2))[1], (0, 0, 0, 0, 1));
        assert_eq!(fields(|asm| asm.set_map(R6, 3))[1], (0, 0, 0, 0, 0));
        assert_eq!(fields(|asm| asm.set_map_value(R6, 3))[1], (0, 0, 0, 0, 0));
        assert_eq!(fields(|asm| asm.network_order(R3, Byte)), [], "a byte has no order");
    }

    /// What is jumped over, and what is called, by its distance from the next instruction.
    #[test]
    fn jumps_and_calls_go_to_their_labels() {
        let program = fields(|asm| {
            let [function, end, unused] = [asm.label(), asm.label(), asm.label()];
            asm.branch(jump::GT, R1, Constant(9), end);
            asm.branch(jump::EQ, R1, Register(R2), end);
            asm.branch_wide(jump::LE, R1, Register(R2), end);
            asm.branch_wide(jump::SET, R1, Constant(1), end);
            asm.call_label(function);
            asm.jump(end);
            assert!(!asm.place(unused), "what follows is never reached");
            assert!(asm.place(end));
            asm.exit();
            assert!(asm.place(function));
            asm.exit();
        });
        let exit = (0x95, 0, 0, 0, 0);
        let expected = [
            (0x26, 1, 0, 5, 9),
            (0x1e, 1, 2, 4, 0),
            (0xbd, 1, 2, 3, 0),
            (0x45, 1, 0, 2, 1),
            (0x85, 0, 1, 0, 2),
            (0x05, 0, 0, 0, 0),
            exit,
            exit,
        ];
        assert_eq!(program, expected);
    }

    #[test]
    fn a_jump_that_is_too_far_is_refused() {
        for (between, is_ok) in [(i16::MAX as usize, true), (i16::MAX as usize + 1, false)] {
            let mut asm = Assembler::new();
            let end = asm.label();
            asm.jump(end);
            asm.insns.resize(between + 1, asm.insns[0]);
            asm.place(end);
            assert_eq!(asm.finish().is_ok(), is_ok, "{between}");
        }
    }
}
