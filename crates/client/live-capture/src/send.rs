//! Sending: one packet a call, as libpcap has it.

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

use ringway::{BoundRing, Port, PortKind};
use ringway_abi::{Dir, NS_MOREFRAG};
use rustix::{
    event::{PollFlags, Timespec},
    fd::{AsRawFd, OwnedFd},
    io::Errno,
};

use crate::{
    live::{Awaited, Live},
    sys::poll,
};

/// How long a packet waits for room.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an Ethernet header, and of a VLAN tag.
const SHORTEST: usize = 14;
const VLAN_TAG: u32 = 4;
/// Slots of one packet at most: 64 KiB of the smallest buffers.
const MAX_SLOTS: usize = 37;

/// Why a packet was not sent.
#[derive(Debug)]
pub struct SendError {
    /// The number for it: EAGAIN where there is no room yet.
    pub errno: i32,
    pub text: String,
}

impl SendError {
    pub(crate) fn new(errno: Errno, text: String) -> SendError {
        SendError { errno: errno.raw_os_error(), text }
    }
}

/// What the thread that sends knows of the ring.
#[derive(Default)]
pub struct Sending {
    /// The slot that nobody had taken, and how many packets were sent since.
    tail: u32,
    stalls: u32,
}

impl Sending {
    /// Whether it is to be seen if anything serves the ring still: now and then, while what was sent stays there.
    #[inline]
    fn is_stalled(&mut self, ring: &BoundRing) -> bool {
        let tail = ring.kring().hwtail();
        if !ring.is_behind() || std::mem::replace(&mut self.tail, tail) != tail {
            self.stalls = 0;
            return false;
        }
        self.stalls = self.stalls.wrapping_add(1);
        self.stalls.is_power_of_two()
    }
}

/// Why nothing was sent.
enum Stop {
    /// There is no daemon that would take it.
    NoDaemon,
    /// What ends a sleep tells of room.
    NoRoom,
    Error(SendError),
}

impl From<SendError> for Stop {
    fn from(error: SendError) -> Stop {
        Stop::Error(error)
    }
}

