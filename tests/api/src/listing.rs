//! The public API as lines of text, the same for the same API.

use std::collections::{BTreeMap, BTreeSet};

use crate::rustdoc::read;

const CRATE: &str = "ringway";

/// Traits whose implementation is no promise: the compiler's own business.
const OF_THE_COMPILER: [&str; 5] =
    ["Freeze", "StructuralPartialEq", "Unpin", "UnsafeUnpin", "UnwindSafe"];

/// Methods of traits that are known by the trait.
const OF_KNOWN_TRAITS: [&str; 10] = [
    "clone",
    "cmp",
    "default",
    "deserialize",
    "eq",
    "fmt",
    "from",
    "hash",
    "partial_cmp",
    "serialize",
];

/// Every item of the crate, and of what it hands on, under the name that its users know.
pub fn listing() -> Result<BTreeSet<String>, String> {
    let own = read(CRATE, true)?;
    let mut others = BTreeMap::new();
    let mut places = Vec::new();
    for [name, from, there] in own.handed_on {
        if !others.contains_key(&from) {
            others.insert(from.clone(), read(&from.replace('_', "-"), false)?);
        }
        places.push((name, (from, there)));
    }
    let mut lines: BTreeSet<String> =
        own.lines.iter().filter(|line| !line.starts_with("pub use ")).cloned().collect();
    for (_, (from, there)) in &places {
        let of_it = others[from].lines.iter().filter(|line| is_of(line, from, there));
        lines.extend(of_it.cloned());
    }
    let lines = lines.iter().filter(|line| is_promised(line));
    Ok(lines.map(|line| renamed(line, &places)).collect())
}

/// What a line is about: the path of an item, or the type of an implementation.
fn subject(line: &str) -> &str {
    if line.starts_with("impl") {
        let target = line.rsplit_once(" for ").map_or(line, |(_, target)| target);
        return target
            .rsplit_once("> ")
            .map_or(target, |(_, target)| target)
            .trim_start_matches("impl ");
    }
    let end = line.find(['(', ':', '=', '{']).unwrap_or(line.len());
    let begin = line[..end].rfind(' ').map_or(0, |space| space + 1);
    &line[begin..]
}

/// Whether a line is about an item, or a part of it. Modules, with small letters, are left out of paths.
fn is_of(line: &str, from: &str, name: &str) -> bool {
    let Some(mut path) = subject(line).strip_prefix(from).and_then(|path| path.strip_prefix("::"))
    else {
        return false;
    };
    loop {
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
        if &path[..end] == name {
            return true;
        }
        match path[end..].strip_prefix("::") {
            Some(rest) if path.starts_with(|c: char| c.is_lowercase()) => path = rest,
            _ => return false,
        }
    }
}

fn is_promised(line: &str) -> bool {
    let of_compiler =
        line.starts_with("impl") && OF_THE_COMPILER.iter().any(|name| line.contains(name));
    let method = line.split('(').next().and_then(|front| front.rsplit("::").next()).unwrap_or("");
    let of_trait = line.contains(" fn ") && OF_KNOWN_TRAITS.contains(&method);
    !of_compiler && !of_trait
}

/// The line with the names that users know.
fn renamed(line: &str, places: &[(String, (String, String))]) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(begin) = rest.find(|c: char| c.is_alphanumeric() || c == '_') {
        text.push_str(&rest[..begin]);
        rest = &rest[begin..];
        let end = path_end(rest);
        let path = &rest[..end];
        let parts: Vec<&str> = path.split("::").collect();
        let known = places.iter().find_map(|(name, (from, there))| {
            let at = parts.iter().position(|part| part == there)?;
            let modules = parts[1..at].iter().all(|part| part.starts_with(char::is_lowercase));
            (parts[0] == from && at > 0 && modules).then(|| (name, &parts[at + 1..]))
        });
        match known {
            Some((name, behind)) => {
                text.push_str(&[&[CRATE, name], behind].concat().join("::"));
            }
            None => text.push_str(path),
        }
        rest = &rest[end..];
    }
    text + rest
}

/// Where a path ends that the text begins with.
fn path_end(text: &str) -> usize {
    let mut end = 0;
    loop {
        let word = &text[end..];
        end += word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
        let behind = text[end..].strip_prefix("::");
        match behind {
            Some(next) if next.starts_with(|c: char| c.is_alphanumeric() || c == '_') => end += 2,
            _ => return end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_about_an_item() {
        for (line, subject_is) in [
            ("pub fn ringway_kring::Armed<'_, W>::sources(&self) -> x::Y", "ringway_kring::Armed"),
            (
                "pub ringway_proto::PortInfo::name: alloc::string::String",
                "ringway_proto::PortInfo::name",
            ),
            ("impl core::clone::Clone for ringway_proto::Vlan", "ringway_proto::Vlan"),
            ("impl<W: a::B> ringway_kring::Armed<'_, W>", "ringway_kring::Armed"),
            ("pub const ringway_abi::NS_REPORT: u16", "ringway_abi::NS_REPORT"),
        ] {
            assert!(subject(line).starts_with(subject_is), "{line}: {}", subject(line));
        }
        assert!(is_of("pub enum ringway_proto::Level", "ringway_proto", "Level"));
        assert!(is_of("pub ringway_proto::event::Level::Warn", "ringway_proto", "Level"));
        assert!(!is_of("pub ringway_proto::EventKind::Level", "ringway_proto", "Level"));
        assert!(!is_of("pub enum ringway_proto::LevelInfo", "ringway_proto", "Level"));
    }

    #[test]
    fn names_are_those_of_users() {
        let places = [("Slot".to_owned(), ("ringway_abi".to_owned(), "netmap_slot".to_owned()))];
        let line = "pub fn ringway::Slots::get(&self, u32) -> ringway_abi::ring::netmap_slot";
        assert_eq!(
            renamed(line, &places),
            "pub fn ringway::Slots::get(&self, u32) -> ringway::Slot"
        );
        let line = "pub ringway_abi::netmap_slot::len: u16";
        assert_eq!(renamed(line, &places), "pub ringway::Slot::len: u16");
    }
}
