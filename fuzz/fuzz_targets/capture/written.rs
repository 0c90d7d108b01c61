//! Capture files that are as they should be, in every form that there is, by a writer of their own.

use std::io::Write;

use crate::Frame;

/// Words in one byte order or the other.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn half(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words<const N: usize>(self, values: [u32; N]) -> Vec<u8> {
        let bytes = |value: u32| if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        values.into_iter().flat_map(bytes).collect()
    }

    /// A block of pcapng.
    fn block(self, kind: u32, body: &[&[u8]]) -> Vec<u8> {
        let mut body = body.concat();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = body.len() as u32 + 12;
        [self.words([kind, length]), body, self.words([length])].concat()
    }

    fn pcap(self, nanoseconds: bool, frames: &[Frame]) -> Vec<u8> {
        let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut file = self.words([magic]);
        file.extend([self.half(2), self.half(4)].concat());
        file.extend(self.words([0, 0, 1 << 18, 1]));
        let unit = if nanoseconds { 1 } else { 1000 };
        for Frame { time, bytes, length } in frames {
            let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000 / unit);
            file.extend(self.words([seconds as u32, rest as u32, bytes.len() as u32, *length]));
            file.extend(bytes);
        }
        file
    }

    /// Each frame is of the next of two interfaces, and behind the first half there is another section.
    fn pcapng(self, nanoseconds: bool, frames: &[Frame]) -> Vec<u8> {
        let resolution = if nanoseconds { 9 } else { 6 };
        let option = [&self.half(9)[..], &self.half(1), &[resolution, 0, 0, 0], &[0; 4]].concat();
        let ethernet = [&self.half(1)[..], &[0; 2], &self.words([1 << 18])].concat();
        let mut file = Vec::new();
        let unit = if nanoseconds { 1 } else { 1000 };
        for half in frames.chunks(frames.len().div_ceil(2).max(1)) {
            let version = [self.half(1), self.half(0)].concat();
            let section = [&self.words([0x1a2b_3c4d])[..], &version, &[0xff; 8]];
            file.extend(self.block(0x0a0d_0d0a, &section));
            (0..2).for_each(|_| file.extend(self.block(1, &[&ethernet, &option])));
            for (number, Frame { time, bytes, length }) in half.iter().enumerate() {
                let (number, time) = (number as u32 % 2, time / unit);
                let (high, low) = ((time >> 32) as u32, time as u32);
                let head = self.words([number, high, low, bytes.len() as u32, *length]);
                file.extend(self.block(6, &[&head, bytes]));
            }
        }
        file
    }
}

/// A file, and the frames that are in it. Of `bytes` each frame takes ten, which say what it is.
pub fn written(how: u8, bytes: &[u8]) -> (Vec<u8>, Vec<Frame>) {
    let nanoseconds = how & 4 != 0;
    let frames: Vec<_> = bytes
        .as_chunks::<10>()
        .0
        .iter()
        .map(|&[value, low, high, more, seconds @ .., a, b]| {
            let [s0, s1, s2, s3] = seconds;
            let length = u16::from_le_bytes([low, high]);
            let fraction = u64::from(u16::from_le_bytes([a, b])) * 15_000;
            let time = u64::from(u32::from_le_bytes([s0, s1, s2, s3])) * 1_000_000_000 + fraction;
            let bytes = (0..length).map(|at| value.wrapping_add(at as u8)).collect();
            Frame { time, bytes, length: u32::from(length) + u32::from(more) }
        })
        .collect();
    let order = Order { big: how & 8 != 0 };
    let file = match how & 2 {
        0 => order.pcap(nanoseconds, &frames),
        _ if frames.is_empty() => order.pcap(nanoseconds, &frames),
        _ => order.pcapng(nanoseconds, &frames),
    };
    let file = match how >> 4 & 3 {
        0 | 3 => file,
        1 => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&file).expect("it is memory");
            gzip.finish().expect("it is memory")
        }
        _ => zstd::encode_all(&*file, 1).expect("it is memory"),
    };
    (file, frames)
}
