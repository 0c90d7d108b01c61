//! The benchmark as a user interrupts it.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
};

use ringway_testkit::Folder;
use rustix::process::{Pid, Signal, kill_process};

const BENCH: &str = env!("CARGO_BIN_EXE_ringway-bench");

/// Starts the benchmark, and interrupts it after its first figure; returns that line, and what it said since.
fn interrupt(mut bench: Command) -> (Child, String, Vec<String>) {
    bench.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut bench = bench.spawn().unwrap();
    let mut progress = BufReader::new(bench.stderr.take().unwrap()).lines();
    let measured = progress.find(|line| line.as_ref().unwrap().contains("ns apart"));
    let measured = measured.expect("a figure").unwrap();
    kill_process(Pid::from_child(&bench), Signal::INT).unwrap();
    (bench, measured, progress.map(Result::unwrap).collect())
}

#[test]
fn a_record_stays_as_it_was() {
    let folder = Folder::new();
    let record = folder.path().join("record.json");
    let mut quick = Command::new(BENCH);
    quick.args(["--quick", "--only", "no library", "--output"]).arg(&record);
    assert!(quick.output().unwrap().status.success());
    let before = fs::read_to_string(&record).unwrap();
    let mut merge = Command::new(BENCH);
    merge.args(["--merge", "--only", "poll of", "--seconds", "0.1", "--runs", "1000"]);
    merge.arg("--output").arg(&record);
    let (mut bench, _, rest) = interrupt(merge);
    assert_eq!(bench.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("stay as they were")), "{rest:?}");
    assert_eq!(fs::read_to_string(&record).unwrap(), before);
}

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
    bench.env("TMPDIR", &temporary);
    let (mut bench, measured, rest) = interrupt(bench);
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