impl Live {
    /// Sends a packet. Where there is no room it waits, unless the program does not want to; and where the port's daemon
    /// has ended it opens the port again, and waits for that.
    pub fn inject(&self, packet: &[u8], nonblocking: bool) -> Result<(), SendError> {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut deadline = None;
        loop {
            match self.try_inject(packet, nonblocking, &mut sending) {
                Ok(()) => return Ok(()),
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::NoRoom) => {
                    let now = Instant::now();
                    let deadline = *deadline.get_or_insert(now + PATIENCE);
                    if now >= deadline {
                        let name = self.port().name().to_owned();
                        let text = format!(
                            "{name}: nothing takes what is sent; start the program at the other end"
                        );
                        return Err(SendError::new(Errno::TIMEDOUT, text));
                    }
                    // Without the port, which a thread that reads is to get.
                    sleep(&self.tx_sources(), deadline - now)?;
                }
                Err(Stop::NoDaemon) => match self.await_port_to_send(nonblocking)? {
                    Awaited::Port => deadline = None,
                    Awaited::Nothing => return Ok(()),
                },
            }
        }
    }

    fn try_inject(
        &self,
        packet: &[u8],
        nonblocking: bool,
        sending: &mut Sending,
    ) -> Result<(), Stop> {
        let port = self.port();
        let name = port.name();
        if port.kind() == PortKind::Monitor {
            let text = format!(
                "{name}: a monitor cannot send; another program has the port: send through one of your \
                 own (on a switch: vale0:another)"
            );
            return Err(SendError::new(Errno::OPNOTSUPP, text).into());
        }
        if self.is_left() {
            return Err(Stop::NoDaemon);
        }
        let Some(ring) = port.binding().rings(Dir::Tx).first() else {
            let text = format!("{name}: it was opened to receive only; leave /R out of its name");
            return Err(SendError::new(Errno::OPNOTSUPP, text).into());
        };
        let longest = ring.kring().owner().longest_frame();
        if packet.len() < SHORTEST || packet.len() > longest as usize {
            check_length(&port, longest, packet.len())?;
        }
        let size = port.max_frame();
        let parts = packet.len().div_ceil(size);
        if parts > MAX_SLOTS.min(ring.kring().ring().num_slots() as usize - 1) {
            let text = format!("{name}: {} bytes are too long for a packet", packet.len());
            return Err(SendError::new(Errno::MSGSIZE, text).into());
        }
        if ring.kring().is_ended() || sending.is_stalled(ring) {
            if self.has_lost(&port) {
                return Err(Stop::NoDaemon);
            }
            check_gone(&port)?;
        }
        while room(ring) < parts {
            ring.sync();
            if room(ring) >= parts {
                break;
            }
            if self.has_lost(&port) {
                return Err(Stop::NoDaemon);
            }
            check_gone(&port)?;
            if nonblocking {
                let text = format!("{name}: no room to send; try again: {}", Errno::AGAIN);
                return Err(SendError::new(Errno::AGAIN, text).into());
            }
            let drained = port.binding().arm(Dir::Tx);
            ring.sync();
            if room(ring) < parts {
                return Err(Stop::NoRoom);
            }
            if drained {
                port.binding().disarm(Dir::Tx);
            }
        }
        let view = ring.kring().ring();
        let mut at = view.head();
        for (n, part) in packet.chunks(size).enumerate() {
            let slot = view.slot(at);
            let written = view.buf(slot.buf_idx).map_or(0, |buf| buf.write(0, part));
            let flags = if n + 1 < parts { NS_MOREFRAG } else { 0 };
            view.set_slot(at, slot.buf_idx, written as u16, flags);
            at = view.next(at);
        }
        view.set_cur(at);
        view.set_head(at);
        ring.sync();
        Ok(())
    }
}

/// Fails if a switch would drop the packet because it is too short, or the interface because it is longer than its present
/// MTU allows: `longest` bytes without a VLAN tag.
#[cold]
#[inline(never)]
fn check_length(port: &Port, longest: u32, length: usize) -> Result<(), SendError> {
    let name = port.name();
    if length < SHORTEST && matches!(port.kind(), PortKind::Vale | PortKind::Nic) {
        let text = format!("{name}: {length} bytes are no frame: it has {SHORTEST} at least");
        return Err(SendError::new(Errno::INVAL, text));
    }
    if length > longest.saturating_add(VLAN_TAG) as usize {
        let text = format!(
            "{name}: {length} bytes are too long; the interface's MTU allows {longest}, and a VLAN tag: raise it"
        );
        return Err(SendError::new(Errno::MSGSIZE, text));
    }
    Ok(())
}

/// Fails if nothing will be sent any more, because the interface has gone.
fn check_gone(port: &Port) -> Result<(), SendError> {
    if !port.binding().fails(Dir::Tx) {
        return Ok(());
    }
    let text = format!("{}: the port has gone; open it again", port.name());
    Err(SendError::new(Errno::NXIO, text))
}

/// Slots that are free.
fn room(ring: &BoundRing) -> usize {
    let view = ring.kring().ring();
    let (head, tail, slots) = (view.head(), view.tail(), view.num_slots());
    if head < slots && tail < slots { view.distance(head, tail) as usize } else { 0 }
}

/// Sleeps until there may be room, no longer than that.
fn sleep(sources: &[(OwnedFd, PollFlags)], longest: Duration) -> Result<(), SendError> {
    let fds: Vec<_> = sources.iter().map(|(fd, events)| (fd.as_raw_fd(), *events)).collect();
    let longest =
        Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
    match poll(&fds, Some(longest)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(SendError::new(error, format!("cannot wait for room to send: {error}"))),
    }
}
