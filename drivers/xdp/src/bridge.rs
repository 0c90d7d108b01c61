//! A NIC as a port of a bridge: what it receives goes into the bridge, and the other way round.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringway_region::Buf;
use ringway_vale::{Burst, Delivered, Drops, Frame, Port};
use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::promisc::Promiscuous;
use crate::unfinished::finish;
use crate::{
    AttachMode, Error, FrameQueue, Interface, KickOutcome, Mode, RX_HEADROOM, RingSizes, Umem,
    XdpProgram, Xsk, XskConfig,
};

/// Chunks of each queue, half of them to receive into.
const CHUNKS: u32 = 4096;

/// Frames looked at before other ports have their turn: their first lines fit the L1 cache.
const BURST: u32 = 128;

/// Turns of the worker after which it tries again to send what the kernel did not take.
const TURNS: u32 = 64;

/// The same while the worker sleeps: nothing tells when the way is free again.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// A link that is down stays down for longer.
const LINK_PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// An attached NIC: promiscuous, and out of the stack's sight, until it is dropped or its process
/// dies.
pub struct NicPort {
    // In the order in which to let go: first of the traffic, then of the rings.
    program: XdpProgram,
    _promiscuous: Promiscuous,
    queues: Vec<Queue>,
    /// Listens to all queues and the timer.
    bell: OwnedFd,
    timer: OwnedFd,
    /// Frames beyond are not sent: bytes, Ethernet header and VLAN tag included.
    max_frame: u32,
    /// Where a frame that no chunk holds is put together.
    assembly: Vec<u8>,
}

struct Queue {
    frames: FrameQueue,
    /// Something was staged since the last flush.
    staged: bool,
    /// What the last flush met, and turns since, while frames wait for the next.
    stalled: Option<(KickOutcome, u32)>,
    /// Frames lost by the kernel that are counted already.
    lost: u64,
    /// Whether checksums of received frames may be unfinished.
    unfinished: bool,
}

impl NicPort {
    /// Takes all queues of an interface of the calling thread's network namespace. The MTU counts
    /// as it is now.
    ///
    /// Errors: as [`XdpProgram::attach`] and [`Xsk::open`]; [`Error::Refused`] when frames of the
    /// interface's MTU do not fit a chunk, and the kernel does not give them several; or the process
    /// is out of memory or descriptors.
    pub fn open(interface: &Interface) -> Result<NicPort, Error> {
        let max_frame = interface.mtu.saturating_add(18);
        let chunk_size = if fits(max_frame, 2048) { 2048 } else { 4096 };
        let mut program = XdpProgram::attach(interface)?;
        let promiscuous = Promiscuous::hold(interface)?;
        let refused = || {
            Error::refused(
                &interface.name,
                "cannot be attached to a bridge",
                "free memory, or raise the limits of open files and locked memory",
            )
        };
        let (bell, timer) = bell_and_timer().map_err(refused())?;
        let mut queues = Vec::new();
        for number in 0..interface.queues() {
            let umem = Umem::anonymous(CHUNKS, chunk_size).map_err(refused())?;
            let config = XskConfig {
                interface,
                queue: number,
                umem: umem.memory(),
                chunk_size,
                sizes: RingSizes::default(),
                frags: true,
                modes: Mode::preference(program.mode()),
            };
            // SAFETY: the memory of a `Umem` is mapped and reached by raw pointers only; the
            // `FrameQueue` keeps it as long as the socket.
            let xsk = unsafe { Xsk::open(&config) }?;
            let in_parts = xsk.frags && program.frags();
            let unfinished = xsk.unfinished;
            if !in_parts && !fits(max_frame, chunk_size) {
                return Err(too_long(interface));
            }
            let frames = FrameQueue::new(xsk, umem)
                .and_then(|frames| listen(&bell, &frames).map(|()| frames))
                .map_err(|errno| refused()(errno.into()))?;
            // Not before the kernel has buffers to receive into.
            program.set_queue(number, frames.xsk())?;
            queues.push(Queue { frames, staged: false, stalled: None, lost: 0, unfinished });
        }
        let assembly = if fits(max_frame, chunk_size) { 0 } else { max_frame };
        Ok(NicPort {
            program,
            _promiscuous: promiscuous,
            queues,
            bell,
            timer,
            max_frame,
            assembly: vec![0; assembly as usize],
        })
    }

    /// Which hook of the interface its frames are taken from.
    pub fn attach_mode(&self) -> AttachMode {
        self.program.mode()
    }

    /// Tries again to send what the kernel did not take, soon enough and not too often.
    fn retry(&mut self, ring: usize) {
        let Some(queue) = self.queues.get_mut(ring) else { return };
        let Some((_, turns)) = &mut queue.stalled else { return };
        *turns += 1;
        if *turns >= TURNS {
            queue.flush();
        }
    }
}

/// Whether a chunk holds any frame that the interface receives.
fn fits(max_frame: u32, chunk_size: u32) -> bool {
    max_frame <= chunk_size - RX_HEADROOM
}

