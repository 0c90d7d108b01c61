//! All frames of a capture file in memory, to be sent again and again.

use std::path::Path;

use crate::{
    error::Result,
    reader::{CAPTURE_AGAIN, MEND, Reader},
};

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
    /// Reads all frames of `file`.
    ///
    /// # Errors
    /// For a file that is not a capture, is damaged or cut, holds other than Ethernet frames, or holds
    /// none; the message names the file, the byte and what to do.
    pub fn load(file: &Path) -> Result<Frames> {
        Frames::read(Reader::open(file)?)
    }

    fn read(mut reader: Reader) -> Result<Frames> {
        let mut frames = Frames::default();
        while reader.next(|frame| frames.push(frame.bytes, frame.length))? {}
        if let Some(at) = reader.cut() {
            let why = ("the file ends in the middle of a block".into(), MEND);
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
        assert!(message(&file).contains("longer than 16 MiB"));
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
