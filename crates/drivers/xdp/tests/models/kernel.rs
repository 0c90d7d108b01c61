//! The kernel's side of a socket's rings, played by the test: it reads and writes their memory as bytes, and what it
//! does, and in which order, is up to the test.

use std::{os::fd::OwnedFd, sync::Arc};

use ringway_abi::Dir;
use ringway_kring::{Kring, Outcome};
use ringway_region::{Layout, Region, RingInit, Sizes};
use ringway_testkit::datagram_sockets;
use ringway_xdp::{Desc, RX_HEADROOM, RingSizes, fake::FakeKernel};
use rustix::io::{pread, pwrite};
use rustix::net::xdp::{
    XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
};

/// Of all of a region's buffers, headroom included.
pub const CHUNK: u64 = 2048;
/// Bytes of a buffer behind the headroom.
pub const BUFFER: u32 = 2048 - RX_HEADROOM;

/// Where the rings are in the socket's memory.
pub const FILL: u64 = XDP_UMEM_PGOFF_FILL_RING;
pub const COMPLETION: u64 = XDP_UMEM_PGOFF_COMPLETION_RING;
pub const RX: u64 = XDP_PGOFF_RX_RING;
pub const TX: u64 = XDP_PGOFF_TX_RING;

/// And where the parts of a ring are in that.
pub const PRODUCER: u64 = 0;
pub const CONSUMER: u64 = 64;
const FLAGS: u64 = 128;
const ENTRIES: u64 = 192;

pub struct Kernel {
    pub fake: FakeKernel,
    sizes: RingSizes,
    /// What stands for the socket when the kernel is kicked: it takes what is sent on it, of which there is nothing.
    socket: (OwnedFd, OwnedFd),
}

impl Kernel {
    /// With empty rings, whose indices begin with `first`.
    pub fn new(sizes: RingSizes, first: u32) -> Kernel {
        let fake = FakeKernel::new(sizes).unwrap();
        let kernel = Kernel { fake, sizes, socket: datagram_sockets() };
        for ring in [FILL, COMPLETION, RX, TX] {
            kernel.set_word(ring + PRODUCER, first);
            kernel.set_word(ring + CONSUMER, first);
        }
        kernel
    }

    pub fn socket(&self) -> OwnedFd {
        self.socket.0.try_clone().unwrap()
    }

    pub fn word(&self, at: u64) -> u32 {
        let mut word = [0; 4];
        assert_eq!(pread(self.fake.memory(), &mut word, at), Ok(4));
        u32::from_ne_bytes(word)
    }

    pub fn set_word(&self, at: u64, word: u32) {
        assert_eq!(pwrite(self.fake.memory(), &word.to_ne_bytes(), at), Ok(4));
    }

    /// Whether the kernel says that it waits for a kick.
    pub fn set_wakeup(&self, ring: u64, wakeup: bool) {
        self.set_word(ring + FLAGS, wakeup.into());
    }

    /// Entries of a ring that its consumer has not had.
    pub fn pending(&self, ring: u64) -> u32 {
        self.word(ring + PRODUCER).wrapping_sub(self.word(ring + CONSUMER))
    }

    /// Where the entry with this number lies.
    fn entry(size: u32, number: u32, bytes: u64) -> u64 {
        ENTRIES + u64::from(number % size) * bytes
    }

    /// Takes up to so many entries off a ring of that size.
    fn take<const N: usize>(&self, ring: u64, size: u32, most: u32) -> Vec<[u8; N]> {
        let first = self.word(ring + CONSUMER);
        let count = self.pending(ring).min(most);
        self.set_word(ring + CONSUMER, first.wrapping_add(count));
        let read = |i| {
            let mut bytes = [0; N];
            let at = ring + Kernel::entry(size, first.wrapping_add(i), N as u64);
            assert_eq!(pread(self.fake.memory(), &mut bytes, at), Ok(N));
            bytes
        };
        (0..count).map(read).collect()
    }

