//! The sockets by which the packets of an interface's queues travel, and what directs them there.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use ringway_abi::Dir;
use ringway_kring::Kring;
use ringway_nic_setup::{
    AttachMode, EgressRedirect, INJECTED, IngressDrop, IngressRedirect, InjectMark, InstalledRules,
    Installer, Interface, Loader, Mode, PrivatePair, QueueRule, RxSocket, Source, TxSocket,
    UnboundXsks, XdpProgram, Xsk, XskConfig, ZERO_COPY_CHUNK, beside, takes_chunks_of,
    zero_copy_room,
};
use ringway_proto::{Cause, Error, NicMode, Refusals, Result, RingBackend};
use ringway_region::{Layout, Region, Timestamps};
use ringway_xdp::{FrameMemory, MAX_FRAGS, RingSizes, XdpRx, can_be_mapped};

use crate::{
    bind_reply::Fds, mode_select::AttachFailure, nic_mode, nic_mode::ModeRequest,
    setup_error::nic_error,
};

/// What directs the frames of an interface to sockets. Held, here and by every client, for as long as
/// they are to come to us.
pub(crate) enum RxAttachment {
    /// They are redirected to AF_XDP sockets.
    Xdp(XdpProgram),
    /// AF_PACKET sockets listen to the interface; the stack is kept from hearing its frames.
    Packet(IngressDrop),
    /// Those that are not left to the stack are redirected to a pair, where AF_PACKET sockets listen.
    Redirected(IngressRedirect),
}

impl RxAttachment {
    /// What a client holds.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        match self {
            RxAttachment::Xdp(program) => program.link_fd(),
            RxAttachment::Packet(ingress_drop) => ingress_drop.link_fd(),
            RxAttachment::Redirected(redirect) => redirect.link_fd(),
        }
    }

    /// From now on nothing is directed to sockets, even while a client holds its descriptor.
    pub fn end(&self) {
        match self {
            RxAttachment::Xdp(program) => program.detach(),
            RxAttachment::Packet(ingress_drop) => ingress_drop.end(),
            RxAttachment::Redirected(redirect) => redirect.end(),
        }
    }

    /// Whether frames of several buffers come by.
    pub fn takes_frags(&self) -> bool {
        match self {
            RxAttachment::Xdp(program) => program.frags(),
            RxAttachment::Packet(_) | RxAttachment::Redirected(_) => true,
        }
    }

    /// Whether programs send to the stack from now on. The result is what would catch that.
    pub fn set_injected(&mut self, injected: bool) -> Result<InjectMark> {
        match self {
            RxAttachment::Xdp(program) => program.set_injected(injected).map_err(nic_error),
            RxAttachment::Packet(_) | RxAttachment::Redirected(_) => Ok(InjectMark::IngressDrop),
        }
    }

    /// Where sockets listen, if not to the interface.
    pub fn pair(&self) -> Option<&Arc<PrivatePair>> {
        match self {
            RxAttachment::Xdp(_) | RxAttachment::Packet(_) => None,
            RxAttachment::Redirected(redirect) => Some(redirect.pair()),
        }
    }

    /// From now on the frames of `queue` are the stack's.
    pub fn unset_queue(&mut self, queue: u32) {
        match self {
            RxAttachment::Xdp(program) => program.unset_queue(queue),
            RxAttachment::Packet(ingress_drop) => ingress_drop.set_queue(queue, false),
            RxAttachment::Redirected(redirect) => redirect.set_queue(queue, false),
        }
    }

    /// What the interface's program has, by queue.
    pub fn rules(&self) -> &[QueueRule] {
        match self {
            RxAttachment::Xdp(program) => program.rules(),
            RxAttachment::Packet(_) => &[],
            RxAttachment::Redirected(redirect) => redirect.rules(),
        }
    }

    /// What loads rules, where there may be any.
    pub fn loader(&self) -> Option<Loader> {
        match self {
            RxAttachment::Xdp(program) => Some(program.loader()),
            RxAttachment::Packet(_) => None,
            RxAttachment::Redirected(redirect) => Some(redirect.loader()),
        }
    }

    /// Whether the interface's program has these rules.
    pub fn has_rules(&self, rules: &[QueueRule]) -> bool {
        match self {
            RxAttachment::Xdp(program) => program.has_rules(rules),
            RxAttachment::Packet(_) => true,
            RxAttachment::Redirected(redirect) => redirect.has_rules(rules),
        }
    }

    /// What installs rules, where there may be any.
    pub fn installer(&self) -> Option<Installer> {
        match self {
            RxAttachment::Xdp(program) => Some(program.installer()),
            RxAttachment::Packet(_) => None,
            RxAttachment::Redirected(redirect) => Some(redirect.installer()),
        }
    }

    /// Whether these rules were installed for it.
    pub fn is_of(&self, installed: &InstalledRules) -> bool {
        match self {
            RxAttachment::Xdp(program) => program.is_of(installed),
            RxAttachment::Packet(_) => false,
            RxAttachment::Redirected(redirect) => redirect.is_of(installed),
        }
    }

    /// Takes note of rules that were installed [for it](Self::is_of).
    pub fn adopt(&mut self, installed: InstalledRules) {
        crate::fault::step();
        match self {
            RxAttachment::Xdp(program) => program.adopt(installed),
            RxAttachment::Packet(_) => {}
            RxAttachment::Redirected(redirect) => redirect.adopt(installed),
        }
    }

    /// From now on they come to the socket.
    pub fn set_queue(&mut self, queue: u32, socket: &Socket) -> Result<()> {
        match (self, socket) {
            (RxAttachment::Xdp(program), Socket::Xdp(xsk)) => {
                program.set_queue(queue, &xsk.socket).map_err(nic_error)
            }
            (RxAttachment::Packet(ingress_drop), Socket::Packet { rx, .. }) => {
                // First the socket receives them, then the stack does not.
                rx.listen(true).map_err(not_heard)?;
                ingress_drop.set_queue(queue, true);
                Ok(())
            }
            (RxAttachment::Redirected(redirect), Socket::Packet { rx, .. }) => {
                rx.listen(true).map_err(not_heard)?;
                redirect.set_queue(queue, true);
                Ok(())
            }
            _ => Err(Error::new(Cause::Gone, "the socket is of another mode than its interface")),
        }
    }
}

