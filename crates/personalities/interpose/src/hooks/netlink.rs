//! What a program asks netlink about an interface that a personality has (`RTM_GETLINK`).
//!
//! The socket stays the kernel's, and so do its waits, its flags and the order of its messages. The
//! kernel is asked about an interface that it knows, with the program's sequence number, and its
//! answer is changed when the program takes it out of the socket.
//!
//! ```text
//!   program: RTM_GETLINK, vale0:a, no. 7 --> kernel: RTM_GETLINK, lo, no. 7
//!                                                         |
//!   program: RTM_NEWLINK, vale0:a, no. 7 <-- its socket: RTM_NEWLINK, lo, no. 7
//! ```

use std::{
    ffi::{c_int, c_uint, c_void},
    os::fd::BorrowedFd,
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
};

use libc::{iovec, msghdr, sockaddr_nl, socklen_t, ssize_t};
use rustix::net::{
    AddressFamily, getsockname,
    netlink::SocketAddrNetlink,
    sockopt::{socket_domain, socket_protocol},
};

use super::interfaces::{FLAGS, MTU, TX_QUEUE, index_of, name_of};
use crate::{
    descriptors,
    personality::{Interface, InterfaceName},
    real_libc::{keep_errno, real},
    signals::{Lock, Locked},
    uaccess,
};

/// Bytes of a `nlmsghdr`, and of an `ifinfomsg` behind it.
const HEAD: usize = 16;
const LINK: usize = 16;
/// The longest request that is looked at. One about a name has fewer than 100 bytes.
const LONGEST: usize = 512;
/// Questions whose answers are in sockets still. Of one that a program never takes out nobody tells.
const MOST: usize = 64;
/// The index of the loopback interface in every namespace.
const LOOPBACK: u32 = 1;

/// Whether the program has made a socket of this kind at all: most never do.
static USED: AtomicBool = AtomicBool::new(false);
static QUESTIONS: Lock<Vec<Question>> = Lock::new(Vec::new());
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// A question that the kernel has got in other words.
pub struct Question {
    /// The socket's address, and the number of the message.
    port: u32,
    sequence: u32,
    index: c_uint,
    name: InterfaceName,
    interface: Interface,
}

/// The list, as it is: for `fork`.
pub type Questions = Locked<Vec<Question>>;

pub fn lock() -> Questions {
    QUESTIONS.lock()
}

/// The program has made a socket.
pub fn made(domain: c_int, protocol: c_int) {
    if domain == libc::AF_NETLINK && protocol == libc::NETLINK_ROUTE {
        USED.store(true, Relaxed);
    }
}

/// Whether to look at what is sent.
#[inline]
pub fn is_used() -> bool {
    USED.load(Relaxed)
}

/// Whether to look at what is received.
#[inline]
pub fn is_waiting() -> bool {
    WAITING.load(Relaxed) > 0
}

/// Where a message of the program's is, in pieces.
pub struct Pieces {
    pieces: [iovec; 4],
    count: usize,
}

impl Pieces {
    pub fn one(at: *const c_void, len: usize) -> Pieces {
        let mut pieces = Pieces::none();
        pieces.pieces[0] = iovec { iov_base: at.cast_mut(), iov_len: len };
        pieces.count = 1;
        pieces
    }

    const fn none() -> Pieces {
        const NOTHING: iovec = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Pieces { pieces: [NOTHING; 4], count: 0 }
    }

    /// None of them where there are more than such messages have.
    pub fn of(list: *const iovec, count: usize) -> Pieces {
        let mut all = Pieces::none();
        if count > all.pieces.len() || !uaccess::readable(list, count * size_of::<iovec>()) {
            return all;
        }
        for (at, piece) in all.pieces.iter_mut().enumerate().take(count) {
            // SAFETY: it can be read, and any bits are a piece: what is there is looked at before it is
            // used.
            *piece = unsafe { list.wrapping_add(at).read_unaligned() };
        }
        all.count = count;
        all
    }

