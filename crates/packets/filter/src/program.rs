//! A filter that has been looked at: every instruction has a meaning, jumps stay within, and it
//! comes to an end.

use crate::{
    Error, Fault, Insn,
    classic::{Op, Source},
};

/// Instructions of a filter at most: the kernel's limit for classic BPF.
pub const MAX_INSNS: usize = 4096;

/// A checked filter in classic BPF. A packet matches if it returns anything but 0.
///
/// The rules are those of libpcap's `bpf_validate`, and three more: no reads at negative offsets
/// (they mean what the kernel knows of a packet, and XDP does not), no shift by a constant of 32
/// or more (it means nothing), no more than [`MAX_INSNS`] instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    insns: Vec<Insn>,
}

impl Program {
    /// Checks a filter.
    pub fn new(insns: Vec<Insn>) -> Result<Program, Error> {
        if !(1..=MAX_INSNS).contains(&insns.len()) {
            return Err(Error::Length(insns.len()));
        }
        let check = |at: usize| {
            let op = insns[at].decode()?;
            let is_last = at + 1 == insns.len();
            match op {
                Op::ReturnConstant(_) | Op::ReturnA => Ok(()),
                _ if is_last => Err(Fault::End),
                _ if successors(at, &op).flatten().all(|next| next < insns.len()) => Ok(()),
                _ => Err(Fault::Target),
            }
        };
        for at in 0..insns.len() {
            check(at).map_err(|fault| Error::Instruction { at, fault })?;
        }
        Ok(Program { insns })
    }

    /// The filter that every packet matches.
    pub fn everything() -> Program {
        Program { insns: vec![Insn { code: 0x06, jt: 0, jf: 0, k: u32::MAX }] }
    }

    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// The instructions that can be reached, with their places. All jumps go forward.
    pub(crate) fn reachable(&self) -> Vec<(usize, Op)> {
        let mut reached = vec![false; self.insns.len()];
        reached[0] = true;
        let mut found = Vec::new();
        for (at, insn) in self.insns.iter().enumerate() {
            if !reached[at] {
                continue;
            }
            let op = insn.decode().expect("the filter was checked");
            successors(at, &op).flatten().for_each(|next| reached[next] = true);
            found.push((at, op));
        }
        found
    }
}

/// Where it goes on after an instruction. A read beyond what a packet can have ends the filter.
fn successors(at: usize, op: &Op) -> impl Iterator<Item = Option<usize>> {
    let after = |skip: u32| at.checked_add(1)?.checked_add(skip as usize);
    let targets = match *op {
        Op::ReturnConstant(_) | Op::ReturnA => [None, None],
        Op::Load(_, source) if never(source) => [None, None],
        // Out of any program, where the number is out of the machine's.
        Op::Jump(skip) => [Some(after(skip).unwrap_or(usize::MAX)), None],
        Op::Branch { yes, no, .. } => [after(yes.into()), after(no.into())],
        _ => [after(0), None],
    };
    targets.into_iter()
}

/// Bytes of a packet that can be looked at: what the kernel's verifier takes.
pub(crate) const REACH: u32 = 0xffff;

/// Whether there is no packet that is read there.
pub(crate) fn never(source: Source) -> bool {
    match source {
        Source::Absolute(at, size) | Source::Indexed(at, size) => at + size.bytes() > REACH,
        Source::HeaderLength(at) => at + 1 > REACH,
        _ => false,
    }
}