fn not_heard(cause: std::io::Error) -> Error {
    Error::io("the interface cannot be listened to", cause)
}

/// The socket of one queue.
pub(crate) enum Socket {
    Xdp(Xsk),
    /// One for each direction.
    Packet {
        rx: RxSocket,
        tx: TxSocket,
    },
}

impl Socket {
    pub fn mode(&self) -> NicMode {
        match self {
            Socket::Xdp(xsk) => nic_mode::of_socket(xsk.mode),
            Socket::Packet { .. } => NicMode::Packet,
        }
    }

    /// The AF_XDP socket, which binds the queue as long as any process has it.
    pub fn xdp(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Socket::Xdp(xsk) => Some(xsk.socket.fd.as_fd()),
            Socket::Packet { .. } => None,
        }
    }

    /// Descriptors that it holds.
    pub fn descriptors(&self) -> usize {
        match self {
            Socket::Xdp(_) => 1,
            Socket::Packet { .. } => 2,
        }
    }

    /// Whether packets may have several buffers.
    pub fn frags(&self) -> bool {
        match self {
            Socket::Xdp(xsk) => xsk.socket.frags,
            Socket::Packet { .. } => true,
        }
    }

    /// Buffers that a packet to be sent may have.
    pub fn max_frags(&self) -> u32 {
        match self {
            Socket::Xdp(xsk) => xsk.socket.max_segs,
            Socket::Packet { .. } => ringway_packet::MAX_FRAGS,
        }
    }

    /// The better modes that it was refused.
    pub fn refused(&self) -> Refusals {
        match self {
            Socket::Xdp(xsk) => nic_mode::refused_to_socket(&xsk.refused),
            Socket::Packet { .. } => Refusals::default(),
        }
    }

    /// From now on the socket receives nothing.
    pub fn stop_listening(&self) {
        if let Socket::Packet { rx, .. } = self {
            // Fails when the interface has gone.
            let _ = rx.listen(false);
        }
    }

    /// How a client reaches the queue; `program` is what it is to hold, if it may.
    pub fn link(
        &self,
        ring: LinkedRing,
        program: Option<BorrowedFd<'_>>,
        fds: &mut Fds,
    ) -> Result<RingBackend> {
        let LinkedRing { dir, queue, host, timestamps } = ring;
        Ok(match self {
            Socket::Xdp(xsk) => {
                let s = &xsk.socket.sizes;
                RingBackend::Xdp {
                    queue,
                    socket: fds.add(&xsk.socket.fd)?,
                    program: program.map(|program| fds.add(program)).transpose()?,
                    sizes: [s.fill, s.completion, s.rx, s.tx],
                    host,
                    frags: xsk.socket.frags,
                    max_segs: Some(xsk.socket.max_segs),
                    is_pair: xsk.socket.is_pair,
                    // The stack's own frames come by a pair that finishes them.
                    partial_csum: xsk.partial_csum && !host,
                    timestamps: timestamps.is_some(),
                }
            }
            Socket::Packet { rx, tx } => {
                let socket: &OwnedFd = match dir {
                    Dir::Tx => &tx.fd,
                    Dir::Rx => &rx.fd,
                };
                RingBackend::Packet {
                    queue,
                    socket: fds.add(socket)?,
                    program: program.map(|program| fds.add(program)).transpose()?,
                    blocks: [rx.geometry.block_size, rx.geometry.blocks],
                    timestamps,
                }
            }
        })
    }
}

