//! A filter on packets in this process's memory: for ports where the kernel has no filters.
//!
//! The classic machine, as `bpf(4)` describes it, with every instruction decoded before the first packet
//! comes, and every jump turned into a place. All jumps go forward, so a run is over after as many steps as
//! the filter has instructions, whatever the packet says.
//!
//! Most of a filter are loads with a comparison behind them: such a pair is one step, in the load's place. The
//! comparison stays in its own, for what jumps there.

use crate::{
    Program, Size,
    classic::{Arithmetic, Op, Operand, Register, Source, Test, WORDS},
    program::never,
};

/// A packet that a filter looks at. Its bytes may change at any time, where other processes have its
/// memory: a filter reads each as often as its instructions say, and is not confused by other values.
pub trait Bytes {
    /// `N` bytes from `at`, or `None` if they are not all inside.
    fn read<const N: usize>(&self, at: u32) -> Option<[u8; N]>;
}

impl Bytes for &[u8] {
    #[inline]
    fn read<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        self.get(at as usize..)?.first_chunk().copied()
    }
}

/// A [`Program`] that can be run here.
///
/// ```
/// use ringway_filter::{Insn, Interpreter, Program};
///
/// // ldb [0]; jeq #7, 0, 1; ret #60; ret #0
/// let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
/// let program = vec![insn(0x30, 0, 0, 0), insn(0x15, 0, 1, 7), insn(6, 0, 0, 60), insn(6, 0, 0, 0)];
/// let filter = Interpreter::new(&Program::new(program)?);
/// assert_eq!(filter.run(&[7u8, 1].as_slice(), 2), 60);
/// assert_eq!(filter.run(&[].as_slice(), 0), 0);
/// # Ok::<(), ringway_filter::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Interpreter {
    steps: Box<[Step]>,
}

/// One instruction; jumps are places in the program.
#[derive(Clone, Copy, Debug)]
enum Step {
    Constant(u32),
    Word(u32),
    Half(u32),
    Byte(u32),
    WordFromX(u32),
    HalfFromX(u32),
    ByteFromX(u32),
    Memory(u8),
    Length,
    XConstant(u32),
    XMemory(u8),
    XLength,
    XHeaderLength(u32),
    Store(u8),
    StoreX(u8),
    ComputeConstant(Arithmetic, u32),
    ComputeX(Arithmetic),
    Negate,
    ToX,
    ToA,
    Jump(u16),
    Equal {
        k: u32,
        yes: u16,
        no: u16,
    },
    Greater {
        k: u32,
        yes: u16,
        no: u16,
    },
    GreaterOrEqual {
        k: u32,
        yes: u16,
        no: u16,
    },
    AnyBit {
        k: u32,
        yes: u16,
        no: u16,
    },
    BranchX {
        test: Test,
        yes: u16,
        no: u16,
    },
    /// A load from the packet, and a comparison of what was loaded.
    WordIs {
        from: u16,
        k: u32,
        yes: u16,
        no: u16,
    },
    HalfIs {
        from: u16,
        k: u32,
        yes: u16,
        no: u16,
    },
    ByteIs {
        from: u16,
        k: u32,
        yes: u16,
        no: u16,
    },
    HalfHas {
        from: u16,
        k: u32,
        yes: u16,
        no: u16,
    },
    HalfFromXIs {
        from: u16,
        k: u32,
        yes: u16,
        no: u16,
    },
    Return(u32),
    ReturnA,
}

impl Interpreter {
    /// Gets a filter ready to be run.
    pub fn new(program: &Program) -> Interpreter {
        // What cannot be reached is never run: it may be anything.
        let mut steps = vec![Step::Return(0); program.insns().len()];
        for (at, op) in program.reachable() {
            steps[at] = step(at, op);
        }
        for at in 1..steps.len() {
            if let Some(pair) = pair(steps[at - 1], steps[at]) {
                steps[at - 1] = pair;
            }
        }
        Interpreter { steps: steps.into() }
    }

