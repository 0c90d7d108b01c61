//! An interface as a port of a switch: opened here, and moved by the driver.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use ringway_packet::PacketPort;
use ringway_xdp::{
    FrameMemory, FrameQueue, NicPort, NicPortConfig, RX_HEADROOM, RingSizes, TimeFlag, Umem,
    VLAN_TAG,
};

use crate::{
    AttachMode, Error, InjectMark, Interface, Mode, Promiscuous, RxSocket, Source, TxSocket,
    XdpProgram, Xsk, XskConfig, ZERO_COPY_CHUNK, check_queues, packet::listen,
};

/// Chunks of each queue, half of them to receive into.
const CHUNKS: u32 = 4096;
/// Bytes of a chunk: the kernel takes no others than up to a page.
const SHORT_CHUNK: u32 = 2048;
const LONG_CHUNK: u32 = ZERO_COPY_CHUNK;

/// Bytes that the port which speaks with a stack takes to receive into: it has one queue, and frames of
/// any length.
pub const STACK_PORT_MEMORY: u64 = CHUNKS as u64 * LONG_CHUNK as u64;

/// Bytes that the port of an interface takes to receive into and send from, by AF_XDP.
pub fn nic_port_memory(interface: &Interface) -> u64 {
    u64::from(interface.queues()) * u64::from(CHUNKS) * u64::from(chunk_size(interface))
}

/// Bytes of a chunk: one holds a frame of the interface's MTU, if it can, as the driver receives it.
fn chunk_size(interface: &Interface) -> u32 {
    let short = !interface.zero_copy && fits(interface, SHORT_CHUNK);
    if short { SHORT_CHUNK } else { LONG_CHUNK }
}

fn fits(interface: &Interface, chunk_size: u32) -> bool {
    interface.longest_frame().saturating_add(VLAN_TAG) <= chunk_size - RX_HEADROOM
}

/// What keeps an interface's traffic coming to its [`NicPort`]: the interface is promiscuous, and out
/// of the stack's sight, until this is dropped or its process ends.
pub struct PortAttachment {
    program: XdpProgram,
    _promiscuous: Promiscuous,
    /// Of the socket of the first queue, whose mode all have; and the better ones that were refused.
    mode: Option<(Mode, Vec<(Mode, String)>)>,
}

impl PortAttachment {
    /// Which hook of the interface its frames are taken from.
    pub fn attach_mode(&self) -> AttachMode {
        self.program.mode()
    }

    /// What is to be in front of frames that programs send to the stack.
    pub fn inject_mark(&self) -> InjectMark {
        self.program.inject_mark()
    }

    /// Whether the XDP program is for this interface alone.
    pub fn is_bound(&self) -> bool {
        self.program.is_bound()
    }

    /// The mode of the sockets, and the better modes that were refused. `None`: there is no queue.
    pub fn mode(&self) -> Option<(Mode, &[(Mode, String)])> {
        self.mode.as_ref().map(|(mode, refused)| (*mode, &refused[..]))
    }
}

/// Takes all queues of an interface of the calling thread's network namespace, in the best mode
/// there is. Frames are taken to have their checksums and VLAN tags.
///
/// The MTU counts as it is now, until the port is told of another one: then longer frames than a
/// chunk have several, where the kernel can do that. Where it cannot, it refuses an MTU for which
/// a chunk is too short.
///
/// # Errors
/// As [`open_nic_port_as`].
pub fn open_nic_port(interface: &Interface) -> Result<NicPort<PortAttachment>, Error> {
    check_queues(interface, interface.queues())?;
    let program = XdpProgram::attach(interface)?;
    let modes = Mode::preference(program.mode());
    with_program(interface, program, modes, false)
}

/// The same, by the hook `attach` and in the first of `modes` that its queues can be had in. What
/// comes by a veth pair without its TCP or UDP checksum gets it. `injected`: what programs send to the
/// stack comes by, with [this mark](PortAttachment::inject_mark).
///
/// # Errors
/// As [`XdpProgram::attach`] and [`Xsk::open`]; [`Error::Refused`] when frames of the
/// interface's MTU do not fit a chunk, and the kernel does not give them several; or the process
/// is out of memory or descriptors.
pub fn open_nic_port_as(
    interface: &Interface,
    attach: AttachMode,
    modes: &[Mode],
    injected: bool,
) -> Result<NicPort<PortAttachment>, Error> {
    check_queues(interface, interface.queues())?;
    let mut program = XdpProgram::attach_for_switch(interface, &[attach])?;
    program.set_injected(injected)?;
    with_program(interface, program, modes, true)
}