fn too_long(interface: &Interface) -> Error {
    Error::refused(
        &interface.name,
        "its frames are too long for a bridge",
        "set an MTU of 3822 or less: `ip link set NAME mtu 1500`",
    )(io::Error::from_raw_os_error(libc::EMSGSIZE))
}

fn bell_and_timer() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let bell = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    listen(&bell, &timer)?;
    Ok((bell, timer))
}

fn listen(epoll: &OwnedFd, fd: impl AsFd) -> rustix::io::Result<()> {
    epoll::add(epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
}

impl Queue {
    fn flush(&mut self) {
        self.staged = false;
        let outcome = self.frames.flush();
        self.stalled = match outcome {
            Ok(outcome @ (KickOutcome::Again | KickOutcome::LinkDown)) => Some((outcome, 0)),
            // Sent, or never to be.
            _ => None,
        };
    }
}

/// Puts a frame together in `to`, which has room for it.
#[inline]
fn gather(frame: &Frame, burst: &Burst<'_>, to: Buf<'_>) {
    let mut at = 0;
    for (from, len) in burst.pieces(frame) {
        let Some(to) = to.skip(at) else { break };
        // No piece is longer than a frame may be, and that fits.
        at += frame.copy_piece((at == 0).then_some(0), from, *len, &to).unwrap_or(0);
    }
}

/// Stages a frame that no chunk holds. It is copied twice: where its pieces end is the sender's
/// choice, and where the chunks do is not.
#[cold]
fn send_parts(queue: &mut Queue, assembly: &mut [u8], frame: &Frame, burst: &Burst<'_>) -> bool {
    gather(frame, burst, Buf::of(assembly));
    let mut rest = &*assembly;
    queue.frames.send_parts(frame.len, |data, length| {
        let (part, behind) = rest.split_at((length as usize).min(rest.len()));
        // SAFETY: `length` bytes from `data` are ours until the flush.
        unsafe { Buf::new(data, length) }.write(0, part);
        rest = behind;
    })
}

impl NicPort {
    /// Stages one packet on queue `ring`.
    fn send(&mut self, ring: usize, frame: &Frame, burst: &Burst<'_>, drops: &mut Drops) -> bool {
        // A packet whose data could not be read is empty.
        if frame.len > self.max_frame || frame.len == 0 {
            drops.too_long += 1;
            return false;
        }
        let sent = self.queues.get_mut(ring).is_some_and(|queue| {
            queue.staged = true;
            let size = queue.frames.max_tx_frame();
            if frame.len > size {
                return send_parts(queue, &mut self.assembly, frame, burst);
            }
            queue.frames.send(frame.len).is_some_and(|data| {
                // SAFETY: the chunk has `size` bytes from `data`. It is ours until the flush.
                gather(frame, burst, unsafe { Buf::new(data, size) });
                true
            })
        });
        drops.ring_full += u64::from(!sent);
        sent
    }
}

impl Port for NicPort {
    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        self.retry(ring);
        let Some(queue) = self.queues.get_mut(ring) else { return 0 };
        let lost = queue.frames.counters().tx_lost;
        drops.ring_full += lost - queue.lost;
        queue.lost = lost;
        let unfinished = queue.unfinished;
        let taken = queue.frames.take(BURST, |frame| {
            // SAFETY: the frame's bytes lie in a chunk that is ours until `release`, in memory that
            // is mapped as long as this port, which the burst borrows.
            let buf = unsafe { Buf::new(frame.data, frame.length) };
            burst.push(buf, frame.length);
            if !frame.goes_on {
                burst.end_frame();
            }
            if unfinished {
                buf.prefetch();
            }
        });
        if unfinished {
            for frame in burst.frames() {
                finish(burst.pieces(frame).iter().map(|&(piece, _)| piece));
            }
        }
        taken
    }

    fn release(&mut self, ring: usize) {
        if let Some(queue) = self.queues.get_mut(ring) {
            queue.frames.give_back();
        }
    }

    fn tx_rings(&self) -> usize {
        self.queues.len()
    }

    fn receives(&self) -> bool {
        true
    }

    #[inline]
    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let ring = if ring < self.queues.len() { ring } else { ring % self.queues.len().max(1) };
        let mut delivered = Delivered::default();
        for frame in frames {
            if self.send(ring, frame, burst, drops) {
                delivered.add(frame.len);
            }
        }
        delivered
    }

    fn flush(&mut self, idle: bool) {
        for queue in &mut self.queues {
            if queue.staged || (idle && queue.stalled.is_some()) {
                queue.flush();
            }
        }
    }

    fn arm(&mut self) {
        let stalled = self.queues.iter().filter_map(|queue| queue.stalled);
        let patience = stalled
            .map(|(why, _)| if why == KickOutcome::LinkDown { LINK_PATIENCE } else { PATIENCE })
            .min_by_key(|patience| patience.tv_nsec);
        if let Some(it_value) = patience {
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let once = Itimerspec { it_interval, it_value };
            // Fails for a bad descriptor alone.
            let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
        }
    }

    fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn silence(&self) {
        // The queues ring for as long as there are frames; EAGAIN says that it was they.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
    }
}
