//! Sending: one packet a call, as libpcap has it.

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

use ringway::{BoundRing, PortKind};
use ringway_abi::{Dir, NS_MOREFRAG};
use rustix::{
    event::{PollFd, Timespec, poll},
    io::Errno,
};

use crate::live::Live;

/// How long a packet waits for room.
const PATIENCE: Duration = Duration::from_secs(5);
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

impl Live {
    /// Sends a packet. Where there is no room it waits, unless the program does not want to.
    pub fn inject(&self, packet: &[u8], nonblocking: bool) -> Result<(), SendError> {
        let _alone = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let port = self.port();
        let name = port.name();
        if port.kind() == PortKind::Monitor {
            let text = format!(
                "{name}: a monitor cannot send; another program has the port: send through one of your \
                 own (on a switch: vale0:another)"
            );
            return Err(SendError::new(Errno::OPNOTSUPP, text));
        }
        let Some(ring) = port.binding().rings(Dir::Tx).first() else {
            let text = format!("{name}: it was opened to receive only; leave /R out of its name");
            return Err(SendError::new(Errno::OPNOTSUPP, text));
        };
        let size = port.max_frame();
        let parts = packet.len().div_ceil(size);
        if parts > MAX_SLOTS.min(ring.kring().ring().num_slots() as usize - 1) {
            let text = format!("{name}: {} bytes are too long for a packet", packet.len());
            return Err(SendError::new(Errno::MSGSIZE, text));
        }
        let deadline = Instant::now() + PATIENCE;
        while room(ring) < parts {
            ring.sync();
            if room(ring) >= parts {
                break;
            }
            if port.binding().fails(Dir::Tx) {
                let text = format!("{name}: the port has gone; open it again");
                return Err(SendError::new(Errno::NXIO, text));
            }
            if nonblocking {
                let text = format!("{name}: no room to send; try again: {}", Errno::AGAIN);
                return Err(SendError::new(Errno::AGAIN, text));
            }
            if Instant::now() >= deadline {
                let text = format!(
                    "{name}: nothing takes what is sent; start the program at the other end"
                );
                return Err(SendError::new(Errno::TIMEDOUT, text));
            }
            wait(ring, port.binding(), deadline)?;
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

/// Slots that are free.
fn room(ring: &BoundRing) -> usize {
    let view = ring.kring().ring();
    let (head, tail, slots) = (view.head(), view.tail(), view.num_slots());
    if head < slots && tail < slots { view.distance(head, tail) as usize } else { 0 }
}

/// Sleeps until there may be room.
fn wait(ring: &BoundRing, binding: &ringway::Binding, deadline: Instant) -> Result<(), SendError> {
    let drained = binding.arm(Dir::Tx);
    ring.sync();
    if room(ring) > 0 {
        if drained {
            binding.disarm(Dir::Tx);
        }
        return Ok(());
    }
    let mut fds: Vec<_> = binding
        .wait_sources(Dir::Tx)
        .map(|(fd, events)| PollFd::from_borrowed_fd(fd, events))
        .collect();
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut fds, Some(&left)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(SendError::new(error, format!("cannot wait for room to send: {error}"))),
    }
}
