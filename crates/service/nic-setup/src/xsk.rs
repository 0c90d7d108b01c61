//! The privileged half: a socket with its memory and rings, bound to a queue.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg,
};
use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, XdpUmemReg, XdpUmemRegFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use ringway_xdp::{FrameMemory, MAX_FRAGS, RX_HEADROOM, RingSizes, XskSocket};

use serde::{Deserialize, Serialize};

use crate::operation::{BindXsk, MakeXsk};
use crate::parcel::{self, Fd};
use crate::{AttachMode, Error, Interface, genl, helper, privileges::privileges, sys, zero_copy};

/// How frames travel between the NIC and the memory, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// The NIC reads and writes the memory itself.
    ZeroCopy,
    /// The kernel copies, in the driver's XDP path.
    Copy,
    /// The kernel copies, in the stack: the XDP program is attached in generic mode.
    Generic,
}

impl Mode {
    /// The modes worth trying, best first, where the program could be attached in `attached` mode.
    pub fn preference(attached: AttachMode) -> &'static [Mode] {
        match attached {
            AttachMode::Native => &[Mode::ZeroCopy, Mode::Copy],
            AttachMode::Generic => &[Mode::Generic],
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::ZeroCopy => "zero-copy",
            Mode::Copy => "copy",
            Mode::Generic => "generic",
        })
    }
}

/// What to open.
#[derive(Clone, Copy, Debug)]
pub struct XskConfig<'a> {
    /// The interface, of the network namespace that the calling thread is in.
    pub interface: &'a Interface,
    /// The queue, below [`Interface::queues`].
    pub queue: u32,
    /// The memory. The kernel pins its pages and accounts for them.
    pub memory: FrameMemory<'a>,
    /// Bytes in a chunk; see [`takes_chunks_of`].
    pub chunk_size: u32,
    pub sizes: RingSizes,
    /// Whether packets of several buffers are wanted, where the kernel can.
    pub frags: bool,
    /// The modes to try in order; see [`Mode::preference`].
    pub modes: &'a [Mode],
}

/// What a socket that is made already is bound to, and how: as in [`XskConfig`].
pub(crate) struct BindConfig<'a> {
    pub interface: &'a Interface,
    pub queue: u32,
    pub chunk_size: u32,
    pub sizes: RingSizes,
    pub frags: bool,
    pub modes: &'a [Mode],
}

/// Whether a socket takes memory in chunks of `size` bytes: a power of two, from 2048 up to a page.
pub fn takes_chunks_of(size: u32) -> bool {
    let page = rustix::param::page_size() as u32;
    size.is_power_of_two() && (2048..=page).contains(&size)
}

/// A bound socket, and how it was to be had.
#[derive(Debug, Serialize, Deserialize)]
pub struct Xsk {
    /// With the memory, all that another process needs.
    #[serde(with = "XskSocketDef")]
    pub socket: XskSocket,
    /// The mode that was accepted.
    pub mode: Mode,
    /// Whether received frames may have partial checksums: see
    /// [`XdpRx::with_csum_completion`](ringway_xdp::XdpRx::with_csum_completion).
    pub partial_csum: bool,
    /// The better modes that were refused, and why.
    pub refused: Vec<(Mode, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "XskSocket")]
