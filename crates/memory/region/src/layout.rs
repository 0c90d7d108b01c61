//! Where things are in a region (rules S-MEM-1, S-MEM-5, S-MEM-7, S-MEM-8).

use serde::{Deserialize, Serialize};

use crate::{netif::NetifView, region::BLOCK_SIZE};

const PAGE: u64 = 4096;
const LINE: u64 = 64;
const MIN_BUFS: u32 = 4;
/// Buffers of a region at most (S-MEM-5).
pub const MAX_BUFS: u32 = 1_000_000;
/// Bytes of an interface object at most (S-MEM-5).
pub const MAX_IF_SIZE: u32 = 4096;
/// Ring objects of a region at most (S-MEM-5).
pub const MAX_RINGS: u32 = 1024;
/// Objects of a pool are grouped so that a group fills whole pages, unless it would be larger
/// than this.
const MAX_GROUP: u64 = 4 << 20;

/// Memory that a program brings along, at most: nothing overflows that is computed of it.
const MAX_MEMORY: u64 = 1 << 46;

/// The version of regions: of where things are in them, what they mean, and what the processes that share them do by
/// turns (`docs/shared-memory.md`). A region keeps its version from when it is made.
pub const LAYOUT_VERSION: u16 = 1;

/// Sizes and counts of the three pools, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sizes {
    /// Bytes of an interface object.
    pub if_size: u32,
    /// Interface objects.
    pub if_num: u32,
    /// Bytes of a ring object: 256, and 16 a slot.
    pub ring_size: u32,
    /// Ring objects.
    pub ring_num: u32,
    /// Bytes of a buffer, its headroom included.
    pub buf_size: u32,
    /// Buffers, the two reserved ones included.
    pub buf_num: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes::GLOBAL
    }
}

impl Sizes {
    /// The least that a private region has, and what a region in a program's own memory has
    /// where nothing else is asked for (S-EXT-1).
    pub const PRIVATE: Sizes = Sizes {
        if_size: 1024,
        if_num: 2,
        ring_size: 20480,
        ring_num: 4,
        buf_size: 2048,
        buf_num: 4098,
    };

    /// The global region: 163840 buffers, 335 MB, touched only where used (S-MEM-7).
    pub const GLOBAL: Sizes = Sizes {
        if_size: 1024,
        if_num: 100,
        ring_size: 36864,
        ring_num: 200,
        buf_size: 2048,
        buf_num: 163_840,
    };

    /// The private region of a virtual port (S-MEM-8). Ring counts include the fake host
    /// ring; `pipes` is how many pipes the region makes room for.
    pub fn private(rings: [u32; 2], slots: [u32; 2], pipes: u32, extra: u32) -> Sizes {
        let [tx_rings, rx_rings] = rings;
        let [tx_slots, rx_slots] = slots;
        let per = 4 * pipes;
        let least = Sizes::PRIVATE;
        let bufs = (per + rx_rings) * rx_slots + (per + tx_rings) * tx_slots + 2 + extra;
        Sizes {
            if_size: least.if_size.max(NetifView::size_with(tx_rings + rx_rings)),
            if_num: least.if_num.max(2 + per),
            ring_size: least.ring_size.max(256 + 16 * tx_slots.max(rx_slots)),
            ring_num: least.ring_num.max(tx_rings + rx_rings + 8 * pipes),
            buf_num: least.buf_num.max(bufs),
            ..least
        }
    }
}

/// One pool: `total` objects of `size` bytes from byte `offset` of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolShape {
    /// Bytes from the start of the region.
    pub offset: u64,
    /// Bytes of each object.
    pub size: u32,
    /// Objects.
    pub total: u32,
}

impl PoolShape {
    /// Byte offset of object `index`, or `None` past the end.
    pub fn object(&self, index: u32) -> Option<u64> {
        (index < self.total).then(|| self.offset + u64::from(index) * u64::from(self.size))
    }

    fn end(&self) -> u64 {
        self.offset + u64::from(self.size) * u64::from(self.total)
    }
}

