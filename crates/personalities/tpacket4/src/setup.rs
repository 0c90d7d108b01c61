//! What a program has set up on a socket, and what comes of it: memory, rings, and the port.

use std::{
    io,
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex},
};

use libc::{SOL_PACKET, c_int};
use ringway_abi::Dir;
use ringway_packet::socket;
use ringway_region::Mapping;

use crate::{
    abi::{MAX_DESCS, packet_mreq, tpacket4_desc},
    area::Area,
    desc::DescRing,
    device::Device,
    locks::{is_locked, lock},
    names::{Named, name_of, named},
    port,
    rx::Receiver,
    stack::{Stack, StackOptions},
    sys::Words,
    tx::{Transmitter, TxQueue},
};

/// Bytes of a descriptor.
const DESC: usize = size_of::<tpacket4_desc>();

/// Bytes of the file that holds a socket's rings, of which only those in use are there.
pub const RINGS_SIZE: usize = 2 * MAX_DESCS as usize * DESC;

/// A ring as the program has asked for it.
#[derive(Clone)]
struct Ring {
    /// `None`: the program has unmapped it.
    area: Option<Area>,
    descs: u32,
    /// How far it has come.
    at: u32,
}

/// See the file's description.
#[derive(Default)]
pub struct Setup {
    pub version_4: bool,
    /// Memory that was registered on this socket.
    pub area: Option<Area>,
    /// Bytes in front of received data, besides those of the area.
    pub reserve: u32,
    /// Packets to be sent that are not good come back without an error.
    pub loss: bool,
    stack: StackOptions,
    /// The queue pair of zero-copy mode.
    queue: Option<u16>,
    bound: Option<u32>,
    rx: Option<Ring>,
    tx: Option<Ring>,
    mappings: u32,
    /// Has the memberships: a packet socket of the kernel's that receives nothing.
    memberships: Option<OwnedFd>,
}

/// What stands still while memory is being unmapped.
pub struct LeftMemory {
    rx: Option<Arc<Receiver>>,
    tx: Option<Arc<Transmitter>>,
}

impl LeftMemory {
    /// Ends it: with memory that is `gone`, or with what was there before.
    pub fn end(&self, gone: bool) {
        if let Some(rx) = &self.rx {
            rx.resume(gone);
        }
        if let Some(tx) = &self.tx {
            tx.resume(gone);
        }
    }
}

/// What moves packets. Calls of several threads take a copy each.
#[derive(Default)]
pub struct Ends {
    rx: Mutex<Option<Arc<Receiver>>>,
    tx: Mutex<Option<Arc<Transmitter>>>,
}

impl Ends {
    pub fn rx(&self) -> Option<Arc<Receiver>> {
        lock(&self.rx).clone()
    }

    pub fn tx(&self) -> Option<Arc<Transmitter>> {
        lock(&self.tx).clone()
    }

    /// Ends both, and says how far their rings have come. What they had open is closed when no call uses it any
    /// more.
    pub fn stop(&self) -> [Option<u32>; 2] {
        let (rx, tx) = (lock(&self.rx).take(), lock(&self.tx).take());
        if let Some(rx) = &rx {
            rx.stop();
        }
        if let Some(tx) = &tx {
            tx.stop();
        }
        [rx.map(|rx| rx.position()), tx.map(|tx| tx.position())]
    }

    /// Whether no thread has a lock of theirs.
    pub fn are_free(&self) -> bool {
        !is_locked(&self.rx) && !is_locked(&self.tx)
    }

    /// Lets go of both in a child of `fork`, which has no mover; a lock that another thread of the parent had is
    /// left alone.
    pub fn abandon(&self) {
        drop(self.rx.try_lock().map(|mut rx| rx.take()));
        drop(self.tx.try_lock().map(|mut tx| tx.take()));
    }
}

impl Setup {
    /// Bytes of both rings: the receive ring first, the transmit ring behind it.
    fn ring_bytes(&self) -> [usize; 2] {
        [&self.rx, &self.tx].map(|ring| ring.as_ref().map_or(0, |ring| ring.descs as usize * DESC))
    }

    /// Whether a mapping of so many bytes is one of the rings.
    pub fn is_mapping(&self, offset: i64, len: usize) -> bool {
        const PAGE: usize = 4096;
        let [rx, tx] = self.ring_bytes();
        let bytes = (rx + tx).next_multiple_of(PAGE);
        offset == 0 && bytes != 0 && len.checked_next_multiple_of(PAGE) == Some(bytes)
    }

    pub fn has_filter(&self) -> bool {
        self.stack.filter.is_some()
    }

    /// Joins a group of sockets that share what comes.
    pub fn join(&mut self, ends: &Ends, fd: BorrowedFd<'_>, fanout: u32) -> Result<(), i32> {
        // One that the kernel finds would be another one at each change of the socket.
        let finds = fanout >> 16 & libc::PACKET_FANOUT_FLAG_UNIQUEID != 0;
        if finds || self.bound.is_none() || self.rx.is_none() {
            return Err(libc::EINVAL);
        }
        if self.stack.fanout.is_some() {
            return Err(libc::EALREADY);
        }
        self.change_stack(ends, fd, |stack| stack.fanout = Some(fanout))
    }

