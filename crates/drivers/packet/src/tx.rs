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
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use std::time::Instant;

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG, NS_REPORT};
use ringway_kring::{Accepted, Driver, Kring, LongestTaken, Offsets};
use ringway_region::{Buf, Layout, Slot};
use ringway_switch_port::StallReason;

use crate::patience::Patience;
use crate::sys::{BATCH, Pieces, socket};
use crate::tx_queue::stall_reason;
use crate::{MAX_FRAGS, SHORTEST, offsets};

/// Slots that the packets of one system call may have.
const SLOTS: usize = BATCH + MAX_FRAGS as usize;

/// Driver of a tx ring of an interface: any process that holds the socket and the region.
///
/// Slots that NS_MOREFRAG joins are one packet, which waits until its last slot is there; in
/// netmap's emulated mode each would be a packet. Packets are sent whole, or dropped whole and
/// counted: as `bad_slot` when they name no buffer, or have more than 64 slots; as `too_short` with less than 14 bytes;
/// as `too_long` when they are longer than the interface sends, or a slot is longer than its buffer
/// (S-SYNC-9).
///
/// A sync makes a system call for every 64 packets, and one for each packet that the kernel will not
/// have. What the kernel has no room for, or no link, stays in order and goes out with a later sync. What
/// the device refuses for 50 ms as if it had no room is dropped, so that others behind it go on: as `too_long`, since
/// the other end of a veth pair may have a smaller MTU, or as `ring_full` where the kernel has taken a packet of that
/// length lately, and on all other devices: they have no other end, and tell of what is too long for them by EMSGSIZE.
pub struct PacketTx {
    socket: Arc<OwnedFd>,
    data_size: u32,
    patience: Mutex<Patience>,
    /// Whether `patience` has something to forget, without the lock.
    has_refused: AtomicBool,
    /// Bytes of the longest packet that the kernel has taken lately.
    longest: LongestTaken,
    /// Whether the interface is an end of a pair. The kernel is asked when the interface has refused a packet.
    is_pair: OnceLock<bool>,
}

