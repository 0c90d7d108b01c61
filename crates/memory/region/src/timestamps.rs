//! When frames were received: a number right in front of their buffers' data.
//!
//! ```text
//!   buffer  | headroom, but for 8 bytes | nanoseconds, a u64 | data ...
//! ```
//!
//! It belongs to the buffer, and goes with it to another ring. A frame of several buffers has it in
//! front of the first. Of a frame out of a capture file, its length on the wire stands in front of
//! that, a u64.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::RingView;

/// Whose clock tells when a frame was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Timestamps {
    /// The NIC's, whatever it counts from. A frame that the NIC has no time for has 0.
    Hardware,
    /// The kernel's when it sees the frame: CLOCK_TAI, which is CLOCK_REALTIME without its leap
    /// seconds.
    Software,
}

impl Timestamps {
    /// As a user writes it.
    pub fn name(self) -> &'static str {
        match self {
            Timestamps::Hardware => "hardware",
            Timestamps::Software => "software",
        }
    }
}

impl fmt::Display for Timestamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Timestamps {
    type Err = String;

    fn from_str(text: &str) -> Result<Timestamps, String> {
        [Timestamps::Hardware, Timestamps::Software]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("`{text}` timestamps: there are those of hardware and software"))
    }
}

impl RingView {
    /// What stands in front of a buffer: nanoseconds, or 0 where the time is not known; anything where
    /// nobody was asked to put it down. `None` where there is no such buffer, or no room for it.
    #[inline]
    pub fn timestamp(&self, buffer: u32) -> Option<u64> {
        self.region().in_front::<8>(buffer)?.read(0).map(u64::from_ne_bytes)
    }

    /// Puts it down, where there is room.
    #[inline]
    pub fn set_timestamp(&self, buffer: u32, nanoseconds: u64) {
        if let Some(front) = self.region().in_front::<8>(buffer) {
            front.store(0, nanoseconds.to_ne_bytes());
        }
    }
}

/// What a capture file says of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// When it came, in nanoseconds since 1970.
    pub time: u64,
    /// Bytes that it had on the wire, of which the file may have fewer.
    pub length: u32,
}

impl RingView {
    /// What stands in front of a buffer that has a frame of a file; anything in front of others.
    /// `None` where there is no such buffer, or no room for it.
    #[inline]
    pub fn recorded(&self, buffer: u32) -> Option<Recorded> {
        let front = self.region().in_front::<16>(buffer)?;
        let [length, time] = [0, 8].map(|at| front.read(at).map(u64::from_ne_bytes));
        Some(Recorded { time: time?, length: length?.try_into().unwrap_or(u32::MAX) })
    }

    /// Puts it down, where there is room.
    #[inline]
    pub fn set_recorded(&self, buffer: u32, Recorded { time, length }: Recorded) {
        if let Some(front) = self.region().in_front::<16>(buffer) {
            front.store(0, u64::from(length).to_ne_bytes());
            front.store(8, time.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::Ordering::Relaxed};

    use ringway_abi::Dir;

    use super::*;
    use crate::{Layout, Region, RingInit, Sizes};

    fn ring(headroom: u32) -> RingView {
        let layout = Layout::new(&Sizes::PRIVATE, headroom).unwrap();
        let region = Arc::new(Region::create(2, layout).unwrap());
        let ring = RingView::new(&region, 0, 4).unwrap();
        ring.init(0, &RingInit { dir: Dir::Rx, ringid: 0, num_slots: 4 });
        ring
    }

    #[test]
    fn a_timestamp_is_in_front_of_the_data() {
        let ring = ring(256);
        ring.set_timestamp(3, u64::MAX);
        assert_eq!(ring.timestamp(3), Some(u64::MAX));
        // Neither the frame nor the buffer before has a byte of it.
        assert_eq!(ring.buf(3).unwrap().read(0), Some([0; 8]));
        let end = ring.buf(2).unwrap().size() as usize;
        assert_eq!(ring.buf(2).unwrap().read(end - 8), Some([0; 8]));
        assert_eq!((ring.timestamp(2), ring.timestamp(4)), (Some(0), Some(0)));
        assert_eq!((ring.timestamp(0), ring.timestamp(u32::MAX)), (None, None));
    }

    #[test]
    fn without_a_headroom_there_is_none() {
        let ring = ring(0);
        ring.set_timestamp(3, 7);
        assert_eq!(ring.timestamp(3), None);
    }

    /// A frame that begins in front of where it belongs, or behind, brings its timestamp along.
    #[test]
    fn a_frame_settles_with_its_timestamp() {
        let ring = ring(256);
        let (buf, region) = (ring.buf(3).unwrap(), ring.region());
        let size = buf.size();
        let chunk = 3 * region.layout().bufs.size as usize;
        let bytes_at = |at: u32| &region.buffer_area()[chunk + at as usize..];
        let write = |at: u32, bytes: &[u8]| {
            bytes_at(at).iter().zip(bytes).for_each(|(to, byte)| to.store(*byte, Relaxed));
        };
        for begin in [8, 252, 256, 260, 272, 300] {
            let put = || {
                write(begin - 8, &7u64.to_ne_bytes());
                write(begin, b"abcdefgh");
            };
            let most = size - begin.saturating_sub(256);
            for length in [0, 4, 8, most] {
                put();
                assert!(region.settle(3, begin, length), "{length} at {begin}");
                let mut bytes = vec![0; length as usize];
                buf.copy_to(bytes.len(), &mut bytes);
                let expected = &b"abcdefgh"[..bytes.len().min(8)];
                assert_eq!((ring.timestamp(3), &bytes[..expected.len()]), (Some(7), expected));
            }
            put();
            assert!(!region.settle(3, begin, most + 1) && !region.settle(3, begin, u32::MAX));
            let stays = bytes_at(begin).iter().map(|byte| byte.load(Relaxed));
            assert!(stays.take(8).eq(*b"abcdefgh"));
        }
        // There is no timestamp in front, or it is in no buffer.
        assert!(!region.settle(3, 7, 4) && !region.settle(3, u32::MAX, 4));
        assert!(!region.settle(1, 256, 4) && !region.settle(u32::MAX, 256, 4));
    }

    #[test]
    fn what_a_file_says_is_in_front_of_the_data() {
        let ring = ring(16);
        let recorded = Recorded { time: u64::MAX - 1, length: 9000 };
        ring.set_recorded(3, recorded);
        assert_eq!(ring.recorded(3), Some(recorded));
        // The time is where that of other frames is. Of the buffers beside it, nothing was written.
        assert_eq!(ring.timestamp(3), Some(recorded.time));
        assert_eq!([2, 4].map(|buffer| ring.recorded(buffer)), [Some(Recorded::default()); 2]);
        assert_eq!(ring.buf(3).unwrap().read(0), Some([0; 16]));
        // A program may write any length.
        ring.region().in_front::<16>(3).unwrap().store(0, (1u64 << 32).to_ne_bytes());
        assert_eq!(ring.recorded(3), Some(Recorded { length: u32::MAX, ..recorded }));
        assert_eq!((ring.recorded(1), ring.recorded(u32::MAX)), (None, None));
        let small = self::ring(8);
        small.set_recorded(3, recorded);
        assert_eq!((small.recorded(3), small.timestamp(3)), (None, Some(0)));
    }

    #[test]
    fn names() {
        for kind in [Timestamps::Hardware, Timestamps::Software] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("ptp".parse::<Timestamps>().unwrap_err().contains("hardware and software"));
    }
}
