//! How a port is opened.

use std::sync::Arc;

use ringway_proto::{
    Cause, Connector, NicMode, Options, PortGeometry, PortKind, Registration, Request,
    RingSelection, Timestamps,
};
use rustix::process::geteuid;

use crate::{
    action::Action, asked_twice, asked_twice::either, binding::Binding,
    environment::add_environment, error::Error, filter::Filter, port::Port, reopen::Opened,
    session::Session, spec::PortSpec, verbose::tell_switch_owner,
};

/// What a port is to be like, where it does not exist yet, and how it is opened.
///
/// ```
/// # use ringway_doc as Port;
/// let port = Port::options().exclusive().tx_slots(256).rx_slots(256).open("vale0:fast")?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    registration: Registration,
    /// Whether the port may have its default number of slots where there is no memory for those asked for.
    or_default_slots: bool,
    /// Whether the options name the rings; else the port's name does.
    names_rings: bool,
    mode: Option<NicMode>,
    buf_size: Option<u32>,
    timestamps: Option<Timestamps>,
    user: Option<u32>,
    connector: Option<Elsewhere>,
    filter: Option<Filter>,
    action: Option<Action>,
    indirect: bool,
}

#[derive(Clone)]
struct Elsewhere(Arc<dyn Connector>);

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Elsewhere")
    }
}

