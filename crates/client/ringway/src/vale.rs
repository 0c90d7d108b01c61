//! Ports and bridges as netmap's requests see them, one request a method.

use ringway_ipc::{HeaderLen, Index, SwitchFound};
use ringway_proto::{Cause, NicMode, Polling, PortGeometry, PortShape, Request, SwitchPosition};

use crate::{
    control::Control, environment::mode_of_environment, error::Error, own_options::OwnOptions,
};

/// Where a port is among the bridges.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let _port = Port::open("vale0:a")?;
/// let place = Control::connect()?.vale_find("vale0:a")?;
/// assert_eq!((place.bridge, place.port), (0, 0));
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValePlace {
    /// The whole name, `vale<switch>:<port>`.
    pub name: String,
    /// Index of the bridge.
    pub bridge: u16,
    /// Index of the port within the bridge; 255 if there is no such port.
    pub port: u32,
}

impl Control {
    /// Attaches an interface or a persistent port to a bridge as `name`, `vale<switch>:<port>`,
    /// with or without the host stack. Returns its index (S-VALE-16).
    ///
    /// An interface is taken in the best mode that it can have; in another if the name goes on with
    /// `@mode=MODE`, or the [environment](crate::mode_of_environment) says so.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::{Control, PortShape};
    ///
    /// let control = Control::connect()?;
    /// let index = control.vale_attach("vale0:eth1@mode=copy", false, PortShape::default())?;
    /// assert_eq!(control.vale_detach("vale0:eth1")?, index);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn vale_attach(&self, name: &str, host: bool, shape: PortShape) -> Result<u32, Error> {
        let (name, mode) = interface_and_mode(name)?;
        let mem_id = shape.mem_id;
        let request = Request::SwitchAttach { name, stack: host, all_rings: true, mem_id, mode };
        self.call(request).map(|Index(index)| index)
    }

    /// Takes `name` off its bridge. Returns the index that it had (S-VALE-17).
    pub fn vale_detach(&self, name: &str) -> Result<u32, Error> {
        self.call(Request::SwitchDetach { name: name.into() }).map(|Index(index)| index)
    }

    /// Where `name` is; ENOENT if there is no such bridge (S-VALE-18).
    pub fn vale_find(&self, name: &str) -> Result<ValePlace, Error> {
        self.vale_list(name, 0, 0)
    }

    /// All ports of all bridges, in the order of their indices.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let _port = Port::open("vale0:a")?;
    /// let control = Control::connect()?;
    /// assert_eq!(control.vale_ports()?, [control.vale_find("vale0:a")?]);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn vale_ports(&self) -> Result<Vec<ValePlace>, Error> {
        let mut found: Vec<ValePlace> = Vec::new();
        loop {
            let (bridge, port) = found.last().map_or((0, 0), |last| (last.bridge, last.port + 1));
            match self.vale_list("", bridge, port) {
                Ok(place) => found.push(place),
                Err(error) if error.cause() == Cause::NotFound => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    }

    fn vale_list(&self, name: &str, bridge: u16, port: u32) -> Result<ValePlace, Error> {
        let from = SwitchPosition { switch: bridge, port };
        let request = Request::SwitchFind { name: name.into(), from };
        let SwitchFound { name, at } = self.call(request)?;
        Ok(ValePlace { name, bridge: at.switch, port: at.port })
    }

    /// Makes a persistent port: a port, and a network device of that name in this thread's network
    /// namespace with the host's stack behind it. It stays until it is deleted, or the daemon ends.
    /// Returns what it has become (S-VALE-12).
    ///
    /// ```no_run
    /// // Needs the right to make network devices.
    /// use ringway::{Control, PortShape};
    ///
    /// let control = Control::connect()?;
    /// let shape = control.interface_new("tap7", PortShape { tx_rings: 2, ..PortShape::default() })?;
    /// println!("{} slots", shape.tx_slots);
    /// control.interface_delete("tap7")?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn interface_new(&self, name: &str, shape: PortShape) -> Result<PortShape, Error> {
        self.call(Request::NewInterface { name: name.into(), shape })
    }

    /// Deletes a persistent port that no program has open, and its network device (S-VALE-15).
    pub fn interface_delete(&self, name: &str) -> Result<(), Error> {
        self.call(Request::DeleteInterface { name: name.into() })
    }

    /// Has CPUs poll an attached interface, or ends it (S-VALE-19).
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::{Control, Polling};
    ///
    /// let polling = Polling::Cpus { first: 2, count: 2 };
    /// Control::connect()?.vale_poll("vale0:eth1", true, polling)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn vale_poll(&self, name: &str, enable: bool, polling: Polling) -> Result<(), Error> {
        self.call(Request::SwitchPoll { name: name.into(), enable, polling })
    }

    /// Rings and slots of a port, and the bytes of its region. A virtual port need not exist;
    /// an empty name asks for the global region (S-MEM-11).
    ///
    /// ```
    /// # use ringway_doc as Control;
    /// let control = Control::connect()?;
    /// let (config, bytes) = control.port_config("vale0:a")?;
    /// assert_eq!((config.tx_rings, config.tx_slots), (1, 1024));
    /// assert!(bytes > 0);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn port_config(&self, name: &str) -> Result<(PortShape, u64), Error> {
        let info: PortGeometry =
            self.call(Request::PortGeometry { name: name.into(), mem_id: 0 })?;
        let shape = PortShape {
            tx_slots: info.tx_slots,
            rx_slots: info.rx_slots,
            tx_rings: info.tx_rings,
            rx_rings: info.rx_rings,
            mem_id: info.mem_id,
        };
        Ok((shape, info.memsize))
    }

    /// Bytes of the virtio-net header that begins every packet of a port: 0, 10 or 12
    /// (S-VHDR-1).
    pub fn header_len(&self, name: &str) -> Result<u32, Error> {
        self.call(Request::HeaderLen { name: name.into() }).map(|HeaderLen(len)| len)
    }

    /// Sets that length for a VALE port.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let _port = Port::options().accept_header().open("vale0:a")?;
    /// let control = Control::connect()?;
    /// control.set_header_len("vale0:a", 12)?;
    /// assert_eq!(control.header_len("vale0:a")?, 12);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn set_header_len(&self, name: &str, len: u32) -> Result<(), Error> {
        self.call(Request::SetHeaderLen { name: name.into(), len })
    }
}

/// Splits what is to be attached into its name on the bridge and the mode asked for, by the name or else
/// by the environment.
fn interface_and_mode(name: &str) -> Result<(String, Option<NicMode>), Error> {
    let (plain, list) = OwnOptions::split(name);
    let own = OwnOptions::parse(list)?;
    let mode = own.mode;
    if own != (OwnOptions { mode, ..OwnOptions::default() }) {
        let problem = "on a switch an interface has no options but @mode; leave the others out";
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
            assert_eq!(interface_and_mode(bad).unwrap_err().cause(), Cause::Invalid, "{bad}");
        }
    }
}
