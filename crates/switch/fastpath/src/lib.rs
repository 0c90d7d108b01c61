//! What the worker of a switch shares with the program in the kernel that forwards between attached
//! interfaces (`switch.bpf.c` in `ringway-nic-setup`): memory of BPF maps.
//!
//! ```text
//!   worker --- table, ports, settings ---> program
//!          <-- seen, begun, counts -------
//! ```
//!
//! The worker owns the table: it learns, ages and forgets. The program reads, and notes when it has last
//! seen a source. Each word has one writer, but for the second in which an address was last seen: the
//! worker writes that once, when it learns the address.
//!
//! The program forwards what it is sure of. All else it hands to the worker, each frame of a port with a
//! number, and stays on that path with a flow until the worker has [drained](FastPath::set_drained) the
//! frames before.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented,
        clippy::string_slice
    )
)]

mod counts;
mod filters;
mod rate;
mod sys;

pub use counts::FastCounts;
pub use filters::Filters;
pub use rate::{Limit, Rate, SEGMENT_HEADERS};

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

use sys::Shared;

/// Sets of the table, and places of a set.
pub const SETS: usize = 1024;
pub const WAYS: usize = 4;

/// Ports of a switch.
pub const PORTS: usize = 256;

// Layouts of `switch.bpf.c`, in bytes.
const SET: usize = 64;
const SET_PORTS: usize = 32;
const SEEN: usize = 16;
const PORT: usize = 64;
const PORT_FLAGS: usize = 8;
const PORT_IFINDEX: usize = 12;
const PORT_VID: usize = 16;
const PORT_MAX_FRAME: usize = 20;
const PORT_BESIDE: usize = 24;
const SETTINGS: usize = 64;
const SETTINGS_FLAGS: usize = 16;
const SETTINGS_AGEING: usize = 20;
const SETTINGS_CPUS: usize = 24;
const SETTINGS_PROBE: usize = 32;
const VLANS: usize = 8 * VLAN_WORDS;
const BEGUN: usize = 64;
const COUNTS: usize = 64;
const POLICING: usize = 128;
const POLICING_WHOLE: usize = 0;
const POLICING_FRACTION: usize = 8;
const POLICING_BURST: usize = 16;
const POLICING_SPENT: usize = 24;
const POLICING_OVER: usize = 32;
const POLICING_DENIED_SENT: usize = 40;
const POLICING_DENIED_RECEIVED: usize = 48;
const POLICING_REFUSED_BYTES: usize = 56;
const POLICING_BAD_SOURCE: usize = 64;

const TAKES_PART: u32 = 1;
const IS_STACK: u32 = 2;
const IS_ISOLATED: u32 = 4;
const IS_POLICED: u32 = 8;
const LOOKS_AT_TAGS: u32 = 1;
const NONE: u32 = u32::MAX;
/// In the word of an address's port: it does not age.
const IS_STATIC: u32 = 0x100;
/// It is static, and the port has not sent with it yet what it may send.
const IS_SILENT: u32 = 0x200;
/// Above these the word has bits of the address's hash: the program sees by the one word that it is this address's.
const TAG_SHIFT: u32 = 10;

/// A key that no address has.
const EMPTY: u64 = u64::MAX;

/// Words of a bit for each VLAN.
pub const VLAN_WORDS: usize = 64;

/// The maps, by the names that they have in `switch.bpf.c`.
#[derive(Clone, Copy, Debug)]
pub struct Maps<'a> {
    pub table: BorrowedFd<'a>,
    pub seen: BorrowedFd<'a>,
    pub ports: BorrowedFd<'a>,
    pub vlans: BorrowedFd<'a>,
    pub settings: BorrowedFd<'a>,
    pub begun: BorrowedFd<'a>,
    pub counts: BorrowedFd<'a>,
    pub policing: BorrowedFd<'a>,
    /// If the program can interpret filters.
    pub filters: Option<BorrowedFd<'a>>,
}

