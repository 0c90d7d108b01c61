//! The rules that there are, and why some are not covered.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::Book;

/// A rule's number, `S-CHAPTER-NUMBER`; `S` is the book's.
pub type Rule = String;

/// The chapter that a rule is in: `MEM` of `S-MEM-2a`.
pub fn chapter_of(rule: &str) -> &str {
    rule.split('-').nth(1).unwrap_or(rule)
}

/// The program of `c/` that has a chapter's cases, where several have them the first part of their
/// names: `life` for `LIFE`, `offsets` for `OFF`.
fn program_of(chapter: &str) -> String {
    let name = match chapter {
        "EXT" => "extmem",
        "LEG" => "legacy",
        "MON" => "monitor",
        "OFF" => "offsets",
        "SCEN" => "scenarios",
        other => return other.to_ascii_lowercase(),
    };
    name.into()
}

/// What a book has.
pub struct Rules {
    /// In the order of the file.
    pub known: Vec<Rule>,
    /// Those that are not wanted, which the wanted programs may have cases of.
    pub unwanted: BTreeSet<Rule>,
    /// Rules without a case, and the reason.
    pub excused: BTreeMap<Rule, String>,
}

impl Rules {
    pub fn read(book: &Book) -> Rules {
        let lines = |name| lines(name, book.prefix);
        let known = lines(book.rules).into_iter().map(|(rule, _)| rule).collect();
        Rules {
            known,
            unwanted: BTreeSet::new(),
            excused: lines(book.not_covered).into_iter().collect(),
        }
    }

    /// The part of these programs; none given means all.
    pub fn only(mut self, wanted: &BTreeSet<String>) -> Rules {
        let stays =
            |rule: &str| wanted.is_empty() || wanted.contains(&program_of(chapter_of(rule)));
        let wanted: (Vec<Rule>, Vec<Rule>) = self.known.into_iter().partition(|rule| stays(rule));
        (self.known, self.unwanted) = (wanted.0, wanted.1.into_iter().collect());
        self.excused.retain(|rule, _| stays(rule));
        self
    }
}

/// A rule and some words a line; empty lines and those that begin with `#` say nothing. In a document, those that
/// begin as rules do.
fn lines(name: &str, prefix: &str) -> Vec<(Rule, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut found = Vec::new();
    let is_document = name.ends_with(".md");
    let lines = text.lines().filter_map(|line| match is_document {
        true => {
            line.strip_prefix("- **")?.split_once("**").filter(|(at, _)| at.starts_with(prefix))
        }
        false if line.is_empty() || line.starts_with('#') => None,
        false => Some(line.split_once(char::is_whitespace).unwrap_or((line, ""))),
    });
    for (rule, words) in lines {
        let words = words.trim();
        assert!(rule.starts_with(prefix) && !words.is_empty(), "{name}: {rule} {words}");
        assert!(found.iter().all(|(known, _)| known != rule), "{name}: {rule} is there twice");
        found.push((rule.to_string(), words.to_string()));
    }
    found
}
