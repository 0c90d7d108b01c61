//! What a client reads of the daemon: a reply or an error, and how many descriptors belong to it.
#![no_main]

#[path = "proto/decoder.rs"]
mod decoder;

use libfuzzer_sys::fuzz_target;
use ringway_proto::{Error, Reply};

fuzz_target!(|bytes: &[u8]| decoder::check::<(Result<Reply, Error>, u32)>(bytes));
