//! The host rings of a persistent port: a switch of two ports, the rings and the stack behind the device.

use std::sync::{Arc, atomic::AtomicBool};

use ringway_abi::Dir;
use ringway_kring::Doorbell;
use ringway_nic_setup::PortAttachment;
use ringway_proto::{Error, Result};
use ringway_switch_port::PortIndex;
use ringway_vale::{Bridge, Draining, Forwarding, PortConfig, Remainder};
use ringway_xdp::NicPort;

use crate::{kinds::vale::bridge_side, port::Port, transaction::Failed};

/// The host rings of a persistent port at work: a bridge of two ports, the rings and the stack.
pub(crate) struct HostSwitch {
    /// What the worker sleeps on.
    pub(super) worker: Arc<Doorbell>,
    pub(super) bridge: Bridge,
    /// Index of the rings on it.
    pub(super) rings: PortIndex,
}

/// The stack behind the device.
pub(super) type StackPort = NicPort<PortAttachment>;

impl HostSwitch {
    /// Its worker rings `lost` when it has lost one of the two. What an error leaves may have the rings.
    pub(super) fn start(
        port: &Port,
        stack: StackPort,
        lost: Option<Arc<Doorbell>>,
    ) -> Result<HostSwitch, Failed> {
        let failed = |e| Error::io(&format!("{}: its host rings cannot be served", port.name), e);
        let started = Doorbell::new().and_then(|worker| Ok((worker, Bridge::start("host rings")?)));
        let (worker, bridge) = match started {
            Ok((worker, bridge)) => (Arc::new(worker), bridge),
            Err(error) => return Err(Failed::new(failed(error), stack)),
        };
        let (tx, rx) = (port.host_rings(Dir::Tx), port.host_rings(Dir::Rx));
        // There is no point in host rings that nobody has: they are freed.
        let receives = Arc::new(AtomicBool::new(true));
        let rings = bridge_side(tx, rx, worker.clone(), receives);
        lost.into_iter().for_each(|doorbell| bridge.report_to(doorbell));
        // A wire learns nothing: what goes in at the one end comes out at the other.
        bridge.set_forwarding(&Forwarding::Flood);
        let attach = |end| bridge.attach(end, PortConfig::default(), Arc::default());
        let full = || Error::no_memory(format!("{}: too many open descriptors", port.name));
        let Some(rings) = attach(Box::new(rings)) else {
            return Err(Failed::new(full(), (bridge, stack)));
        };
        match attach(Box::new(stack)) {
            Some(_) => Ok(HostSwitch { worker, bridge, rings }),
            None => Err(Failed::new(full(), bridge)),
        }
    }
}

impl HostSwitch {
    /// When this returns, its worker does not touch the rings any more.
    pub(super) fn let_go_of_rings(&self) {
        let leaving = self.bridge.leave(self.rings, None, Remainder::Drop, None);
        leaving.iter().for_each(Draining::wait);
    }
}
