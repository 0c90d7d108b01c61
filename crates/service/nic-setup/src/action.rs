//! An action program of a NIC port: a function of a user's own, in the interface's XDP program, that decides what
//! becomes of each frame.
//!
//! ```text
//!   frame --> action --> PASS ------------> filter --> socket
//!                    --> PASS_TO_KERNEL -------------> stack
//!                    --> TX, redirect ---------------> out of this interface, or of another
//!                    --> DROP, ABORTED, all else       gone
//! ```
//!
//! A program with such a function is loaded [without the privilege](privileges::without_perfmon) to see the
//! kernel's memory: then the verifier refuses what would show addresses of the kernel's or memory that nobody
//! has written, and guards against speculation.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringway_action::{MAX_TARGETS, PASS_TO_KERNEL, Program, redirect};
use ringway_filter::{Assembler, CONTEXT, Ebpf, Label, Operand, XDP_LOAD_BYTES, alu, jump, reg::*};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::generate::{REDIRECT, XDP_PASS, count, look_up_only};
use crate::operation::MakeAction;
use crate::parcel::Fd;
use crate::{Error, helper, privileges, sys};

const XDP_ABORTED: u32 = 0;
const XDP_DROP: u32 = 1;
const XDP_TX: u32 = 3;

/// The counters in the action's map, one set a CPU; each is a `u64` at its number times eight.
#[derive(Clone, Copy)]
enum Counter {
    Passed,
    Dropped,
    Sent,
    ToStack,
    Redirected,
}

const COUNTERS: usize = 5;

/// What it has returned survives the calls behind it.
const VERDICT: u8 = R8;

/// An action program, and the counters that belong to it. Kernel 5.18 and newer.
#[derive(Serialize, Deserialize)]
pub struct Action {
    #[serde(serialize_with = "insns", deserialize_with = "checked")]
    program: Program,
    /// The interfaces that it redirects to, by their numbers.
    #[serde(deserialize_with = "few")]
    targets: Vec<u32>,
    counters: Fd,
    verified: u32,
}

pub(crate) fn insns<S: Serializer>(program: &Program, to: S) -> Result<S::Ok, S::Error> {
    program.insns().serialize(to)
}

pub(crate) fn checked<'de, D: Deserializer<'de>>(from: D) -> Result<Program, D::Error> {
    Program::new(Vec::<Ebpf>::deserialize(from)?).map_err(D::Error::custom)
}

fn few<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    let targets = Vec::<u32>::deserialize(from)?;
    if targets.len() <= MAX_TARGETS { Ok(targets) } else { Err(D::Error::custom("too many")) }
}

/// What became of the frames that an action program has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionCounters {
    /// To the port, whose filter may leave them to the stack.
    pub passed: u64,
    /// Gone: dropped, aborted, or with a verdict that means nothing.
    pub dropped: u64,
    /// Out of the same interface.
    pub sent: u64,
    /// To the stack.
    pub to_stack: u64,
    /// To other interfaces.
    pub redirected: u64,
}

impl Action {
    /// Has the kernel verify the program by itself. `targets` are the interfaces that it may redirect to, in the
    /// network namespace of this one.
    ///
    /// # Errors
    /// What the verifier says of it, among others.
    pub fn new(interface: &str, program: Program, targets: Vec<u32>) -> Result<Action, Error> {
        let interface = interface.into();
        let make = MakeAction { interface, program: program.clone() };
        let (counters, verified) = helper::run(make)?;
        Ok(Action { program, targets, counters, verified })
    }

    /// Instructions that the verifier looked at, each way through the program counted.
    pub fn verified(&self) -> u32 {
        self.verified
    }

    /// The counters, since it was made.
    pub fn counters(&self) -> io::Result<ActionCounters> {
        let sets = sys::percpu_value::<COUNTERS>(self.map())?;
        let sum = |counter: Counter| sets.iter().filter_map(|set| set.get(counter as usize)).sum();
        Ok(ActionCounters {
            passed: sum(Counter::Passed),
            dropped: sum(Counter::Dropped),
            sent: sum(Counter::Sent),
            to_stack: sum(Counter::ToStack),
            redirected: sum(Counter::Redirected),
        })
    }

    fn map(&self) -> BorrowedFd<'_> {
        self.counters.as_fd()
    }

    /// Calls the function at `action` with the frame, and does what it says; goes to `pass` with what is the
    /// port's, and to `stack` with what is the stack's. R9 stays.
    pub(crate) fn decide(&self, asm: &mut Assembler, action: Label, pass: Label, stack: Label) {
        let [passed, to_stack, sent, dropped, lost] = std::array::from_fn(|_| asm.label());
        asm.set(R1, Operand::Register(CONTEXT));
        asm.call_label(action);
        asm.compute(alu::MOV, VERDICT, Operand::Register(R0));
        look_up_only(asm, self.map(), lost);
        let is = |asm: &mut Assembler, verdict, to| {
            asm.branch(jump::EQ, VERDICT, Operand::Constant(verdict), to);
        };
        is(asm, XDP_PASS, passed);
        is(asm, PASS_TO_KERNEL, to_stack);
        is(asm, XDP_TX, sent);
        let redirected: Vec<_> = self.targets.iter().map(|_| asm.label()).collect();
        for (number, &label) in (0..).zip(&redirected) {
            is(asm, redirect(number), label);
        }
        count(asm, offset(Counter::Dropped));
        is(asm, XDP_DROP, dropped);
        asm.place(lost);
        asm.set(R0, Operand::Constant(XDP_ABORTED));
        asm.exit();
        asm.place(dropped);
        asm.set(R0, Operand::Constant(XDP_DROP));
        asm.exit();
        for (&target, label) in self.targets.iter().zip(redirected) {
            asm.place(label);
            count(asm, offset(Counter::Redirected));
            asm.set(R1, Operand::Constant(target));
            asm.set(R2, Operand::Constant(0));
            asm.call(REDIRECT);
            asm.exit();
        }
        asm.place(sent);
        count(asm, offset(Counter::Sent));
        asm.set(R0, Operand::Constant(XDP_TX));
        asm.exit();
        asm.place(to_stack);
        count(asm, offset(Counter::ToStack));
        asm.jump(stack);
        asm.place(passed);
        count(asm, offset(Counter::Passed));
        asm.jump(pass);
    }

    pub(crate) fn insns(&self) -> &[Ebpf] {
        self.program.insns()
    }
}

