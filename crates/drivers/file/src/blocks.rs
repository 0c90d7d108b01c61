//! Frames as records of pcap and as blocks of pcapng, in little-endian order.

use std::ops::Range;

use crate::{
    format::Format,
    recorder::{Direction, Interface},
};

/// Link type of Ethernet frames.
const ETHERNET: u16 = 1;

/// The longest frame that readers take, in bytes.
pub(crate) const MAX_SNAPLEN: u32 = 262_144;

const SECOND: u64 = 1_000_000_000;

mod block {
    pub const SECTION: u32 = 0x0a0d_0d0a;
    pub const INTERFACE: u32 = 1;
    pub const STATISTICS: u32 = 5;
    pub const PACKET: u32 = 6;
}

/// Options of blocks, by their codes.
mod opt {
    pub const END: u16 = 0;
    pub const USER_APPLICATION: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const TIMESTAMP_RESOLUTION: u16 = 9;
    pub const FILTER: u16 = 11;
    pub const PACKET_FLAGS: u16 = 2;
    pub const START_TIME: u16 = 2;
    pub const END_TIME: u16 = 3;
    pub const RECEIVED: u16 = 4;
    pub const DROPPED: u16 = 5;
}

/// What a file begins with.
pub(crate) fn header(format: Format, interfaces: &[Interface], snaplen: u32) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::Pcap => {
            put(&mut out, &0xa1b2_3c4d_u32.to_le_bytes());
            put(&mut out, &[2, 0, 4, 0]);
            for word in [0, 0, snaplen, ETHERNET.into()] {
                put(&mut out, &word.to_le_bytes());
            }
        }
        Format::PcapNg => {
            with_block(&mut out, block::SECTION, |out| {
                put(out, &0x1a2b_3c4d_u32.to_le_bytes());
                put(out, &[1, 0, 0, 0]);
                put(out, &[0xff; 8]);
                let program = concat!("ringway ", env!("CARGO_PKG_VERSION"));
                option(out, opt::USER_APPLICATION, program.as_bytes());
                option(out, opt::END, &[]);
            });
            for interface in interfaces {
                with_block(&mut out, block::INTERFACE, |out| {
                    put(out, &ETHERNET.to_le_bytes());
                    put(out, &[0; 2]);
                    put(out, &snaplen.to_le_bytes());
                    option(out, opt::INTERFACE_NAME, interface.name.as_bytes());
                    option(out, opt::TIMESTAMP_RESOLUTION, &[9]);
                    if let Some(filter) = &interface.filter {
                        option(out, opt::FILTER, &[&[0], filter.as_bytes()].concat());
                    }
                    option(out, opt::END, &[]);
                });
            }
        }
    }
    out
}

/// One frame without its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub interface: u32,
    pub direction: Direction,
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Bytes that are kept.
    pub kept: u32,
    /// Bytes on the wire.
    pub length: u32,
}

impl Frame {
    /// Bytes that it takes, at most.
    pub fn size(&self) -> usize {
        self.kept as usize + 60
    }

    /// Appends it; where its bytes are to be put.
    pub fn append(&self, format: Format, out: &mut Vec<u8>) -> Range<usize> {
        match format {
            Format::Pcap => {
                let (seconds, nanoseconds) = (self.time / SECOND, self.time % SECOND);
                for word in [seconds as u32, nanoseconds as u32, self.kept, self.length] {
                    put(out, &word.to_le_bytes());
                }
                self.room(out)
            }
            Format::PcapNg => {
                let mut room = 0..0;
                with_block(out, block::PACKET, |out| {
                    put(out, &self.interface.to_le_bytes());
                    put_time(out, self.time);
                    put(out, &self.kept.to_le_bytes());
                    put(out, &self.length.to_le_bytes());
                    room = self.room(out);
                    pad(out, room.len());
                    let flags: u32 = match self.direction {
                        Direction::Unknown => return,
                        Direction::Received => 1,
                        Direction::Sent => 2,
                    };
                    option(out, opt::PACKET_FLAGS, &flags.to_le_bytes());
                    option(out, opt::END, &[]);
                });
                room
            }
        }
    }

    fn room(&self, out: &mut Vec<u8>) -> Range<usize> {
        let start = out.len();
        out.resize(start + self.kept as usize, 0);
        start..out.len()
    }
}

/// What an interface has counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statistics {
    pub interface: u32,
    /// Nanoseconds since 1970.
    pub start: u64,
    pub end: u64,
    pub received: u64,
    pub dropped: u64,
}

impl Statistics {
    /// Appends it; pcap has nothing of the kind.
    pub fn append(&self, format: Format, out: &mut Vec<u8>) {
        if format == Format::Pcap {
            return;
        }
        with_block(out, block::STATISTICS, |out| {
            put(out, &self.interface.to_le_bytes());
            put_time(out, self.end);
            for (code, time) in [(opt::START_TIME, self.start), (opt::END_TIME, self.end)] {
                let mut words = Vec::new();
                put_time(&mut words, time);
                option(out, code, &words);
            }
            option(out, opt::RECEIVED, &self.received.to_le_bytes());
            option(out, opt::DROPPED, &self.dropped.to_le_bytes());
            option(out, opt::END, &[]);
        });
    }
}

/// A time in two words, the higher first.
fn put_time(out: &mut Vec<u8>, time: u64) {
    put(out, &((time >> 32) as u32).to_le_bytes());
    put(out, &(time as u32).to_le_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Longer ones would have to be split up; names and filters end before that.
    let value = &value[..value.len().min(u16::MAX.into())];
    put(out, &code.to_le_bytes());
    put(out, &(value.len() as u16).to_le_bytes());
    put(out, value);
    pad(out, value.len());
}

fn with_block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put(out, &kind.to_le_bytes());
    put(out, &[0; 4]);
    body(out);
    let length = ((out.len() - start + 4) as u32).to_le_bytes();
    put(out, &length);
    out[start + 4..start + 8].copy_from_slice(&length);
}

fn pad(out: &mut Vec<u8>, length: usize) {
    put(out, &[0; 3][..length.next_multiple_of(4) - length]);
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}
