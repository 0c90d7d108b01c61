//! Registered memory in other processes.
//!
//! The descriptor that memory was registered on goes to other processes by `fork`, `exec` and SCM_RIGHTS. There it
//! stands for the same memory, where that is shared: it is a socket in which one message waits, a [`Notice`], that
//! every process which has the descriptor can look at. Nobody can add to it: its other end is closed.
//!
//! | memory | what the message has | in the other process |
//! | --- | --- | --- |
//! | a memfd | a descriptor of it | mapped once more, after it was sealed: it cannot become shorter then |
//! | `MAP_SHARED \| MAP_ANONYMOUS` | device and inode | where the process has mapped it; it cannot become shorter |
//! | other files | the same | refused: a process that has one open can shorten it, and touching it is SIGBUS then. System V's have no number of their own |
//! | private | there is no message | refused |
//!
//! A number is not a proof that its sender has the memory. It is believed from a process of the same user alone.

use std::{
    fmt,
    fs::File,
    io,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd},
};

use ringway_interpose::{FileKind, MappedArea};
use ringway_region::Mapping;
use rustix::{
    fs::{
        MemfdFlags, OFlags, RawDir, SealFlags, fcntl_add_seals, fcntl_get_seals, fcntl_getfl,
        fstat, fstatfs, memfd_create,
    },
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
        sockopt::{socket_domain, socket_type},
    },
    process::geteuid,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{abi::tpacket_memreg_req, area::Area, sys};

/// What a message of ours begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"rwv4mem1");
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// What the process that has registered memory says of it.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
struct Notice {
    magic: u64,
    /// Device and inode of the file that the memory is of.
    file: [u64; 2],
    /// Where the memory begins in the file.
    offset: u64,
    len: u64,
    frame_size: u32,
    data_headroom: u32,
}

/// Why a descriptor stands for no memory here.
#[derive(Debug)]
enum Refusal {
    NotRegistered,
    Private,
    CanShrink,
    OtherUser,
    NotMapped,
    /// The message says what cannot be.
    Bad,
    System(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Refusal::NotRegistered => "no memory was registered on the descriptor",
            Refusal::Private => {
                "the memory is private to the process that has registered it; use memory of memfd_create or \
                 MAP_SHARED | MAP_ANONYMOUS"
            }
            Refusal::CanShrink => {
                "the memory is of a file that can be shortened; use memfd_create with MFD_ALLOW_SEALING, and keep \
                 its descriptor open until the memory is registered"
            }
            Refusal::OtherUser => {
                "the memory of another user's process is passed on as a memfd only"
            }
            Refusal::NotMapped => {
                "this process has not mapped the memory; map it before it makes rings"
            }
            Refusal::Bad => "the memory is not as the descriptor says",
            Refusal::System(error) => return write!(f, "cannot map the memory: {error}"),
        };
        f.write_str(text)
    }
}

impl<E: Into<io::Error>> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal::System(error.into())
    }
}

/// Memory was registered on the program's `fd`: that number says so from now on to all who get its descriptor.
/// Copies that were made of it before do so in this process alone.
pub fn announce(fd: RawFd, request: &tpacket_memreg_req) -> Result<(), i32> {
    let (ours, others) = pair().map_err(|error| error.raw_os_error())?;
    if let Some((notice, memfd)) = describe(request) {
        send(&others, &notice, memfd).map_err(|error| error.raw_os_error())?;
    }
    sys::replace(fd, ours).map_err(|error| error.raw_os_error())
}

/// The memory that a process has announced on a descriptor which is none of this process's own sockets. `None`, which
/// is told with `RINGWAY_VERBOSE`: there is none to be had. EBADF: there is no such descriptor.
pub fn announced(fd: BorrowedFd<'_>) -> Result<Option<Area>, i32> {
    rustix::io::fcntl_getfd(fd).map_err(|error| error.raw_os_error())?;
    Ok(take(fd).inspect_err(|refusal| ringway::explain(refusal)).ok())
}

fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// What there is to say of memory, with a descriptor if it is of a memfd. `None`: it is not shared, or of several
/// files.
fn describe(request: &tpacket_memreg_req) -> Option<(Notice, Option<BorrowedFd<'static>>)> {
    let tpacket_memreg_req { addr, len, frame_size, data_headroom } = *request;
    let mut areas = MappedArea::all().ok()?.map_while(Result::ok);
    let first = areas.find(|area| area.end > addr)?;
    let runs = Run::of(first, areas).filter(|run| run.start <= addr && addr + len <= run.end)?;
    let (device, inode) = first.file?;
    let offset = runs.offset + (addr - runs.start);
    let notice =
        Notice { magic: MAGIC, file: [device, inode], offset, len, frame_size, data_headroom };
    Some((
        notice,
        match first.kind {
            FileKind::Memfd => open_memfd(device, inode),
            _ => None,
        },
    ))
}

