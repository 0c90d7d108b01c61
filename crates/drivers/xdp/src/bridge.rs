//! A NIC as a port of a bridge: what it receives goes into the bridge, and the other way round.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use ringway_region::Buf;
use ringway_switch_port::{
    Backpressure, Burst, Configure, CopyMirrors, Delivered, Drops, Frame, Mirrored, PacketIo,
    PortMirrors, Shown, StallReason, TxStall, Unsent, Wake, WakeSource, wrapped,
};
use rustix::time::{DynamicClockId, clock_gettime_dynamic};

use crate::partial_csum::finish;
use crate::{FrameQueue, KickOutcome, Lost, RxFrame, SHORTEST, TimeFlag, VLAN_TAG, is_zero_copy};

/// Frames looked at before other ports have their turn: their first lines fit the L1 cache.
const BURST: u32 = 128;

/// Bytes of a chunk, by which a burst's limit is reckoned.
const CHUNK: u32 = 2048;

/// More chunks than a frame has: it is taken whole. The kernel's have up to 18.
const PARTS: u32 = 32;

/// An interface as a port. `H` is what keeps its traffic coming, for as long as the port lives.
pub struct NicPort<H> {
    // In the order in which to let go: first of the traffic, then of the rings.
    held: H,
    queues: Vec<Queue>,
    /// How many of the first queues send to the interface, and how many receive from it. At least 1.
    tx_queues: usize,
    rx_queues: usize,
    /// Listens to all queues.
    wake_source: WakeSource,
    /// Frames beyond are not sent: bytes, Ethernet header and VLAN tag included.
    max_frame: u32,
    /// Whether a frame may have several chunks.
    in_parts: bool,
    /// Some queue is in copy mode.
    copies: bool,
    /// Where a frame that no chunk holds is put together.
    assembly: Vec<u8>,
    /// Received checksums may be left to hardware that is not there.
    partial_csum: bool,
    mirrors: CopyMirrors,
    arrivals: Option<Arrivals>,
}

/// When frames have arrived, as the XDP program tells while a monitor shows what the port sends.
struct Arrivals {
    flag: TimeFlag,
    /// When they were asked for; 0: they are not. What is in front of a frame and not between then and now is
    /// no time of its arrival: it was left there by another frame.
    since: u64,
}

impl Arrivals {
    fn ask(&mut self, wanted: bool) {
        if wanted != (self.since != 0) {
            self.since = if wanted { now() } else { 0 };
            self.flag.set(wanted);
        }
    }
}

/// Nanoseconds of CLOCK_TAI, which Linux has since 3.10.
fn now() -> u64 {
    let now = clock_gettime_dynamic(DynamicClockId::Tai).unwrap_or_default();
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// What a [`NicPort`] has to know of its interface.
#[derive(Debug)]
pub struct NicPortConfig {
    /// Bytes of the longest frame without a VLAN tag.
    pub max_frame: u32,
    /// Whether a frame may have several chunks.
    pub in_parts: bool,
    /// Whether TCP and UDP checksums of received frames may be partial, and are to be completed.
    pub partial_csum: bool,
    /// By what the XDP program is asked for the times at which frames arrive, while a monitor shows them.
    pub time_flag: Option<TimeFlag>,
    /// Queues that send to the interface, and queues that receive from it: the first ones of all. A socket
    /// of another queue is bound as well, but in copy mode the kernel takes nothing to send from it, and
    /// does not say so.
    pub queue_counts: [usize; 2],
}

struct Queue {
    frames: FrameQueue,
    /// Something was staged since the last flush.
    staged: bool,
    /// What the last flush met, while frames wait for the next.
    stall: Option<TxStall>,
    /// What was lost that is counted already: by kicks, as the kernel tells, and what named no chunk.
    refused: Delivered,
    too_long: u64,
    lost: Lost,
    bad_desc: u64,
    /// What was given up since, and descriptors of it that the kernel has not looked at yet.
    discarded: Delivered,
    void: u64,
}

impl<H> NicPort<H> {
    /// A port with these queues.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new(held: H, queues: Vec<FrameQueue>, config: NicPortConfig) -> io::Result<NicPort<H>> {
        let wake_source = WakeSource::new()?;
        queues.iter().try_for_each(|frames| wake_source.listen(frames))?;
        let queue = |frames| Queue {
            frames,
            staged: false,
            stall: None,
            refused: Delivered::default(),
            too_long: 0,
            lost: Lost::default(),
            bad_desc: 0,
            discarded: Delivered::default(),
            void: 0,
        };
        let [tx_queues, rx_queues] =
            config.queue_counts.map(|count| count.clamp(1, queues.len().max(1)));
        let copies = queues.iter().any(|frames| !is_zero_copy(frames).unwrap_or(false));
        let mut port = NicPort {
            held,
            queues: queues.into_iter().map(queue).collect(),
            tx_queues,
            rx_queues,
            wake_source,
            max_frame: 0,
            in_parts: config.in_parts,
            copies,
            assembly: Vec::new(),
            partial_csum: config.partial_csum,
            mirrors: CopyMirrors::default(),
            arrivals: config.time_flag.map(|flag| Arrivals { flag, since: 0 }),
        };
        port.set_max_frame(config.max_frame);
        Ok(port)
    }

    /// What keeps its traffic coming.
    pub fn held(&self) -> &H {
        &self.held
    }

    /// Tries again to send what the kernel did not take, soon enough and not too often.
    fn retry(&mut self, ring: usize) {
        let Some(queue) = self.queues.get_mut(ring) else { return };
        if queue.stall.as_mut().is_some_and(TxStall::turn) {
            queue.flush();
        }
    }
}