/// How a port takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastPort {
    /// The interface that frames for the port are sent by, or received by if it is a stack.
    pub ifindex: u32,
    /// The port is the host's stack behind the interface.
    pub is_stack: bool,
    /// Nothing passes between it and others of this kind.
    pub is_isolated: bool,
    /// The stack behind an interface, or the interface before a stack, if frames for all pass between the
    /// two, so that the worker has nothing to do about it.
    pub beside: Option<u8>,
    /// The VLAN of its untagged frames; 0 where they are in none. `None`: it has no such frames.
    pub vid: Option<u16>,
    /// Bytes of the longest frame that it sends, without a tag.
    pub max_frame: u32,
}

/// The shared memory of one switch. Its methods that write are for the worker alone.
#[derive(Debug)]
pub struct FastPath {
    table: Shared,
    seen: Shared,
    ports: Shared,
    vlans: Shared,
    settings: Shared,
    begun: Shared,
    counts: Shared,
    policing: Shared,
    filters: Option<Shared>,
    cpus: usize,
    secret: [u64; 2],
}

impl FastPath {
    /// Maps the maps, which are new, for a machine that may have `cpus` processors. `secret`: what the
    /// places of addresses depend on.
    ///
    /// # Errors
    /// The process is out of memory, or a map is another.
    pub fn new(maps: Maps<'_>, cpus: usize, secret: [u64; 2]) -> io::Result<FastPath> {
        let filters = maps.filters.map(|map| Shared::of_map(map, PORTS * filters::OF_PORT));
        let filters = filters.transpose()?;
        FastPath::with(cpus, secret, filters, |bytes, map| Shared::of_map(map(&maps), bytes))
    }

    /// The same in memory that no program reads: for tests.
    ///
    /// # Errors
    /// The process is out of memory.
    pub fn unshared(secret: [u64; 2]) -> io::Result<FastPath> {
        let filters = Shared::anonymous(PORTS * filters::OF_PORT)?;
        FastPath::with(1, secret, Some(filters), |bytes, _| Shared::anonymous(bytes))
    }

    fn with(
        cpus: usize,
        secret: [u64; 2],
        filters: Option<Shared>,
        map: impl Fn(usize, for<'a> fn(&Maps<'a>) -> BorrowedFd<'a>) -> io::Result<Shared>,
    ) -> io::Result<FastPath> {
        let fast = FastPath {
            table: map(SETS * SET, |maps| maps.table)?,
            seen: map(SETS * SEEN, |maps| maps.seen)?,
            ports: map(PORTS * PORT, |maps| maps.ports)?,
            vlans: map(PORTS * VLANS, |maps| maps.vlans)?,
            settings: map(SETTINGS, |maps| maps.settings)?,
            begun: map(PORTS * BEGUN, |maps| maps.begun)?,
            counts: map(PORTS * cpus * COUNTS, |maps| maps.counts)?,
            policing: map(PORTS * POLICING, |maps| maps.policing)?,
            filters,
            cpus,
            secret,
        };
        fast.clear();
        for (at, half) in secret.into_iter().enumerate() {
            fast.settings.u64(8 * at).store(half, Relaxed);
        }
        fast.settings.u32(SETTINGS_CPUS).store(cpus as u32, Relaxed);
        Ok(fast)
    }

    /// What the places of addresses depend on.
    pub fn secret(&self) -> [u64; 2] {
        self.secret
    }

    /// No port takes part, and no address is known.
    pub fn clear(&self) {
        (0..=u8::MAX).for_each(|port| self.store_port(port, None, None, [None; 2]));
        (0..SETS).for_each(|set| (0..WAYS).for_each(|way| self.forget(set, way)));
    }

    /// Seconds after which an address that was not seen is not known; 0: it stays. And whether the switch
    /// looks at tags.
    pub fn set_rules(&self, ageing: u32, looks_at_tags: bool) {
        self.settings.u32(SETTINGS_AGEING).store(ageing, Relaxed);
        let flags = if looks_at_tags { LOOKS_AT_TAGS } else { 0 };
        self.settings.u32(SETTINGS_FLAGS).store(flags, Release);
    }