struct XskSocketDef {
    #[serde(with = "parcel::fd")]
    fd: OwnedFd,
    #[serde(with = "RingSizesDef")]
    sizes: RingSizes,
    frags: bool,
    max_segs: u32,
    is_pair: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RingSizes")]
pub(crate) struct RingSizesDef {
    fill: u32,
    completion: u32,
    rx: u32,
    tx: u32,
}

/// Sockets with their memory and rings, bound to nothing yet, for [`Xsk::bind_all`].
pub struct UnboundXsks(Vec<Fd>);

/// Frames that one kick may send: more calls than the default of 32 cost more than they give.
const TX_BUDGET: u32 = 256;

/// The kernel unbinds a closed socket from a worker of its own, 20 to 40 ms later, or much later on a
/// busy machine, and does not tell when: so a bind that finds the queue busy tries again this long, the
/// one place that must sleep.
const BUSY_LIMIT: Duration = Duration::from_secs(1);

impl Xsk {
    /// Registers the memory, makes the rings and binds to the queue in the first mode accepted, if
    /// possible with packets of several buffers where they are wanted.
    ///
    /// Blocks for up to a second per mode while the queue's previous socket is being unbound. Errors:
    /// [`Error::NoQueue`], [`Error::QueueBusy`], [`Error::Privileges`], [`Error::Refused`].
    pub fn open(config: &XskConfig<'_>) -> Result<Xsk, Error> {
        Xsk::open_filled(config, |_| Ok(()))
    }

    /// The same; `fill` maps the rings, and gives the kernel buffers to receive into, before the socket is bound.
    /// A driver looks for them then, and may not look again (igb on Linux 6.18); and kernels before 6.4 have
    /// no ring mapped later.
    pub fn open_filled(
        config: &XskConfig<'_>,
        fill: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
    ) -> Result<Xsk, Error> {
        let mut fill = Some(fill);
        let fill = |_, socket: BorrowedFd<'_>| fill.take().map_or(Ok(()), |fill| fill(socket));
        let none = io::Error::from_raw_os_error(libc::EINVAL);
        let refused = Error::refused(&config.interface.name, "no socket was opened", "try again");
        Xsk::open_all(config, &[config.queue], fill)?.pop().ok_or(none).map_err(refused)
    }

