//! Frames as messages: many by one system call, each at once when it has come.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Messages of one system call at most.
pub const MESSAGES: usize = 32;

/// Bytes of each at most: the longest frame that the kernel makes, and what is in front of it.
const ROOM: usize = 66 << 10;

/// A control message with `tpacket_auxdata`, aligned as the kernel wants it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// What was received, until the next call.
pub struct Messages {
    memory: Vec<u8>,
    /// Of each message: its bytes, and the VLAN tag that was taken out of the frame.
    received: Vec<(usize, Option<[u8; 4]>)>,
}

/// One of them.
pub struct Message<'a> {
    pub bytes: &'a mut [u8],
    pub tag: Option<[u8; 4]>,
    /// Whether that is all of it.
    pub whole: bool,
}

impl Messages {
    pub fn new() -> Messages {
        // Untouched until so much comes at once.
        Messages { memory: vec![0; MESSAGES * ROOM], received: Vec::with_capacity(MESSAGES) }
    }

    /// Receives what is there, in the place of what was received before; how many.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> usize {
        self.received.clear();
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; MESSAGES];
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; MESSAGES];
        let mut controls = [Control([0; 64]); MESSAGES];
        let rooms = self.memory.chunks_exact_mut(ROOM);
        let places = messages.iter_mut().zip(&mut vectors).zip(&mut controls);
        for (((message, vector), control), room) in places.zip(rooms) {
            vector.write(libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: ROOM });
            // SAFETY: all zeros are a message without address and data.
            let header = unsafe { &mut message.assume_init_mut().msg_hdr };
            (header.msg_iov, header.msg_iovlen) = (vector.as_mut_ptr(), 1);
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = control.0.len() as _;
        }
        let (fd, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_TRUNC);
        // SAFETY: the messages are filled in above, and what they name is alive during the call, as long as
        // they say, and written by nobody else.
        let count = unsafe {
            let all = messages.as_mut_ptr().cast();
            libc::recvmmsg(fd, all, MESSAGES as libc::c_uint, flags, std::ptr::null_mut())
        };
        for message in messages.iter().take(usize::try_from(count).unwrap_or(0)) {
            // SAFETY: zeros, and what was filled in.
            let message = unsafe { message.assume_init_ref() };
            self.received.push((message.msg_len as usize, tag(&message.msg_hdr)));
        }
        self.received.len()
    }

    /// How many were received.
    pub fn count(&self) -> usize {
        self.received.len()
    }

    /// Those that were received, from number `first` on.
    #[inline]
    pub fn from(&mut self, first: usize) -> impl Iterator<Item = Message<'_>> {
        let rooms = self.memory.chunks_exact_mut(ROOM).zip(&self.received).skip(first);
        rooms.map(|(room, &(length, tag))| {
            let (bytes, _) = room.split_at_mut(length.min(ROOM));
            Message { bytes, tag, whole: length <= ROOM }
        })
    }
}

/// The tag that the kernel tells of beside a frame.
fn tag(header: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: the kernel has filled in the header's control messages, in memory that is there yet.
    let control = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (control.cmsg_level, control.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    // SAFETY: this is what such a message holds, made of numbers; the kernel aligns it to 8 bytes.
    let beside =
        unsafe { libc::CMSG_DATA(control).cast::<libc::tpacket_auxdata>().read_unaligned() };
    if beside.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let named = beside.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if named { beside.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), beside.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}
