//! A port's rings, and a guest beside them.

use std::sync::Arc;

use ringway_region::{Layout, Region, RingView, Sizes};
use ringway_vhost::{
    Connection, End,
    guest::{Guest, Setup},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Slots of each ring.
pub const SLOTS: u32 = 64;

/// A transmit and a receive ring, whose other side is the test's.
pub struct Port {
    pub tx: RingView,
    pub rx: RingView,
    /// Up to where frames were taken out of the transmit ring.
    taken: u32,
}

impl Port {
    pub fn new() -> Port {
        let sizes = Sizes::private([1, 1], [SLOTS; 2], 0, 0);
        let region = Arc::new(Region::create(1, Layout::new(&sizes, 0).unwrap()).unwrap());
        let [tx, rx] = [0, 1].map(|object| {
            let ring = RingView::new(&region, object, SLOTS).unwrap();
            let first = 2 + object * SLOTS;
            (0..SLOTS).for_each(|i| ring.set_slot(i, first + i, 0, 0));
            ring
        });
        tx.set_tail(SLOTS - 1);
        Port { tx, rx, taken: 0 }
    }

    /// Takes what was put into the transmit ring: frames with their headers.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut frame = Vec::new();
        while self.taken != self.tx.head() {
            let slot = self.tx.slot(self.taken);
            let mut part = vec![0; slot.len.into()];
            self.tx.buf(slot.buf_idx).unwrap().copy_to(part.len(), &mut part);
            frame.extend(part);
            if slot.flags & ringway_abi::NS_MOREFRAG == 0 {
                frames.push(std::mem::take(&mut frame));
            }
            self.taken = self.tx.next(self.taken);
        }
        assert!(frame.is_empty(), "a frame without an end");
        self.tx.set_tail(self.tx.prev(self.taken));
        frames
    }

    /// Puts a frame with its header into the receive ring, in slots of up to `piece` bytes; false if there is no
    /// room.
    pub fn give(&mut self, bytes: &[u8], piece: usize) -> bool {
        let pieces = bytes.chunks(piece.min(2048));
        let filled = self.rx.distance(self.rx.head(), self.rx.tail());
        if pieces.len() as u32 + filled >= SLOTS {
            return false;
        }
        let mut at = self.rx.tail();
        let count = pieces.len();
        for (i, piece) in pieces.enumerate() {
            let slot = self.rx.slot(at);
            self.rx.buf(slot.buf_idx).unwrap().write(0, piece);
            let more = if i + 1 < count { ringway_abi::NS_MOREFRAG } else { 0 };
            self.rx.set_slot(at, slot.buf_idx, piece.len() as u16, more);
            at = self.rx.next(at);
        }
        self.rx.set_tail(at);
        true
    }
}

/// A guest, and its card.
pub fn machine(setup: Setup) -> (Guest, Connection) {
    let (guest, socket) = Guest::start(setup).unwrap();
    let mut connection = Connection::new(socket).unwrap();
    obey(&mut connection).unwrap();
    (guest, connection)
}

/// Obeys all messages that there are.
pub fn obey(connection: &mut Connection) -> Result<(), End> {
    loop {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::from_borrowed_fd(connection.socket(), PollFlags::IN)];
        if poll(&mut fds, Some(&now)).unwrap() == 0 {
            return Ok(());
        }
        connection.handle()?;
    }
}

/// All ways in which a guest may use its queues.
pub fn setups() -> impl Iterator<Item = Setup> {
    (0..16).map(|bits: u32| {
        let has = |bit: u32| bits >> bit & 1 != 0;
        let [packed, events, mergeable, indirect] = [0, 1, 2, 3].map(has);
        Setup { packed, events, mergeable, indirect, ..Setup::default() }
    })
}
