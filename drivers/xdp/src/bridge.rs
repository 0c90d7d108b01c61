//! A NIC as a port of a bridge: what it receives goes into the bridge, and the other way round.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use ringway_bridge_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, Mirrored, PacketIo, StallReason,
    TxStall, Wake, WakeSource,
};
use ringway_region::Buf;

use crate::partial_csum::{finish, leaves_unfinished};
use crate::promisc::Promiscuous;
use crate::tags::TAG;
use crate::{
    AttachMode, Error, FrameQueue, Interface, KickOutcome, Lost, Mode, RX_HEADROOM, RingSizes,
    Umem, XdpProgram, Xsk, XskConfig,
};

/// Chunks of each queue, half of them to receive into.
const CHUNKS: u32 = 4096;

/// Frames looked at before other ports have their turn: their first lines fit the L1 cache.
const BURST: u32 = 128;

/// An attached NIC: promiscuous, and out of the stack's sight, until it is dropped or its process
/// dies.
pub struct NicPort {
    // In the order in which to let go: first of the traffic, then of the rings.
    program: XdpProgram,
    _promiscuous: Promiscuous,
    queues: Vec<Queue>,
    /// Listen to all queues.
    wake_source: WakeSource,
    /// Frames beyond are not sent: bytes, Ethernet header and VLAN tag included.
    max_frame: u32,
    /// Whether a frame may have several chunks.
    in_parts: bool,
    /// Where a frame that no chunk holds is put together.
    assembly: Vec<u8>,
    /// Received checksums may be left to hardware that is not there.
    partial_csum: bool,
}

struct Queue {
    frames: FrameQueue,
    /// Something was staged since the last flush.
    staged: bool,
    /// What the last flush met, while frames wait for the next.
    blocked: Option<TxStall>,
    /// What was lost that is counted already: by kicks, and as the kernel tells.
    lost_tx: u64,
    lost: Lost,
}

impl NicPort {
    /// Takes all queues of an interface of the calling thread's network namespace, in the best mode
    /// there is. Frames are taken to have their checksums and VLAN tags.
    ///
    /// The MTU counts as it is now, until the bridge is told of another one: then longer frames than a
    /// chunk have several, where the kernel can do that. Where it cannot, it refuses an MTU for which
    /// a chunk is too short.
    ///
    /// Errors: as [`NicPort::open_as`].
    pub fn open(interface: &Interface) -> Result<NicPort, Error> {
        let program = XdpProgram::attach(interface)?;
        let modes = Mode::preference(program.mode());
        NicPort::with_program(interface, program, modes)
    }

    /// The same, by the hook `attach` and in the first of `modes` that its queues can be had in. What
    /// comes by a veth pair without its TCP or UDP checksum gets it.
    ///
    /// Errors: as [`XdpProgram::attach`] and [`Xsk::open`]; [`Error::Refused`] when frames of the
    /// interface's MTU do not fit a chunk, and the kernel does not give them several; or the process
    /// is out of memory or descriptors.
    pub fn open_as(
        interface: &Interface,
        attach: AttachMode,
        modes: &[Mode],
    ) -> Result<NicPort, Error> {
        let program = XdpProgram::attach_as(interface, &[attach], None)?;
        let port = NicPort::with_program(interface, program, modes)?;
        Ok(NicPort { partial_csum: leaves_unfinished(interface), ..port })
    }

    fn with_program(
        interface: &Interface,
        mut program: XdpProgram,
        modes: &[Mode],
    ) -> Result<NicPort, Error> {
        let max_frame = interface.longest_frame().saturating_add(TAG);
        let chunk_size = if fits(max_frame, 2048) { 2048 } else { 4096 };
        let promiscuous = Promiscuous::hold(interface)?;
        let refused = || {
            Error::refused(
                &interface.name,
                "cannot be attached to a bridge",
                "free memory, or raise the limits of open files and locked memory",
            )
        };
        let wake_source = WakeSource::new().map_err(refused())?;
        let (mut queues, mut in_parts) = (Vec::new(), program.frags());
        for number in 0..interface.queues() {
            let umem = Umem::anonymous(CHUNKS, chunk_size).map_err(refused())?;
            let config = XskConfig {
                interface,
                queue: number,
                umem: umem.memory(),
                chunk_size,
                sizes: RingSizes::default(),
                frags: true,
                modes,
            };
            // SAFETY: the memory of a `Umem` is mapped and reached by raw pointers only; the
            // `FrameQueue` keeps it as long as the socket.
            let xsk = unsafe { Xsk::open(&config) }?;
            in_parts &= xsk.frags;
            if !in_parts && !fits(max_frame, chunk_size) {
                return Err(too_long(interface));
            }
            let frames = FrameQueue::new(xsk, umem).map_err(|e| refused()(e.into()))?;
            wake_source.listen(&frames).map_err(refused())?;
            // Not before the kernel has buffers to receive into.
            program.set_queue(number, frames.xsk())?;
            let (lost_tx, lost) = (0, Lost::default());
            queues.push(Queue { frames, staged: false, blocked: None, lost_tx, lost });
        }
        let assembly = if fits(max_frame, chunk_size) { 0 } else { max_frame };
        Ok(NicPort {
            program,
            _promiscuous: promiscuous,
            queues,
            wake_source,
            max_frame,
            in_parts,
            assembly: vec![0; assembly as usize],
            partial_csum: false,
        })
    }

