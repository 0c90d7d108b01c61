//! A run with one port: what it has moved, and when that is told.

use crate::drops::{DropBook, Losses, PortDrops};
use crate::error::{Error, Result};
use crate::flush::Drain;
use crate::output::Opened;
use crate::report::{Counters, Reporter};
use crate::run_loop::{self, RunLoop};
use ringway::Port;
use std::time::Instant;

pub struct Metered {
    pub port: Port,
    pub run_loop: RunLoop,
    pub reporter: Reporter,
    pub counted: Counters,
    /// Frames that the command itself has dropped.
    pub lost: u64,
    book: DropBook,
}

impl Metered {
    /// Starts the clock, and says that the port is open.
    pub fn begin(port: Port, args: &run_loop::Args) -> Result<Metered> {
        Metered::of(RunLoop::begin(args)?, port)
    }

    /// Says that the port is open.
    pub fn of(run_loop: RunLoop, port: Port) -> Result<Metered> {
        let book = DropBook::open(&port)?;
        run_loop.tell(&Opened::new(&port))?;
        let reporter = Reporter::new(port.name(), run_loop.start);
        Ok(Metered { port, run_loop, reporter, counted: Counters::default(), lost: 0, book })
    }

    /// Tells how it goes, if it is time for that.
    pub fn report(&mut self, now: Instant) -> Result<()> {
        if self.reporter.is_due(now) {
            self.count_drops()?;
            let line = self.reporter.tick(now, self.counted);
            self.run_loop.tell(&line)?;
        }
        Ok(())
    }

    /// What the port has dropped. Fails if the daemon has gone.
    pub fn count_drops(&mut self) -> Result<PortDrops> {
        let drops = self.book.read(&self.port)?;
        self.counted.drops = drops.all.total() + self.lost;
        Ok(drops)
    }

    /// Tells how it went until `end`; `left`: frames that nobody has taken. Also when the run has
    /// failed, perhaps because there is no daemon any more that could tell of drops.
    pub fn summarize(&mut self, end: Instant, left: u64) -> Result<()> {
        let drops = self.count_drops().unwrap_or_default().all;
        self.run_loop.tell(&self.reporter.finish(end, self.counted))?;
        self.run_loop.tell(&Losses { port: self.port.name().into(), drops, left })
    }

    /// Waits until the other side has taken what was sent on the first transmit ring, as long as it takes
    /// something.
    pub fn flush(&mut self) -> Result<()> {
        let mut drain = Drain::new(1);
        loop {
            let due = self.reporter.due();
            if drain.step(&mut self.port, &self.run_loop, due)? {
                return Ok(());
            }
            self.report(Instant::now())?;
        }
    }

    /// Ends a run that has sent on the first transmit ring. The summary is told even if it has failed.
    pub fn finish_sending(mut self, sent: Result<()>) -> Result<()> {
        let left = self.port.tx(0).pending() as u64;
        let written = self.port.finish_file();
        self.summarize(Instant::now(), left)?;
        sent?;
        if left > 0 && !self.run_loop.is_interrupted() {
            return Err(Error::Left { port: self.port.name().into(), left });
        }
        Ok(written?)
    }
}
