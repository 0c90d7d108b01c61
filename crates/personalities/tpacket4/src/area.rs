//! Memory that a program has registered: frames of one size, by number.

use std::{ops::Range, sync::Arc};

use ringway_region::{Buf, Mapping};

use crate::{
    abi::{DATA_HEADROOM_ALIGN, KERNEL_HEADROOM, MIN_FRAME_SIZE, PAGE, tpacket_memreg_req},
    desc::Desc,
    sys,
};

/// How many packets ahead of the copied one are prefetched: another CPU wrote them.
pub const AHEAD: u32 = 8;

/// Registered memory. It is the program's, and stays as long as sockets have rings on it: they stop where the program
/// unmaps it before.
#[derive(Clone, Debug)]
pub struct Area {
    address: u64,
    frames: u64,
    /// A frame has two to the power of this bytes.
    shift: u32,
    /// Where received data begin in a frame.
    data_offset: u32,
    /// Where it is memory of another process, which has been mapped for this.
    mapping: Option<Arc<Mapping>>,
}

impl Area {
    /// Registers memory, by the rules of PACKET_MEMREG.
    pub fn register(request: &tpacket_memreg_req) -> Result<Area, i32> {
        let area = Area::new(request)?;
        // As pinned: all of it is there, and can be written.
        sys::populate(area.address, request.len).map_err(|_| libc::ENOMEM)?;
        Ok(area)
    }

    /// Memory of another process that is `mapping` here: `request` has the address in this process.
    pub fn mapped(request: &tpacket_memreg_req, mapping: Mapping) -> Result<Area, i32> {
        Ok(Area { mapping: Some(Arc::new(mapping)), ..Area::new(request)? })
    }

    /// The frames of memory that is there.
    pub fn new(request: &tpacket_memreg_req) -> Result<Area, i32> {
        let tpacket_memreg_req { addr, len, frame_size, data_headroom } = *request;
        let sized = (MIN_FRAME_SIZE..=PAGE).contains(&frame_size) && frame_size.is_power_of_two();
        let placed = addr.is_multiple_of(PAGE.into()) && addr.checked_add(len).is_some();
        if !sized || !placed || len < frame_size.into() {
            return Err(libc::EINVAL);
        }
        let headroom = data_headroom.checked_next_multiple_of(DATA_HEADROOM_ALIGN);
        let data_offset = headroom.and_then(|bytes| bytes.checked_add(KERNEL_HEADROOM));
        let data_offset = data_offset.filter(|offset| *offset <= frame_size).ok_or(libc::EINVAL)?;
        let shift = frame_size.trailing_zeros();
        Ok(Area { address: addr, frames: len >> shift, shift, data_offset, mapping: None })
    }

    /// The same with `more` bytes in front of received data. `None` if nothing would be left for these.
    pub fn with_reserve(self, more: u32) -> Option<Area> {
        let data_offset =
            self.data_offset.checked_add(more).filter(|offset| *offset < self.frame_size())?;
        Some(Area { data_offset, ..self })
    }

