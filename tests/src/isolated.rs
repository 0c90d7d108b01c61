//! A test in a process of its own, so that it has its own environment and its own daemon.

use std::{env::current_exe, process::Command, time::Duration};

use ringway_testkit::Proc;

use crate::{Home, ends};

/// Longer than any test takes; then it hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs `body`, the inside of the test function `test`, in a process of its own that finds its
/// daemon in a fresh [`Home`]; the daemon must leave when the process has ended.
pub fn isolated(test: &str, body: impl FnOnce(&Home)) {
    isolated_for(test, LIMIT, body);
}

/// The same for one that hangs if it is not through after `limit`.
pub fn isolated_for(test: &str, limit: Duration, body: impl FnOnce(&Home)) {
    run(test, limit, Home::settle, body);
}

/// The same for a client of the home's system daemon, which `body` starts. It hangs if it is not
/// through after `limit`.
pub fn isolated_with_system(test: &str, limit: Duration, body: impl FnOnce(&Home)) {
    run(test, limit, Home::settle_with_system, body);
}

fn run(test: &str, limit: Duration, settle: fn(&Home, &mut Command), body: impl FnOnce(&Home)) {
    if let Some(home) = Home::inherited() {
        return body(&home);
    }
    let home = Home::new();
    let mut command = Command::new(current_exe().expect("this program has a path"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    settle(&home, &mut command);
    home.hand_on(&mut command);
    let process = Proc::spawn(command);
    if !ends(process.pid(), limit) {
        panic!("{test}: hangs; so far:\n{}", process.output());
    }
    let (status, output) = process.wait();
    println!("{output}");
    assert!(status.success(), "{test}: {status}; {}", home.log());
    assert!(output.contains("1 passed"), "{test} is not the name of the test");
    home.assert_left();
}
