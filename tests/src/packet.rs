//! Packets of several slots, sent and received whole.

use std::time::Duration;

use ringway::{NS_MOREFRAG, Port, Slot};

/// Sends a packet by the first transmit ring, in as many slots as its buffers make of it.
pub fn send(port: &mut Port, bytes: &[u8]) {
    let room = port.max_frame();
    let mut tx = port.tx(0);
    let mut slots = tx.slots();
    let parts = bytes.chunks(room);
    let count = parts.len() as u32;
    assert!(slots.held() >= count, "no room for {count} slots");
    for (i, part) in (0..).zip(parts) {
        slots.write(i, 0, part);
        let flags = if i + 1 < count { NS_MOREFRAG } else { 0 };
        let slot = Slot { len: part.len() as u16, flags, ..slots.get(i) };
        slots.set(i, slot);
    }
    slots.advance(count);
    tx.sync();
}

/// The next packet of a receive ring, and the bytes in each of its slots. Panics when none comes.
pub fn receive(port: &mut Port, ring: usize, limit: Duration) -> (Vec<u8>, Vec<usize>) {
    while port.rx(ring).available() == 0 {
        assert!(port.wait_rx(Some(limit)).unwrap(), "nothing arrives");
    }
    let (mut bytes, mut parts) = (Vec::new(), Vec::new());
    loop {
        let mut rx = port.rx(ring);
        let frame = rx.batch(1).next().expect("a packet without end");
        bytes.extend(frame.to_vec());
        parts.push(frame.len());
        if !frame.more_fragments() {
            return (bytes, parts);
        }
    }
}

/// A broadcast frame of that length, whose bytes follow from it.
pub fn numbered(length: usize) -> Vec<u8> {
    let mut bytes = vec![0xff; 6];
    bytes.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    bytes.extend((bytes.len()..length).map(|i| (i * 7 + length) as u8));
    bytes
}
