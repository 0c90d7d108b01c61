//! A port, open.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ringway_abi::{
    Dir, NR_ACCEPT_VNET_HDR, NR_EXCLUSIVE, NR_REG_NULL, NR_REG_ONE_NIC, NR_REG_ONE_SW,
    NR_RX_RINGS_ONLY, NR_SINK, NR_TX_RINGS_ONLY,
};
use ringway_registry::{Led, NicMode, Options, PortKind, Registry, Reply, Request, Timestamps};
use rustix::event::PollFlags;
use rustix::fd::BorrowedFd;

use crate::{
    binding::{Binding, BoundRing, Stats},
    control::unexpected,
    error::Error,
    farewell::Farewell,
    filter::Filter,
    rx::RxRing,
    session::Session,
    spec::PortSpec,
    tx::TxRing,
    wait::{Interest, Woken, sleep},
};

/// An open port. Dropping it closes it: the rings, the buffers and, for a virtual port that
/// nobody else has open, the port itself go.
#[derive(Debug)]
pub struct Port {
    // The mapping goes before the session, so that nothing is touched after it was let go.
    binding: Binding,
    session: Session,
    farewell: Option<Farewell>,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.farewell = Farewell::to(&self.binding);
    }
}

/// What a port is to be like, where it does not exist yet, and how it is opened.
///
/// ```
/// # use ringway::doc as Port;
/// let port = Port::options().exclusive().tx_slots(256).rx_slots(256).open("vale0:fast")?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    reg: ringway_abi::nmreq_register,
    mode: Option<NicMode>,
    buf_size: Option<u32>,
    timestamps: Option<Timestamps>,
    registry: Option<SharedRegistry>,
    filter: Option<Filter>,
    indirect: bool,
}

#[derive(Clone)]
struct SharedRegistry(Arc<Mutex<Registry>>);

impl std::fmt::Debug for SharedRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Registry")
    }
}

impl OpenOptions {
    /// Nobody else may have the rings open.
    pub fn exclusive(mut self) -> Self {
        self.reg.nr_flags |= NR_EXCLUSIVE;
        self
    }

    /// Only the receive rings.
    pub fn rx_only(mut self) -> Self {
        self.reg.nr_flags |= NR_RX_RINGS_ONLY;
        self
    }

    /// Only the transmit rings.
    pub fn tx_only(mut self) -> Self {
        self.reg.nr_flags |= NR_TX_RINGS_ONLY;
        self
    }

    /// Slots of each transmit ring, if this creates the port.
    pub fn tx_slots(mut self, slots: u32) -> Self {
        self.reg.nr_tx_slots = slots;
        self
    }

    /// Slots of each receive ring, if this creates the port.
    pub fn rx_slots(mut self, slots: u32) -> Self {
        self.reg.nr_rx_slots = slots;
        self
    }

    /// Transmit rings, if this creates the port.
    pub fn tx_rings(mut self, rings: u16) -> Self {
        self.reg.nr_tx_rings = rings;
        self
    }

    /// Receive rings, if this creates the port.
    pub fn rx_rings(mut self, rings: u16) -> Self {
        self.reg.nr_rx_rings = rings;
        self
    }

    /// The region that a port created by this is to live in; see [`Port::mem_id`].
    pub fn region(mut self, mem_id: u16) -> Self {
        self.reg.nr_mem_id = mem_id;
        self
    }

    /// Only transmit and receive ring `index` of an interface.
    pub fn ring(mut self, index: u16) -> Self {
        (self.reg.nr_mode, self.reg.nr_ringid) = (NR_REG_ONE_NIC, index);
        self
    }

    /// Only host ring `index` of an interface, in each direction.
    pub fn host_ring(mut self, index: u16) -> Self {
        (self.reg.nr_mode, self.reg.nr_ringid) = (NR_REG_ONE_SW, index);
        self
    }

    /// Buffers of the region besides those in slots; see [`Port::take_extra_bufs`]. Fewer may
    /// be granted.
    pub fn extra_bufs(mut self, count: u32) -> Self {
        self.reg.nr_extra_bufs = count;
        self
    }

    /// The port may have a virtio-net header in front of each packet; see
    /// [`Control::header_len`](crate::Control::header_len).
    pub fn accept_header(mut self) -> Self {
        self.reg.nr_flags |= NR_ACCEPT_VNET_HDR;
        self
    }

    /// A null port: what is sent vanishes at once, and nothing is received. It is for measuring
    /// what a ring costs by itself, and for memory. It needs a
    /// [`region`](Self::region), and has the rings and slots that are asked for.
    pub fn null(mut self) -> Self {
        self.reg.nr_mode = NR_REG_NULL;
        self.reg.nr_flags |= NR_SINK;
        self
    }

