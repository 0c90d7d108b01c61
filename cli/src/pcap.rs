//! Reads the frames of a capture file (pcap or pcapng) into memory, to be sent again and again.

use crate::error::{Error, Result};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The frames of a file, one behind the other in one piece of memory.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
    /// Frames that the capture holds only in part.
    pub cut: usize,
}

impl Frames {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The frame at `at`, which is less than [`Frames::len`].
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// The length of the longest frame, in bytes.
    pub fn longest(&self) -> usize {
        (0..self.len()).map(|at| self.get(at).len()).max().unwrap_or(0)
    }

    fn push(&mut self, captured: &[u8], length: u32) {
        self.bytes.extend_from_slice(captured);
        self.ends.push(self.bytes.len());
        self.cut += usize::from(captured.len() < length as usize);
    }
}

/// Reads all frames of `file`.
///
/// Fails on a file that is not a capture, is damaged, holds other than Ethernet frames, or holds
/// none; the message names the file, the byte and what to do.
pub fn load(file: &Path) -> Result<Frames> {
    let input =
        File::open(file).map_err(|source| Error::CaptureOpen { file: file.into(), source })?;
    load_from(file, input)
}

/// Room for a block to begin with, and at most.
const CAPACITY: usize = 1 << 16;
const MAX_CAPACITY: usize = 1 << 26;

fn load_from(file: &Path, input: impl Read + Send) -> Result<Frames> {
    let fail = |offset: usize, (cause, remedy): (String, &'static str)| Error::Capture {
        file: file.into(),
        offset: offset as u64,
        cause,
        remedy,
    };
    let mut reader =
        create_reader(CAPACITY, input).map_err(|error| fail(0, explain_start(error)))?;
    let mut frames = Frames::default();
    let mut links = Links::default();
    let mut capacity = CAPACITY;
    loop {
        let at = reader.consumed();
        match reader.next() {
            Ok((length, block)) => {
                take(block, &mut links, &mut frames).map_err(|why| fail(at, why))?;
                reader.consume(length);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => refill(&mut *reader).map_err(|why| fail(at, why))?,
            Err(PcapError::BufferTooSmall) if capacity < MAX_CAPACITY => {
                capacity *= 2;
                reader.grow(capacity);
                refill(&mut *reader).map_err(|why| fail(at, why))?;
            }
            Err(error) => return Err(fail(at, explain(error))),
        }
    }
    if frames.len() == 0 {
        return Err(fail(reader.consumed(), ("there is no frame in it".into(), CAPTURE_AGAIN)));
    }
    Ok(frames)
}

fn refill(reader: &mut dyn PcapReaderIterator) -> std::result::Result<(), (String, &'static str)> {
    reader.refill().map_err(explain)
}

/// The kind of frames of each interface of the current section (a pcap file has just one).
#[derive(Default)]
struct Links(Vec<Linktype>);

impl Links {
    fn check(&self, interface: u32) -> std::result::Result<(), (String, &'static str)> {
        match self.0.get(interface as usize) {
            Some(&Linktype::ETHERNET) => Ok(()),
            Some(other) => Err((
                format!("its frames are of link type {}, not Ethernet", other.0),
                "capture on an Ethernet interface (not on `any`)",
            )),
            None => Err((format!("interface {interface} is not described"), MEND)),
        }
    }
}

fn take(
    block: PcapBlockOwned<'_>,
    links: &mut Links,
    frames: &mut Frames,
) -> std::result::Result<(), (String, &'static str)> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => links.0 = vec![header.network],
        PcapBlockOwned::Legacy(packet) => {
            links.check(0)?;
            frames.push(packet.data, packet.origlen);
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => links.0.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            links.0.push(interface.linktype);
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            links.check(packet.if_id)?;
            frames.push(packet.packet_data(), packet.origlen);
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            links.check(0)?;
            frames.push(packet.packet_data(), packet.origlen);
        }
        PcapBlockOwned::NG(_) => (),
    }
    Ok(())
}

const CAPTURE_AGAIN: &str = "capture with `tcpdump -w FILE` or `dumpcap -w FILE`";
const MEND: &str = "mend it with `editcap BROKEN MENDED`, or capture it again";

/// A file too short for its first header is no capture file rather than a cut one.
fn explain_start(error: PcapError<&[u8]>) -> (String, &'static str) {
    match error {
        PcapError::Eof => ("the file is empty".into(), CAPTURE_AGAIN),
        PcapError::ReadError => explain(error),
        _ => ("this is neither a pcap nor a pcapng file".into(), CAPTURE_AGAIN),
    }
}