    /// Adds a membership of an interface, or drops it. The kernel looks at interface and kind, and counts. Ports have
    /// none.
    ///
    /// # Errors
    /// The kernel's; EPERM without CAP_NET_RAW.
    pub fn change_membership(&mut self, option: c_int, request: packet_mreq) -> Result<(), i32> {
        let packet_mreq { ifindex, kind, alen, address } = request;
        if u32::try_from(ifindex).is_ok_and(|index| name_of(index).is_some()) {
            return Ok(());
        }
        let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        let socket = match self.memberships.take() {
            Some(socket) => socket,
            None => socket::new().map_err(number)?,
        };
        let socket = self.memberships.insert(socket);
        let request = libc::packet_mreq {
            mr_ifindex: ifindex,
            mr_type: kind,
            mr_alen: alen,
            mr_address: address,
        };
        socket::set_option(socket.as_fd(), SOL_PACKET, option, &request).map_err(number)
    }

    /// The socket is closed.
    pub fn end_memberships(&mut self) {
        self.memberships = None;
    }

    /// The index that it is bound to, or 0.
    pub fn bound(&self) -> u32 {
        self.bound.unwrap_or(0)
    }

    /// Whether it is neither of version 4 nor has memory.
    pub fn is_nothing(&self) -> bool {
        !self.version_4 && self.area.is_none()
    }

    pub fn has_rings(&self) -> bool {
        self.rx.is_some() || self.tx.is_some()
    }

    /// A mapping of the rings was made, or has gone.
    pub fn count_mapping(&mut self, more: bool) {
        self.mappings = if more { self.mappings + 1 } else { self.mappings.saturating_sub(1) };
    }

    /// Makes a ring of so many descriptors for frames of `area`, or with 0 destroys it. `fd` has the rings.
    pub fn set_ring(
        &mut self,
        ends: &Ends,
        fd: BorrowedFd<'_>,
        dir: Dir,
        area: Option<Area>,
        descs: u32,
    ) -> Result<(), i32> {
        if self.is_nothing() {
            return Err(libc::EPERM);
        }
        if !self.version_4 {
            return Err(libc::EINVAL);
        }
        let there = match dir {
            Dir::Rx => self.rx.is_some(),
            Dir::Tx => self.tx.is_some(),
        };
        if self.mappings > 0 || (descs > 0 && there) {
            return Err(libc::EBUSY);
        }
        let ring = match descs {
            0 => None,
            _ if !descs.is_power_of_two() => return Err(libc::EINVAL),
            _ if descs > MAX_DESCS => return Err(libc::ENOMEM),
            _ => Some(Ring { area: Some(self.ring_area(dir, area)?), descs, at: 0 }),
        };
        match dir {
            Dir::Rx => self.rx = ring,
            Dir::Tx => self.tx = ring,
        }
        // Where the rings lie may have changed, and nobody has them mapped: all begin anew.
        self.stop(ends);
        let rings = mapped(fd)?;
        let bytes: usize = self.ring_bytes().iter().sum();
        if let Some(words) = Words::new(&rings, 0, bytes / size_of::<u64>()) {
            words.clear();
        }
        [&mut self.rx, &mut self.tx].into_iter().flatten().for_each(|ring| ring.at = 0);
        self.start(ends, fd).inspect_err(|_| match dir {
            Dir::Rx => self.rx = None,
            Dir::Tx => self.tx = None,
        })
    }

    fn ring_area(&self, dir: Dir, area: Option<Area>) -> Result<Area, i32> {
        let area = area.ok_or(libc::EINVAL)?;
        match dir {
            Dir::Rx => area.with_reserve(self.reserve).ok_or(libc::EINVAL),
            Dir::Tx => Ok(area),
        }
    }

    /// Binds to an interface, by index.
    pub fn bind(&mut self, ends: &Ends, fd: BorrowedFd<'_>, index: u32) -> Result<(), i32> {
        if self.is_nothing() {
            return Err(libc::EPERM);
        }
        named(index)?;
        let before = self.bound.replace(index);
        self.start_again(ends, fd, |setup| setup.bound = before)
    }

    /// Has only queue pair `queue` from now on.
    pub fn set_queue(&mut self, ends: &Ends, fd: BorrowedFd<'_>, queue: i32) -> Result<(), i32> {
        if !self.version_4 {
            return Err(libc::EINVAL);
        }
        let queue = u16::try_from(queue).map_err(|_| libc::EINVAL)?;
        let before = self.queue.replace(queue);
        self.start_again(ends, fd, |setup| setup.queue = before)
    }

    /// Changes what a packet socket of the kernel's has as options: it is heard of in copy mode alone.
    pub fn change_stack(
        &mut self,
        ends: &Ends,
        fd: BorrowedFd<'_>,
        change: impl FnOnce(&mut StackOptions),
    ) -> Result<(), i32> {
        let before = self.stack.clone();
        change(&mut self.stack);
        let is_ignored = self.queue.is_some() && !self.stack.selects() && !before.selects();
        if self.stack == before || is_ignored {
            return Ok(());
        }
        self.start_again(ends, fd, |setup| setup.stack = before)
    }

