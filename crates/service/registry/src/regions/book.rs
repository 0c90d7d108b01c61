//! A region, and which of its objects are taken.

use std::{collections::HashSet, sync::Arc, time::Duration};

use ringway_kring::SignalAllowance;
use ringway_proto::{Error, Result};
use ringway_region::{BLOCK_SIZE, ExtraBufs, NetifView, Pool, Region, Sizes, Span, next_extra_buf};

use crate::{
    clock,
    port::{Ring, free_ring},
    regions::GLOBAL_ID,
};

/// Buffers that are never handed out (S-MEM-4).
const RESERVED_BUFS: u32 = 2;

/// Pieces that extra buffers are granted in, at most: an answer has to hold them.
const MAX_SPANS: usize = 16_384;

/// How long the lists of extra buffers are walked, at a time; and, if a client waits for buffers.
pub(super) const SLICE: Duration = Duration::from_millis(1);
const LONG_SLICE: Duration = Duration::from_millis(10);
/// Buffers of a list between two looks at the clock.
const STEPS: u32 = 1024;

/// How many times as many buffers a socket reaches as there are in use when it is opened: a few ports that are opened
/// later exchange theirs with it without a copy.
const ROOM: u32 = 4;

/// But no more than this where fewer are in use: the kernel has some 128 bytes for each buffer that a socket reaches, and
/// a program that opens all queues of a card has many sockets.
const MOST_ROOM: u32 = Sizes::GLOBAL.buf_num;

/// Spare buffers that a ring has at the least, where a socket does not reach all buffers: more than a packet has.
const LEAST_SPARES: u32 = 32;

/// Memory that a socket is given ends where a huge page does.
const HUGE_PAGE: u64 = 2 << 20;

/// A region with the book of its objects.
pub(crate) struct RegionBook {
    pub region: Arc<Region>,
    pub(super) uid: u32,
    /// Of all doorbells of the user's account.
    pub(crate) signals: Arc<SignalAllowance>,
    /// A program's memory is copied into it.
    pub(super) brought: bool,
    /// What that memory was; see [`Extmem::same`](ringway_proto::Extmem::same).
    pub(super) origin: Option<(u64, u64, u64)>,
    /// It is for all ports of the user that ask for buffers of its size.
    pub(super) shared: bool,
    /// It is for NICs of the user with very many rings.
    pub(super) large: bool,
    pub(super) ports: u32,
    ifs: Pool,
    rings: Pool,
    bufs: Pool,
    /// Rings that nobody owns any more, while somebody is still filling them.
    leaving: Vec<Ring>,
    /// Lists of buffers that clients have left, from where they are yet to be walked.
    lists: Vec<u32>,
    /// Buffers that the request of that number has taken, so far.
    taken_by: (u64, Vec<Span>),
    /// As many objects as were ever taken at once: these may be in memory.
    most: Taken,
    /// Buffers that the request at hand asks for beside those of rings.
    asked: u32,
}

/// Counts of objects.
#[derive(Clone, Copy, Default)]
struct Taken {
    ifs: usize,
    rings: usize,
    bufs: usize,
}

impl RegionBook {
    pub(super) fn new(region: Region, uid: u32, signals: Arc<SignalAllowance>) -> RegionBook {
        let none = || Pool::new(0, 0);
        let mut book = RegionBook {
            region: Arc::new(region),
            uid,
            signals,
            brought: false,
            origin: None,
            shared: false,
            large: false,
            ports: 0,
            ifs: none(),
            rings: none(),
            bufs: none(),
            leaving: Vec::new(),
            lists: Vec::new(),
            taken_by: (0, Vec::new()),
            most: Taken::default(),
            asked: 0,
        };
        book.clear();
        book
    }

    /// All objects are free, also those that ports still had.
    pub fn clear(&mut self) {
        let layout = *self.region.layout();
        // With a headroom, a program that fills the last buffer to its end would write past
        // the pool: nobody gets that one.
        let usable = layout.bufs.total - u32::from(layout.headroom > 0);
        self.ifs = Pool::new(layout.ifs.total, 0);
        self.rings = Pool::new(layout.rings.total, 0);
        self.bufs = Pool::new(usable, RESERVED_BUFS);
        self.leaving.clear();
        self.lists.clear();
    }

