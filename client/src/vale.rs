//! Ports and bridges as netmap's requests see them, one request a method.

use ringway_abi::{
    NETMAP_POLLING_MODE_MULTI_CPU, NETMAP_POLLING_MODE_SINGLE_CPU, NR_REG_ALL_NIC, NR_REG_NIC_SW,
    nmreq_register, nmreq_vale_list, nmreq_vale_newif, nmreq_vale_polling,
};
use ringway_proto::{NicMode, Reply, Request};

use crate::{
    control::{Control, unexpected},
    environment::mode_of_environment,
    error::Error,
    own_options::OwnOptions,
};

/// Rings, slots and region of a port. In a request zeros stand for defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortShape {
    /// Slots of each transmit ring.
    pub tx_slots: u32,
    /// Slots of each receive ring.
    pub rx_slots: u32,
    pub tx_rings: u16,
    pub rx_rings: u16,
    /// Id of the region.
    pub mem_id: u16,
}

/// Where a port is among the bridges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValePlace {
    /// The whole name, `vale<switch>:<port>`.
    pub name: String,
    /// Index of the bridge.
    pub bridge: u16,
    /// Index of the port within the bridge; 255 if there is no such port.
    pub port: u32,
}

/// Which CPUs look at an attached interface all the time (S-VALE-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// One CPU serves all rings. `count` must be 1.
    OneCpu { cpu: u32, count: u32 },
    /// CPUs `first` and following serve the rings with the same numbers.
    Cpus { first: u32, count: u32 },
    /// Nothing was said: enabling with this is refused, disabling works.
    Unset,
}

impl From<Polling> for nmreq_vale_polling {
    fn from(polling: Polling) -> Self {
        let (nr_mode, nr_first_cpu_id, nr_num_polling_cpus) = match polling {
            Polling::OneCpu { cpu, count } => (NETMAP_POLLING_MODE_SINGLE_CPU, cpu, count),
            Polling::Cpus { first, count } => (NETMAP_POLLING_MODE_MULTI_CPU, first, count),
            Polling::Unset => (0, 0, 0),
        };
        nmreq_vale_polling { nr_mode, nr_first_cpu_id, nr_num_polling_cpus, pad1: 0 }
    }
}

impl Control {
    /// Attaches an interface or a persistent port to a bridge as `name`, `vale<switch>:<port>`,
    /// with or without the host stack. Returns its index (S-VALE-16).
    ///
    /// An interface is taken in the best mode that it can have; in another if the name goes on with
    /// `@mode=MODE`, or the [environment](crate::mode_of_environment) says so.
    pub fn vale_attach(&self, name: &str, host: bool, config: PortShape) -> Result<u32, Error> {
        let reg = nmreq_register {
            nr_mode: if host { NR_REG_NIC_SW } else { NR_REG_ALL_NIC },
            nr_tx_slots: config.tx_slots,
            nr_rx_slots: config.rx_slots,
            nr_tx_rings: config.tx_rings,
            nr_rx_rings: config.rx_rings,
            nr_mem_id: config.mem_id,
            ..Default::default()
        };
        let (name, mode) = interface_and_mode(name)?;
        match self.call(Request::ValeAttach { name, reg, mode })? {
            Reply::Index(index) => Ok(index),
            _ => Err(unexpected()),
        }
    }

    /// Takes `name` off its bridge. Returns the index that it had (S-VALE-17).
    pub fn vale_detach(&self, name: &str) -> Result<u32, Error> {
        match self.call(Request::ValeDetach { name: name.into() })? {
            Reply::Index(index) => Ok(index),
            _ => Err(unexpected()),
        }
    }

    /// Where `name` is; ENOENT if there is no such bridge (S-VALE-18).
    pub fn vale_find(&self, name: &str) -> Result<ValePlace, Error> {
        self.vale_list(name, 0, 0)
    }

