//! A machine's card, by vhost-user, as a guest with event indices and buffers that can be merged uses it: what is between
//! the machine's queues and a port's rings. The frames of a port have headers where the queues are split, and none where they
//! are packed.

use ringway_vhost::{
    Connection,
    guest::{BUFFER, Guest, Setup},
};

use crate::{
    cases::{LENGTH, PACKETS, SLOTS, rings},
    counted,
};

/// Bytes of the header in front of each of the machine's frames.
const HEADER: usize = 12;

/// Bytes in front of the port's frames.
fn port_header(packed: bool) -> usize {
    if packed { 0 } else { HEADER }
}

/// A guest whose queues are packed or not, and its card.
fn machine(packed: bool) -> (Guest, Connection) {
    let setup = Setup { packed, events: true, size: 256, ..Setup::default() };
    let (guest, socket) = Guest::start(setup).expect("memory and a socket");
    let mut connection = Connection::new(socket).expect("a socket");
    while !connection.is_up() {
        connection.handle().expect("the guest says what it should");
    }
    // The last message enables the second queue.
    connection.handle().expect("the guest says what it should");
    (guest, connection)
}

/// The machine sends.
pub fn from(batch: u32, packed: bool) {
    let (mut guest, mut connection) = machine(packed);
    let [tx, _] = rings(0);
    let ring = tx.ring();
    let mut frame = [0; HEADER + LENGTH as usize];
    // No tag, no IP.
    frame[HEADER + 12..][..2].copy_from_slice(&[0x88, 0xb5]);
    for turn in 0..(SLOTS + PACKETS) / batch {
        for _ in 0..batch {
            assert!(guest.send(0, &frame, frame.len()));
        }
        let mut step = || connection.send((ring, port_header(packed)), batch);
        let moved = if turn < SLOTS / batch { step() } else { counted(step) };
        assert_eq!((moved.frames, moved.dropped()), (batch.into(), 0));
        // All has gone.
        ring.set_tail(ring.prev(ring.head()));
        assert_eq!(guest.reap(0), batch as usize);
    }
}

/// The machine receives.
pub fn to(batch: u32, packed: bool) {
    let (mut guest, mut connection) = machine(packed);
    let [_, rx] = rings(0);
    let ring = rx.ring();
    let length = LENGTH + port_header(packed) as u16;
    for turn in 0..(SLOTS + PACKETS) / batch {
        let mut at = ring.tail();
        for _ in 0..batch {
            assert!(guest.offer_buffer(0, BUFFER));
            ring.set_slot(at, ring.slot(at).buf_idx, length, 0);
            at = ring.next(at);
        }
        ring.set_tail(at);
        let mut step = || connection.receive((ring, port_header(packed)), batch);
        let moved = if turn < SLOTS / batch { step() } else { counted(step) };
        assert_eq!((moved.frames, moved.dropped()), (batch.into(), 0));
        for _ in 0..batch {
            let frame = guest.receive(0).expect("it has arrived");
            assert_eq!(frame.len(), HEADER + usize::from(LENGTH));
        }
    }
}
