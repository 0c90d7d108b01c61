//! The rules that there are, and why some are not covered.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// A rule's number, `S-CHAPTER-NUMBER`.
pub type Rule = String;

/// The chapter that a rule is in: `LIFE` of `S-LIFE-2a`.
pub fn chapter_of(rule: &str) -> &str {
    rule.split('-').nth(1).unwrap_or(rule)
}

/// `rules.txt` and `not-covered.txt`.
pub struct Book {
    /// In the order of the file.
    pub rules: Vec<Rule>,
    /// Rules without a case, and the reason.
    pub excused: BTreeMap<Rule, String>,
}

impl Book {
    pub fn read() -> Book {
        let rules = lines("rules.txt").into_iter().map(|(rule, _)| rule).collect();
        Book { rules, excused: lines("not-covered.txt").into_iter().collect() }
    }

    /// The part of these chapters, given in lower case; none given means all.
    pub fn only(mut self, wanted: &BTreeSet<String>) -> Book {
        let stays = |rule: &str| {
            wanted.is_empty() || wanted.contains(&chapter_of(rule).to_ascii_lowercase())
        };
        self.rules.retain(|rule| stays(rule));
        self.excused.retain(|rule, _| stays(rule));
        self
    }
}

/// A rule and some words a line; empty lines and those that begin with `#` say nothing.
fn lines(name: &str) -> Vec<(Rule, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (rule, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let words = words.trim();
        assert!(rule.starts_with("S-") && !words.is_empty(), "{name}: {line:?}");
        assert!(found.iter().all(|(known, _)| known != rule), "{name}: {rule} is there twice");
        found.push((rule.to_string(), words.to_string()));
    }
    found
}
