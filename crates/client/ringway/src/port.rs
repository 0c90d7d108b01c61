//! A port, open.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringway_abi::Dir;
use ringway_proto::{Cause, PortKind, Request, RxSelector};
use rustix::fd::BorrowedFd;

use crate::{
    action::Action,
    binding::{Binding, BoundRing, Stats},
    close_barrier::CloseBarrier,
    error::Error,
    filter::Filter,
    liveness::has_hung_up,
    open_options::OpenOptions,
    reopen::Opened,
    rx::RxRing,
    session::{Session, closed},
    tx::TxRing,
    wait::Interest,
};

/// An open port. Dropping it closes it: the rings, the buffers and, for a virtual port that
/// nobody else has open, the port itself go.
///
/// ```
/// # use ringway_doc as Port;
/// use std::time::Duration;
/// use ringway::Interest;
///
/// let mut port = Port::open("vale0:echo")?;
/// println!("{}: {} and {} rings, frames of {} bytes",
///     port.name(), port.tx_rings(), port.rx_rings(), port.max_frame());
///
/// // What comes goes back.
/// if port.wait(Interest::Rx, Some(Duration::from_millis(1)))? && port.wait_tx(None)? {
///     let (mut tx, mut rx) = port.tx_and_rx(0, 0);
///     let room = tx.space();
///     rx.forward(&mut tx, room, false);
///     tx.sync();
///     rx.sync();
/// }
/// println!("{} packets sent, {} received", port.tx_stats().tx_packets, port.rx_stats().rx_packets);
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct Port {
    // The mapping goes before the session, so that nothing is touched after it was let go.
    binding: Binding,
    session: Session,
    barrier: Option<CloseBarrier>,
    opened: Opened,
    id: u64,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.barrier = CloseBarrier::to(&self.binding);
    }
}

