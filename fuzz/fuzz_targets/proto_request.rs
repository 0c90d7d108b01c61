//! What the daemon reads of a client: a request.
#![no_main]

#[path = "proto/decoder.rs"]
mod decoder;

use libfuzzer_sys::fuzz_target;
use ringway_proto::Request;

fuzz_target!(|bytes: &[u8]| decoder::check::<Request>(bytes));
