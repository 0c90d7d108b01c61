//! A port that is open in this process: its region mapped, its rings with their drivers.
//!
//! The layer below both the Rust interface and the personalities. Everything that another
//! process could need is in the region; what is here are this process's own handles, made
//! afresh from the daemon's answer wherever the descriptor turns up.

use std::{
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::{BusyPoll, CsbMode, Doorbell, Driver, Kring, Looking, Outcome, View};
use ringway_mirror::{TimeSource, has_times};
use ringway_proto::{Grant, Options, PortKind, Registration, Request, RingBackend};
use ringway_region::{NetifView, Region, RingView, Span};
use ringway_ring::fetch_indirect;
use rustix::{
    event::PollFlags,
    fd::{AsFd, BorrowedFd, OwnedFd},
};

use crate::{
    batch::held,
    driver::{GrantFds, RingDriver},
    environment::add_environment,
    error::Error,
    forward::Stack,
    link_removal::LinkRemovalWatch,
    liveness::DaemonLiveness,
    local_filter::LocalFilter,
    monitors::{Ask, Monitored, Monitors},
    retry::Retry,
    session::Session,
};

/// A mapped port.
#[derive(Debug)]
pub struct Binding {
    name: String,
    kind: PortKind,
    registration: Registration,
    netif_offset: u64,
    options: Options,
    switch_owner: Option<u32>,
    /// Extra buffers as they were granted, where that was to this process.
    granted: Vec<Span>,
    region: Arc<Region>,
    tx: Vec<BoundRing>,
    rx: Vec<BoundRing>,
    /// Somebody else serves the rings: without a daemon they stand still.
    served: bool,
    timestamps: bool,
    /// For rings of an interface.
    link_removal: Option<LinkRemovalWatch>,
    pub(crate) stack: Stack,
    busy_poll: BusyPoll,
}

/// One ring of a mapped port.
#[derive(Debug)]
pub struct BoundRing {
    kring: Kring,
    driver: RingDriver,
    monitors: Monitors,
    doorbell: Doorbell,
    /// What directs an interface's traffic to the ring, held for as long as the ring is.
    _program: Option<OwnedFd>,
    /// For a ring whose driver nobody wakes.
    retry: Option<Retry>,
    /// Whether it stands still without the daemon, and what notices that.
    served: bool,
    liveness: Option<DaemonLiveness>,
    /// Of a program that does not wait.
    looking: Looking,
    /// Whether slots may name memory outside the region.
    indirect: bool,
    /// Where received frames have their timestamps.
    times: TimeSource,
    /// A capture file is behind it.
    file: bool,
    /// What of the frames received the program wants, where the kernel has no filter for it.
    filter: Option<LocalFilter>,
    index: u16,
}

/// What rings have done since the port was made, the kernel's part included: one ring, or all of a
/// port's together.
///
/// What a switch has lost on the way to one of its ports is with the port's first receive ring. What
/// it has dropped of the port's own packets, and why, is in [`Control::switches`](crate::Control::switches).
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::Stats;
///
/// let port = Port::open("vale0:a")?;
/// let Stats { ring_full, too_long, too_short, bad_slot, bad_index, .. } = port.stats();
/// println!("{} packets are lost", ring_full + too_long + too_short + bad_slot + bad_index);
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets sent by an interface or to a file; on other ports slots, of which a packet that is longer
    /// than a buffer takes several.
    pub tx_packets: u64,
    /// The same of those received.
    pub rx_packets: u64,
    /// Syncs refused because head or cur were outside the ring.
    pub bad_index: u64,
    /// Slots with an invalid buffer or length.
    pub bad_slot: u64,
    /// Packets longer than the path allows.
    pub too_long: u64,
    /// Packets lost because the next queue was full.
    pub ring_full: u64,
    /// Packets shorter than an Ethernet header.
    pub too_short: u64,
    /// Packets that asked hardware for what cannot be.
    pub bad_offload: u64,
    /// System calls made to wake somebody.
    pub kicks: u64,
}

