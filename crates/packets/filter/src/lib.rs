//! Packet filters: from what a user writes to what runs in the kernel, or in the process.
//!
//! ```text
//!   "udp port 53" --> classic BPF --> Program --> eBPF, for an XDP or a tc program
//!        libpcap        (checked)         translation
//!        [`compile`]    [`Program::new`]  [`translate()`]
//!                                     --> steps, for packets in memory: [`Interpreter`]
//! ```
//!
//! An expression is compiled where the user is, by the libpcap of the machine: host names are the
//! user's, and so is the risk of a parser. What travels to a daemon is classic BPF, which is
//! little enough to be checked whole. The translation is ours; the kernel's verifier looks at its
//! result once more.
//!
//! ```
//! use ringway_filter::{Insn, Program};
//!
//! // `ether proto 0x88b5`, by hand: ldh [12]; jeq #0x88b5, 0, 1; ret #-1; ret #0
//! let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
//! let program = Program::new(vec![
//!     insn(0x28, 0, 0, 12),
//!     insn(0x15, 0, 1, 0x88b5),
//!     insn(0x06, 0, 0, u32::MAX),
//!     insn(0x06, 0, 0, 0),
//! ])?;
//! assert_eq!(program.insns().len(), 4);
//! # Ok::<(), ringway_filter::Error>(())
//! ```
#![deny(unsafe_code)]

mod assembler;
mod classic;
mod error;
mod expression;
mod foreign;
mod interpreter;
mod program;
mod sys;
mod translate;

pub use assembler::{Assembler, Ebpf, Label, Operand, Size, alu, jump, reg};
pub use classic::Insn;
pub use error::{Error, Fault};
pub use expression::compile;
pub use foreign::Foreign;
pub use interpreter::{Bytes, Interpreter};
pub use program::{MAX_INSNS, Program};
pub use translate::{CONTEXT, Packet, STACK, XDP_LOAD_BYTES, translate};
