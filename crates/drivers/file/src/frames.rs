//! All frames of a capture file in memory, to be sent again and again.

use std::path::Path;

use crate::{
    error::Result,
    in_use::InUse,
    reader::{CAPTURE_AGAIN, MEND, Reader, Skipped},
};

/// The frames of a file, one behind the other in one piece of memory.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
    /// Frames that the capture holds only in part.
    pub cut: usize,
    /// Where the last block begins, if the file ends in the middle of it.
    pub ends_in: Option<u64>,
    /// Frames of other link types, which were left out.
    pub skipped: Skipped,
    _in_use: InUse,
}

impl Frames {
    /// Reads all frames of `file`.
    ///
    /// # Errors
    /// For a file that is not a capture, is damaged, or holds no Ethernet frames; the message names
    /// the file, the byte and what to do.
    pub fn load(file: &Path) -> Result<Frames> {
        Frames::read(Reader::open(file)?)
    }

    fn read(mut reader: Reader) -> Result<Frames> {
        let mut frames = Frames { _in_use: reader.in_use(), ..Frames::default() };
        while reader.next(|frame| frames.push(frame.bytes, frame.length))? {}
        (frames.ends_in, frames.skipped) = (reader.cut(), reader.skipped());
        if let Some(at) = reader.cut().filter(|_| frames.is_empty()) {
            let why = ("the file ends in the middle of its first block".into(), MEND);
            return Err(reader.damaged(at, why));
        }
        if frames.is_empty() {
            let why = ("there is no frame in it".into(), CAPTURE_AGAIN);
            return Err(reader.damaged(reader.position(), why));
        }
        Ok(frames)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The frame at `at`.
    ///
    /// # Panics
    /// Unless `at` is less than [`len`](Self::len).
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// The length of the longest frame, in bytes.
    pub fn longest(&self) -> usize {
        (0..self.len()).map(|at| self.get(at).len()).max().unwrap_or(0)
    }

    /// The length of the shortest frame, in bytes.
    pub fn shortest(&self) -> usize {
        (0..self.len()).map(|at| self.get(at).len()).min().unwrap_or(0)
    }

    fn push(&mut self, captured: &[u8], length: u32) {
        self.bytes.extend_from_slice(captured);
        self.ends.push(self.bytes.len());
        self.cut += usize::from(captured.len() < length as usize);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::input::Trouble;

    const ETHERNET: u32 = 1;
    const CAPACITY: usize = 1 << 16;
    const MAX_CAPACITY: usize = 1 << 24;

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
        let input = std::io::Cursor::new(bytes.to_vec());
        Frames::read(Reader::of_bytes(Path::new("dir/some.pcap"), input, Trouble::default())?)
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
        let missing = Frames::load(Path::new("/nonexistent/x.pcap")).unwrap_err().to_string();
        assert!(missing.starts_with("/nonexistent/x.pcap: ") && missing.contains("check the path"));
    }

    #[test]
    fn a_cut_file_names_the_byte_where_the_last_block_starts() {
        let mut file = pcap(ETHERNET, &[&[1; 60], &[2; 60]]);
        file.truncate(file.len() - 1);
        let frames = load_bytes(&file).unwrap();
        assert_eq!((frames.len(), frames.ends_in), (1, Some(100)));
        file.truncate(90);
        let message = message(&file);
        assert!(message.starts_with("dir/some.pcap: byte 24: "), "{message}");
        assert!(message.contains("ends in the middle"), "{message}");
    }

    #[test]
    fn other_link_types_are_refused() {
        for file in [pcap(113, &[&[1; 60]]), pcapng(113, &[&[1; 60]])] {
            let message = message(&file);
            assert!(message.contains("link type 113, not Ethernet"), "{message}");
        }
    }

    /// Two interfaces, of which one has other frames: these are left out, and counted.
    #[test]
    fn frames_of_other_link_types_are_skipped_and_counted() {
        let (other, ethernet) = (pcapng(113, &[&[1; 60]]), pcapng(1, &[&[2; 60], &[3; 61]]));
        // The section header has 28 bytes, and an interface 20.
        let (interface, frames) = ethernet[28..].split_at(20);
        let second = |frame: &[u8]| {
            let mut frame = frame.to_vec();
            frame[8..12].copy_from_slice(&1u32.to_le_bytes());
            frame
        };
        let (first, last) = frames.split_at(92);
        let file = [&other[..48], interface, &second(first), &other[48..], &second(last)].concat();
        let frames = load_bytes(&file).unwrap();
        assert_eq!(all(&frames), [&[2; 60][..], &[3; 61]]);
        assert_eq!(frames.skipped, Skipped { frames: 1, link: 113 });
    }

    /// A link type says in its upper half how many bytes of a checksum there are.
    #[test]
    fn a_link_type_with_a_checksum_is_ethernet() {
        for link in [ETHERNET | 0x2400_0000, ETHERNET | 0x4400_0000] {
            assert_eq!(load_bytes(&pcap(link, &[&[1; 60]])).unwrap().len(), 1, "{link:#x}");
        }
    }

    /// A simple packet block has as many bytes as its interface keeps, which its padding hides, and
    /// the time of the frame before it.
    #[test]
    fn simple_packet_blocks() {
        for (snaplen, length, kept) in [(0u32, 61u32, 61), (57, 61, 57), (64, 61, 61), (1, 3, 1)] {
            let mut file = pcapng(1, &[]);
            file[28 + 12..28 + 16].copy_from_slice(&snaplen.to_le_bytes());
            let body: Vec<u8> =
                [0u32, 0, 7_000_000, 60, 60].iter().flat_map(|w| w.to_le_bytes()).collect();
            file.extend(block(6, &[&body[..], &[9; 60]].concat()));
            file.extend(block(3, &[&length.to_le_bytes()[..], &vec![5; kept]].concat()));
            let input = std::io::Cursor::new(file);
            let mut reader = Reader::of_bytes(Path::new("x"), input, Trouble::default()).unwrap();
            let mut seen = Vec::new();
            while reader.next(|f| seen.push((f.time, f.bytes.to_vec(), f.length))).unwrap() {}
            assert_eq!(seen[0].0, 7_000_000_000);
            assert_eq!(seen[1], (7_000_000_000, vec![5; kept], length), "{snaplen}");
        }
    }

    /// A record that claims more than any can have is damage, however much of the file is left;
    /// what is before it is handed out.
    #[test]
    fn damage_in_the_middle_names_the_byte() {
        for claimed in [262_145u32, 10_000_000, u32::MAX] {
            let mut file = pcap(ETHERNET, &[&[1; 60][..]; 100]);
            let at = 24 + 3 * 76;
            file[at + 8..at + 12].copy_from_slice(&claimed.to_le_bytes());
            let message = message(&file);
            assert!(message.starts_with(&format!("dir/some.pcap: byte {at}: ")), "{message}");
            assert!(message.contains("claims to be"), "{message}");
        }
        let mut file = pcapng(1, &[&[1; 60][..]; 100]);
        let at = 48 + 3 * 92;
        file[at + 4..at + 8].copy_from_slice(&0x7000_0000u32.to_le_bytes());
        let message = message(&file);
        assert!(message.starts_with(&format!("dir/some.pcap: byte {at}: ")), "{message}");
    }

    /// The packet block of the first drafts, in either order of bytes.
    #[test]
    fn older_packet_blocks() {
        type Word = fn(u32) -> [u8; 4];
        for (big, word) in [(false, u32::to_le_bytes as Word), (true, u32::to_be_bytes as Word)] {
            let block = |kind: u32, words: &[u32], data: &[u8]| {
                let total = (12 + 4 * words.len() + data.len()) as u32;
                let words = [&[kind, total][..], words].concat();
                let head = words.into_iter().flat_map(word);
                head.chain(data.iter().copied()).chain(word(total)).collect::<Vec<u8>>()
            };
            let (version, link) = if big { (1 << 16, 1 << 16) } else { (1, 1) };
            let section = block(0x0a0d_0d0a, &[0x1a2b_3c4d, version, u32::MAX, u32::MAX], &[]);
            let packet = block(2, &[0, 0, 7_000_000, 60, 1514], &[9; 60]);
            let file = [section, block(1, &[link, 0], &[]), packet].concat();
            let input = std::io::Cursor::new(file);
            let mut reader = Reader::of_bytes(Path::new("x"), input, Trouble::default()).unwrap();
            let mut seen = Vec::new();
            while reader.next(|f| seen.push((f.time, f.bytes.to_vec(), f.length))).unwrap() {}
            assert_eq!(seen, [(7_000_000_000, vec![9; 60], 1514)], "big-endian: {big}");
        }
    }

    /// A block whose content claims more than the block has is damage, behind others and at the end of the file; a file
    /// that is cut ends in a block of which it has not all.
    #[test]
    fn content_that_leaves_its_block_is_damage() {
        let words =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let packet = [&words(&[0, 0, 0, 5000, 5000])[..], &[1; 60]].concat();
        let nearly = [&words(&[0, 0, 0, 62, 62])[..], &[1; 60]].concat();
        let bodies: [(&str, u32, &[u8]); 5] = [
            ("a packet", 6, &packet),
            ("a packet, by two bytes", 6, &nearly),
            ("an older packet", 2, &packet),
            ("a simple packet", 3, &[&words(&[5000])[..], &[1; 60]].concat()),
            ("names", 4, &[&words(&[1 | 5000 << 16])[..], &[1; 8]].concat()),
        ];
        let good = pcapng(1, &[&[7; 60][..]; 3]);
        for (what, kind, body) in bodies {
            let damaged = block(kind, body);
            for behind in [&[][..], &good[48..]] {
                let message = match load_bytes(&[&good[..], &damaged, behind].concat()) {
                    Ok(frames) => {
                        panic!("{what}: {} frames, ends in {:?}", frames.len(), frames.ends_in)
                    }
                    Err(error) => error.to_string(),
                };
                let start = format!("dir/some.pcap: byte {}: ", good.len());
                assert!(message.starts_with(&start), "{what}: {message}");
            }
            let cut = load_bytes(&[&good[..], &damaged[..damaged.len() - 1]].concat()).unwrap();
            assert_eq!((cut.len(), cut.ends_in), (3, Some(good.len() as u64)), "{what}");
        }
    }

    #[test]
    fn an_absurd_length_is_damage_not_memory() {
        let mut file = pcap(ETHERNET, &[&[1; 60]]);
        file[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        file.extend(vec![0; MAX_CAPACITY]);
        assert!(message(&file).contains("claims to be 4294967295 bytes long"));
    }

    #[test]
    fn interfaces_without_end_are_damage_not_memory() {
        let file = pcapng(1, &[]);
        let (section, interface) = file.split_at(28);
        let many = |count| [section, &interface.repeat(count)].concat();
        assert!(message(&many(1 << 16)).contains("no frame"));
        assert!(message(&many((1 << 16) + 1)).contains("more than 65536 interfaces"));
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