impl Binding {
    /// Maps what a [`Request::Register`] or [`Request::Describe`] was answered with.
    pub fn new(grant: &Grant, fds: Vec<OwnedFd>) -> Result<Binding, Error> {
        let grant_error =
            |problem: &str| Error::Grant { name: grant.name.clone(), problem: problem.into() };
        let mut fds = GrantFds::new(fds);
        let memfd = fds.take(0).ok_or_else(|| grant_error("no memory came with it"))?;
        let region =
            Region::open(memfd, grant.mem_id, grant.layout).map_err(|error| match error {
                ringway_region::Error::Open { source, .. }
                    if source.raw_os_error() == Some(libc::ENOMEM) =>
                {
                    Error::Memory { name: grant.name.clone(), source }
                }
                error => grant_error(&error.to_string()),
            })?;
        let binding = Binding::map(grant, Arc::new(region), &mut fds)
            .ok_or_else(|| grant_error("its rings do not fit its memory"))?;
        binding.list_extra_bufs();
        binding.use_huge_pages();
        Ok(binding)
    }

    /// Asks for huge pages for the buffers of the rings: thousands of packets take more small pages than the TLB has
    /// entries. A huge page that holds only a few of these buffers is not asked for. Buffers of an interface have
    /// their pages already.
    fn use_huge_pages(&self) {
        /// Buffers of these rings that a huge page holds, of about 1000, at the least.
        const LEAST: usize = 128;
        if self.link_removal.is_some() {
            return;
        }
        let layout = self.region.layout();
        let views = self.tx.iter().chain(&self.rx).map(|ring| ring.kring.ring());
        let bufs = views.flat_map(|ring| (0..ring.num_slots()).map(|at| ring.slot(at).buf_idx));
        let bufs = bufs.filter_map(|buf| layout.bufs.object(buf));
        self.region.use_huge_pages(bufs, LEAST);
    }

    /// Lists the extra buffers that were granted with this answer, from `ni_bufs_head` on (S-MEM-9).
    /// What was in their first bytes is gone: list them anew after memory was copied into the region.
    pub fn list_extra_bufs(&self) {
        if let Some(netif) = self.netif().filter(|_| !self.granted.is_empty()) {
            netif.list_extra_bufs(&self.region, &self.granted);
        }
    }

    /// The interface object of the handle.
    pub(crate) fn netif(&self) -> Option<NetifView> {
        let ifs = &self.region.layout().ifs;
        let object = self.netif_offset.checked_sub(ifs.offset)? / u64::from(ifs.size);
        NetifView::new(&self.region, object.try_into().ok()?)
    }

    fn map(grant: &Grant, region: Arc<Region>, fds: &mut GrantFds) -> Option<Binding> {
        let (mut tx, mut rx) = (Vec::new(), Vec::new());
        for ring in &grant.rings {
            let kring = Kring::open(&region, ring.object, ring.dir, ring.num_slots)?;
            let driver = RingDriver::new(&region, ring, fds)?;
            let doorbell = fds.take(ring.doorbell)?.into();
            let silent = ring.dir == Dir::Tx && driver.socket().is_some();
            let retry = if silent { Some(Retry::new().ok()?) } else { None };
            let _program = match ring.link {
                RingBackend::Xdp { program: Some(program), .. }
                | RingBackend::Packet { program: Some(program), .. } => Some(fds.take(program)?),
                _ => None,
            };
            let times = match ring.link {
                RingBackend::Xdp { timestamps: true, .. }
                | RingBackend::Packet { timestamps: Some(_), .. } => TimeSource::Buffer,
                RingBackend::Monitor { .. } if has_times(&kring) => TimeSource::Slot,
                _ => TimeSource::Clock,
            };
            let (index, monitors) = (ring.index, Monitors::new(ring.dir, ring.index, times));
            let bound = BoundRing {
                kring,
                driver,
                monitors,
                doorbell,
                _program,
                retry,
                served: is_served(&ring.link),
                liveness: None,
                looking: Looking::default(),
                indirect: false,
                times,
                file: false,
                filter: None,
                index,
            };
            match ring.dir {
                Dir::Tx => tx.push(bound),
                Dir::Rx => rx.push(bound),
            }
        }
        let has_sockets = tx.iter().chain(&rx).any(|ring| ring.driver.socket().is_some());
        Some(Binding {
            name: grant.name.clone(),
            kind: grant.kind,
            registration: grant.registration,
            netif_offset: grant.netif_offset,
            options: grant.options.clone(),
            switch_owner: grant.switch_owner,
            granted: grant.extra_bufs.clone(),
            served: tx.iter().chain(&rx).any(|ring| ring.served),
            timestamps: grant.timestamps,
            link_removal: if has_sockets { LinkRemovalWatch::new() } else { None },
            stack: Stack::default(),
            busy_poll: BusyPoll::new(),
            region,
            tx,
            rx,
        })
    }

