//! `libpfring.so`: what [`ringway_pfring`] exports, as a library for programs in C.
//!
//! It is a crate of its own because a library that Rust programs are linked to as well is not optimised as a whole.
#![forbid(unsafe_code)]

extern crate ringway_pfring as _;
