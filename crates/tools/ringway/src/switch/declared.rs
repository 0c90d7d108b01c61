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
        self.tell(&switch.name, "is declared", "makes it again", "delete it")
    }

    /// Interfaces have left the switch that was so.
    pub fn detached(&self, interfaces: &[String]) -> Option<String> {
        let declared = interfaces.iter().filter_map(|interface| {
            let is_it = |port: &&BridgePortInfo| {
                port.name.split_once(':').is_some_and(|(_, name)| name == interface)
            };
            let ports = &self.0.as_ref()?.ports;
            let port = ports.iter().find(is_it).filter(|port| port.declared != Declared::No)?;
            self.tell(&port.name, "is declared", "attaches it again", "delete it")
        });
        // Each is told of; all have one place.
        declared.collect::<Vec<_>>().pop()
    }

    /// The switch is so now that it has changed.
    pub fn switch_changed(&self) -> Option<String> {
        let switch = self.0.as_ref().filter(|switch| switch.declared == Declared::Changed)?;
        self.changed(&switch.name)
    }

    /// It is so now that one of its ports has changed.
    pub fn port_changed(&self, name: &str) -> Option<String> {
        let mut ports = self.0.as_ref()?.ports.iter();
        ports.find(|port| port.name == name && port.declared == Declared::Changed)?;
        self.changed(name)
    }

    fn changed(&self, name: &str) -> Option<String> {
        self.tell(name, "is otherwise than declared", "sets it back", "change it")
    }

    fn tell(&self, name: &str, is: &str, sets_back: &str, remedy: &str) -> Option<String> {
        let place = self.0.as_ref()?.declared_at.clone()?;
        note(format_args!(
            "{name} {is} ({place}): the daemon {sets_back} when it reads its configuration next; {remedy} \
             there, too"
        ));
        Some(place)
    }
}
