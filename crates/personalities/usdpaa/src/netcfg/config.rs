//! The configuration: `cfgdata > config > engine > port`.

use roxmltree::Node;
use rustix::io::Errno;

use super::{Problem, attribute, elements, number, other_root};
use crate::ports::{MacType, Place};

/// An interface, and the name of its policy.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub place: Place,
    pub policy: String,
}

/// The ports of all engines, in the file's order.
pub fn parse(root: Node<'_, '_>) -> Result<Vec<Entry>, Problem> {
    if !root.has_tag_name("cfgdata") {
        return Err(other_root(root, "configuration", "cfgdata"));
    }
    let mut entries = Vec::new();
    for config in elements(root, "config") {
        for engine in elements(config, "engine") {
            let fman = engine_number(attribute(engine, "name")?)?;
            for port in elements(engine, "port") {
                let mac_type = match attribute(port, "type")? {
                    "10G" => MacType::TenGigabit,
                    "OFFLINE" => MacType::Offline,
                    _ => MacType::OneGigabit,
                };
                let number = number(port, "number")?;
                let number = u8::try_from(number).map_err(|_| {
                    Problem::new(Errno::INVAL, format!("there is no port with the number {number}"))
                })?;
                let place = Place { fman, mac_type, number };
                entries.push(Entry { place, policy: attribute(port, "policy")?.into() });
            }
        }
    }
    Ok(entries)
}

fn engine_number(name: &str) -> Result<u8, Problem> {
    let digit = name.strip_prefix("fm").filter(|digits| digits.len() == 1);
    digit.and_then(|digit| digit.parse().ok()).ok_or_else(|| {
        Problem::new(Errno::INVAL, format!("{name:?} is no engine: they are fm0, fm1, …"))
    })
}
