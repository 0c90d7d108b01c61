//! A `dpdk-testpmd` that takes commands.
//!
//! It needs no PCI device. Its memory is of huge pages where there are some ([`hugepages`]), in files without names; else,
//! with `--no-huge`, EAL backs it with a memfd. A process has two EAL threads, on one CPU or on any, of which the main one sleeps on standard input while
//! the other polls.
//!
//! Packets are counted by testpmd itself: `show port stats` prints the rate since it was last
//! asked, measured with testpmd's own clock.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};
use std::{str, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cpu;
use crate::hugepages;
use crate::roles::{self, Seat};
use crate::usage::Usage;

/// How long testpmd may take to start, to answer, or to connect to its peer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What each gets.
const MEGABYTES: &str = "256";

/// The end of every answer.
const PROMPT: &str = "testpmd> ";

/// What a port has received.
pub struct Received {
    pub packets: u64,
    /// Packets a second since the last time it was asked.
    pub rate: f64,
}

/// A testpmd that takes commands; killed on drop.
pub struct Testpmd {
    name: &'static str,
    child: Child,
    commands: ChildStdin,
    answers: ChildStdout,
    /// What it writes to standard error, of interest only when it fails.
    log: PathBuf,
}

impl Testpmd {
    /// Starts one with the given `devices` (`--vdev`) and further `options`, and waits until it
    /// takes commands. It keeps its files in `folder`, under its `name`.
    pub fn start(
        name: &'static str,
        folder: &Path,
        seat: Seat,
        devices: &[String],
        options: &[&str],
    ) -> io::Result<Testpmd> {
        let cpus = seat.cpu.map_or_else(cpu::allowed, |cpu| vec![cpu]);
        let cpus = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let lcores = format!("--lcores=(0)@({cpus}),(1)@({cpus})");
        let prefix = format!("--file-prefix={name}");
        let devices: Vec<_> = devices.iter().map(|device| format!("--vdev={device}")).collect();
        // stdbuf: testpmd's answers go to a pipe and must not wait in it.
        let mut arguments = vec!["exec", "stdbuf", "-oL", "dpdk-testpmd", &lcores, &prefix];
        arguments.extend(devices.iter().map(String::as_str));
        arguments.extend(hugepages::eal().split(' '));
        arguments.extend(["-m", MEGABYTES, "--no-pci", "--no-telemetry"]);
        arguments.extend(["--", "--interactive"]);
        arguments.extend(options);

        let mut command = roles::command(seat, &arguments)?;
        // EAL keeps its own files there too.
        command.env("RUNTIME_DIRECTORY", folder);
        let log = folder.join(format!("{name}.log"));
        command.stderr(File::create(&log)?);
        let mut child = command.spawn()?;
        let commands = child.stdin.take().expect("stdin is piped");
        let answers = child.stdout.take().expect("stdout is piped");
        let mut testpmd = Testpmd { name, child, commands, answers, log };
        testpmd.answer(PROMPT)?;
        Ok(testpmd)
    }

    /// Gives a command and returns what it printed.
    pub fn ask(&mut self, command: &str) -> io::Result<String> {
        writeln!(self.commands, "{command}")?;
        self.answer(PROMPT)
    }

    /// What its first port has received.
    pub fn received(&mut self) -> io::Result<Received> {
        writeln!(self.commands, "show port stats 0")?;
        // A line of # opens the table and one closes it, right before the prompt.
        let answer = self.answer(&format!("####\n{PROMPT}"))?;
        let number = |name| number_after(&answer, name).ok_or_else(|| self.error(name, &answer));
        Ok(Received { packets: number("RX-packets:")?, rate: number("Rx-pps:")? as f64 })
    }

    pub fn wait_for_packets(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.received()?.packets == 0 {
            if Instant::now() > deadline {
                return Err(self.error("a packet", ""));
            }
            // There is no event to wait for in another program's counters.
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The CPU time it has used.
    pub fn usage(&self) -> io::Result<Usage> {
        Usage::of(self.child.id())
    }

    /// Reads until what was read ends with `end`.
    fn answer(&mut self, end: &str) -> io::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut answer = Vec::new();
        let mut part = [0; 4096];
        loop {
            let text = str::from_utf8(&answer).unwrap_or_default().replace('\r', "");
            if text.ends_with(end) {
                return Ok(text);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            if poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], Some(&left))? == 0 {
                return Err(self.error(end, &text));
            }
            match self.answers.read(&mut part)? {
                0 => return Err(self.error(end, &text)),
                n => answer.extend_from_slice(&part[..n]),
            }
        }
    }

    fn error(&self, awaited: &str, seen: &str) -> io::Error {
        io::Error::other(format!(
            "dpdk-testpmd ({}): waited for {awaited:?} in vain, it printed:\n{seen}{}",
            self.name,
            fs::read_to_string(&self.log).unwrap_or_default()
        ))
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // Both fail when it has ended by itself: that is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    text.split_once(name)?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_a_table_of_statistics() {
        let table = "\n  RX-packets: 12         RX-missed: 0\n  Rx-pps:     21437   Rx-bps: 1\n";
        assert_eq!(number_after(table, "RX-packets:"), Some(12));
        assert_eq!(number_after(table, "Rx-pps:"), Some(21437));
        assert_eq!(number_after(table, "Tx-pps:"), None);
    }
}
