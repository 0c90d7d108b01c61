//! An action program that has been looked at: what the verifier cannot know of it.

use ringway_filter::Ebpf;

use crate::{Error, Fault};

/// Instructions of an action program at most.
pub const MAX_INSNS: usize = 4096;

/// The helpers that it may call, by their numbers: they look at the frame, the clock and the processor, and
/// change what is in the frame. None changes where the frame begins and ends, has a map, or asks for a licence.
pub const HELPERS: [i32; 9] = [
    5,   // bpf_ktime_get_ns
    7,   // bpf_get_prandom_u32
    8,   // bpf_get_smp_processor_id
    28,  // bpf_csum_diff
    125, // bpf_ktime_get_boot_ns
    188, // bpf_xdp_get_buff_len
    189, // bpf_xdp_load_bytes
    190, // bpf_xdp_store_bytes
    208, // bpf_ktime_get_tai_ns
];

const CLASS: u8 = 0x07;
const LD: u8 = 0x00;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const OPERATION: u8 = 0xf0;
const MODE: u8 = 0xe0;
const MEM: u8 = 0x60;
const MEM_SIGN_EXTENDED: u8 = 0x80;
const ATOMIC: u8 = 0xc0;
const LOAD_DOUBLE: u8 = 0x18;
pub(crate) const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;
const JUMP_FAR: u8 = 0x06;
/// In the source of a call: it is to a function of the program.
pub(crate) const LOCAL: u8 = 1;
const KERNEL_FUNCTION: u8 = 2;

/// A checked action program: the first instruction is where it begins.
///
/// Jumps and calls stay within, calls are to [`HELPERS`] or to functions of the program, and nothing refers to a
/// map or to anything else of the kernel's. All else is the verifier's to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    insns: Vec<Ebpf>,
}

impl Program {
    /// Checks a program.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Instruction`].
    pub fn new(insns: Vec<Ebpf>) -> Result<Program, Error> {
        if !(1..=MAX_INSNS).contains(&insns.len()) {
            return Err(Error::Length(insns.len()));
        }
        let mut at = 0;
        while let Some(insn) = insns.get(at) {
            at += check(&insns, at, *insn).map_err(|fault| Error::Instruction { at, fault })?;
        }
        Ok(Program { insns })
    }

    /// The instructions.
    pub fn insns(&self) -> &[Ebpf] {
        &self.insns
    }
}

/// How many places the instruction takes up.
fn check(insns: &[Ebpf], at: usize, insn: Ebpf) -> Result<usize, Fault> {
    let within = |distance: i32| {
        let target = at as i64 + 1 + i64::from(distance);
        if (0..insns.len() as i64).contains(&target) { Ok(1) } else { Err(Fault::Target) }
    };
    match (insn.code & CLASS, insn.code) {
        (LD, LOAD_DOUBLE) => match (insn.source(), insns.get(at + 1)) {
            (0, Some(&Ebpf { code: 0, registers: 0, offset: 0, .. })) => Ok(2),
            (0, _) => Err(Fault::Half),
            _ => Err(Fault::Reference),
        },
        (LD, 0) => Err(Fault::Half),
        (LD, _) => Err(Fault::Unknown),
        (JMP, CALL) => match insn.source() {
            0 if HELPERS.contains(&insn.immediate) => Ok(1),
            0 => Err(Fault::Helper(insn.immediate)),
            LOCAL => within(insn.immediate),
            KERNEL_FUNCTION => Err(Fault::KernelFunction),
            _ => Err(Fault::Unknown),
        },
        (JMP, EXIT) => Ok(1),
        (JMP32, JUMP_FAR) => within(insn.immediate),
        (JMP, JUMP) => within(insn.offset.into()),
        (JMP | JMP32, code) if is_branch(code & OPERATION) => within(insn.offset.into()),
        (JMP | JMP32, _) => Err(Fault::Unknown),
        // Arithmetic.
        (0x04 | 0x07, _) => Ok(1),
        // Loads and stores.
        _ => match insn.code & MODE {
            MEM | MEM_SIGN_EXTENDED | ATOMIC => Ok(1),
            _ => Err(Fault::Unknown),
        },
    }
}