    /// Which hook of the interface its frames are taken from.
    pub fn attach_mode(&self) -> AttachMode {
        self.program.mode()
    }

    /// Whether the XDP program is for this interface alone.
    pub fn is_bound(&self) -> bool {
        self.program.is_bound()
    }

    /// The socket of the first queue, whose mode all have.
    pub fn socket(&self) -> Option<&Xsk> {
        self.queues.first().map(|queue| queue.frames.xsk())
    }

    /// Tries again to send what the kernel did not take, soon enough and not too often.
    fn retry(&mut self, ring: usize) {
        let Some(queue) = self.queues.get_mut(ring) else { return };
        if queue.blocked.as_mut().is_some_and(TxStall::turn) {
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

impl Queue {
    fn flush(&mut self) {
        self.staged = false;
        self.blocked = match self.frames.flush() {
            Ok(KickOutcome::Again) => Some(TxStall::new(StallReason::Full)),
            Ok(KickOutcome::LinkDown) => Some(TxStall::new(StallReason::Link)),
            // Sent, or never to be.
            _ => None,
        };
    }
}

/// Stages a frame that no chunk holds. It is copied twice: where its pieces end is the sender's
/// choice, and where the chunks do is not.
#[cold]
fn send_parts(queue: &mut Queue, assembly: &mut [u8], frame: &Frame, burst: &Burst<'_>) -> bool {
    burst.gather(frame, Buf::of(assembly));
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
                burst.gather(frame, unsafe { Buf::new(data, size) });
                true
            })
        });
        drops.ring_full += u64::from(!sent);
        sent
    }
}

impl PacketIo for NicPort {
    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        self.retry(ring);
        let Some(queue) = self.queues.get_mut(ring) else { return 0 };
        let lost = queue.frames.counters().tx_lost;
        drops.ring_full += lost - queue.lost_tx;
        queue.lost_tx = lost;
        let partial_csum = self.partial_csum;
        let taken = queue.frames.take(BURST, |frame| {
            // SAFETY: the frame's bytes lie in a chunk that is ours until `release`, in memory that
            // is mapped as long as this port, which the burst borrows.
            let buf = unsafe { Buf::new(frame.data, frame.length) };
            burst.push_in_pieces(buf);
            if !frame.goes_on {
                burst.end_frame();
            }
            if partial_csum {
                buf.prefetch();
            }
        });
        if partial_csum {
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
            if queue.staged || (idle && queue.blocked.is_some()) {
                queue.flush();
            }
        }
    }

    fn count_lost(&mut self, drops: &mut Drops) {
        for queue in &mut self.queues {
            let xsk = queue.frames.xsk();
            let lost = Lost::receiving(&xsk.fd, xsk.frags) + Lost::sending(&xsk.fd);
            let before = std::mem::replace(&mut queue.lost, lost);
            drops.too_long += lost.too_long.saturating_sub(before.too_long);
            drops.ring_full += lost.ring_full.saturating_sub(before.ring_full);
            drops.bad_slot += lost.bad_slot.saturating_sub(before.bad_slot);
        }
    }
}

impl Backpressure for NicPort {}

impl Configure for NicPort {
    fn set_max_frame(&mut self, bytes: u32) {
        let chunk = self.queues.iter().map(|queue| queue.frames.max_tx_frame()).min().unwrap_or(0);
        let most = if self.in_parts { u32::MAX } else { chunk };
        self.max_frame = bytes.saturating_add(TAG).min(most);
        if self.max_frame > chunk && self.max_frame as usize > self.assembly.len() {
            self.assembly.resize(self.max_frame as usize, 0);
        }
    }
}

impl Mirrored for NicPort {}

impl Wake for NicPort {
    fn arm(&mut self) {
        self.wake_source.arm(self.queues.iter().filter_map(|queue| queue.blocked));
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.wake_source.as_fd()
    }

    fn drain(&self) {
        self.wake_source.drain();
    }
}
