//! What the kernel left undone in a frame, because hardware would do it: the VLAN tag taken out, the
//! checksum not computed, many frames in one.

use std::{slice::ChunksMut, sync::Mutex};

use ringway_region::Buf;
use ringway_vnet::{Error, MAX_FRAME, Output, consume_as_sent};

use crate::blocks::Captured;

/// Bytes of the two addresses, behind which a tag stands.
const ADDRESSES: u32 = 12;

/// Bytes in which any frame can be finished: itself, and what it is cut into.
pub const ROOM: usize = 3 * MAX_FRAME;

/// The pieces of a frame, its tag among them. `tag` is memory for it.
#[inline]
pub fn pieces<'a>(frame: &Captured<'a>, tag: &'a mut [u8; 4]) -> [Option<Buf<'a>>; 3] {
    let whole = [Some(frame.data), None, None];
    let Some(bytes) = frame.tag else { return whole };
    let parts = frame.data.part(0, ADDRESSES).zip(frame.data.skip(ADDRESSES));
    let Some((addresses, rest)) = parts else { return whole };
    *tag = bytes;
    [Some(addresses), Some(Buf::of(tag)), Some(rest)]
}

/// Finishes a frame in `memory` of [`ROOM`] bytes or more. Returns the finished frame, or those that
/// it consists of, each as long as it was, or would have been, on the wire, and the memory that is
/// left.
///
/// The kernel wrote the header, but others may have since: it may say anything.
///
/// # Errors
/// No frame can be made of it.
#[cold]
pub fn finish<'m>(
    frame: &Captured<'_>,
    memory: &'m mut [u8],
) -> Result<(ChunksMut<'m, u8>, &'m mut [u8]), Error> {
    let mut tag = [0; 4];
    let mut length = 0;
    for piece in pieces(frame, &mut tag).into_iter().flatten() {
        length += piece.copy_to(piece.size() as usize, &mut memory[length..]);
    }
    let (copy, rest) = memory.split_at_mut(length);
    let header = frame.header.shifted(if frame.tag.is_some() { 4 } else { 0 });
    Ok(match consume_as_sent(&header, copy, rest)? {
        Output::InPlace => (copy.chunks_mut(length.max(1)), rest),
        Output::Segments(segments) => {
            let (used, rest) = rest.split_at_mut(segments.bytes());
            (segments.frames(used), rest)
        }
    })
}

/// Memory to finish frames in, made when there is one to finish.
#[derive(Debug, Default)]
pub struct OffloadScratch(Mutex<Vec<u8>>);