    /// Takes up to so many descriptors off the TX ring.
    pub fn take_sent(&self, most: u32) -> Vec<Desc> {
        let desc = |bytes: [u8; 16]| {
            let [address @ .., a, b, c, d, e, f, g, h] = bytes;
            Desc {
                address: u64::from_ne_bytes(address),
                length: u32::from_ne_bytes([a, b, c, d]),
                options: u32::from_ne_bytes([e, f, g, h]),
            }
        };
        self.take(TX, self.sizes.tx, most).into_iter().map(desc).collect()
    }

    /// Says that what lies there has been sent.
    pub fn complete(&self, addresses: &[u64]) {
        self.put(COMPLETION, self.sizes.completion, addresses.iter().map(|a| a.to_ne_bytes()));
    }

    /// Takes up to so many chunks off the FILL ring.
    pub fn take_posted(&self, most: u32) -> Vec<u64> {
        self.take(FILL, self.sizes.fill, most).into_iter().map(u64::from_ne_bytes).collect()
    }

    /// Receives these frames.
    pub fn receive(&self, descs: &[Desc]) {
        let bytes = |desc: &Desc| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&desc.address.to_ne_bytes());
            bytes[8..12].copy_from_slice(&desc.length.to_ne_bytes());
            bytes[12..].copy_from_slice(&desc.options.to_ne_bytes());
            bytes
        };
        self.put(RX, self.sizes.rx, descs.iter().map(bytes));
    }

    fn put<const N: usize>(&self, ring: u64, size: u32, entries: impl Iterator<Item = [u8; N]>) {
        for bytes in entries {
            assert!(self.pending(ring) < size, "the test puts more there than the ring holds");
            let number = self.word(ring + PRODUCER);
            let at = ring + Kernel::entry(size, number, N as u64);
            assert_eq!(pwrite(self.fake.memory(), &bytes, at), Ok(N));
            self.set_word(ring + PRODUCER, number.wrapping_add(1));
        }
    }
}

/// A ring of so many slots, with the buffers from 2 on, in a region that has so many more.
pub fn kring(dir: Dir, slots: u32, more: u32) -> Kring {
    let sizes = Sizes {
        if_size: 1024,
        if_num: 1,
        // Room for spare buffers.
        ring_size: 256 + 16 * slots + 64,
        ring_num: 2,
        buf_size: CHUNK as u32,
        buf_num: 2 + slots + more,
    };
    let layout = Layout::new(&sizes, RX_HEADROOM).unwrap();
    let region = Arc::new(Region::create(1, layout).unwrap());
    let bufs: Vec<u32> = (2..2 + slots).collect();
    Kring::create(&region, 0, &RingInit { dir, ringid: 0, num_slots: slots }, &bufs).unwrap()
}

/// Moves the program's cursors, and syncs.
pub fn sync(kring: &Kring, head: u32, driver: &impl ringway_kring::Driver) {
    let ring = kring.ring();
    ring.set_head(head);
    ring.set_cur(head);
    assert_eq!(kring.sync(driver), Outcome::Done);
}

/// Bytes of a chunk from an address on.
pub fn bytes_at(kring: &Kring, address: u64, length: u32) -> Vec<u8> {
    let area = kring.ring().region().buffer_area();
    let at = address as usize;
    let byte = |byte: &std::sync::atomic::AtomicU8| byte.load(std::sync::atomic::Ordering::Relaxed);
    area[at..at + length as usize].iter().map(byte).collect()
}

/// Writes bytes into a chunk, as the kernel does.
pub fn write_at(kring: &Kring, address: u64, bytes: &[u8]) {
    let area = &kring.ring().region().buffer_area()[address as usize..];
    area.iter()
        .zip(bytes)
        .for_each(|(to, byte)| to.store(*byte, std::sync::atomic::Ordering::Relaxed));
}
