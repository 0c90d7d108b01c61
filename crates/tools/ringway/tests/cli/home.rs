//! A private daemon's directory, and `ringway` commands that use it.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

pub use ringway_testkit::json_lines as lines;
use ringway_testkit::{Folder, Netns, Proc};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify,
};
use serde_json::Value;

/// How long anything here may take on a machine that is busy with other things.
pub const LIMIT: Duration = Duration::from_secs(30);

const RINGWAY: &str = env!("CARGO_BIN_EXE_ringway");

/// A directory of its own for one test's daemon.
pub struct Home {
    pub dir: PathBuf,
    _folder: Folder,
}

impl Home {
    pub fn new() -> Home {
        let daemon = Path::new(RINGWAY).with_file_name("ringwayd");
        assert!(
            daemon.is_file(),
            "{} is missing; run `cargo build -p ringwayd` first",
            daemon.display()
        );
        let folder = Folder::new();
        Home { dir: folder.path().into(), _folder: folder }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        self.with_daemon(Command::new(RINGWAY), args)
    }

    /// The same in a network namespace.
    pub fn command_in(&self, netns: &Netns, args: &[&str]) -> Command {
        self.program_in(netns, RINGWAY, args)
    }

    /// Another program there, as `ip netns exec` starts it: under the name of its file.
    pub fn program_in(&self, netns: &Netns, program: &str, args: &[&str]) -> Command {
        self.with_daemon(netns.command(program), args)
    }

    fn with_daemon(&self, mut command: Command, args: &[&str]) -> Command {
        command.args(args).env("RINGWAY_DIR", &self.dir).env_remove("RINGWAY_SOCKET");
        command
    }

    /// The program under the name of one of netmap's tools.
    pub fn tool(&self, name: &str, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.arg0(name);
        command
    }

    /// Starts a command that prints JSON and goes on.
    pub fn start(&self, args: &[&str]) -> Proc {
        let mut command = self.command(args);
        command.arg("--json");
        Proc::spawn(command)
    }

    /// Starts a data command, and waits until its ports are open.
    pub fn open(&self, args: &[&str]) -> Proc {
        let proc = self.start(args);
        proc.wait_for(r#""type":"open""#, LIMIT);
        proc
    }

    /// Runs a command to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must succeed; returns its lines of JSON.
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        let output = self.run(&[args, &["--json"]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {text}{errors}");
        lines(&text)
    }

    /// Runs a command that must fail with status 1; returns what it says.
    pub fn failure(&self, args: &[&str]) -> String {
        sentence(self.run(args))
    }

    /// The daemon leaves after its last client, and takes its socket with it.
    pub fn is_left_clean(&self) {
        assert!(self.daemon_leaves(), "the private daemon has not left within {LIMIT:?}");
    }

    fn daemon_leaves(&self) -> bool {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&watch, &self.dir, inotify::WatchFlags::DELETE).unwrap();
        let deadline = Instant::now() + LIMIT;
        while self.dir.join("ringwayd.sock").exists() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let timeout = Timespec::try_from(left).unwrap();
            let mut fds = [PollFd::new(&watch, PollFlags::IN)];
            poll(&mut fds, Some(&timeout)).unwrap();
        }
        true
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Only a test that has failed leaves one: a switch that was made to stay keeps it running.
        if self.dir.join("ringwayd.sock").exists() {
            let _ = self.command(&["switch", "delete", "vale0"]).output();
            self.daemon_leaves();
        }
    }
}

/// The one line that a failed command ends with.
pub fn sentence(output: Output) -> String {
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("ringway: "), "{text}");
    last.into()
}

/// The first object of a type.
pub fn find<'a>(lines: &'a [Value], kind: &str) -> &'a Value {
    let found = lines.iter().find(|line| line["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {lines:?}"))
}

/// Waits for the summary and the end of a data command that must succeed.
pub fn finish(proc: Proc) -> Vec<Value> {
    proc.wait_for(r#""type":"summary""#, LIMIT);
    let (status, text) = proc.wait();
    assert!(status.success(), "{text}");
    lines(&text)
}
