//! The benchmark as a user interrupts it.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Stdio},
};

use ringway_testkit::Folder;
use rustix::process::{Pid, Signal, kill_process};

const BENCH: &str = env!("CARGO_BIN_EXE_ringway-bench");

#[test]
fn it_shows_what_it_has_and_leaves_nothing() {
    let daemon = Path::new(BENCH).with_file_name("ringwayd");
    assert!(daemon.is_file(), "{} is missing: build it first", daemon.display());
    let folder = Folder::new();
    // The folder itself is locked, and the benchmark locks the one that its own is made in.
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut bench = Command::new(BENCH);
    // More than there is patience for; the first runs are short.
    bench.args(["--only", "pipe", "--seconds", "0.1", "--runs", "1000"]);
    bench.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut bench = bench.spawn().unwrap();
    let mut progress = BufReader::new(bench.stderr.take().unwrap()).lines();
    let measured = progress.find(|line| line.as_ref().unwrap().contains("ns apart"));
    let measured = measured.expect("a figure").unwrap();
    let pid = Pid::from_child(&bench);
    kill_process(pid, Signal::INT).unwrap();
    let rest: Vec<_> = progress.map(Result::unwrap).collect();
    let mut table = String::new();
    bench.stdout.take().unwrap().read_to_string(&mut table).unwrap();
    assert_eq!(bench.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(!rest.iter().any(|line| line.contains("failed")), "{rest:?}");
    // The line says what was measured, and its figure stands in the table.
    let name = measured.split_once(": ").unwrap().1.split("  ").next().unwrap();
    let row = table.lines().find(|row| row.starts_with(name));
    assert!(row.is_some_and(|row| row.contains("Mpps") || row.contains("M/s")), "{name}: {table}");
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
