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
    blocks::MAX_SNAPLEN,
    error::{Error, Result},
    in_use::InUse,
    input::{self, BeforeWait, Trouble},
};

/// Room for a block to begin with, and at most.
const CAPACITY: usize = 1 << 16;
const MAX_CAPACITY: usize = 1 << 24;
/// Interfaces of a section, at most: a file that is compressed well may have any number in a few bytes.
const MAX_INTERFACES: usize = 1 << 16;

/// What a section of a pcapng file begins with.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The packet block of pcapng's first drafts, which old programs wrote.
const OLD_PACKET: u32 = 2;

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

/// Frames of a pcapng file that are no Ethernet frames, and are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many.
    pub frames: u64,
    /// The link type of the first.
    pub link: i32,
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
    /// Frames handed out, and those left out, with where the first of these is.
    frames: u64,
    skipped: Skipped,
    first_skipped: u64,
    /// Of a pcap file, what is not a frame's length any more.
    longest: Option<u32>,
    in_use: InUse,
}

/// What the file says of an interface of the current section; a pcap file has just one.
struct Interface {
    link: Linktype,
    /// Bytes that are kept of a frame; 0: all.
    snaplen: u32,
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
        let input = input::open(file)?;
        let in_use = InUse::to_read(&input);
        Ok(Reader { in_use, ..Reader::of(file, input, Box::new(|| {}))? })
    }

    /// For a program that keeps what the file has, and drops the reader.
    pub fn in_use(&self) -> InUse {
        self.in_use.clone()
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
            frames: 0,
            skipped: Skipped::default(),
            first_skipped: 0,
            longest: None,
            in_use: InUse::default(),
        })
    }

    /// Hands the next frame to `take`. False: there is none any more.
    ///
    /// # Errors
    /// When the file is damaged, cannot be read, or has no other than frames that are not
    /// Ethernet's.
    pub fn next(&mut self, mut take: impl FnMut(Captured<'_>)) -> Result<bool> {
        loop {
            let at = self.blocks.consumed() as u64;
            if let Some(why) = self.absurd_length() {
                return Err(self.damaged(at, why));
            }
            let is_whole = self.has_whole_block();
            let (length, frame) = match self.blocks.next() {
                Ok((length, block)) => {
                    if let PcapBlockOwned::LegacyHeader(header) = &block {
                        self.longest = Some(header.snaplen.clamp(MAX_SNAPLEN, MAX_CAPACITY as u32));
                    }
                    let mut state = State {
                        interfaces: &mut self.interfaces,
                        nanoseconds: &mut self.nanoseconds,
                        big_endian: &mut self.big_endian,
                    };
                    match state.frame(&block, self.time) {
                        Ok(Found::Nothing) => (length, false),
                        Ok(Found::Foreign(link)) => {
                            if self.skipped.frames == 0 {
                                (self.skipped.link, self.first_skipped) = (link, at);
                            }
                            self.skipped.frames += 1;
                            (length, false)
                        }
                        Ok(Found::Frame(frame)) => {
                            self.time = frame.time;
                            self.frames += 1;
                            take(frame);
                            (length, true)
                        }
                        Err(why) => return Err(self.damaged(at, why)),
                    }
                }
                Err(PcapError::Eof) => {
                    // Compressed data may end too early, and yet between two blocks.
                    self.cut = self.trouble.take().map(|_| at);
                    return self.ended();
                }
                // What it wants to read is not in the file: the block's end is.
                Err(PcapError::UnexpectedEof | PcapError::Incomplete(_)) if is_whole => {
                    return Err(self.damaged(at, leaves()));
                }
                Err(PcapError::UnexpectedEof) => {
                    self.cut = Some(at);
                    return self.ended();
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

    /// What was left out so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    fn ended(&self) -> Result<bool> {
        match (self.frames, self.skipped) {
            (0, Skipped { frames: 1.., link }) => {
                Err(self.damaged(self.first_skipped, foreign(link)))
            }
            _ => Ok(false),
        }
    }

    /// Whether the next record of a pcap file, or block of a pcapng file, is longer than any can
    /// be. What is left of the file may be shorter than that, and yet it does not end in the middle
    /// of that record.
    fn absurd_length(&self) -> Option<Why> {
        let (at, most, what) = match self.longest {
            Some(longest) => (8, longest, "record"),
            None => (4, MAX_CAPACITY as u32, "block"),
        };
        // In front of a pcap file's first record there is its header.
        if self.blocks.consumed() == 0 {
            return None;
        }
        let length = self.word(at)?;
        // A section says itself in which order its bytes are.
        let is_section = self.longest.is_none() && self.blocks.data().starts_with(&SECTION);
        (length > most && !is_section).then(|| {
            let cause = format!(
                "a {what} claims to be {length} bytes long; {most} are the most there can be"
            );
            (cause, MEND)
        })
    }

    /// Whether the next block of a pcapng file has been read to its end. A section may change the order of bytes,
    /// and has nothing in it that could be too long.
    fn has_whole_block(&self) -> bool {
        let (data, is_pcapng) = (self.blocks.data(), self.longest.is_none());
        let length = self.word(4).filter(|_| is_pcapng && !data.starts_with(&SECTION));
        length.is_some_and(|length| data.len() >= length as usize)
    }

    /// The number at a place of what is read next.
    fn word(&self, at: usize) -> Option<u32> {
        let word = self.blocks.data().get(at..at + 4)?.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
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

/// What a block has.
enum Found<'b> {
    /// No frame.
    Nothing,
    Frame(Captured<'b>),
    /// A frame of another link type than Ethernet.
    Foreign(i32),
}

impl State<'_> {
    /// What a block has. `last`: the time of the frame before it.
    fn frame<'b>(
        &mut self,
        block: &'b PcapBlockOwned<'b>,
        last: u64,
    ) -> std::result::Result<Found<'b>, Why> {
        let (interface, frame) = match block {
            PcapBlockOwned::LegacyHeader(header) => {
                *self.nanoseconds = header.is_nanosecond_precision();
                *self.big_endian = header.is_bigendian();
                // The upper half says how many bytes of a checksum frames end with.
                let link = Linktype(header.network.0 & 0xffff);
                let snaplen = header.snaplen;
                *self.interfaces = vec![Interface { link, snaplen, resolution: 0, offset: 0 }];
                return Ok(Found::Nothing);
            }
            PcapBlockOwned::Legacy(packet) => {
                let interface = self.interface(0)?;
                // All frames of the file are like that.
                if interface.link != Linktype::ETHERNET {
                    return Err(foreign(interface.link.0));
                }
                let unit = if *self.nanoseconds { 1 } else { 1000 };
                let time = u64::from(packet.ts_sec) * NANOSECONDS as u64
                    + u64::from(packet.ts_usec) * unit;
                (interface, Captured { time, bytes: packet.data, length: packet.origlen })
            }
            PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                self.interfaces.clear();
                *self.big_endian = section.big_endian();
                return Ok(Found::Nothing);
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
                let (link, snaplen) = (interface.linktype, interface.snaplen);
                self.interfaces.push(Interface { link, snaplen, resolution, offset });
                return Ok(Found::Nothing);
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.interface(packet.if_id)?;
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let (time, bytes) = (interface.time(units), packet.packet_data());
                (interface, Captured { time, bytes, length: packet.origlen })
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let interface = self.interface(0)?;
                // It has no time of its own, and its length is in no field where the interface's
                // limit cut it.
                let kept = match interface.snaplen {
                    0 => packet.origlen,
                    snaplen => packet.origlen.min(snaplen),
                };
                let bytes = packet.raw_packet_data().get(..kept as usize).ok_or_else(leaves)?;
                (interface, Captured { time: last, bytes, length: packet.origlen })
            }
            PcapBlockOwned::NG(Block::Unknown(block)) if self.is_old_packet(block.block_type) => {
                // The interface's number has a counter of drops behind it, in 16 bits each.
                let word = |at: usize| -> std::result::Result<u32, Why> {
                    let word = block.data.get(at..at + 4).and_then(|word| word.try_into().ok());
                    let word: [u8; 4] = word.ok_or_else(leaves)?;
                    let big = *self.big_endian;
                    Ok(if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
                };
                let first = word(0)?;
                let number = if *self.big_endian { first >> 16 } else { first & 0xffff };
                let interface = self.interface(number)?;
                let time = interface.time(u64::from(word(4)?) << 32 | u64::from(word(8)?));
                let (kept, length) = (word(12)?, word(16)?);
                let bytes = block.data[20..].get(..kept as usize).ok_or_else(leaves)?;
                (interface, Captured { time, bytes, length })
            }
            PcapBlockOwned::NG(_) => return Ok(Found::Nothing),
        };
        Ok(match interface.link {
            Linktype::ETHERNET => Found::Frame(frame),
            other => Found::Foreign(other.0),
        })
    }

    /// pcap-parser has the type as if it were in little-endian order.
    fn is_old_packet(&self, kind: u32) -> bool {
        let kind = if *self.big_endian { kind.swap_bytes() } else { kind };
        kind == OLD_PACKET
    }

    fn interface(&self, number: u32) -> std::result::Result<&Interface, Why> {
        let missing = || (format!("interface {number} is not described"), MEND);
        self.interfaces.get(number as usize).ok_or_else(missing)
    }
}

fn leaves() -> Why {
    ("what is in a block claims to be longer than the block".into(), MEND)
}

fn foreign(link: i32) -> Why {
    let cause = format!("its frames are of link type {link}, not Ethernet");
    (cause, "capture on an Ethernet interface (not on `any`)")
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
