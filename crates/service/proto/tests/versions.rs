//! The bytes of messages of a version stay what they are: `tests/version-6.txt`, and the same for each newer version, has
//! some of each request, answer and error, and programs that were built long ago write and read them.
//!
//! A test that fails here has found a change of a message without a new version. A new field says since which version it
//! is there (`Shown`, `Needed`); a file is changed only as long as its version is in no release, by
//! `RINGWAY_UPDATE_MESSAGES=1`: see `RELEASED`.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

mod samples;

use std::{fmt::Write as _, fs, path::Path};

use ringway_proto::{Error, Reply, Request, in_version};
use samples::Samples;
use serde::{Serialize, de::DeserializeOwned};

/// The newest version that is in a release: 6 since 0.2.0. Older than 6 are not spoken.
const RELEASED: u8 = 6;
/// Of each kind of message.
const SAMPLES: usize = 3;
/// What versions 6 and 7 have.
fn requests(version: u8) -> u32 {
    if version < 7 { 41 } else { 43 }
}
/// The same of events.
fn event_kinds(version: u8) -> u32 {
    if version < 7 { 25 } else { 26 }
}
const REPLIES: u32 = 21;
const CAUSES: u32 = 20;
/// The answers with what there are many kinds of: rings that are granted, and events.
const MANY: [u32; 2] = [1, 19];

type Answer = (Result<Reply, Error>, u32);

/// The bytes of a message, behind the version byte, which are read as that message.
fn bytes<T: Serialize + DeserializeOwned>(message: &T) -> Vec<u8> {
    let written = postcard::to_allocvec(message).expect("it is written");
    let (read, rest): (T, _) = postcard::take_from_bytes(&written).expect("it is read");
    assert_eq!(
        (postcard::to_allocvec(&read).expect("it is written"), rest.len()),
        (written.clone(), 0)
    );
    written
}

/// A line for each: what it is, and the bytes.
fn messages(version: u8, samples: &mut Samples) -> String {
    let mut text = String::new();
    let mut line = |what: &str, bytes: Vec<u8>| {
        let hex: String =
            bytes.iter().fold(format!("{version:02x}"), |hex, byte| format!("{hex}{byte:02x}"));
        writeln!(text, "{what} {hex}").expect("a string takes it");
    };
    for _ in 0..SAMPLES {
        for variant in 0..requests(version) {
            let request: Request = samples.of(Some(variant));
            line("request", bytes(&request));
        }
        for variant in 0..REPLIES {
            let answer: Answer = (Ok(samples.of(Some(variant))), 0);
            line("answer", bytes(&answer));
        }
    }
    for variant in 0..CAUSES {
        let mut error: Error = samples.of(None);
        error.cause = samples.of(Some(variant));
        let answer: Answer = (Err(error), 0);
        line("answer", bytes(&answer));
    }
    for variant in MANY.into_iter().cycle().take(20) {
        let answer: Answer = (Ok(samples.of(Some(variant))), 0);
        line("answer", bytes(&answer));
    }
    text
}

#[test]
fn messages_of_version_6_are_what_they_were() {
    assert_messages(6);
}

#[test]
fn messages_of_version_7_are_what_they_were() {
    assert_messages(7);
}

fn assert_messages(version: u8) {
    let file = format!("tests/version-{version}.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let mut samples = Samples::default();
    samples.limits.insert("EventKind", event_kinds(version));
    let text = in_version(version, || messages(version, &mut samples));
    // Those that the file knows nothing of are not held.
    for (name, (count, seen)) in &samples.variants {
        let known = match *name {
            "Request" => requests(version),
            _ => *count,
        };
        assert_eq!(seen.len() as u32, known, "{name}: more samples are needed");
    }
    if std::env::var_os("RINGWAY_UPDATE_MESSAGES").is_some() {
        // In a release its messages stay: a field has a new version (docs/control-protocol.md#versions).
        if RELEASED < version {
            fs::write(&path, &text).expect("the file is written");
        }
    }
    let file = fs::read_to_string(&path).expect("the file is there");
    for (number, (is, was)) in (1..).zip(text.lines().zip(file.lines())) {
        assert_eq!(is, was, "line {number} of {}", path.display());
    }
    assert_eq!(text.lines().count(), file.lines().count());
}
