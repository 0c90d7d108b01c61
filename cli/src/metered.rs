//! A run with one port: what it has moved, and when that is told.

use crate::course::{self, Course};
use crate::drops::{DropBook, Losses};
use crate::error::Result;
use crate::output::Opened;
use crate::report::{Counters, Reporter};
use ringway::Port;
use std::time::Instant;

pub struct Metered {
    pub port: Port,
    pub course: Course,
    pub reporter: Reporter,
    pub counted: Counters,
    book: DropBook,
}

impl Metered {
    /// Starts the clock, and says that the port is open.
    pub fn begin(port: Port, args: &course::Args) -> Result<Metered> {
        let book = DropBook::open(&port)?;
        let course = Course::begin(args)?;
        course.output.write(&Opened::new(&port))?;
        let reporter = Reporter::new(port.name(), course.start);
        Ok(Metered { port, course, reporter, counted: Counters::default(), book })
    }

    /// Tells how it goes, if it is time for that.
    pub fn report(&mut self, now: Instant) -> Result<()> {
        if self.reporter.is_due(now) {
            self.counted.drops = self.book.read(&self.port)?.total();
            self.course.output.write(&self.reporter.tick(now, self.counted))?;
        }
        Ok(())
    }

    /// Tells how it went until `end`; `left`: frames that nobody has taken. Also when the run has
    /// failed, perhaps because there is no daemon any more that could tell of drops.
    pub fn summarize(&mut self, end: Instant, left: u64) -> Result<()> {
        let drops = self.book.read(&self.port).unwrap_or_default();
        self.counted.drops = drops.total();
        self.course.output.write(&self.reporter.finish(end, self.counted))?;
        self.course.output.write(&Losses { port: self.port.name().into(), drops, left })
    }
}
