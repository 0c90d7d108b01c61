//! One packet socket that is ours, in this process.

use std::{
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

use ringway_interpose::generation;
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create},
    io::fcntl_dupfd_cloexec,
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};

use crate::{
    area::Area,
    locks::{is_locked, lock},
    rx::Receiver,
    setup::{Ends, LeftMemory, RINGS_SIZE, Setup},
    sys,
    tx::Transmitter,
};

/// See the file's description.
///
/// A child of `fork` takes no lock of a socket that it has [inherited](Socket::is_inherited): a thread of the parent may
/// have had it at that moment, and is not there to let it go.
pub struct Socket {
    setup: Mutex<Setup>,
    pub ends: Ends,
    /// The file that the rings are in. It stays until the end of the life.
    rings: Mutex<Option<OwnedFd>>,
    /// The [generation](ringway_interpose::generation) of the process that opened it.
    born: AtomicU32,
    /// The range of addresses that has all memory that it has used.
    lowest: AtomicU64,
    highest: AtomicU64,
    /// The socket that was made next.
    next: OnceLock<&'static Socket>,
}

/// The first that was made.
static FIRST: OnceLock<&Socket> = OnceLock::new();

impl Socket {
    /// Another one. It lives as long as the process, and is used again and again.
    pub fn leaked() -> &'static Socket {
        let socket: &Socket = Box::leak(Box::new(Socket {
            setup: Mutex::default(),
            ends: Ends::default(),
            rings: Mutex::default(),
            born: AtomicU32::new(0),
            lowest: AtomicU64::new(u64::MAX),
            highest: AtomicU64::new(0),
            next: OnceLock::new(),
        }));
        let mut end = &FIRST;
        while end.set(socket).is_err() {
            end = end.get().map_or(&FIRST, |other| &other.next);
        }
        socket
    }

    /// All that were made. No lock: a child of `fork` asks, too.
    pub fn all() -> impl Iterator<Item = &'static Socket> {
        std::iter::successors(FIRST.get(), |socket| socket.next.get()).copied()
    }

    /// Notes that memory was registered on the socket, or that a ring of it uses memory.
    pub fn uses_memory(&self, area: &Area) {
        let Range { start, end } = area.range();
        self.lowest.fetch_min(start, SeqCst);
        self.highest.fetch_max(end, SeqCst);
    }

    /// Whether memory that was registered, or a ring, may be among these addresses.
    pub fn may_use(&self, memory: &Range<u64>) -> bool {
        memory.start < self.highest.load(SeqCst) && self.lowest.load(SeqCst) < memory.end
    }

    /// The program is about to unmap memory: rings on it stand still until [the end](Self::end_leave) of
    /// that. No lock is taken for other memory: an allocator may unmap some while this thread holds the
    /// lock.
    pub fn leave_memory(&self, memory: &Range<u64>) -> Option<LeftMemory> {
        if !self.may_use(memory) || self.is_inherited() {
            return None;
        }
        self.setup().leave_memory(&self.ends, memory)
    }

    /// The program's memory is `gone`, and rings on it stop; or the kernel has refused that.
    pub fn end_leave(&self, left: &LeftMemory, memory: &Range<u64>, gone: bool) {
        left.end(gone);
        if gone && let Ok(rings) = self.rings() {
            self.setup().forget_memory(&self.ends, rings, memory);
        }
    }

    /// Whether no thread that has gone has any of its locks.
    pub fn may_begin(&self) -> bool {
        !self.is_inherited()
            || !is_locked(&self.setup) && !is_locked(&self.rings) && self.ends.are_free()
    }

    /// A new life begins.
    pub fn begin(&self) {
        *self.setup() = Setup::default();
        self.born.store(generation(), Relaxed);
        self.lowest.store(u64::MAX, SeqCst);
        self.highest.store(0, SeqCst);
    }

    /// Lets go of everything. No call is in progress.
    pub fn end(&self) {
        if self.is_inherited() {
            self.ends.abandon();
            drop(self.rings.try_lock().map(|mut rings| rings.take()));
        } else {
            self.ends.stop();
            self.setup().end_memberships();
            drop(lock(&self.rings).take());
        }
    }

    /// What receives, unless it is a parent's.
    pub fn rx(&self) -> Option<Arc<Receiver>> {
        if self.is_inherited() { None } else { self.ends.rx() }
    }

    /// What sends, unless it is a parent's.
    pub fn tx(&self) -> Option<Arc<Transmitter>> {
        if self.is_inherited() { None } else { self.ends.tx() }
    }

    /// What is set up, also on an inherited one. `None`: a thread of the parent's was changing it.
    pub fn look<T>(&self, f: impl FnOnce(&Setup) -> T) -> Option<T> {
        match self.is_inherited() {
            true => self.setup.try_lock().ok().map(|setup| f(&setup)),
            false => Some(f(&self.setup())),
        }
    }

    /// The file that the rings are in, which is nowhere as long as nothing is in it.
    pub fn rings(&self) -> Result<BorrowedFd<'_>, i32> {
        let mut rings = lock(&self.rings);
        let file = match &*rings {
            Some(file) => file.as_raw_fd(),
            None => {
                let file = rings_file(RINGS_SIZE).map_err(|error| error.raw_os_error())?;
                rings.insert(file).as_raw_fd()
            }
        };
        Ok(sys::of_life(self, file))
    }

    /// Whether it was opened by a parent of this process: the rings are the parent's alone.
    pub fn is_inherited(&self) -> bool {
        self.born.load(Relaxed) != generation()
    }

    pub fn setup(&self) -> MutexGuard<'_, Setup> {
        lock(&self.setup)
    }
}

/// What stands for a packet socket in the kernel: a socket that nothing comes to or goes from.
pub fn stand_in() -> Result<OwnedFd, i32> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(|error| error.raw_os_error())
}

/// A file of `size` bytes that nobody can make shorter, with a number out of the program's way.
pub fn rings_file(size: usize) -> rustix::io::Result<OwnedFd> {
    const HIGH: RawFd = 512;
    let file = memfd_create("ringway-tpacket4", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, size as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fcntl_dupfd_cloexec(&file, HIGH).unwrap_or(file))
}
