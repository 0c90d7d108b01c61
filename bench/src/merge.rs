//! Rows that a later run adds to a record, or replaces in it. Each says which run it is of.

use std::io;

use crate::machine::Machine;
use crate::record::{Record, Report};

impl Report {
    /// Says why figures of `machine` cannot stand beside those of the record: another machine, kernel or peer.
    pub fn check_machine(&self, machine: &Machine) -> io::Result<()> {
        match self.machine.difference(machine) {
            None => Ok(()),
            Some((what, recorded, now)) => Err(io::Error::other(format!(
                "the record is of {what} {recorded}, and here it is {now}: figures of the two do not compare; \
                 measure the whole, without --merge"
            ))),
        }
    }

    /// Replaces the records that have the names of `new`, and puts the others where the plan, whose names are in
    /// `order`, has them. The rest stays.
    pub fn merge(&mut self, new: Vec<Record>, order: &[String]) {
        for record in new {
            let at = |name: &str| self.records.iter().position(|one| one.name == name);
            if let Some(place) = at(&record.name) {
                self.records[place] = record;
                continue;
            }
            let before = order.iter().take_while(|name| **name != record.name);
            let place = before.filter_map(|name| at(name)).last().map_or(0, |last| last + 1);
            self.records.insert(place, record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Contestant, Road, Subject, Summary, Unit};
    use crate::study::Study;

    fn record(name: &str, median: f64) -> Record {
        let subject = Subject::new(Study::Paths, Road::Pipe, Contestant::Ringway, Unit::Mpps);
        Record::plain(name, subject, Summary { min: median, median, max: median, runs: 1 })
    }

    fn report(records: Vec<Record>) -> Report {
        Report::new(Machine::describe(), "ringway-bench".into(), true, records)
    }

    #[test]
    fn rows_are_replaced_or_have_their_place_in_the_plan() {
        let names = |report: &Report| {
            let name = |one: &Record| format!("{} {}", one.name, one.summary.median);
            report.records.iter().map(name).collect::<Vec<_>>()
        };
        let mut all = report(vec![record("a", 1.0), record("gone", 1.0), record("d", 1.0)]);
        let order = ["first", "a", "b", "c", "d"].map(str::to_owned);
        let new = ["d", "c", "b", "first"].map(|name| record(name, 2.0));
        all.merge(new.into(), &order);
        assert_eq!(names(&all), ["first 2", "a 1", "b 2", "c 2", "gone 1", "d 2"]);
    }

    #[test]
    fn figures_of_another_kernel_are_refused() {
        let all = report(Vec::new());
        let here = Machine::describe();
        assert!(all.check_machine(&here).is_ok());
        let refused = all.check_machine(&Machine { kernel: "9.9".into(), ..here }).unwrap_err();
        assert!(refused.to_string().contains("the kernel"), "{refused}");
        // What only one of the two knows is no difference.
        assert!(all.check_machine(&Machine { libxdp: None, ..Machine::describe() }).is_ok());
    }
}