    /// Lets the program send from memory of its own, by slots with NS_INDIRECT (S-VALE-9). It must
    /// be one that knows what it names.
    pub fn fetching_indirect(mut self) -> Binding {
        for ring in &mut self.tx {
            ring.indirect = matches!(ring.driver, RingDriver::WorkerServed(_));
        }
        self
    }

    /// Whether the program may send from memory of its own.
    pub fn fetches_indirect(&self) -> bool {
        self.tx.iter().any(|ring| ring.indirect)
    }

    /// The port is called `name` from now on, and `driver` moves the packets of its only ring.
    #[cfg(feature = "files")]
    pub(crate) fn moved_by(mut self, name: &str, driver: RingDriver) -> Binding {
        self.name = name.into();
        if let Some(ring) = self.tx.iter_mut().chain(&mut self.rx).next() {
            ring.driver = driver;
            ring.times = TimeSource::Buffer;
            ring.file = true;
        }
        self
    }

    /// Leaves only what matches in the receive rings: for ports in front of which the kernel has no
    /// filter.
    pub(crate) fn filtering(mut self, filter: &ringway_proto::Filter) -> Binding {
        for ring in &mut self.rx {
            ring.filter = Some(LocalFilter::new(filter, ring.file));
        }
        self
    }

    /// Lets go of the rings and of what drives them; the memory stays.
    pub(crate) fn shut(&mut self) {
        (self.tx, self.rx, self.link_removal) = (Vec::new(), Vec::new(), None);
        (self.stack, self.served) = (Stack::default(), false);
    }

    /// Packets that were published for sending, and that nothing has taken yet.
    pub(crate) fn untaken(&self) -> u64 {
        let is_served = |ring: &&BoundRing| matches!(ring.driver, RingDriver::WorkerServed(_));
        self.tx.iter().filter(is_served).map(BoundRing::untaken).sum()
    }

    /// Packets in the receive rings.
    pub(crate) fn unread(&self) -> u64 {
        self.rx
            .iter()
            .map(|ring| packets(ring.kring.ring(), ring.kring.ring().head(), ring.kring.fill()))
            .sum()
    }

    /// Ends what local drivers write.
    #[cfg(feature = "files")]
    pub(crate) fn finish_local(&self) {
        let local = self.tx.iter().filter_map(|ring| Some((ring, ring.driver.local()?)));
        local.for_each(|(ring, driver)| driver.finish(&ring.kring));
    }

    /// What local drivers say of a direction; see [`Port::check`](crate::Port::check).
    pub(crate) fn check_local(&self, dir: Dir) -> Result<(), Error> {
        self.rings(dir).iter().try_for_each(|ring| {
            ring.driver.local().map_or(Ok(()), |driver| driver.check(&ring.kring, &self.name))
        })
    }

    /// Lets the binding ask who monitors its rings, and for the way to the stack behind it: unless
    /// it can, it feeds nobody, and forwards nothing.
    pub fn asking(mut self, ask: Arc<dyn Ask>) -> Binding {
        self.stack.ask = Some(ask.clone());
        for ring in self.tx.iter_mut().chain(&mut self.rx) {
            ring.monitors.ask = Some(ask.clone());
        }
        self
    }