    /// Goes on where the rings stand, with what has changed; or if that cannot be, as before.
    fn start_again(
        &mut self,
        ends: &Ends,
        fd: BorrowedFd<'_>,
        undo: impl FnOnce(&mut Setup),
    ) -> Result<(), i32> {
        self.stop(ends);
        self.start(ends, fd).inspect_err(|_| {
            undo(self);
            let _ = self.start(ends, fd);
        })
    }

    /// The program is about to unmap memory: rings on it stand still until the kernel has said whether
    /// it does. `None`: nothing is on it.
    pub fn leave_memory(&self, ends: &Ends, memory: &Range<u64>) -> Option<LeftMemory> {
        let touches = |ring: &Option<Ring>| {
            let area = ring.as_ref().and_then(|ring| ring.area.as_ref());
            area.is_some_and(|area| area.touches(memory))
        };
        let rx = if touches(&self.rx) { ends.rx() } else { None };
        let tx = if touches(&self.tx) { ends.tx() } else { None };
        if let Some(rx) = &rx {
            rx.pause();
        }
        if let Some(tx) = &tx {
            tx.pause();
        }
        let is_registered = self.area.as_ref().is_some_and(|area| area.touches(memory));
        let is_used = is_registered || touches(&self.rx) || touches(&self.tx);
        is_used.then_some(LeftMemory { rx, tx })
    }

    /// The program has unmapped memory: rings on it stop. Their descriptors stay as they are.
    pub fn forget_memory(&mut self, ends: &Ends, fd: BorrowedFd<'_>, gone: &Range<u64>) {
        self.area.take_if(|area| area.touches(gone));
        if !self.ring_areas().any(|area| area.touches(gone)) {
            return;
        }
        self.stop(ends);
        for ring in [&mut self.rx, &mut self.tx].into_iter().flatten() {
            ring.area.take_if(|area| area.touches(gone));
        }
        // A ring on other memory is started again.
        let _ = self.start(ends, fd);
    }

    /// The memory of the rings, as far as the program has not unmapped it.
    fn ring_areas(&self) -> impl Iterator<Item = &Area> {
        [&self.rx, &self.tx].into_iter().flatten().flat_map(|ring| &ring.area)
    }

    /// Whether there is a ring whose memory the program has unmapped.
    pub fn has_lost_memory(&self, dir: Dir) -> bool {
        let ring = match dir {
            Dir::Rx => &self.rx,
            Dir::Tx => &self.tx,
        };
        ring.as_ref().is_some_and(|ring| ring.area.is_none())
    }

    fn stop(&mut self, ends: &Ends) {
        for (ring, at) in [&mut self.rx, &mut self.tx].into_iter().zip(ends.stop()) {
            if let (Some(ring), Some(at)) = (ring, at) {
                ring.at = at;
            }
        }
    }

    /// Opens what there is to open.
    fn start(&mut self, ends: &Ends, fd: BorrowedFd<'_>) -> Result<(), i32> {
        let Some(index) = self.bound.filter(|_| self.ring_areas().count() > 0) else {
            return Ok(());
        };
        let rings = mapped(fd)?;
        let [rx_bytes, tx_bytes] = self.ring_bytes();
        let words =
            |at, bytes: usize| Words::new(&rings, at, bytes / size_of::<u64>()).ok_or(libc::EINVAL);
        let (named, queue) = (named(index)?, self.queue);
        let stack = match (&named, queue) {
            (Named::Interface(_), None) => {
                Some(Arc::new(Stack::open(index, self.rx.is_some(), &self.stack)?))
            }
            _ if self.stack.selects() => {
                ringway::explain(
                    &"filters and groups of sockets are for copy mode; RINGWAY_FILTER names one of an interface's port",
                );
                return Err(libc::EOPNOTSUPP);
            }
            _ => None,
        };
        let open = |dir| match &stack {
            Some(stack) => Ok(Device::Stack(stack.clone())),
            None => port::open(&named.port(), queue, dir),
        };
        let tx = match &self.tx {
            Some(Ring { area: Some(area), at, .. }) => {
                let ring = DescRing::new(words(rx_bytes, tx_bytes)?, *at);
                let queue = TxQueue::new(ring, area.clone()).with_loss(self.loss);
                Some(Arc::new(Transmitter::new(queue, open(Dir::Tx)?)))
            }
            _ => None,
        };
        if let Some(Ring { area: Some(area), at, .. }) = &self.rx {
            let ring = DescRing::new(words(0, rx_bytes)?, *at);
            *lock(&ends.rx) = Some(Receiver::start(ring, area.clone(), open(Dir::Rx)?)?);
        }
        *lock(&ends.tx) = tx;
        Ok(())
    }
}

/// The file that has the rings, in our own memory: the program may unmap its own.
fn mapped(fd: BorrowedFd<'_>) -> Result<Arc<Mapping>, i32> {
    let mapping = Mapping::open(fd, RINGS_SIZE);
    mapping.map(Arc::new).map_err(|error| error.raw_os_error().unwrap_or(libc::EBADF))
}
