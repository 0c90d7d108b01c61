//! Any messages of a client, with descriptors of all kinds, to a system daemon that runs in this process: it
//! answers what can be answered, goes on, and when the client has gone it has nothing left of it.
//!
//! The input is a list of records. Each is a message, or the end of a connection or of what was granted; a
//! message has a request, and descriptors: as a rule an end of a pair of sockets for the answer, as every
//! client sends it, else any.
#![no_main]

#[path = "message/client.rs"]
mod client;
#[path = "message/daemon.rs"]
mod daemon;
#[path = "message/descriptors.rs"]
mod descriptors;

use std::ffi::c_char;

use libfuzzer_sys::fuzz_target;
use ringway_ipc::MAX_FDS;
use ringway_proto::{Request, VERSION};

use crate::{client::Client, daemon::Daemon};

/// Records looked at, so that an input ends soon.
const LONGEST: usize = 64;
/// Descriptors of a message, where they are none that a client would send.
const DESCRIPTORS: usize = 8;

/// The first `count` bytes of a list, or as many as there are.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (first, rest) = bytes.split_at(count.min(bytes.len()));
    *bytes = rest;
    first
}

fn byte(bytes: &mut &[u8]) -> usize {
    take(bytes, 1).first().copied().unwrap_or_default().into()
}

/// A request in its own form, whatever it was read from.
fn request(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let (request, rest) = postcard::take_from_bytes::<Request>(bytes).ok()?;
    *bytes = rest;
    let form = postcard::to_allocvec(&request).expect("what was read has a form");
    Some([&[VERSION], &form[..]].concat())
}

fn run(mut bytes: &[u8]) {
    let daemon = Daemon::running();
    let before = daemon.holdings();
    let mut client = Client::new(daemon);
    for _ in 0..LONGEST {
        let Some((&what, rest)) = bytes.split_first() else { break };
        bytes = rest;
        let connection = usize::from(what >> 5);
        match what & 31 {
            0..16 => match request(&mut bytes) {
                Some(message) => client.ask(connection, &message),
                None => break,
            },
            16..22 => {
                let message = request(&mut bytes).unwrap_or_default();
                let count = byte(&mut bytes) % (DESCRIPTORS + 1);
                let kinds = take(&mut bytes, count);
                client.send(connection, &message, kinds, 1);
            }
            22..26 => {
                let length = byte(&mut bytes) << 8 | byte(&mut bytes);
                let message = take(&mut bytes, length);
                let count = byte(&mut bytes) % (DESCRIPTORS + 1);
                let kinds = take(&mut bytes, count);
                client.send(connection, message, kinds, 1);
            }
            26..28 => client.disconnect(connection),
            28..30 => client.let_go(),
            // As many as a message holds.
            _ => client.send(connection, &[VERSION], take(&mut bytes, 1), MAX_FDS),
        }
    }
    drop(client);
    daemon.assert_holds(&before);
}

/// Leaks are not looked for: the sanitizer takes what belongs to a thread that is being started for one. What the
/// daemon holds is compared instead.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const c_char {
    c"detect_leaks=0".as_ptr()
}

fuzz_target!(|bytes: &[u8]| run(bytes));
