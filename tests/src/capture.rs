//! Known traffic for programs that print packets, and capture files of it.

const TO: [u8; 6] = [0xff; 6];
const FROM: [u8; 6] = [0x02, 0, 0, 0, 0, 0x51];

fn ethernet(kind: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = [&TO[..], &FROM, &kind.to_be_bytes(), rest].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The internet checksum.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let mut header = vec![0x45, 0, length[0], length[1], 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0];
    header.extend([10, 1, 0, 1, 10, 1, 0, 2]);
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    [header, payload.to_vec()].concat()
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    [&4000u16.to_be_bytes()[..], &port.to_be_bytes(), &length, &[0, 0], payload].concat()
}

fn icmp(number: u8) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0, 7, 0, number];
    message.extend([0x61; 32]);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    message
}

fn tcp() -> Vec<u8> {
    let mut segment = [&5000u16.to_be_bytes()[..], &80u16.to_be_bytes()].concat();
    segment.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0x20, 0, 0, 0, 0, 0]);
    segment
}

fn arp() -> Vec<u8> {
    let mut request = vec![0, 1, 8, 0, 6, 4, 0, 1];
    request.extend(FROM);
    request.extend([10, 1, 0, 1, 0, 0, 0, 0, 0, 0, 10, 1, 0, 2]);
    request
}

fn ipv6_udp() -> Vec<u8> {
    let datagram = udp(547, b"six");
    let mut packet = vec![0x60, 0, 0, 0, 0, datagram.len() as u8, 17, 64];
    let address = |last| [&[0xfd][..], &[0; 14], &[last]].concat();
    packet.extend([address(1), address(2), datagram].concat());
    packet
}

/// Of all kinds and lengths; the last is as long as a frame gets.
pub fn frames() -> Vec<Vec<u8>> {
    vec![
        ethernet(0x0806, &arp()),
        ethernet(0x0800, &ipv4(17, &udp(9, b"discarded"))),
        ethernet(0x0800, &ipv4(1, &icmp(1))),
        ethernet(0x0800, &ipv4(6, &tcp())),
        ethernet(0x86dd, &ipv6_udp()),
        ethernet(0x88b5, b"a protocol that is nobody's"),
        ethernet(0x0800, &ipv4(1, &icmp(2))),
        ethernet(0x0800, &ipv4(17, &udp(9, &[0x55; 1472]))),
    ]
}

/// Whether a frame is an ICMP message in IPv4.
pub fn is_icmp(frame: &[u8]) -> bool {
    frame[12..14] == [8, 0] && frame[23] == 1
}

/// A capture file (pcap, microseconds) of Ethernet frames, a second apart.
pub fn file(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut add = |words: &[u32]| bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    add(&[0xa1b2_c3d4, u32::from_ne_bytes([2, 0, 4, 0]), 0, 0, 262_144, 1]);
    for (second, frame) in frames.iter().enumerate() {
        let length = frame.len() as u32;
        bytes.extend([second as u32, 0, length, length].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(frame);
    }
    bytes
}
