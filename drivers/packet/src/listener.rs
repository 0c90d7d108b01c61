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
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{SOL_PACKET, c_int};
use ringway_region::Buf;

use crate::blocks::{BlockCursor, Blocks, ROOM_FOR_TAG};
use crate::{Geometry, socket, sys};

/// Frames ahead of the next one whose header is asked of memory, if they are as long as this one.
const AHEAD: u32 = 3;

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
}

/// A frame that passed the interface.
pub struct Heard<'a> {
    /// What was captured of it.
    pub data: Buf<'a>,
    /// Bytes that it has, its tag among them.
    pub length: u32,
    /// When it passed, in nanoseconds of the time of day.
    pub time: u64,
    /// Whether the interface has sent it.
    pub outgoing: bool,
    /// Whether it had a VLAN tag that the kernel keeps beside it: the socket's filter has not seen it.
    pub tagged: bool,
    /// Blocks that were given back before.
    pub returned: u64,
}

impl Listen {
    /// Begins to listen: the socket is readable while there are frames. Needs CAP_NET_RAW.
    ///
    /// Errors: EPERM; ENODEV for the interface, EAFNOSUPPORT for one without Ethernet headers; ENOMEM for too large
    /// a ring.
    pub fn begin(&self) -> io::Result<(OwnedFd, Listener)> {
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
        socket::bind(fd, self.ifindex, (libc::ETH_P_ALL as u16).to_be())?;
        match sys::bound_to(fd)?.sll_hatype {
            libc::ARPHRD_ETHER => {}
            // What it sends comes back, and is heard then.
            libc::ARPHRD_LOOPBACK => number(libc::PACKET_IGNORE_OUTGOING, 1)?,
            _ => return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
        }
        let place = blocks.place(0);
        Ok((owned, Listener { blocks, place, returned: 0 }))
    }
}

impl Listener {
    /// The next frame, if there is one. It stays where it is until this is called again, or
    /// [`give_back`](Self::give_back).
    #[inline]
    pub fn next_frame(&mut self) -> Option<Heard<'_>> {
        let (at, header, data) = loop {
            if !self.blocks.enter(&mut self.place, &mut false) {
                return None;
            }
            let at = self.place;
            let header = self.blocks.header(at);
            match header.and_then(|header| Some((at, header, self.blocks.data(at, &header)?))) {
                Some(frame) => break frame,
                None => leave(&self.blocks, &mut self.place, &mut self.returned),
            }
        };
        self.place = self.blocks.behind(at, header.next);
        self.blocks.prefetch(self.place, AHEAD * header.next.saturating_sub(at.offset()));
        let tagged = header.tag.and_then(|_| self.blocks.put_tag(at, &header));
        let tag = if tagged.is_some() { ROOM_FOR_TAG } else { 0 };
        Some(Heard {
            data: tagged.unwrap_or(data),
            length: header.length.saturating_add(tag),
            time: header.time,
            outgoing: self.blocks.is_outgoing(at),
            tagged: tagged.is_some(),
            returned: self.returned,
        })
    }

    /// Gives the kernel its block back if that has no more frames.
    #[inline]
    pub fn give_back(&mut self) {
        let is_begun = self.place.offset() != 0;
        if is_begun && self.blocks.header(self.place).is_none() {
            leave(&self.blocks, &mut self.place, &mut self.returned);
        }
    }

    /// Blocks given back since the beginning.
    pub fn returned(&self) -> u64 {
        self.returned
    }
}

/// Gives the block of `place` back, and goes on to the next.
fn leave(blocks: &Blocks, place: &mut BlockCursor, returned: &mut u64) {
    blocks.give_back(*place);
    *place = blocks.next_block(*place);
    *returned += 1;
}

/// Frames that the kernel dropped at a listener's socket since the last call: reading clears the number.
pub fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    sys::take_drops(socket)
}