    /// What the filter returns for a packet of `length` bytes, of which `packet` has all or the first: the
    /// number of bytes that are wanted, 0 where the packet does not match.
    #[inline]
    pub fn run(&self, packet: &impl Bytes, length: u32) -> u32 {
        self.outcome(packet, length).unwrap_or(0)
    }

    /// `None` for a read beyond the packet, and a division by zero.
    #[inline]
    fn outcome(&self, packet: &impl Bytes, length: u32) -> Option<u32> {
        let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; WORDS as usize]);
        let word = |at| packet.read(at).map(u32::from_be_bytes);
        let half = |at| packet.read(at).map(|bytes| u32::from(u16::from_be_bytes(bytes)));
        let byte = |at| packet.read(at).map(|[byte]| u32::from(byte));
        let mut at = 0;
        loop {
            // By reference: of a step, what it needs is loaded and no more.
            let step = self.steps.get(at)?;
            at += 1;
            let mut branch =
                |is_so, yes: u16, no: u16| at = usize::from(if is_so { yes } else { no });
            match *step {
                Step::Constant(k) => a = k,
                Step::Word(k) => a = word(k)?,
                Step::Half(k) => a = half(k)?,
                Step::Byte(k) => a = byte(k)?,
                Step::WordFromX(k) => a = word(x.checked_add(k)?)?,
                Step::HalfFromX(k) => a = half(x.checked_add(k)?)?,
                Step::ByteFromX(k) => a = byte(x.checked_add(k)?)?,
                Step::Memory(place) => a = memory[usize::from(place) % memory.len()],
                Step::Length => a = length,
                Step::XConstant(k) => x = k,
                Step::XMemory(place) => x = memory[usize::from(place) % memory.len()],
                Step::XLength => x = length,
                Step::XHeaderLength(k) => x = 4 * (byte(k)? & 0xf),
                Step::Store(place) => memory[usize::from(place) % WORDS as usize] = a,
                Step::StoreX(place) => memory[usize::from(place) % WORDS as usize] = x,
                Step::ComputeConstant(op, k) => a = compute(op, a, k)?,
                Step::ComputeX(op) => a = compute(op, a, x)?,
                Step::Negate => a = a.wrapping_neg(),
                Step::ToX => x = a,
                Step::ToA => a = x,
                Step::Jump(to) => at = to.into(),
                Step::Equal { k, yes, no } => branch(a == k, yes, no),
                Step::Greater { k, yes, no } => branch(a > k, yes, no),
                Step::GreaterOrEqual { k, yes, no } => branch(a >= k, yes, no),
                Step::AnyBit { k, yes, no } => branch(a & k != 0, yes, no),
                Step::BranchX { test, yes, no } => branch(is_so(test, a, x), yes, no),
                Step::WordIs { from, k, yes, no } => {
                    a = word(from.into())?;
                    branch(a == k, yes, no);
                }
                Step::HalfIs { from, k, yes, no } => {
                    a = half(from.into())?;
                    branch(a == k, yes, no);
                }
                Step::ByteIs { from, k, yes, no } => {
                    a = byte(from.into())?;
                    branch(a == k, yes, no);
                }
                Step::HalfHas { from, k, yes, no } => {
                    a = half(from.into())?;
                    branch(a & k != 0, yes, no);
                }
                Step::HalfFromXIs { from, k, yes, no } => {
                    a = half(x.checked_add(from.into())?)?;
                    branch(a == k, yes, no);
                }
                Step::Return(k) => return Some(k),
                Step::ReturnA => return Some(a),
            }
        }
    }
}

/// Two steps in one, if there is such a one.
fn pair(load: Step, test: Step) -> Option<Step> {
    // What is read of a packet lies within its first 64 KiB: see `never`.
    let from = |k: u32| u16::try_from(k).ok();
    Some(match (load, test) {
        (Step::Word(at), Step::Equal { k, yes, no }) => {
            Step::WordIs { from: from(at)?, k, yes, no }
        }
        (Step::Half(at), Step::Equal { k, yes, no }) => {
            Step::HalfIs { from: from(at)?, k, yes, no }
        }
        (Step::Byte(at), Step::Equal { k, yes, no }) => {
            Step::ByteIs { from: from(at)?, k, yes, no }
        }
        (Step::Half(at), Step::AnyBit { k, yes, no }) => {
            Step::HalfHas { from: from(at)?, k, yes, no }
        }
        (Step::HalfFromX(at), Step::Equal { k, yes, no }) => {
            Step::HalfFromXIs { from: from(at)?, k, yes, no }
        }
        _ => return None,
    })
}