fn explain(error: PcapError<&[u8]>) -> (String, &'static str) {
    match error {
        PcapError::UnexpectedEof => ("the file ends in the middle of a block".into(), MEND),
        PcapError::BufferTooSmall => {
            (format!("a block claims to be longer than {} MiB", MAX_CAPACITY >> 20), MEND)
        }
        PcapError::ReadError => {
            ("the file cannot be read".into(), "give a regular file on a working disk")
        }
        _ => ("the block is damaged".into(), MEND),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ETHERNET: u32 = 1;

    fn pcap(link: u32, frames: &[&[u8]]) -> Vec<u8> {
        let mut file = Vec::new();
        file.extend(0xa1b2_c3d4u32.to_le_bytes());
        file.extend([2, 0, 4, 0]);
        for word in [0, 0, 65535, link] {
            file.extend(word.to_le_bytes());
        }
        for frame in frames {
            let length = frame.len() as u32;
            for word in [0, 0, length, length] {
                file.extend(word.to_le_bytes());
            }
            file.extend(*frame);
        }
        file
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut block = kind.to_le_bytes().to_vec();
        let padding = body.len().next_multiple_of(4) - body.len();
        let total = (12 + body.len() + padding) as u32;
        block.extend(total.to_le_bytes());
        block.extend(body);
        block.extend(vec![0; padding]);
        block.extend(total.to_le_bytes());
        block
    }

    fn pcapng(link: u16, frames: &[&[u8]]) -> Vec<u8> {
        let mut section = 0x1a2b_3c4du32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend([0xff; 8]);
        let mut file = block(0x0a0d_0d0a, &section);
        let mut interface = link.to_le_bytes().to_vec();
        interface.extend([0; 6]);
        file.extend(block(1, &interface));
        for frame in frames {
            let length = frame.len() as u32;
            let mut body: Vec<u8> =
                [0, 0, 0, length, length].iter().flat_map(|word| word.to_le_bytes()).collect();
            body.extend(*frame);
            file.extend(block(6, &body));
        }
        file
    }

    fn load_bytes(bytes: &[u8]) -> Result<Frames> {
        load_from(Path::new("dir/some.pcap"), bytes)
    }

    fn message(bytes: &[u8]) -> String {
        load_bytes(bytes).unwrap_err().to_string()
    }

    fn all(frames: &Frames) -> Vec<&[u8]> {
        (0..frames.len()).map(|at| frames.get(at)).collect()
    }

    #[test]
    fn both_formats_give_their_frames_in_order() {
        let wanted: [&[u8]; 3] = [&[1; 60], &[2; 61], &[3; 1514]];
        for file in [pcap(ETHERNET, &wanted), pcapng(1, &wanted)] {
            let frames = load_bytes(&file).unwrap();
            assert_eq!(all(&frames), wanted);
            assert_eq!(frames.cut, 0);
        }
    }

    #[test]
    fn files_and_blocks_longer_than_the_buffer() {
        let long = vec![7; 4 * CAPACITY];
        let wanted: Vec<&[u8]> = vec![&long[..200_000], &long[..60], &long[..65_536]];
        for file in [pcap(ETHERNET, &wanted), pcapng(1, &wanted)] {
            assert_eq!(all(&load_bytes(&file).unwrap()), wanted);
        }
        let many: Vec<&[u8]> = vec![&long[..1000]; 1000];
        assert_eq!(load_bytes(&pcap(ETHERNET, &many)).unwrap().len(), 1000);
        assert_eq!(load_bytes(&pcapng(1, &many)).unwrap().len(), 1000);
    }

    #[test]
    fn frames_captured_in_part_are_counted() {
        let mut file = pcap(ETHERNET, &[&[1; 60], &[2; 60]]);
        file[24 + 12..24 + 16].copy_from_slice(&1514u32.to_le_bytes());
        assert_eq!(load_bytes(&file).unwrap().cut, 1);
    }

    #[test]
    fn what_is_no_capture_is_said_to_be_none() {
        assert!(message(b"").contains("the file is empty"));
        assert!(message(b"abc").contains("neither a pcap nor a pcapng"));
        assert!(message(&[b'x'; 200]).contains("neither a pcap nor a pcapng"));
        assert!(message(&pcap(ETHERNET, &[])).contains("no frame"));
        let missing = load(Path::new("/nonexistent/x.pcap")).unwrap_err().to_string();
        assert!(missing.starts_with("/nonexistent/x.pcap: ") && missing.contains("check the path"));
    }

    #[test]
    fn a_cut_file_names_the_byte_where_the_last_block_starts() {
        let mut file = pcap(ETHERNET, &[&[1; 60], &[2; 60]]);
        file.truncate(file.len() - 1);
        let message = message(&file);
        assert!(message.starts_with("dir/some.pcap: byte 100: "), "{message}");
        assert!(message.contains("ends in the middle"), "{message}");
    }

    #[test]
    fn other_link_types_are_refused() {
        for file in [pcap(113, &[&[1; 60]]), pcapng(113, &[&[1; 60]])] {
            let message = message(&file);
            assert!(message.contains("link type 113, not Ethernet"), "{message}");
        }
    }

    #[test]
    fn an_absurd_length_is_damage_not_memory() {
        let mut file = pcap(ETHERNET, &[&[1; 60]]);
        file[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        file.extend(vec![0; MAX_CAPACITY]);
        assert!(message(&file).contains("longer than 64 MiB"));
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_other_frames_never_a_panic(
            at in 0usize..300, value in any::<u8>(), ng in any::<bool>(),
        ) {
            let frames: [&[u8]; 2] = [&[1; 60], &[2; 60]];
            let mut file = if ng { pcapng(1, &frames) } else { pcap(ETHERNET, &frames) };
            let at = at % file.len();
            file[at] = value;
            if let Ok(frames) = load_bytes(&file) {
                prop_assert!(frames.len() <= 2);
            }
        }
    }
}
