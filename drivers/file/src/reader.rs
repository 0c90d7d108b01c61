//! The frames of a capture file, one after the other: pcap in either byte order, with micro- or
//! nanoseconds, and pcapng.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use pcap_parser::{
    Block, Linktype, PcapBlockOwned, PcapError, create_reader,
    traits::{PcapNGPacketBlock, PcapReaderIterator},
};

use crate::{
    error::{Error, Result},
    input::{self, BeforeWait, Trouble},
};

/// Room for a block to begin with, and at most.
const CAPACITY: usize = 1 << 16;
const MAX_CAPACITY: usize = 1 << 24;
/// Interfaces of a section, at most: a file that is compressed well may have any number in a few bytes.
const MAX_INTERFACES: usize = 1 << 16;

const NANOSECONDS: u128 = 1_000_000_000;

/// What is wrong, and what to do about it.
type Why = (String, &'static str);

/// One frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// What the file has of it.
    pub bytes: &'a [u8],
    /// Bytes that it had on the wire.
    pub length: u32,
}

/// Reads a file frame by frame.
pub struct Reader {
    file: PathBuf,
    blocks: Box<dyn PcapReaderIterator + Send>,
    trouble: Trouble,
    interfaces: Vec<Interface>,
    capacity: usize,
    nanoseconds: bool,
    /// The byte order of the current section.
    big_endian: bool,
    /// The time of the last frame, for those that have none.
    time: u64,
    cut: Option<u64>,
}

/// What the file says of an interface of the current section; a pcap file has just one.
struct Interface {
    link: Linktype,
    /// Units of its timestamps in a second, and what is to be added, in seconds.
    resolution: u64,
    offset: i64,
}

impl Reader {
    /// Opens a file, `-` being standard input.
    ///
    /// # Errors
    /// When it cannot be opened or is no capture file.
    pub fn open(file: &Path) -> Result<Reader> {
        Reader::of(file, input::open(file)?, Box::new(|| {}))
    }

    pub(crate) fn of(file: &Path, input: File, before_wait: BeforeWait) -> Result<Reader> {
        let trouble = Trouble::default();
        let bytes =
            input::bytes(input, before_wait, &trouble).map_err(|error| Error::open(file, error))?;
        Reader::of_bytes(file, bytes, trouble)
    }

    pub(crate) fn of_bytes(
        file: &Path,
        bytes: impl Read + Send + 'static,
        trouble: Trouble,
    ) -> Result<Reader> {
        let blocks = create_reader(CAPACITY, bytes).map_err(|error| {
            let (cause, remedy) = explain_start(error);
            Error::Damaged { file: file.into(), offset: 0, cause, remedy }
        })?;
        Ok(Reader {
            file: file.into(),
            blocks,
            trouble,
            interfaces: Vec::new(),
            capacity: CAPACITY,
            nanoseconds: false,
            big_endian: false,
            time: 0,
            cut: None,
        })
    }

    /// Hands the next frame to `take`. False: there is none any more.
    ///
    /// # Errors
    /// When the file is damaged, cannot be read, or has other than Ethernet frames.
    pub fn next(&mut self, mut take: impl FnMut(Captured<'_>)) -> Result<bool> {
        loop {
            let at = self.blocks.consumed() as u64;
            let (length, frame) = match self.blocks.next() {
                Ok((length, block)) => {
                    let mut state = State {
                        interfaces: &mut self.interfaces,
                        nanoseconds: &mut self.nanoseconds,
                        big_endian: &mut self.big_endian,
                    };
                    match state.frame(&block, self.time) {
                        Ok(None) => (length, false),
                        Ok(Some(frame)) => {
                            self.time = frame.time;
                            take(frame);
                            (length, true)
                        }
                        Err(why) => return Err(self.damaged(at, why)),
                    }
                }
                Err(PcapError::Eof) => {
                    // Compressed data may end too early, and yet between two blocks.
                    self.cut = self.trouble.take().map(|_| at);
                    return Ok(false);
                }
                Err(PcapError::UnexpectedEof) => {
                    self.cut = Some(at);
                    return Ok(false);
                }
                Err(PcapError::Incomplete(_)) => {
                    self.refill(at)?;
                    continue;
                }
                Err(PcapError::BufferTooSmall) if self.capacity < MAX_CAPACITY => {
                    self.capacity *= 2;
                    self.blocks.grow(self.capacity);
                    self.refill(at)?;
                    continue;
                }
                Err(error) => {
                    let why = explain(error);
                    return Err(self.damaged(at, why));
                }
            };
            self.blocks.consume(length);
            if frame {
                return Ok(true);
            }
        }
    }

    /// Where the last block begins, if the file ends in the middle of it: what a program leaves behind
    /// that was killed. All blocks before it were read.
    pub fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Bytes read so far, after decompression.
    pub(crate) fn position(&self) -> u64 {
        self.blocks.consumed() as u64
    }

    fn refill(&mut self, at: u64) -> Result<()> {
        let done = self.blocks.refill().map_err(explain);
        done.map_err(|why| self.damaged(at, why))
    }

    pub(crate) fn damaged(&self, offset: u64, (cause, remedy): Why) -> Error {
        if let Some(error) = self.trouble.take() {
            let cause = format!("the file cannot be read: {error}");
            return Error::Damaged { file: self.file.clone(), offset, cause, remedy: READABLE };
        }
        Error::Damaged { file: self.file.clone(), offset, cause, remedy }
    }
}

/// What blocks say of those behind them.
struct State<'r> {
    interfaces: &'r mut Vec<Interface>,
    nanoseconds: &'r mut bool,
    big_endian: &'r mut bool,
}