    /// The first five bytes, in their order from the lowest, of the source of frames by which the worker looks for loops: no
    /// filter and no limit keeps them from it. `None`: it does not look.
    pub fn set_probe(&self, source: Option<u64>) {
        // No source is 0: it is of one machine, and given by no maker of machines.
        self.settings.u64(SETTINGS_PROBE).store(source.unwrap_or(0), Relaxed);
    }

    /// How a port takes part from now on; `None`: not at all. How many frames of the port had gone to the
    /// worker before that: the later ones have gone to the port beside as well, if there is one. The program
    /// drops what the port sends over `limit`, whether it takes part or not; and if it does, what `filters` do not
    /// match, which it [can](FastPath::can_filter) see to.
    pub fn set_port(
        &self,
        port: u8,
        how: Option<FastPort>,
        limit: Option<Limit>,
        filters: Filters<'_>,
    ) -> u64 {
        self.store_port(port, how, limit, filters);
        self.begun_by_now(port)
    }

    /// How many frames of the port went to the worker without the program having seen all that was written before this.
    pub fn begun_by_now(&self, port: u8) -> u64 {
        // Either the program has seen it, or the frame's number is seen here.
        fence(SeqCst);
        self.begun(port)
    }

    fn store_port(
        &self,
        port: u8,
        how: Option<FastPort>,
        limit: Option<Limit>,
        filters: Filters<'_>,
    ) {
        let at = usize::from(port) * PORT;
        let word = |offset| self.ports.u32(at + offset);
        let flags = word(PORT_FLAGS);
        let beside = word(PORT_BESIDE);
        if !self.has_limit(port, limit) {
            // Meanwhile nothing is reckoned by half of it.
            flags.fetch_and(!IS_POLICED, SeqCst);
            self.store_limit(port, limit);
        }
        let policed = if limit.is_some() { IS_POLICED } else { 0 };
        let Some(FastPort { ifindex, is_stack, is_isolated, beside: port_beside, vid, max_frame }) =
            how
        else {
            beside.store(NONE, Release);
            return flags.store(policed, Release);
        };
        let filtered = self.store_filters(port, flags.load(Relaxed), filters);
        let new = [
            (PORT_IFINDEX, ifindex),
            (PORT_VID, vid.map_or(NONE, u32::from)),
            (PORT_MAX_FRAME, max_frame),
        ];
        if new.iter().any(|(offset, value)| word(*offset).load(Relaxed) != *value) {
            flags.store(policed, Relaxed);
            // No program that finds one of these finds the flags as they were.
            fence(Release);
            new.iter().for_each(|(offset, value)| word(*offset).store(*value, Relaxed));
        }
        beside.store(port_beside.map_or(NONE, u32::from), Release);
        let stack = if is_stack { IS_STACK } else { 0 };
        let isolated = if is_isolated { IS_ISOLATED } else { 0 };
        flags.store(TAKES_PART | stack | isolated | policed | filtered, Release);
    }

    /// The VLANs in which the port's frames are tagged, a bit for each. It takes part in others by
    /// [its untagged frames](FastPort::vid) alone.
    pub fn set_tagged(&self, port: u8, tagged: &[u64; VLAN_WORDS]) {
        for (at, bits) in tagged.iter().enumerate() {
            let word = self.vlans.u64(usize::from(port) * VLANS + 8 * at);
            if word.load(Relaxed) != *bits {
                word.store(*bits, Relaxed);
            }
        }
    }

    /// The words of a limit; all are 0 where there is none.
    fn limit_words(&self, port: u8, limit: Option<Limit>) -> [(&AtomicU64, u64); 3] {
        let Limit { rate: Rate { whole, fraction }, burst } =
            limit.unwrap_or(Limit { rate: Rate::default(), burst: 0 });
        let words =
            [(POLICING_WHOLE, whole), (POLICING_FRACTION, fraction), (POLICING_BURST, burst)];
        words.map(|(offset, value)| (self.policing_word(port, offset), value))
    }