impl OpenOptions {
    /// Nobody else may have the rings open.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let _port = Port::options().exclusive().open("vale0:a")?;
    /// assert!(Port::open("vale0:a").is_err());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn exclusive(mut self) -> Self {
        self.registration.exclusive = true;
        self
    }

    /// Only the receive rings.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::options().rx_only().open("vale0:a")?;
    /// assert_eq!((port.tx_rings(), port.rx_rings()), (0, 1));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn rx_only(mut self) -> Self {
        self.registration.without_tx = true;
        self
    }

    /// Only the transmit rings.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::options().tx_only().open("vale0:a")?;
    /// assert_eq!((port.tx_rings(), port.rx_rings()), (1, 0));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn tx_only(mut self) -> Self {
        self.registration.without_rx = true;
        self
    }

    /// Slots of each transmit ring, if this creates the port. A number that such a port cannot have is refused.
    pub fn tx_slots(mut self, slots: u32) -> Self {
        self.registration.tx_slots = slots;
        self
    }

    /// Slots of each receive ring, if this creates the port; see [`tx_slots`](Self::tx_slots).
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut pipe = Port::options().rx_slots(128).open("netmap:x}1")?;
    /// assert_eq!(pipe.rx(0).slots().num_slots(), 128);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn rx_slots(mut self, slots: u32) -> Self {
        self.registration.rx_slots = slots;
        self
    }

    /// Where there is no memory for the slots that these options ask for, the port has as many as it has by itself.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let parent = Port::open("vale0:parent")?;
    /// let options = Port::options().rx_slots(4096).or_default_slots();
    /// // Its memory is its parent's, and rings there have 1264 slots at most.
    /// let mut pipe = options.open("vale0:parent{1")?;
    /// assert_eq!(pipe.rx(0).slots().num_slots(), 1024);
    /// let mut port = options.open("vale0:other")?;
    /// assert_eq!(port.rx(0).slots().num_slots(), 4096);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn or_default_slots(mut self) -> Self {
        self.or_default_slots = true;
        self
    }

    /// Number of transmit rings, if this creates the port. A number that such a port cannot have is refused.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// // A ring for each thread that sends.
    /// let port = Port::options().tx_rings(4).rx_rings(1).open("vale0:a")?;
    /// assert_eq!((port.tx_rings(), port.rx_rings()), (4, 1));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn tx_rings(mut self, rings: u16) -> Self {
        self.registration.tx_rings = rings;
        self
    }

    /// Number of receive rings, if this creates the port; see [`tx_rings`](Self::tx_rings).
    pub fn rx_rings(mut self, rings: u16) -> Self {
        self.registration.rx_rings = rings;
        self
    }

    /// The region that a port created by this is to live in, by its id: another port's
    /// [`mem_id`](Port::mem_id). Frames move between the two without copying.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let a = Port::open("vale0:a")?;
    /// let b = Port::options().region(a.mem_id()).open("vale1:b")?;
    /// assert!(a.shares_region_with(&b));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn region(mut self, mem_id: u16) -> Self {
        self.registration.mem_id = mem_id;
        self
    }

    /// Only transmit and receive ring `index` of an interface.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::Port;
    ///
    /// let queue = Port::options().ring(3).open("netmap:eth0")?;
    /// let stack = Port::options().host_ring(0).open("netmap:eth0")?;
    /// assert_eq!((queue.rx_index(0), stack.rx_rings()), (Some(3), 1));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn ring(self, index: u16) -> Self {
        self.rings(RingSelection::One(index))
    }

    /// Only host ring `index` of an interface, in each direction.
    pub fn host_ring(self, index: u16) -> Self {
        self.rings(RingSelection::OneHost(index))
    }

    /// Buffers of the region besides those in slots; see [`Port::take_extra_bufs`]. Fewer may
    /// be granted.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::options().extra_bufs(16).open("vale0:a")?;
    /// let bufs = port.take_extra_bufs();
    /// println!("{} were granted", bufs.len());
    /// port.return_extra_bufs(bufs);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn extra_bufs(mut self, count: u32) -> Self {
        self.registration.extra_bufs = count;
        self
    }

    /// The port may have a virtio-net header in front of each packet; see
    /// [`Control::header_len`](crate::Control::header_len).
    ///
    /// ```
    /// # use ringway_doc as Port; use ringway_doc as Control;
    /// let port = Port::options().accept_header().open("vale0:a")?;
    /// Control::connect()?.set_header_len(port.name(), 10)?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn accept_header(mut self) -> Self {
        self.registration.accept_header = true;
        self
    }

    /// A null port: what is sent vanishes at once, and nothing is received. It is for measuring
    /// what a ring costs by itself, and for memory. It needs a
    /// [`region`](Self::region), and has the rings and slots that are asked for.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::open("vale0:a")?;
    /// let options = Port::options().tx_rings(1).rx_rings(1).tx_slots(256).rx_slots(256);
    /// let mut null = options.region(port.mem_id()).null().open("nowhere")?;
    /// null.tx(0).push(&[0; 60]);
    /// null.tx(0).sync();
    /// assert_eq!(null.tx(0).pending(), 0, "it has vanished");
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn null(self) -> Self {
        self.rings(RingSelection::Null { sink: true })
    }

    /// Only frames that match, from the first on. The stack of a network interface gets the others;
    /// on other ports they are taken from the ring here, and dropped.
    ///
    /// The port's name may have the sample, `@sample=10`, and this the expression, or the other way
    /// round. Different expressions, or samples, are refused.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::Filter;
    ///
    /// let port = Port::options().filter(Filter::new("udp port 53")?).open("vale0:a")?;
    /// # drop(port);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// What decides about each frame, from the first on; for a network interface.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::{Action, Ebpf, Port};
    ///
    /// // r0 = 2 (XDP_PASS); exit
    /// let result = Ebpf { code: 0xb7, registers: 0, offset: 0, immediate: 2 };
    /// let exit = Ebpf { code: 0x95, registers: 0, offset: 0, immediate: 0 };
    /// let all = Action::instructions("all", vec![result, exit]);
    /// let port = Port::options().rx_only().action(all).open("netmap:eth0")?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn action(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }

    /// The mode that an interface is to be in, and no other; see [`NicMode`].
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::{NicMode, Port, Timestamps};
    ///
    /// let port = Port::options()
    ///     .mode(NicMode::ZeroCopy) // or not at all
    ///     .buffer_size(4096)
    ///     .timestamps(Timestamps::Hardware)
    ///     .open("netmap:eth0")?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn mode(mut self, mode: NicMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Bytes of the buffers that an interface is to have. The first 256 are the kernel's: a buffer of
    /// 2048, the default, holds frames of up to 1792 bytes, one of 4096 those of up to 3840; longer
    /// ones take several slots. AF_XDP takes powers of two from 2048 up to a page; with other sizes
    /// an interface is in [packet mode](NicMode::Packet). All interfaces that a user opens with one
    /// size share a region.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::Port;
    ///
    /// let port = Port::options().buffer_size(4096).open("netmap:eth0")?;
    /// assert_eq!(port.max_frame(), 3840);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn buffer_size(mut self, bytes: u32) -> Self {
        self.buf_size = Some(bytes);
        self
    }

    /// Frames that an interface receives have timestamps: [`RxFrame::timestamp`](crate::RxFrame). Who
    /// opens an interface first decides about it for all.
    ///
    /// Those of the hardware are for drivers that tell them to XDP programs (Linux 6.3 and newer), in
    /// the modes zerocopy and copy, and for packet mode; opening fails where there are none. Many NICs
    /// want to be told to make them: `hwstamp_ctl -i eth0 -r 1`. Those of software every interface
    /// has, in every mode (Linux 6.1). Host rings have none.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::{Port, Timestamps};
    ///
    /// let mut port = Port::options().timestamps(Timestamps::Software).open("netmap:eth0")?;
    /// port.wait_rx(None)?;
    /// for frame in port.rx(0).batch(64) {
    ///     println!("{:?}", frame.timestamp());
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn timestamps(mut self, timestamps: Timestamps) -> Self {
        self.timestamps = Some(timestamps);
        self
    }

    /// The pipe is to be between this program's user and that one, by number, who says the same the
    /// other way round. They share its memory, and nothing else.
    ///
    /// ```no_run
    /// // Needs a daemon of several users, and a program of user 1001 that opens `p}1` for this one.
    /// use ringway::Port;
    ///
    /// let port = Port::options().user(1001).open("p{1")?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn user(mut self, uid: u32) -> Self {
        self.user = Some(uid);
        self
    }

    /// Slots with [`NS_INDIRECT`](crate::NS_INDIRECT) name memory of this program, by `ptr`: the next
    /// sync sends what is there. On VALE ports; others take what is in the slot's buffer.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::{NS_INDIRECT, Slot};
    ///
    /// let mut port = Port::options().indirect().open("vale0:a")?;
    /// let frame = [0xff; 60];
    /// let mut tx = port.tx(0);
    /// let mut slots = tx.slots();
    /// let slot = Slot { len: 60, flags: NS_INDIRECT, ptr: frame.as_ptr() as u64, ..slots.get(0) };
    /// slots.set(0, slot);
    /// slots.advance(1);
    /// tx.sync();
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn indirect(mut self) -> Self {
        self.indirect = true;
        self
    }

    fn rings(mut self, rings: RingSelection) -> Self {
        (self.registration.rings, self.names_rings) = (rings, true);
        self
    }

    /// Ask another registry than the daemon's: one in this process.
    #[doc(hidden)]
    pub fn over(mut self, connector: impl Connector + 'static) -> Self {
        self.connector = Some(Elsewhere(Arc::new(connector)));
        self
    }

    /// Opens the port that `spec` names; see [`PortSpec`].
    pub fn open(&self, spec: &str) -> Result<Port, Error> {
        #[cfg(feature = "files")]
        if let Some(file) = crate::FileSpec::parse(spec)? {
            return crate::files::open(&file, self, spec);
        }
        self.open_registered(spec)
    }

    /// The same for ports that the daemon has, and not for capture files: a program that asks for no other has
    /// nothing of what reads and writes these.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::options().rx_only().open_registered("vale0:a")?;
    /// # drop(port);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn open_registered(&self, spec: &str) -> Result<Port, Error> {
        let Asked { name, mut reg, named, share, options, filter } = self.asked(spec)?;
        let session = self.session()?;
        if let Some(other) = &share {
            reg.mem_id = region_of(&session, spec, other, reg.mem_id)?;
        }
        let register = |reg| Binding::register(&session, &name, reg, options.clone());
        let mut binding = match register(reg) {
            Err(error) if self.or_default_slots && error.cause() == Cause::NoRoom => {
                let Registration { tx_slots, rx_slots, .. } = as_requested(&name, named);
                (reg.tx_slots, reg.rx_slots) = (tx_slots, rx_slots);
                register(reg)?
            }
            Err(error)
                if let Some(other) = &share
                    && error.cause() == Cause::Invalid =>
            {
                let problem = format!("it cannot be in the region of {other}; leave @share out");
                return Err(Error::Name { name: spec.into(), problem });
            }
            result => result?,
        };
        let wrong = |problem| Error::Name { name: spec.into(), problem };
        let granted = binding.registration();
        check_counts("option conf: it asks", &named, granted).map_err(wrong)?;
        let asked = check_counts("the program asks", &as_requested(&name, reg), granted);
        if asked.is_err() && is_new(&session, &binding)? {
            asked.map_err(wrong)?;
        }
        let mem_id = binding.registration().mem_id;
        if let Some(other) = share.filter(|_| mem_id != reg.mem_id) {
            let problem = format!(
                "it is in region {mem_id}, and cannot be in that of {other}; leave @share out"
            );
            return Err(Error::Name { name: spec.into(), problem });
        }
        tell_switch_owner(&binding);
        if self.indirect {
            binding = binding.fetching_indirect();
        }
        if let Some(filter) = &filter {
            binding = binding.filtering(filter);
        }
        let opened = Opened::new(self.clone(), spec, &session);
        Ok(Port::new(binding, session, opened))
    }

    /// What the stack would lose, as long as `spec` is open so: what an interface, or a queue of
    /// it, receives, where no filter, of these options or of the environment, leaves frames to the
    /// stack; and the way out by it, where a program has its tx rings. `None` for all other ports.
    /// Whether there is such an interface is not looked at.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// // Asked before it is done:
    /// if let Some(taken) = Port::options().takes("netmap:eth0")? {
    ///     println!("the stack will not have {}: sent {}, received {}", taken.interface, taken.sent, taken.received);
    /// }
    /// assert_eq!(Port::options().takes("vale0:a")?, None);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn takes(&self, spec: &str) -> Result<Option<TakenFrames>, Error> {
        #[cfg(feature = "files")]
        if crate::FileSpec::is_file(spec) {
            return Ok(None);
        }
        let Asked { name, reg, mut options, .. } = self.asked(spec)?;
        add_environment(&name, &reg, &mut options)?;
        let queue = match reg.rings {
            RingSelection::All | RingSelection::AllAndHost => None,
            RingSelection::One(queue) => Some(queue),
            _ => return Ok(None),
        };
        let is_interface = is_interface(&name) && !reg.monitor.is_asked();
        let received = !reg.without_rx && options.filter.is_none();
        let sent = !reg.without_tx;
        let taken = TakenFrames { interface: name, received, sent, queue };
        Ok((is_interface && (received || sent)).then_some(taken))
    }

    /// What a request for that port asks for.
    fn asked(&self, spec: &str) -> Result<Asked, Error> {
        let PortSpec { name, registration: named, share, own } = PortSpec::parse(spec)?;
        let mut reg = self.registration;
        for (count, named) in
            [(&mut reg.tx_slots, named.tx_slots), (&mut reg.rx_slots, named.rx_slots)]
        {
            *count = if named != 0 { named } else { *count };
        }
        for (count, named) in [
            (&mut reg.tx_rings, named.tx_rings),
            (&mut reg.rx_rings, named.rx_rings),
            (&mut reg.host_tx_rings, named.host_tx_rings),
            (&mut reg.host_rx_rings, named.host_rx_rings),
        ] {
            *count = if named != 0 { named } else { *count };
        }
        if !self.names_rings {
            reg.rings = named.rings;
        }
        reg.exclusive |= named.exclusive;
        reg.without_tx |= named.without_tx;
        reg.without_rx |= named.without_rx;
        if reg.without_rx && (reg.without_tx || named.monitor.is_asked()) {
            let problem = match (named.without_tx, named.without_rx) {
                _ if named.monitor.is_asked() => {
                    "a monitor cannot send; open the port without r, t and z"
                }
                (true, true) => "/R and /T leave no ring; leave one of them out",
                (true, false) if PortSpec::is_queue(spec) => {
                    "it is to send, and ~N is a receive queue; write -N in its place"
                }
                (true, false) => "it is to send, and /R is to receive only; leave /R out",
                (false, true) => "it is to receive, and /T is to send only; leave /T out",
                (false, false) => "to receive only and to send only leave no ring; leave one out",
            };
            return Err(Error::Name { name: spec.into(), problem: problem.into() });
        }
        reg.monitor = named.monitor;
        if named.mem_id != 0 {
            reg.mem_id = named.mem_id;
        }
        let Registration { tx_slots, rx_slots, tx_rings, rx_rings, .. } = named;
        let is_plain_interface = is_interface(&name) && !reg.monitor.is_asked();
        let counts = [tx_slots, rx_slots, tx_rings.into(), rx_rings.into()];
        if is_plain_interface && counts != [0; 4] {
            let problem = "an interface has rings for its queues, and slots as the daemon gives \
                           them; leave @conf out";
            return Err(Error::Name { name: spec.into(), problem: problem.into() });
        }
        let has_host_rings = matches!(
            reg.rings,
            RingSelection::Host | RingSelection::OneHost(_) | RingSelection::AllAndHost
        );
        let host_counts = [named.host_tx_rings, named.host_rx_rings];
        if is_plain_interface && !has_host_rings && host_counts != [0; 2] {
            let problem = format!(
                "this name opens no host rings; write {name}^ or {name}* for them, or leave host-rings out"
            );
            return Err(Error::Name { name: spec.into(), problem });
        }
        let expression = own.filter.as_deref();
        let mut options = Options {
            filter: asked_twice::filter(spec, expression, own.sample, self.filter.as_ref())?,
            mode: either(spec, "mode", own.mode, self.mode)?,
            buf_size: either(spec, "buffers of", own.buf_size, self.buf_size)?,
            timestamps: either(spec, "timestamps of", own.timestamps, self.timestamps)?,
            user: either(spec, "user", own.user, self.user)?,
            action: self.action.clone().map(Action::request),
            ..Options::default()
        };
        let is_monitor = reg.monitor.is_asked();
        check_options(&name, &reg, &options)?;
        let is_filtered_here = is_monitor || !is_interface(&name);
        let filter = if is_filtered_here { options.filter.take() } else { None };
        if filter.is_some() && reg.without_rx {
            let problem =
                "it is opened to send only, and has nothing to filter; leave /T or the filter out";
            return Err(Error::Name { name: spec.into(), problem: problem.into() });
        }
        let reg = as_requested(&name, reg);
        Ok(Asked { name, reg, named, share, options, filter })
    }
}