    /// Lets rings that stand still without the daemon notice when it ends, by the connection that the
    /// binding stands for: of that it must hold no copy for longer than the binding.
    pub fn noticing(mut self, connection: Arc<OwnedFd>) -> Binding {
        for ring in self.tx.iter_mut().chain(&mut self.rx).filter(|ring| ring.served) {
            ring.liveness = Some(DaemonLiveness::of(&connection));
        }
        self
    }

    /// Whether the binding may have to ask something: this process moves the packets of the rings,
    /// and so has their monitors to feed, or there is a stack behind the port.
    pub fn may_ask(&self) -> bool {
        let moves = matches!(self.kind, PortKind::Pipe | PortKind::Nic | PortKind::Monitor);
        moves || self.has_stack()
    }

    /// Registers `name` on `session`, and maps it. What the options do not ask for, the
    /// [environment](crate::add_environment) may.
    pub fn register(
        session: &Session,
        name: &str,
        registration: Registration,
        mut options: Options,
    ) -> Result<Binding, Error> {
        add_environment(name, &registration, &mut options)?;
        let (grant, fds) = session.call::<Box<Grant>>(Request::Register {
            name: name.into(),
            registration,
            options: Box::new(options),
        })?;
        let mut binding = Binding::new(&grant, fds)?;
        if binding.is_served()
            && let Some(connection) = session.copy()?
        {
            binding = binding.noticing(connection);
        }
        if binding.may_ask() {
            return Ok(binding.asking(session.asker()?));
        }
        Ok(binding)
    }

    /// The name that the port was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of the port.
    pub fn kind(&self) -> PortKind {
        self.kind
    }

    /// The registration as it was granted.
    pub fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Byte of the region at which the handle's interface begins.
    pub fn netif_offset(&self) -> u64 {
        self.netif_offset
    }

    /// For a port of a switch: the user whose the switch is, if it is neither this one nor root.
    /// That user decides where the switch's frames go.
    pub fn switch_owner(&self) -> Option<u32> {
        self.switch_owner
    }

    /// The options of the registration, with their outputs.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The region that the port's rings are in.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The rings of one direction.
    #[inline]
    pub fn rings(&self, dir: Dir) -> &[BoundRing] {
        match dir {
            Dir::Tx => &self.tx,
            Dir::Rx => &self.rx,
        }
    }

    /// All rings, tx before rx.
    pub fn all_rings(&self) -> impl Iterator<Item = &BoundRing> {
        self.tx.iter().chain(&self.rx)
    }

    /// The marks of this binding's CSB mode. `None` where there is no such mode: without rings,
    /// or with rings that others may have open too (S-CSB-2, S-CSB-6).
    #[inline]
    pub fn csb_mode(&self) -> Option<&CsbMode> {
        let exclusive = self.registration.exclusive;
        let first = if exclusive { self.all_rings().next() } else { None };
        first.map(|ring| ring.kring.csb_mode())
    }

    /// Whether the program's cursors are not in the rings.
    #[inline]
    pub fn in_csb_mode(&self) -> bool {
        self.csb_mode().is_some_and(CsbMode::is_on)
    }

    /// Whether the rings stand still without the daemon.
    pub fn is_served(&self) -> bool {
        self.served
    }

    /// Syncs all rings of a direction: NIOCTXSYNC or NIOCRXSYNC. False if any sync was an
    /// [error](Outcome::is_error).
    #[inline]
    pub fn sync(&self, dir: Dir) -> bool {
        let mut good = true;
        for ring in self.rings(dir) {
            if dir == Dir::Rx && Binding::is_transparent(ring) {
                self.forward(ring);
            }
            good &= !ring.sync().is_error();
            if dir == Dir::Rx {
                ring.kring.stamp(self.timestamps);
            }
        }
        good
    }

