//! A run with one port: what it has moved, and when that is told.

use crate::drops::{Losses, PortDrops};
use crate::error::{Error, Result};
use crate::flush::{Drain, left};
use crate::lasting::{Lasting, outlive};
use crate::opened::{Opened, shown_name};
use crate::report::{Counters, Reporter};
use crate::run_loop::{self, RunLoop};
use ringway::{Interest, Port, PortKind};
use std::time::Instant;

pub struct Metered {
    pub port: Port,
    pub run_loop: RunLoop,
    pub reporter: Reporter,
    pub counted: Counters,
    /// Frames that the command itself has dropped.
    pub lost: u64,
    lasting: Lasting,
}

impl Metered {
    /// Starts the clock, and says that the port is open.
    pub fn begin(port: Port, args: &run_loop::Args) -> Result<Metered> {
        Metered::of(RunLoop::begin(args)?, port)
    }

    /// Says that the port is open.
    pub fn of(run_loop: RunLoop, port: Port) -> Result<Metered> {
        let lasting = Lasting::begin(&port)?;
        run_loop.tell(&Opened::new(&port))?;
        let reporter = Reporter::new(shown_name(&port), run_loop.start);
        Ok(Metered { port, run_loop, reporter, counted: Counters::default(), lost: 0, lasting })
    }

    /// Tells how it goes, if it is time for that.
    pub fn report(&mut self, now: Instant) -> Result<()> {
        if self.reporter.is_due(now) {
            self.count_drops();
            let line = self.reporter.tick(now, self.counted);
            self.run_loop.tell(&line)?;
        }
        Ok(())
    }

    /// The same of a run that sends; then also whether the port still can: a slow sender has room for long, and does
    /// not wait for any. True: it is another port now, since its daemon was restarted.
    pub fn report_sending(&mut self, now: Instant) -> Result<bool> {
        let is_due = self.reporter.is_due(now);
        self.report(now)?;
        if !is_due || self.port.is_shut() {
            return Ok(false);
        }
        let Metered { port, run_loop, lasting, .. } = self;
        let checked = port.check(Interest::Tx).map_err(Error::from);
        let opened = outlive(checked, [(lasting, port)], run_loop)?;
        Ok(!opened.is_empty())
    }

    /// What the port has dropped.
    pub fn count_drops(&mut self) -> PortDrops {
        let drops = self.lasting.drops(&self.port);
        self.counted.drops = drops.all.total() + self.lost;
        drops
    }

    /// Waits until the port has what is asked of it, the run is over, or `until`. True: it is another port now, since
    /// its daemon was restarted.
    pub fn wait(&mut self, interest: Interest, until: Instant) -> Result<bool> {
        let Metered { port, run_loop, lasting, .. } = self;
        let waited = run_loop.wait(&mut [(port, interest)], lasting.until(until));
        let opened = outlive(waited, [(lasting, port)], run_loop)?;
        Ok(!opened.is_empty())
    }

    /// Tells how it went until `end`; `left`: frames that nobody has taken. Also when the run has
    /// failed.
    pub fn summarize(&mut self, end: Instant, left: u64) -> Result<()> {
        let drops = self.count_drops().all;
        self.run_loop.tell(&self.reporter.finish(end, self.counted))?;
        self.run_loop.tell(&Losses { port: shown_name(&self.port), drops, left })?;
        self.lasting.tell_device(&self.port, self.run_loop.output)
    }

    /// Waits until the other side has taken what was sent on the first transmit ring, as long as it takes
    /// something.
    pub fn flush(&mut self) -> Result<()> {
        let mut drain = Drain::new(1);
        while !self.port.is_shut() {
            let due = self.reporter.due();
            match drain.step(&mut self.port, &self.run_loop, due) {
                Ok(true) => break,
                Ok(false) => self.report(Instant::now())?,
                Err(error) if !self.lasting.has_ended(&mut self.port) => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Ends a run that has sent on the first transmit ring. The summary is told even if it has failed.
    pub fn finish_sending(mut self, sent: Result<()>) -> Result<()> {
        let left = left(&mut self.port);
        let written = self.port.finish_file();
        self.summarize(Instant::now(), left)?;
        sent?;
        if left > 0 && !self.run_loop.is_interrupted() {
            let remedy = match self.port.kind() {
                PortKind::Nic => "see whether the interface is up and has a link (`ip link`)",
                _ => "start a receiver at the other side first",
            };
            return Err(Error::Left { port: shown_name(&self.port), left, remedy });
        }
        Ok(written?)
    }
}