    fn has_limit(&self, port: u8, limit: Option<Limit>) -> bool {
        let mut words = self.limit_words(port, limit).into_iter();
        words.all(|(word, value)| word.load(Relaxed) == value)
    }

    fn store_limit(&self, port: u8, limit: Option<Limit>) {
        for (word, value) in self.limit_words(port, limit) {
            word.store(value, Relaxed);
        }
        // The bucket is full: by another rate, another number would be.
        self.policing_word(port, POLICING_SPENT).store(0, Relaxed);
    }

    fn policing_word(&self, port: u8, offset: usize) -> &AtomicU64 {
        self.policing.u64(usize::from(port) * POLICING + offset)
    }

    /// An address is behind `port`, and was seen in this second.
    pub fn learn(&self, set: usize, way: usize, key: u64, port: u8, second: u32) {
        self.store(set, way, key, port.into(), second);
    }

    /// An address is behind `port`, however long ago it was seen. The program takes it for the source of a frame if it
    /// `has_sent`: what the port may not send does not pass it.
    pub fn fix(&self, set: usize, way: usize, key: u64, port: u8, second: u32, has_sent: bool) {
        let silent = if has_sent { 0 } else { IS_SILENT };
        self.store(set, way, key, u32::from(port) | IS_STATIC | silent, second);
    }

    fn store(&self, set: usize, way: usize, key: u64, port: u32, second: u32) {
        let place = self.key(set, way);
        if place.load(Relaxed) != key {
            // Whichever of the two words the program sees first, the port's has the tag of its own address.
            place.store(EMPTY, Relaxed);
            fence(Release);
        }
        self.port(set, way).store(port | tag_of(self.secret, key) << TAG_SHIFT, Relaxed);
        self.second(set, way).store(second, Relaxed);
        place.store(key, Release);
    }

    /// An address is not known any more.
    pub fn forget(&self, set: usize, way: usize) {
        self.key(set, way).store(EMPTY, Release);
        self.port(set, way).store(NONE, Relaxed);
    }

    /// The address at that place, and its port, as the program finds them.
    pub fn entry(&self, set: usize, way: usize) -> Option<(u64, u8)> {
        let key = self.key(set, way).load(Acquire);
        (key != EMPTY).then(|| (key, self.port(set, way).load(Relaxed) as u8))
    }

    /// Whether the program takes the address at that place for the source of a frame.
    pub fn is_source(&self, set: usize, way: usize) -> bool {
        self.port(set, way).load(Relaxed) & IS_SILENT == 0
    }

    /// The second in which the address at that place was last seen.
    pub fn seen(&self, set: usize, way: usize) -> u32 {
        self.second(set, way).load(Relaxed)
    }

    /// How many frames of the port went to the worker so far.
    pub fn begun(&self, port: u8) -> u64 {
        self.begun.u64(usize::from(port) * BEGUN).load(Acquire)
    }

    /// The worker found no more frames of the port, after it had read this number.
    pub fn set_drained(&self, port: u8, number: u64) {
        let word = self.ports.u64(usize::from(port) * PORT);
        if word.load(Relaxed) != number {
            word.store(number, Release);
        }
    }

    /// What was counted of the port since the memory was made.
    pub fn counts(&self, port: u8) -> FastCounts {
        let mut sum = [0u64; FastCounts::FIELDS];
        for cpu in 0..self.cpus {
            let at = (usize::from(port) * self.cpus + cpu) * COUNTS;
            let of_processors = sum.iter_mut().take(FastCounts::OF_PROCESSORS);
            for (field, sum) in of_processors.enumerate() {
                *sum = sum.wrapping_add(self.counts.u64(at + 8 * field).load(Relaxed));
            }
        }
        let of_port = |offset| self.policing_word(port, offset).load(Relaxed);
        FastCounts {
            over_rate: of_port(POLICING_OVER),
            denied_sent: of_port(POLICING_DENIED_SENT),
            denied_received: of_port(POLICING_DENIED_RECEIVED),
            refused_bytes: of_port(POLICING_REFUSED_BYTES),
            bad_source: of_port(POLICING_BAD_SOURCE),
            ..FastCounts::of(sum)
        }
    }

