//! Ports of a switch of the daemon: the ends of veth pairs that are attached to it.

use ringway::{BridgePortInfo, Cause, Control, PortSettings, SourceAddresses, Vlan};
use rustix::io::Errno;

use crate::{
    error::{Error, Kind},
    mac::Mac,
    names,
};

/// How a network is on its switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The switch's name, `vale0`.
    pub switch: String,
    /// Its containers, and its gateway, are in this VLAN, and know nothing of tags.
    pub vlan: Option<u16>,
}

impl Place {
    /// The place that a configuration describes; without a `switch`, the network has one of its own.
    pub fn new(network: &str, switch: Option<&str>, vlan: Option<u16>) -> Result<Place, Error> {
        let switch = switch.map_or_else(|| names::switch(network), str::to_owned);
        if !names::is_switch(&switch) {
            let problem = format!("switch: {switch:?} is no name of a switch");
            let remedy = "it is vale and up to 11 letters, digits and _, as vale0";
            return Err(Error::new(Kind::Config, problem, remedy));
        }
        if vlan.is_some_and(|vlan| !(1..=4094).contains(&vlan)) {
            let problem = format!("vlan: {} is no VLAN", vlan.unwrap_or_default());
            return Err(Error::new(Kind::Config, problem, "VLANs are 1 to 4094"));
        }
        Ok(Place { switch, vlan })
    }

    fn vlan(&self) -> Vlan {
        self.vlan.map_or(Vlan::Unaware, Vlan::Access)
    }
}

/// A connection to the system daemon. A private one, which ends with the programs that use it, is no place for
/// containers, also while the system daemon is away.
pub struct Daemon(Control);

impl Daemon {
    /// # Errors
    /// [`Kind::TryAgain`] if it cannot be reached.
    pub fn connect() -> Result<Daemon, Error> {
        let refused = |error: ringway::Error| match error.cause() {
            Cause::Version | Cause::Untrusted => Error::from(error),
            Cause::System(errno) if Errno::from_raw_os_error(errno) == Errno::ACCESS => {
                error.into()
            }
            _ => Error::unreachable(&error),
        };
        Control::connect_system().map(Daemon).map_err(refused)
    }

    /// Attaches an interface of this namespace, which is down: nothing passes before its settings are made.
    ///
    /// # Errors
    /// The interface is on no switch then.
    pub fn attach(&self, place: &Place, port: &str, sources: Option<Mac>) -> Result<(), Error> {
        self.0.switch_attach(&place.switch, port, false)?;
        let sources = sources.map(|mac| SourceAddresses::Only(vec![mac.0]));
        let settings =
            PortSettings { vlan: Some(place.vlan()), sources, ..PortSettings::default() };
        let full = format!("{}:{port}", place.switch);
        self.0.switch_port(&full, settings).inspect_err(|_| {
            let _ = self.0.switch_detach(&place.switch, port);
        })?;
        Ok(())
    }

    /// The port of that name: its switch, and what the daemon says of it.
    pub fn find(&self, port: &str) -> Result<Option<(String, BridgePortInfo)>, Error> {
        let ports = self.ports()?;
        Ok(ports.into_iter().find(|(_, info)| half(&info.name) == port))
    }

    /// All ports of all switches.
    pub fn ports(&self) -> Result<Vec<(String, BridgePortInfo)>, Error> {
        let switches = self.0.switches()?.into_iter();
        let ports = |switch: ringway::BridgeInfo| {
            let name = switch.name;
            switch.ports.into_iter().map(move |port| (name.clone(), port))
        };
        Ok(switches.flat_map(ports).collect())
    }

    /// Takes the port of that name off its switch, if it is on one, and also if its interface has gone and is
    /// waited for.
    pub fn detach(&self, port: &str) -> Result<(), Error> {
        let Some((switch, _)) = self.find(port)? else { return Ok(()) };
        match self.0.switch_detach(&switch, port) {
            // Something else has been quicker.
            Err(e) if matches!(e.cause(), Cause::NotFound | Cause::NoPort) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Whether a port is as `attach` has left it.
    pub fn check(&self, place: &Place, port: &str, sources: Option<Mac>) -> Result<(), Error> {
        let differs = |problem: String| Err(Error::new(Kind::Differs, problem, ""));
        let Some((switch, info)) = self.find(port)? else {
            return differs(format!("{port} is on no switch"));
        };
        if switch != place.switch {
            return differs(format!("{port} is on {switch}, not on {}", place.switch));
        }
        if info.absent {
            return differs(format!("{port} is {}", info.mode.unwrap_or_default()));
        }
        if info.vlan != place.vlan() {
            return differs(format!("{port} has the VLAN {:?}, not {:?}", info.vlan, place.vlan()));
        }
        let wanted = sources.map_or(SourceAddresses::Any, |mac| SourceAddresses::Only(vec![mac.0]));
        if info.sources != wanted {
            return differs(format!("{port} may send from {:?}, not {wanted:?}", info.sources));
        }
        if let Some(other) = info.loops_with {
            return differs(format!("{port} is blocked: it makes a loop with {other}"));
        }
        Ok(())
    }
}

/// The port's own name, without the switch.
pub fn half(full: &str) -> &str {
    full.split_once(':').map_or(full, |(_, port)| port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_a_switch_of_its_own_unless_it_says_which() {
        assert_eq!(Place::new("red", None, None).unwrap().switch, "valered");
        assert_eq!(Place::new("red", Some("vale7"), Some(5)).unwrap().vlan, Some(5));
        for (switch, vlan) in
            [("br0", None), ("vale-0", None), ("vale0", Some(0)), ("vale0", Some(4095))]
        {
            let error = Place::new("red", Some(switch), vlan).unwrap_err();
            assert_eq!(error.kind, Kind::Config);
            assert!(!error.remedy.is_empty());
        }
    }
}
