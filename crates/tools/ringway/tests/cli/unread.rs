//! Results that nobody reads: `| head` has enough.

use crate::home::Home;
use crate::traffic::capture;
use rustix::process::Signal;
use std::{fs, io, process::Stdio};

/// As a shell tells of a program that SIGPIPE has ended.
const UNREAD: i32 = 128 + Signal::PIPE.as_raw();

/// What writes to it finds that nobody reads.
fn unread() -> io::PipeWriter {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer
}

#[test]
fn commands_end_quietly() {
    let home = Home::new();
    for args in [
        &["ports"][..],
        &["doctor", "--json"],
        &["doctor"],
        &["switch", "list"],
        &["recv", "vale0:a"],
        &["gen", "p{0"],
    ] {
        let output = home.command(args).stdout(unread()).output().unwrap();
        assert_eq!(output.status.code(), Some(UNREAD), "{args:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{args:?}");
    }
    home.is_left_clean();
}

#[test]
fn tools_end() {
    let home = Home::new();
    let mut receiver = home.tool("pkt-gen", &["-i", "vale0:a", "-f", "rx"]);
    receiver.stdin(Stdio::null()).stdout(Stdio::null()).stderr(unread());
    assert_eq!(receiver.status().unwrap().code(), Some(UNREAD));
    let mut balancer = home.tool("lb", &["-i", "vale0:a", "-p", "2", "-o", "1"]);
    balancer.stdin(Stdio::null()).stdout(unread()).stderr(Stdio::null());
    assert_eq!(balancer.status().unwrap().code(), Some(UNREAD));
    home.is_left_clean();
}

/// A capture file on standard output is a result, too.
#[test]
fn captures_end_quietly() {
    let home = Home::new();
    let file = home.dir.join("in.pcap");
    fs::write(&file, capture(&[60; 10])).unwrap();
    let port = format!("file:{}", file.display());
    for args in [
        &["capture", &*port, "-w", "-"][..],
        &["bridge", &port, "file:-@write"],
        &["shape", &port, "file:-@write"],
        &["lb", &port, "--to", "file:-@write"],
        &["gen", "file:-", "--count", "10"],
        &["replay", "file:-", file.to_str().unwrap()],
    ] {
        let output = home.command(args).stdout(unread()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(UNREAD), "{args:?}: {said}");
        assert!(!said.contains("roken pipe"), "{args:?}: {said}");
    }
}