    /// The same for several queues in place of the one of `config`, all or none; `fill` is told which of
    /// them it is, by its place. Where a helper opens them, it maps the memory once.
    pub fn open_all(
        config: &XskConfig<'_>,
        queues: &[u32],
        fill: impl FnMut(usize, BorrowedFd<'_>) -> io::Result<()>,
    ) -> Result<Vec<Xsk>, Error> {
        Xsk::bind_all(config, queues, Xsk::make_all(config, queues)?, fill)
    }

    /// The second half of [`open_all`](Self::open_all): of sockets that [`make_all`](Self::make_all) has made of the
    /// same.
    ///
    /// # Errors
    /// As [`Xsk::open`].
    pub fn bind_all(
        config: &XskConfig<'_>,
        queues: &[u32],
        UnboundXsks(sockets): UnboundXsks,
        mut fill: impl FnMut(usize, BorrowedFd<'_>) -> io::Result<()>,
    ) -> Result<Vec<Xsk>, Error> {
        for (place, socket) in sockets.iter().enumerate() {
            fill(place, socket.as_fd()).map_err(Error::refused(
                &config.interface.name,
                "its receive rings cannot be filled",
                "free memory, or raise the limit of open files",
            ))?;
        }
        helper::run(BindXsk {
            interface: config.interface.clone(),
            queues: queues.to_vec(),
            sockets,
            chunk_size: config.chunk_size,
            sizes: config.sizes,
            frags: config.frags,
            modes: config.modes.to_vec(),
        })
    }

    /// The first half: it does not matter whether a program is attached by then.
    ///
    /// # Errors
    /// As [`Xsk::open`].
    pub fn make_all(config: &XskConfig<'_>, queues: &[u32]) -> Result<UnboundXsks, Error> {
        if !helper::is_elsewhere() {
            sys::populate(config.memory);
            let make = |&queue: &u32| Xsk::make_here(&XskConfig { queue, ..*config });
            return queues.iter().map(make).collect::<Result<_, _>>().map(UnboundXsks);
        }
        let refused = Error::refused(
            &config.interface.name,
            "its frame memory cannot be handed over",
            "raise the limit of open files",
        );
        // Private memory is no other process's.
        let memfd = config.memory.memfd().ok_or(io::Error::from_raw_os_error(libc::EINVAL));
        let clone = |(fd, offset): (BorrowedFd<'_>, u64)| Ok((fd.try_clone_to_owned()?, offset));
        let (memfd, offset) = memfd.and_then(clone).map_err(refused)?;
        helper::run(MakeXsk {
            interface: config.interface.clone(),
            queues: queues.to_vec(),
            memfd: Fd(memfd),
            offset,
            length: config.memory.bytes().len() as u64,
            chunk_size: config.chunk_size,
            sizes: config.sizes,
        })
        .map(UnboundXsks)
    }

    /// In this process. The pages of the memory should be [there](sys::populate).
    pub(crate) fn make_here(config: &XskConfig<'_>) -> Result<Fd, Error> {
        let name = &config.interface.name;
        if config.queue >= config.interface.queues() {
            return Err(Error::NoQueue {
                interface: name.clone(),
                queue: config.queue,
                queues: config.interface.queues(),
            });
        }
        let fd = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|errno| socket_refused(name, errno))?;
        register(fd.as_fd(), config)?;
        // Kernels older than 6.17 know no budget: they keep their 32, which costs calls only.
        let _ = sys::set_tx_budget(fd.as_fd(), TX_BUDGET);
        Ok(Fd(fd))
    }

    /// Binds such a socket, in this process.
    pub(crate) fn bind_here(config: &BindConfig<'_>, Fd(fd): Fd) -> Result<Xsk, Error> {
        let name = &config.interface.name;
        let mut refused: Vec<(Mode, String)> = Vec::new();
        // Each try has the kernel set the whole memory up, while it holds the lock of all interfaces. Whatever
        // is not known may be tried.
        let zero_copy = !config.modes.contains(&Mode::ZeroCopy)
            || genl::takes_zero_copy(config.interface.index) != Some(false);
        for (mode, frags) in ways(config) {
            let bound = bind_queue(fd.as_fd(), config, mode, frags, zero_copy);
            // It may have been refused with several buffers a packet.
            refused.retain(|(other, _)| *other != mode);
            match bound {
                Ok(()) => {
                    let partial_csum = config.interface.leaves_partial_csum(mode);
                    let max_segs = max_segs(config.interface, mode, frags);
                    let is_pair = config.interface.is_pair();
                    let socket = XskSocket { fd, sizes: config.sizes, frags, max_segs, is_pair };
                    return Ok(Xsk { socket, mode, partial_csum, refused });
                }
                Err(Refusal::Busy) => {
                    let interface = name.clone();
                    return Err(Error::QueueBusy { interface, queue: config.queue });
                }
                Err(Refusal::Because(why)) => refused.push((mode, why)),
            }
        }
        let why: Vec<_> = refused.iter().map(|(mode, why)| format!("{mode}: {why}")).collect();
        Err(Error::refused(name, "no AF_XDP socket can be bound", remedy(config.modes))(
            io::Error::other(why.join(", ")),
        ))
    }
}

/// For a socket that was refused in these modes. What its driver says to zero copy names the reason.
fn remedy(modes: &[Mode]) -> &'static str {
    match modes {
        [Mode::ZeroCopy] => "open it in another mode, such as @mode=copy",
        _ => "is the interface up, and not a bridge or bond member?",
    }
}

/// Descriptors that a packet to be sent may have. Where the kernel does not tell what the driver takes in zero-copy
/// mode, as many as where the kernel copies.
fn max_segs(interface: &Interface, mode: Mode, frags: bool) -> u32 {
    match mode {
        _ if !frags => 1,
        Mode::ZeroCopy => genl::zero_copy_segments(interface.index).unwrap_or(MAX_FRAGS),
        Mode::Copy | Mode::Generic => MAX_FRAGS,
    }
}

fn socket_refused(interface: &str, errno: Errno) -> Error {
    if let Err(missing) = privileges() {
        return Error::Privileges { interface: interface.into(), missing };
    }
    let remedy = "the kernel needs CONFIG_XDP_SOCKETS: see `ringway doctor`";
    Error::refused(interface, "no AF_XDP socket can be made", remedy)(errno)
}

/// The memory and the sizes of the four rings. All four are always made: the kernel binds no socket
/// without FILL and COMPLETION.
fn register(fd: BorrowedFd<'_>, config: &XskConfig<'_>) -> Result<(), Error> {
    let name = &config.interface.name;
    let memory = config.memory.bytes();
    let umem = XdpUmemReg {
        addr: memory.as_ptr() as *mut u8 as u64,
        len: memory.len() as u64,
        chunk_size: config.chunk_size,
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    set_xdp_umem_reg(fd, umem).map_err(Error::refused(
        name,
        "the frame memory cannot be registered",
        "chunks must be powers of two from 2048 up to a page, and `ulimit -l` large enough",
    ))?;
    let sizes = config.sizes;
    let make_rings = || -> rustix::io::Result<()> {
        set_xdp_umem_fill_ring_size(fd, sizes.fill)?;
        set_xdp_umem_completion_ring_size(fd, sizes.completion)?;
        set_xdp_rx_ring_size(fd, sizes.rx)?;
        set_xdp_tx_ring_size(fd, sizes.tx)
    };
    make_rings().map_err(Error::refused(
        name,
        "the rings cannot be made",
        "their sizes must be powers of two",
    ))
}

/// The modes, with several buffers a packet and without, best first: packets of one buffer in a
/// better mode, but for an interface whose frames one buffer does not hold.
fn ways(config: &BindConfig<'_>) -> Vec<(Mode, bool)> {
    let both = |&mode| [(mode, true), (mode, false)];
    let mut ways: Vec<_> = config.modes.iter().flat_map(both).collect();
    ways.retain(|&(_, frags)| config.frags || !frags);
    if config.interface.longest_frame() > config.chunk_size - RX_HEADROOM {
        ways.sort_by_key(|&(_, frags)| !frags);
    }
    ways
}

/// Why a socket is not bound.
enum Refusal {
    /// Another has the queue.
    Busy,
    Because(String),
}

fn bind_queue(
    fd: BorrowedFd<'_>,
    config: &BindConfig<'_>,
    mode: Mode,
    frags: bool,
    zero_copy: bool,
) -> Result<(), Refusal> {
    let copy = match mode {
        Mode::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
        Mode::Copy | Mode::Generic => SocketAddrXdpFlags::XDP_COPY,
    };
    // Kernels before 6.3 do not tell; what the kernel itself makes has none on any.
    if mode == Mode::ZeroCopy && (!zero_copy || config.interface.software) {
        return Err(Refusal::Because(zero_copy::refusal(config.interface, Errno::OPNOTSUPP)));
    }
    if mode == Mode::ZeroCopy
        && !frags
        && let Some(why) = zero_copy::too_small(config.interface, config.chunk_size)
    {
        return Err(Refusal::Because(why));
    }
    // Kernels older than 6.6 do not know it, and refuse it: EINVAL.
    let sg = if frags { SocketAddrXdpFlags::XDP_USE_SG } else { SocketAddrXdpFlags::empty() };
    let flags = copy | sg | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    let address = SocketAddrXdp::new(flags, config.interface.index, config.queue);
    let deadline = Instant::now() + BUSY_LIMIT;
    let mut pause = Duration::from_millis(1);
    loop {
        match bind(fd, &address) {
            Ok(()) => return Ok(()),
            Err(Errno::BUSY) if Instant::now() < deadline => std::thread::sleep(pause),
            Err(Errno::BUSY) => return Err(Refusal::Busy),
            Err(errno) if mode == Mode::ZeroCopy => {
                let BindConfig { interface, chunk_size, .. } = *config;
                let why = zero_copy::refusal_of(interface, chunk_size, frags, errno);
                return Err(Refusal::Because(why));
            }
            Err(errno) => return Err(Refusal::Because(errno.to_string())),
        }
        pause = (pause * 2).min(Duration::from_millis(16));
    }
}