impl Port {
    pub(crate) fn new(binding: Binding, session: Session, opened: Opened) -> Port {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Relaxed);
        Port { binding, session, barrier: None, opened, id }
    }

    /// No other port that this process opens has this number.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// How the port was opened: what it takes to open it once more, in another way perhaps.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::open("vale0:a")?;
    /// let (options, name) = port.opened_as();
    /// let again = options.clone().rx_only().open(name)?;
    /// assert_eq!(again.tx_rings(), 0);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn opened_as(&self) -> (&OpenOptions, &str) {
        (&self.opened.options, &self.opened.spec)
    }

    /// Opens the port that `spec` names, with all its rings; see [`PortSpec`](crate::PortSpec).
    pub fn open(spec: &str) -> Result<Port, Error> {
        Port::options().open(spec)
    }

    /// Opens a port in a particular way.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::options().exclusive().open("vale0:a")?;
    /// # drop(port);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }

    /// The port's name.
    pub fn name(&self) -> &str {
        self.binding.name()
    }

    /// What it is: a port of a switch, a pipe's end, an interface, …
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::PortKind;
    ///
    /// assert_eq!(Port::open("vale0:a")?.kind(), PortKind::Vale);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn kind(&self) -> PortKind {
        self.binding.kind()
    }

    /// Id of the region that the port's buffers are in.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let a = Port::open("vale0:a")?;
    /// // Frames move between the two without copying.
    /// let beside = Port::options().region(a.mem_id()).open("vale1:b")?;
    /// assert_eq!(beside.mem_id(), a.mem_id());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn mem_id(&self) -> u16 {
        self.binding.registration().mem_id
    }

    /// Whether frames can move between this port and `other` without copying.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (one, other) = (Port::open("p{1")?, Port::open("p}1")?);
    /// assert!(one.shares_region_with(&other));
    /// # Ok::<(), ringway::Error>(())
    /// ```
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

    /// Index of an open transmit ring within the port; host rings come after the others. `None`
    /// if there is no ring `ring`.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::options().tx_rings(2).open("vale0:a")?;
    /// assert_eq!((port.tx_index(1), port.tx_index(2)), (Some(1), None));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn tx_index(&self, ring: usize) -> Option<u16> {
        self.binding.rings(Dir::Tx).get(ring).map(BoundRing::index)
    }

    /// Index of an open receive ring within the port; host rings come after the others. `None`
    /// if there is no ring `ring`.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::options().rx_rings(2).open("vale0:a")?;
    /// assert_eq!((port.rx_index(1), port.rx_index(2)), (Some(1), None));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn rx_index(&self, ring: usize) -> Option<u16> {
        self.binding.rings(Dir::Rx).get(ring).map(BoundRing::index)
    }

    /// A transmit ring. Panics if there is no ring `index`.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let mut tx = port.tx(0);
    /// tx.push(&[0xff; 60]);
    /// tx.sync();
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn tx(&mut self, index: usize) -> TxRing<'_> {
        TxRing::new(&self.binding.rings(Dir::Tx)[index])
    }

    /// A receive ring. Panics if there is no ring `index`.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// for frame in port.rx(0).batch(64) {
    ///     println!("{} bytes", frame.len());
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn rx(&mut self, index: usize) -> RxRing<'_> {
        RxRing::new(&self.binding.rings(Dir::Rx)[index])
    }

    /// A transmit ring and a receive ring at once: to send back what comes. Panics if there are no such
    /// rings.
    pub fn tx_and_rx(&mut self, tx: usize, rx: usize) -> (TxRing<'_>, RxRing<'_>) {
        let rings = |dir| self.binding.rings(dir);
        (TxRing::new(&rings(Dir::Tx)[tx]), RxRing::new(&rings(Dir::Rx)[rx]))
    }

    /// All rings at once: to forward, or to hand to threads.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use std::thread;
    ///
    /// let mut port = Port::options().tx_rings(2).open("vale0:a")?;
    /// let (tx, _rx) = port.split();
    /// thread::scope(|scope| {
    ///     for mut ring in tx {
    ///         scope.spawn(move || {
    ///             ring.push(&[0xff; 60]);
    ///             ring.sync();
    ///         });
    ///     }
    /// });
    /// assert_eq!(port.tx_stats().tx_packets, 2);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn split(&mut self) -> (Vec<TxRing<'_>>, Vec<RxRing<'_>>) {
        let tx = self.binding.rings(Dir::Tx).iter().map(TxRing::new).collect();
        let rx = self.binding.rings(Dir::Rx).iter().map(RxRing::new).collect();
        (tx, rx)
    }

    /// Fails if nothing can come of a wait, whatever happens: of one for room in a monitor's tx
    /// ring, of one for packets when the monitored port was closed, and of any when the interface
    /// has gone, or the daemon that the rings need: who only syncs is told so here, some thousand
    /// syncs later. Of a capture file it tells the end, and what is wrong with it.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::Interest;
    ///
    /// let mut port = Port::open("vale0:a")?;
    /// loop {
    ///     // A program that only syncs asks now and then whether anything can come of it.
    ///     for _ in 0..1000 {
    ///         port.rx(0).sync();
    ///     }
    ///     port.check(Interest::Rx)?;
    /// #   break;
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn check(&self, interest: Interest) -> Result<(), Error> {
        if self.is_shut() {
            return Err(closed(self.name()).into());
        }
        if self.daemon_fd().is_some_and(has_hung_up) {
            return Err(self.gone());
        }
        interest.dirs().try_for_each(|dir| self.binding.check_local(dir))?;
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
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::Interest;
    ///
    /// let mut port = Port::open("vale0:a")?;
    /// assert!(port.poll(Interest::Tx), "a new port has room to send");
    /// assert!(!port.poll(Interest::Rx));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn poll(&mut self, interest: Interest) -> bool {
        for dir in interest.dirs() {
            self.binding.sync(dir);
        }
        self.ready(interest)
    }

    /// Syncs, and returns whether there are packets or free slots. Packets that are in the ring come before an error.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), if there is nothing.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::Interest;
    ///
    /// let mut port = Port::open("vale0:a")?;
    /// while port.poll_or_check(Interest::Rx)? {
    ///     for frame in port.rx(0).batch(64) {
    ///         println!("{} bytes", frame.len());
    ///     }
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn poll_or_check(&mut self, interest: Interest) -> Result<bool, Error> {
        if self.poll(interest) {
            return Ok(true);
        }
        let Err(error) = self.check(interest) else { return Ok(false) };
        // Packets may have arrived between `poll` and `check`.
        match interest.dirs().any(|dir| dir == Dir::Rx) && self.poll(Interest::Rx) {
            true => Ok(true),
            false => Err(error),
        }
    }

    /// Whether a ring had packets or free slots at its last sync. Received packets count in a ring that has ended, too.
    pub(crate) fn ready(&self, interest: Interest) -> bool {
        // A packet of several slots whose last slot will not come does not count.
        let counts = |dir| !self.binding.fails(dir) || dir == Dir::Rx && self.binding.has_packet();
        interest.dirs().any(|dir| self.binding.ready(dir) && counts(dir))
    }

    /// Whether nothing can come of a wait: [`check`](Self::check) says why.
    pub(crate) fn fails(&self, interest: Interest) -> bool {
        self.is_shut() || interest.dirs().any(|dir| self.binding.fails(dir))
    }

    /// A descriptor that hangs up when the daemon that serves the rings ends; `None` where they need
    /// no daemon.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (port, pipe) = (Port::open("vale0:a")?, Port::open("p{1")?);
    /// for port in [&port, &pipe] {
    ///     match port.daemon_fd() {
    ///         Some(_connection) => println!("{} ends with its daemon", port.name()),
    ///         None => println!("{} needs no daemon", port.name()),
    ///     }
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn daemon_fd(&self) -> Option<BorrowedFd<'_>> {
        self.session.connection().filter(|_| self.binding.is_served())
    }

    /// The connection to the daemon; `None` where another registry has opened the port.
    fn connection(&self) -> Option<BorrowedFd<'_>> {
        self.session.connection()
    }

    /// Whether the system daemon has opened it, at its usual place. It stays so when the port is [shut](Self::shut).
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::open("vale0:a")?;
    /// if !port.is_of_system_daemon() {
    ///     println!("{} is seen by programs of this user alone", port.name());
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn is_of_system_daemon(&self) -> bool {
        self.opened.is_of_system()
    }

    /// Whether the daemon that has opened it has ended, though the port may go on without it.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::open("p{1")?;
    /// if port.has_outlived_daemon() {
    ///     println!("{} goes on, but nothing new can be opened beside it", port.name());
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn has_outlived_daemon(&self) -> bool {
        self.connection().is_some_and(has_hung_up)
    }

    /// Packets that have been received, and not read.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (mut a, mut b) = (Port::open("p{1")?, Port::open("p}1")?);
    /// a.tx(0).push(&[0; 60]);
    /// a.tx(0).sync();
    /// b.rx(0).sync();
    /// assert_eq!(b.unread(), 1);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn unread(&self) -> u64 {
        self.binding.unread()
    }

    /// Lets go of the rings, and of what it has at the daemon, and keeps the memory: what was received, and handed
    /// out, stays where it lies. The port has no rings from now on, and does nothing. Returns how many packets its
    /// switch has not taken of those that it was to send: they are lost. What a pipe has sent stays for the other end,
    /// until both are closed, and does not count.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let untaken = port.shut();
    /// assert!(untaken == 0 && port.is_shut());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn shut(&mut self) -> u64 {
        let untaken = self.binding.untaken();
        let barrier = CloseBarrier::to(&self.binding);
        self.binding.shut();
        self.session = Session::closed(self.name());
        drop(barrier);
        untaken
    }

    /// Whether it was [shut](Self::shut): then every wait fails.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// assert!(!port.is_shut());
    /// port.shut();
    /// assert!(port.is_shut() && port.wait_rx(None).is_err());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn is_shut(&self) -> bool {
        self.binding.all_rings().next().is_none()
    }

    /// The daemon has hung up.
    pub(crate) fn gone(&self) -> Error {
        Error::Gone { name: self.name().into() }
    }

    /// What the port's rings have counted.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (mut a, mut b) = (Port::open("p{1")?, Port::open("p}1")?);
    /// a.tx(0).push(&[0; 60]);
    /// a.tx(0).sync();
    /// b.rx(0).sync();
    /// assert_eq!((a.stats().tx_packets, b.stats().rx_packets), (1, 1));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.binding.stats()
    }

    /// The same of the transmit rings alone.
    pub fn tx_stats(&self) -> Stats {
        self.binding.stats_of(Dir::Tx)
    }

    /// The same of the receive rings alone.
    pub fn rx_stats(&self) -> Stats {
        self.binding.stats_of(Dir::Rx)
    }

    /// Changes which frames the port gets of those that its interface receives, between one frame
    /// and the next: what matches the old filter and the new is not lost. Counters begin anew; see
    /// [`Control::ports`](crate::Control::ports). Other programs that have the same receive rings
    /// are concerned too.
    ///
    /// # Errors
    /// [`Error::Name`] for a port of another kind: what it was opened with stays.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::{Filter, Port};
    ///
    /// let port = Port::options().rx_only().filter(Filter::new("udp port 53")?).open("netmap:eth0")?;
    /// port.set_filter(Filter::new("udp port 53 or udp port 5353")?)?;
    /// port.clear_filter()?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn set_filter(&self, filter: Filter) -> Result<(), Error> {
        self.filter(Some(filter))
    }

    /// The port gets every frame again.
    pub fn clear_filter(&self) -> Result<(), Error> {
        self.filter(None)
    }

    fn filter(&self, filter: Option<Filter>) -> Result<(), Error> {
        if self.kind() != PortKind::Nic && !self.is_shut() {
            let problem = "the filters of network interfaces alone can be changed";
            let error = ringway_proto::Error::new(Cause::Unsupported, problem).at(self.name());
            return Err(error.remedy("open the port again with the other filter").into());
        }
        let filter = filter.map(Into::into);
        let request = Request::SetFilter { name: String::new(), rings: RxSelector::Queues, filter };
        self.session.call(request).map(|((), _)| ())
    }

    /// Changes what decides about each frame that the port's interface receives, between one frame and the
    /// next. Counters begin anew; see [`Control::ports`](crate::Control::ports). Other programs that have the
    /// same receive rings are concerned too.
    ///
    /// ```no_run
    /// // Needs a network interface.
    /// use ringway::{Action, Ebpf, Port};
    ///
    /// // All to the port, and later none: XDP_PASS is 2, XDP_DROP 1.
    /// let always = |verdict| {
    ///     let result = Ebpf { code: 0xb7, registers: 0, offset: 0, immediate: verdict };
    ///     let exit = Ebpf { code: 0x95, registers: 0, offset: 0, immediate: 0 };
    ///     Action::instructions("always", vec![result, exit])
    /// };
    /// let port = Port::options().rx_only().action(always(2)).open("netmap:eth0")?;
    /// port.set_action(always(1))?;
    /// port.clear_action()?;
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn set_action(&self, action: Action) -> Result<(), Error> {
        self.action(Some(action))
    }

    /// The port has no action program any more.
    pub fn clear_action(&self) -> Result<(), Error> {
        self.action(None)
    }

    fn action(&self, action: Option<Action>) -> Result<(), Error> {
        let action = action.map(Action::request);
        let request = Request::SetAction { name: String::new(), rings: RxSelector::Queues, action };
        self.session.call(request).map(|((), _)| ())
    }

    /// The layer below.
    #[doc(hidden)]
    pub fn binding(&self) -> &Binding {
        &self.binding
    }
}