    /// Only frames that match, from the first on; for a network interface.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// The mode that an interface is to be in, and no other; see [`NicMode`].
    pub fn mode(mut self, mode: NicMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Bytes of the buffers that an interface is to have. The first 256 are the kernel's: a buffer of
    /// 2048, the default, holds frames of up to 1792 bytes, one of 4096 those of up to 3840; longer
    /// ones take several slots. AF_XDP takes powers of two from 2048 up to a page; with other sizes
    /// an interface is in [packet mode](NicMode::Packet). All interfaces that a user opens with one
    /// size share a region.
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
    pub fn timestamps(mut self, timestamps: Timestamps) -> Self {
        self.timestamps = Some(timestamps);
        self
    }

    /// Slots with [`NS_INDIRECT`](crate::NS_INDIRECT) name memory of this program, by `ptr`: the next
    /// sync sends what is there. On VALE ports; others take what is in the slot's buffer.
    pub fn indirect(mut self) -> Self {
        self.indirect = true;
        self
    }

    /// Use the registry of this process, not the daemon.
    pub fn registry(mut self, registry: &Arc<Mutex<Registry>>) -> Self {
        self.registry = Some(SharedRegistry(registry.clone()));
        self
    }

    /// Opens the port that `spec` names; see [`PortSpec`].
    pub fn open(&self, spec: &str) -> Result<Port, Error> {
        let PortSpec { name, reg: named, share, own } = PortSpec::parse(spec)?;
        let mut reg = self.reg;
        for (count, named) in
            [(&mut reg.nr_tx_slots, named.nr_tx_slots), (&mut reg.nr_rx_slots, named.nr_rx_slots)]
        {
            *count = if named != 0 { named } else { *count };
        }
        for (count, named) in [
            (&mut reg.nr_tx_rings, named.nr_tx_rings),
            (&mut reg.nr_rx_rings, named.nr_rx_rings),
            (&mut reg.nr_host_tx_rings, named.nr_host_tx_rings),
            (&mut reg.nr_host_rx_rings, named.nr_host_rx_rings),
        ] {
            *count = if named != 0 { named } else { *count };
        }
        if reg.nr_mode == 0 {
            (reg.nr_mode, reg.nr_ringid) = (named.nr_mode, named.nr_ringid);
        }
        reg.nr_flags |= named.nr_flags;
        if named.nr_mem_id != 0 {
            reg.nr_mem_id = named.nr_mem_id;
        }
        let session = match &self.registry {
            Some(SharedRegistry(registry)) => Session::local(registry),
            None => Session::connect()?,
        };
        if let Some(other) = share {
            reg.nr_mem_id = region_of(&session, spec, &other, reg.nr_mem_id)?;
        }
        let named = own.options(&name)?;
        let options = Options {
            filter: named.filter.or_else(|| self.filter.clone().map(Filter::request)),
            mode: named.mode.or(self.mode),
            buf_size: named.buf_size.or(self.buf_size),
            timestamps: named.timestamps.or(self.timestamps),
            ..Options::default()
        };
        let mut binding = Binding::register(&session, &name, reg, options)?;
        if self.indirect {
            binding = binding.fetching_indirect();
        }
        Ok(Port { binding, session, farewell: None })
    }
}

/// The region of the port that `spec` names in `@share=`.
fn region_of(session: &Session, spec: &str, other: &str, given: u16) -> Result<u16, Error> {
    let name = PortSpec::parse(other)?.name;
    let Reply::PortInfo(info) = session.call(Request::PortInfo { name, mem_id: 0 })?.0 else {
        return Err(unexpected());
    };
    if given != 0 && given != info.nr_mem_id {
        let problem = format!("{other} is in region {}, not in {given}", info.nr_mem_id);
        return Err(Error::Name { name: spec.into(), problem });
    }
    Ok(info.nr_mem_id)
}

impl Port {
    /// Opens the port that `spec` names, with all its rings; see [`PortSpec`].
    pub fn open(spec: &str) -> Result<Port, Error> {
        Port::options().open(spec)
    }

    /// Opens a port in a particular way.
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }

    /// The port's name.
    pub fn name(&self) -> &str {
        self.binding.name()
    }

    pub fn kind(&self) -> PortKind {
        self.binding.kind()
    }

    /// Id of the region that the port's buffers are in.
    pub fn mem_id(&self) -> u16 {
        self.binding.reg().nr_mem_id
    }

    /// Whether frames can move between this port and `other` without copying.
    pub fn shares_region_with(&self, other: &Port) -> bool {
        self.binding.region().is_same(other.binding.region())
    }

    /// Bytes that a buffer of this port holds: the longest frame of one slot.
    pub fn max_frame(&self) -> usize {
        self.binding.region().layout().data_size() as usize
    }

    /// Transmit rings that this port has open.
    pub fn tx_rings(&self) -> usize {
        self.binding.rings(Dir::Tx).len()
    }

    /// Receive rings that this port has open.
    pub fn rx_rings(&self) -> usize {
        self.binding.rings(Dir::Rx).len()
    }

    /// Index of an open receive ring within the port; host rings come after the others. `None`
    /// if there is no ring `ring`.
    pub fn rx_index(&self, ring: usize) -> Option<u16> {
        self.binding.rings(Dir::Rx).get(ring).map(BoundRing::index)
    }