/// What the stack loses while a port of an interface is open; see [`OpenOptions::takes`].
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::TakenFrames;
///
/// let queue = Port::options().rx_only().takes("netmap:eth0-3")?;
/// assert!(matches!(queue, Some(TakenFrames { queue: Some(3), sent: false, received: true, .. })));
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenFrames {
    /// The interface.
    pub interface: String,
    /// What it receives.
    pub received: bool,
    /// What the stack sends by it: all, whatever the queue.
    pub sent: bool,
    /// Of what it receives, this queue's alone.
    pub queue: Option<u16>,
}

/// What a name and options ask for together.
struct Asked {
    name: String,
    reg: Registration,
    /// What the name alone asks for.
    named: Registration,
    share: Option<String>,
    options: Options,
    /// What is filtered in this process, where the kernel has no filter for it.
    filter: Option<ringway_proto::Filter>,
}

/// Whether a name is that of a network interface.
pub(crate) fn is_interface(name: &str) -> bool {
    !name.contains([':', '{', '}'])
}

/// Refuses options that the port `name`, registered so, would ignore. Filters are none of them: what the
/// kernel has no filter for, the client can filter.
///
/// # Errors
/// [`Error::Name`], which says what to leave out.
pub fn check_options(name: &str, reg: &Registration, options: &Options) -> Result<(), Error> {
    let of_interfaces = [
        ("modes", options.mode.is_some()),
        ("buffers of a size", options.buf_size.is_some()),
        ("timestamps", options.timestamps.is_some()),
        ("action programs", options.action.is_some()),
    ];
    let asked = of_interfaces.iter().find(|(_, asked)| *asked);
    let is_null = matches!(reg.rings, RingSelection::Null { .. });
    let is_host = matches!(reg.rings, RingSelection::Host | RingSelection::OneHost(_));
    let problem = match asked {
        Some((what, _)) if !is_interface(name) || is_null => {
            format!("network interfaces alone have {what}; leave that option out")
        }
        Some((what, _)) if reg.monitor.is_asked() => {
            format!("the program that opens the interface decides about its {what}; leave it out")
        }
        _ if is_host && options.timestamps.is_some() => {
            "host rings have no timestamps; leave that option out".into()
        }
        _ if is_null && options.user.is_some() => {
            "a null port is shared with no other user; leave @user out".into()
        }
        _ if is_null && options.filter.is_some() => {
            "a null port receives nothing; leave the filter out".into()
        }
        _ => return Ok(()),
    };
    Err(Error::Name { name: name.into(), problem })
}