impl State<'_> {
    /// The frame in a block, if it is one that has a frame.
    fn frame<'b>(
        &mut self,
        block: &'b PcapBlockOwned<'b>,
        last: u64,
    ) -> std::result::Result<Option<Captured<'b>>, Why> {
        Ok(match block {
            PcapBlockOwned::LegacyHeader(header) => {
                *self.nanoseconds = header.is_nanosecond_precision();
                *self.interfaces =
                    vec![Interface { link: header.network, resolution: 0, offset: 0 }];
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                self.interface(0)?;
                let unit = if *self.nanoseconds { 1 } else { 1000 };
                let time = u64::from(packet.ts_sec) * NANOSECONDS as u64
                    + u64::from(packet.ts_usec) * unit;
                Some(Captured { time, bytes: packet.data, length: packet.origlen })
            }
            PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                self.interfaces.clear();
                *self.big_endian = section.big_endian();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                if self.interfaces.len() == MAX_INTERFACES {
                    return Err((format!("it has more than {MAX_INTERFACES} interfaces"), MEND));
                }
                // pcap-parser knows no powers of two, and has the offset in little-endian order.
                let uncounted = || ("its timestamps are finer than can be counted".into(), MEND);
                let resolution = resolution(interface.if_tsresol).ok_or_else(uncounted)?;
                let offset = interface.if_tsoffset;
                let offset = if *self.big_endian { offset.swap_bytes() } else { offset };
                self.interfaces.push(Interface { link: interface.linktype, resolution, offset });
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.interface(packet.if_id)?;
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                Some(Captured {
                    time: interface.time(units),
                    bytes: packet.packet_data(),
                    length: packet.origlen,
                })
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                self.interface(0)?;
                Some(Captured { time: last, bytes: packet.packet_data(), length: packet.origlen })
            }
            PcapBlockOwned::NG(_) => None,
        })
    }

    fn interface(&self, number: u32) -> std::result::Result<&Interface, Why> {
        match self.interfaces.get(number as usize) {
            Some(interface) if interface.link == Linktype::ETHERNET => Ok(interface),
            Some(other) => Err((
                format!("its frames are of link type {}, not Ethernet", other.link.0),
                "capture on an Ethernet interface (not on `any`)",
            )),
            None => Err((format!("interface {number} is not described"), MEND)),
        }
    }
}

/// Units of timestamps in a second, as the option `if_tsresol` says.
fn resolution(option: u8) -> Option<u64> {
    let power = u32::from(option & 0x7f);
    if option & 0x80 == 0 { 10u64.checked_pow(power) } else { 1u64.checked_shl(power) }
}

impl Interface {
    /// Nanoseconds since 1970; as far as they can be counted.
    fn time(&self, units: u64) -> u64 {
        let since = u128::from(units) * NANOSECONDS / u128::from(self.resolution);
        let since = i128::try_from(since).unwrap_or(i128::MAX);
        let shifted = since.saturating_add(i128::from(self.offset) * NANOSECONDS as i128);
        u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
    }
}

pub(crate) const CAPTURE_AGAIN: &str = "capture with `tcpdump -w FILE` or `dumpcap -w FILE`";
pub(crate) const MEND: &str = "mend it with `editcap BROKEN MENDED`, or capture it again";
const READABLE: &str = "give a file on a working disk, or decompress it with another program";

/// A file too short for its first header is no capture file rather than a cut one.
fn explain_start(error: PcapError<&[u8]>) -> Why {
    match error {
        PcapError::Eof => ("the file is empty".into(), CAPTURE_AGAIN),
        PcapError::ReadError => explain(error),
        _ => ("this is neither a pcap nor a pcapng file".into(), CAPTURE_AGAIN),
    }
}

fn explain(error: PcapError<&[u8]>) -> Why {
    match error {
        PcapError::BufferTooSmall => {
            (format!("a block claims to be longer than {} MiB", MAX_CAPACITY >> 20), MEND)
        }
        PcapError::ReadError => ("the file cannot be read".into(), READABLE),
        _ => ("the block is damaged".into(), MEND),
    }
}