/// Which ring of a queue is linked, of the NIC or of its stack, and what there is with its frames.
pub(crate) struct LinkedRing {
    pub dir: Dir,
    pub queue: u32,
    pub host: bool,
    pub timestamps: Option<Timestamps>,
}

/// Queues that are to be opened. It needs nothing of the registry: the kernel takes its time for it, so
/// another thread opens them.
pub(crate) struct Opening {
    pub interface: Interface,
    pub queues: Vec<u32>,
    pub region: Arc<Region>,
    pub slots: u32,
    /// How many of its buffers the kernel is to reach, from the first on.
    pub reach: u32,
    /// The rings that send, by the place of their queue.
    pub tx: Vec<Option<Kring>>,
    /// The rings that receive: the kernel gets their buffers.
    pub rx: Vec<Option<Kring>>,
    /// Whether frames have timestamps in front.
    pub timestamps: bool,
    /// Whether packets may have several buffers, where the kernel can do that.
    pub frags: bool,
    /// Whether what the stack sends is to be redirected from now on.
    pub redirects_egress: bool,
    /// Whether programs receive, what the interface's MTU allows.
    pub receives: bool,
}

/// How queues are opened.
#[derive(Clone)]
pub(crate) enum Entry {
    /// As the first of their interface, in the best mode that is asked for.
    First(ModeRequest),
    /// Beside others, by AF_XDP in their mode.
    JoinXdp(Option<NicMode>),
    /// Beside others, by AF_PACKET: at the interface, or at the pair.
    JoinPacket(Option<Arc<PrivatePair>>, Option<Timestamps>),
}

/// Queues that have been opened.
pub(crate) struct OpenedQueues {
    /// What directs the frames, if these are the first, and why its mode is no better one.
    pub first: Option<(RxAttachment, Refusals)>,
    pub sockets: Vec<Socket>,
    /// The rings whose buffers the kernel has: their objects in the region.
    pub lent: Vec<Option<u32>>,
    /// If that was asked for.
    pub egress_redirect: Option<EgressRedirect>,
}

impl Opening {
    /// Opens the queues. Runs in the interface's network namespace.
    pub fn open(&self, entry: Entry) -> Result<OpenedQueues> {
        if !self.redirects_egress {
            return self.open_sockets(entry);
        }
        let redirect = || EgressRedirect::begin(&self.interface);
        let (opened, egress_redirect) = beside(|| self.open_sockets(entry), redirect);
        let opened = opened?;
        Ok(OpenedQueues { egress_redirect: Some(egress_redirect.map_err(nic_error)?), ..opened })
    }

    fn open_sockets(&self, entry: Entry) -> Result<OpenedQueues> {
        let egress_redirect = None;
        let sockets = match entry {
            Entry::First(request) => {
                let (attachment, sockets, refusals) = self.open_best(request)?;
                let lent = self.objects();
                let first = Some((attachment, refusals));
                return Ok(OpenedQueues { first, sockets, lent, egress_redirect });
            }
            Entry::JoinXdp(mode) => {
                let sockets = self.make_xdp().and_then(|made| self.bind_xdp(mode.as_slice(), made));
                sockets.map_err(nic_error)?
            }
            Entry::JoinPacket(pair, timestamps) => {
                let open = |&queue| self.packet(pair.as_deref(), queue, timestamps);
                self.queues.iter().map(open).collect::<Result<_>>()?
            }
        };
        Ok(OpenedQueues { first: None, sockets, lent: self.objects(), egress_redirect })
    }

    fn objects(&self) -> Vec<Option<u32>> {
        self.rx.iter().map(|kring| kring.as_ref().map(Kring::object)).collect()
    }