    /// Bytes that the region counts for with its user: what has been asked for. Pages that were used stay
    /// in memory, and memory that a program brings is there as a whole.
    pub(super) fn charge(&self) -> u64 {
        let layout = self.region.layout();
        if self.brought {
            return layout.total();
        }
        let shadow = u64::from(layout.max_slots()) * 4;
        let ring = u64::from(layout.rings.size) + BLOCK_SIZE as u64 + shadow;
        let Taken { ifs, rings, bufs } = self.most;
        ifs as u64 * u64::from(layout.ifs.size)
            + rings as u64 * ring
            + bufs as u64 * u64::from(layout.bufs.size)
    }

    /// Takes note of how many objects are taken.
    fn count(&mut self) {
        let layout = self.region.layout();
        let taken = |total: u32, pool: &Pool| (total as usize).saturating_sub(pool.available());
        self.most.ifs = self.most.ifs.max(taken(layout.ifs.total, &self.ifs));
        self.most.rings = self.most.rings.max(taken(layout.rings.total, &self.rings));
        self.most.bufs = self.most.bufs.max(taken(layout.bufs.total, &self.bufs));
    }

    /// Objects of rings that are taken and not leaving, and those of interfaces.
    #[cfg(feature = "faults")]
    pub(super) fn taken_objects(&self) -> (usize, usize) {
        let layout = self.region.layout();
        let rings = layout.rings.total as usize - self.rings.available() - self.leaving.len();
        (rings, layout.ifs.total as usize - self.ifs.available())
    }

    /// Frees rings that several parties fill, each as soon as nobody is at it.
    pub fn leave(&mut self, rings: impl IntoIterator<Item = Ring>) {
        self.leaving.extend(rings);
        for ring in std::mem::take(&mut self.leaving) {
            if ring.kring.take_away() {
                free_ring(self, &ring);
            } else {
                self.leaving.push(ring);
            }
        }
    }

    /// ENOMEM if a ring of so many slots cannot be.
    pub fn check_slots(&self, slots: u32) -> Result<()> {
        let max = self.region.layout().max_slots();
        if (1..=max).contains(&slots) {
            return Ok(());
        }
        let problem = format!("{slots} slots do not fit a ring of region {}", self.region.mem_id());
        Err(Error::no_memory(problem).remedy(format!("ask for 1 to {max}")))
    }

    pub fn take_if(&mut self) -> Result<u32> {
        let taken = self.ifs.take().ok_or_else(|| self.exhausted("interface objects"));
        self.count();
        taken
    }

    pub fn give_if(&mut self, object: u32) {
        self.ifs.give(object, 0);
    }

    pub fn take_ring(&mut self) -> Result<u32> {
        let taken = self.rings.take().ok_or_else(|| self.exhausted("ring objects"));
        self.count();
        taken
    }

    pub fn give_ring(&mut self, object: u32) {
        self.rings.give(object, 0);
    }

    pub fn take_bufs(&mut self, count: u32) -> Result<Vec<u32>> {
        self.free_bufs_for(count);
        let taken = self.bufs.take_many(count as usize).ok_or_else(|| self.exhausted("buffers"))?;
        self.taken_by.1.extend(taken.iter().map(|&first| Span { first, count: 1 }));
        self.count();
        Ok(taken)
    }

    /// Ring objects that there are.
    pub fn free_rings(&self) -> usize {
        self.rings.available()
    }

    pub fn free_bufs(&self) -> u32 {
        self.bufs.available() as u32
    }

    /// Buffers that there are, if `wanted` are wanted: what clients have left is counted.
    pub fn free_bufs_for(&mut self, wanted: u32) -> u32 {
        if self.free_bufs() < wanted {
            self.walk_lists(LONG_SLICE);
        }
        self.free_bufs()
    }

    /// The first byte of the buffers that were never taken.
    pub fn fresh_bufs(&self) -> u64 {
        let bufs = &self.region.layout().bufs;
        bufs.offset + u64::from(self.bufs.fresh()) * u64::from(bufs.size)
    }

    /// The request at hand asks for so many buffers beside those of rings.
    pub fn ask(&mut self, bufs: u32) {
        self.asked = bufs;
    }

