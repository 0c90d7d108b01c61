//! What documents and code have to say alike: netmap's rules, the files and crates that are named.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Files that are read, by extension.
const EXTENSIONS: [&str; 9] = ["rs", "c", "h", "cc", "py", "sh", "md", "toml", "txt"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_path_buf()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Files below `dir`, without what was built.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !["target", "build", "corpus", "artifacts"].contains(&name) && !name.starts_with('.')
            {
                files(&path, found);
            }
        } else if path.extension().is_some_and(|e| EXTENSIONS.iter().any(|known| e == *known)) {
            found.push(path);
        }
    }
}

/// The rules that `text` names: `S-CHAPTER-NUMBER`, perhaps with a letter behind it, or a flag's or
/// a parameter's name in the place of the number.
fn rules_in(text: &str) -> Vec<String> {
    let mut rules = Vec::new();
    for (at, _) in text.match_indices("S-") {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_') {
            continue;
        }
        let rest = &text[at + 2..];
        let Some((chapter, number)) = rest.split_once('-') else { continue };
        if chapter.is_empty() || !chapter.chars().all(|c| c.is_ascii_uppercase()) {
            continue;
        }
        let named = ["FLAGS", "PARAM"].contains(&chapter);
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let word = number.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(number.len());
        let end = match named {
            true => word,
            // `S-MEM-2a`, but not the word behind `S-PIPE-1.` or in a pattern.
            false if word == digits + 1 && digits > 0 => word,
            false => digits,
        };
        if end > 0 {
            rules.push(format!("S-{chapter}-{}", &number[..end]));
        }
    }
    rules
}

/// Rules by the lines that say what they are: `- **S-…** …`.
fn explained() -> BTreeMap<String, String> {
    let text = read("docs/netmap-rules.md");
    let mut rules = BTreeMap::new();
    let lines = text.lines().filter_map(|line| line.strip_prefix("- **S-"));
    for (rule, words) in lines.filter_map(|line| line.split_once("** ")) {
        let rule = format!("S-{rule}");
        assert!(!words.is_empty(), "docs/netmap-rules.md says nothing of {rule}");
        assert!(rules.insert(rule.clone(), words.to_string()).is_none(), "{rule} is there twice");
    }
    rules
}

fn names(rules: &BTreeMap<String, String>) -> BTreeSet<String> {
    rules.keys().cloned().collect()
}

/// The rules at the beginnings of lines.
fn listed(path: &str) -> BTreeSet<String> {
    let text = read(path);
    let words = text.lines().filter_map(|line| line.split_whitespace().next());
    words.filter(|word| word.starts_with("S-")).map(str::to_string).collect()
}

#[test]
fn every_rule_that_is_cited_is_explained() {
    let explained = names(&explained());
    let mut sources = Vec::new();
    files(&root(), &mut sources);
    let mut unknown = BTreeSet::new();
    let mut count = 0;
    for path in sources {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for rule in rules_in(&text) {
            count += 1;
            if !explained.contains(&rule) {
                let place = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
                unknown.insert((rule, place));
            }
        }
    }
    assert!(count > 1000, "{count} citations: this looks in the wrong place");
    assert!(unknown.is_empty(), "not in docs/netmap-rules.md: {unknown:#?}");
}

/// Where code is that keeps no rule, but checks, measures or shows it.
const NO_PRODUCT: [&str; 9] =
    ["bench", "benches", "conformance", "demo", "docs", "examples", "fuzz", "testkit", "tests"];

/// Whether a file has code that is shipped.
fn is_product(path: &Path) -> bool {
    let inside = path.strip_prefix(root()).unwrap_or(path);
    let is_code =
        path.extension().is_some_and(|e| ["rs", "c", "h"].iter().any(|known| e == *known));
    let mut folders = inside.iter().filter_map(|part| part.to_str());
    is_code && !folders.any(|part| NO_PRODUCT.contains(&part) || part == "tests.rs")
}

