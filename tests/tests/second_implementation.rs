//! A client that was written from `docs/control-protocol.md` and `docs/shared-memory.md` alone, in
//! Python, and this one have a switch in common.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ringway::Port;
use ringway_testkit::Proc;
use ringway_tests::isolated;

const LIMIT: Duration = Duration::from_secs(60);

fn python(program: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(program)
}

/// What it takes for bytes is what the document has for examples; `crates/service/proto/tests/document.rs` asks the
/// same of this implementation.
#[test]
fn it_reads_and_writes_the_examples_of_the_document() {
    let output = Command::new("python3").arg(python("examples.py")).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.extend((0..).map(|i: usize| (i % 251) as u8).take(len - frame.len()));
    frame
}

/// What is sent comes back, with the addresses exchanged.
fn assert_returns(port: &mut Port, sent: &[u8]) {
    let mut tx = port.tx(0);
    let pieces: Vec<_> = sent.chunks(2048).collect();
    for (slot, i) in tx.batch(pieces.len()).zip(0..) {
        let mut slot = slot;
        assert!(slot.write_part(pieces[i], i + 1 < pieces.len()));
    }
    tx.sync();
    let mut received = Vec::new();
    let mut is_whole = false;
    while !is_whole {
        assert!(port.wait_rx(Some(LIMIT)).expect("a wait"), "nothing comes back");
        for frame in port.rx(0).batch(64) {
            received.extend(frame.to_vec());
            is_whole = !frame.more_fragments();
        }
    }
    assert_eq!(received[..6], sent[6..12]);
    assert_eq!(received[6..12], sent[..6]);
    assert_eq!(received[12..], sent[12..], "{} bytes", sent.len());
}

/// It starts the daemon. Then it sends back what this one sends, to the sender's address: short
/// frames, frames of several slots, one by one and more than a ring holds, with waits on both sides.
#[test]
fn it_opens_a_port_sends_and_receives() {
    isolated("it_opens_a_port_sends_and_receives", |home| {
        let mut command = home.command("python3");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(home.bin()).chain(std::env::split_paths(&path));
        command.arg(python("echo.py")).arg("vale0:python");
        command.env("PATH", std::env::join_paths(paths).expect("paths"));
        let echo = Proc::spawn(command);
        echo.wait_for("open", LIMIT);

        let mut port = Port::open("vale0:rust").expect("a port");
        for number in 0..3000 {
            assert_returns(&mut port, &frame(number, 60 + number as usize % 1455));
        }
        assert_returns(&mut port, &frame(0, 5000));
        let mut last = frame(0, 60);
        last[14..17].copy_from_slice(b"end");
        assert_returns(&mut port, &last);
        let (status, output) = echo.wait();
        assert!(status.success(), "{output}");
    });
}