fn with_program(
    interface: &Interface,
    mut program: XdpProgram,
    modes: &[Mode],
    finish_csum: bool,
) -> Result<NicPort<PortAttachment>, Error> {
    let max_frame = interface.longest_frame();
    let chunk_size = chunk_size(interface);
    let promiscuous = Promiscuous::hold(interface)?;
    let refused = || {
        Error::refused(
            &interface.name,
            "cannot be attached to a switch",
            "free memory, or raise the limits of open files and locked memory",
        )
    };
    let (mut queues, mut in_parts, mut first) = (Vec::new(), program.frags(), None);
    for number in 0..interface.queues() {
        let mut umem = Umem::shared(CHUNKS, chunk_size).map_err(refused())?;
        let config = XskConfig {
            interface,
            queue: number,
            memory: FrameMemory::of_umem(&umem),
            chunk_size,
            sizes: RingSizes::default(),
            frags: true,
            modes,
        };
        let mut rings = None;
        let fill = |socket: BorrowedFd<'_>| {
            rings = Some(FrameQueue::fill(socket, &config.sizes, &umem)?);
            Ok(())
        };
        let Xsk { socket, mode, refused: worse, .. } = Xsk::open_filled(&config, fill)?;
        in_parts &= socket.frags;
        if !in_parts && !fits(interface, chunk_size) {
            return Err(too_long(interface));
        }
        umem.close_memfd();
        let rings = rings.ok_or(io::ErrorKind::NotConnected.into()).map_err(refused())?;
        let frames = FrameQueue::over(socket, rings, umem);
        if number < interface.rx_queues {
            program.set_queue(number, frames.socket())?;
        }
        first.get_or_insert((mode, worse));
        queues.push(frames);
    }
    let time_flag = program.take_time_flag();
    let partial = |(mode, _): &(Mode, _)| interface.leaves_partial_csum(*mode);
    let partial_csum = finish_csum && first.as_ref().is_some_and(partial);
    let attached = PortAttachment { program, _promiscuous: promiscuous, mode: first };
    // Mapped, it takes no descriptor. Without it frames have the worker's time.
    let time_flag = time_flag.and_then(|flag| TimeFlag::map(flag.as_fd()).ok());
    let queue_counts = [interface.tx_queues, interface.rx_queues].map(|count| count as usize);
    let config = NicPortConfig { max_frame, in_parts, partial_csum, time_flag, queue_counts };
    NicPort::new(attached, queues, config).map_err(refused())
}

fn too_long(interface: &Interface) -> Error {
    Error::refused(
        &interface.name,
        "its frames are too long for a switch",
        "set an MTU of 3822 or less: `ip link set NAME mtu 1500`",
    )(io::Error::from_raw_os_error(libc::EMSGSIZE))
}

/// The same by AF_PACKET sockets, which only listen: what they hear is to be kept from the stack by
/// other means ([`IngressDrop`](crate::IngressDrop)). `max_frame`: bytes of the longest frame without a
/// VLAN tag. Needs CAP_NET_RAW.
///
/// # Errors
/// The kernel refuses a socket, or the process is out of memory or descriptors.
pub fn open_packet_port(source: &Source<'_>, max_frame: u32) -> Result<PacketPort, Error> {
    let refused = || {
        Error::refused(
            source.interface,
            "cannot be attached to a switch",
            "free memory, or raise the limits of open files",
        )
    };
    let RxSocket { fd, geometry, .. } = RxSocket::open(source)?;
    let tx = TxSocket::open(source.interface, source.ifindex)?;
    let port = PacketPort::new(fd, geometry, tx.fd, max_frame).map_err(refused())?;
    listen(port.rx_socket(), source.ifindex, true).map_err(refused())?;
    Ok(port)
}