    /// Whether syncs of a direction do nothing, now or ever: those of a monitor's tx ring, of its
    /// rx rings when the monitored port was closed, and all when the interface or the daemon has gone.
    pub fn fails(&self, dir: Dir) -> bool {
        self.is_gone(dir) || self.rings(dir).iter().any(|ring| ring.driver.fails(&ring.kring))
    }

    /// Whether what moved the packets of these rings has gone: the interface (S-LIFE-9), or the daemon,
    /// as far as somebody has [noticed](Self::noticing).
    pub fn is_gone(&self, dir: Dir) -> bool {
        self.kind != PortKind::Monitor && self.rings(dir).iter().any(|ring| ring.kring.is_ended())
    }

    /// Whether opening the port takes its traffic away from other programs; see
    /// [`CloseBarrier`](crate::CloseBarrier).
    pub fn keeps_traffic(&self) -> bool {
        self.all_rings().any(|ring| ring.keeps_traffic().is_some())
    }

    /// Whether any ring of the direction has slots for the program.
    #[inline]
    pub fn ready(&self, dir: Dir) -> bool {
        self.rings(dir).iter().any(|r| r.kring.ready())
    }

    /// The program has looked for what has come by any of the receive rings, without waiting for it.
    #[inline]
    pub fn looked(&self) {
        if self.served
            && let Some(first) = self.rx.first()
        {
            first.looked(self.ready(Dir::Rx));
        }
    }

    /// Whether a receive ring holds a complete packet.
    #[cold]
    pub fn has_packet(&self) -> bool {
        self.rings(Dir::Rx).iter().any(|bound| {
            let ring = bound.kring.ring();
            let first = ring.head().min(ring.num_slots() - 1);
            let mut places = (0..held(ring) as u32).map(|n| ring.advance(first, n));
            places.any(|at| ring.plain_slot(at).flags & NS_MOREFRAG == 0)
        })
    }

    /// Announces a wait on all rings of a direction: the doorbells are drained, and the
    /// service side rings them for what is new from now on. Sync and look once more before sleeping; if there is
    /// something after all, and this returned true, [`disarm`](Self::disarm).
    pub fn arm(&self, dir: Dir) -> bool {
        let mut drained = false;
        for ring in self.rings(dir) {
            drained |= ring.doorbell.drain();
            ring.kring.csb().app.arm();
            if let Some(retry) = &ring.retry {
                retry.arm(&ring.kring);
            }
        }
        if let Some(link_removal) = &self.link_removal {
            let other = if dir == Dir::Tx { Dir::Rx } else { Dir::Tx };
            link_removal.look(self.rings(dir), self.rings(other));
        }
        drained
    }

    /// What decides whether a wait for rings of the port begins with looking for a moment. `None`: it does not,
    /// as nothing comes from outside of this program.
    pub fn busy_poll(&self) -> Option<&BusyPoll> {
        let is_local = |ring: &BoundRing| matches!(ring.driver, RingDriver::Local(_));
        (!self.all_rings().all(is_local)).then_some(&self.busy_poll)
    }

    /// What to sleep on after [`arm`](Self::arm), and the events to ask for.
    pub fn wait_sources(
        &self,
        dir: Dir,
    ) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> + Clone {
        let rings = self.rings(dir).iter().flat_map(BoundRing::wait_sources);
        rings.chain(self.link_removal.as_ref().map(LinkRemovalWatch::source))
    }

    /// The wait does not come to be. The doorbell that was drained may have been meant for
    /// somebody else who waits on the same ring: ring it again.
    pub fn disarm(&self, dir: Dir) {
        self.rings(dir).iter().for_each(|ring| ring.doorbell.notify());
    }

    /// Counters, summed over the rings.
    pub fn stats(&self) -> Stats {
        sum(self.all_rings())
    }

    /// The same of one direction.
    pub fn stats_of(&self, dir: Dir) -> Stats {
        sum(self.rings(dir))
    }
}

