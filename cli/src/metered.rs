//! A run with one port: what it has moved, and when that is told.

use crate::drops::{DropBook, Losses};
use crate::error::Result;
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
    book: DropBook,
}

impl Metered {
    /// Starts the clock, and says that the port is open.
    pub fn begin(port: Port, args: &run_loop::Args) -> Result<Metered> {
        let book = DropBook::open(&port)?;
        let run_loop = RunLoop::begin(args)?;
        run_loop.output.write(&Opened::new(&port))?;
        let reporter = Reporter::new(port.name(), run_loop.start);
        Ok(Metered { port, run_loop, reporter, counted: Counters::default(), book })
    }

    /// Tells how it goes, if it is time for that.
    pub fn report(&mut self, now: Instant) -> Result<()> {
        if self.reporter.is_due(now) {
            self.counted.drops = self.book.read(&self.port)?.total();
            self.run_loop.output.write(&self.reporter.tick(now, self.counted))?;
        }
        Ok(())
    }

    /// Tells how it went until `end`; `left`: frames that nobody has taken. Also when the run has
    /// failed, perhaps because there is no daemon any more that could tell of drops.
    pub fn summarize(&mut self, end: Instant, left: u64) -> Result<()> {
        let drops = self.book.read(&self.port).unwrap_or_default();
        self.counted.drops = drops.total();
        self.run_loop.output.write(&self.reporter.finish(end, self.counted))?;
        self.run_loop.output.write(&Losses { port: self.port.name().into(), drops, left })
    }
}
