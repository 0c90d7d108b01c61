//! Asking the daemon about ports and bridges, and changing those that stay.

use std::sync::{Arc, Mutex};

use ringway_abi::{NR_REG_ALL_NIC, NR_REG_NIC_SW, nmreq_register, nmreq_vale_newif};
use ringway_registry::{BridgeInfo, PortInfo, RegionInfo, Registry, Reply, Request};

use crate::{error::Error, session::Session};

/// A connection for control. It keeps a private daemon running while it lives.
#[derive(Debug)]
pub struct Control {
    session: Session,
}

impl Control {
    /// Connects to the daemon; a private one is started if there is none.
    pub fn connect() -> Result<Control, Error> {
        Ok(Control { session: Session::connect()? })
    }

    /// Talks to a registry of this process.
    pub fn local(registry: &Arc<Mutex<Registry>>) -> Control {
        Control { session: Session::local(registry) }
    }

    fn call(&self, request: Request) -> Result<Reply, Error> {
        self.session.call(request).map(|(reply, _)| reply)
    }

    /// All ports.
    pub fn ports(&self) -> Result<Vec<PortInfo>, Error> {
        match self.call(Request::Ports)? {
            Reply::Ports(ports) => Ok(ports),
            _ => Err(unexpected()),
        }
    }

    /// All regions.
    pub fn regions(&self) -> Result<Vec<RegionInfo>, Error> {
        match self.call(Request::Regions)? {
            Reply::Regions(regions) => Ok(regions),
            _ => Err(unexpected()),
        }
    }

    /// All bridges with their ports and counters.
    pub fn switches(&self) -> Result<Vec<BridgeInfo>, Error> {
        match self.call(Request::Switches)? {
            Reply::Switches(bridges) => Ok(bridges),
            _ => Err(unexpected()),
        }
    }

    /// Makes a bridge that stays although it has no ports.
    pub fn switch_new(&self, bridge: &str) -> Result<(), Error> {
        self.call(Request::SwitchNew { bridge: bridge.into() }).map(drop)
    }

    /// Takes all NICs off a bridge, and lets it go with its last port.
    pub fn switch_delete(&self, bridge: &str) -> Result<(), Error> {
        self.call(Request::SwitchDelete { bridge: bridge.into() }).map(drop)
    }

    /// Makes a persistent port: a port, and a network device of that name in this thread's network
    /// namespace with the host's stack behind it. It stays until it is deleted, or the daemon ends.
    pub fn newif(&self, name: &str) -> Result<(), Error> {
        let conf = nmreq_vale_newif::default();
        self.call(Request::ValeNewif { name: name.into(), conf }).map(drop)
    }

    /// Deletes a persistent port that nobody has open, and its network device.
    pub fn delif(&self, name: &str) -> Result<(), Error> {
        self.call(Request::ValeDelif { name: name.into() }).map(drop)
    }

    /// Attaches a network interface or a persistent port to a bridge, with or without the host
    /// stack. Returns its index.
    pub fn switch_attach(&self, bridge: &str, port: &str, host: bool) -> Result<u32, Error> {
        let nr_mode = if host { NR_REG_NIC_SW } else { NR_REG_ALL_NIC };
        let reg = nmreq_register { nr_mode, ..Default::default() };
        let name = format!("{bridge}:{port}");
        match self.call(Request::ValeAttach { name, reg })? {
            Reply::Index(index) => Ok(index),
            _ => Err(unexpected()),
        }
    }

    /// Takes an interface or a persistent port off a bridge.
    pub fn switch_detach(&self, bridge: &str, port: &str) -> Result<(), Error> {
        self.call(Request::ValeDetach { name: format!("{bridge}:{port}") }).map(drop)
    }
}

fn unexpected() -> Error {
    ringway_wire::Error::Version.into()
}