fn offset(counter: Counter) -> i16 {
    size_of::<u64>() as i16 * counter as i16
}

/// What an action program counts in, if the verifier takes it, and the instructions that it looked at.
pub(crate) fn make_here(interface: &str, program: &Program) -> Result<(Fd, u32), Error> {
    load(&reads_by_copy(), "ringway_probe", 0, 0).map_err(Error::refused(
        interface,
        "the kernel takes no action programs",
        "they need Linux 5.18, and CAP_BPF; use a filter",
    ))?;
    let loaded = load(program.insns(), "ringway_action", 0, 0);
    let loaded = loaded.map_err(|refusal| refused(interface, refusal))?;
    let verified = sys::verified_insns(loaded.as_fd()).unwrap_or(u32::MAX);
    let counters = sys::percpu_array(size_of::<[u64; COUNTERS]>() as u32);
    let counters = counters.map_err(Error::refused(
        interface,
        "there is no memory for an action program's counters",
        "free memory, or raise the limit of open files",
    ))?;
    Ok((Fd(counters), verified))
}

/// What the filters of all users do beside an action program: kernels before 5.18 cannot.
fn reads_by_copy() -> Vec<Ebpf> {
    let mut asm = Assembler::new();
    asm.set(R2, Operand::Constant(0));
    asm.set(R3, Operand::Register(R10));
    asm.add(R3, Operand::Constant(-8i32 as u32));
    asm.set(R4, Operand::Constant(1));
    asm.call(XDP_LOAD_BYTES);
    asm.exit();
    asm.finish().unwrap_or_default()
}

/// Loads an XDP program that has users' functions, as [`sys::load_xdp`] does.
///
/// # Errors
/// What the verifier says, where it says anything.
pub(crate) fn load(insns: &[Ebpf], name: &str, flags: u32, ifindex: u32) -> io::Result<OwnedFd> {
    let load = |log: &mut [u8]| {
        privileges::without_perfmon(|| sys::load_xdp_with_log(insns, name, flags, ifindex, log))?
    };
    let refusal = match load(&mut []) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EINVAL)) => error,
        loaded => return loaded,
    };
    // Where the log is too short for all, its end is what there is.
    let mut log = vec![0; LOG];
    let _ = load(&mut log);
    match last_words(&log) {
        Some(words) => Err(io::Error::other(words)),
        None => Err(refusal),
    }
}

/// What the verifier says behind its reason.
const ASIDES: [&str; 4] = ["processed ", "verification time", "cur state", "old state"];
const LOG: usize = 256 << 10;
/// Bytes of a line at most.
const WORDS: usize = 400;

/// The verifier's reason, with the instruction that it is about: its last lines, but for the statistics.
fn last_words(log: &[u8]) -> Option<String> {
    let log = String::from_utf8_lossy(log.split(|&byte| byte == 0).next()?).into_owned();
    let is_aside = |line: &&str| ASIDES.iter().any(|aside| line.starts_with(aside));
    let mut lines =
        log.lines().rev().map(str::trim).filter(|line| !line.is_empty() && !is_aside(line));
    let reason: String = lines.next()?.chars().take(WORDS).collect();
    let instruction = lines.find(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let instruction = instruction.and_then(|line| line.split(';').next()).map(str::trim);
    Some(match instruction {
        Some(instruction) if instruction.len() < WORDS => format!("{reason} (at {instruction})"),
        _ => reason,
    })
}

fn refused(interface: &str, cause: io::Error) -> Error {
    Error::refused(
        interface,
        "the kernel's verifier refuses the action program",
        "change the program there; docs/guide/actions.md says what the verifier wants to see",
    )(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_reason_comes_with_its_instruction() {
        let log = b"func#0 @0\n0: R1=ctx() R10=fp0\n0: (61) r2 = *(u32 *)(r1 +0)   ; R1=ctx()\n\
            1: (71) r0 = *(u8 *)(r2 +14)\ninvalid access to packet, off=14 size=1, R2(id=0)\n\
            R2 offset is outside of the packet\nprocessed 2 insns (limit 1000000)\n\0\0\0";
        let words = last_words(log).unwrap();
        assert_eq!(words, "R2 offset is outside of the packet (at 1: (71) r0 = *(u8 *)(r2 +14))");
        assert_eq!(last_words(b"\0"), None);
        assert_eq!(last_words(b"processed 1 insns\n"), None);
        assert_eq!(last_words(b"too many\n\0").unwrap(), "too many");
    }
}
