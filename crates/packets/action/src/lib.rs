//! Action programs: eBPF of a user's own that decides what becomes of each frame that an interface receives.
//!
//! ```text
//!   prog.o --> functions, linked --> Program --> one function of the interface's XDP program
//!   clang       [`Program::from_elf`] (checked)
//!   or rustc    in the user's process [`Program::new`] in the daemon
//! ```
//!
//! The object is read where the user is. What travels to a daemon is instructions, without maps, and with
//! calls of a short list of helpers. They are checked for what the kernel's verifier, which looks at them
//! next, does not know of: that they stay among themselves in the program that they become part of, and
//! refer to nothing of the machine.
//!
//! ```
//! use ringway_action::Program;
//! use ringway_filter::Ebpf;
//!
//! // return XDP_DROP;
//! let insn = |code, immediate| Ebpf { code, registers: 0, offset: 0, immediate };
//! let program = Program::new(vec![insn(0xb7, 1), insn(0x95, 0)])?;
//! assert_eq!(program.insns().len(), 2);
//! # Ok::<(), ringway_action::Error>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "elf")]
mod elf;
mod error;
mod program;
mod verdict;

pub use error::{Error, Fault};
pub use program::{HELPERS, MAX_INSNS, Program};
pub use verdict::{MAX_TARGETS, PASS_TO_KERNEL, redirect};
