//! Crates of others are what `deny.toml` allows: where they come from, their licences, and one version of
//! each. `cargo deny check` looks at the same, and at advisories, which takes the network.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn table(file: &str) -> toml::Table {
    let text = fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    text.parse().unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The list of texts at that place of `deny.toml`.
fn allowed(section: &str, key: &str) -> BTreeSet<String> {
    let list = table("deny.toml")[section][key].as_array().cloned().unwrap_or_default();
    let text = |value: &toml::Value| value.as_str().map(str::to_owned);
    list.iter().map(|value| text(value).expect("a text")).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Crates of others that are compiled for Linux, tests and build scripts included.
fn others() -> Vec<Value> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    packages.into_iter().filter(|package| !package["source"].is_null()).collect()
}

/// Both lock files say where each crate is from, and what its contents are.
#[test]
fn crates_come_from_the_registry_that_is_allowed() {
    let registries = allowed("sources", "allow-registry");
    for file in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let lock = table(file);
        let packages = lock["package"].as_array().expect("a list");
        let others: Vec<_> =
            packages.iter().filter(|package| package.get("source").is_some()).collect();
        assert!(!others.is_empty());
        for package in others {
            let source = package["source"].as_str().and_then(|s| s.strip_prefix("registry+"));
            assert!(source.is_some_and(|s| registries.contains(s)), "{file}: {package}");
            assert!(package.get("checksum").is_some(), "{file}: {package}");
        }
        // Ours lie beside each other, not in a folder that somebody else puts there.
        let ours = packages.iter().filter(|package| package.get("source").is_none());
        for name in ours.filter_map(|package| package["name"].as_str()) {
            assert!(name.starts_with("ringway"), "{file}: {name}");
        }
    }
}

#[test]
fn licences_are_allowed() {
    let allow = allowed("licenses", "allow");
    let mut used = BTreeSet::new();
    for package in others() {
        let licence = text(&package["license"]);
        let [name, version] = ["name", "version"].map(|key| text(&package[key]));
        assert!(
            is_allowed(licence, &mut |id| {
                allow.contains(id) && {
                    used.insert(id.to_owned());
                    true
                }
            }),
            "{name} {version}: {licence}"
        );
    }
    let ours = table("Cargo.toml")["workspace"]["package"]["license"].as_str().map(str::to_owned);
    used.extend(ours);
    assert_eq!(used, allow, "licences that no crate has need not be allowed");
}

#[test]
fn crates_are_there_once() {
    let bans = table("deny.toml");
    let skip = bans["bans"]["skip"].as_array().expect("a list").iter();
    let skip: BTreeSet<&str> = skip.filter_map(|entry| entry["crate"].as_str()).collect();
    let others = others();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &others {
        versions.entry(text(&package["name"])).or_default().insert(text(&package["version"]));
    }
    let mut skipped = BTreeSet::new();
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let (left_out, counted): (Vec<_>, Vec<_>) = versions
            .iter()
            .map(|version| format!("{name}@{version}"))
            .partition(|spec| skip.contains(spec.as_str()));
        skipped.extend(left_out);
        assert!(counted.len() <= 1, "{name} is there more than once: {counted:?}");
    }
    let skip: BTreeSet<String> = skip.into_iter().map(str::to_owned).collect();
    assert_eq!(skipped, skip, "what is there once need not be skipped");
}

/// Whether an SPDX expression is met by licences that are `allowed`. AND binds before OR; `/` is OR of
/// old.
fn is_allowed(expression: &str, allowed: &mut dyn FnMut(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let is_met = any_of(&mut words, allowed);
    is_met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &mut dyn FnMut(&str) -> bool) -> bool {
    let mut is_met = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        is_met |= all_of(words, allowed);
    }
    is_met
}

fn all_of(words: &mut Words<'_>, allowed: &mut dyn FnMut(&str) -> bool) -> bool {
    let mut is_met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        is_met &= one(words, allowed);
    }
    is_met
}

fn one(words: &mut Words<'_>, allowed: &mut dyn FnMut(&str) -> bool) -> bool {
    match words.next() {
        Some("(") => any_of(words, allowed) & words.next_if_eq(&")").is_some(),
        Some(id) => match words.next_if_eq(&"WITH") {
            Some(_) => allowed(&format!("{id} WITH {}", words.next().unwrap_or_default())),
            None => allowed(id),
        },
        None => false,
    }
}

#[test]
fn expressions_are_understood() {
    let met = |expression| is_allowed(expression, &mut |id| ["A", "B", "C WITH E"].contains(&id));
    for yes in [
        "A",
        "A OR X",
        "X OR A",
        "X/A",
        "A AND B",
        "(X OR A) AND B",
        "X OR C WITH E",
        "X AND X OR A",
    ] {
        assert!(met(yes), "{yes}");
    }
    for no in ["", "X", "A AND X", "(A OR B) AND X", "C", "A WITH E", "(A", "A B", "A )"] {
        assert!(!met(no), "{no}");
    }
}
