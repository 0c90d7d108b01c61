//! `ringway top`: what all ports, switches and rings are doing, as it happens.

mod entity;
pub mod rates;
mod sample;
mod sampler;
mod screen;
mod view;

use crate::error::{Error, Result};
use crate::output::Output;
use crate::run_loop::{self, RunLoop, poll_until};
use crate::sys::Stop;
use crate::units::parse_duration;
use crossterm::event::{self, Event, KeyEventKind};
use crossterm::tty::IsTty;
use rates::rows;
use ringway::Control;
use rustix::event::{PollFd, PollFlags};
use sample::Sample;
use sampler::{Latest, Sampler};
use screen::{JobControl, Screen};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use view::{Action, Shown, View};

#[derive(clap::Args)]
#[command(after_help = "\
Rates are those of the last interval, totals those since the start, or since z was pressed. RX is
the traffic that a port receives, TX the traffic that it sends. Pipes, monitors and the rings of
switch ports count slots, of which a packet that is longer than a buffer takes several; interfaces,
files and the ports of a switch count packets. UID is the user that has the port, OPEN the number of handles that programs have of it. The
reasons of the selected line's drops are below the list. Where ports of several network namespaces have one
name, the inode number of each one's namespace is behind it: `ls -i /run/netns`, or `lsns -t net`, finds it.

Keys: p ports, s ports of switches, r rings, Tab the next of these; < and > choose the column to sort by, i
turns the order round; / filters by name; t switches between rates and totals; z sets totals to zero; up and
down select; h help; q quit.

The command starts no daemon. On a terminal it waits while there is none; with --once or --json it fails. A
private daemon does not end while it is watched.

Examples:
  ringway top
  ringway top --interval 5s --filter vale0
  ringway top --duration 10s --json
  ringway top --once --json | jq 'select(.of == \"port\") | .name, .rx_pps'")]
pub struct Args {
    /// Between two looks: 1s, 200ms
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    interval: Duration,

    /// Only those with this in their names
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,

    /// Print the rates of one interval, and end, as with --json
    #[arg(long, conflicts_with = "duration")]
    once: bool,

    /// End after this time: 10s, 200ms, 2m; with --json, print the rates of each interval until then [default: run until
    /// interrupted]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
}

pub fn run(args: &Args) -> Result<()> {
    if args.once || Output::chosen().json {
        return print(args);
    }
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if !(io::stdin().is_tty() && io::stdout().is_tty()) || is_dumb {
        let wrong = "ringway top needs a terminal, and not one that is dumb (TERM); --once prints the rates of one \
                     interval";
        return Err(Error::Value(wrong.into()));
    }
    let fail = |source| Error::System { what: "the terminal", source };
    Top::begin(args)?.run().map_err(fail)
}

/// Prints the rates of one interval, or, with `--duration`, of each until then; of the last one, those of what there was of
/// it at the end.
fn print(args: &Args) -> Result<()> {
    let run_loop = RunLoop::begin(&run_loop::Args { duration: args.duration })?;
    let control = Control::connect_running()?;
    let mut before = Sample::take(&control)?;
    loop {
        let end = before.at + args.interval;
        while Instant::now() < end && !run_loop.is_over(Instant::now()) {
            run_loop.sleep(end)?;
        }
        let now = Sample::take(&control)?;
        let mut rows = rows(&now, &before, &before);
        rows.retain(|row| row.name.contains(&args.filter));
        run_loop.output.write_all(&rows, || rates::table(&rows))?;
        if args.duration.is_none() || run_loop.is_over(Instant::now()) {
            return Ok(());
        }
        before = now;
    }
}

struct Top {
    sampler: Sampler,
    latest: Latest,
    view: View,
    stop: Stop,
    jobs: JobControl,
    interval: Duration,
    end: Option<Instant>,
}

impl Top {
    fn begin(args: &Args) -> Result<Top> {
        let fail = |source| Error::System { what: "taking over signals", source };
        Ok(Top {
            stop: Stop::install()?,
            jobs: JobControl::install().map_err(fail)?,
            sampler: Sampler::start(args.interval)?,
            latest: Latest::default(),
            view: View::new(args.filter.clone()),
            interval: args.interval,
            end: args.duration.and_then(|time| Instant::now().checked_add(time)),
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut screen = Screen::enter()?;
        while !self.stop.requested() && self.end.is_none_or(|end| end > Instant::now()) {
            while let Some(sample) = self.sampler.next() {
                self.latest.take(sample);
            }
            self.draw(&mut screen)?;
            self.wait()?;
            while event::poll(Duration::ZERO)? {
                let Event::Key(key) = event::read()? else { continue };
                if key.kind == KeyEventKind::Release {
                    continue;
                }
                match self.view.key(key) {
                    Action::Nothing => {}
                    Action::Quit => return screen.leave(),
                    Action::Reset => self.latest.reset(),
                    Action::Redraw => screen.forget(),
                    Action::Suspend => self.jobs.suspend(&mut screen)?,
                }
            }
            self.jobs.follow(&mut screen)?;
        }
        screen.leave()
    }

    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let rows = self.latest.rows();
        let state = self.latest.state(self.interval);
        let problem = self.latest.problem();
        let shown = Shown { rows: &rows, problem, state: &state, interval: self.interval };
        let (width, height) = crossterm::terminal::size()?;
        screen.draw(self.view.lines(&shown, width.into(), height.into()), (width, height))
    }

    /// Until there is a key, a signal, another sample, or none where one should be, or it is time to end.
    fn wait(&self) -> io::Result<()> {
        let stdin = io::stdin();
        let sources = [stdin.as_fd(), self.stop.as_fd(), self.jobs.as_fd(), self.sampler.as_fd()];
        let mut fds = sources.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let late = Instant::now() + self.interval + Duration::from_secs(1);
        poll_until(&mut fds, self.end.unwrap_or(late).min(late)).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::rates::Row;

    #[test]
    fn a_row_is_a_flat_object_for_machines() {
        let row = serde_json::to_value(Row::default()).unwrap();
        assert_eq!((&row["type"], &row["of"]), (&"rates".into(), &"port".into()));
        assert_eq!((&row["rx_pps"], &row["tx_bps"]), (&0.0.into(), &0.0.into()));
    }
}