impl PacketTx {
    /// For a socket that sends, and a region of this layout.
    pub fn new(socket: Arc<OwnedFd>, layout: &Layout) -> PacketTx {
        let (data_size, patience) = (layout.data_size(), Mutex::default());
        let (has_refused, longest) = (AtomicBool::new(false), LongestTaken::none());
        PacketTx { socket, data_size, patience, has_refused, longest, is_pair: OnceLock::new() }
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

/// What is wrong with a packet.
#[derive(Clone, Copy)]
enum Misfit {
    BadSlot,
    TooLong,
    TooShort,
}

/// What the slots from some place on are.
enum Chain {
    /// A packet, which is in the batch now; the next one begins there.
    Packet(u32),
    /// What cannot be sent; `goes_on`: there is more of it at `next`.
    Bad { next: u32, goes_on: bool, why: Misfit },
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
                Chain::Bad { next, goes_on, why } => {
                    kring.note(
                        |c| match why {
                            Misfit::BadSlot => &c.bad_slot,
                            Misfit::TooLong => &c.too_long,
                            Misfit::TooShort => &c.too_short,
                        },
                        1,
                    );
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
        let mut why = Misfit::BadSlot;
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
                    if u32::from(slot.len) > self.room(offsets, &slot) {
                        why = Misfit::TooLong;
                    }
                }
            }
            consume(kring, at, &slot);
            at = ring.next(at);
            if slot.flags & NS_MOREFRAG == 0 {
                if !good || bytes < SHORTEST {
                    batch.data.truncate(before);
                    let why = if good { Misfit::TooShort } else { why };
                    return Chain::Bad { next: at, goes_on: false, why };
                }
                let slots = batch.data.count() - before;
                batch.packets[batch.count] = Packet { first: before, slots, next: at, bytes };
                batch.count += 1;
                return Chain::Packet(at);
            }
        }
        batch.data.truncate(before);
        Chain::Bad { next: at, goes_on: true, why }
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
        let sent = &packets[..sent];
        let longest = sent.iter().map(|packet| packet.bytes).max().unwrap_or(0);
        if self.has_refused.load(Relaxed)
            && let Ok(mut patience) = self.patience.try_lock()
        {
            patience.taken(longest);
            self.has_refused.store(patience.remembers(), Relaxed);
        }
        self.longest.taken(longest);
        kring.count(sent.len() as u32);
        kring.note(|c| &c.bytes, sent.iter().map(|packet| u64::from(packet.bytes)).sum());
        sent.last().map_or(from, |packet| packet.next)
    }

    /// Whether a packet is given up for which there is no room. A thread that holds the lock may have
    /// been lost by a fork: the ring is not to wait for it, and this process gives nothing up.
    fn is_over(&self, packet: &Packet) -> bool {
        let Ok(mut patience) = self.patience.try_lock() else { return false };
        self.has_refused.store(true, Relaxed);
        patience.is_over(Some(packet.bytes), Instant::now())
    }

    /// There is no link: how long a packet has waited before does not count when there is one.
    fn end_wait(&self) {
        if let Ok(mut patience) = self.patience.try_lock() {
            patience.end_wait();
        }
    }

    /// Whether a packet that is given up for this error is too long. A device that is not an end of a pair has no room
    /// (ENOBUFS) because its queue stands still: that of a tap whose machine is stopped, say.
    fn is_too_long(&self, error: &io::Error, packet: &Packet, now: Instant) -> bool {
        let is_pair = || socket::is_pair(self.socket.as_fd()).unwrap_or(false);
        match error.raw_os_error() {
            Some(libc::EMSGSIZE) => true,
            Some(libc::ENOBUFS) => {
                *self.is_pair.get_or_init(is_pair) && !self.longest.has_taken(packet.bytes, now)
            }
            _ => false,
        }
    }

    /// The kernel does not take the first packet: whether to go on behind it.
    #[cold]
    fn refused(&self, kring: &Kring, error: &io::Error, packet: &Packet, from: u32) -> u32 {
        let is_over = error.raw_os_error() == Some(libc::ENOBUFS) && self.is_over(packet);
        match stall_reason(error) {
            Some(StallReason::Link) => self.end_wait(),
            Some(_) if !is_over => {}
            None if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {
                kring.stop();
            }
            _ => {
                let too_long = self.is_too_long(error, packet, Instant::now());
                kring.note(
                    |c| match too_long {
                        true => &c.too_long,
                        false if is_over => &c.ring_full,
                        false => &c.bad_slot,
                    },
                    1,
                );
                return packet.next;
            }
        }
        from
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use ringway_abi::Dir;
    use ringway_kring::Outcome;
    use ringway_region::{Region, RingInit, Sizes};
    use ringway_testkit::datagram_sockets;
    use rustix::net::{RecvFlags, recv};

    use super::*;

    const DATA_SIZE: u32 = 128;

    /// A ring that sends to a socket of this process: what has few packets waiting, as an interface has.
    struct Ring {
        kring: Kring,
        driver: PacketTx,
        peer: OwnedFd,
    }

    impl Ring {
        fn new(slots: u32, offsets: Offsets) -> Ring {
            let sizes = Sizes {
                if_size: 1024,
                if_num: 2,
                ring_size: 4608,
                ring_num: 2,
                buf_size: DATA_SIZE,
                buf_num: 2 + slots,
            };
            let layout = Layout::new(&sizes, 0).unwrap();
            let region = Arc::new(Region::create(2, layout).unwrap());
            let init = RingInit { dir: Dir::Tx, ringid: 0, num_slots: slots };
            let bufs: Vec<u32> = (2..2 + slots).collect();
            let kring = Kring::create(&region, 0, &init, &bufs).unwrap();
            offsets.note(&kring);
            let (own, peer) = datagram_sockets();
            Ring { kring, driver: PacketTx::new(Arc::new(own), &layout), peer }
        }

        /// Fills the slots that there are for these; how many.
        fn fill(&self, slots: &[Filled]) -> usize {
            let ring = self.kring.ring();
            let room = ring.distance(ring.head(), ring.tail()) as usize;
            let mut at = ring.head();
            for filled in slots.iter().take(room) {
                if let Some(buf) = ring.buf(at + 2) {
                    buf.write((filled.ptr & 0xff).min(40) as usize, &filled.bytes);
                }
                ring.set_slot(at, filled.buffer.unwrap_or(at + 2), filled.len, filled.flags);
                ring.set_slot_ptr(at, filled.ptr);
                at = ring.next(at);
            }
            ring.set_head(at);
            ring.set_cur(at);
            slots.len().min(room)
        }

        fn sync(&self) {
            assert_eq!(self.kring.sync(&self.driver), Outcome::Done);
        }

        /// What has arrived.
        fn arrived(&self) -> Vec<Vec<u8>> {
            let mut bytes = [0; 64 * DATA_SIZE as usize];
            let receive = || {
                let (count, _) = recv(&self.peer, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
                Some(bytes[..count].to_vec())
            };
            std::iter::from_fn(receive).collect()
        }

        fn counts(&self) -> [u64; 4] {
            let c = self.kring.counters();
            [&c.packets, &c.bytes, &c.bad_slot, &c.too_long].map(|c| c.load(Relaxed))
        }
    }

    /// What a program puts into a slot.
    #[derive(Clone, Debug)]
    struct Filled {
        bytes: Vec<u8>,
        len: u16,
        flags: u16,
        ptr: u64,
        /// In the place of the slot's own.
        buffer: Option<u32>,
    }

    const OTHER_FLAGS: [u16; 4] =
        [0, NS_REPORT, NS_BUF_CHANGED, NS_REPORT | NS_BUF_CHANGED | 0x4000];
    const OFFSETS: Offsets = Offsets { mask: 0xff, max: 40, gap: 0 };

    /// A slot in the middle of a packet.
    fn filled(number: usize, len: u32, ptr: u64) -> Filled {
        let bytes = (0..len.min(DATA_SIZE)).map(|i| (i as usize * 3 + number) as u8).collect();
        let flags = NS_MOREFRAG | OTHER_FLAGS[number % 4];
        Filled { bytes, len: len as u16, flags, ptr, buffer: None }
    }

    #[derive(Debug, Default, PartialEq)]
    struct Expected {
        packets: Vec<Vec<u8>>,
        bad_slot: u64,
        too_long: u64,
        too_short: u64,
    }

    impl Expected {
        /// A packet of these slots.
        fn add(&mut self, slots: &[Filled]) {
            let looked_at = &slots[..slots.len().min(64)];
            let room = |slot: &Filled| DATA_SIZE - (slot.ptr & 0xff).min(40) as u32;
            let is_long = |slot: &Filled| u32::from(slot.len) > room(slot);
            let bytes: Vec<u8> = slots.iter().flat_map(|slot| slot.bytes.clone()).collect();
            let is_bad = slots.len() > 64 || slots.iter().any(|slot| slot.buffer.is_some());
            if looked_at.iter().any(is_long) {
                self.too_long += 1;
            } else if is_bad {
                self.bad_slot += 1;
            } else if bytes.len() < 14 {
                self.too_short += 1;
            } else {
                self.packets.push(bytes);
            }
        }
    }

    proptest! {
        /// Against a list: packets leave whole and in order, however many slots are filled at once, and however few the
        /// other side has room for. The others are counted, and a sync takes off the slots what it consumes.
        #[test]
        fn packets_leave_whole_or_are_counted(
            packets in proptest::collection::vec(
                (prop_oneof![8 => 1usize..5, 1 => 62usize..68], 0u32..60, 0usize..70, 0..12, 0usize..4), 0..30,
            ),
            open in prop_oneof![3 => 0usize..4, 1 => 60usize..70], at_once in 1usize..128,
        ) {
            let ring = Ring::new(128, OFFSETS);
            let (mut slots, mut expected) = (Vec::<Filled>::new(), Expected::default());
            for (count, len, which, kind, ptr) in packets {
                let ptr = [0, 8, 0xff, 0xab_0028][ptr];
                let room = DATA_SIZE - OFFSETS.read(ptr);
                let mut packet: Vec<_> = (0..count).map(|i| filled(slots.len() + i, len, ptr)).collect();
                let changed = &mut packet[which % count];
                match kind {
                    0 => changed.len = room as u16 + 1,
                    1 => (changed.buffer, changed.len) = (Some(0), room as u16),
                    2 => (changed.buffer, changed.len) = (Some(u32::MAX), room as u16 + 1),
                    3 => *changed = filled(which, room, ptr),
                    _ => {}
                }
                packet[count - 1].flags &= !NS_MOREFRAG;
                expected.add(&packet);
                slots.extend(packet);
            }
            // And a packet that does not end.
            slots.extend((0..open).map(|i| filled(i, 20, 0)));
            expected.bad_slot += u64::from(open >= 64);

            let (mut found, mut filled) = (Vec::new(), 0);
            loop {
                let (from, end) = (ring.kring.hwcur(), slots.len().min(filled + at_once));
                let count = ring.fill(&slots[filled..end]);
                filled += count;
                ring.sync();
                let arrived = ring.arrived();
                let done = ring.kring.ring().distance(from, ring.kring.hwcur()) as usize;
                let is_idle = count == 0 && arrived.is_empty() && done == 0;
                found.extend(arrived);
                if is_idle {
                    break;
                }
            }
            prop_assert_eq!(filled, slots.len());
            let left = ring.kring.ring().distance(ring.kring.hwcur(), ring.kring.ring().head()) as usize;
            prop_assert_eq!(left, if open < 64 { open } else { 0 });
            let bytes: usize = found.iter().map(Vec::len).sum();
            let Expected { packets, bad_slot, too_long, too_short } = expected;
            prop_assert_eq!(ring.kring.counters().too_short.load(Relaxed), too_short);
            prop_assert_eq!(ring.counts(), [packets.len() as u64, bytes as u64, bad_slot, too_long]);
            prop_assert!(found == packets);
            // The last ones that were filled.
            let done = slots.len() - left;
            let last = slots.len().saturating_sub(128);
            for (number, was) in (0..).zip(&slots[..done]).skip(last) {
                let slot = ring.kring.ring().slot(number % 128);
                let flags = was.flags & !(NS_REPORT | NS_BUF_CHANGED);
                prop_assert_eq!((slot.len, slot.flags, slot.ptr), (was.len, flags, was.ptr));
            }
        }
    }

    /// The program has no slot left to end it with.
    #[test]
    fn a_packet_that_fills_the_ring_is_not_waited_for() {
        let ring = Ring::new(8, OFFSETS);
        let open: Vec<_> = (0..7).map(|i| filled(i, 20, 0)).collect();
        assert_eq!(ring.fill(&open[..6]), 6);
        ring.sync();
        assert_eq!((ring.kring.hwcur(), ring.counts()), (0, [0; 4]));
        assert_eq!(ring.fill(&open[6..]), 1);
        ring.sync();
        assert_eq!((ring.kring.hwcur(), ring.counts()), (7, [0, 0, 1, 0]));
        // To its end.
        let last = Filled { flags: 0, ..filled(7, 20, 0) };
        assert_eq!(ring.fill(&[last.clone(), last.clone()]), 2);
        ring.sync();
        assert_eq!((ring.arrived(), ring.counts()), (vec![last.bytes], [1, 20, 1, 0]));
    }

    /// What is in the way of all that comes is no one's fault: nothing is lost. What is never taken is.
    #[test]
    fn what_the_socket_says_decides() {
        let packet = Packet { first: 0, slots: 1, next: 5, bytes: 60 };
        for (error, next, counts, is_stopped) in [
            (libc::EAGAIN, 3, [0, 0], false),
            (libc::ENOMEM, 3, [0, 0], false),
            (libc::ENOBUFS, 3, [0, 0], false),
            (libc::ENETDOWN, 3, [0, 0], false),
            (libc::ENXIO, 3, [0, 0], true),
            (libc::ENODEV, 3, [0, 0], true),
            (libc::EMSGSIZE, 5, [0, 1], false),
            (libc::EINVAL, 5, [1, 0], false),
        ] {
            let ring = Ring::new(8, OFFSETS);
            let refusal = io::Error::from_raw_os_error(error);
            assert_eq!(ring.driver.refused(&ring.kring, &refusal, &packet, 3), next, "{error}");
            assert_eq!(ring.counts()[2..], counts, "{error}");
            assert_eq!(ring.kring.is_ended(), is_stopped, "{error}");
        }
    }

    /// The other end of a pair may have a smaller MTU, also than before. No other device refuses a packet so for its
    /// length.
    #[test]
    fn what_a_pair_has_not_taken_lately_is_too_long() {
        let (no_room, begin) = (io::Error::from_raw_os_error(libc::ENOBUFS), Instant::now());
        for is_pair in [true, false] {
            let ring = Ring::new(8, OFFSETS);
            ring.driver.is_pair.set(is_pair).unwrap();
            let take = |len| {
                ring.fill(&[Filled { flags: 0, ..filled(0, len, 0) }]);
                ring.sync();
            };
            let is_too_long = |bytes, seconds| {
                let packet = Packet { first: 0, slots: 1, next: 5, bytes };
                let now = begin + Duration::from_secs(seconds);
                ring.driver.is_too_long(&no_room, &packet, now)
            };
            assert_eq!(is_too_long(30, 0), is_pair, "none was taken");
            take(30);
            assert_eq!((is_too_long(30, 1), is_too_long(31, 1)), (false, is_pair));
            take(20);
            assert!(!is_too_long(30, 2), "it may be full");
            assert_eq!(is_too_long(30, 4), is_pair, "others pass");
            take(30);
            assert!(!is_too_long(30, 5));
        }
    }

    /// A device that is not known stands still.
    #[test]
    fn what_is_given_up_is_counted_once() {
        let refusal = io::Error::from_raw_os_error(libc::ENOBUFS);
        let packet = Packet { first: 0, slots: 1, next: 5, bytes: 30 };
        for (is_pair, counts) in [(Some(true), [1, 0]), (Some(false), [0, 1]), (None, [0, 1])] {
            let ring = Ring::new(8, OFFSETS);
            is_pair.into_iter().for_each(|is_pair| ring.driver.is_pair.set(is_pair).unwrap());
            while ring.driver.refused(&ring.kring, &refusal, &packet, 3) != 5 {}
            let c = ring.kring.counters();
            assert_eq!([&c.too_long, &c.ring_full].map(|c| c.load(Relaxed)), counts, "{is_pair:?}");
        }
    }

    /// The wait for one is over as soon as something is taken.
    #[test]
    fn what_is_taken_ends_the_wait() {
        let is_waiting = |ring: &Ring| ring.driver.patience.lock().unwrap().is_waiting();
        let ring = Ring::new(8, OFFSETS);
        let packet = Packet { first: 0, slots: 1, next: 5, bytes: 60 };
        let refusal = io::Error::from_raw_os_error(libc::ENOBUFS);
        ring.driver.refused(&ring.kring, &refusal, &packet, 3);
        assert!(ring.driver.has_refused.load(Relaxed) && is_waiting(&ring));
        ring.fill(&[Filled { flags: 0, ..filled(0, 20, 0) }]);
        ring.sync();
        assert!(!ring.driver.has_refused.load(Relaxed) && !is_waiting(&ring));
        // So does the end of the link.
        ring.driver.refused(&ring.kring, &refusal, &packet, 3);
        assert!(is_waiting(&ring));
        let no_link = io::Error::from_raw_os_error(libc::ENETDOWN);
        assert_eq!(ring.driver.refused(&ring.kring, &no_link, &packet, 3), 3);
        assert!(!is_waiting(&ring));
    }

    /// What was given up once is waited for again as soon as the kernel has taken a packet of that length.
    #[test]
    fn what_is_taken_has_room_again() {
        let ring = Ring::new(8, OFFSETS);
        let refusal = io::Error::from_raw_os_error(libc::ENOBUFS);
        let packet = Packet { first: 0, slots: 1, next: 5, bytes: 20 };
        while ring.driver.refused(&ring.kring, &refusal, &packet, 3) != 5 {}
        assert_eq!(ring.driver.refused(&ring.kring, &refusal, &packet, 3), 5, "for a while");
        for (len, next) in [(19, 5), (20, 3)] {
            ring.fill(&[Filled { flags: 0, ..filled(0, len, 0) }]);
            ring.sync();
            let refused = ring.driver.refused(&ring.kring, &refusal, &packet, 3);
            assert_eq!(refused, next, "after one of {len} bytes");
        }
    }

    /// In a child, the lock of a thread that the fork has left behind is never given back.
    #[test]
    fn a_ring_does_not_wait_for_a_thread_that_a_fork_has_left_behind() {
        let ring = Ring::new(8, OFFSETS);
        let packet = Packet { first: 0, slots: 1, next: 5, bytes: 60 };
        let refusal = io::Error::from_raw_os_error(libc::ENOBUFS);
        ring.driver.has_refused.store(true, Relaxed);
        let _held = ring.driver.patience.lock().unwrap();
        assert_eq!(ring.driver.refused(&ring.kring, &refusal, &packet, 3), 3);
        ring.fill(&[Filled { flags: 0, ..filled(0, 20, 0) }]);
        ring.sync();
        assert_eq!((ring.arrived().len(), ring.counts()), (1, [1, 20, 0, 0]));
    }
}
