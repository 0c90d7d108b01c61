//! The other side, for tests: a guest with its driver, and the front end that speaks for it.
//!
//! It does what a well-behaved guest does, and has its memory at hand for what others do. It sends its
//! messages without waiting for answers: the owner of the socket's other end obeys them.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::atomic::Ordering::SeqCst,
};

use ringway_region::Buf;
use rustix::{
    event::{EventfdFlags, eventfd},
    fs::{MemfdFlags, ftruncate, memfd_create},
};

use crate::{
    chain::{INDIRECT, NEXT, WRITE},
    features::{EVENTS, LOG_ALL, MRG_RXBUF, PACKED, PROTOCOL, VERSION_1},
    message::{self, Request},
    queue::needs_event,
    sys::Map,
};

/// The guest's address of its memory, and the monitor's. They differ, and neither is 0.
pub const GUEST_BASE: u64 = 0x10_0000;
const USER_BASE: u64 = 0x7f00_0000_0000;

/// Bytes of the guest's memory.
pub const MEMORY: u64 = 32 << 20;

/// Bytes of a buffer for receiving, and of one piece of what is sent.
pub const BUFFER: u32 = 2048;

/// Bytes that a queue's rings have, and its tables.
const RINGS: u64 = 64 << 10;

/// What the guest makes use of.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub packed: bool,
    pub events: bool,
    pub mergeable: bool,
    /// Frames are sent by tables of descriptors.
    pub indirect: bool,
    /// Descriptors of each queue.
    pub size: u16,
    pub pairs: usize,
    /// Further features, by their bits.
    pub features: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            packed: false,
            events: false,
            mergeable: true,
            indirect: false,
            size: 64,
            pairs: 1,
            features: 0,
        }
    }
}

/// A queue, by its driver.
struct Driver {
    /// Where its rings begin in the guest's memory; its buffers follow.
    at: u64,
    size: u16,
    /// Where the driver is: it runs on beyond the size.
    next: u16,
    seen: u16,
    wraps: [bool; 2],
    /// By a chain's number: how many descriptors it has, and its buffers.
    chains: Vec<(u16, Vec<u16>)>,
    free: VecDeque<u16>,
    pub kick: OwnedFd,
    pub call: OwnedFd,
}

/// A guest, with its front end.
pub struct Guest {
    setup: Setup,
    socket: UnixStream,
    file: File,
    map: Map,
    /// Receiving and sending in turn.
    drivers: Vec<Driver>,
}

impl Driver {
    fn descriptors(&self) -> u64 {
        self.at
    }

    fn available(&self) -> u64 {
        self.at + 16 * u64::from(self.size)
    }

    fn used(&self) -> u64 {
        (self.available() + 6 + 2 * u64::from(self.size)).next_multiple_of(16)
    }

    fn table(&self, number: u16) -> u64 {
        self.at + RINGS + u64::from(number) * 512
    }

    fn buffer(&self, number: u16) -> u64 {
        self.at + RINGS + u64::from(self.size) * 512 + u64::from(number) * u64::from(BUFFER)
    }
}