/// Refuses a port that has other numbers of rings or slots than its name, or the options, ask for: there are limits,
/// kinds of ports without such rings, and ports that are there already. The registry answers with what there is, as
/// netmap's does.
fn check_counts(asks: &str, asked: &Registration, granted: &Registration) -> Result<(), String> {
    let counts = |reg: &Registration| {
        let host = [reg.host_tx_rings.into(), reg.host_rx_rings.into()];
        [[reg.tx_slots, reg.rx_slots], [reg.tx_rings.into(), reg.rx_rings.into()], host]
    };
    let pairs = counts(asked).into_iter().zip(counts(granted));
    for (what, (asked, has)) in ["slots", "rings", "host rings"].iter().zip(pairs) {
        for ((way, asked), has) in ["tx", "rx"].iter().zip(asked).zip(has) {
            if asked != 0 && asked != has {
                return Err(format!(
                    "{asks} for {asked} {way} {what}, and the port has {has}; ask for that number, or \
                     leave it out"
                ));
            }
        }
    }
    Ok(())
}

/// A request describes a pipe's first end (S-PIPE-4), a name and options the port that is opened.
fn as_requested(name: &str, reg: Registration) -> Registration {
    if !is_second_end(name) || reg.monitor.is_asked() {
        return reg;
    }
    let Registration { tx_slots, rx_slots, tx_rings, rx_rings, .. } = reg;
    let ([tx_slots, rx_slots], [tx_rings, rx_rings]) = ([rx_slots, tx_slots], [rx_rings, tx_rings]);
    Registration { tx_slots, rx_slots, tx_rings, rx_rings, ..reg }
}