    /// Opens the queues of an interface that nobody has yet in the best mode that is asked for, and
    /// may be had.
    fn open_best(&self, request: ModeRequest) -> Result<(RxAttachment, Vec<Socket>, Refusals)> {
        let open = |attach, modes: &[NicMode]| match attach {
            Some(attach) => self.by_xdp(attach, modes, &request),
            None => self.by_packet(request),
        };
        let name = &self.interface.name;
        // Of a driver without zero copy another reason is told.
        let shares_queue = request.shares_queue && self.interface.zero_copy;
        let request = ModeRequest { shares_queue, ..request };
        let ((attachment, sockets), refusals) =
            request.select(name, self.interface.converts_for_xdp(), open)?;
        Ok((attachment, sockets, refusals))
    }

    fn by_xdp(
        &self,
        attach: AttachMode,
        modes: &[NicMode],
        request: &ModeRequest,
    ) -> Result<(RxAttachment, Vec<Socket>), AttachFailure> {
        check_buffers(&self.interface, &self.region).map_err(AttachFailure::Refused)?;
        // What no mode of XDP has room for costs no card its link.
        self.check_length([MAX_FRAGS, self.region.layout().data_size()], request)?;
        if self.maps_too_early() {
            // A program that is attached for nothing costs some cards their link for seconds.
            return Err(AttachFailure::xdp(not_for_programs(&self.interface)));
        }
        let attach = || XdpProgram::attach_as(&self.interface, &[attach], request.timestamps);
        let (program, made) = beside(attach, || self.make_xdp());
        let program = program.map_err(AttachFailure::xdp)?;
        let attachment = RxAttachment::Xdp(program);
        let sockets = made.and_then(|made| self.bind_xdp(modes, made));
        let sockets = sockets.map_err(AttachFailure::xdp)?;
        let (frags, layout) = (attachment.takes_frags(), self.region.layout());
        let room = frame_room(sockets.iter(), frags, layout, self.slots);
        self.check_length(room, request)
            .inspect_err(|_| self.rx.iter().flatten().for_each(XdpRx::take_back))?;
        Ok((attachment, sockets))
    }

    /// S-REG-9: a frame that is received has a buffer, or several where the kernel can do that, but no more than it
    /// sends in one.
    fn check_length(&self, room: [u32; 2], request: &ModeRequest) -> Result<(), AttachFailure> {
        let (layout, is_asked) = (self.region.layout(), request.mode.is_some());
        let is_too_long = || too_long(&self.interface, room, layout, is_asked);
        match self.receives.then(is_too_long).flatten() {
            Some(error) => Err(AttachFailure::Refused(error)),
            None => Ok(()),
        }
    }

    /// Whether the kernel is one of those that [`not_for_programs`] is about. Where its release leaves that open, a
    /// socket tells that is bound to a pair of virtual interfaces, once in a process: kernels of distributions may
    /// have what came later.
    fn maps_too_early(&self) -> bool {
        static PROBED: AtomicBool = AtomicBool::new(false);
        if !PROBED.load(Relaxed) && is_before(rustix::system::uname().release(), [6, 4]) {
            // Where there can be no pair, the first socket of a port tells.
            let Ok(too_early) = self.probe() else { return false };
            MAPS_TOO_EARLY.store(too_early, Relaxed);
            PROBED.store(true, Relaxed);
        }
        MAPS_TOO_EARLY.load(Relaxed)
    }

    fn probe(&self) -> Result<bool, ringway_nic_setup::Error> {
        let pair = PrivatePair::for_probe(&self.interface)?;
        pair.inside(|inner| {
            let config = XskConfig { interface: inner, ..self.xsk_config(&[Mode::Copy]) };
            let xsk = Xsk::open(&config)?;
            Ok(can_be_mapped(xsk.socket.fd.as_fd(), &config.sizes) == Ok(false))
        })
    }

    fn by_packet(
        &self,
        request: ModeRequest,
    ) -> Result<(RxAttachment, Vec<Socket>), AttachFailure> {
        if !request.may_have_packet {
            let text = "an AF_PACKET socket reaches every interface, and you are granted some by \
                        name only; ask the daemon's operator to add you to nic_users";
            return Err(AttachFailure::Refused(Error::new(Cause::Denied, text)));
        }
        let attachment = match request.leaves_some {
            false => IngressDrop::begin(&self.interface).map(RxAttachment::Packet),
            // Where it was not asked for, it is not to hide that another has the frames.
            true => IngressRedirect::begin(&self.interface, request.mode.is_some())
                .map(RxAttachment::Redirected),
        };
        let attachment = attachment.map_err(AttachFailure::packet)?;
        let pair = attachment.pair().map(|pair| &**pair);
        let sockets = self.queues.iter().map(|&queue| self.packet(pair, queue, request.timestamps));
        let sockets = sockets.collect::<Result<_>>().map_err(AttachFailure::Refused)?;
        Ok((attachment, sockets))
    }