/// Shared memory of one file, in one piece in both.
struct Run {
    start: u64,
    end: u64,
    offset: u64,
}

impl Run {
    /// From `first` on, as far as what is `behind` it continues it.
    fn of(first: MappedArea, behind: impl Iterator<Item = MappedArea>) -> Option<Run> {
        let is_shared = |area: &MappedArea| area.shared && area.writable && area.file == first.file;
        let MappedArea { start, mut end, offset, file, .. } = first;
        file.filter(|_| is_shared(&first))?;
        for area in behind {
            let continues =
                area.start == end && offset.checked_add(end - start) == Some(area.offset);
            if !continues || !is_shared(&area) {
                break;
            }
            end = area.end;
        }
        Some(Run { start, end, offset })
    }
}

/// A descriptor of the program's by which a memfd can be written.
fn open_memfd(device: u64, inode: u64) -> Option<BorrowedFd<'static>> {
    // Not by libc's functions for folders, which a program may have of its own.
    let folder = File::open("/proc/self/fd").ok()?;
    let mut space = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(folder, &mut space);
    while let Some(Ok(entry)) = entries.next() {
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
        let Some(fd) = number.and_then(|number| sys::of_program(number).ok()) else { continue };
        let is_it = fstat(fd).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (device, inode));
        if is_it && fcntl_getfl(fd).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDWR) {
            return Some(fd);
        }
    }
    None
}

fn send(to: &OwnedFd, notice: &Notice, memfd: Option<BorrowedFd<'_>>) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let memfd = memfd.as_slice();
    if !memfd.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(memfd));
    }
    sendmsg(to, &[IoSlice::new(notice.as_bytes())], &mut control, SendFlags::DONTWAIT).map(drop)
}

/// Looks at the message that waits in a socket, if it is one of ours.
fn look(socket: BorrowedFd<'_>) -> Result<(Notice, Option<OwnedFd>), Refusal> {
    let is_ours = socket_domain(socket) == Ok(AddressFamily::UNIX)
        && socket_type(socket) == Ok(SocketType::SEQPACKET);
    if !is_ours {
        return Err(Refusal::NotRegistered);
    }
    let mut bytes = [0; size_of::<Notice>()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags);
    let memfd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    match got {
        Ok(got) if got.bytes == 0 => Err(Refusal::Private),
        Ok(got) if got.bytes < bytes.len() => Err(Refusal::NotRegistered),
        Ok(_) => match Notice::read_from_bytes(&bytes) {
            Ok(notice) if notice.magic == MAGIC => Ok((notice, memfd)),
            _ => Err(Refusal::NotRegistered),
        },
        Err(_) => Err(Refusal::NotRegistered),
    }
}

fn take(socket: BorrowedFd<'_>) -> Result<Area, Refusal> {
    let (notice, memfd) = look(socket)?;
    let Notice { offset, len, frame_size, data_headroom, .. } = notice;
    let request = |addr| tpacket_memreg_req { addr, len, frame_size, data_headroom };
    match memfd {
        Some(memfd) => {
            let mapping = map(memfd.as_fd(), offset.checked_add(len).ok_or(Refusal::Bad)?)?;
            let start = mapping.bytes().as_ptr() as u64;
            let addr = start.checked_add(offset).ok_or(Refusal::Bad)?;
            Area::mapped(&request(addr), mapping).map_err(|_| Refusal::Bad)
        }
        None => Area::new(&request(find(socket, &notice)?)).map_err(|_| Refusal::Bad),
    }
}

/// Maps the first `len` bytes of a memfd, which stay.
fn map(memfd: BorrowedFd<'_>, len: u64) -> Result<Mapping, Refusal> {
    // Huge pages can be missing all the same.
    if fstatfs(memfd)?.f_type != TMPFS_MAGIC {
        return Err(Refusal::CanShrink);
    }
    let seals = fcntl_get_seals(memfd).map_err(|_| Refusal::CanShrink)?;
    if !seals.contains(SealFlags::SHRINK) {
        fcntl_add_seals(memfd, SealFlags::SHRINK).map_err(|_| Refusal::CanShrink)?;
    }
    if len == 0 || (fstat(memfd)?.st_size as u64) < len {
        return Err(Refusal::Bad);
    }
    Ok(Mapping::open(memfd, usize::try_from(len).map_err(|_| Refusal::Bad)?)?)
}