/// Whether the port is of a kind that opening makes, and this has made it: no other handle has it, or the pipe's
/// other end.
fn is_new(session: &Session, binding: &Binding) -> Result<bool, Error> {
    let name = binding.name();
    if is_interface(name) || binding.kind() == PortKind::Monitor {
        return Ok(false);
    }
    let other_end = match name.rsplit_once(['{', '}']) {
        Some((parent, id)) if is_second_end(name) => format!("{parent}{{{id}"),
        Some((parent, id)) => format!("{parent}}}{id}"),
        None => String::new(),
    };
    let ports = session.ports()?;
    let ports = ports.iter().filter(|port| port.name == name || port.name == other_end);
    Ok(ports.map(|port| port.users).sum::<u32>() == 1)
}

/// Whether a port is a pipe's second end.
fn is_second_end(name: &str) -> bool {
    name.contains('}')
}

impl OpenOptions {
    /// What the options ask for, the port's name aside.
    #[cfg(feature = "files")]
    pub(crate) fn registration(&self) -> &Registration {
        &self.registration
    }

    /// The filter that is asked for.
    #[cfg(feature = "files")]
    pub(crate) fn asked_filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// The first of the options that capture files do not have.
    #[cfg(feature = "files")]
    pub(crate) fn not_for_files(&self) -> Option<&'static str> {
        let reg = &self.registration;
        let asked = [
            ("modes", self.mode.is_some()),
            ("buffers of a size", self.buf_size.is_some()),
            ("timestamps of other clocks", self.timestamps.is_some()),
            ("action programs", self.action.is_some()),
            ("another user", self.user.is_some()),
            ("rings to choose from", self.names_rings),
            ("several rings", reg.tx_rings > 1 || reg.rx_rings > 1),
            ("virtio-net headers", reg.accept_header),
        ];
        asked.iter().find(|(_, asked)| *asked).map(|(what, _)| *what)
    }

    /// A session with the daemon that the options name.
    pub(crate) fn session(&self) -> Result<Session, Error> {
        match &self.connector {
            Some(Elsewhere(connector)) => Ok(Session::over(connector.as_ref())),
            None => Session::connect(),
        }
    }
}

/// The region of the port that `spec` names in `@share=`.
fn region_of(session: &Session, spec: &str, other: &str, given: u16) -> Result<u16, Error> {
    let wrong = |problem| Error::Name { name: spec.into(), problem };
    let name = PortSpec::parse(other)?.name;
    let mem_id = if is_interface(&name) {
        let request = Request::PortGeometry { name, mem_id: 0 };
        session.call::<PortGeometry>(request)?.0.mem_id
    } else {
        // To ask for its geometry makes a port that there is not, and its region goes with it.
        let mut ports = session.ports()?;
        let uid = geteuid().as_raw();
        ports.sort_by_key(|port| port.uid != uid);
        let open = ports.iter().find(|port| port.name == name);
        open.ok_or_else(|| wrong(format!("{other} is not open; open it first")))?.mem_id
    };
    if given != 0 && given != mem_id {
        return Err(wrong(format!("{other} is in region {mem_id}, not in {given}")));
    }
    Ok(mem_id)
}
