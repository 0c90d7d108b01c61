//! Asking the daemon about ports and bridges, and changing those that stay.

use ringway_ipc::Answer;
use ringway_proto::{
    AddressInfo, BridgeInfo, Connector, DaemonInfo, DeviceCounter, EventPage, Flow, Forwarding,
    GroupInfo, Level, Mac, Multicast, NameConflict, PortInfo, PortSettings, PortShape, RegionInfo,
    RegionPosition, Request, RingInfo, RingSelection, RxSelector, Steered, SwitchMirror,
    SwitchPosition,
};
use rustix::fd::BorrowedFd;

use crate::{
    action::Action, error::Error, filter::Filter, pages::all_pages, session::Session,
    spec::PortSpec,
};

/// A connection for control. It keeps a private daemon running while it lives. Its calls fail with
/// what the daemon says ([`Error::Daemon`]): what is not allowed, not there, or in use.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let _port = Port::open("vale0:a")?;
/// let control = Control::connect()?;
/// for switch in control.switches()? {
///     for port in switch.ports {
///         println!("{}: {} packets sent", port.name, port.totals.sent_packets);
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct Control {
    session: Session,
}

impl Control {
    /// Connects to the daemon; a private one is started if there is none.
    pub fn connect() -> Result<Control, Error> {
        Ok(Control { session: Session::connect()? })
    }

