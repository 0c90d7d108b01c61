//! Transparent mode (S-FWD): of the packets that a program releases, those that it marks go on as if
//! it were not there. What the interface received goes to the host's stack, and what the stack sent
//! to the interface. Of a packet in several slots all are to be marked, and released by one sync. What
//! is lost counts at the ring from which it was to go.
//!
//! Nothing of this is fast; a program that wants that forwards by itself.

use std::sync::{Arc, OnceLock};

use ringway_abi::{Dir, NR_FORWARD, NS_BUF_CHANGED, NS_FORWARD, NS_MOREFRAG};
use ringway_kring::{Kring, Offsets};
use ringway_proto::Request;
use ringway_region::{RingView, Slot};
use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{SendFlags, send},
};

use crate::{Ask, Binding, BoundRing};

/// The shortest frame that has an Ethernet header.
const SHORTEST: usize = 14;

/// The way to the stack, found when it is first needed.
#[derive(Default)]
pub(crate) struct Stack {
    pub ask: Option<Arc<dyn Ask>>,
    /// `None` inside: there is none.
    socket: OnceLock<Option<OwnedFd>>,
}

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stack").field(&self.socket).finish()
    }
}

impl Stack {
    fn socket(&self) -> Option<&OwnedFd> {
        if self.socket.get().is_none() {
            // Not in the cell's own time: a child that is forked while this thread asks, or a handler that has
            // interrupted it, would wait for ever. What another thread has found meanwhile is as good.
            let found = self.ask.as_ref().and_then(|ask| ask.socket(Request::Stack));
            let _ = self.socket.set(found);
        }
        self.socket.get()?.as_ref()
    }
}

impl Binding {
    /// Whether the ring is in transparent mode.
    #[inline]
    pub(crate) fn is_transparent(ring: &BoundRing) -> bool {
        // S-FWD-1, S-SYNC-11.
        ring.kring().ring().flags() & NR_FORWARD != 0
    }

    /// Whether syncs of receive rings may have put packets into tx rings.
    pub fn forwards(&self) -> bool {
        self.has_stack() && self.rings(Dir::Rx).iter().any(Binding::is_transparent)
    }

    /// Whether there is a host's stack behind the port.
    pub fn has_stack(&self) -> bool {
        self.registration().host_rx_rings > 0
    }

    /// Sends on what the program has released of a receive ring, before the sync that takes it.
    #[cold]
    pub(crate) fn forward(&self, ring: &BoundRing) {
        use std::cmp::Ordering::{Equal, Greater, Less};
        if !self.has_stack() {
            return;
        }
        // Host rings follow the others, and only the first of them forwards.
        match ring.index().cmp(&self.registration().rx_rings) {
            Less => self.forward_up(ring.kring()),
            Equal => self.forward_down(ring.kring()),
            Greater => {}
        }
    }

