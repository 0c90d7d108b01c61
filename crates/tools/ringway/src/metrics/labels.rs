//! What tells apart the values of a metric.

use super::family::Labels;
use super::scrape::Port;
use std::collections::HashMap;

/// The labels of a port that is open. Interfaces of several network namespaces may have the same name: those
/// have their numbers as well.
pub struct PortLabels<'a> {
    named: HashMap<&'a str, usize>,
}

impl<'a> PortLabels<'a> {
    pub fn new(ports: &'a [Port]) -> PortLabels<'a> {
        let mut named = HashMap::new();
        for port in ports {
            *named.entry(&port.info.name[..]).or_default() += 1;
        }
        PortLabels { named }
    }

    pub fn of(&self, port: &Port) -> Labels {
        let info = &port.info;
        let is_only = self.named.get(&info.name[..]).is_none_or(|count| *count == 1);
        let id = if is_only { String::new() } else { info.id.to_string() };
        vec![("port", info.name.clone()), ("id", id)]
    }
}
