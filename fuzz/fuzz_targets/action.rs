//! Any file in the place of an object, and any instructions: they are refused, or make an action program that
//! keeps the rules; and as root the kernel's verifier takes it, or says why not.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use ringway_action::{HELPERS, Program};
use ringway_nic_setup::Action;
use ringway_proto::Ebpf;
use ringway_testkit::is_root;

const CALL: u8 = 0x85;
const LOAD_DOUBLE: u8 = 0x18;

fn has_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(is_root)
}

fn look_at(program: Program) {
    let insns = program.insns();
    let mut at = 0;
    while let Some(insn) = insns.get(at) {
        match (insn.code, insn.source()) {
            (CALL, 0) => assert!(HELPERS.contains(&insn.immediate)),
            (CALL, source) => {
                assert_eq!(source, 1);
                let target = at as i64 + 1 + i64::from(insn.immediate);
                assert!((0..insns.len() as i64).contains(&target));
            }
            (LOAD_DOUBLE, source) => {
                assert_eq!(source, 0);
                at += 1;
            }
            _ => {}
        }
        at += 1;
    }
    if has_root()
        && let Err(error) = Action::new("fuzz", program, Vec::new())
    {
        assert!(error.to_string().len() > 20);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(program) = Program::from_elf(bytes, None) {
        look_at(program);
    }
    let (raw, _) = bytes.as_chunks::<8>();
    let insns = raw.iter().map(|&[code, registers, o0, o1, i @ ..]| Ebpf {
        code,
        registers,
        offset: i16::from_le_bytes([o0, o1]),
        immediate: i32::from_le_bytes(i),
    });
    if let Ok(program) = Program::new(insns.collect()) {
        look_at(program);
    }
});
