//! Sending: the packets in slots up to `head`, straight from their buffers, many by one system call.
//!
//! ```text
//!   hwcur .. head        to be sent now
//!   head  .. hwtail      the program's
//! ```
//!
//! The kernel copies what it sends, so slots are the program's again as soon as it has taken them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use std::time::Instant;

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG, NS_REPORT};
use ringway_kring::{Accepted, Driver, Kring, Offsets};
use ringway_region::{Buf, Layout, Slot};

use crate::patience::Patience;
use crate::sys::{BATCH, Pieces};
use crate::tx_queue::stall_reason;
use crate::{MAX_FRAGS, SHORTEST, offsets};

/// Slots that the packets of one system call may have.
const SLOTS: usize = BATCH + MAX_FRAGS as usize;

/// Driver of a tx ring of an interface: any process that holds the socket and the region.
///
/// Slots that NS_MOREFRAG joins are one packet, which waits until its last slot is there; in
/// netmap's emulated mode each would be a packet. Packets are sent whole, or dropped whole and
/// counted: as `bad_slot` when they name no buffer, have less than 14 bytes or more than 64 slots;
/// as `too_long` when they are longer than the interface sends, or a slot is longer than its buffer
/// (S-SYNC-9).
///
/// A sync makes a system call for every 64 packets, and one for each packet that the kernel will not
/// have. What the kernel has no room for, or no link, stays in order and goes out with a later sync. What
/// the device refuses for 50 ms as if it had no room is dropped as `too_long`, so that others behind it go on: the other
/// end of a veth pair may have a smaller MTU.
pub struct PacketTx {
    socket: Arc<OwnedFd>,
    data_size: u32,
    patience: Mutex<Patience>,
    /// Whether a packet waits, without the lock.
    is_waiting: AtomicBool,
}

impl PacketTx {
    /// For a socket that sends, and a region of this layout.
    pub fn new(socket: Arc<OwnedFd>, layout: &Layout) -> PacketTx {
        let (data_size, patience) = (layout.data_size(), Mutex::default());
        PacketTx { socket, data_size, patience, is_waiting: AtomicBool::new(false) }
    }

    /// The socket. To poll it for POLLOUT is no use where it is the interface that has no room.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Driver for PacketTx {
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let head = kring.within(head);
        let mut at = kring.hwcur();
        while at != head {
            let next = self.send_some(kring, at, head);
            if next == at {
                break;
            }
            at = next;
            // At once, lest a successor of a killed process sends them again.
            kring.csb().service.publish(at, kring.ring().prev(at));
        }
    }
}

/// Packets for one system call, as the kernel wants them.
struct Batch<'k> {
    /// What slots hold.
    data: Pieces<'k, SLOTS>,
    /// Of each packet: its slots in `data`, the first slot of the ring behind it, and its bytes.
    packets: [Packet; BATCH],
    count: usize,
}

#[derive(Clone, Copy, Default)]
struct Packet {
    first: usize,
    slots: usize,
    next: u32,
    bytes: u32,
}

/// What the slots from some place on are.
enum Chain {
    /// A packet, which is in the batch now; the next one begins there.
    Packet(u32),
    /// What cannot be sent; `goes_on`: there is more of it at `next`.
    Bad { next: u32, goes_on: bool, too_long: bool },
    /// Not whole yet.
    Waits,
}

impl PacketTx {
    /// Sends packets from slot `from` on, by one system call; returns how far it came.
    #[inline]
    fn send_some(&self, kring: &Kring, from: u32, head: u32) -> u32 {
        let offsets = offsets(kring, self.data_size);
        let mut batch =
            Batch { data: Pieces::new(), packets: [Packet::default(); BATCH], count: 0 };
        let mut start = self.skip_rest(kring, from, head);
        let mut at = start;
        while at != head && batch.count < BATCH && batch.data.count() + MAX_FRAGS as usize <= SLOTS
        {
            match self.stage(kring, &offsets, &mut batch, at, head) {
                Chain::Packet(next) => at = next,
                Chain::Waits => break,
                // What comes before goes out first: the order of events is that of the slots.
                Chain::Bad { .. } if batch.count > 0 => break,
                Chain::Bad { next, goes_on, too_long } => {
                    kring.note(|c| if too_long { &c.too_long } else { &c.bad_slot }, 1);
                    // The driver's mark: the rest of a packet with too many slots is to be dropped.
                    kring.owner().driver_cursor.store(goes_on.into(), Relaxed);
                    start = self.skip_rest(kring, next, head);
                    at = start;
                }
            }
        }
        if batch.count == 0 { start } else { self.submit(kring, &batch, start) }
    }

