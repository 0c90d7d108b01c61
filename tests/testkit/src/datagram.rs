//! A datagram whose checksum its sender leaves to others.

/// The Internet checksum's sum of these bytes, before it is inverted.
fn sum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// UDP over IPv4 in an Ethernet frame: with the sum of its pseudo header in the place of its checksum, as a stack
/// leaves it to its hardware, and as it is on a wire.
pub fn datagram(payload: &[u8]) -> [Vec<u8>; 2] {
    let length = (8 + payload.len() as u16).to_be_bytes();
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((28 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 7, 0, 9]);
    frame.extend(length);
    let pseudo = sum(&[&frame[26..34], &[0, 17], &length]).to_be_bytes();
    frame.extend(pseudo);
    frame.extend(payload);
    let mut whole = frame.clone();
    let checksum = match !sum(&[&frame[34..]]) {
        // To UDP, 0 is none.
        0 => u16::MAX,
        checksum => checksum,
    };
    whole[40..42].copy_from_slice(&checksum.to_be_bytes());
    [frame, whole]
}
