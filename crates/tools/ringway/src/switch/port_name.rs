//! What a port of a switch is called.

use crate::error::{Error, Result};
use ringway::Control;

/// Says how a port is named where that is the name of a switch, or of an interface.
///
/// # Errors
/// It is none of a port of a switch.
pub fn check_name(control: &Control, name: &str) -> Result<()> {
    if name.contains(':') {
        return Ok(());
    }
    let switches = control.switches()?;
    let mut ports = switches.iter().flat_map(|switch| &switch.ports).map(|port| &port.name);
    let is_end = |port: &&String| port.split_once(':').is_some_and(|(_, end)| end == name);
    let text = match switches.iter().find(|switch| switch.name == name) {
        Some(switch) => {
            let example = switch.ports.first().map_or(format!("{name}:PORT"), |it| it.name.clone());
            format!("{name} is a switch; name one of its ports, as {example}")
        }
        None => {
            let example = ports.find(is_end).map_or(format!("vale0:{name}"), String::clone);
            format!("{name}: not the name of a port of a switch; write {example}")
        }
    };
    Err(Error::Value(text))
}