    pub fn of_message(message: *const msghdr) -> Pieces {
        if !uaccess::readable(message, size_of::<msghdr>()) {
            return Pieces::none();
        }
        // SAFETY: it can be read, and is the program's own.
        let msghdr { msg_iov, msg_iovlen, .. } = unsafe { message.read_unaligned() };
        Pieces::of(msg_iov, msg_iovlen)
    }

    fn list(&self) -> &[iovec] {
        &self.pieces[..self.count]
    }

    pub fn len(&self) -> usize {
        self.list().iter().fold(0, |sum, piece| sum.saturating_add(piece.iov_len))
    }

    /// Copies the first bytes of the message, as many as there are and have room. `None`: they are not
    /// there.
    fn read(&self, to: &mut [u8]) -> Option<usize> {
        let mut done = 0;
        for piece in self.list() {
            let len = piece.iov_len.min(to.len() - done);
            let from = piece.iov_base.cast::<u8>();
            if len > 0 && !uaccess::readable(from, len) {
                return None;
            }
            for (at, byte) in to[done..done + len].iter_mut().enumerate() {
                // SAFETY: it can be read. A thread of the program that unmaps it meanwhile ends the
                // program.
                *byte = unsafe { from.wrapping_add(at).read_volatile() };
            }
            done += len;
        }
        Some(done)
    }

    /// # Safety
    /// The kernel has just written so many bytes there for the program.
    unsafe fn write(&self, mut from: &[u8]) {
        for piece in self.list() {
            let (now, later) = from.split_at(piece.iov_len.min(from.len()));
            for (at, byte) in now.iter().enumerate() {
                // SAFETY: by the contract above.
                unsafe { piece.iov_base.cast::<u8>().wrapping_add(at).write_volatile(*byte) };
            }
            from = later;
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Attributes by type, as far as they are whole.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Without the bits that say how it is written.
    const TYPE: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let len = usize::from(half(rest, 0)?);
        let value = rest.get(4..len)?;
        let found = (half(rest, 2)? & TYPE, value);
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(found)
    })
}

/// A message in the making.
struct Message {
    bytes: Vec<u8>,
    /// It must not be longer: attributes that do not fit are left out.
    longest: usize,
}

impl Message {
    /// With a header of these words, and an `ifinfomsg`.
    fn new(longest: usize, kind: u16, asked: &[u8], link: [u8; LINK]) -> Message {
        let mut bytes = asked[..HEAD].to_vec();
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend(link);
        Message { bytes, longest }
    }

    fn put(&mut self, kind: u16, value: &[u8]) {
        let len = 4 + value.len();
        if self.bytes.len() + len.next_multiple_of(4) > self.longest {
            return;
        }
        self.bytes.extend((len as u16).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes
    }
}

/// A name with the nul behind it.
fn text(name: &InterfaceName) -> &[u8] {
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len() - 1);
    &name[..=len]
}

/// An interface of a personality's that a request asks about.
fn asked_about(request: &[u8]) -> Option<(c_uint, InterfaceName, Interface)> {
    /// It asks about more than one.
    const DUMP: u16 = (libc::NLM_F_ROOT | libc::NLM_F_MATCH) as u16;
    let len = word(request, 0)? as usize;
    let is_one = request.len() >= HEAD + LINK && (len..len + 4).contains(&request.len());
    if !is_one || half(request, 4)? != libc::RTM_GETLINK || half(request, 6)? & DUMP != 0 {
        return None;
    }
    let name = match word(request, HEAD + 4)? {
        0 => {
            let names = [libc::IFLA_IFNAME, libc::IFLA_ALT_IFNAME];
            let mut all = attributes(&request[HEAD + LINK..]);
            let (_, given) = all.find(|(kind, _)| names.contains(kind))?;
            let given = given.split(|byte| *byte == 0).next()?;
            let mut name = InterfaceName::default();
            name.get_mut(..given.len())
                .filter(|name| name.len() < libc::IFNAMSIZ)?
                .copy_from_slice(given);
            name
        }
        index => name_of(index)?,
    };
    let interface = descriptors::claim(|p| p.interface(&name))?.1;
    Some((index_of(&name)?, name, interface))
}

