//! Transparent mode (S-FWD): of the packets that a program releases, those that it marks go on as if
//! it were not there. What the interface received goes to the host's stack, and what the stack sent
//! to the interface.
//!
//! Nothing of this is fast; a program that wants that forwards by itself.

use std::sync::{Arc, OnceLock};

use ringway_abi::{Dir, NR_FORWARD, NS_BUF_CHANGED, NS_FORWARD, NS_MOREFRAG};
use ringway_kring::{Kring, Offsets};
use ringway_proto::Request;
use rustix::{
    fd::OwnedFd,
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

    /// S-FWD-2: copies packets to the stack; of one in several slots, those that are marked.
    fn forward_up(&self, kring: &Kring) {
        let (ring, offsets) = (kring.ring(), Offsets::of(kring));
        // `whole`: all that there is so far of the packet is in `frame`.
        let (mut frame, mut whole) = (Vec::new(), false);
        for at in released(kring) {
            if ring.slot(ring.prev(at)).flags & NS_MOREFRAG == 0 {
                frame.clear();
                whole = true;
            }
            let slot = ring.slot(at);
            let begun = ring.buf(slot.buf_idx).and_then(|buf| buf.skip(offsets.read(slot.ptr)));
            let Some(data) = begun.filter(|data| u32::from(slot.len) <= data.size()) else {
                whole = false;
                continue;
            };
            let before = frame.len();
            frame.resize(before + usize::from(slot.len), 0);
            data.copy_to(slot.len.into(), &mut frame[before..]);
            if slot.flags & NS_MOREFRAG == 0 {
                if !whole || frame.len() < SHORTEST {
                    continue;
                }
                let Some(socket) = self.stack.socket() else { return };
                // A program that is too fast for the stack loses packets there, as with any other interface.
                let _ = send(socket, &frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            }
            // S-FLAGS-NS_FORWARD.
            ring.set_slot(at, slot.buf_idx, slot.len, slot.flags & !NS_FORWARD);
        }
    }

    /// S-FWD-3: exchanges the packets' buffers with those of free slots of the interface's tx rings,
    /// where the program has all of these.
    fn forward_down(&self, kring: &Kring) {
        let nic_rings = usize::from(self.registration().tx_rings);
        let nic = || self.rings(Dir::Tx).iter().filter(|r| usize::from(r.index()) < nic_rings);
        if nic().count() < nic_rings {
            return;
        }
        let from = kring.ring();
        for at in released(kring) {
            let has_room = |ring: &&BoundRing| {
                let view = ring.kring().ring();
                view.head() < view.num_slots() && view.head() != ring.kring().reconciled()[1]
            };
            // What finds no room is dropped.
            let Some(to) = nic().find(has_room) else { return };
            let (to, offsets) = (to.kring().ring(), Offsets::of(to.kring()));
            let (packet, head) = (from.slot(at), to.head());
            from.set_slot(at, to.slot(head).buf_idx, packet.len, NS_BUF_CHANGED);
            to.set_slot(head, packet.buf_idx, packet.len, NS_BUF_CHANGED);
            // Those of the stack begin with their buffers.
            to.set_slot_ptr(head, offsets.write(to.slot(head).ptr, 0));
            to.set_head(to.next(head));
            to.set_cur(to.next(head));
        }
    }
}

/// The marked slots among those that the program has released since the last sync.
fn released(kring: &Kring) -> impl Iterator<Item = u32> {
    let ring = kring.ring();
    let ([from, _], head) = (kring.reconciled(), kring.bounded(ring.head()));
    let held = ring.distance(from, kring.hwtail());
    // A head beyond that is refused by the sync.
    let count = Some(ring.distance(from, head)).filter(|count| *count <= held).unwrap_or(0);
    let slots = (0..count).map(move |i| ring.advance(from, i));
    slots.filter(move |&at| ring.slot(at).flags & NS_FORWARD != 0)
}

#[cfg(test)]
mod tests {
    use ringway_proto::MirrorGrant;
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
}