/// So one search finds the code of a rule.
#[test]
fn every_rule_is_cited_by_the_code_that_keeps_it() {
    let mut sources = Vec::new();
    files(&root(), &mut sources);
    sources.retain(|path| is_product(path));
    let mut cited = BTreeSet::new();
    for path in sources {
        cited.extend(rules_in(&fs::read_to_string(&path).expect("a source")));
    }
    let text = read("docs/netmap-rules.md");
    let mut wrong = Vec::new();
    for (rule, entry) in text.split("\n- **").filter_map(|entry| entry.split_once("** ")) {
        if !rule.starts_with("S-") {
            continue;
        }
        let entry = entry.split("\n\n").next().unwrap_or_default();
        match (cited.contains(rule), entry.contains("**No code:**")) {
            (false, false) => {
                wrong.push(format!("{rule}: no code cites it, and its entry does not say why"))
            }
            (true, true) => wrong
                .push(format!("{rule}: cited by code, although its entry says that there is none")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// By a case of the conformance programs, or among those that no program can check.
#[test]
fn every_rule_that_is_explained_is_checked() {
    let mut sources = Vec::new();
    files(&root().join("conformance/c"), &mut sources);
    let mut checked = listed("conformance/not-covered.txt");
    for path in sources {
        checked.extend(rules_in(&fs::read_to_string(&path).expect("a C program")));
    }
    let unchecked: Vec<_> = names(&explained()).difference(&checked).cloned().collect();
    assert!(unchecked.is_empty(), "neither checked nor excused: {unchecked:#?}");
}

#[test]
fn conformance_lists_the_rules_that_are_explained() {
    let (explained, listed) = (names(&explained()), listed("conformance/rules.txt"));
    let only: Vec<_> = explained.symmetric_difference(&listed).collect();
    assert!(only.is_empty(), "in one of docs/netmap-rules.md and conformance/rules.txt: {only:#?}");
}

#[test]
fn citations_are_found_in_text() {
    let text = "(S-SYNC-5), S-MEM-2a; S-CTRL-4..10, S-FLAGS-NS_FORWARD. XS-A-1 PTHREADS-A-1 S-A-b";
    let expected = ["S-SYNC-5", "S-MEM-2a", "S-CTRL-4", "S-FLAGS-NS_FORWARD"];
    assert_eq!(rules_in(text), expected);
}

/// The documents at the root and all of `docs/`, with their paths from the root.
fn documents() -> Vec<(PathBuf, String)> {
    let at_root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];
    let mut paths = at_root.map(|name| root().join(name)).to_vec();
    files(&root().join("docs"), &mut paths);
    paths.retain(|path| path.extension().is_some_and(|e| e == "md"));
    paths.iter().map(|path| (path.clone(), read(path))).collect()
}

/// `text` without its blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Whether a piece of code in a document is the name of a file of ours: below a directory of ours, and
/// not for the reader to fill in.
fn is_path(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let top = code.split('/').next().unwrap_or_default();
    let is_filled_in = !code.contains("NAME");
    is_filled_in
        && code.contains('/')
        && code.chars().all(plain)
        && !top.is_empty()
        && root().join(top).is_dir()
}

#[test]
fn files_that_documents_name_are_there() {
    let mut missing = Vec::new();
    let mut count = 0;
    for (path, text) in documents() {
        let dir = path.parent().expect("a directory");
        let prose = prose(&text);
        let paths = prose.split('`').skip(1).step_by(2).filter(|code| is_path(code));
        let links = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        let links = links.map(|(link, _)| link.split('#').next().unwrap_or_default());
        let links = links.filter(|link| !link.is_empty() && !link.contains("://"));
        let named = paths.map(|p| root().join(p)).chain(links.map(|link| dir.join(link)));
        for named in named {
            count += 1;
            if !named.exists() && !named.starts_with(root().join("target")) {
                missing.push((path.clone(), named));
            }
        }
    }
    assert!(count > 20, "{count} names: this looks in the wrong place");
    assert!(missing.is_empty(), "documents name what is not there: {missing:#?}");
}

/// The table of ARCHITECTURE.md has each crate of `crates/` in its group, and no other.
#[test]
fn architecture_names_every_crate() {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
    };
    let groups = root().join("crates");
    let mut there = BTreeSet::new();
    for path in folders(&groups).iter().flat_map(|group| folders(group)) {
        let within = folders(&path);
        for path in within.iter().chain([&path]).filter(|path| path.join("Cargo.toml").is_file()) {
            there.insert(path.strip_prefix(&groups).expect("below").display().to_string());
        }
    }
    let text = read("ARCHITECTURE.md");
    let names =
        |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let (mut group, mut named) = (String::new(), BTreeSet::new());
    for row in text.lines().filter(|line| line.starts_with("| `") || line.starts_with("| | `")) {
        let cells: Vec<_> = row.split('|').collect();
        group = names(cells[1]).pop().unwrap_or(group);
        named.extend(names(cells[2]).iter().map(|name| format!("{group}/{name}")));
    }
    let only: Vec<_> = there.symmetric_difference(&named).collect();
    assert!(only.is_empty(), "in one of crates/ and ARCHITECTURE.md: {only:?}");
}

/// A target of the Makefile is in the table of CONTRIBUTING.md.
#[test]
fn contributing_names_every_make_target() {
    let (makefile, text) = (read("Makefile"), read("CONTRIBUTING.md"));
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:")).expect("targets");
    let named = |target: &&str| text.contains(&format!("`make {target}`"));
    let missing: Vec<_> = phony.split_whitespace().filter(|target| !named(target)).collect();
    assert!(missing.is_empty(), "CONTRIBUTING.md does not say what these do: {missing:?}");
}

/// The programs of README.md are files, which other tests run.
#[test]
fn the_programs_of_the_readme_are_the_examples() {
    let readme = read("README.md");
    for path in ["examples/c/first.c", "crates/client/ringway/examples/first.rs"] {
        assert!(readme.contains(&format!("\n{}```\n", read(path))), "README.md has another {path}");
    }
}