/// Why there can be no such region.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum LayoutError {
    /// A size or a count outside the limits of S-MEM-5.
    #[error("{what} is {value}, but must be in {min}..={max}; change it in the region's settings")]
    Limit { what: &'static str, value: u32, min: u32, max: u32 },
    /// Objects that would lie across the words that they consist of.
    #[error("{what} is {value}, but must be a multiple of {of}")]
    Alignment { what: &'static str, value: u32, of: u32 },
    /// S-EXT-2.
    #[error("pools of {asked} bytes do not fit {memory} bytes; bring more, or ask for less")]
    Memory { asked: u64, memory: u64 },
    /// More than anybody can have.
    #[error("there are no {memory} bytes; bring {MAX_MEMORY} or less")]
    Endless { memory: u64 },
}

fn check_sizes(sizes: &Sizes, headroom: u32) -> Result<(), LayoutError> {
    let check = |what, value, min, max| match value {
        v if (min..=max).contains(&v) => Ok(()),
        value => Err(LayoutError::Limit { what, value, min, max }),
    };
    check("interface object size (if_size)", sizes.if_size, 56, MAX_IF_SIZE)?;
    check("number of interface objects (if_num)", sizes.if_num, 1, 10_000)?;
    check("ring object size (ring_size)", sizes.ring_size, 256, 32 * PAGE as u32)?;
    check("number of ring objects (ring_num)", sizes.ring_num, 2, MAX_RINGS)?;
    // Data has 64 bytes behind the headroom.
    let least = headroom.saturating_add(64);
    check("buffer size (buf_size)", sizes.buf_size, least, 65_536)?;
    check("number of buffers (buf_num)", sizes.buf_num, MIN_BUFS, MAX_BUFS)
}

fn aligned(what: &'static str, value: u32, of: u32) -> Result<(), LayoutError> {
    if value.is_multiple_of(of) { Ok(()) } else { Err(LayoutError::Alignment { what, value, of }) }
}

/// The map of one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The version of the region. Of another than [`LAYOUT_VERSION`] the rest means something else perhaps.
    pub version: u16,
    /// Interfaces.
    pub ifs: PoolShape,
    /// Rings with their slots.
    pub rings: PoolShape,
    /// Buffers.
    pub bufs: PoolShape,
    /// Bytes from the start of a buffer to its data: 0, or the AF_XDP headroom, which the
    /// kernel always leaves in front of received data.
    pub headroom: u32,
    /// Bytes that programs see: whole pages, from the start of the region.
    memory: u64,
}

impl Layout {
    /// Lays out pools of (at least) the given sizes. `headroom` bytes of every buffer are
    /// hidden in front of its data.
    pub fn new(sizes: &Sizes, headroom: u32) -> Result<Layout, LayoutError> {
        check_sizes(sizes, headroom)?;
        let ifs = pool(0, sizes.if_size, sizes.if_num);
        let rings = pool(ifs.end(), sizes.ring_size, sizes.ring_num);
        let bufs = pool(rings.end(), sizes.buf_size, sizes.buf_num);
        let memory = bufs.end().next_multiple_of(PAGE);
        Ok(Layout { version: LAYOUT_VERSION, ifs, rings, bufs, headroom, memory })
    }

    /// Lays out pools in `memory` bytes that a program brings along. Sizes and counts are used
    /// as they are; what is left over becomes buffers (S-EXT-1, S-EXT-2).
    pub fn within(memory: u64, sizes: &Sizes, headroom: u32) -> Result<Layout, LayoutError> {
        check_sizes(sizes, headroom)?;
        if memory > MAX_MEMORY {
            return Err(LayoutError::Endless { memory });
        }
        aligned("interface object size", sizes.if_size, 8)?;
        aligned("ring object size", sizes.ring_size, 16)?;
        aligned("buffer size", sizes.buf_size, 8)?;
        let pool = |offset: u64, size, total| PoolShape { offset, size, total };
        let ifs = pool(0, sizes.if_size, sizes.if_num);
        let rings = pool(ifs.end().next_multiple_of(LINE), sizes.ring_size, sizes.ring_num);
        // A UMEM begins with a page.
        let start = rings.end().next_multiple_of(if headroom > 0 { PAGE } else { LINE });
        let fit = memory.saturating_sub(start) / u64::from(sizes.buf_size);
        let asked = ifs.end() + rings.end() - rings.offset;
        let asked = asked + u64::from(sizes.buf_size) * u64::from(sizes.buf_num);
        if asked > memory || fit < MIN_BUFS.into() {
            return Err(LayoutError::Memory { asked, memory });
        }
        let bufs = pool(start, sizes.buf_size, fit.min(MAX_BUFS.into()) as u32);
        let memory = memory.next_multiple_of(PAGE);
        Ok(Layout { version: LAYOUT_VERSION, ifs, rings, bufs, headroom, memory })
    }

