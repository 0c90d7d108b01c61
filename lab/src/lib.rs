//! The laboratory: Debian's kernels in virtual machines, with network cards that QEMU emulates.
//!
//! A *guest* has one kernel and two cards of a kind on one cable, and the host's root file system as its own: it runs
//! the programs that were just built, and nothing that it writes stays. No KVM is needed. The same program is both
//! sides: on the host it boots guests ([`machine`]), in a guest it makes the checks ([`guest`]) and prints a
//! [`Line`](report::Line) for each. The host keeps these in `lab/reports`, and makes `docs/kernels.md` of them
//! ([`table`]).
//!
//! `lab/fetch` gets kernels and QEMU, `lab/initramfs` packs what a guest starts from.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a program reads its own environment")]

pub mod card;
pub mod guest;
pub mod kernel;
pub mod machine;
pub mod report;
pub mod table;