/// The same request, about an interface that the kernel knows.
fn in_other_words(request: &[u8], interface: &Interface) -> Vec<u8> {
    let mut link = [0; LINK];
    if let Interface::Port(_) = interface {
        link[4..8].copy_from_slice(&LOOPBACK.to_ne_bytes());
    }
    let mut other = Message::new(LONGEST, libc::RTM_GETLINK, request, link);
    if let Interface::Kernels { name, .. } = interface {
        other.put(libc::IFLA_IFNAME, text(name));
    }
    let mut all = attributes(&request[HEAD + LINK..]);
    if let Some((kind, mask)) = all.find(|(kind, _)| *kind == libc::IFLA_EXT_MASK) {
        other.put(kind, mask);
    }
    other.finish()
}

/// What the kernel's `answer` is for the program, in no more than `longest` bytes.
fn answer_of(question: &Question, answer: &[u8], longest: usize) -> Option<Vec<u8>> {
    let mut link: [u8; LINK] = answer.get(HEAD..HEAD + LINK)?.try_into().ok()?;
    link[4..8].copy_from_slice(&question.index.to_ne_bytes());
    let address = match &question.interface {
        // The 32-bit statistics make room for a longer name: they stand in the answer in 64 bits too.
        Interface::Kernels { .. } => {
            let mut said = Message::new(longest, libc::RTM_NEWLINK, answer, link);
            said.put(libc::IFLA_IFNAME, text(&question.name));
            let leaves_out = [libc::IFLA_IFNAME, libc::IFLA_STATS];
            let all = attributes(&answer[HEAD + LINK..]);
            all.filter(|(kind, _)| !leaves_out.contains(kind))
                .for_each(|(kind, v)| said.put(kind, v));
            return Some(said.finish());
        }
        Interface::Port(address) => address,
    };
    const UP: u8 = 6;
    let flags = (FLAGS | libc::IFF_LOWER_UP) as u32;
    link[2..4].copy_from_slice(&libc::ARPHRD_ETHER.to_ne_bytes());
    link[8..12].copy_from_slice(&flags.to_ne_bytes());
    let mut said = Message::new(longest, libc::RTM_NEWLINK, answer, link);
    let number = |said: &mut Message, kind, n: u32| said.put(kind, &n.to_ne_bytes());
    said.put(libc::IFLA_IFNAME, text(&question.name));
    number(&mut said, libc::IFLA_TXQLEN, TX_QUEUE as u32);
    said.put(libc::IFLA_OPERSTATE, &[UP]);
    said.put(libc::IFLA_LINKMODE, &[0]);
    number(&mut said, libc::IFLA_MTU, MTU as u32);
    number(&mut said, libc::IFLA_GROUP, 0);
    number(&mut said, libc::IFLA_PROMISCUITY, 0);
    number(&mut said, libc::IFLA_NUM_TX_QUEUES, 1);
    number(&mut said, libc::IFLA_NUM_RX_QUEUES, 1);
    said.put(libc::IFLA_CARRIER, &[1]);
    said.put(libc::IFLA_ADDRESS, address);
    said.put(libc::IFLA_BROADCAST, &[0xff; 6]);
    Some(said.finish())
}

fn is_route_socket(fd: c_int) -> bool {
    // SAFETY: the program's number, in a call of its own. If it is not open, the calls fail, and that
    // is the answer.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    socket_domain(fd) == Ok(AddressFamily::NETLINK) && socket_protocol(fd) == Ok(None)
}

/// Whether a message to this address is for the kernel.
fn is_to_kernel(address: *const c_void, len: socklen_t) -> bool {
    if address.is_null() {
        return true;
    }
    if (len as usize) < size_of::<sockaddr_nl>() || !uaccess::readable(address, len as usize) {
        return false;
    }
    // SAFETY: it can be read, and any bits are such an address.
    let to = unsafe { address.cast::<sockaddr_nl>().read_unaligned() };
    c_int::from(to.nl_family) == libc::AF_NETLINK && to.nl_pid == 0 && to.nl_groups == 0
}