    /// Connects to the daemon, and fails if there is none.
    ///
    /// ```no_run
    /// // Needs a daemon that runs, or none.
    /// use ringway::{Cause, Control};
    ///
    /// match Control::connect_running() {
    ///     Ok(control) => println!("ringwayd {}", control.daemon()?.version),
    ///     Err(error) if error.cause() == Cause::Unreachable => println!("no program has a port open"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn connect_running() -> Result<Control, Error> {
        Ok(Control { session: Session::connect_running()? })
    }

    /// Connects to the system daemon (what `RINGWAY_SOCKET` names, or its usual socket), and fails if there is none. A
    /// private daemon is not asked, although [`connect_running`](Self::connect_running) would find it then: for what
    /// has to stay when the programs end that keep one running.
    #[doc(hidden)]
    pub fn connect_system() -> Result<Control, Error> {
        Ok(Control { session: Session::connect_system()? })
    }

    /// Asks another registry than the daemon's.
    #[doc(hidden)]
    pub fn over(connector: &dyn Connector) -> Control {
        Control { session: Session::over(connector) }
    }

    pub(crate) fn call<T: Answer>(&self, request: Request) -> Result<T, Error> {
        self.session.call(request).map(|(answer, _)| answer)
    }

    /// All ports.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let _port = Port::open("vale0:a")?;
    /// let ports = Control::connect()?.ports()?;
    /// assert_eq!(ports[0].name, "vale0:a");
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn ports(&self) -> Result<Vec<PortInfo>, Error> {
        self.session.ports()
    }

    /// The rings of a port, and what each has counted.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let _port = Port::open("vale0:a")?;
    /// let control = Control::connect()?;
    /// for port in control.ports()? {
    ///     let lost: u64 = control.rings(&port)?.iter().map(|ring| ring.ring_full).sum();
    ///     println!("{} has lost {lost} packets", port.name);
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn rings(&self, port: &PortInfo) -> Result<Vec<RingInfo>, Error> {
        all_pages(0, |from| self.call(Request::Rings { port: port.id, from }))
    }

    /// Which counters of losses of a NIC port's interface, and of its driver, have grown since the port was
    /// opened. A frame may be in several of them, and in those of [`rings`](Self::rings).
    ///
    /// ```
    /// # use ringway_doc as Control;
    /// let control = Control::connect()?;
    /// for port in control.ports()? {
    ///     for counter in control.device_counters(&port)? {
    ///         println!("{}: {} {}", port.name, counter.count, counter.name);
    ///     }
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn device_counters(&self, port: &PortInfo) -> Result<Vec<DeviceCounter>, Error> {
        all_pages(0, |from| self.call(Request::DeviceCounters { port: port.id, from }))
    }

    /// All regions.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let _port = Port::open("vale0:a")?;
    /// for region in Control::connect()?.regions()? {
    ///     println!("region {} has {} bytes", region.mem_id, region.bytes);
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn regions(&self) -> Result<Vec<RegionInfo>, Error> {
        all_pages(RegionPosition::default(), |from| self.call(Request::Regions { from }))
    }

    /// All bridges with their ports and counters.
    pub fn switches(&self) -> Result<Vec<BridgeInfo>, Error> {
        let first = SwitchPosition::default();
        let pages: Vec<BridgeInfo> =
            all_pages(first, |from| self.call(Request::Switches { from }))?;
        let mut all: Vec<BridgeInfo> = Vec::new();
        for bridge in pages {
            match all.last_mut().filter(|last| last.name == bridge.name) {
                // It goes on from the page before.
                Some(last) => {
                    last.ports.extend(bridge.ports);
                    last.mirrors.extend(bridge.mirrors);
                }
                None => all.push(bridge),
            }
        }
        Ok(all)
    }

    /// Names that users asked for lately and could not have, because they are for others. Root is
    /// told of all, other users of those that they asked for, and of those that are theirs.
    ///
    /// ```
    /// # use ringway_doc as Control;
    /// for conflict in Control::connect()?.name_conflicts()? {
    ///     println!("{} was refused to user {}", conflict.name, conflict.asked_by);
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn name_conflicts(&self) -> Result<Vec<NameConflict>, Error> {
        self.call(Request::NameConflicts)
    }

    /// What the daemon says of itself, and how long it takes for requests.
    ///
    /// # Errors
    ///
    /// [`Cause::Unsupported`](crate::Cause::Unsupported) if a registry of this process answers.
    pub fn daemon(&self) -> Result<DaemonInfo, Error> {
        self.call(Request::Daemon)
    }

    /// The addresses that a switch knows, in no order.
    ///
    /// # Errors
    ///
    /// [`Cause::Denied`](crate::Cause::Denied) if the user neither owns the switch nor has a port on it.
    pub fn switch_addresses(&self, bridge: &str) -> Result<Vec<AddressInfo>, Error> {
        all_pages(0, |from| self.call(Request::SwitchAddresses { bridge: bridge.into(), from }))
    }

    /// What a switch that snoops knows of groups of IP: queriers and routers, then members.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let _port = Port::open("vale0:a")?;
    /// assert!(Control::connect()?.switch_groups("vale0")?.is_empty(), "it floods");
    /// # Ok::<(), ringway::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Cause::Denied`](crate::Cause::Denied) if the user neither owns the switch nor has a port on it.
    pub fn switch_groups(&self, bridge: &str) -> Result<Vec<GroupInfo>, Error> {
        all_pages(0, |from| self.call(Request::SwitchGroups { bridge: bridge.into(), from }))
    }

    /// Adds a static address to those that a switch learns: it is behind `port`, neither ages nor moves, and
    /// outlives the daemon as the switch does. `vlan`: 0 for none.
    ///
    /// # Errors
    ///
    /// [`Cause::Exists`](crate::Cause::Exists) if it is static behind another port;
    /// [`Cause::Invalid`](crate::Cause::Invalid) if the switch does not learn, the address is no machine's,
    /// or the port is not in that VLAN.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let _ports = (Port::open("vale0:a")?, Port::open("vale0:b")?);
    /// let control = Control::connect()?;
    /// let mac = [2, 0, 0, 0, 0, 7];
    /// control.switch_address_add("vale0", mac, 0, "a")?;
    /// assert_eq!(control.switch_addresses("vale0")?[0].port, "vale0:a");
    /// control.switch_address_delete("vale0", mac, 0)?;
    ///
    /// control.switch_address_add("vale0", mac, 0, "b")?;
    /// control.switch_addresses_flush("vale0", Some("b"), None, true)?;
    /// assert!(control.switch_addresses("vale0")?.is_empty());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn switch_address_add(
        &self,
        bridge: &str,
        mac: Mac,
        vlan: u16,
        port: &str,
    ) -> Result<(), Error> {
        self.call(Request::SwitchAddressAdd { bridge: bridge.into(), mac, vlan, port: port.into() })
    }

    /// Has a switch forget an address, static or learned. `vlan`: 0 for none.
    ///
    /// # Errors
    ///
    /// [`Cause::NotFound`](crate::Cause::NotFound) if the switch does not know it.
    pub fn switch_address_delete(&self, bridge: &str, mac: Mac, vlan: u16) -> Result<(), Error> {
        self.call(Request::SwitchAddressDelete { bridge: bridge.into(), mac, vlan })
    }

    /// Has a switch forget what it has learned, behind one port alone if there is a `port`, and in one VLAN
    /// alone if there is a `vlan` (0: in none). `statics`: static addresses, too.
    pub fn switch_addresses_flush(
        &self,
        bridge: &str,
        port: Option<&str>,
        vlan: Option<u16>,
        statics: bool,
    ) -> Result<(), Error> {
        let (bridge, port) = (bridge.into(), port.map(str::to_owned));
        self.call(Request::SwitchAddressesFlush { bridge, port, vlan, added: statics })
    }

    /// Changes the filter of an open port of an interface: `spec` is `netmap:eth0`, `netmap:eth0-2`
    /// for one of its queues, or `netmap:eth0^` for its host rings. `None`: all frames are led to the
    /// port again.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::{Control, Filter};
    ///
    /// let control = Control::connect()?;
    /// control.set_filter("netmap:eth0-2", Some(Filter::new("udp port 53")?))?;
    /// control.set_filter("netmap:eth0-2", None)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn set_filter(&self, spec: &str, filter: Option<Filter>) -> Result<(), Error> {
        let (name, rings) = receive_rings(spec)?;
        let filter = filter.map(Into::into);
        self.call(Request::SetFilter { name, rings, filter })
    }

    /// Changes the action program of an open port of an interface, or of one of its queues, as
    /// [`set_filter`](Self::set_filter) changes the filter. `None`: it has none.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::Control;
    ///
    /// Control::connect()?.set_action("netmap:eth0", None)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn set_action(&self, spec: &str, action: Option<Action>) -> Result<(), Error> {
        let (name, rings) = receive_rings(spec)?;
        let action = action.map(Action::request);
        self.call(Request::SetAction { name, rings, action })
    }

    /// Whether the frames of receive queues of an interface are led to the programs that have them
    /// open, or to the stack as if no program had. Changes all of them; or none, if no program has one
    /// of them open.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::Control;
    ///
    /// // While a program is debugged, its queues are the stack's.
    /// let control = Control::connect()?;
    /// control.redirect_queues("netmap:eth0", &[0, 1], false)?;
    /// control.redirect_queues("netmap:eth0", &[0, 1], true)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn redirect_queues(
        &self,
        spec: &str,
        queues: &[u16],
        to_program: bool,
    ) -> Result<(), Error> {
        let (name, rings) = PortSpec::parse_open(spec)?;
        if rings != RingSelection::All {
            let problem = format!("the queues are named beside the port; write {name}");
            return Err(Error::Name { name: spec.into(), problem });
        }
        let queues = queues.into();
        self.call(Request::RedirectQueues { name, queues, to_program })
    }

    /// Keeps everything but `flows` off a receive queue of an interface, by its RSS table and flow
    /// rules. It is undone when this connection ends, however it ends, and when the daemon does.
    ///
    /// ```no_run
    /// // Needs a network card with an RSS table.
    /// use ringway::{Control, Port};
    ///
    /// let control = Control::connect()?; // As long as this lives:
    /// let flows = ["udp dst port 53".parse()?, "udp6 dst port 53".parse()?];
    /// control.steer("eth0", 3, &flows)?;
    /// let port = Port::open("netmap:eth0-3")?;
    /// # drop(port);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn steer(&self, interface: &str, queue: u16, flows: &[Flow]) -> Result<Steered, Error> {
        let (interface, flows) = (interface.into(), flows.into());
        self.call(Request::Steer { interface, queue, flows })
    }

    /// Events of the daemon's log from a number on; 0: the oldest that it has. Root, and the user of a private
    /// daemon, see all, other users those about themselves. `wait`: until there is one.
    ///
    /// A connection that waits so, and has nothing else, does not keep a private daemon running.
    ///
    /// ```no_run
    /// // Needs a daemon: a registry inside the program has no log.
    /// use ringway::Control;
    ///
    /// let control = Control::connect()?;
    /// let page = control.events(0, false)?;
    /// for event in &page.events {
    ///     println!("{}: {}", event.level, event.text);
    /// }
    /// let next = control.events(page.next, false)?;
    /// # drop(next);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn events(&self, from: u64, wait: bool) -> Result<EventPage, Error> {
        self.call(Request::Events { from, wait })
    }

    /// Has the daemon log what matters as much as `level`, until it ends.
    ///
    /// # Errors
    ///
    /// [`Cause::Denied`](crate::Cause::Denied) if the user is not root, and the daemon not the user's own.
    ///
    /// ```no_run
    /// // Needs a daemon: a registry inside the program has no log.
    /// use ringway::{Control, Level};
    ///
    /// Control::connect()?.set_log_level(Level::Debug)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn set_log_level(&self, level: Level) -> Result<(), Error> {
        self.call(Request::LogLevel(level))
    }

    /// A descriptor that hangs up when the daemon ends; `None` for a registry of this process.
    ///
    /// ```
    /// # use ringway_doc as Control;
    /// let control = Control::connect()?;
    /// match control.daemon_fd() {
    ///     Some(_connection) => println!("an event loop sees when the daemon ends"),
    ///     None => println!("the registry is in this program"),
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn daemon_fd(&self) -> Option<BorrowedFd<'_>> {
        self.session.connection()
    }

    /// Makes a bridge that stays although it has no ports. If `one_address`, each port of a program
    /// that joins it may send with one source address only: the first that it uses.
    ///
    /// ```
    /// # use ringway_doc as Control;
    /// let control = Control::connect()?;
    /// control.switch_new("vale7", true)?;
    /// assert_eq!(control.switches()?.len(), 1, "it has no ports, and stays");
    /// control.switch_delete("vale7")?;
    /// assert!(control.switches()?.is_empty());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn switch_new(&self, bridge: &str, one_address: bool) -> Result<(), Error> {
        self.call(Request::SwitchNew { bridge: bridge.into(), one_address })
    }

    /// Takes all NICs off a bridge, and lets it go with its last port.
    pub fn switch_delete(&self, bridge: &str) -> Result<(), Error> {
        self.call(Request::SwitchDelete { bridge: bridge.into() })
    }

    /// Chooses how a bridge forwards.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// use ringway::Forwarding;
    ///
    /// let _port = Port::open("vale0:a")?;
    /// let control = Control::connect()?;
    /// control.switch_forward("vale0", Forwarding::Flood)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn switch_forward(&self, bridge: &str, forwarding: Forwarding) -> Result<(), Error> {
        self.call(Request::SwitchForward { bridge: bridge.into(), forwarding })
    }

    /// Sets a mirror of a bridge: one of its ports gets copies of what others send and receive, and nothing else.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// use ringway::{MirrorDirection, SwitchMirror};
    ///
    /// let _ports = [Port::open("vale0:a")?, Port::open("vale0:probe")?];
    /// let control = Control::connect()?;
    /// let mirror = SwitchMirror {
    ///     name: "span".into(),
    ///     from: Some(vec!["a".into()]),
    ///     direction: MirrorDirection::Both,
    ///     to: "probe".into(),
    ///     user: None,
    ///     filter: None,
    /// };
    /// control.switch_mirror_add("vale0", mirror)?;
    /// control.switch_mirror_delete("vale0", "span")?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Cause::Exists`](crate::Cause::Exists) if there is one of that name that is otherwise;
    /// [`Cause::Denied`](crate::Cause::Denied) if it would show a port of another user, and root does not ask.
    pub fn switch_mirror_add(&self, bridge: &str, mirror: SwitchMirror) -> Result<(), Error> {
        let mirror = Box::new(mirror);
        self.call(Request::SwitchMirrorAdd { bridge: bridge.into(), mirror })
    }

    /// Removes a mirror of a bridge.
    ///
    /// # Errors
    ///
    /// [`Cause::NotFound`](crate::Cause::NotFound) if there is none of that name.
    pub fn switch_mirror_delete(&self, bridge: &str, mirror: &str) -> Result<(), Error> {
        self.call(Request::SwitchMirrorDelete { bridge: bridge.into(), mirror: mirror.into() })
    }

    /// Chooses what becomes of frames for groups of IP on a bridge that learns.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let _port = Port::open("vale0:a")?;
    /// Control::connect()?.switch_multicast("vale0", ringway::Multicast::Snooping)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Cause::Invalid`](crate::Cause::Invalid) if it does not learn.
    pub fn switch_multicast(&self, bridge: &str, multicast: Multicast) -> Result<(), Error> {
        self.call(Request::SwitchMulticast { bridge: bridge.into(), multicast })
    }

    /// Changes how a port of a bridge takes part: VLANs, source addresses, how much it
    /// may send and flood, whether it is lossless.
    /// `name` is its full name, `vale0:a`.
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// use ringway::PortSettings;
    ///
    /// let _port = Port::open("vale0:a")?;
    /// let settings = PortSettings { isolated: Some(true), ..PortSettings::default() };
    /// Control::connect()?.switch_port("vale0:a", settings)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn switch_port(&self, name: &str, settings: PortSettings) -> Result<(), Error> {
        self.call(Request::SwitchPort { name: name.into(), settings })
    }

    /// Attaches a network interface or a persistent port to a bridge, with or without the host
    /// stack. Returns its index. `eth0@mode=packet` asks for a mode of the interface, and no other.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::Control;
    ///
    /// let control = Control::connect()?;
    /// control.switch_new("vale0", false)?;
    /// control.switch_attach("vale0", "eth1", true)?; // with the host's stack
    /// control.switch_attach("vale0", "eth2", false)?;
    /// control.switch_detach("vale0", "eth2")?;
    /// control.switch_detach_all("vale0", &["eth1".into()])?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn switch_attach(&self, bridge: &str, port: &str, host: bool) -> Result<u32, Error> {
        self.vale_attach(&format!("{bridge}:{port}"), host, PortShape::default())
    }

    /// Takes interfaces and persistent ports off a bridge: all, or none if one of them cannot be.
    pub fn switch_detach_all(&self, bridge: &str, ports: &[String]) -> Result<(), Error> {
        let (bridge, ports) = (bridge.into(), ports.into());
        self.call(Request::SwitchDetachAll { bridge, ports })
    }

    /// Takes an interface or a persistent port off a bridge.
    pub fn switch_detach(&self, bridge: &str, port: &str) -> Result<(), Error> {
        self.vale_detach(&format!("{bridge}:{port}")).map(drop)
    }
}

/// The port that `spec` names, and which of its receive rings.
fn receive_rings(spec: &str) -> Result<(String, RxSelector), Error> {
    let (name, rings) = PortSpec::parse_open(spec)?;
    let rings = match rings {
        RingSelection::All => RxSelector::Queues,
        RingSelection::One(queue) => RxSelector::Queue(queue),
        RingSelection::Host => RxSelector::Host,
        _ => {
            let problem = format!("write {name}, {name}-2 for one of its queues, or {name}^");
            return Err(Error::Name { name: spec.into(), problem });
        }
    };
    Ok((name, rings))
}