    /// A transmit ring. Panics if there is no ring `index`.
    pub fn tx(&mut self, index: usize) -> TxRing<'_> {
        TxRing::new(&self.binding.rings(Dir::Tx)[index])
    }

    /// A receive ring. Panics if there is no ring `index`.
    pub fn rx(&mut self, index: usize) -> RxRing<'_> {
        RxRing::new(&self.binding.rings(Dir::Rx)[index])
    }

    /// All rings at once: to forward, or to hand to threads.
    pub fn split(&mut self) -> (Vec<TxRing<'_>>, Vec<RxRing<'_>>) {
        let tx = self.binding.rings(Dir::Tx).iter().map(TxRing::new).collect();
        let rx = self.binding.rings(Dir::Rx).iter().map(RxRing::new).collect();
        (tx, rx)
    }

    /// Waits until a packet has been received, at most for `timeout`. True if there is one.
    pub fn wait_rx(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.wait(Interest::Rx, timeout)
    }

    /// Waits until there is room to send, at most for `timeout`. True if there is.
    pub fn wait_tx(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.wait(Interest::Tx, timeout)
    }

    /// Waits for either; see [`Interest`]. Syncs the rings it waits for.
    pub fn wait(&mut self, interest: Interest, timeout: Option<Duration>) -> Result<bool, Error> {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        loop {
            if self.poll(interest) || self.arm(interest) {
                return Ok(true);
            }
            self.check(interest)?;
            match sleep(self.wait_fds(interest), self.daemon_fd(), deadline)? {
                Woken::Rung => continue,
                Woken::TimedOut => return Ok(self.poll(interest)),
                Woken::HungUp => return Err(Error::Gone { name: self.name().into() }),
            }
        }
    }

    /// Fails if nothing can come of a wait, whatever happens: of one for room in a monitor's tx
    /// ring, of one for packets when the monitored port was closed, and of any when the interface
    /// has gone.
    pub fn check(&self, interest: Interest) -> Result<(), Error> {
        if interest.dirs().any(|dir| self.binding.is_gone(dir)) {
            return Err(Error::NoInterface { name: self.name().into() });
        }
        let failing = interest.dirs().find(|dir| self.binding.fails(*dir));
        failing.map_or(Ok(()), |dir| {
            let problem = match dir {
                Dir::Tx => "a monitor cannot send; open the port without r, t and z",
                Dir::Rx => "the port that was monitored has been closed; open the monitor again",
            };
            Err(Error::Monitor { name: self.name().into(), problem })
        })
    }

    /// Syncs, and tells whether there is something, without waiting.
    pub fn poll(&mut self, interest: Interest) -> bool {
        for dir in interest.dirs() {
            self.binding.sync(dir);
        }
        interest.dirs().any(|dir| self.binding.ready(dir) && !self.binding.fails(dir))
    }

    /// For event loops: announces a wait. If this returns true there is something already;
    /// else one of [`wait_fds`](Self::wait_fds) tells when there may be.
    pub fn arm(&mut self, interest: Interest) -> bool {
        let mut silenced = false;
        for dir in interest.dirs() {
            silenced |= self.binding.arm(dir);
        }
        let ready = self.poll(interest);
        // Others are to learn of the end of a port as well.
        if silenced && (ready || interest.dirs().any(|dir| self.binding.fails(dir))) {
            interest.dirs().for_each(|dir| self.binding.disarm(dir));
        }
        ready
    }

    /// For event loops: the descriptors to poll after [`arm`](Self::arm), and for what. Watch them only
    /// while you wait: a kernel that has to tell a watcher of every packet takes a third more time
    /// for it.
    pub fn wait_fds(
        &self,
        interest: Interest,
    ) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> + Clone {
        let rings = interest.dirs().flat_map(|dir| self.binding.rings(dir));
        rings.flat_map(BoundRing::wait_sources)
    }

    /// For event loops: a descriptor that hangs up when the daemon that serves the rings ends;
    /// `None` where they need no daemon.
    pub fn daemon_fd(&self) -> Option<BorrowedFd<'_>> {
        self.session.connection().filter(|_| self.binding.is_served())
    }

    /// What the port's rings have counted.
    pub fn stats(&self) -> Stats {
        self.binding.stats()
    }

    /// Changes which frames the port gets of those that its interface receives, between one frame
    /// and the next: what matches the old filter and the new is not lost. Counters begin anew; see
    /// [`Control::ports`](crate::Control::ports). Other programs that have the same receive rings
    /// are concerned too.
    pub fn set_filter(&self, filter: Filter) -> Result<(), Error> {
        self.filter(Some(filter))
    }

    /// The port gets every frame again.
    pub fn clear_filter(&self) -> Result<(), Error> {
        self.filter(None)
    }

    fn filter(&self, filter: Option<Filter>) -> Result<(), Error> {
        let filter = filter.map(Filter::request);
        let request = Request::SetFilter { name: String::new(), rings: Led::Queues, filter };
        self.session.call(request).map(drop)
    }

    /// The layer below.
    pub fn binding(&self) -> &Binding {
        &self.binding
    }
}
