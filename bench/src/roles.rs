//! The processes of an experiment, seen from both sides.
//!
//! Each process is this program again, as `ringway-bench role …`, so that every experiment runs
//! between separate processes without a second binary to find. The parent speaks to a role through
//! the role's standard input and output, in lines:
//!
//! | parent | role |
//! | --- | --- |
//! | | `ready`: ports are open, nothing moves yet |
//! | `start` | moves packets, uncounted: the warm-up |
//! | `count` | counts |
//! | closes the pipe | one line of JSON, a [`Count`]; ends |
//!
//! Each role times its own counting, so a late wake-up of the parent does not enter a figure.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::cgroup::{self, Cgroup};
use crate::figure::Percentiles;
use crate::netns::{self, Netns};
use crate::sys;
use crate::usage::Usage;

/// What one role saw between `count` and the closing of its pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    pub packets: u64,
    pub nanoseconds: u64,
    /// Ticks of the time-stamp counter meanwhile; 0 where there is none.
    pub cycles: u64,
    /// CPU time of the role.
    pub usage: Usage,
    /// Of round trips, where they are timed.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
    /// Packets that it has sent, where it counts those that come back.
    #[serde(default)]
    pub sent: Option<u64>,
}

impl Count {
    pub fn seconds(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }

    /// Packets a second.
    pub fn rate(&self) -> f64 {
        self.packets as f64 / self.seconds()
    }

    /// Ticks of the time-stamp counter for each packet.
    pub fn cycles_per_packet(&self) -> Option<f64> {
        (self.packets > 0 && self.cycles > 0).then(|| self.cycles as f64 / self.packets as f64)
    }

    /// Millions of packets a second.
    pub fn mpps(&self) -> f64 {
        self.rate() / 1e6
    }
}

/// Where a role runs.
#[derive(Clone, Copy, Default)]
pub struct Seat<'a> {
    /// The group of processes that it is in, and what it starts.
    pub cgroup: Option<&'a Cgroup>,
    /// The CPU it stays on, or wherever the kernel likes.
    pub cpu: Option<usize>,
    /// The network namespace it lives in, or that of its parent.
    pub netns: Option<&'a Netns>,
}

