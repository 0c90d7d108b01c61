//! The virtio-net header (Virtual I/O Device, section 5.1.6): layout, meaning, what is refused.

use crate::Error;

/// The checksum is partial: see `csum_start` and `csum_offset`.
pub(crate) const NEEDS_CSUM: u8 = 1;
/// The checksum has been verified: nothing to do.
const DATA_VALID: u8 = 2;

const GSO_NONE: u8 = 0;
pub(crate) const GSO_TCPV4: u8 = 1;
const GSO_UDP: u8 = 3;
pub(crate) const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Added to the TCP types: the connection uses explicit congestion notification.
pub(crate) const GSO_ECN: u8 = 0x80;

/// A virtio-net header as it stands before a frame. Offsets count from the frame's first byte;
/// numbers are in the machine's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub flags: u8,
    pub gso_type: u8,
    /// Bytes of all headers; a hint that nothing here relies on.
    pub hdr_len: u16,
    /// Bytes of payload in a segment.
    pub gso_size: u16,
    /// Where to begin to sum.
    pub csum_start: u16,
    /// Where to store the checksum, from `csum_start`.
    pub csum_offset: u16,
    /// Receive buffers that the packet takes. Only in the header of 12 bytes.
    pub num_buffers: u16,
}

/// How a frame is to be segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gso {
    TcpV4,
    TcpV6,
    /// UDP data to be cut wherever a frame is full.
    Udp,
    /// UDP datagrams of this payload each.
    UdpL4(u16),
}

impl Header {
    /// Bytes without `num_buffers`.
    pub const SHORT: usize = 10;
    /// Bytes with `num_buffers`.
    pub const LONG: usize = 12;

