//! What the runs come to: which rules hold, which do not, and which nobody looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    rules::{Rule, Rules, chapter_of},
    runs::{Outcome, Result},
};

pub struct Verdict<'a> {
    rules: &'a Rules,
    passed: BTreeSet<Rule>,
    /// Each failure of a rule, and the ways of running in which it shows.
    failed: BTreeMap<Rule, BTreeMap<String, BTreeSet<String>>>,
    /// Cases that were skipped, and in how many ways of running.
    skipped: BTreeMap<(Rule, String), u32>,
    ways: BTreeSet<String>,
}

/// Where a rule stands.
#[derive(PartialEq, Eq)]
enum State<'a> {
    Passed,
    Failed,
    /// Not covered, with the reason.
    Excused(&'a str),
    /// Not covered, and nobody says why.
    Missing,
}

impl<'a> Verdict<'a> {
    pub fn new(rules: &'a Rules) -> Verdict<'a> {
        Verdict {
            rules,
            passed: BTreeSet::new(),
            failed: BTreeMap::new(),
            skipped: BTreeMap::new(),
            ways: BTreeSet::new(),
        }
    }

    pub fn note(&mut self, outcome: Outcome) {
        let Outcome { rule, text, result, way } = outcome;
        if self.rules.unwanted.contains(&rule) {
            return;
        }
        assert!(self.rules.known.contains(&rule), "{rule} ({text}) is not among the rules");
        self.ways.insert(way.to_string());
        match result {
            Result::Passed => {
                self.passed.insert(rule);
            }
            Result::Failed => {
                let ways = self.failed.entry(rule).or_default().entry(text).or_default();
                ways.insert(way.to_string());
            }
            Result::Skipped => *self.skipped.entry((rule, text)).or_default() += 1,
        }
    }

    fn state(&self, rule: &Rule) -> State<'a> {
        if self.failed.contains_key(rule) {
            State::Failed
        } else if self.passed.contains(rule) {
            State::Passed
        } else {
            match self.rules.excused.get(rule) {
                Some(reason) => State::Excused(reason),
                None => State::Missing,
            }
        }
    }

    /// No rule failed, each is covered or argued, and no excuse is out of date.
    pub fn is_good(&self) -> bool {
        let fine = |rule| matches!(self.state(rule), State::Passed | State::Excused(_));
        self.rules.known.iter().all(fine) && self.stale_excuses().next().is_none()
    }

    /// Rules that `not-covered.txt` excuses, but that are covered or not there at all.
    fn stale_excuses(&self) -> impl Iterator<Item = &Rule> {
        let needed = |rule: &&Rule| {
            self.rules.known.contains(rule) && matches!(self.state(rule), State::Excused(_))
        };
        self.rules.excused.keys().filter(move |rule| !needed(rule))
    }

    fn write_failures(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for rule in &self.rules.known {
            for (text, ways) in self.failed.get(rule).into_iter().flatten() {
                writeln!(f, "not ok {rule} {text}")?;
                let all = ways.len() == self.ways.len();
                let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
                writeln!(f, "    {}", if all { "in all ways".into() } else { ways.join(", ") })?;
            }
        }
        Ok(())
    }

    fn write_table(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut chapters: Vec<(&str, [u32; 3])> = Vec::new();
        for rule in &self.rules.known {
            let name = chapter_of(rule);
            if chapters.last().is_none_or(|(last, _)| *last != name) {
                chapters.push((name, [0; 3]));
            }
            let column = match self.state(rule) {
                State::Passed => 0,
                State::Failed => 1,
                State::Excused(_) | State::Missing => 2,
            };
            chapters.last_mut().expect("one was pushed").1[column] += 1;
        }
        let sum = |column| chapters.iter().map(|(_, counts)| counts[column]).sum();
        let total: [u32; 3] = [0, 1, 2].map(sum);
        writeln!(f, "{:8} {:>8} {:>8} {:>12}", "rules", "passed", "failed", "not covered")?;
        for (name, [passed, failed, missing]) in chapters.into_iter().chain([("all", total)]) {
            writeln!(f, "{name:8} {passed:>8} {failed:>8} {missing:>12}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for ((rule, text), ways) in &self.skipped {
            writeln!(f, "skip {rule} {text}, in {ways} of {} ways", self.ways.len())?;
        }
        self.write_failures(f)?;
        writeln!(f)?;
        self.write_table(f)?;
        for rule in &self.rules.known {
            match self.state(rule) {
                State::Excused(reason) => writeln!(f, "not covered: {rule}: {reason}")?,
                State::Missing => writeln!(f, "not covered: {rule}: no case, and no reason why")?,
                _ => (),
            }
        }
        for rule in self.stale_excuses() {
            writeln!(f, "not-covered.txt excuses {rule}, which needs no excuse")?;
        }
        Ok(())
    }
}
