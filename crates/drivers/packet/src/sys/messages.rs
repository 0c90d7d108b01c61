//! Frames as messages: many by one system call, each at once when it has come.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Messages of one system call at most.
pub const MESSAGES: usize = 32;

/// Bytes of each at most: the longest frame that the kernel makes, and what is in front of it.
const ROOM: usize = 66 << 10;

/// Bytes that are free in front of each: for a longer header, and a tag.
pub const HEADROOM: usize = 6;

/// Room for control messages with `tpacket_auxdata` and `timespec`, aligned as the kernel wants it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 96]);

/// What stands beside a frame.
#[derive(Clone, Copy, Default)]
struct Beside {
    tag: Option<[u8; 4]>,
    time: u64,
}

/// What was received, until the next call.
pub struct Messages {
    memory: Vec<u8>,
    /// Of each message: its bytes, and what is beside it.
    received: Vec<(usize, Beside)>,
}

/// One of them.
pub struct Message<'a> {
    /// The free bytes, and then the message.
    pub bytes: &'a mut [u8],
    /// The VLAN tag that was taken out of the frame.
    pub tag: Option<[u8; 4]>,
    /// When it came, in nanoseconds, if that is [asked for](time_messages); else 0.
    pub time: u64,
    /// Whether that is all of it.
    pub whole: bool,
}

impl Messages {
    pub fn new() -> Messages {
        // Untouched until so much comes at once.
        Messages { memory: vec![0; MESSAGES * ROOM], received: Vec::with_capacity(MESSAGES) }
    }

    /// Receives what is there, in the place of what was received before; how many. `refused`: counts frames that the
    /// kernel had no virtio-net header for, and has thrown away; what is behind them may be there yet.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, refused: &mut u32) -> usize {
        for _ in 0..MESSAGES {
            match self.receive_once(socket) {
                // Of a segmentation that virtio-net does not know, such as SCTP's.
                Err(Errno::INVAL) => *refused += 1,
                // As when the interface has gone down: told once.
                Err(error) if error != Errno::AGAIN && error != Errno::INTR => {}
                _ => break,
            }
        }
        self.received.len()
    }

    fn receive_once(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        self.received.clear();
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; MESSAGES];
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; MESSAGES];
        let mut controls = [Control([0; 96]); MESSAGES];
        let rooms = self.memory.chunks_exact_mut(ROOM);
        let places = messages.iter_mut().zip(&mut vectors).zip(&mut controls);
        for (((message, vector), control), room) in places.zip(rooms) {
            let room = &mut room[HEADROOM..];
            let (iov_base, iov_len) = (room.as_mut_ptr().cast(), room.len());
            vector.write(libc::iovec { iov_base, iov_len });
            // SAFETY: all zeros are a message without address and data.
            let header = unsafe { &mut message.assume_init_mut().msg_hdr };
            (header.msg_iov, header.msg_iovlen) = (vector.as_mut_ptr(), 1);
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = control.0.len() as _;
        }
        let (fd, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_TRUNC);
        // SAFETY: the loop above fills in all messages. The memory that they point to is as long as they
        // say, and lives until the call has returned; nothing else writes to it meanwhile.
        let count = unsafe {
            let all = messages.as_mut_ptr().cast();
            libc::recvmmsg(fd, all, MESSAGES as libc::c_uint, flags, std::ptr::null_mut())
        };
        let count = usize::try_from(count).map_err(|_| {
            Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::AGAIN)
        })?;
        for message in messages.iter().take(count) {
            // SAFETY: zeros, and what was filled in.
            let message = unsafe { message.assume_init_ref() };
            self.received.push((message.msg_len as usize, beside(&message.msg_hdr)));
        }
        Ok(())
    }

    /// How many were received.
    pub fn count(&self) -> usize {
        self.received.len()
    }

    /// Those that were received, from number `first` on.
    #[inline]
    pub fn from(&mut self, first: usize) -> impl Iterator<Item = Message<'_>> {
        let rooms = self.memory.chunks_exact_mut(ROOM).zip(&self.received).skip(first);
        rooms.map(|(room, &(length, Beside { tag, time }))| {
            let (bytes, _) = room.split_at_mut((HEADROOM + length).min(ROOM));
            Message { bytes, tag, time, whole: HEADROOM + length <= ROOM }
        })
    }
}

/// Has the kernel tell when frames came.
pub fn time_messages(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let on: libc::c_int = on.into();
    super::socket::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
}

/// What the kernel tells beside a frame.
fn beside(header: &libc::msghdr) -> Beside {
    let mut found = Beside::default();
    // SAFETY: the kernel has filled in the header's control messages, in memory that is there yet.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: as above; it is one of them, or null behind the last.
    while let Some(control) = unsafe { at.as_ref() } {
        // SAFETY: the data of one of them, of the type that it says, made of numbers.
        unsafe {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    found.tag = tag(&data.cast::<libc::tpacket_auxdata>().read_unaligned());
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    found.time = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                }
                _ => {}
            }
        }
        // SAFETY: as for the first.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    found
}

