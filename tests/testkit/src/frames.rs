//! Frames on the rings of a driver under test.

use std::sync::atomic::Ordering::Relaxed;

use ringway_abi::NS_MOREFRAG;
use ringway_kring::Kring;

/// Where frames come from.
pub(crate) const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A broadcast frame of an experimental EtherType, numbered and with a pattern to check.
pub fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xff; 6];
    bytes.extend(FROM);
    bytes.extend([0x88, 0xb5]);
    bytes.extend(number.to_be_bytes());
    bytes.extend((bytes.len()..length).map(|i| (i as u32 ^ number) as u8));
    bytes.truncate(length);
    bytes
}

/// The frame with a VLAN tag in it, outside those that it has.
pub fn tagged(frame: &[u8], kind: u16, value: u16) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(12);
    [addresses, &kind.to_be_bytes(), &value.to_be_bytes(), rest].concat()
}

/// Takes what has arrived in a receive ring, packets of several slots joined, and releases it at
/// the next sync.
pub fn take_frames(rx: &Kring) -> Vec<Vec<u8>> {
    let ring = rx.ring();
    let (mut at, tail) = (ring.head(), ring.tail());
    let (mut frames, mut frame) = (Vec::new(), Vec::new());
    while at != tail {
        let slot = ring.slot(at);
        let mut bytes = vec![0; slot.len.into()];
        if let Some(buf) = ring.buf(slot.buf_idx) {
            buf.copy_to(slot.len.into(), &mut bytes);
        }
        frame.extend(bytes);
        if slot.flags & NS_MOREFRAG == 0 {
            frames.push(std::mem::take(&mut frame));
        }
        at = ring.next(at);
    }
    assert!(frame.is_empty(), "half a packet");
    ring.set_head(at);
    ring.set_cur(at);
    frames
}

/// What a ring's driver has dropped: bad slots, too long, ring full.
pub fn dropped(kring: &Kring) -> [u64; 3] {
    let c = kring.counters();
    [&c.bad_slot, &c.too_long, &c.ring_full].map(|c| c.load(Relaxed))
}