/// Where this process has memory that is of no file with a name.
fn find(socket: BorrowedFd<'_>, notice: &Notice) -> Result<u64, Refusal> {
    let Notice { file: [device, inode], offset, len, .. } = *notice;
    // A file of this device is what its name says. Anonymous memory has no descriptor by which it could be shortened.
    let unnamed = fstat(memfd_create("ringway-device", MemfdFlags::CLOEXEC)?)?.st_dev;
    if device != unnamed {
        return Err(Refusal::CanShrink);
    }
    // A socket's owner is the user that made it.
    if fstat(socket)?.st_uid != geteuid().as_raw() {
        return Err(Refusal::OtherUser);
    }
    let areas: Vec<MappedArea> = MappedArea::all()?.collect::<io::Result<_>>()?;
    for (at, first) in areas.iter().enumerate() {
        if first.file != Some((device, inode)) {
            continue;
        }
        if first.kind != FileKind::Anonymous {
            return Err(Refusal::CanShrink);
        }
        let Some(run) = Run::of(*first, areas[at + 1..].iter().copied()) else { continue };
        let inside = offset.checked_sub(run.offset);
        let end = inside.and_then(|inside| inside.checked_add(len));
        if let (Some(inside), Some(end)) = (inside, end)
            && end <= run.end - run.start
        {
            return Ok(run.start + inside);
        }
    }
    Err(Refusal::NotMapped)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const LEN: usize = 1 << 16;

    fn request(mapping: &Mapping, from: usize) -> tpacket_memreg_req {
        let addr = mapping.bytes()[from..].as_ptr() as u64;
        let len = (LEN - from) as u64;
        tpacket_memreg_req { addr, len, frame_size: 2048, data_headroom: 64 }
    }

    /// A descriptor that says what is wanted.
    fn saying(notice: Notice, memfd: Option<BorrowedFd<'_>>) -> OwnedFd {
        let (one, other) = pair().unwrap();
        send(&other, &notice, memfd).unwrap();
        one
    }

    #[test]
    fn memory_of_a_memfd_is_announced_with_the_memfd() {
        let (memfd, mapping) = Mapping::create("test", LEN).unwrap();
        let (socket, _) = pair().unwrap();
        announce(socket.as_raw_fd(), &request(&mapping, 4096)).unwrap();
        // The memory is there without the process that has announced it.
        mapping.bytes()[4096 + 320].store(77, std::sync::atomic::Ordering::Relaxed);
        drop((memfd, mapping));
        for _ in 0..2 {
            let area = announced(socket.as_fd()).unwrap().expect("memory");
            assert_eq!(area.data_offset(), 320);
            assert!(area.has_frame(29) && !area.has_frame(30));
            assert_eq!(area.free(0).unwrap().read(0), Some([77]));
        }
    }

    #[test]
    fn what_a_descriptor_says_is_checked() {
        let (memfd, mapping) = Mapping::create("test", LEN).unwrap();
        let (good, found) = describe(&request(&mapping, 0)).unwrap();
        assert!(found.is_some());
        let memfd = Some(memfd.as_fd());
        assert!(take(saying(good, memfd).as_fd()).is_ok());
        for bad in [
            Notice { len: LEN as u64 + 1, ..good },
            Notice { offset: 4096, ..good },
            Notice { offset: u64::MAX, ..good },
            Notice { offset: 1, len: 4096, ..good },
            Notice { len: 0, ..good },
            Notice { frame_size: 100, ..good },
            Notice { data_headroom: 4096, ..good },
        ] {
            assert!(matches!(take(saying(bad, memfd).as_fd()), Err(Refusal::Bad)));
        }
        let foreign = Notice { magic: 0, ..good };
        assert!(matches!(take(saying(foreign, memfd).as_fd()), Err(Refusal::NotRegistered)));
        // Without the descriptor the mapping that is there might be of a file that becomes shorter.
        assert!(matches!(take(saying(good, None).as_fd()), Err(Refusal::CanShrink)));
        let none = Notice { file: [good.file[0], u64::MAX], ..good };
        assert!(matches!(take(saying(none, None).as_fd()), Err(Refusal::NotMapped)));
        let elsewhere = Notice { file: [u64::MAX, 1], ..good };
        assert!(matches!(take(saying(elsewhere, None).as_fd()), Err(Refusal::CanShrink)));
    }

    #[test]
    fn memory_that_can_go_is_refused() {
        let size = LEN as u64;
        let new = |flags| {
            let memfd = memfd_create("test", MemfdFlags::CLOEXEC | flags).unwrap();
            rustix::fs::ftruncate(&memfd, size).unwrap();
            memfd
        };
        assert!(matches!(map(new(MemfdFlags::empty()).as_fd(), size), Err(Refusal::CanShrink)));
        let memfd = new(MemfdFlags::ALLOW_SEALING);
        assert!(matches!(map(memfd.as_fd(), size + 1), Err(Refusal::Bad)));
        let mapping = map(memfd.as_fd(), size).unwrap();
        assert_eq!(rustix::fs::ftruncate(&memfd, 0), Err(rustix::io::Errno::PERM));
        assert_eq!(mapping.bytes().len(), LEN);
        let (one, _other) = pair().unwrap();
        assert!(matches!(take(one.as_fd()), Err(Refusal::NotRegistered)));
        assert!(matches!(take(memfd.as_fd()), Err(Refusal::NotRegistered)));
    }
}