impl Queue {
    fn flush(&mut self) {
        self.staged = false;
        self.stall = match self.frames.flush() {
            Ok(KickOutcome::LinkDown) => self.discard(),
            // Sent, or never to be.
            Ok(KickOutcome::Sent | KickOutcome::Lost | KickOutcome::Gone) => None,
            Ok(KickOutcome::Again) => Some(TxStall::new(StallReason::Full)),
            // An answer that is not known: what waits is not forgotten.
            Err(_) => Some(TxStall::new(StallReason::Link)),
        };
    }

    /// Gives up what waits: by the time that the link is back, it is old. What is in the way of what cannot be given up.
    fn discard(&mut self) -> Option<TxStall> {
        let before = self.waiting();
        self.void += u64::from(self.frames.discard());
        self.staged = false;
        let after = self.waiting();
        self.discarded.packets += before.packets - after.packets;
        self.discarded.bytes += before.bytes - after.bytes;
        (after.packets > 0).then(|| TxStall::new(StallReason::Link))
    }

    fn waiting(&self) -> Delivered {
        let (packets, bytes) = self.frames.waiting();
        Delivered { packets, bytes }
    }

    /// What was given up, and what the kernel has refused by kicks, which it counts in `drops`.
    fn unsent(&mut self, drops: &mut Drops) -> Unsent {
        let counters = self.frames.counters();
        let now = Delivered { packets: counters.tx_lost, bytes: counters.tx_lost_bytes };
        let before = std::mem::replace(&mut self.refused, now);
        let mut refused = std::mem::take(&mut self.discarded);
        refused.packets += now.packets - before.packets;
        refused.bytes += now.bytes - before.bytes;
        let before = std::mem::replace(&mut self.too_long, counters.tx_lost_too_long);
        let too_long = counters.tx_lost_too_long - before;
        drops.too_long += too_long;
        drops.ring_full += refused.packets - too_long;
        Unsent { refused, waiting: self.waiting() }
    }
}

/// Stages a frame that no chunk holds. It is copied twice: where its pieces end is the sender's
/// choice, and where the chunks do is not.
#[cold]
fn send_parts(queue: &mut Queue, assembly: &mut [u8], frame: &Frame, burst: &Burst<'_>) -> bool {
    burst.gather(frame, Buf::of(assembly));
    let mut rest = &*assembly;
    queue.frames.send_parts(frame.len, |data| {
        let (part, behind) = rest.split_at((data.size() as usize).min(rest.len()));
        data.write(0, part);
        rest = behind;
    })
}

impl<H> NicPort<H> {
    /// Stages one packet on queue `ring`.
    fn send(&mut self, ring: usize, frame: &Frame, burst: &Burst<'_>, drops: &mut Drops) -> bool {
        if frame.len > self.max_frame {
            drops.too_long += 1;
            return false;
        }
        // A packet whose data could not be read is empty.
        if frame.len < SHORTEST {
            drops.too_short += 1;
            return false;
        }
        let sent = self.queues.get_mut(ring).is_some_and(|queue| {
            queue.staged = true;
            if frame.len > queue.frames.max_tx_frame() {
                return send_parts(queue, &mut self.assembly, frame, burst);
            }
            queue.frames.send(frame.len).is_some_and(|data| {
                burst.gather(frame, data);
                true
            })
        });
        drops.ring_full += u64::from(!sent);
        sent
    }
}

