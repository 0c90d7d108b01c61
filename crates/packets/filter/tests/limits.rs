//! Filters at their limits and one beyond, and how many instructions a translation takes.

mod machines;

use machines::{CODES, Loaded};
use ringway_filter::{
    Assembler, Error, Fault, Insn, Interpreter, MAX_INSNS, Packet, Program, translate,
};
use ringway_testkit::skip_without_root;

const RET_K: u16 = 0x06;
const RET_A: u16 = 0x16;

fn insn(code: u16, k: u32) -> Insn {
    Insn { code, jt: 0, jf: 0, k }
}

fn ret(k: u32) -> Insn {
    insn(RET_K, k)
}

#[test]
fn of_all_codes_those_of_the_classic_machine_are_instructions() {
    for code in 0..=u16::MAX {
        let result = Program::new(vec![insn(code, 1), ret(0), ret(0)]);
        let expected = match CODES.contains(&code) || [RET_K, RET_A].contains(&code) {
            true => None,
            false => Some(Error::Instruction { at: 0, fault: Fault::Unknown }),
        };
        assert_eq!(result.err(), expected, "{code:#x}");
    }
}

#[test]
fn constants_are_taken_up_to_their_limits() {
    let cases = [
        (0x20, i32::MAX as u32, Fault::Extension),
        (0x48, i32::MAX as u32, Fault::Extension),
        (0xb1, i32::MAX as u32, Fault::Extension),
        (0x60, 15, Fault::Memory),
        (0x61, 15, Fault::Memory),
        (0x02, 15, Fault::Memory),
        (0x03, 15, Fault::Memory),
        (0x64, 31, Fault::Shift),
        (0x74, 31, Fault::Shift),
        (0x05, 1, Fault::Target),
    ];
    let taken = |code, k| Program::new(vec![insn(code, k), ret(0), ret(0)]).err();
    for (code, most, fault) in cases {
        assert_eq!(taken(code, most), None, "{code:#x}");
        assert_eq!(taken(code, most + 1), Some(Error::Instruction { at: 0, fault }), "{code:#x}");
    }
    for code in [0x34, 0x94] {
        let refused = Error::Instruction { at: 0, fault: Fault::Division };
        assert_eq!((taken(code, 0), taken(code, 1)), (Some(refused), None), "{code:#x}");
    }
    assert!(Program::new(vec![ret(0); MAX_INSNS]).is_ok());
    assert!(Program::new(vec![ret(0); MAX_INSNS + 1]).is_err());
}

/// A packet's first 65535 bytes can be read, on all machines.
#[test]
fn a_read_that_ends_behind_the_reach_is_no_match() {
    let packet = vec![1; 0x1_0010];
    for (code, size) in
        [(0x20, 4), (0x28, 2), (0x30, 1), (0x40, 4), (0x48, 2), (0x50, 1), (0xb1, 1)]
    {
        for (at, expected) in [(0xffff - size, 7), (0xffff - size + 1, 0), (0x1_0000, 0)] {
            let program = Program::new(vec![insn(code, at), ret(7)]).unwrap();
            let got = Interpreter::new(&program).run(&packet.as_slice(), packet.len() as u32);
            assert_eq!(got, expected, "{code:#x} at {at:#x}");
            if !skip_without_root("the kernel takes such a read") {
                assert!(!Loaded::new(&program).matches(&packet[..1000]), "{code:#x} at {at:#x}");
            }
        }
    }
}

#[test]
fn everything_matches() {
    let program = Program::everything();
    assert_eq!(Interpreter::new(&program).run(&[].as_slice(), 0), u32::MAX);
}

/// How many instructions more than `ret #1` alone.
fn extra(insns: &[Insn]) -> usize {
    let count = |insns: &[Insn]| {
        let mut asm = Assembler::new();
        let (accept, reject) = (asm.label(), asm.label());
        let program = Program::new(insns.to_vec()).unwrap();
        translate(&program, Packet::Xdp, &mut asm, accept, reject);
        asm.place(accept);
        asm.place(reject);
        asm.finish().unwrap().len()
    };
    count(insns) - count(&[ret(1)])
}

/// Long filters have to fit the jumps of eBPF: what goes on with the next instruction takes no jump.
#[test]
fn a_branch_takes_no_more_jumps_than_it_has_to() {
    let (equal, any_bit) = (0x15, 0x45);
    let branch = |code, jt, jf| Insn { code, jt, jf, k: 5 };
    assert_eq!(extra(&[branch(equal, 0, 0), ret(1)]), 0, "both to the next one");
    assert_eq!(extra(&[branch(equal, 1, 1), ret(0), ret(1)]), 1, "both to another");
    assert_eq!(extra(&[branch(equal, 0, 1), ret(1), ret(0)]), 2, "only if not");
    assert_eq!(extra(&[branch(equal, 1, 0), ret(1), ret(0)]), 2, "only if so");
    assert_eq!(extra(&[branch(equal, 1, 2), ret(0), ret(1), ret(0)]), 3, "somewhere in any case");
    assert_eq!(extra(&[branch(any_bit, 0, 1), ret(1), ret(0)]), 3, "no test of the opposite");
    assert_eq!(extra(&[insn(0x05, 0), ret(1)]), 0, "a jump to the next one");
    assert_eq!(extra(&[insn(0x05, 1), ret(0), ret(1)]), 1, "a jump over one");
}
