//! `ringway steer`: a receive queue for some flows alone.

use crate::error::{Error, Result};
use crate::run_loop::{self, RunLoop};
use crate::units::number;
use ringway::{Control, Flow, Steered};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use std::fmt::{self, Display};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
Takes the queue out of the NIC's RSS table, so that it receives only frames that flow rules direct
to it, and adds a rule for each FLOW. When this command ends, in any way, table and rules are
restored. The NIC must have both: `ethtool -x` and `ethtool -n` show them.

A FLOW is one argument: tcp, udp, sctp or ip, with 4 or 6 for the version of IP where no address
tells it (4 if nothing does), and then any of `src host ADDRESS`, `dst host ADDRESS`,
`src port NUMBER` and `dst port NUMBER`.

The changes are undone also if this command or the daemon is killed, by SIGKILL too: a janitor
process undoes the changes of a daemon that has ended. They are not undone if janitor and daemon are
killed at once, or when the machine stops. Changes that others make meanwhile stay.

Examples:
  ringway steer eth0 --queue 4 'udp dst port 53' 'tcp dst port 53' &
  ringway recv netmap:eth0~4
  ringway steer eth0 --queue 0 'udp6 dst port 4789' --duration 10m")]
pub struct Args {
    /// The interface, as `ip link` shows it
    interface: String,

    /// The receive queue, counted from 0
    #[arg(short, long, value_parser = number(0..=u16::MAX, 4))]
    queue: u16,

    /// What is to come in by it; nothing but isolates the queue
    #[arg(value_name = "FLOW")]
    flows: Vec<Flow>,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "steered")]
pub struct Line<'a> {
    interface: &'a str,
    queue: u16,
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "crate::schema::described::Steered"))]
    steered: &'a Steered,
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { interface, queue, steered } = self;
        let Steered { moved, table, rules_turned_on, rules } = steered;
        write!(
            f,
            "{interface}: {moved} of {table} places of the RSS table moved off queue {queue}"
        )?;
        if *rules_turned_on {
            write!(f, "\n{interface}: flow rules turned on (ntuple)")?;
        }
        for (flow, place) in rules {
            write!(f, "\n{interface}: rule {place}: {flow} goes to queue {queue}")?;
        }
        Ok(())
    }
}

/// How often a run without end looks up; it need not.
const LONG: Duration = Duration::from_secs(3600);

pub fn run(args: &Args) -> Result<()> {
    let run_loop = RunLoop::begin(&args.run_loop)?;
    let control = Control::connect()?;
    let Args { interface, queue, flows, .. } = args;
    let steered = control.steer(interface, *queue, flows)?;
    run_loop.output.write(&Line { interface, queue: *queue, steered: &steered })?;
    while !run_loop.is_over(Instant::now()) {
        let until = run_loop.end().unwrap_or_else(|| Instant::now() + LONG);
        let Some(daemon) = control.daemon_fd() else { break };
        run_loop.sleep_on(daemon, PollFlags::empty(), until)?;
        if has_gone(daemon) {
            let ended = "ringwayd has ended, and what was steered is undone; steer again";
            return Err(Error::Value(format!("{interface}: {ended}")));
        }
    }
    Ok(())
}

fn has_gone(daemon: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(daemon, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|_| fds[0].revents().contains(PollFlags::HUP))
}