/// The back end hears of it at once, although a process that is just being started may have the socket, too.
impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Guest {
    /// A guest that has said all that a front end says, and the socket at which it was said.
    ///
    /// # Errors
    /// Those of the system calls for sockets, memory and events.
    pub fn start(setup: Setup) -> io::Result<(Guest, UnixStream)> {
        let (socket, other) = UnixStream::pair()?;
        Ok((Guest::over(setup, socket)?, other))
    }

    /// The same, at a socket that is connected.
    pub fn over(setup: Setup, socket: UnixStream) -> io::Result<Guest> {
        let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, MEMORY)?;
        let map = Map::new(&file, MEMORY)?;
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let share = MEMORY / (2 * setup.pairs as u64);
        let drivers = (0..2 * setup.pairs as u64).map(|index| {
            let at = (index * share).next_multiple_of(4096);
            let size = setup.size;
            Ok(Driver {
                at,
                size,
                next: 0,
                seen: 0,
                wraps: [true; 2],
                chains: vec![Default::default(); size.into()],
                free: (0..size).collect(),
                kick: event()?,
                call: event()?,
            })
        });
        let drivers = drivers.collect::<io::Result<Vec<_>>>()?;
        let guest = Guest { setup, socket, file, map, drivers };
        guest.connect()?;
        Ok(guest)
    }

    /// What it has agreed on.
    fn features(&self) -> u64 {
        let Setup { packed, events, mergeable, features, .. } = self.setup;
        let chosen = [(packed, PACKED), (events, EVENTS), (mergeable, MRG_RXBUF)];
        let chosen = chosen.iter().filter(|(on, _)| *on).map(|(_, bit)| bit);
        chosen.fold(VERSION_1 | PROTOCOL | features, |all, bit| all | bit)
    }

    fn connect(&self) -> io::Result<()> {
        self.say(Request::SetOwner, &[], &[])?;
        self.say(Request::SetFeatures, &self.features().to_ne_bytes(), &[])?;
        self.say_memory(MEMORY)?;
        for index in 0..self.drivers.len() {
            self.set_up(index, if self.setup.packed { 0x8000_8000 } else { 0 })?;
        }
        for index in 0..self.drivers.len() {
            self.enable(index, true)?;
        }
        Ok(())
    }

    /// Hands over the first `size` bytes of its memory.
    pub fn say_memory(&self, size: u64) -> io::Result<()> {
        let region = [GUEST_BASE, size, USER_BASE, 0].map(u64::to_ne_bytes).concat();
        let table = [1u32, 0].map(u32::to_ne_bytes).concat();
        self.say(Request::SetMemTable, &[table, region].concat(), &[&self.file])
    }

    /// Sets up a queue, of which `base` is the first place.
    pub fn set_up(&self, index: usize, base: u32) -> io::Result<()> {
        let driver = &self.drivers[index];
        let number = index as u32;
        let pair = |value: u32| [number, value].map(u32::to_ne_bytes).concat();
        self.say(Request::SetVringNum, &pair(driver.size.into()), &[])?;
        self.say(Request::SetVringBase, &pair(base), &[])?;
        let places = [driver.descriptors(), driver.used(), driver.available()];
        let places = places.map(|at| (USER_BASE + at).to_ne_bytes()).concat();
        let address = [pair(0), places, vec![0; 8]].concat();
        self.say(Request::SetVringAddr, &address, &[])?;
        let word = (index as u64).to_ne_bytes();
        self.say(Request::SetVringCall, &word, &[&driver.call])?;
        self.say(Request::SetVringKick, &word, &[&driver.kick])
    }

    /// Has a queue told, or tells of it, by that descriptor; by which message: 12 to kick, 13 to call, 14 of errors.
    pub fn tell_by(&self, message: u32, index: usize, by: &dyn AsFd) -> io::Result<()> {
        let what = match message {
            12 => Request::SetVringKick,
            13 => Request::SetVringCall,
            _ => Request::SetVringErr,
        };
        self.say(what, &(index as u64).to_ne_bytes(), &[by])
    }

    /// Enables a queue, or disables it.
    pub fn enable(&self, index: usize, on: bool) -> io::Result<()> {
        let payload = [index as u32, on.into()].map(u32::to_ne_bytes).concat();
        self.say(Request::SetVringEnable, &payload, &[])
    }

    /// Stops a queue: the answer says where to go on.
    pub fn stop(&self, index: usize) -> io::Result<()> {
        let payload = [index as u32, 0].map(u32::to_ne_bytes).concat();
        self.say(Request::GetVringBase, &payload, &[])
    }

    /// Where a queue goes on, by the answer to [`stop`](Self::stop).
    pub fn stopped_at(&self) -> io::Result<u32> {
        let mut answer = [0; 20];
        io::Read::read_exact(&mut &self.socket, &mut answer)?;
        Ok(u32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]))
    }

    /// Has pages that are written noted in `log`, a bit for each.
    pub fn migrate(&self, log: &File, size: u64) -> io::Result<()> {
        let payload = [size, 0].map(u64::to_ne_bytes).concat();
        self.say(Request::SetLogBase, &payload, &[log])?;
        self.say(Request::SetFeatures, &(self.features() | LOG_ALL).to_ne_bytes(), &[])
    }

    /// Asks for an announcement by that address.
    pub fn announce(&self, [a, b, c, d, e, f]: [u8; 6]) -> io::Result<()> {
        self.say(Request::SendRarp, &[a, b, c, d, e, f, 0, 0], &[])
    }

    fn say(&self, what: Request, payload: &[u8], files: &[&dyn AsFd]) -> io::Result<()> {
        let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
        message::request(&self.socket, what, false, payload, &files)
    }

    /// The socket of its front end, for messages of any kind.
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Its memory has that many bytes from now on.
    pub fn resize(&self, size: u64) -> io::Result<()> {
        Ok(ftruncate(&self.file, size)?)
    }

    /// Where the rings of a queue begin in its memory, and how many bytes they have.
    pub fn rings(&self, index: usize) -> (u64, u64) {
        let driver = &self.drivers[index];
        (driver.at, driver.used() + 6 + 8 * u64::from(driver.size) - driver.at)
    }

    /// Writes its memory.
    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.bytes(at, bytes.len() as u32).write(0, bytes);
    }

    /// Reads it.
    pub fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.bytes(at, len as u32).copy_to(len, &mut bytes);
        bytes
    }

    fn bytes(&self, at: u64, len: u32) -> Buf<'_> {
        self.map.buf(at, len).expect("it is inside the guest's memory")
    }

    fn half(&self, at: u64) -> u16 {
        std::sync::atomic::fence(SeqCst);
        u16::from_le_bytes(self.read(at, 2).try_into().expect("two bytes"))
    }

    fn set_half(&self, at: u64, value: u16) {
        std::sync::atomic::fence(SeqCst);
        self.write(at, &value.to_le_bytes());
        std::sync::atomic::fence(SeqCst);
    }

    /// Sends a frame by `pair`, with its header in front of it, in pieces of up to `piece` bytes. False if there
    /// are not enough descriptors left.
    pub fn send(&mut self, pair: usize, bytes: &[u8], piece: usize) -> bool {
        let pieces: Vec<_> = bytes.chunks(piece.min(BUFFER as usize)).collect();
        let index = 2 * pair + 1;
        if self.drivers[index].free.len() < pieces.len() {
            return false;
        }
        let numbers: Vec<_> = self.drivers[index].free.drain(..pieces.len()).collect();
        let chain = pieces.iter().zip(&numbers).map(|(piece, number)| {
            let at = self.drivers[index].buffer(*number);
            self.write(at, piece);
            (at, piece.len() as u32)
        });
        let chain: Vec<_> = chain.collect();
        if self.setup.indirect {
            let table = self.drivers[index].table(numbers[0]);
            for (i, (at, len)) in chain.iter().enumerate() {
                let last = i + 1 == chain.len();
                let next = if self.setup.packed || last { 0 } else { NEXT };
                let descriptor = self.descriptor(*at, *len, next, i as u16 + 1);
                self.write(table + 16 * i as u64, &descriptor);
            }
            let len = 16 * chain.len() as u32;
            return self.offer(index, &[(table, len)], &numbers, INDIRECT);
        }
        self.offer(index, &chain, &numbers, 0)
    }

    /// Offers a buffer of `len` bytes for receiving by `pair`. False if there is no descriptor left.
    pub fn offer_buffer(&mut self, pair: usize, len: u32) -> bool {
        let Some(number) = self.drivers[2 * pair].free.pop_front() else { return false };
        let at = self.drivers[2 * pair].buffer(number);
        self.offer(2 * pair, &[(at, len.min(BUFFER))], &[number], WRITE)
    }

    /// A descriptor, as the queue's layout has it; `number` is that of the next one, or of the buffer.
    fn descriptor(&self, at: u64, len: u32, flags: u16, number: u16) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(GUEST_BASE + at).to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        let words = if self.setup.packed { [number, flags] } else { [flags, number] };
        bytes[12..14].copy_from_slice(&words[0].to_le_bytes());
        bytes[14..].copy_from_slice(&words[1].to_le_bytes());
        bytes
    }

    fn offer(&mut self, index: usize, chain: &[(u64, u32)], numbers: &[u16], flags: u16) -> bool {
        let before = self.drivers[index].next;
        let chain_of = &mut self.drivers[index].chains[usize::from(numbers[0])];
        *chain_of = (chain.len() as u16, numbers.to_vec());
        match self.setup.packed {
            true => self.offer_packed(index, chain, numbers[0], flags),
            false => self.offer_split(index, chain, &numbers[..chain.len()], flags),
        }
        self.kick(index, before);
        true
    }

    fn offer_split(&mut self, index: usize, chain: &[(u64, u32)], numbers: &[u16], flags: u16) {
        for (i, ((at, len), number)) in chain.iter().zip(numbers).enumerate() {
            let next = numbers.get(i + 1).copied();
            let flags = flags | if next.is_some() { NEXT } else { 0 };
            let descriptor = self.descriptor(*at, *len, flags, next.unwrap_or(0));
            let to = self.drivers[index].descriptors() + 16 * u64::from(*number);
            self.write(to, &descriptor);
        }
        let driver = &mut self.drivers[index];
        let (entry, available) = (driver.next % driver.size, driver.available());
        driver.next = driver.next.wrapping_add(1);
        let next = driver.next;
        self.set_half(available + 4 + 2 * u64::from(entry), numbers[0]);
        self.set_half(available + 2, next);
    }

    fn offer_packed(&mut self, index: usize, chain: &[(u64, u32)], number: u16, flags: u16) {
        let driver = &self.drivers[index];
        let (size, descriptors) = (driver.size, driver.descriptors());
        let first = driver.next;
        let mut at = first;
        let mut wrap = driver.wraps[0];
        let mut first_flags = 0;
        for (i, (address, len)) in chain.iter().enumerate() {
            let more = if i + 1 < chain.len() { NEXT } else { 0 };
            let owner = if wrap { 1 << 7 } else { 1 << 15 };
            let flags = flags | more | owner;
            let to = descriptors + 16 * u64::from(at);
            let descriptor = self.descriptor(*address, *len, flags, number);
            self.write(to, &descriptor[..14]);
            match i {
                0 => first_flags = flags,
                _ => self.set_half(to + 14, flags),
            }
            at += 1;
            if at == size {
                (at, wrap) = (0, !wrap);
            }
        }
        self.set_half(descriptors + 16 * u64::from(first) + 14, first_flags);
        let driver = &mut self.drivers[index];
        (driver.next, driver.wraps[0]) = (at, wrap);
    }

    /// Tells the device that there is something to look at, whether it wants to be told or not.
    pub fn kick_at_once(&self, index: usize) {
        let _ = rustix::io::write(&self.drivers[index].kick, &1u64.to_ne_bytes());
    }

    /// Tells the device, where it wants to be told.
    fn kick(&mut self, index: usize, before: u16) {
        let driver = &self.drivers[index];
        let wants = match (self.setup.packed, self.setup.events) {
            (false, false) => self.half(driver.used()) & 1 == 0,
            (false, true) => {
                let event = self.half(driver.used() + 4 + 8 * u64::from(driver.size));
                needs_event(event, driver.next, before)
            }
            (true, _) => match self.half(driver.used() + 2) {
                0 => true,
                1 => false,
                // One chain was offered: its first place is `before`.
                _ => self.half(driver.used()) & 0x7fff == before,
            },
        };
        if wants {
            self.kick_at_once(index);
        }
    }

    /// The next chain that comes back, and what was written to it.
    fn take_used(&mut self, index: usize) -> Option<(u16, u32)> {
        let driver = &self.drivers[index];
        let (number, written) = match self.setup.packed {
            false => {
                if self.half(driver.used() + 2) == driver.seen {
                    return None;
                }
                let entry = driver.used() + 4 + 8 * u64::from(driver.seen % driver.size);
                let bytes = self.read(entry, 8);
                (u16::from_le_bytes([bytes[0], bytes[1]]), le32(&bytes[4..]))
            }
            true => {
                let at = driver.descriptors() + 16 * u64::from(driver.seen);
                let flags = self.half(at + 14);
                let [available, used] = [7, 15].map(|bit| flags >> bit & 1 != 0);
                if available != used || used != driver.wraps[1] {
                    return None;
                }
                let bytes = self.read(at, 16);
                (u16::from_le_bytes([bytes[12], bytes[13]]), le32(&bytes[8..]))
            }
        };
        let is_packed = self.setup.packed;
        let driver = &mut self.drivers[index];
        // A test may have written there itself: then none of its chains has come back.
        let (count, _) = driver.chains.get(usize::from(number)).filter(|(count, _)| *count > 0)?;
        let count = *count;
        if is_packed {
            driver.seen += count;
            if driver.seen >= driver.size {
                driver.seen -= driver.size;
                driver.wraps[1] = !driver.wraps[1];
            }
        } else {
            driver.seen = driver.seen.wrapping_add(1);
        }
        Some((number, written))
    }

    /// Takes back what was sent; how many frames that were.
    pub fn reap(&mut self, pair: usize) -> usize {
        let index = 2 * pair + 1;
        let mut reaped = 0;
        while let Some((number, _)) = self.take_used(index) {
            let driver = &mut self.drivers[index];
            driver.free.extend(std::mem::take(&mut driver.chains[usize::from(number)].1));
            reaped += 1;
        }
        reaped
    }

    /// The next frame that was received by `pair`, with its header.
    pub fn receive(&mut self, pair: usize) -> Option<Vec<u8>> {
        let mut frame: Vec<u8> = Vec::new();
        let mut left = 1;
        while left > 0 {
            let (number, written) = self.take_used(2 * pair)?;
            let at = self.drivers[2 * pair].buffer(number);
            let part = self.read(at, written as usize);
            if frame.is_empty() {
                left = usize::from(u16::from_le_bytes([part[10], part[11]]));
            }
            frame.extend(part);
            self.drivers[2 * pair].free.push_back(number);
            left -= 1;
        }
        Some(frame)
    }

    /// Whether the device has interrupted it since this was last asked.
    pub fn is_interrupted(&mut self, index: usize) -> bool {
        rustix::io::read(&self.drivers[index].call, &mut [0; 8]).is_ok()
    }

    /// Asks for an interrupt at the next chain that comes back; or for none, where `on` is false.
    pub fn ask_for_interrupt(&mut self, index: usize, on: bool) {
        let driver = &self.drivers[index];
        let available = driver.available();
        let (seen, size) = (driver.seen, u64::from(driver.size));
        let wrap = u16::from(driver.wraps[1]) << 15;
        match (self.setup.packed, self.setup.events) {
            (false, false) => self.set_half(available, u16::from(!on)),
            (false, true) => {
                let event = if on { seen } else { seen.wrapping_sub(1) };
                self.set_half(available + 4 + 2 * size, event);
            }
            (true, events) => {
                self.set_half(available, seen | wrap);
                let flags = if !on { 1 } else { 2 * u16::from(events) };
                self.set_half(available + 2, flags);
            }
        }
    }
}

fn le32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