impl<'a> Seat<'a> {
    pub fn on(cpu: usize) -> Seat<'a> {
        Seat { cpu: Some(cpu), ..Seat::default() }
    }

    pub fn of(self, cgroup: &'a Cgroup) -> Seat<'a> {
        Seat { cgroup: Some(cgroup), ..self }
    }

    pub fn inside(self, netns: &'a Netns) -> Seat<'a> {
        Seat { netns: Some(netns), ..self }
    }
}

/// A command that runs `arguments` as a role in `seat`.
pub fn command(seat: Seat, arguments: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("role");
    if let Some(cpu) = seat.cpu {
        command.args(["--cpu", &cpu.to_string()]);
    }
    if let Some(netns) = seat.netns {
        command.args(["--netns", &netns.path()]);
    }
    if let Some(cgroup) = seat.cgroup {
        command.arg("--cgroup").arg(cgroup.path());
    }
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(command)
}

/// Makes this process a role: it dies with its parent, however that dies, and lives in the network
/// namespace `netns` and in the group `cgroup`.
pub fn settle(netns: Option<&Path>, cgroup: Option<&Path>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    cgroup.map_or(Ok(()), cgroup::enter)?;
    netns.map_or(Ok(()), netns::enter)
}

/// A program, killed on drop.
pub struct Held(Child);

impl Held {
    pub fn new(program: Child) -> Held {
        Held(program)
    }

    /// What it says. To be asked for once.
    pub fn output(&mut self) -> ChildStdout {
        self.0.stdout.take().expect("stdout is piped")
    }

    /// Lets it end by itself, which it does when nothing holds its input any more.
    pub fn end(mut self) -> io::Result<()> {
        self.0.wait().map(drop)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A role as its parent holds it; killed on drop.
pub struct Role {
    name: String,
    child: Child,
    orders: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Role {
    /// Starts a role and waits until it is ready. Its ports are those of a private daemon in the
    /// folder `daemon`.
    pub fn start(seat: Seat, daemon: &Path, arguments: &[&str]) -> io::Result<Role> {
        let mut child = command(seat, arguments)?.env("RINGWAY_DIR", daemon).spawn()?;
        let orders = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut role = Role { name: arguments.join(" "), child, orders, lines };
        match role.line()?.as_str() {
            "ready" => Ok(role),
            other => Err(role.error(&format!("said {other:?} in place of \"ready\""))),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn order(&mut self, order: &str) -> io::Result<()> {
        match &mut self.orders {
            Some(orders) => writeln!(orders, "{order}"),
            None => Err(self.error("was stopped already")),
        }
    }

    fn stop(&mut self) {
        self.orders = None;
    }

    fn count(&mut self) -> io::Result<Count> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|e| self.error(&format!("counted {line:?}: {e}")))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line)? {
            0 => Err(self.error("ended early; its message is above")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn error(&self, what: &str) -> io::Error {
        io::Error::other(format!("role `{}` {what}", self.name))
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // Both fail when the role has ended by itself: that is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs ready `roles` together and returns their counts in order. Roles start in the given order
/// and stop in it too: put receivers first, so that what they count was sent at full speed.
pub fn run(mut roles: Vec<Role>, warm_up: Duration, counting: Duration) -> io::Result<Vec<Count>> {
    begin(&mut roles, warm_up)?;
    thread::sleep(counting);
    end(roles)
}

/// The first half of [`run`]: returns when all count.
pub fn begin(roles: &mut [Role], warm_up: Duration) -> io::Result<()> {
    for role in &mut *roles {
        role.order("start")?;
    }
    thread::sleep(warm_up);
    roles.iter_mut().try_for_each(|role| role.order("count"))
}

/// The second half of [`run`].
pub fn end(mut roles: Vec<Role>) -> io::Result<Vec<Count>> {
    roles.iter_mut().for_each(Role::stop);
    roles.iter_mut().map(Role::count).collect()
}

const WARM_UP: u8 = 0;
const COUNTING: u8 = 1;
const STOPPED: u8 = 2;

/// The parent's orders as a role hears them.
pub struct Orders {
    phase: Arc<AtomicU8>,
}

impl Orders {
    /// Tells the parent that all ports are open and waits for its `start`.
    pub fn ready() -> io::Result<Orders> {
        println!("ready");
        io::stdout().flush()?;
        let mut lines = BufReader::new(io::stdin()).lines();
        lines.next().transpose()?;
        let phase = Arc::new(AtomicU8::new(WARM_UP));
        let heard = phase.clone();
        thread::Builder::new().name("orders".into()).spawn(move || {
            // A parent that is gone, or garbled, means the same as a closed pipe.
            if matches!(lines.next(), Some(Ok(line)) if line == "count") {
                heard.store(COUNTING, Ordering::Relaxed);
                lines.next();
            }
            heard.store(STOPPED, Ordering::Relaxed);
        })?;
        Ok(Orders { phase })
    }

    /// Whether what is done now counts.
    pub fn is_counting(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == COUNTING
    }

    /// Repeats `step`, which moves one batch and returns how many packets it moved, until the
    /// parent says stop. A step that finds nothing to do may wait, but not for long: the phase is
    /// looked at between steps.
    pub fn count(&self, mut step: impl FnMut() -> u64) -> Count {
        while self.phase.load(Ordering::Relaxed) == WARM_UP {
            step();
        }
        let (begin, used) = (Instant::now(), Usage::mine().unwrap_or_default());
        let ticks = sys::ticks();
        let mut packets = 0;
        while self.is_counting() {
            packets += step();
        }
        let cycles = sys::ticks().wrapping_sub(ticks);
        let nanoseconds = begin.elapsed().as_nanos() as u64;
        let usage = Usage::mine().unwrap_or_default() - used;
        Count { packets, nanoseconds, cycles, usage, percentiles: None, sent: None }
    }

    /// Tells the parent what was counted.
    pub fn report(count: &Count) -> io::Result<()> {
        println!("{}", serde_json::to_string(count)?);
        io::stdout().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_millions_a_second() {
        let count = Count {
            packets: 3_000_000,
            nanoseconds: 1_500_000_000,
            cycles: 6_000_000,
            ..Count::default()
        };
        assert_eq!((count.mpps(), count.cycles_per_packet()), (2.0, Some(2.0)));
    }

    #[test]
    fn a_count_survives_the_pipe() {
        let usage = Usage { user: 1, system: 2 };
        let count =
            Count { packets: 7, nanoseconds: 9, cycles: 8, usage, percentiles: None, sent: None };
        let line = serde_json::to_string(&count).unwrap();
        assert_eq!(serde_json::from_str::<Count>(&line).unwrap(), count);
    }
}