impl OffloadScratch {
    /// [Finishes](finish) a frame, and gives what it consists of to `each`.
    ///
    /// # Errors
    /// No frame can be made of it.
    #[cold]
    pub fn finish(&self, frame: &Captured<'_>, each: impl FnMut(Buf<'_>)) -> Result<(), Error> {
        // A thread that holds the lock may have been lost by a fork: there is other memory.
        let mut memory = self
            .0
            .try_lock()
            .map_or_else(|_| Vec::new(), |mut memory| std::mem::take(&mut *memory));
        memory.resize(ROOM, 0);
        let made = finish(frame, &mut memory);
        let done = made.map(|(frames, _)| frames.map(Buf::of).for_each(each));
        if let Ok(mut place) = self.0.try_lock() {
            *place = memory;
        }
        done
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ringway_testkit::datagram;
    use ringway_vnet::{
        Header,
        checksum::{finish_nonzero, sum},
    };

    /// UDP over IPv4 with a checksum that is its pseudo header's sum.
    pub(crate) fn partial(payload: &[u8]) -> Vec<u8> {
        let [left, _] = datagram(payload);
        left
    }

    /// The same with its checksum, and with a tag.
    pub(crate) fn whole(payload: &[u8], tag: Option<[u8; 4]>) -> Vec<u8> {
        let [_, mut frame] = datagram(payload);
        tag.into_iter().for_each(|tag| drop(frame.splice(12..12, tag)));
        frame
    }

    pub(crate) const CHECKSUM: Header = Header {
        flags: 1,
        gso_type: 0,
        hdr_len: 42,
        gso_size: 0,
        csum_start: 34,
        csum_offset: 6,
        num_buffers: 0,
    };
    pub(crate) const DATAGRAMS: Header = Header { gso_type: 5, gso_size: 100, ..CHECKSUM };
    pub(crate) const TAG: [u8; 4] = [0x81, 0, 0, 7];

    pub(crate) fn captured(data: &mut [u8], header: Header, tag: Option<[u8; 4]>) -> Captured<'_> {
        let data = Buf::of(data);
        Captured { data, header, tag, whole: true, time: 0, by_hardware: false, next: 0 }
    }

    #[test]
    fn a_checksum_is_completed_and_a_tag_put_in() {
        for tag in [None, Some(TAG)] {
            for payload in [&[][..], &[1, 2, 3], &[7; 1000]] {
                let mut bytes = partial(payload);
                let frame = captured(&mut bytes, CHECKSUM, tag);
                let mut memory = vec![0xee; ROOM];
                let (frames, rest) = finish(&frame, &mut memory).unwrap();
                let expected = whole(payload, tag);
                assert_eq!(rest.len(), ROOM - expected.len(), "it has what is left");
                assert_eq!(frames.map(|frame| frame.to_vec()).collect::<Vec<_>>(), [expected]);
            }
        }
    }

    #[test]
    fn datagrams_are_cut_as_they_were() {
        let payload: Vec<u8> = (0..250).collect();
        for tag in [None, Some(TAG)] {
            let mut bytes = partial(&payload);
            let frame = captured(&mut bytes, DATAGRAMS, tag);
            let mut memory = vec![0xee; ROOM];
            let (frames, rest) = finish(&frame, &mut memory).unwrap();
            let frames: Vec<_> = frames.map(|frame| frame.to_vec()).collect();
            let headers = if tag.is_some() { 46 } else { 42 };
            let used = 3 * headers + 250;
            assert_eq!(rest.len(), ROOM - (headers + 250) - used);
            assert_eq!(frames.len(), 3);
            for (i, (frame, piece)) in frames.iter().zip(payload.chunks(100)).enumerate() {
                let mut expected = whole(piece, tag);
                // Each is a packet of its own, by its number.
                let ip = headers - 28;
                expected[ip + 5] = i as u8;
                let checksum = finish_nonzero(sum(&expected[ip..ip + 20]));
                expected[ip + 10..ip + 12].copy_from_slice(&checksum);
                assert_eq!(*frame, expected, "datagram {i}");
            }
        }
    }

    #[test]
    fn of_a_header_that_says_anything_no_frame_is_made() {
        let scratch = OffloadScratch::default();
        for header in [Header { gso_type: 2, ..CHECKSUM }, Header { csum_start: 999, ..CHECKSUM }] {
            let mut bytes = partial(&[1; 60]);
            let frame = captured(&mut bytes, header, None);
            assert!(finish(&frame, &mut vec![0; ROOM]).is_err());
            assert!(scratch.finish(&frame, |_| panic!("there is no frame")).is_err());
        }
    }

    /// The memory is made once, and is there for the next frame.
    #[test]
    fn scratch_memory_is_used_again() {
        let scratch = OffloadScratch::default();
        for (header, lengths) in [(CHECKSUM, vec![292]), (DATAGRAMS, vec![142, 142, 92])] {
            let mut bytes = partial(&[5; 250]);
            let mut found = Vec::new();
            let frame = captured(&mut bytes, header, None);
            assert!(scratch.finish(&frame, |piece| found.push(piece.size())).is_ok());
            assert_eq!(found, lengths);
            assert_eq!(scratch.0.lock().unwrap().len(), ROOM);
        }
    }

    /// What is too short for addresses has no place for a tag.
    #[test]
    fn pieces_are_addresses_tag_and_rest() {
        for (length, expected) in
            [(60, vec![12, 4, 48]), (12, vec![12, 4, 0]), (11, vec![11]), (0, vec![0])]
        {
            let mut bytes = vec![9; length];
            let frame = captured(&mut bytes, Header::default(), Some(TAG));
            let mut tag = [0; 4];
            let found: Vec<_> =
                pieces(&frame, &mut tag).into_iter().flatten().map(|piece| piece.size()).collect();
            assert_eq!(found, expected, "{length}");
            assert_eq!(tag == TAG, length >= 12);
        }
        let mut bytes = vec![9; 60];
        let frame = captured(&mut bytes, Header::default(), None);
        assert_eq!(pieces(&frame, &mut [0; 4]).into_iter().flatten().count(), 1);
    }

    /// The longest frame that the kernel makes, in as many datagrams as it makes of one.
    #[test]
    fn the_room_is_enough_for_the_longest_frame() {
        let payload = vec![7; 65_000];
        let mut bytes = partial(&payload);
        let header = Header { gso_size: 508, ..DATAGRAMS };
        let frame = captured(&mut bytes, header, Some(TAG));
        let mut memory = vec![0; ROOM];
        let (frames, _) = finish(&frame, &mut memory).unwrap();
        assert_eq!(frames.map(|frame| frame.len() - 46).sum::<usize>(), payload.len());
    }
}
