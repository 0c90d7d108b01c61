//! What a command changes of a switch that the daemon's configuration declares: the daemon sets it back when it
//! reads the configuration next.

use crate::output::note;
use ringway::{BridgeInfo, BridgePortInfo, Control, Declared};

/// A switch before a command, or after it.
pub struct State(Option<BridgeInfo>);

impl State {
    pub fn of(control: &Control, switch: &str) -> State {
        let switches = control.switches().unwrap_or_default();
        State(switches.into_iter().find(|it| it.name == switch))
    }

    /// The switch that was so is deleted. Returns the place that declares it, as all of these do.
    pub fn deleted(&self) -> Option<String> {
        let switch = self.0.as_ref()?;
        self.tell(&switch.name, None, "is declared", "makes it again", "delete it")
    }

    /// Interfaces have left the switch that was so. Returns the place of the declared port, or of the switch if
    /// several are declared.
    pub fn detached(&self, interfaces: &[String]) -> Option<String> {
        let declared = interfaces.iter().filter_map(|interface| {
            let is_it = |port: &&BridgePortInfo| {
                port.name.split_once(':').is_some_and(|(_, name)| name == interface)
            };
            let ports = &self.0.as_ref()?.ports;
            let port = ports.iter().find(is_it).filter(|port| port.declared != Declared::No)?;
            self.tell(&port.name, Some(port), "is declared", "attaches it again", "delete it")
        });
        // Each is told of.
        let mut places = declared.collect::<Vec<_>>();
        if places.len() > 1 { self.0.as_ref()?.declared_at.clone() } else { places.pop() }
    }

    /// The switch is so now that it has changed.
    pub fn switch_changed(&self) -> Option<String> {
        let switch = self.0.as_ref().filter(|switch| switch.declared == Declared::Changed)?;
        self.changed(&switch.name, None)
    }

    /// It is so now that one of its ports has changed.
    pub fn port_changed(&self, name: &str) -> Option<String> {
        let mut ports = self.0.as_ref()?.ports.iter();
        let port = ports.find(|port| port.name == name && port.declared == Declared::Changed)?;
        self.changed(name, Some(port))
    }

    fn changed(&self, name: &str, port: Option<&BridgePortInfo>) -> Option<String> {
        self.tell(name, port, "is otherwise than declared", "sets it back", "change it")
    }

    fn tell(
        &self,
        name: &str,
        port: Option<&BridgePortInfo>,
        is: &str,
        sets_back: &str,
        remedy: &str,
    ) -> Option<String> {
        // A daemon older than version 7 tells the switch's alone.
        let of_port = port.and_then(|port| port.declared_at.as_ref());
        let place = of_port.or(self.0.as_ref()?.declared_at.as_ref())?.clone();
        note(format_args!(
            "{name} {is} ({place}): the daemon {sets_back} when it reads its configuration next; {remedy} \
             there, too"
        ));
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A port has its own line, unless the daemon does not tell it; several have that of their switch.
    #[test]
    fn each_is_told_with_its_own_line() {
        let totals = serde_json::to_value(ringway::PortTotals::default()).unwrap();
        let port = |name: &str, declared: &str, line: Option<&str>| {
            json!({
                "name": format!("vale0:{name}"), "index": 0, "totals": totals, "vlan": "unaware", "sources": "any",
                "group_forward": 0, "isolated": false, "swap_buffers": false, "absent": false, "uid": 0,
                "declared": declared, "declared_at": line,
            })
        };
        let ports = [
            port("a", "yes", Some("f: line 7")),
            port("b", "changed", Some("f: line 9")),
            port("old", "changed", None),
            port("free", "no", None),
        ];
        let switch = json!({
            "name": "vale0", "forwarding": {"learning": {"ageing_seconds": 300}}, "multicast": "flood", "ports": ports,
            "declared": "changed", "declared_at": "f: line 3", "one_address": false,
            "rounds": {"counts": [], "micros": 0},
        });
        let state = State(Some(serde_json::from_value(switch).unwrap()));
        for (names, place) in [
            (&["a"][..], Some("f: line 7")),
            (&["b"], Some("f: line 9")),
            (&["a", "free"], Some("f: line 7")),
            (&["a", "b"], Some("f: line 3")),
            (&["old"], Some("f: line 3")),
            (&["free"], None),
        ] {
            let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
            assert_eq!(state.detached(&names).as_deref(), place, "{names:?}");
        }
        for (name, place) in [("b", Some("f: line 9")), ("old", Some("f: line 3")), ("a", None)] {
            let changed = state.port_changed(&format!("vale0:{name}"));
            assert_eq!(changed.as_deref(), place, "{name}");
        }
        assert_eq!(state.switch_changed().as_deref(), Some("f: line 3"));
        assert_eq!(state.deleted().as_deref(), Some("f: line 3"));
    }
}