impl<H> PacketIo for NicPort<H> {
    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, _drops: &mut Drops) -> u32 {
        self.retry(ring);
        let Some(queue) = self.queues.get_mut(ring) else { return 0 };
        let partial_csum = self.partial_csum;
        let least = if self.in_parts { PARTS } else { 1 };
        let most = (burst.limit / (CHUNK + burst.per_frame)).clamp(least, BURST);
        let mut push = |frame: RxFrame<'a>| {
            burst.push_in_pieces(frame.data);
            if !frame.goes_on {
                burst.end_frame();
            }
            if partial_csum {
                frame.data.prefetch();
            }
        };
        let timed = self.arrivals.as_ref().filter(|arrivals| arrivals.since != 0);
        let taken = match timed.zip(self.mirrors.times()) {
            None => queue.frames.take(most, push),
            Some((arrivals, times)) => {
                let mut begins = true;
                let taken = queue.frames.take_timed(most, |frame, time| {
                    if begins {
                        times.push(time);
                    }
                    begins = !frame.goes_on;
                    push(frame);
                });
                let known = arrivals.since..=now();
                times.iter_mut().filter(|time| !known.contains(time)).for_each(|time| *time = 0);
                taken
            }
        };
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

    /// What the interface receives, the bridge collects.
    fn tx_rings(&self) -> usize {
        self.rx_queues.min(self.queues.len())
    }

    fn receives(&self) -> bool {
        true
    }

    fn sends_by_call(&self) -> bool {
        self.copies
    }

    #[inline]
    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let ring = wrapped(ring, self.tx_queues);
        let mut delivered = Delivered::default();
        for frame in frames {
            if self.send(ring, frame, burst, drops) {
                delivered.add(frame.len);
                self.mirrors.note_received(frame, burst);
            }
        }
        self.mirrors.show_received(ring);
        delivered
    }

    fn unsent(&mut self, drops: &mut Drops) -> Unsent {
        let mut all = Unsent::default();
        for queue in &mut self.queues {
            let Unsent { refused, waiting } = queue.unsent(drops);
            all.refused += refused;
            all.waiting += waiting;
        }
        all
    }

    fn discard(&mut self) {
        self.queues.iter_mut().for_each(|queue| queue.stall = queue.discard());
    }

    fn flush(&mut self, idle: bool) {
        for queue in &mut self.queues {
            if queue.staged || (idle && queue.stall.is_some()) {
                queue.flush();
            }
        }
        self.mirrors.wake(idle);
    }

    fn complete(&mut self, idle: bool) {
        self.mirrors.wake(idle);
    }

    fn count_lost(&mut self, drops: &mut Drops) {
        for queue in &mut self.queues {
            let socket = queue.frames.socket();
            let lost = Lost::receiving(&socket.fd, socket.frags) + Lost::sending(&socket.fd);
            let before = std::mem::replace(&mut queue.lost, lost);
            drops.too_long += lost.too_long.saturating_sub(before.too_long);
            drops.ring_full += lost.ring_full.saturating_sub(before.ring_full);
            let bad_slot = lost.bad_slot.saturating_sub(before.bad_slot);
            let void = bad_slot.min(queue.void);
            queue.void -= void;
            drops.bad_slot += bad_slot - void;
            let bad_desc = queue.frames.counters().rx_bad_desc;
            drops.bad_slot += bad_desc - std::mem::replace(&mut queue.bad_desc, bad_desc);
        }
    }
}

impl<H> Backpressure for NicPort<H> {}

impl<H> Configure for NicPort<H> {
    fn set_max_frame(&mut self, bytes: u32) {
        let least = |of: fn(&FrameQueue) -> u32| {
            self.queues.iter().map(|queue| of(&queue.frames)).min().unwrap_or(0)
        };
        let chunk = least(FrameQueue::max_tx_frame);
        let most = if self.in_parts { least(FrameQueue::max_tx_packet) } else { chunk };
        self.max_frame = bytes.saturating_add(VLAN_TAG).min(most);
        if self.max_frame > chunk && self.max_frame as usize > self.assembly.len() {
            self.assembly.resize(self.max_frame as usize, 0);
        }
    }
}

impl<H> Mirrored for NicPort<H> {
    fn set_mirrors(&mut self, mirrors: PortMirrors) {
        self.mirrors.set(mirrors);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.ask(self.mirrors.shows_sent());
        }
    }

    fn show_sent(&mut self, ring: usize, bytes: &[u8], slots: &[Shown]) {
        self.mirrors.show_sent(ring, bytes, slots);
    }
}

impl<H> Wake for NicPort<H> {
    fn arm(&mut self) {
        self.wake_source.arm(self.queues.iter().filter_map(|queue| queue.stall));
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.wake_source.as_fd()
    }

    fn drain(&self) {
        self.wake_source.drain();
    }
}
