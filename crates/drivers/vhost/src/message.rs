//! The messages of vhost-user, as they stand on the socket
//! (<https://www.qemu.org/docs/master/interop/vhost-user.html>).
//!
//! A message is a header of three numbers (request, flags, bytes that follow), a payload, and descriptors
//! that come with its first byte. All numbers are in the machine's byte order.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendFlags, recv, recvmsg, sendmsg,
    },
};

/// What a front end may ask for, by the number that stands in a header.
macro_rules! requests {
    ($($name:ident = $number:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Request { $($name),* }

        impl Request {
            const fn of(number: u32) -> Option<Request> {
                match number {
                    $($number => Some(Request::$name),)*
                    _ => None,
                }
            }

            #[cfg(feature = "guest")]
            pub const fn number(self) -> u32 {
                match self { $(Request::$name => $number),* }
            }
        }
    };
}

requests! {
    GetFeatures = 1,
    SetFeatures = 2,
    SetOwner = 3,
    ResetOwner = 4,
    SetMemTable = 5,
    SetLogBase = 6,
    SetLogFd = 7,
    SetVringNum = 8,
    SetVringAddr = 9,
    SetVringBase = 10,
    GetVringBase = 11,
    SetVringKick = 12,
    SetVringCall = 13,
    SetVringErr = 14,
    GetProtocolFeatures = 15,
    SetProtocolFeatures = 16,
    GetQueueNum = 17,
    SetVringEnable = 18,
    SendRarp = 19,
    NetSetMtu = 20,
    ResetDevice = 34,
    GetMaxMemSlots = 36,
    AddMemReg = 37,
    RemMemReg = 38,
}

const HEADER: usize = 12;
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 4;
const NEED_REPLY: u32 = 8;

/// Bytes behind a header, at most.
const MAX_PAYLOAD: usize = 4096;
/// Descriptors with a message, at most: one for each region of a table.
pub(crate) const MAX_FILES: usize = 8;

/// A message, as it came.
#[derive(Debug)]
pub(crate) struct Message {
    /// `None`: unknown here.
    pub request: Option<Request>,
    pub number: u32,
    /// The front end waits to hear what has become of it.
    pub needs_reply: bool,
    pub payload: Payload,
    pub files: Vec<OwnedFd>,
}

/// The bytes behind a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payload(pub Vec<u8>);

impl Payload {
    /// A payload of numbers of 64 bits, and no more.
    pub fn words<const N: usize>(&self) -> Result<[u64; N], String> {
        if self.0.len() != 8 * N {
            return Err(self.is_odd(8 * N));
        }
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(self.0.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        Ok(words)
    }

    /// Two numbers of 32 bits, and no more: of a queue, and of something for it.
    pub fn pair(&self) -> Result<[u32; 2], String> {
        let [a, b, c, d, e, f, g, h] = *self.0.as_slice() else { return Err(self.is_odd(8)) };
        Ok([[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes))
    }

    fn is_odd(&self, wanted: usize) -> String {
        format!("{} bytes came with it, and {wanted} belong to it", self.0.len())
    }
}

/// For how long a message may be incomplete.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a message, or a part of one, has come and was not read.
#[cold]
pub fn is_there(socket: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(socket, &mut [0; 1][..], flags).is_ok_and(|(_, length)| length > 0)
}

/// Reads a message: waits for its beginning, then until [`PATIENCE`] is over for the whole, where the socket's timeout is no
/// longer than that.
/// `None`: the front end has closed the connection.
pub(crate) fn read(socket: &UnixStream) -> io::Result<Option<Message>> {
    let mut header = [0; HEADER];
    let (mut files, mut begun) = (Vec::new(), None);
    if !fill(socket, &mut header, &mut files, &mut begun)? {
        return Ok(None);
    }
    let word =
        |i: usize| u32::from_ne_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
    let (number, flags, len) = (word(0), word(4), word(8) as usize);
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
    if flags & VERSION_MASK != VERSION || flags & REPLY != 0 {
        return Err(invalid("it is none of vhost-user's messages"));
    }
    if len > MAX_PAYLOAD {
        return Err(invalid("it is longer than any message is"));
    }
    let mut payload = vec![0; len];
    if len > 0 && !fill(socket, &mut payload, &mut files, &mut begun)? {
        return Err(invalid("it has no end"));
    }
    let needs_reply = flags & NEED_REPLY != 0;
    let request = Request::of(number);
    Ok(Some(Message { request, number, needs_reply, payload: Payload(payload), files }))
}

/// Reads as much as there is room for; false if there is nothing at all any more. The message has `begun` with its first byte.
fn fill(
    socket: &UnixStream,
    to: &mut [u8],
    files: &mut Vec<OwnedFd>,
    begun: &mut Option<Instant>,
) -> io::Result<bool> {
    let mut filled = 0;
    while filled < to.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut part = [IoSliceMut::new(&mut to[filled..])];
        let received = recvmsg(socket, &mut part, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                files.extend(descriptors);
            }
        }
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        match received {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(invalid("it has no end")),
            Err(error) => return Err(error.into()),
            Ok(received) if received.flags.contains(ReturnFlags::CTRUNC) => {
                return Err(invalid("it has more descriptors than any message has"));
            }
            Ok(received) if received.bytes == 0 => {
                return if filled == 0 { Ok(false) } else { Err(invalid("it has no end")) };
            }
            Ok(received) => filled += received.bytes,
        }
        let is_late = begun.get_or_insert_with(Instant::now).elapsed() > PATIENCE;
        if is_late && filled < to.len() {
            return Err(invalid("it has no end"));
        }
        if files.len() > MAX_FILES {
            return Err(invalid("it has more descriptors than any message has"));
        }
    }
    Ok(true)
}

/// Answers a message.
pub(crate) fn reply(socket: &UnixStream, number: u32, payload: &[u8]) -> io::Result<()> {
    write(socket, number, VERSION | REPLY, payload, &[])
}

/// Sends a message as a front end does.
#[cfg(feature = "guest")]
pub(crate) fn request(
    socket: &UnixStream,
    request: Request,
    needs_reply: bool,
    payload: &[u8],
    files: &[std::os::fd::BorrowedFd<'_>],
) -> io::Result<()> {
    let flags = VERSION | if needs_reply { NEED_REPLY } else { 0 };
    write(socket, request.number(), flags, payload, files)
}

fn write(
    socket: &UnixStream,
    number: u32,
    flags: u32,
    payload: &[u8],
    files: &[std::os::fd::BorrowedFd<'_>],
) -> io::Result<()> {
    let header = [number, flags, payload.len() as u32].map(u32::to_ne_bytes).concat();
    let mut bytes = [header.as_slice(), payload].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(rustix::net::SendAncillaryMessage::ScmRights(files));
    }
    while !bytes.is_empty() {
        let part = [IoSlice::new(&bytes)];
        match sendmsg(socket.as_fd(), &part, &mut ancillary, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(sent) => bytes.drain(..sent),
        };
        ancillary.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::fd::AsFd, time::Duration};

    use super::*;

    fn sockets() -> [UnixStream; 2] {
        let (a, b) = UnixStream::pair().unwrap();
        b.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        [a, b]
    }

    #[test]
    fn what_is_sent_is_read() {
        let [front, back] = sockets();
        let files = [back.as_fd(); 2];
        let payload = [7u64, 9].map(u64::to_ne_bytes).concat();
        request(&front, Request::SetLogBase, true, &payload, &files).unwrap();
        request(&front, Request::GetFeatures, false, &[], &[]).unwrap();
        let message = read(&back).unwrap().unwrap();
        assert_eq!(message.request, Some(Request::SetLogBase));
        assert!(message.needs_reply && message.files.len() == 2);
        assert_eq!(message.payload.words(), Ok([7, 9]));
        assert!(message.payload.words::<1>().is_err() && message.payload.pair().is_err());
        let message = read(&back).unwrap().unwrap();
        assert_eq!(message.request, Some(Request::GetFeatures));
        assert!(!message.needs_reply && message.files.is_empty());
        drop(front);
        assert!(read(&back).unwrap().is_none());
    }

    /// A message that comes byte by byte has an end in time, however soon its bytes follow each other.
    #[test]
    fn a_message_that_drips() {
        let [mut front, back] = sockets();
        back.set_read_timeout(Some(PATIENCE)).unwrap();
        let writer = std::thread::spawn(move || {
            for byte in [1u32, 1, 4096].map(u32::to_ne_bytes).concat().into_iter().chain([0; 4096])
            {
                if front.write_all(&[byte]).is_err() {
                    return true;
                }
                std::thread::park_timeout(Duration::from_millis(100));
            }
            false
        });
        let error = read(&back).unwrap_err().to_string();
        assert!(error.contains("has no end"), "{error}");
        drop(back);
        assert!(writer.join().unwrap(), "it was still being written");
    }

    /// Each is the end of the connection, and none of them of the process.
    #[test]
    fn what_is_no_message_is_refused() {
        let header = |words: [u32; 3]| words.map(u32::to_ne_bytes).concat();
        for (bytes, problem) in [
            (header([1, 0, 0]), "none of vhost-user's"),
            (header([1, 2, 0]), "none of vhost-user's"),
            (header([1, 5, 0]), "none of vhost-user's"),
            (header([1, 1, 4097]), "longer than any"),
            (header([1, 1, u32::MAX]), "longer than any"),
            (header([1, 1, 8]), "has no end"),
            (header([1, 1, 0])[..7].to_vec(), "has no end"),
        ] {
            let [mut front, back] = sockets();
            front.write_all(&bytes).unwrap();
            let error = read(&back).unwrap_err().to_string();
            assert!(error.contains(problem), "{bytes:?}: {error}");
        }
        let [front, back] = sockets();
        request(&front, Request::SetMemTable, false, &[], &[back.as_fd(); MAX_FILES]).unwrap();
        assert_eq!(read(&back).unwrap().unwrap().files.len(), MAX_FILES);
    }
}