    /// Drops what is left of a packet with too many slots.
    #[inline]
    fn skip_rest(&self, kring: &Kring, from: u32, head: u32) -> u32 {
        let (ring, mark) = (kring.ring(), &kring.owner().driver_cursor);
        let mut at = from;
        while at != head && mark.load(Relaxed) != 0 {
            mark.store((ring.slot(at).flags & NS_MOREFRAG != 0).into(), Relaxed);
            consume(kring, at, &ring.slot(at));
            at = ring.next(at);
        }
        at
    }

    /// Adds the packet that begins in slot `first` to the batch.
    #[inline]
    fn stage<'k>(
        &self,
        kring: &'k Kring,
        offsets: &Offsets,
        batch: &mut Batch<'k>,
        first: u32,
        head: u32,
    ) -> Chain {
        let ring = kring.ring();
        // One that cannot end in time is not waited for: the program may have no slot left.
        let most = MAX_FRAGS.min(ring.num_slots() - 1);
        let (mut at, mut good, mut bytes, before) = (first, true, 0, batch.data.count());
        let mut too_long = false;
        for _ in 0..most {
            if at == head {
                batch.data.truncate(before);
                return Chain::Waits;
            }
            let slot = ring.slot(at);
            match self.data(kring, offsets, &slot) {
                Some(data) => {
                    batch.data.add(data);
                    bytes += data.size();
                }
                None => {
                    good = false;
                    too_long |= u32::from(slot.len) > self.room(offsets, &slot);
                }
            }
            consume(kring, at, &slot);
            at = ring.next(at);
            if slot.flags & NS_MOREFRAG == 0 {
                if !good || bytes < SHORTEST {
                    batch.data.truncate(before);
                    return Chain::Bad { next: at, goes_on: false, too_long };
                }
                let slots = batch.data.count() - before;
                batch.packets[batch.count] = Packet { first: before, slots, next: at, bytes };
                batch.count += 1;
                return Chain::Packet(at);
            }
        }
        batch.data.truncate(before);
        Chain::Bad { next: at, goes_on: true, too_long }
    }

    /// What a slot holds; `None` if it names no buffer, or is longer than its buffer (S-SYNC-9).
    #[inline]
    fn data<'k>(&self, kring: &'k Kring, offsets: &Offsets, slot: &Slot) -> Option<Buf<'k>> {
        kring.ring().buf(slot.buf_idx)?.part(offsets.read(slot.ptr), slot.len.into())
    }

    /// Bytes of a slot's buffer behind its offset.
    fn room(&self, offsets: &Offsets, slot: &Slot) -> u32 {
        self.data_size - offsets.read(slot.ptr)
    }

    /// Has the kernel send the batch; returns the slot behind what it has taken, `from` if nothing.
    fn submit(&self, kring: &Kring, batch: &Batch<'_>, from: u32) -> u32 {
        let packets = &batch.packets[..batch.count];
        let slots = packets.iter().map(|packet| packet.first..packet.first + packet.slots);
        let sent = batch.data.send(self.socket.as_fd(), slots);
        kring.note(|c| &c.kicks, 1);
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => return self.refused(kring, &error, &packets[0], from),
        };
        if self.is_waiting.load(Relaxed) {
            self.patience().taken();
            self.is_waiting.store(false, Relaxed);
        }
        let sent = &packets[..sent];
        kring.count(sent.len() as u32);
        kring.note(|c| &c.bytes, sent.iter().map(|packet| u64::from(packet.bytes)).sum());
        sent.last().map_or(from, |packet| packet.next)
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a packet is given up for which there is no room.
    fn is_over(&self, packet: &Packet) -> bool {
        let mut patience = self.patience();
        let is_over = patience.is_over(packet.bytes, Instant::now());
        self.is_waiting.store(patience.is_waiting(), Relaxed);
        is_over
    }

    /// The kernel does not take the first packet: whether to go on behind it.
    #[cold]
    fn refused(&self, kring: &Kring, error: &io::Error, packet: &Packet, from: u32) -> u32 {
        let next = packet.next;
        match error.raw_os_error() {
            Some(libc::ENOBUFS) if self.is_over(packet) => {
                kring.note(|c| &c.too_long, 1);
                next
            }
            _ if stall_reason(error).is_some() => from,
            Some(libc::ENXIO | libc::ENODEV) => {
                kring.stop();
                from
            }
            Some(libc::EMSGSIZE) => {
                kring.note(|c| &c.too_long, 1);
                next
            }
            _ => {
                kring.note(|c| &c.bad_slot, 1);
                next
            }
        }
    }
}

/// Takes off a slot the flags that a sync consumes.
#[inline]
fn consume(kring: &Kring, at: u32, slot: &Slot) {
    // S-FLAGS-NS_REPORT, S-FLAGS-NS_BUF_CHANGED.
    let consumed = NS_REPORT | NS_BUF_CHANGED;
    if slot.flags & consumed != 0 {
        kring.ring().set_slot(at, slot.buf_idx, slot.len, slot.flags & !consumed);
    }
}