    /// How many of the buffers, from the first on, a socket is to reach that is opened now, whose rings have so many
    /// slots: all that are taken, and are about to be, and [`ROOM`] for others. The kernel pins their pages, and
    /// prepares each of them.
    pub fn reach(&self, slots: u32) -> u32 {
        let layout = self.region.layout();
        let bufs = &layout.bufs;
        // Without spare buffers nothing else would do.
        if self.brought || layout.max_slots().saturating_sub(slots) < LEAST_SPARES {
            return bufs.total;
        }
        let taken = self.bufs.fresh();
        let wanted = taken.saturating_mul(ROOM).min(taken.max(MOST_ROOM));
        let wanted = wanted.saturating_add(self.asked);
        let end = bufs.offset + u64::from(wanted) * u64::from(bufs.size);
        let room = end.next_multiple_of(HUGE_PAGE) - bufs.offset;
        u32::try_from(room / u64::from(bufs.size)).map_or(bufs.total, |reach| reach.min(bufs.total))
    }

    /// As many buffers as there are, up to `count`; fewer, too, if they are in too many pieces.
    pub fn take_extra_bufs(&mut self, count: u32) -> Vec<Span> {
        let taken = self.bufs.take_spans(count, MAX_SPANS);
        self.taken_by.1.extend(&taken);
        self.count();
        taken
    }

    /// A client has gone: takes back its extra buffers, `granted` once.
    ///
    /// The list that it has left can be long, and in memory that was swapped out. So it is walked in
    /// [slices](Self::walk_lists).
    pub fn return_extra_bufs(&mut self, netif: &NetifView, granted: &[Span]) {
        match netif.extra_bufs() {
            ExtraBufs::AsGranted => {
                for index in granted.iter().flat_map(|span| span.indices()) {
                    self.give_buf(index);
                }
            }
            ExtraBufs::Listed { head } => {
                self.lists.push(head);
                self.walk_lists(SLICE);
            }
        }
    }

    /// Whether there are lists to be walked yet.
    pub fn is_freeing(&self) -> bool {
        !self.lists.is_empty()
    }

    /// Frees what clients have left in their lists, for at most `time` or so. Each ends at anything
    /// that is not a taken buffer.
    pub fn walk_lists(&mut self, time: Duration) {
        let begin = clock::now();
        let mut steps = 0u32;
        while let Some(index) = self.lists.pop() {
            // A client that has gone can still write there: what is read may be anything.
            if let Some(next) = next_extra_buf(&self.region, index)
                && self.give_buf(index)
            {
                self.lists.push(next);
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS) && clock::now().saturating_duration_since(begin) >= time
            {
                return;
            }
        }
    }

    /// Returns a buffer whose index a client may have written: anything but the index of a
    /// taken buffer is ignored. Says whether it was one.
    pub fn give_buf(&mut self, index: u32) -> bool {
        self.bufs.give(index, RESERVED_BUFS)
    }

    /// The request of that number takes from it from now on.
    pub(super) fn begin(&mut self, request: u64) {
        if self.taken_by.0 != request {
            self.taken_by = (request, Vec::new());
            self.asked = 0;
        }
    }

    /// After a panic, while the request of that number was answered: `rings` and `ifs` are all that there are.
    pub(super) fn recount(&mut self, rings: &[&Ring], ifs: &[u32], request: u64) {
        let objects = rings.iter().copied().chain(&self.leaving).map(|ring| ring.kring.object());
        let objects: HashSet<u32> = objects.collect();
        self.rings.retain(0, |object| objects.contains(&object));
        self.ifs.retain(0, |object| ifs.contains(&object));
        // Where a buffer is that was taken before only clients know.
        let (by, taken) = std::mem::take(&mut self.taken_by);
        if by == request && !taken.is_empty() {
            let of_ring = |ring: &&Ring| {
                let view = ring.kring.ring();
                let slots = (0..view.num_slots()).map(|i| view.slot(i).buf_idx);
                slots.chain(ring.spares.iter().copied()).collect::<Vec<_>>()
            };
            let used: HashSet<u32> = rings.iter().flat_map(of_ring).collect();
            let lost = taken.iter().flat_map(|span| span.indices());
            lost.filter(|index| !used.contains(index)).for_each(|index| {
                self.give_buf(index);
            });
        }
    }

    fn exhausted(&self, what: &str) -> Error {
        let mem_id = self.region.mem_id();
        let error = Error::no_memory(format!("region {mem_id} has not enough {what} left"));
        let fewer = "close ports that share it, or ask for fewer rings, slots or extra buffers";
        match mem_id {
            GLOBAL_ID => error.remedy(fewer),
            // A port of a switch has room for few pipes.
            _ => error.remedy(format!(
                "{fewer}; or open the port, of a pipe the one that it is a pipe of, in the region that your ports \
                 share, which has more: NAME@{GLOBAL_ID}"
            )),
        }
    }
}
