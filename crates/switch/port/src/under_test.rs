//! A port as its own tests use it: as a switch does, and with whole frames.

use crate::{Burst, Drops, PacketIo, Source};

/// The frames of one look, which are released, and how much was looked at. None of their pieces is longer than 2048
/// bytes, which fit each buffer.
pub fn look(
    port: &mut impl PacketIo,
    ring: usize,
    limit: u32,
    drops: &mut Drops,
) -> (Vec<Vec<u8>>, u32) {
    let mut burst = Burst::default().recycle(Source::default());
    burst.limit = limit;
    let looked = port.collect(ring, &mut burst, drops);
    let bytes = |frame| {
        let mut bytes = Vec::new();
        for (buf, len) in burst.pieces(frame) {
            assert!(*len <= 2048, "a piece fits each buffer");
            let mut piece = vec![0; *len as usize];
            buf.copy_to(piece.len(), &mut piece);
            bytes.extend(piece);
        }
        bytes
    };
    let frames = burst.frames.iter().map(bytes).collect();
    drop(burst);
    port.release(ring);
    (frames, looked)
}

/// Has the port send frames on a ring; packets and bytes that it has taken.
pub fn deliver(
    port: &mut impl PacketIo,
    ring: usize,
    frames: &[Vec<u8>],
    drops: &mut Drops,
) -> (u64, u64) {
    let mut frames = frames.to_vec();
    let lengths: Vec<_> = frames.iter().map(|frame| frame.len() as u32).collect();
    let mut burst = Burst::default().recycle(Source::default());
    for frame in &mut frames {
        // In two pieces, where the second begins behind what is looked at.
        let cut = frame.len().min(20);
        let (first, second) = frame.split_at_mut(cut);
        burst.push_private(first);
        if !second.is_empty() {
            burst.push_private(second);
        }
        burst.end_frame();
    }
    burst.read_headers();
    // Also of what is too short for Ethernet, whose length is not looked at otherwise.
    burst.frames.iter_mut().zip(lengths).for_each(|(frame, length)| frame.len = length);
    let delivered = port.deliver(ring, &burst.frames, &burst, drops);
    (delivered.packets, delivered.bytes)
}
