//! The three machines that a filter can run on: one written down as the rules say, libpcap's, and
//! the kernel's, with the translated filter. And filters out of any bytes. Shared with the fuzz
//! target of the same name.
#![allow(dead_code, unused_imports)]

mod kernel;
mod model;
mod pcap;

use ringway_filter::Insn;

pub use kernel::{Loaded, may_load};
pub use model::{matches, run};
pub use pcap::{pcap_matches, pcap_run};

/// Every instruction there is, but for the two that return.
pub const CODES: [u16; 47] = [
    0x00, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x80, 0x01, 0x61, 0x81, 0xb1, 0x02, 0x03, 0x84,
    0x04, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0x94, 0xa4, 0x0c, 0x1c, 0x2c, 0x3c, 0x4c, 0x5c,
    0x6c, 0x7c, 0x9c, 0xac, 0x05, 0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d, 0x07, 0x87,
];

/// A valid filter: each eight bytes are an instruction, made to fit.
pub fn filter(bytes: &[u8]) -> Vec<Insn> {
    let (raw, _) = bytes.as_chunks::<8>();
    let raw = &raw[..raw.len().min(64)];
    let ret = |code, k| Insn { code, jt: 0, jf: 0, k };
    let mut insns: Vec<_> = raw
        .iter()
        .enumerate()
        .map(|(at, &[which, jt, jf, wide, k @ ..])| {
            let k = u32::from_le_bytes(k);
            // Small numbers meet the packet, and each other, more often.
            let k = if wide & 3 == 0 { k } else { k & 0x3f };
            let left = raw.len() - at;
            // Far jumps would leave little of the filter to be run.
            let near = |skip: u8| (usize::from(skip & 7) % left) as u8;
            match CODES[usize::from(which) % CODES.len()] {
                // A filter that ends often is none to learn from.
                _ if which > 250 => ret(0x16, 0),
                _ if which == 250 => ret(0x06, k & 1),
                code @ (0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 | 0xb1) => ret(code, k & 0x1ffff),
                code @ (0x60 | 0x61 | 0x02 | 0x03) => ret(code, k & 0xf),
                code @ (0x34 | 0x94) => ret(code, k.max(1)),
                code @ (0x64 | 0x74) => ret(code, k & 0x1f),
                0x05 => ret(0x05, near(jt).into()),
                code if code & 7 == 5 => Insn { code, jt: near(jt), jf: near(jf), k },
                code => ret(code, k),
            }
        })
        .collect();
    insns.push(ret(0x16, 0));
    insns
}