    /// Whether these addresses of the program's overlap it. A mapping of our own does not count: it stays.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        let own = self.range();
        self.mapping.is_none() && own.start < range.end && range.start < own.end
    }

    /// Its addresses.
    pub fn range(&self) -> Range<u64> {
        self.address..self.address + (self.frames << self.shift)
    }

    #[inline]
    pub fn frame_size(&self) -> u32 {
        1 << self.shift
    }

    /// Bytes of a packet that a frame holds.
    #[inline]
    pub fn payload(&self) -> u32 {
        self.frame_size() - self.data_offset
    }

    /// Where received data begin in a frame.
    #[inline]
    pub fn data_offset(&self) -> u32 {
        self.data_offset
    }

    #[inline]
    pub fn has_frame(&self, idx: u64) -> bool {
        idx < self.frames
    }

    /// Where received data go in a frame.
    #[inline]
    pub fn free(&self, idx: u64) -> Option<Buf<'_>> {
        let at = self.data_offset;
        self.has_frame(idx).then(|| self.bytes(idx, at, self.frame_size() - at))
    }

    /// What a descriptor to transmit names. `None`: it is not valid.
    #[inline]
    pub fn filled(&self, desc: &Desc) -> Option<Buf<'_>> {
        let (at, len) = (u32::from(desc.offset), desc.len);
        let inside = len != 0 && at.checked_add(len).is_some_and(|end| end <= self.frame_size());
        (inside && self.has_frame(desc.idx)).then(|| self.bytes(desc.idx, at, len))
    }

    #[inline]
    fn bytes(&self, idx: u64, at: u32, len: u32) -> Buf<'_> {
        sys::bytes(self.address + (idx << self.shift) + u64::from(at), len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: tpacket_memreg_req =
        tpacket_memreg_req { addr: 0x10000, len: 8192, frame_size: 2048, data_headroom: 0 };

    #[test]
    fn requests_are_checked() {
        let area = Area::new(&GOOD).unwrap();
        assert_eq!((area.frames, area.payload(), area.data_offset()), (4, 2048 - 256, 256));
        let area = Area::new(&tpacket_memreg_req { data_headroom: 1, ..GOOD }).unwrap();
        assert_eq!(area.data_offset(), 320);
        let fits = tpacket_memreg_req { data_headroom: 2048 - 256, ..GOOD };
        assert_eq!(Area::new(&fits).unwrap().payload(), 0);
        for bad in [
            tpacket_memreg_req { frame_size: 1024, ..GOOD },
            tpacket_memreg_req { frame_size: 8192, ..GOOD },
            tpacket_memreg_req { frame_size: 3000, ..GOOD },
            tpacket_memreg_req { frame_size: 0, ..GOOD },
            tpacket_memreg_req { addr: 0x10800, ..GOOD },
            tpacket_memreg_req { addr: u64::MAX - 4095, ..GOOD },
            tpacket_memreg_req { len: u64::MAX, ..GOOD },
            tpacket_memreg_req { len: 2047, ..GOOD },
            tpacket_memreg_req { len: 0, ..GOOD },
            tpacket_memreg_req { data_headroom: 2048 - 255, ..GOOD },
            tpacket_memreg_req { data_headroom: u32::MAX, ..GOOD },
            tpacket_memreg_req { data_headroom: u32::MAX - 300, ..GOOD },
        ] {
            assert_eq!(Area::new(&bad).err(), Some(libc::EINVAL));
        }
    }

    #[test]
    fn what_is_unmapped_is_its_own_or_not() {
        let area = Area::new(&GOOD).unwrap();
        for (start, end, touches) in [
            (0, 0x10000, false),
            (0, 0x10001, true),
            (0x11000, 0x11001, true),
            (0x11fff, u64::MAX, true),
            (0x12000, u64::MAX, false),
            (0x11000, 0x11000, true),
        ] {
            assert_eq!(area.touches(&(start..end)), touches, "{start:#x}");
        }
    }

    #[test]
    fn a_reserve_leaves_something() {
        let area = Area::new(&GOOD).unwrap();
        let payload = |more| area.clone().with_reserve(more).map(|area| area.payload());
        assert_eq!(payload(100), Some(2048 - 356));
        assert_eq!(payload(2048 - 256), None);
        assert_eq!(payload(u32::MAX), None);
    }

    #[test]
    fn descriptors_are_checked() {
        let area = Area::new(&GOOD).unwrap();
        let desc = Desc { idx: 3, len: 2048, offset: 0, error: 0, flags: 0 };
        assert!(area.filled(&desc).is_some());
        for bad in [
            Desc { idx: 4, ..desc },
            Desc { idx: u64::MAX, ..desc },
            Desc { len: 0, ..desc },
            Desc { len: 2049, ..desc },
            Desc { len: u32::MAX, offset: u16::MAX, ..desc },
            Desc { offset: 1, ..desc },
            Desc { offset: 2048, len: 1, ..desc },
        ] {
            assert!(area.filled(&bad).is_none(), "{bad:?}");
        }
        assert!(area.free(3).is_some() && area.free(4).is_none());
    }
}