    /// Receives at the pair, if there is one, and sends by the interface.
    fn packet(
        &self,
        pair: Option<&PrivatePair>,
        queue: u32,
        timestamps: Option<Timestamps>,
    ) -> Result<Socket> {
        let Interface { name, index, .. } = &self.interface;
        let listen_to = |ifindex| {
            RxSocket::open(&Source {
                interface: name,
                ifindex,
                queue,
                queues: self.interface.rx_queues,
                ignored_mark: INJECTED,
                hardware_time: timestamps == Some(Timestamps::Hardware),
            })
        };
        let rx = match pair {
            Some(pair) => pair.inside(|inner| listen_to(inner.index)),
            None => listen_to(*index),
        };
        Ok(Socket::Packet {
            rx: rx.map_err(nic_error)?,
            tx: TxSocket::open(name, *index).map_err(nic_error)?,
        })
    }

    fn xsk_config<'a>(&'a self, modes: &'a [Mode]) -> XskConfig<'a> {
        // One more place than slots: a ring of n slots has at most n - 1 on loan.
        let entries = self.slots.next_power_of_two();
        XskConfig {
            interface: &self.interface,
            queue: 0,
            memory: FrameMemory::of_buffers(&self.region, self.reach),
            chunk_size: self.region.layout().bufs.size,
            sizes: RingSizes { fill: entries, completion: entries, rx: entries, tx: entries },
            frags: self.frags,
            modes,
        }
    }

    /// The AF_XDP sockets of the queues, for [`bind_xdp`](Self::bind_xdp).
    fn make_xdp(&self) -> Result<UnboundXsks, ringway_nic_setup::Error> {
        Xsk::make_all(&self.xsk_config(&[]), &self.queues)
    }

    /// Binds them, in the first of these modes that they may be had in.
    fn bind_xdp(
        &self,
        modes: &[NicMode],
        made: UnboundXsks,
    ) -> Result<Vec<Socket>, ringway_nic_setup::Error> {
        let modes = nic_mode::of_sockets(modes);
        let config = self.xsk_config(&modes);
        let krings = self.tx.iter().chain(&self.rx).flatten();
        krings.for_each(|kring| kring.owner().in_umem.store(self.reach, Relaxed));
        let fill = |place: usize, socket: BorrowedFd<'_>| match self.rx.get(place) {
            Some(Some(kring)) => lend(kring, &self.region, socket, config.sizes, self.timestamps),
            _ => Ok(()),
        };
        let opened = Xsk::bind_all(&config, &self.queues, made, fill).and_then(|opened| {
            let by_programs = |xsk: &Xsk| can_be_mapped(xsk.socket.fd.as_fd(), &config.sizes);
            match opened.first().map_or(Ok(true), by_programs) {
                Ok(true) => Ok(opened),
                Ok(false) => {
                    MAPS_TOO_EARLY.store(true, Relaxed);
                    Err(not_for_programs(&self.interface))
                }
                Err(cause) => Err(ringway_nic_setup::Error::Refused {
                    interface: self.interface.name.clone(),
                    what: "the rings of its AF_XDP socket cannot be mapped".into(),
                    cause: cause.into(),
                    remedy: "try again; if memory is short, raise the daemon's limits of it".into(),
                }),
            }
        });
        let opened = opened.inspect_err(|_| self.rx.iter().flatten().for_each(XdpRx::take_back))?;
        Ok(opened.into_iter().map(Socket::Xdp).collect())
    }
}

/// Gives the kernel the buffers of an rx ring, which no program has yet, before any frame is led to the socket:
/// what arrives from then on is not lost, although no program has synced yet (S-POLL-4).
pub(crate) fn lend(
    kring: &Kring,
    region: &Region,
    socket: BorrowedFd<'_>,
    sizes: RingSizes,
    timestamps: bool,
) -> std::io::Result<()> {
    // Mapped no longer than this: a mapping keeps the socket bound.
    let driver = XdpRx::new(socket.try_clone_to_owned()?.into(), sizes, region.layout())?;
    let driver = if timestamps { driver.with_timestamps() } else { driver };
    driver.lend(kring);
    Ok(())
}