fn step(at: usize, op: Op) -> Step {
    let place = |skip: u32| (at + 1 + skip as usize) as u16;
    match op {
        Op::Load(_, source) if never(source) => Step::Return(0),
        Op::Load(Register::A, source) => match source {
            Source::Constant(k) => Step::Constant(k),
            Source::Length => Step::Length,
            Source::Memory(word) => Step::Memory(word as u8),
            Source::Absolute(k, Size::Half) => Step::Half(k),
            Source::Absolute(k, Size::Byte) => Step::Byte(k),
            Source::Absolute(k, _) => Step::Word(k),
            Source::Indexed(k, Size::Half) => Step::HalfFromX(k),
            Source::Indexed(k, Size::Byte) => Step::ByteFromX(k),
            Source::Indexed(k, _) => Step::WordFromX(k),
            // No instruction loads A so.
            Source::HeaderLength(_) => Step::Return(0),
        },
        Op::Load(Register::X, source) => match source {
            Source::Constant(k) => Step::XConstant(k),
            Source::Length => Step::XLength,
            Source::Memory(word) => Step::XMemory(word as u8),
            Source::HeaderLength(k) => Step::XHeaderLength(k),
            // Nor X so.
            Source::Absolute(..) | Source::Indexed(..) => Step::Return(0),
        },
        Op::Store(Register::A, word) => Step::Store(word as u8),
        Op::Store(Register::X, word) => Step::StoreX(word as u8),
        Op::Compute(op, Operand::K(k)) => Step::ComputeConstant(op, k),
        Op::Compute(op, Operand::X) => Step::ComputeX(op),
        Op::Negate => Step::Negate,
        Op::Jump(skip) => Step::Jump(place(skip)),
        Op::Branch { test, with, yes, no } => {
            let (yes, no) = (place(yes.into()), place(no.into()));
            match (with, test) {
                (Operand::K(k), Test::Equal) => Step::Equal { k, yes, no },
                (Operand::K(k), Test::Greater) => Step::Greater { k, yes, no },
                (Operand::K(k), Test::GreaterOrEqual) => Step::GreaterOrEqual { k, yes, no },
                (Operand::K(k), Test::AnyBit) => Step::AnyBit { k, yes, no },
                (Operand::X, test) => Step::BranchX { test, yes, no },
            }
        }
        Op::ReturnConstant(k) => Step::Return(k),
        Op::ReturnA => Step::ReturnA,
        Op::Transfer(Register::X) => Step::ToX,
        Op::Transfer(Register::A) => Step::ToA,
    }
}

#[inline]
fn compute(op: Arithmetic, a: u32, by: u32) -> Option<u32> {
    Some(match op {
        Arithmetic::Add => a.wrapping_add(by),
        Arithmetic::Sub => a.wrapping_sub(by),
        Arithmetic::Mul => a.wrapping_mul(by),
        Arithmetic::Div => a.checked_div(by)?,
        Arithmetic::Mod => a.checked_rem(by)?,
        Arithmetic::Or => a | by,
        Arithmetic::And => a & by,
        Arithmetic::Xor => a ^ by,
        Arithmetic::Shl => a.checked_shl(by).unwrap_or(0),
        Arithmetic::Shr => a.checked_shr(by).unwrap_or(0),
    })
}

#[inline]
fn is_so(test: Test, a: u32, by: u32) -> bool {
    match test {
        Test::Equal => a == by,
        Test::Greater => a > by,
        Test::GreaterOrEqual => a >= by,
        Test::AnyBit => a & by != 0,
    }
}