    /// Reads a header of [`SHORT`](Self::SHORT) bytes, or of [`LONG`](Self::LONG) if there are
    /// as many. `None` if there are fewer.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let [flags, gso_type, words @ ..] = bytes.first_chunk::<{ Self::SHORT }>()?;
        let word = |i: usize| u16::from_ne_bytes([words[i], words[i + 1]]);
        let num_buffers = match bytes.get(Self::SHORT..Self::LONG) {
            Some(&[a, b]) => u16::from_ne_bytes([a, b]),
            _ => 0,
        };
        Some(Header {
            flags: *flags,
            gso_type: *gso_type,
            hdr_len: word(0),
            gso_size: word(2),
            csum_start: word(4),
            csum_offset: word(6),
            num_buffers,
        })
    }

    /// The header of 12 bytes; its first 10 are the short one.
    pub fn emit(&self) -> [u8; Self::LONG] {
        let words =
            [self.hdr_len, self.gso_size, self.csum_start, self.csum_offset, self.num_buffers];
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (to, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// The header for a frame that has `by` bytes more in front of its payload: a tag, for example,
    /// or the lack of one.
    pub fn shifted(self, by: i8) -> Header {
        let moved = |at: u16| if at == 0 { 0 } else { at.saturating_add_signed(by.into()) };
        Header { hdr_len: moved(self.hdr_len), csum_start: moved(self.csum_start), ..self }
    }

    /// What this header, of a frame of `len` bytes, asks for, and nothing else: as others may get it. What has no meaning is
    /// zero, and the hint at the headers is not longer than the frame.
    ///
    /// # Errors
    /// [`Error::BadHeader`]: a flag or a type that is not known, segments of no bytes, or a checksum behind the frame.
    pub fn checked(&self, len: usize) -> Result<Header, Error> {
        let mut checked = Header { flags: self.flags, ..Header::default() };
        if self.gso()?.is_some() {
            if self.gso_size == 0 {
                return Err(Error::BadHeader);
            }
            (checked.gso_type, checked.gso_size) = (self.gso_type, self.gso_size);
            checked.hdr_len = self.hdr_len.min(len.try_into().unwrap_or(u16::MAX));
        }
        if let Some((_, at)) = self.checksum() {
            if at + 2 > len {
                return Err(Error::BadHeader);
            }
            (checked.csum_start, checked.csum_offset) = (self.csum_start, self.csum_offset);
        }
        Ok(checked)
    }

    /// Whether it asks for nothing: the frame behind it is fit for anybody as it is.
    pub fn is_plain(&self) -> bool {
        self.flags & !DATA_VALID == 0 && self.gso_type & !GSO_ECN == GSO_NONE
    }

    /// Where to sum from and where the checksum belongs, if that is partial.
    pub(crate) fn checksum(&self) -> Option<(usize, usize)> {
        let start = usize::from(self.csum_start);
        (self.flags & NEEDS_CSUM != 0).then_some((start, start + usize::from(self.csum_offset)))
    }

    /// How to segment the frame, if it is to be. Errors: [`Error::BadHeader`], also for a wrong
    /// flag.
    pub fn gso(&self) -> Result<Option<Gso>, Error> {
        if self.flags & !(NEEDS_CSUM | DATA_VALID) != 0 {
            return Err(Error::BadHeader);
        }
        match self.gso_type & !GSO_ECN {
            GSO_NONE => Ok(None),
            GSO_TCPV4 => Ok(Some(Gso::TcpV4)),
            GSO_TCPV6 => Ok(Some(Gso::TcpV6)),
            GSO_UDP => Ok(Some(Gso::Udp)),
            GSO_UDP_L4 if self.gso_size > 0 => Ok(Some(Gso::UdpL4(self.gso_size))),
            _ => Err(Error::BadHeader),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives() {
        let bytes: [u8; Header::LONG] = std::array::from_fn(|i| i as u8 + 1);
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header.emit(), bytes);
        let short = Header::parse(&bytes[..11]).unwrap();
        assert_eq!(short, Header { num_buffers: 0, ..header });
        assert_eq!(Header::parse(&bytes[..9]), None);
    }

    /// S-VHDR-3: of the 65536 headers, those with known flags and types pass.
    #[test]
    fn only_what_is_known_passes() {
        let all = (0..=u16::MAX).map(|n| Header {
            flags: n as u8,
            gso_type: (n >> 8) as u8,
            gso_size: 1,
            ..Header::default()
        });
        let good: Vec<_> = all.filter(|header| header.gso().is_ok()).collect();
        assert_eq!(good.len(), 4 * 5 * 2);
        let is_known = |h: &Header| h.flags < 4 && matches!(h.gso_type & 0x7f, 0 | 1 | 3 | 4 | 5);
        assert!(good.iter().all(is_known));
        let plain: Vec<_> = good.iter().filter(|header| header.is_plain()).collect();
        assert!(plain.iter().all(|h| h.checksum().is_none() && h.gso() == Ok(None)));
        assert_eq!(plain.len(), 2 * 2);
    }

    /// What a header asks for stays; the rest is zero. What contradicts the frame's length is refused.
    #[test]
    fn what_is_checked_is_what_is_asked_for() {
        let junk = Header { hdr_len: 65_535, gso_size: 9, csum_start: 7, ..Header::default() };
        let sum = Header { flags: 1, csum_start: 34, csum_offset: 16, ..Header::default() };
        let cut = Header { gso_type: 0x81, gso_size: 1000, hdr_len: 54, ..sum };
        for (header, expected) in [
            (junk, Ok(Header::default())),
            (Header { num_buffers: 3, gso_type: 0x80, ..junk }, Ok(Header::default())),
            (Header { hdr_len: 54, ..sum }, Ok(sum)),
            (cut, Ok(cut)),
            (Header { hdr_len: 65_535, ..cut }, Ok(Header { hdr_len: 60, ..cut })),
            (Header { csum_offset: 24, ..sum }, Ok(Header { csum_offset: 24, ..sum })),
            (Header { csum_offset: 25, ..sum }, Err(Error::BadHeader)),
            (Header { csum_start: 65_535, csum_offset: 65_535, ..sum }, Err(Error::BadHeader)),
            (Header { gso_size: 0, ..cut }, Err(Error::BadHeader)),
            (Header { gso_type: 2, ..cut }, Err(Error::BadHeader)),
            (Header { gso_type: 0xff, ..cut }, Err(Error::BadHeader)),
            (Header { flags: 4, ..cut }, Err(Error::BadHeader)),
        ] {
            assert_eq!(header.checked(60), expected, "{header:?}");
        }
    }

    #[test]
    fn datagrams_of_no_bytes_are_refused() {
        let of = |gso_size| Header { gso_type: GSO_UDP_L4, gso_size, ..Header::default() }.gso();
        assert_eq!(of(0), Err(Error::BadHeader));
        assert_eq!(of(1), Ok(Some(Gso::UdpL4(1))));
    }

    /// What counts from the frame's beginning moves, but for what is not there; and no further than it can.
    #[test]
    fn places_move_with_the_payload() {
        let all = Header {
            flags: 1,
            gso_type: 4,
            hdr_len: 54,
            gso_size: 1000,
            csum_start: 34,
            csum_offset: 16,
            num_buffers: 2,
        };
        assert_eq!(all.shifted(4), Header { hdr_len: 58, csum_start: 38, ..all });
        assert_eq!(all.shifted(-4), Header { hdr_len: 50, csum_start: 30, ..all });
        assert_eq!(all.shifted(-40), Header { hdr_len: 14, csum_start: 0, ..all });
        let none = Header { hdr_len: 0, csum_start: 0, ..all };
        assert_eq!(none.shifted(4), none);
        let last = Header { hdr_len: u16::MAX, csum_start: u16::MAX - 3, ..all };
        assert_eq!(last.shifted(4), Header { csum_start: u16::MAX, ..last });
    }

    /// Of all headers that are fit for anybody, and those that ask for something.
    #[test]
    fn plain_is_what_asks_for_nothing() {
        for (flags, gso_type, expected) in [
            (0, 0, true),
            (2, 0, true),
            (0, 0x80, true),
            (2, 0x80, true),
            (1, 0, false),
            (3, 0, false),
            (4, 0, false),
            (0, 1, false),
            (2, 0x81, false),
            (1, 1, false),
        ] {
            let header = Header { flags, gso_type, ..Header::default() };
            assert_eq!(header.is_plain(), expected, "{flags} {gso_type}");
        }
    }
}