fn tag(beside: &libc::tpacket_auxdata) -> Option<[u8; 4]> {
    if beside.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let named = beside.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if named { beside.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), beside.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use std::{
        net::UdpSocket,
        os::fd::AsFd,
        time::{SystemTime, UNIX_EPOCH},
    };

    use ringway_testkit::datagram_sockets;
    use rustix::net::{AddressFamily, SendFlags, SocketType, send, socket};

    use super::*;

    #[test]
    fn messages_are_whole_if_they_fit() {
        let (own, peer) = datagram_sockets();
        let mut messages = Messages::new();
        assert_eq!((messages.receive(own.as_fd(), &mut 0), messages.count()), (0, 0));
        const MOST: usize = ROOM - HEADROOM;
        for length in [1, 60, 1514, MOST - 1, MOST, MOST + 1, MOST + 7] {
            let bytes: Vec<_> = (0..length).map(|i| i as u8).collect();
            assert_eq!(send(&peer, &bytes, SendFlags::empty()), Ok(length));
            assert_eq!((messages.receive(own.as_fd(), &mut 0), messages.count()), (1, 1));
            let message = messages.from(0).next().unwrap();
            assert_eq!((message.whole, message.tag, message.time), (length <= MOST, None, 0));
            assert!(message.bytes[HEADROOM..] == bytes[..length.min(MOST)], "{length}");
            assert_eq!(messages.from(1).count(), 0);
        }
        let few: Vec<_> = (3u8..9).collect();
        few.iter().for_each(|n| assert_eq!(send(&peer, &[*n; 20], SendFlags::empty()), Ok(20)));
        assert_eq!(messages.receive(own.as_fd(), &mut 0), few.len());
        let rest = messages.from(2).map(|message| message.bytes[HEADROOM]).collect::<Vec<_>>();
        assert_eq!(rest, few[2..]);
    }

    /// Each is counted, and there is an end: a stream that is not connected says that of itself, for ever.
    #[test]
    fn what_the_kernel_refuses_is_counted() {
        let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let (mut messages, mut refused) = (Messages::new(), 3);
        assert_eq!(messages.receive(socket.as_fd(), &mut refused), 0);
        assert_eq!(refused, 3 + MESSAGES as u32);
    }

    /// An error of the socket is told once, and what has come is behind it.
    #[test]
    fn what_has_come_is_read_behind_an_error() {
        let [own, peer] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (at, to) = (own.local_addr().unwrap(), peer.local_addr().unwrap());
        own.connect(to).unwrap();
        drop(peer);
        own.send(b"nobody is there").unwrap();
        let peer = UdpSocket::bind(to).unwrap();
        peer.send_to(b"some", at).unwrap();
        let (mut messages, mut refused) = (Messages::new(), 0);
        assert_eq!((messages.receive(own.as_fd(), &mut refused), refused), (1, 0));
    }

    #[test]
    fn messages_have_their_times_if_that_is_asked_for() {
        let (own, peer) = datagram_sockets();
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let mut messages = Messages::new();
        for on in [false, true, false] {
            time_messages(own.as_fd(), on).unwrap();
            let before = now();
            send(&peer, &[7; 60], SendFlags::empty()).unwrap();
            let after = now();
            assert_eq!(messages.receive(own.as_fd(), &mut 0), 1);
            let time = messages.from(0).next().unwrap().time;
            let expected = if on { before..=after } else { 0..=0 };
            assert!(expected.contains(&time), "{time} {expected:?}");
        }
    }

    #[test]
    fn a_tag_is_there_if_the_kernel_says_so() {
        let (valid, named) = (libc::TP_STATUS_VLAN_VALID, libc::TP_STATUS_VLAN_TPID_VALID);
        for (tp_status, expected) in [
            (0, None),
            (named | 1, None),
            (valid, Some([0x81, 0x00, 0x60, 0x07])),
            (valid | 1, Some([0x81, 0x00, 0x60, 0x07])),
            (valid | named, Some([0x88, 0xa8, 0x60, 0x07])),
            (valid | named | 1, Some([0x88, 0xa8, 0x60, 0x07])),
        ] {
            let beside = libc::tpacket_auxdata {
                tp_status,
                tp_len: 60,
                tp_snaplen: 60,
                tp_mac: 0,
                tp_net: 14,
                tp_vlan_tci: 0x6007,
                tp_vlan_tpid: 0x88a8,
            };
            assert_eq!(tag(&beside), expected, "{tp_status:x}");
        }
    }
}
