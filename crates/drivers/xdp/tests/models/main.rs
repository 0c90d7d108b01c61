//! The kernel's rings and what stands on them, against plain models: with the kernel played by the test, all that it
//! and a program may do comes in any order, and needs no interface.

mod kernel;
mod port;
mod queue;
mod rings;
mod rx;
mod tx;
