//! Listening beside the stack: frames are read where the kernel has put them.
//!
//! ```text
//!   kernel --filter--> | block | block | ... |  <-- read in place, a block given back when all was seen
//! ```
//!
//! It takes nothing away from the stack, and nothing is copied but what the kernel copies for every packet
//! socket. A frame is as the kernel has it: what is still to be done to it on its way (checksums, segments) is
//! not done here, which is what listening programs expect. Only a VLAN tag is put back.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{SOL_PACKET, c_int};
use ringway_kring::Kring;
use ringway_region::Buf;

use crate::block::{BlockCursor, ROOM_FOR_TAG, Words};
use crate::blocks::Blocks;
use crate::{Geometry, socket, sys};

/// Frames ahead whose header is asked of memory, if they are as long as this one.
const AHEAD: u64 = 4;

/// What to listen to, and how.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// Of the calling thread's network namespace.
    pub ifindex: u32,
    pub geometry: Geometry,
    /// Milliseconds that the kernel keeps a block that is not full; 1 at the least.
    pub patience_ms: u32,
    /// Frames that the interface sends are wanted too.
    pub outgoing: bool,
    /// Frames for other stations are wanted too.
    pub promiscuous: bool,
}

/// A socket that listens, and the place up to which its frames were read.
#[derive(Debug)]
pub struct Listener {
    blocks: Blocks,
    place: BlockCursor,
    /// Blocks given back since the beginning.
    returned: u64,
    /// Whether the last of them was full.
    crowded: bool,
}

/// A frame that passed the interface.
pub struct Heard<'a> {
    /// What was captured of it.
    pub data: Buf<'a>,
    /// Bytes that it has, its tag among them.
    pub length: u32,
    /// Whether it had a VLAN tag that the kernel keeps beside it: the socket's filter has not seen it.
    pub tagged: bool,
    status: u32,
    words: Words<'a>,
}

impl Heard<'_> {
    /// When it passed, as a time of day: seconds, and nanoseconds.
    #[inline]
    pub fn time(&self) -> [u32; 2] {
        self.words.time()
    }

    /// Whether the TCP or UDP checksum is left to the hardware.
    #[inline]
    pub fn is_without_checksum(&self) -> bool {
        self.status & libc::TP_STATUS_CSUMNOTREADY != 0
    }

    /// Whether the TCP or UDP checksum was verified.
    #[inline]
    pub fn has_good_checksum(&self) -> bool {
        self.status & libc::TP_STATUS_CSUM_VALID != 0
    }

    /// Whether the interface has sent it.
    #[inline]
    pub fn is_outgoing(&self) -> bool {
        self.words.is_outgoing()
    }
}

impl Listen {
    /// Begins to listen: the socket is readable while there are frames. Needs CAP_NET_RAW.
    ///
    /// Errors: EPERM; ENODEV for the interface, EAFNOSUPPORT for one without Ethernet headers; ENOMEM for too large
    /// a ring.
    pub fn begin(&self) -> io::Result<(OwnedFd, Listener)> {
        self.begin_with(|_| Ok(()))
    }

