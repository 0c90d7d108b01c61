//! What a client reads where it is not served at all: why.
#![no_main]

#[path = "proto/decoder.rs"]
mod decoder;

use libfuzzer_sys::fuzz_target;
use ringway_proto::Error;

fuzz_target!(|bytes: &[u8]| decoder::check::<Error>(bytes));