/// Packets in so many slots, from `first` on.
fn packets(ring: &RingView, first: u32, slots: u32) -> u64 {
    let first = first.min(ring.num_slots() - 1);
    let ends = |n: &u32| ring.plain_slot(ring.advance(first, *n)).flags & NS_MOREFRAG == 0;
    (0..slots).filter(ends).count() as u64
}

fn sum<'r>(rings: impl IntoIterator<Item = &'r BoundRing>) -> Stats {
    let mut stats = Stats::default();
    rings.into_iter().for_each(|ring| ring.add_to(&mut stats));
    stats
}

impl BoundRing {
    /// What this ring alone has done.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.add_to(&mut stats);
        stats
    }

    /// Packets on their way to this receive ring that found no room, and those that were refused for another reason, as the
    /// ring's driver and a switch's worker have counted them in shared memory, modulo 2^64.
    pub fn lost(&self) -> [u64; 2] {
        let stats = self.stats();
        let refused = [stats.too_long, stats.bad_slot, stats.too_short, stats.bad_offload];
        [stats.ring_full, refused.into_iter().fold(0, u64::wrapping_add)]
    }

    fn add_to(&self, stats: &mut Stats) {
        let lost = self.driver.lost(&self.kring);
        let [no_room, too_long] = self.kring.csb().service.lost();
        let counters = self.kring.counters();
        let packets = match self.kring.dir() {
            Dir::Tx => &mut stats.tx_packets,
            Dir::Rx => &mut stats.rx_packets,
        };
        // The counters are in shared memory, where others may have written any number.
        let add = |sum: &mut u64, counter: &AtomicU64, more: u64| {
            *sum = sum.wrapping_add(counter.load(Relaxed)).wrapping_add(more);
        };
        add(packets, &counters.packets, 0);
        add(&mut stats.bad_index, &counters.bad_index, 0);
        add(&mut stats.bad_slot, &counters.bad_slot, lost.bad_slot);
        add(&mut stats.too_long, &counters.too_long, lost.too_long.wrapping_add(too_long));
        add(&mut stats.ring_full, &counters.ring_full, lost.ring_full.wrapping_add(no_room));
        add(&mut stats.too_short, &counters.too_short, 0);
        add(&mut stats.bad_offload, &self.kring.more_counters().bad_offload, 0);
        add(&mut stats.kicks, &counters.kicks, 0);
    }

    /// Reconciles the program's view of this ring with the driver.
    #[inline]
    pub fn sync(&self) -> Outcome {
        let outcome = self.sync_view(self.kring.ring());
        if let Some(filter) = &self.filter {
            self.sync_filtered(filter);
        }
        outcome
    }

    /// Takes out what the last sync has brought and is not wanted.
    #[cold]
    fn sync_filtered(&self, filter: &LocalFilter) {
        if filter.apply(self.kring.ring()) {
            // At once: the sender may wait for these slots.
            self.sync_view(self.kring.ring());
            if filter.apply(self.kring.ring()) {
                // The next sync releases them. A wait that is announced ends for that.
                self.doorbell.notify();
            }
        }
    }

    /// The program has looked for what has come, without waiting for it.
    #[inline]
    pub(crate) fn looked(&self, found: bool) {
        if self.served {
            self.looking.looked(found);
        }
    }

    /// As [`sync`](Self::sync), for a program whose cursors are in `view`.
    #[inline]
    pub fn sync_view(&self, view: &impl View) -> Outcome {
        if let Some(liveness) = &self.liveness
            && liveness.has_stopped()
        {
            self.kring.stop();
        }
        if self.indirect {
            fetch_indirect(&self.kring, view.cursors().head);
        }
        if self.monitors.is_unmonitored(self.kring.monitors()) {
            self.kring.sync_view(view, &self.driver)
        } else {
            self.sync_monitored(view)
        }
    }

    #[cold]
    fn sync_monitored(&self, view: &impl View) -> Outcome {
        self.kring.sync_view(view, &Monitored::new(&self.driver, &self.monitors))
    }

    /// Whether somebody else works on the ring, and has yet to take some of what was sent, or
    /// what was released for the ring's monitors.
    #[inline]
    pub fn is_behind(&self) -> bool {
        matches!(self.driver, RingDriver::WorkerServed(_))
            && !self.kring.is_ended()
            && match self.kring.dir() {
                Dir::Tx => !self.kring.is_taken(),
                Dir::Rx => !self.kring.is_taken_back(),
            }
    }

    fn untaken(&self) -> u64 {
        let ring = self.kring.ring();
        packets(ring, ring.next(self.kring.hwtail()), self.kring.fill())
    }

    /// Whether somebody else who works on the ring has moved its tail since the program was told.
    #[inline]
    pub fn has_news(&self) -> bool {
        matches!(self.driver, RingDriver::WorkerServed(_))
            && self.kring.last_tail() != self.kring.hwtail()
    }

    /// Where to ask, if the ring takes its traffic away from others: an interface's traffic is
    /// directed to it, or it is a monitor's ring with others behind it.
    pub(crate) fn keeps_traffic(&self) -> Option<&Monitors> {
        let directed = self.driver.socket().is_some();
        let keeps = directed || matches!(self.driver, RingDriver::Monitor(_));
        keeps.then_some(&self.monitors)
    }

    /// Whether the kernel has something to say of the interface that ends every wait until it is
    /// heard.
    pub(crate) fn has_failed(&self) -> bool {
        self.driver.has_failed()
    }

    /// Whether the kernel says that the interface has gone.
    pub(crate) fn has_lost_interface(&self) -> bool {
        self.driver.has_lost_interface()
    }

    /// The doorbell by which others wake the sleeper on this ring.
    pub fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// What to sleep on for this ring, and the events to ask for.
    pub fn wait_sources(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> + Clone {
        let heard = match (&self.retry, self.driver.socket()) {
            (None, Some(socket)) => socket,
            (None, None) => self.doorbell.as_fd(),
            (Some(retry), _) => retry.as_fd(),
        };
        // Polling the socket makes the kernel send, even if nothing is asked for.
        let driven = self.driver.socket().filter(|_| self.retry.is_some());
        let driven = driven.map(|socket| (socket, PollFlags::empty()));
        // A socket says nothing when its interface has gone: the daemon does, as long as there is one.
        let gone = self.driver.socket().map(|_| (self.doorbell.as_fd(), PollFlags::IN));
        [(heard, PollFlags::IN)].into_iter().chain(driven).chain(gone)
    }

    /// The ring with its service side's state.
    #[inline]
    pub fn kring(&self) -> &Kring {
        &self.kring
    }

    /// Whether frames have the times at which a monitor has seen them.
    #[inline]
    pub(crate) fn has_times_of_monitor(&self) -> bool {
        self.times == TimeSource::Slot
    }

    /// Whether a capture file is behind the ring.
    #[inline]
    pub(crate) fn is_file(&self) -> bool {
        self.file
    }

    /// Whether received frames have timestamps.
    #[inline]
    pub fn has_timestamps(&self) -> bool {
        self.times != TimeSource::Clock
    }

    /// When the frame was received that lies in slot `at`: see
    /// [`RxFrame::timestamp`](crate::RxFrame::timestamp).
    #[inline]
    pub fn timestamp(&self, at: u32) -> Option<NonZeroU64> {
        let ring = self.kring.ring();
        NonZeroU64::new(match self.times {
            TimeSource::Clock => return None,
            TimeSource::Buffer => ring.timestamp(ring.plain_slot(at).buf_idx)?,
            TimeSource::Slot => ring.slot(at).ptr,
        })
    }

    /// Index within the port and direction.
    pub fn index(&self) -> u16 {
        self.index
    }
}

/// Whether a ring stands still without the daemon.
fn is_served(link: &RingBackend) -> bool {
    matches!(
        link,
        RingBackend::Served { .. }
            | RingBackend::Monitor { served: true }
            | RingBackend::Xdp { program: None, .. }
            | RingBackend::Packet { program: None, .. }
    )
}