/// Where a message goes to, for [`send`].
pub fn address_of(message: *const msghdr) -> (*const c_void, socklen_t) {
    if !uaccess::readable(message, size_of::<msghdr>()) {
        return (std::ptr::null(), 0);
    }
    // SAFETY: it can be read, and is the program's own.
    let msghdr { msg_name, msg_namelen, .. } = unsafe { message.read_unaligned() };
    (msg_name.cast_const(), msg_namelen)
}

/// The program sends a message with `flags`. `None`: it is nothing of a personality's, and goes its way.
#[cold]
pub fn send(
    fd: c_int,
    message: &Pieces,
    to: (*const c_void, socklen_t),
    flags: c_int,
) -> Option<ssize_t> {
    let len = message.len();
    let mut request = [0; LONGEST];
    let request = request.get_mut(..len).filter(|bytes| bytes.len() >= HEAD + LINK)?;
    let (index, name, interface, other) = keep_errno(|| {
        if message.read(request) != Some(len) || !is_to_kernel(to.0, to.1) {
            return None;
        }
        let (index, name, interface) = asked_about(request)?;
        let other = in_other_words(request, &interface);
        is_route_socket(fd).then_some((index, name, interface, other))
    })?;
    let sequence = word(request, 8)?;
    // The answer is there when the call returns: another thread that takes it out waits for the lock.
    let mut asking = Asking::new();
    let (from, size) = (other.as_ptr().cast::<c_void>(), other.len());
    let sent = real!(
        unwinding send: fn(
            fd => c_int,
            from => *const c_void,
            size => usize,
            flags => c_int,
        ) -> ssize_t
    );
    if sent >= 0
        && let Some(port) = keep_errno(|| port_of(fd))
    {
        if asking.0.len() >= MOST {
            asking.0.remove(0);
        }
        asking.0.push(Question { port, sequence, index, name, interface });
    }
    Some(if sent >= 0 { len as ssize_t } else { sent })
}

/// A question is about to be asked: those that receive look for it. It is dropped as well where the
/// thread is cancelled in the call.
struct Asking(Questions);

impl Asking {
    fn new() -> Asking {
        let questions = lock();
        WAITING.fetch_add(1, SeqCst);
        Asking(questions)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        WAITING.store(self.0.len(), SeqCst);
    }
}

/// The socket's address, which it has at the latest when it has sent.
fn port_of(fd: c_int) -> Option<u32> {
    // SAFETY: the program's number, in a call of its own: see `is_route_socket`.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let address = SocketAddrNetlink::try_from(getsockname(fd).ok()?).ok()?;
    Some(address.pid())
}

/// The program has received so many bytes with `flags`. How many there are for the program.
///
/// # Safety
/// The kernel has written them into `message`, as far as they had room.
#[cold]
pub unsafe fn received(fd: c_int, message: &Pieces, got: ssize_t, flags: c_int) -> ssize_t {
    let Ok(whole) = usize::try_from(got) else { return got };
    let room = message.len();
    let changed = keep_errno(|| {
        let mut answer = vec![0; whole.min(room)];
        if answer.len() < HEAD || message.read(&mut answer) != Some(answer.len()) {
            return None;
        }
        let (kind, sequence, port) = (half(&answer, 4)?, word(&answer, 8)?, word(&answer, 12)?);
        let is_answer = [libc::RTM_NEWLINK, libc::NLMSG_ERROR as u16].contains(&kind);
        if !is_answer || !is_route_socket(fd) {
            return None;
        }
        let mut questions = lock();
        let is_it = |q: &Question| q.port == port && q.sequence == sequence;
        let at = questions.iter().position(is_it)?;
        let said = match kind {
            libc::RTM_NEWLINK => answer_of(&questions[at], &answer, whole),
            _ => None,
        };
        if flags & libc::MSG_PEEK == 0 {
            questions.remove(at);
            WAITING.store(questions.len(), SeqCst);
        }
        said
    });
    let Some(said) = changed else { return got };
    let taken = said.len().min(room);
    // SAFETY: by the contract above: what is written is no longer than what the kernel has written.
    unsafe { message.write(&said[..taken]) };
    let told = if flags & libc::MSG_TRUNC != 0 { said.len() } else { taken };
    told as ssize_t
}
