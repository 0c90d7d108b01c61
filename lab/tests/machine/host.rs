//! A private daemon of a namespace, and what it is told.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringway_testkit::{Netns, Proc};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::LIMIT;

pub struct Daemon<'a> {
    netns: &'a Netns,
    folder: PathBuf,
    /// The interfaces that its switch has, as words.
    interfaces: &'a str,
}

impl<'a> Daemon<'a> {
    /// One with these interfaces on its switch.
    pub fn start(netns: &'a Netns, folder: &Path, name: &str, interfaces: &'a str) -> Daemon<'a> {
        let folder = folder.join(name);
        DirBuilder::new().mode(0o700).create(&folder).expect("it is new");
        let daemon = Daemon { netns, folder, interfaces };
        daemon.attach();
        daemon
    }

    fn attach(&self) {
        self.ringway(&format!("switch attach vale0 {}", self.interfaces));
    }

    fn command(&self, words: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_ringway-lab")).with_file_name("ringway");
        let mut command = self.netns.command(program.to_str().expect("UTF-8"));
        command.args(words.split(' ')).env("RINGWAY_DIR", &self.folder);
        command
    }

    pub fn ringway(&self, words: &str) {
        let (status, said) = Proc::spawn(self.command(words)).wait();
        assert!(status.success(), "ringway {words}: {said}");
    }

    /// Where a monitor finds the machine's port.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("vm1")
    }

    /// The port of the machine, which a monitor can connect to.
    pub fn attach_machine(&self) -> Proc {
        let words = format!("vm attach vale0 vm1 --socket {}", self.socket().display());
        let port = Proc::spawn(self.command(&words));
        port.wait_for("is open", LIMIT);
        port
    }

    /// Kills it, and has the next one attach the interfaces: what is private keeps no state.
    pub fn replace(&self) {
        let folder = self.folder.to_str().expect("UTF-8");
        let daemon = fs::read_dir("/proc").expect("/proc").flatten().find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
            (line.contains("--private") && line.contains(folder)).then_some(pid)
        });
        let pid = Pid::from_raw(daemon.expect("there is a daemon")).expect("a pid");
        let process = pidfd_open(pid, PidfdFlags::empty()).expect("it runs");
        pidfd_send_signal(&process, Signal::KILL).expect("it runs");
        poll(&mut [PollFd::new(&process, PollFlags::IN)], None).expect("it ends");
        self.attach();
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // With interfaces attached it stays, also without programs.
        let _ = self.command(&format!("switch detach vale0 {}", self.interfaces)).output();
    }
}