    /// Bytes that the netmap API calls the memory: the three pools, in whole pages.
    pub fn memsize(&self) -> u64 {
        self.memory
    }

    /// Whether everything that the layout names lies where it says: in the memory, apart from what is
    /// Ringway's own. One that [`new`](Self::new) or [`within`](Self::within) made is; another
    /// process may send any.
    pub(crate) fn is_sound(&self) -> bool {
        let end = |pool: &PoolShape| {
            pool.offset.checked_add(u64::from(pool.size) * u64::from(pool.total))
        };
        let inside = |pool| end(pool).is_some_and(|end| end <= self.memory);
        [&self.ifs, &self.rings, &self.bufs].into_iter().all(inside)
            && self.memory <= MAX_MEMORY.next_multiple_of(PAGE)
            && self.rings.size >= 256
            && self.bufs.total >= MIN_BUFS
            && self.headroom < self.bufs.size
    }

    /// Bytes of the whole memfd.
    pub fn total(&self) -> u64 {
        let shadow =
            self.shadow_start() + u64::from(self.rings.total) * u64::from(self.max_slots()) * 4;
        shadow.next_multiple_of(PAGE)
    }

    /// Slots that fit a ring object.
    pub fn max_slots(&self) -> u32 {
        (self.rings.size - 256) / 16
    }

    /// Usable bytes of a buffer.
    pub fn data_size(&self) -> u32 {
        self.bufs.size - self.headroom
    }

    /// Byte offset of the control block of ring object `index`.
    pub fn block(&self, index: u32) -> Option<u64> {
        (index < self.rings.total).then(|| self.memsize() + u64::from(index) * BLOCK_SIZE as u64)
    }

    /// Byte offset of the shadow words of ring object `index`.
    pub fn shadow(&self, index: u32) -> Option<u64> {
        (index < self.rings.total)
            .then(|| self.shadow_start() + u64::from(index) * u64::from(self.max_slots()) * 4)
    }

    fn shadow_start(&self) -> u64 {
        self.memsize() + u64::from(self.rings.total) * BLOCK_SIZE as u64
    }
}