/// Neither a jump, nor a call, nor an exit, nor the kernel's bounded loop.
fn is_branch(operation: u8) -> bool {
    matches!(operation, 0x10..=0x70 | 0xa0..=0xd0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn insn(code: u8, source: u8, offset: i16, immediate: i32) -> Ebpf {
        let registers = if cfg!(target_endian = "big") { source } else { source << 4 };
        Ebpf { code, registers, offset, immediate }
    }

    const EXIT_INSN: (u8, u8, i16, i32) = (EXIT, 0, 0, 0);

    fn program(insns: &[(u8, u8, i16, i32)]) -> Result<Program, Error> {
        Program::new(insns.iter().map(|&(c, s, o, i)| insn(c, s, o, i)).collect())
    }

    fn fault(insns: &[(u8, u8, i16, i32)]) -> Fault {
        match program(insns) {
            Err(Error::Instruction { fault, .. }) => fault,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_refers_to_the_kernel_is_refused() {
        let after = |insn| fault(&[insn, EXIT_INSN]);
        for source in 1..16 {
            let halves = [(LOAD_DOUBLE, source, 0, 3), (0, 0, 0, 0), EXIT_INSN];
            assert_eq!(fault(&halves), Fault::Reference, "{source}");
        }
        assert_eq!(after((CALL, KERNEL_FUNCTION, 0, 5)), Fault::KernelFunction);
        // Maps, text for everybody, tail calls, redirection, other programs' memory.
        for helper in [1, 2, 4, 6, 12, 23, 44, 51, 69, 112, 113, 181, -1] {
            assert_eq!(after((CALL, 0, 0, helper)), Fault::Helper(helper));
        }
        // By a register; of the packet as classic BPF has it; the loop that the kernel ends.
        for code in [0x8d, 0x20, 0x28, 0x30, 0x40, 0xe5, 0x86, 0x96, 0x00] {
            let found = after((code, 0, 0, 0));
            assert!(matches!(found, Fault::Unknown | Fault::Half), "{code:#x}: {found:?}");
        }
    }

    #[test]
    fn nothing_leaves_the_program() {
        for distance in [-3, -2, 2, 1000, i32::MAX, i32::MIN] {
            let call = [(CALL, LOCAL, 0, distance), (0xb7, 0, 0, 1), EXIT_INSN];
            let is_far = !(-1..=1).contains(&distance);
            assert_eq!(program(&call).is_err(), is_far, "{distance}");
            assert_eq!(
                program(&[(JUMP_FAR, 0, 0, distance), (0xb7, 0, 0, 1), EXIT_INSN]).is_err(),
                is_far
            );
        }
        for distance in [-2, 1, i16::MAX, i16::MIN] {
            for code in [JUMP, 0x15, 0x1d, 0x16, 0xd5] {
                assert_eq!(fault(&[(code, 0, distance, 0), EXIT_INSN]), Fault::Target);
            }
        }
        assert_eq!(fault(&[(LOAD_DOUBLE, 0, 0, 0)]), Fault::Half);
        assert_eq!(program(&[]), Err(Error::Length(0)));
        assert_eq!(program(&[EXIT_INSN; MAX_INSNS + 1]), Err(Error::Length(MAX_INSNS + 1)));
        assert!(program(&[EXIT_INSN; MAX_INSNS]).is_ok());
    }

    proptest! {
        /// What is taken is as the rules say, whatever is given.
        #[test]
        fn any_bytes_are_taken_or_refused(raw in prop::collection::vec(any::<[u8; 8]>(), 0..64)) {
            let insns = raw.iter().map(|raw| Ebpf {
                code: raw[0],
                registers: raw[1],
                offset: i16::from_ne_bytes([raw[2], raw[3]]),
                immediate: i32::from_ne_bytes([raw[4], raw[5], raw[6], raw[7]]),
            });
            let Ok(program) = Program::new(insns.collect()) else { return Ok(()) };
            let mut insns = program.insns().iter();
            while let Some(insn) = insns.next() {
                match insn.code {
                    CALL if insn.source() == 0 => prop_assert!(HELPERS.contains(&insn.immediate)),
                    CALL => prop_assert_eq!(insn.source(), LOCAL),
                    LOAD_DOUBLE => {
                        prop_assert_eq!(insn.source(), 0);
                        prop_assert_eq!(insns.next().map(|half| half.code), Some(0));
                    }
                    _ => {}
                }
            }
        }
    }
}