    /// The same; `prepare` may do more to the socket before it hears anything.
    pub fn begin_with(
        &self,
        prepare: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<(OwnedFd, Listener)> {
        let owned = socket::new()?;
        let fd = owned.as_fd();
        let number = |option, value: c_int| socket::set_option(fd, SOL_PACKET, option, &value);
        number(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as c_int)?;
        number(libc::PACKET_RESERVE, ROOM_FOR_TAG as c_int)?;
        if !self.outgoing {
            number(libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        socket::set_option(
            fd,
            SOL_PACKET,
            libc::PACKET_RX_RING,
            &self.geometry.ring(self.patience_ms),
        )?;
        if self.promiscuous {
            socket::join_promiscuous(fd, self.ifindex)?;
        }
        let blocks = Blocks::map(fd, self.geometry)?;
        prepare(fd)?;
        socket::bind(fd, self.ifindex, (libc::ETH_P_ALL as u16).to_be())?;
        match sys::bound_to(fd)?.sll_hatype {
            libc::ARPHRD_ETHER => {}
            // What it sends comes back, and is heard then.
            libc::ARPHRD_LOOPBACK => number(libc::PACKET_IGNORE_OUTGOING, 1)?,
            _ => return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
        }
        let place = blocks.place(0);
        Ok((owned, Listener { blocks, place, returned: 0, crowded: false }))
    }
}

impl Listener {
    /// Shows the frames of a block to `see`, from the next one on, until that breaks off, and gives the block back
    /// if it does not; `None` if the kernel has not filled the block yet.
    ///
    /// The last frame that was seen stays where it is until this is called again, or
    /// [`give_back`](Self::give_back).
    #[inline]
    pub fn walk(
        &mut self,
        mut see: impl FnMut(Heard<'_>) -> ControlFlow<()>,
    ) -> Option<ControlFlow<()>> {
        let Listener { blocks, place, .. } = self;
        if !blocks.enter(place, &mut false) {
            return None;
        }
        let (block, mut at) = (blocks.block(*place), *place);
        while let Some(header) = block.header(at)
            && let Some(data) = block.data(&header)
        {
            block.prefetch(at, AHEAD * u64::from(header.stride));
            at = blocks.behind(at, header.next);
            let whole = if header.is_tagged() { block.put_tag(header) } else { None };
            let tag = if whole.is_some() { ROOM_FOR_TAG } else { 0 };
            let heard = Heard {
                data: whole.unwrap_or(data),
                length: header.length.saturating_add(tag),
                tagged: whole.is_some(),
                status: header.status(),
                words: header.words(),
            };
            if see(heard).is_break() {
                *place = at;
                return Some(ControlFlow::Break(()));
            }
        }
        self.leave();
        Some(ControlFlow::Continue(()))
    }

    /// Gives the kernel its block back if that has no more frames.
    #[inline]
    pub fn give_back(&mut self) {
        let is_begun = self.place.offset != 0;
        if is_begun && self.blocks.block(self.place).header(self.place).is_none() {
            self.leave();
        }
    }

    /// Gives the block of `place` back, and goes on to the next.
    fn leave(&mut self) {
        self.crowded = self.blocks.is_full(self.place);
        self.blocks.give_back(self.place);
        self.place = self.blocks.next_block(self.place);
        self.returned += 1;
    }

    /// Whether the last block that was given back had become full before its time was over, which is said once of it.
    pub fn take_crowded(&mut self) -> bool {
        std::mem::take(&mut self.crowded)
    }

    /// Blocks given back since the beginning.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// Blocks that the kernel has filled by now, counted from the beginning.
    pub fn filled(&self) -> u64 {
        let mut filled = self.returned;
        let mut place = self.place;
        for _ in 0..self.blocks.count() {
            if !self.blocks.is_filled(place) {
                break;
            }
            place = self.blocks.next_block(place);
            filled += 1;
        }
        filled
    }
}

/// Frames that the kernel dropped at a listener's socket since the last call: reading clears the number.
pub fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    sys::socket::take_drops(socket)
}

/// Counts in a ring (`ring_full`) what the kernel has dropped up to now at the socket of that ring. Any process that
/// has both may do so at any time: the kernel gives each number out once, so a frame is counted once, by the process
/// that asks first. What a process has taken that is killed before it has counted it is lost.
pub fn count_drops(socket: BorrowedFd<'_>, kring: &Kring) {
    // It fails for a broken descriptor alone, by which nothing is received either.
    let drops = take_drops(socket).unwrap_or(0);
    kring.note_shared(|c| &c.ring_full, drops.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::written::{Laid, lay, ring};

    #[test]
    fn a_frame_says_what_is_with_its_checksum() {
        let blocks = ring(Geometry { block_size: 4096, blocks: 2 });
        let (missing, good) = (libc::TP_STATUS_CSUMNOTREADY, libc::TP_STATUS_CSUM_VALID);
        let cases = [
            (0, [false; 2]),
            (missing, [true, false]),
            (good, [false, true]),
            (missing | good, [true; 2]),
        ];
        let frames =
            cases.map(|(status, _)| Laid { status: status | 1, ..Laid::plain(vec![7; 60]) });
        lay(&blocks, 0, &frames);
        let place = blocks.place(0);
        let mut listener = Listener { blocks, place, returned: 0, crowded: false };
        let mut found = Vec::new();
        let flow = listener.walk(|heard| {
            found.push([heard.is_without_checksum(), heard.has_good_checksum()]);
            ControlFlow::Continue(())
        });
        assert_eq!((flow, listener.returned()), (Some(ControlFlow::Continue(())), 1));
        assert_eq!(found, cases.map(|(_, expected)| expected));
    }
}