/// Whether a kernel's release is from before a version.
fn is_before(release: &CStr, version: [u32; 2]) -> bool {
    let release = release.to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match [numbers.next(), numbers.next()] {
        [Some(Ok(major)), Some(Ok(minor))] => [major, minor] < version,
        _ => false,
    }
}

/// The kernel has turned out to be one of those that [`not_for_programs`] is about.
static MAPS_TOO_EARLY: AtomicBool = AtomicBool::new(false);

/// Kernels before 6.4 map no ring of a socket that is bound, and one that is not bound a program could bind to
/// any interface.
fn not_for_programs(interface: &Interface) -> ringway_nic_setup::Error {
    ringway_nic_setup::Error::Refused {
        interface: interface.name.clone(),
        what: "no AF_XDP socket can be passed to a program: this kernel maps its rings only before it is bound"
            .into(),
        cause: std::io::Error::from_raw_os_error(libc::EBUSY),
        remedy: "it takes Linux 6.4 (Debian 12 has newer ones in bookworm-backports)".into(),
    }
}

/// Buffers that a frame on its way to the programs of these sockets may have, at most, and the bytes of one.
pub(crate) fn frame_room<'a>(
    sockets: impl Iterator<Item = &'a Socket> + Clone,
    takes_frags: bool,
    layout: &Layout,
    slots: u32,
) -> [u32; 2] {
    let frags = sockets.clone().map(Socket::max_frags).min().unwrap_or(1);
    let buffers = if takes_frags { frags.min(slots.saturating_sub(1)).max(1) } else { 1 };
    let is_zero_copy = sockets.map(Socket::mode).any(|mode| mode == NicMode::ZeroCopy);
    // Alone in a buffer, a frame has what every driver receives there.
    let size = match is_zero_copy && buffers == 1 {
        true => zero_copy_room(layout.bufs.size),
        false => layout.data_size(),
    };
    [buffers, size]
}

/// Why frames of an interface do not fit that many buffers of a region, of so many bytes each, if they do not.
/// `or_packet_mode`: that mode is a remedy.
pub(crate) fn too_long(
    interface: &Interface,
    [buffers, size]: [u32; 2],
    layout: &Layout,
    or_packet_mode: bool,
) -> Option<Error> {
    let (name, needed, room) = (&interface.name, interface.longest_frame(), buffers * size);
    if needed <= room {
        return None;
    }
    let problem = format!(
        "frames of {needed} bytes do not fit {buffers} {} of {size}",
        if buffers == 1 { "buffer" } else { "buffers" },
    );
    let kept = layout.bufs.size - size;
    let larger = layout.bufs.size < ZERO_COPY_CHUNK
        && needed <= buffers * ZERO_COPY_CHUNK.saturating_sub(kept);
    let ways = [
        larger.then(|| format!("in larger buffers (netmap:{name}@buffers={ZERO_COPY_CHUNK})")),
        or_packet_mode.then(|| format!("in packet mode (netmap:{name}@mode=packet)")),
        Some("for sending alone".into()),
    ];
    let ways: Vec<_> = ways.into_iter().flatten().collect();
    let mtu = room - 14;
    let remedy =
        format!("open it {}, or `ip link set {name} mtu {mtu}` or less", ways.join(", or "));
    Some(Error::invalid(problem).remedy(remedy))
}

/// Fails if AF_XDP cannot have the buffers of a region.
pub(crate) fn check_buffers(interface: &Interface, region: &Region) -> Result<()> {
    let size = region.layout().bufs.size;
    if takes_chunks_of(size) {
        return Ok(());
    }
    let problem = format!(
        "AF_XDP takes no buffers of {size} bytes, but powers of two from 2048 up to a page"
    );
    let remedy =
        format!("open it in another region, such as netmap:{}@buffers=4096", interface.name);
    Err(Error::new(Cause::Unsupported, problem).at(&interface.name).remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_its_version() {
        for (release, before) in [
            (c"6.1.0-44-amd64", true),
            (c"5.14.0-503.el9.x86_64", true),
            (c"6.3", true),
            (c"6.4.0", false),
            (c"6.18.1", false),
            (c"10.0-rc1", false),
            (c"unknown", false),
            (c"", false),
        ] {
            assert_eq!(is_before(release, [6, 4]), before, "{release:?}");
        }
    }
}