fn pool(offset: u64, size: u32, num: u32) -> PoolShape {
    let size = size.next_multiple_of(64);
    let group = PAGE / gcd(u64::from(size), PAGE);
    let total = match group * u64::from(size) {
        bytes if bytes <= MAX_GROUP => num.next_multiple_of(group as u32),
        _ => num,
    };
    PoolShape { offset, size, total }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another process sends may be wrong in one thing alone. Buffers there have to be: where the data of buffer 0
    /// are is computed once for all.
    #[test]
    fn a_layout_is_sound_if_all_of_it_is() {
        let sound = Layout::new(&Sizes::PRIVATE, 256).unwrap();
        assert!(sound.is_sound());
        let most = MAX_MEMORY.next_multiple_of(PAGE);
        let PoolShape { offset, size, .. } = sound.bufs;
        // Pools that end with the memory, and a byte behind it.
        let ends = [sound.memory, sound.memory + 1].map(|end| {
            let pool = |size: u32, total: u32| PoolShape {
                offset: end - u64::from(size) * u64::from(total),
                size,
                total,
            };
            [
                Layout { ifs: pool(100, 3), ..sound },
                Layout { rings: pool(300, 3), ..sound },
                Layout { bufs: pool(500, 5), ..sound },
            ]
        });
        let bufs = |total| Layout { bufs: PoolShape { total, ..sound.bufs }, ..sound };
        let ring_size = |size| Layout { rings: PoolShape { size, ..sound.rings }, ..sound };
        let good = [
            bufs(MIN_BUFS),
            ring_size(256),
            Layout { headroom: size - 1, ..sound },
            Layout { memory: most, ..sound },
        ];
        for layout in good.into_iter().chain(ends[0]) {
            assert!(layout.is_sound(), "{layout:?}");
        }
        let last = PoolShape { offset: u64::MAX - 8, size: 3, total: 3 };
        let bad = [
            bufs(MIN_BUFS - 1),
            Layout { bufs: PoolShape { offset: sound.memory, total: 0, ..sound.bufs }, ..sound },
            ring_size(255),
            Layout { headroom: size, ..sound },
            Layout { headroom: size + 1, ..sound },
            Layout { memory: most + 1, ..sound },
            Layout { memory: offset, ..sound },
            Layout { ifs: last, ..sound },
        ];
        for layout in bad.into_iter().chain(ends[1]) {
            assert!(!layout.is_sound(), "{layout:?}");
        }
    }

    #[test]
    fn s_mem_7_default_sizes() {
        let global = Layout::new(&Sizes::GLOBAL, 0).unwrap();
        assert_eq!(global.memsize(), 343_019_520);
        assert_eq!((global.ifs.total, global.rings.total, global.bufs.total), (100, 200, 163_840));

        let vale = Layout::new(&Sizes::private([2, 2], [1024, 1024], 2, 0), 0).unwrap();
        assert_eq!(vale.memsize(), 42_369_024);
        assert_eq!((vale.ifs.total, vale.rings.total, vale.bufs.total), (12, 20, 20_482));
    }

    /// S-MEM-8, with another number in each place.
    #[test]
    fn s_mem_8_private_sizes() {
        let sizes = Sizes::private([3, 2], [4096, 2048], 3, 7);
        let bufs = (12 + 2) * 2048 + (12 + 3) * 4096 + 2 + 7;
        let expected = Sizes { if_num: 2 + 12, ring_size: 256 + 16 * 4096, ..Sizes::PRIVATE };
        assert_eq!(sizes, Sizes { ring_num: 3 + 2 + 24, buf_num: bufs, ..expected });
        let [most, least] = [[64, 8192], [64, 64]].map(|slots| Sizes::private([1, 1], slots, 0, 0));
        assert_eq!(most, Sizes { ring_size: 256 + 16 * 8192, buf_num: 8258, ..Sizes::PRIVATE });
        assert_eq!(least, Sizes::PRIVATE);
    }

    #[test]
    fn s_mem_5_limits_are_named() {
        let error = Layout::new(&Sizes { buf_size: 32, ..Sizes::GLOBAL }, 0).unwrap_err();
        let what = "buffer size (buf_size)";
        let limit = |min| LayoutError::Limit { what, value: 32, min, max: 65_536 };
        assert_eq!(error, limit(64));
        // With a headroom the least is more, and that is all that is wrong.
        let with_headroom = |buf_size| Layout::new(&Sizes { buf_size, ..Sizes::GLOBAL }, 256);
        assert_eq!(with_headroom(32).unwrap_err(), limit(320));
        assert!(with_headroom(319).is_err());
        assert_eq!(with_headroom(320).unwrap().data_size(), 64);
        assert!(Layout::new(&Sizes { ring_num: 1, ..Sizes::GLOBAL }, 0).is_err());
    }

    #[test]
    fn s_ext_2_what_is_brought_must_hold_what_is_asked_for() {
        let sizes = Sizes::PRIVATE;
        let asked = 2 * 1024 + 4 * 20480 + 4098 * 2048;
        let exact = Layout::within(asked, &sizes, 0).unwrap();
        assert_eq!(exact.bufs.total, 4098);
        assert!(matches!(Layout::within(asked - 1, &sizes, 0), Err(LayoutError::Memory { .. })));
        let more = Layout::within(asked + 10 * 2048, &sizes, 0).unwrap();
        assert_eq!(more.bufs.total, 4108, "the surplus is buffers");
        for endless in [MAX_MEMORY + 1, u64::MAX - 8191, u64::MAX - 4094, u64::MAX] {
            let refused = Layout::within(endless, &sizes, 0);
            assert_eq!(refused, Err(LayoutError::Endless { memory: endless }));
        }
        let most = Layout::within(MAX_MEMORY, &sizes, 0).unwrap();
        assert!(most.total() > most.memsize());
        let odd = Sizes { ring_size: 1001, ..sizes };
        assert!(matches!(Layout::within(asked, &odd, 0), Err(LayoutError::Alignment { .. })));
    }

    /// What is asked for fits, but the first buffer begins with a page: four have to be left.
    #[test]
    fn s_ext_2_four_buffers_are_the_least() {
        let sizes = Sizes { buf_num: 4, ..Sizes::PRIVATE };
        for (memory, total) in [
            (83_968 + 4 * 2048, None),
            (86_016 + 4 * 2048 - 1, None),
            (86_016 + 4 * 2048, Some(4)),
            (86_016 + 5 * 2048, Some(5)),
        ] {
            let found = Layout::within(memory, &sizes, 256).ok().map(|layout| layout.bufs.total);
            assert_eq!(found, total, "{memory}");
        }
    }

    /// A UMEM begins with a page; other buffers right behind the rings.
    #[test]
    fn buffers_begin_where_the_kernel_takes_them() {
        let memory = 10 << 20;
        for (headroom, offset) in [(0, 83_968), (1, 86_016), (256, 86_016)] {
            let layout = Layout::within(memory, &Sizes::PRIVATE, headroom).unwrap();
            assert_eq!(layout.rings.end(), 83_968);
            assert_eq!(layout.bufs.offset, offset, "headroom {headroom}");
            assert_eq!(u64::from(layout.bufs.total), (memory - offset) / 2048);
        }
    }

    /// Pools are whole groups of pages, unless a group would be more than there is use for.
    #[test]
    fn pools_are_groups_of_pages() {
        let shape = |size, num| {
            let PoolShape { size, total, offset } = super::pool(64, size, num);
            assert_eq!(offset, 64);
            (size, total)
        };
        assert_eq!(shape(64, 1), (64, 64));
        assert_eq!(shape(2000, 3), (2048, 4), "two in a page");
        assert_eq!(shape(4097, 65), (4160, 128), "64 pages and more, for 64 of them");
        assert_eq!(shape(4 << 10, 3), (4096, 3));
        assert_eq!(shape(65_472, 65), (65_472, 128), "a group of just less than the most");
        assert_eq!(shape(65_600, 65), (65_600, 65), "of more");
    }

    /// Objects, blocks and shadows are disjoint and inside the memfd.
    fn assert_disjoint(l: &Layout) {
        let mut spans = Vec::new();
        for pool in [l.ifs, l.rings, l.bufs] {
            spans.extend((0..pool.total).map(|i| (pool.object(i).unwrap(), u64::from(pool.size))));
            assert_eq!(pool.object(pool.total), None);
        }
        assert!(l.bufs.end() <= l.memsize());
        spans.extend((0..l.rings.total).map(|i| (l.block(i).unwrap(), BLOCK_SIZE as u64)));
        let shadow = u64::from(l.max_slots()) * 4;
        spans.extend((0..l.rings.total).map(|i| (l.shadow(i).unwrap(), shadow)));
        for pair in spans.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0);
        }
        let last = spans.last().unwrap();
        assert!(last.0 + last.1 <= l.total());
    }

    proptest::proptest! {
        #[test]
        fn parts_do_not_overlap(
            if_num in 1u32..200, ring_size in 256u32..70_000, ring_num in 2u32..100,
            buf_size in 64u32..5000, buf_num in 4u32..1000,
        ) {
            let sizes = Sizes { if_size: 1024, if_num, ring_size, ring_num, buf_size, buf_num };
            let l = Layout::new(&sizes, 0).unwrap();
            assert!(l.ifs.total >= if_num && l.rings.total >= ring_num && l.bufs.total >= buf_num);
            assert_disjoint(&l);
        }

        #[test]
        fn nor_do_those_in_brought_memory(
            memory in 4096u64..10_000_000, if_num in 1u32..20, ring_size in 16u32..4_000,
            ring_num in 2u32..10, buf_size in 8u32..600, buf_num in 4u32..1000,
            headroom in 0u32..300,
        ) {
            let (ring_size, buf_size) = (ring_size * 16, buf_size * 8);
            let sizes = Sizes { if_size: 1000, if_num, ring_size, ring_num, buf_size, buf_num };
            if let Ok(l) = Layout::within(memory, &sizes, headroom) {
                assert!(l.memsize() < memory + 4096);
                assert_disjoint(&l);
            }
        }
    }
}
