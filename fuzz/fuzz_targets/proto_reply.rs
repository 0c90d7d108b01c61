//! What a client reads where it was answered: a reply, with all that it carries.
#![no_main]

#[path = "proto/decoder.rs"]
mod decoder;

use libfuzzer_sys::fuzz_target;
use ringway_proto::Reply;

fuzz_target!(|bytes: &[u8]| decoder::check::<Reply>(bytes));
