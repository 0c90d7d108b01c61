//! The lines of the table that are about interfaces: the contestants of a workload side by side.

use crate::experiment::Experiment;
use crate::record::{Contestant, Record, Road, Subject, Unit};
use crate::rounds::Outcome;

/// A group of lines for each workload; nothing if none was run.
pub fn render(outcomes: &[Outcome]) -> String {
    let outcomes: Vec<&Outcome> =
        outcomes.iter().filter(|outcome| outcome.experiment.is_race()).collect();
    let mut table = String::new();
    if outcomes.is_empty() {
        return table;
    }
    line(
        &mut table,
        ["", "median", "min - max", "unit", "x best", "cpu ns", "own %", "own ns", "apart", ""],
    );
    for group in outcomes.chunk_by(|a, b| course(&a.experiment) == course(&b.experiment)) {
        table.push_str(&course(&group[0].experiment));
        table.push('\n');
        let records: Vec<Option<Record>> = group.iter().map(|outcome| outcome.record()).collect();
        for (outcome, record) in group.iter().zip(&records) {
            let name = format!("  {}", outcome.experiment.subject.contestant);
            match record {
                Some(record) => contestant(&mut table, &name, record, &records),
                None => {
                    let why = outcome.why_none();
                    line(&mut table, [&name, why, "", "", "", "", "", "", "", ""])
                }
            }
        }
    }
    table.push_str(&settings(&outcomes));
    table.push_str(
        "x best: against the best of Ringway's peers in the group\n\
         cpu ns: the contestant's CPU time for each packet, and what of it is own: outside the kernel, by samples\n",
    );
    table
}

/// Every contestant with the settings that it ran with.
fn settings(outcomes: &[&Outcome]) -> String {
    let mut named: Vec<(Contestant, &str)> = Vec::new();
    for Subject { contestant, settings, .. } in outcomes.iter().map(|o| &o.experiment.subject) {
        let Some(settings) = settings.as_deref() else { continue };
        if !named.contains(&(*contestant, settings)) {
            let after = named.iter().rposition(|(other, _)| other == contestant);
            named.insert(after.map_or(named.len(), |last| last + 1), (*contestant, settings));
        }
    }
    let lines = named.iter().map(|(contestant, settings)| format!("  {contestant}: {settings}\n"));
    format!("settings\n{}", lines.collect::<String>())
}

/// What the contestants of a group have in common.
fn course(experiment: &Experiment) -> String {
    experiment.subject.course()
}

fn contestant(table: &mut String, name: &str, record: &Record, group: &[Option<Record>]) {
    let summary = record.summary;
    let rival = best_peer(group);
    let own = |figure: Option<f64>| figure.map_or(String::new(), |figure| format!("{figure:.1}"));
    line(
        table,
        [
            name,
            &format!("{:.2}", summary.median),
            &format!("{:.2} - {:.2}", summary.min, summary.max),
            &record.subject.unit.to_string(),
            &rival.map_or(String::new(), |best| format!("{:.2}", summary.median / best)),
            &own(record.cpu_ns_per_packet),
            &own(record.own_percent),
            &own(record.own_ns_per_packet),
            &format!("{:.0} ns", record.core_to_core_ns),
            &note(record, group),
        ],
    );
}

fn best_peer(group: &[Option<Record>]) -> Option<f64> {
    let peers = group.iter().flatten().filter(|record| !record.subject.contestant.is_ringway());
    peers.map(|record| record.summary.median).reduce(f64::max)
}

/// What a rate means where it is not the rate that matters.
fn note(record: &Record, group: &[Option<Record>]) -> String {
    let time = |record: &Record| 1e9 / (record.summary.median * record.subject.unit.packets());
    let alone =
        group.iter().flatten().find(|r| r.subject.contestant == Contestant::NoProgram).map(time);
    match (record.subject.experiment, record.subject.in_flight, record.subject.unit) {
        (Road::VethPingPong, Some(1), Unit::Kpps) => {
            format!("{:.1} us a round trip", time(record) / 1e3)
        }
        _ if record.subject.contestant == Contestant::TpacketV4 => {
            let plain = group.iter().flatten().find(|r| r.subject.contestant == Contestant::AfXdp);
            plain.map_or(String::new(), |plain| {
                format!("{:.2} x AF_XDP", record.summary.median / plain.summary.median)
            })
        }
        (Road::VethPass, _, _) => match alone {
            Some(alone) => format!("{:.0} ns a packet, {:+.0}", time(record), time(record) - alone),
            None => format!("{:.0} ns a packet", time(record)),
        },
        _ => String::new(),
    }
}

fn line(table: &mut String, cells: [&str; 10]) {
    let [name, median, range, unit, best, cpu, percent, ns, apart, note] = cells;
    let text = format!(
        "{name:<24} {median:>9} {range:>17}  {unit:<5} {best:>7} {cpu:>7} {percent:>6} {ns:>7} \
         {apart:>7}  {note}"
    );
    table.push_str(text.trim_end());
    table.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::Extent;
    use crate::nic;
    use crate::record::Summary;

    /// Records of all contestants of a course, whose medians are 1, 2, 3 and so on.
    fn group(course: &str) -> Vec<Option<Record>> {
        let subjects = nic::races(Extent::Whole).into_iter().map(|race| race.subject());
        let record = |(median, subject): (u32, Subject)| {
            let median = f64::from(median);
            let summary = Summary { min: median, median, max: median, runs: 1 };
            Some(Record {
                course: subject.course(),
                own_percent: Some(4.0),
                ..Record::plain(&subject.to_string(), subject, summary)
            })
        };
        (1..).zip(subjects.filter(|subject| subject.course() == course)).map(record).collect()
    }

    #[test]
    fn everybody_is_compared_with_the_best_of_the_others() {
        let group = group("veth tx 64 B untouched");
        assert_eq!(best_peer(&group), Some(7.0));
        assert_eq!(best_peer(&group[..2]), None);
        let mut table = String::new();
        contestant(&mut table, "  Ringway", group[0].as_ref().unwrap(), &group);
        let cells: Vec<_> = table.split_whitespace().collect();
        assert_eq!(
            cells,
            ["Ringway", "1.00", "1.00", "-", "1.00", "Mpps", "0.14", "4.0", "50", "ns"]
        );
        assert_eq!(note(group[1].as_ref().unwrap(), &group), "0.67 x AF_XDP");
    }

    #[test]
    fn rates_are_told_as_times_where_these_matter() {
        let one = group("veth ping-pong 64 B untouched 1 in flight");
        assert_eq!(note(one[1].as_ref().unwrap(), &one), "500.0 us a round trip");
        let many = group("veth ping-pong 64 B untouched 64 in flight");
        assert_eq!(note(many[1].as_ref().unwrap(), &many), "");
        let pass = group("veth pass to kernel 64 B untouched");
        let notes: Vec<_> = pass.iter().flatten().map(|record| note(record, &pass)).collect();
        assert_eq!(notes[1..3], ["500 ns a packet, +167", "333 ns a packet, +0"]);
        assert_eq!(notes[3], "250 ns a packet, -83");
    }
}
