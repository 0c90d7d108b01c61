//! What the runs come to: which rules hold, which do not, and which nobody looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use ringway_testkit::skip;

use crate::{
    rules::{Rule, Rules, chapter_of},
    runs::{Outcome, Result},
};

pub struct Verdict<'a> {
    rules: &'a Rules,
    cases: BTreeMap<(Rule, String), Case>,
    ways: BTreeSet<String>,
}

/// What a case came to in the ways in which its program ran.
#[derive(Default)]
struct Case {
    passed: u32,
    /// Each failure, and the ways in which it shows.
    failed: BTreeMap<String, BTreeSet<String>>,
    /// What the machine lacks.
    skipped: BTreeSet<String>,
    /// What ways it needs where it did not run.
    needs: BTreeSet<String>,
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
        Verdict { rules, cases: BTreeMap::new(), ways: BTreeSet::new() }
    }

    pub fn note(&mut self, outcome: Outcome) {
        let Outcome { rule, case, details, result, way } = outcome;
        if self.rules.unwanted.contains(&rule) {
            return;
        }
        assert!(self.rules.known.contains(&rule), "{rule} ({case}) is not among the rules");
        self.ways.insert(way.to_string());
        let case = self.cases.entry((rule, case)).or_default();
        match result {
            Result::Passed => case.passed += 1,
            Result::Failed => {
                case.failed.entry(details).or_default().insert(way.to_string());
            }
            Result::Skipped => {
                case.skipped.insert(details);
            }
            Result::NotApplicable => {
                case.needs.insert(details);
            }
        }
    }

    /// Notes what did not run: each case runs in all ways that are what it needs, and in one at least.
    pub fn note_skipped(&self) {
        for ((rule, name), case) in &self.cases {
            let idle = case.passed == 0 && case.failed.is_empty();
            let needs = case.needs.iter().filter(|_| idle);
            for reason in case.skipped.iter().chain(needs) {
                skip(&format!("{rule} {name}"), reason);
            }
        }
    }

    fn state(&self, rule: &Rule) -> State<'a> {
        let mut cases = self.cases_of(rule).map(|(_, case)| case);
        if self.cases_of(rule).any(|(_, case)| !case.failed.is_empty()) {
            State::Failed
        } else if cases.any(|case| case.passed > 0) {
            State::Passed
        } else {
            match self.rules.excused.get(rule) {
                Some(reason) => State::Excused(reason),
                None => State::Missing,
            }
        }
    }

    fn cases_of<'s>(&'s self, rule: &'s Rule) -> impl Iterator<Item = (&'s String, &'s Case)> {
        let cases = self.cases.range((rule.clone(), String::new())..);
        let own = cases.take_while(move |((of, _), _)| of == rule);
        own.map(|((_, name), case)| (name, case))
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
            for (name, case) in self.cases_of(rule) {
                for (details, ways) in &case.failed {
                    writeln!(f, "not ok {rule} {name}: {details}")?;
                    let all = ways.len() == self.ways.len();
                    let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
                    writeln!(
                        f,
                        "    {}",
                        if all { "in all ways".into() } else { ways.join(", ") }
                    )?;
                }
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