    fn key(&self, set: usize, way: usize) -> &AtomicU64 {
        self.table.u64(set * SET + 8 * way)
    }

    fn port(&self, set: usize, way: usize) -> &AtomicU32 {
        self.table.u32(set * SET + SET_PORTS + 4 * way)
    }

    fn second(&self, set: usize, way: usize) -> &AtomicU32 {
        self.seen.u32(set * SEEN + 4 * way)
    }
}

/// The set in which an address has its place: of the hash of it, the upper bits.
#[inline]
pub fn set_of(secret: [u64; 2], key: u64) -> usize {
    const { assert!(SETS.is_power_of_two()) };
    (hash(secret, key) >> (u64::BITS - SETS.ilog2())) as usize
}

/// Other bits of it: of two addresses with the same place they are different, but for one pair in four million.
fn tag_of(secret: [u64; 2], key: u64) -> u32 {
    (hash(secret, key) >> 32) as u32 & (u32::MAX >> TAG_SHIFT)
}

/// Both halves of a product of two secrets, each with the key in it: which addresses meet depends on all
/// bits of the secrets. With one secret in a hundred, evenly spaced addresses have few lower bits of that,
/// and few upper ones with others; a second product has all of them in its upper bits.
#[inline]
fn hash([one, other]: [u64; 2], key: u64) -> u64 {
    /// An odd number whose bits have no pattern.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(key ^ one) * u128::from(key.rotate_left(32) ^ other);
    let folded = (product >> 64) as u64 ^ product as u64;
    folded.wrapping_mul(SPREAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address's word without what tells it from others.
    fn port_of(fast: &FastPath) -> u32 {
        fast.port(3, 1).load(Relaxed) & 0x3ff
    }

    #[test]
    fn an_address_is_there_until_it_is_forgotten() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        fast.learn(3, 1, 0x1234, 7, 55);
        assert_eq!(fast.key(3, 1).load(Relaxed), 0x1234);
        assert_eq!((port_of(&fast), fast.seen(3, 1)), (7, 55));
        fast.forget(3, 1);
        assert_eq!(fast.key(3, 1).load(Relaxed), EMPTY);
    }

    #[test]
    fn a_static_address_is_marked_in_the_word_of_its_port() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        fast.fix(3, 1, 0x1234, 7, 55, false);
        assert_eq!(port_of(&fast), 0x307);
        assert_eq!(fast.entry(3, 1), Some((0x1234, 7)));
        fast.fix(3, 1, 0x1234, 7, 55, true);
        assert_eq!(port_of(&fast), 0x107);
        fast.learn(3, 1, 0x1234, 7, 56);
        assert_eq!(port_of(&fast), 7);
    }

    /// A program that has found one address, and then finds the port of the next with the same place, sees that by the
    /// port's word alone.
    #[test]
    fn a_word_of_a_port_is_one_addresss() {
        let secret = [1, 2];
        let fast = FastPath::unshared(secret).unwrap();
        let mut tags: Vec<u32> = (0..WAYS as u64 * 1000)
            .map(|n| n << 8 | 2)
            .filter(|key| set_of(secret, *key) == 5)
            .map(|key| {
                fast.learn(5, 0, key, 7, 55);
                let word = fast.port(5, 0).load(Relaxed);
                assert_eq!((word & 0x3ff, word >> TAG_SHIFT), (7, tag_of(secret, key)));
                word >> TAG_SHIFT
            })
            .collect();
        let count = tags.len();
        tags.sort_unstable();
        tags.dedup();
        assert!(count > 1 && tags.len() == count, "{count}");
    }

    #[test]
    fn counts_are_of_all_processors_and_of_one_port() {
        let fast = FastPath::with(3, [1, 2], None, |bytes, _| Shared::anonymous(bytes)).unwrap();
        for cpu in 0..3u64 {
            let at = (5 * 3 + cpu as usize) * COUNTS;
            (0..FastCounts::OF_PROCESSORS).for_each(|field| {
                fast.counts.u64(at + 8 * field).store(10 * cpu + field as u64, Relaxed);
            });
        }
        let counts = fast.counts(5);
        assert_eq!((counts.sent_packets, counts.reordered), (30, 45));
        fast.policing_word(5, POLICING_OVER).store(7, Relaxed);
        assert_eq!(fast.counts(5), FastCounts { over_rate: 7, ..counts });
        fast.policing_word(5, POLICING_BAD_SOURCE).store(9, Relaxed);
        assert_eq!(fast.counts(5), FastCounts { over_rate: 7, bad_source: 9, ..counts });
        let counts = fast.counts(5);
        assert_eq!([fast.counts(4), fast.counts(6)], [FastCounts::default(); 2]);
        assert_eq!(fast.counts(5).since(counts), FastCounts::default());
    }

    #[test]
    fn a_port_that_changes_does_not_take_part_meanwhile() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let port = FastPort {
            ifindex: 9,
            is_stack: false,
            is_isolated: false,
            beside: None,
            vid: Some(4),
            max_frame: 1514,
        };
        fast.set_port(2, Some(port), None, [None; 2]);
        let words = || {
            [PORT_FLAGS, PORT_IFINDEX, PORT_VID, PORT_MAX_FRAME, PORT_BESIDE]
                .map(|offset| fast.ports.u32(2 * PORT + offset).load(Relaxed))
        };
        assert_eq!(words(), [1, 9, 4, 1514, NONE]);
        fast.set_port(2, Some(FastPort { vid: None, ..port }), None, [None; 2]);
        assert_eq!(words(), [1, 9, NONE, 1514, NONE]);
        fast.set_port(
            2,
            Some(FastPort { is_stack: true, beside: Some(3), ..port }),
            None,
            [None; 2],
        );
        assert_eq!(words(), [3, 9, 4, 1514, 3]);
        fast.set_port(2, Some(FastPort { is_isolated: true, ..port }), None, [None; 2]);
        assert_eq!(words(), [5, 9, 4, 1514, NONE]);
        fast.set_port(2, None, None, [None; 2]);
        assert_eq!([words()[0], words()[4]], [0, NONE]);
    }

    /// A limit holds whether the port takes part or not, and its bucket is left alone until it is another.
    #[test]
    fn a_limit_is_by_itself() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let limit = |bits| Some(Limit { rate: Rate::of_bits(bits), burst: 3000 });
        let words = || {
            let flags = fast.ports.u32(2 * PORT + PORT_FLAGS).load(Relaxed);
            (flags, fast.policing_word(2, POLICING_SPENT).load(Relaxed))
        };
        let spend = || fast.policing_word(2, POLICING_SPENT).store(55, Relaxed);
        fast.set_port(2, None, limit(12_000_000_000), [None; 2]);
        assert_eq!(words(), (IS_POLICED, 0));
        let values = fast.limit_words(2, None).map(|(word, _)| word.load(Relaxed));
        assert_eq!(values, [1, 1 << 63, 3000]);
        spend();
        fast.set_port(2, None, limit(12_000_000_000), [None; 2]);
        assert_eq!(words(), (IS_POLICED, 55));
        fast.set_port(2, None, limit(12_000_000_001), [None; 2]);
        assert_eq!(words(), (IS_POLICED, 0));
        spend();
        fast.set_port(2, None, None, [None; 2]);
        assert_eq!(words(), (0, 0));
    }
}