    /// All ports of all bridges, in the order of their indices.
    pub fn vale_ports(&self) -> Result<Vec<ValePlace>, Error> {
        let mut found: Vec<ValePlace> = Vec::new();
        loop {
            let (bridge, port) = found.last().map_or((0, 0), |last| (last.bridge, last.port + 1));
            match self.vale_list("", bridge, port) {
                Ok(place) => found.push(place),
                Err(error) if error.errno() == libc::ENOENT => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    }

    fn vale_list(&self, name: &str, bridge: u16, port: u32) -> Result<ValePlace, Error> {
        let from = nmreq_vale_list { nr_bridge_idx: bridge, pad1: 0, nr_port_idx: port };
        match self.call(Request::ValeList { name: name.into(), from })? {
            Reply::ValeList { name, at } => {
                Ok(ValePlace { name, bridge: at.nr_bridge_idx, port: at.nr_port_idx })
            }
            _ => Err(unexpected()),
        }
    }

    /// Makes a persistent port: a port, and a network device of that name in this thread's network
    /// namespace with the host's stack behind it. It stays until it is deleted, or the daemon ends.
    /// Returns what it has become (S-VALE-12).
    pub fn interface_new(&self, name: &str, config: PortShape) -> Result<PortShape, Error> {
        let conf = nmreq_vale_newif {
            nr_tx_slots: config.tx_slots,
            nr_rx_slots: config.rx_slots,
            nr_tx_rings: config.tx_rings,
            nr_rx_rings: config.rx_rings,
            nr_mem_id: config.mem_id,
            pad1: 0,
        };
        match self.call(Request::ValeNewif { name: name.into(), conf })? {
            Reply::Newif(made) => Ok(PortShape {
                tx_slots: made.nr_tx_slots,
                rx_slots: made.nr_rx_slots,
                tx_rings: made.nr_tx_rings,
                rx_rings: made.nr_rx_rings,
                mem_id: made.nr_mem_id,
            }),
            _ => Err(unexpected()),
        }
    }

    /// Deletes a persistent port that nobody has open, and its network device (S-VALE-15).
    pub fn interface_delete(&self, name: &str) -> Result<(), Error> {
        self.call(Request::ValeDelif { name: name.into() }).map(drop)
    }

    /// Has CPUs poll an attached interface, or ends it (S-VALE-19).
    pub fn vale_poll(&self, name: &str, enable: bool, polling: Polling) -> Result<(), Error> {
        let conf = polling.into();
        self.call(Request::ValePolling { name: name.into(), enable, conf }).map(drop)
    }

    /// Rings and slots of a port, and the bytes of its region. A virtual port need not exist;
    /// an empty name asks for the global region (S-MEM-11).
    ///
    /// ```
    /// # use ringway::{Control, Registry, Settings};
    /// # use std::sync::{Arc, Mutex};
    /// # let registry = Arc::new(Mutex::new(Registry::new(Settings::default())));
    /// # let control = Control::local(&registry);
    /// let (config, bytes) = control.port_config("vale0:a")?;
    /// assert_eq!((config.tx_rings, config.tx_slots), (1, 1024));
    /// assert!(bytes > 0);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn port_config(&self, name: &str) -> Result<(PortShape, u64), Error> {
        match self.call(Request::PortInfo { name: name.into(), mem_id: 0 })? {
            Reply::PortInfo(info) => Ok((
                PortShape {
                    tx_slots: info.nr_tx_slots,
                    rx_slots: info.nr_rx_slots,
                    tx_rings: info.nr_tx_rings,
                    rx_rings: info.nr_rx_rings,
                    mem_id: info.nr_mem_id,
                },
                info.nr_memsize,
            )),
            _ => Err(unexpected()),
        }
    }

    /// Bytes of the virtio-net header that begins every packet of a port: 0, 10 or 12
    /// (S-VHDR-1).
    pub fn header_len(&self, name: &str) -> Result<u32, Error> {
        match self.call(Request::PortHdrGet { name: name.into() })? {
            Reply::PortHdr(len) => Ok(len),
            _ => Err(unexpected()),
        }
    }

    /// Sets that length for a VALE port.
    pub fn set_header_len(&self, name: &str, len: u32) -> Result<(), Error> {
        self.call(Request::PortHdrSet { name: name.into(), len }).map(drop)
    }
}

/// Splits what is to be attached into its name on the bridge and the mode asked for, by the name or else
/// by the environment.
fn interface_and_mode(name: &str) -> Result<(String, Option<NicMode>), Error> {
    let (plain, list) = OwnOptions::split(name);
    let own = OwnOptions::parse(list)?;
    let mode = own.mode;
    if own != (OwnOptions { mode, ..OwnOptions::default() }) {
        let problem = "on a bridge an interface has no options but @mode; leave the others out";
        return Err(Error::Name { name: name.into(), problem: problem.into() });
    }
    Ok((plain.into(), if mode.is_some() { mode } else { mode_of_environment()? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_attached_has_a_mode_and_no_other_options() {
        let attached = interface_and_mode("vale0:eth0@mode=packet").unwrap();
        assert_eq!(attached, ("vale0:eth0".into(), Some(NicMode::Packet)));
        for bad in ["vale0:e@mode=x", "vale0:e@buffers=4096", "vale0:e@mode=copy@filter=udp"] {
            assert_eq!(interface_and_mode(bad).unwrap_err().errno(), libc::EINVAL, "{bad}");
        }
    }
}
