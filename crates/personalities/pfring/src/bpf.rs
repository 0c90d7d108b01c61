//! Filters in the language of libpcap, compiled by the libpcap of this machine.

use ringway_filter::{Insn, Interpreter, Program, compile};

/// The filter of a ring.
pub struct Filter {
    steps: Interpreter,
}

impl Filter {
    /// `None` if the text is no filter. A filter that matches everything is `Some(None)`.
    pub fn compile(text: &str) -> Option<Option<(Filter, Vec<Insn>)>> {
        let program = compile(text).ok()?;
        if program.insns().len() <= 1 {
            return Some(None);
        }
        let insns = program.insns().to_vec();
        Some(Some((Filter { steps: Interpreter::new(&program) }, insns)))
    }

    pub fn matches(&self, packet: &[u8]) -> bool {
        self.steps.run(&packet, packet.len() as u32) != 0
    }
}

/// The filter without a limit that is behind a pointer: its instructions up to the last that can be reached.
/// `read` gives the instruction at a place.
pub fn behind(read: impl Fn(usize) -> Insn) -> Option<Program> {
    const CLASS: u16 = 7;
    const JUMP: u16 = 5;
    const ALWAYS: u16 = 5;
    const RETURN: u16 = 6;
    let mut insns = Vec::new();
    let mut last = 0;
    while insns.len() < ringway_filter::MAX_INSNS {
        let (at, insn) = (insns.len(), read(insns.len()));
        insns.push(insn);
        let reach = match insn.code & CLASS {
            JUMP if insn.code == ALWAYS => usize::try_from(insn.k).ok()?,
            JUMP => insn.jt.max(insn.jf).into(),
            _ => 0,
        };
        if insn.code & CLASS != RETURN {
            last = last.max(at.checked_add(reach)?.checked_add(1)?);
        } else if last <= at {
            return Program::new(insns).ok();
        }
    }
    None
}

/// What such a filter returns of a packet.
pub fn run(program: &Program, packet: &[u8], length: u32) -> u32 {
    Interpreter::new(program).run(&packet, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_ends_with_its_last_return() {
        let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
        // ldb [0]; jeq #7, 1, 0; ret #0; ret #60; and what is no filter
        let program =
            [insn(0x30, 0, 0, 0), insn(0x15, 1, 0, 7), insn(6, 0, 0, 0), insn(6, 0, 0, 60)];
        let memory = |at: usize| program.get(at).copied().unwrap_or(insn(0xffff, 9, 9, 9));
        let found = behind(memory).unwrap();
        assert_eq!(found.insns(), program);
        assert_eq!((run(&found, &[7], 1), run(&found, &[8], 1)), (60, 0));
        assert!(behind(|_| insn(0, 0, 0, 0)).is_none());
        assert!(behind(|_| insn(5, 0, 0, u32::MAX)).is_none());
    }
}