    /// S-FWD-2: copies packets to the stack.
    fn forward_up(&self, kring: &Kring) {
        let (ring, offsets) = (kring.ring(), Offsets::of(kring));
        let mut frame = Vec::new();
        each_marked(kring, |first, count| {
            frame.clear();
            for at in slots(ring, first, count) {
                let slot = ring.slot(at);
                let begun = ring.buf(slot.buf_idx).and_then(|buf| buf.skip(offsets.read(slot.ptr)));
                let Some(data) = begun.filter(|data| u32::from(slot.len) <= data.size()) else {
                    return kring.note(|c| &c.bad_slot, 1);
                };
                let before = frame.len();
                frame.resize(before + usize::from(slot.len), 0);
                data.copy_to(slot.len.into(), &mut frame[before..]);
            }
            if frame.len() < SHORTEST {
                return kring.note(|c| &c.too_short, 1);
            }
            // A program that is too fast for the stack loses packets there, as with any other interface.
            let sent = self.stack.socket().map_or(Err(Errno::NODEV), |socket| {
                send(socket, &frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            });
            match sent {
                Ok(_) => {}
                Err(Errno::MSGSIZE) => kring.note(|c| &c.too_long, 1),
                Err(_) => kring.note(|c| &c.ring_full, 1),
            }
            for at in slots(ring, first, count) {
                let slot = ring.slot(at);
                // S-FLAGS-NS_FORWARD.
                ring.set_slot(at, slot.buf_idx, slot.len, slot.flags & !NS_FORWARD);
            }
        });
    }

    /// S-FWD-3: exchanges the packets' buffers with those of free slots of the interface's tx rings,
    /// where the program has all of these.
    fn forward_down(&self, kring: &Kring) {
        let nic_rings = usize::from(self.registration().tx_rings);
        let nic = || {
            let nic = self.rings(Dir::Tx).iter().filter(|r| usize::from(r.index()) < nic_rings);
            nic.map(BoundRing::kring)
        };
        if nic().count() == nic_rings {
            exchange_marked(kring, nic);
        }
    }
}

/// Each packet that the program has marked goes to the first of the rings with room for all its slots. What finds no room
/// is dropped, and others behind it may find some.
fn exchange_marked<'k, I: Iterator<Item = &'k Kring>>(kring: &Kring, rings: impl Fn() -> I) {
    let from = kring.ring();
    each_marked(kring, |first, count| {
        let Some(to) = rings().find(|to| count <= room(to)) else {
            return kring.note(|c| &c.ring_full, 1);
        };
        let (to, offsets) = (to.ring(), Offsets::of(to));
        let mut head = to.head();
        for (n, at) in (1..).zip(slots(from, first, count)) {
            let (packet, spare) = (from.plain_slot(at), to.slot(head));
            let more = if n < count { NS_MOREFRAG } else { 0 };
            let back = Slot { len: packet.len, flags: NS_BUF_CHANGED, ..spare };
            let sent = Slot { flags: NS_BUF_CHANGED | more, ..packet };
            // Those of the stack begin with their buffers.
            to.set_slot_ptr(head, offsets.write(spare.ptr, 0));
            from.exchange(at, &back, to, head, &sent);
            head = to.next(head);
        }
        to.set_head(head);
        to.set_cur(head);
    });
}

/// Slots of a tx ring that the program has not filled; none where its cursors are spoiled.
fn room(kring: &Kring) -> u32 {
    let ([from, tail], ring) = (kring.reconciled(), kring.ring());
    let head = ring.head();
    if head >= ring.num_slots() {
        return 0;
    }
    ring.distance(from, tail).saturating_sub(ring.distance(from, head))
}

/// The slots of a packet.
fn slots(ring: &RingView, first: u32, count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(move |n| ring.advance(first, n))
}

/// Calls `each` for the packets that the program has released since the last sync and marked, each of their slots, with the
/// first slot and how many there are. A marked packet that was released in parts is lost.
fn each_marked(kring: &Kring, mut each: impl FnMut(u32, u32)) {
    let ring = kring.ring();
    let ([from, _], head) = (kring.reconciled(), kring.bounded(ring.head()));
    let held = ring.distance(from, kring.hwtail());
    // A head beyond that is refused by the sync.
    let count = Some(ring.distance(from, head)).filter(|count| *count <= held).unwrap_or(0);
    let goes_on = |at: u32| ring.plain_slot(at).flags & NS_MOREFRAG != 0;
    let (mut first, mut is_marked, mut has_begin) = (0, true, !goes_on(ring.prev(from)));
    for n in 0..count {
        let at = ring.advance(from, n);
        let flags = ring.plain_slot(at).flags;
        is_marked &= flags & NS_FORWARD != 0;
        if flags & NS_MOREFRAG != 0 {
            continue;
        }
        match (is_marked, has_begin) {
            (true, true) => each(ring.advance(from, first), n + 1 - first),
            (true, false) => kring.note(|c| &c.bad_slot, 1),
            (false, _) => {}
        }
        (first, is_marked, has_begin) = (n + 1, true, true);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use ringway_kring::{Accepted, Driver};
    use ringway_proto::MirrorGrant;
    use ringway_region::{Layout, Region, RingInit, Sizes};
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    /// A daemon that is asked by a handler which has interrupted the question.
    struct AskedTwice(OnceLock<&'static Stack>);

    impl Ask for AskedTwice {
        fn mirrors(&self, _: Request) -> Option<(Vec<MirrorGrant>, Vec<OwnedFd>)> {
            None
        }

        fn socket(&self, _: Request) -> Option<OwnedFd> {
            static IS_ASKED: OnceLock<()> = OnceLock::new();
            if IS_ASKED.set(()).is_ok() {
                assert!(self.0.get()?.socket().is_some(), "in the handler");
            }
            eventfd(0, EventfdFlags::CLOEXEC).ok()
        }
    }

    #[test]
    fn the_stack_is_asked_for_by_a_handler_too() {
        let ask = Arc::new(AskedTwice(OnceLock::new()));
        let stack: &'static Stack =
            Box::leak(Box::new(Stack { ask: Some(ask.clone()), socket: OnceLock::new() }));
        assert!(ask.0.set(stack).is_ok());
        assert!(stack.socket().is_some());
    }

    const SLOTS: u32 = 16;

    /// Takes what the program releases.
    struct Takes;

    impl Driver for Takes {
        fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
            kring.csb().service.publish(head, kring.hwtail());
        }
    }

    /// A ring that others receive from, and two to send by, in one region.
    fn rings() -> (Kring, [Kring; 2]) {
        let sizes = Sizes::private([2, 1], [SLOTS; 2], 0, 0);
        let region = Arc::new(Region::create(9, Layout::new(&sizes, 0).unwrap()).unwrap());
        let ring = |object: u32, dir: Dir| {
            let init = RingInit { dir, ringid: object as u16, num_slots: SLOTS };
            let bufs: Vec<u32> = (2 + object * SLOTS..).take(SLOTS as usize).collect();
            Kring::create(&region, object, &init, &bufs).unwrap()
        };
        (ring(0, Dir::Rx), [ring(1, Dir::Tx), ring(2, Dir::Tx)])
    }

    /// The ring has received slots with these flags, and the program releases `released` of them.
    fn release(from: &Kring, received: &[u16], released: u32) {
        let ring = from.ring();
        let (head, tail) = (ring.head(), from.hwtail());
        for (at, flags) in slots(ring, tail, received.len() as u32).zip(received) {
            ring.set_slot(at, ring.slot(at).buf_idx, 100, *flags);
        }
        from.csb().service.publish(head, ring.advance(tail, received.len() as u32));
        let _ = from.sync(&Takes);
        ring.set_head(ring.advance(head, released));
        ring.set_cur(ring.head());
    }

    fn forward(from: &Kring, to: &[Kring; 2]) {
        exchange_marked(from, || to.iter());
        let _ = from.sync(&Takes);
    }

    /// What was put into a ring: of each slot, whether the packet goes on.
    fn sent(ring: &Kring) -> Vec<bool> {
        let view = ring.ring();
        let [from, _] = ring.reconciled();
        let filled = slots(view, from, view.distance(from, view.head()));
        filled.map(|at| view.slot(at).flags & NS_MOREFRAG != 0).collect()
    }

    fn lost(ring: &Kring) -> [u64; 2] {
        let counters = ring.counters();
        [&counters.ring_full, &counters.bad_slot].map(|counter| counter.load(Relaxed))
    }

    const MARK: u16 = NS_FORWARD;
    const MORE: u16 = NS_FORWARD | NS_MOREFRAG;

    #[test]
    fn s_fwd_3_packets_go_to_the_interface_as_they_are() {
        let (from, to) = rings();
        let all = || {
            let rings = [&from, &to[0], &to[1]];
            let bufs = rings.iter().flat_map(|ring| {
                (0..SLOTS).map(|at| ring.ring().slot(at).buf_idx).collect::<Vec<_>>()
            });
            let mut bufs: Vec<_> = bufs.collect();
            bufs.sort();
            bufs
        };
        let before = all();
        // The middle one is not marked in all its slots.
        release(&from, &[MORE, MORE, MARK, MORE, NS_MOREFRAG, MARK, MARK], 7);
        forward(&from, &to);
        assert_eq!((sent(&to[0]), sent(&to[1])), (vec![true, true, false, false], vec![]));
        assert_eq!((all(), lost(&from)), (before, [0, 0]), "each buffer is in one slot");
    }

    /// A packet that finds no room is counted, and those behind it may find some.
    #[test]
    fn s_fwd_3_what_finds_no_room_is_counted() {
        let (from, to) = rings();
        for ring in &to {
            let view = ring.ring();
            view.set_head(view.advance(view.head(), SLOTS - 3));
        }
        release(&from, &[MARK, MORE, MORE, MARK, MORE, MARK, MORE, MARK, MARK], 9);
        forward(&from, &to);
        let behind = |ring: &Kring| sent(ring)[SLOTS as usize - 3..].to_vec();
        assert_eq!((behind(&to[0]), behind(&to[1])), (vec![false, false], vec![true, false]));
        assert_eq!(lost(&from), [2, 0]);
    }

    /// Its begin has gone by the time that its end is released.
    #[test]
    fn a_packet_that_is_released_in_parts_is_counted() {
        let (from, to) = rings();
        release(&from, &[MARK, MORE, MARK, MARK], 2);
        forward(&from, &to);
        from.ring().set_head(4);
        from.ring().set_cur(4);
        forward(&from, &to);
        assert_eq!((sent(&to[0]), lost(&from)), (vec![false, false], [0, 1]));
    }
}
