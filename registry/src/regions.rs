//! The book of regions: which exist, whose they are, which of their objects are taken.

use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ringway_proto::{Cause, Error, Extmem, RegionInfo, RegionPosition, Result};
use ringway_region::{
    BLOCK_SIZE, ExtraBufs, Layout, LayoutError, MAX_BUFS, NetifView, Pool, Region, Sizes, Span,
    next_extra_buf,
};

use crate::{
    accounts::Accounts,
    options::sizes,
    page::page,
    port::{Ring, free_ring},
    registry::Caller,
    retired::Retired,
};

/// Buffers that are never handed out (S-MEM-4).
const RESERVED_BUFS: u32 = 2;
/// Id of every user's global region (S-MEM-2).
pub(crate) const GLOBAL_ID: u16 = 1;

/// Bytes of a buffer that a port may ask for: with the headroom of NICs, and what a slot's length tells.
const BUF_SIZES: RangeInclusive<u32> = 512..=65_536;

/// How much larger than what a user may ask for at once the regions may be that it is in: a program can
/// write to all of its region, and mostly does not.
const ROOM: u64 = 4;

/// Bytes of a region beyond which freeing it holds up whoever does it.
const LARGE: u64 = 64 << 20;

/// Pieces that extra buffers are granted in, at most: an answer has to hold them.
const MAX_SPANS: usize = 16_384;

/// How long the lists of extra buffers are walked, at a time; and, if a client waits for buffers.
const SLICE: Duration = Duration::from_millis(1);
const LONG_SLICE: Duration = Duration::from_millis(10);
/// Buffers of a list between two looks at the clock.
const STEPS: u32 = 1024;

/// Bytes of a region in a list, at most.
const REGION_BYTES: usize = 48;

/// Which region: the global one of a user, or any other by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RegionKey {
    Global { uid: u32 },
    Private { mem_id: u16 },
}

/// A region with the book of its objects.
pub(crate) struct RegionBook {
    pub region: Arc<Region>,
    uid: u32,
    /// A program's memory is copied into it.
    brought: bool,
    /// What that memory was; see [`Extmem::same`].
    origin: Option<(u64, u64, u64)>,
    /// It is for all ports of the user that ask for buffers of its size.
    shared: bool,
    ports: u32,
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
}

/// Counts of objects.
#[derive(Clone, Copy, Default)]
struct Taken {
    ifs: usize,
    rings: usize,
    bufs: usize,
}

impl RegionBook {
    fn new(region: Region, uid: u32) -> RegionBook {
        let none = || Pool::new(0, 0);
        let mut book = RegionBook {
            region: Arc::new(region),
            uid,
            brought: false,
            origin: None,
            shared: false,
            ports: 0,
            ifs: none(),
            rings: none(),
            bufs: none(),
            leaving: Vec::new(),
            lists: Vec::new(),
            taken_by: (0, Vec::new()),
            most: Taken::default(),
        };
        book.clear();
        book
    }

    /// All objects are free, whoever had them.
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
    fn charge(&self) -> u64 {
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
        let begin = Instant::now();
        let mut steps = 0u32;
        while let Some(index) = self.lists.pop() {
            // A client that has gone can still write there: what is read may be anything.
            if let Some(next) = next_extra_buf(&self.region, index)
                && self.give_buf(index)
            {
                self.lists.push(next);
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS) && begin.elapsed() >= time {
                return;
            }
        }
    }

    /// Returns a buffer whose index a client may have written: anything but the index of a
    /// taken buffer is ignored. Says whether it was one.
    pub fn give_buf(&mut self, index: u32) -> bool {
        self.bufs.give(index, RESERVED_BUFS)
    }

    fn exhausted(&self, what: &str) -> Error {
        Error::no_memory(format!(
            "region {} has not enough {what} left; close ports that share it, or ask for \
             fewer rings, slots or extra buffers",
            self.region.mem_id()
        ))
    }
}

pub(crate) struct Regions {
    books: HashMap<RegionKey, RegionBook>,
    retired: Retired,
    last_id: u16,
    global: Sizes,
    limit: u64,
    accounts: Arc<Accounts>,
    /// Requests so far.
    request: u64,
}

impl Regions {
    /// No regions. `global`: what a user's global region has; `limit`: bytes that one user may ask for
    /// in all of his regions together.
    pub fn new(global: Sizes, limit: u64) -> Regions {
        let (books, retired, accounts) = (HashMap::new(), Retired::default(), Arc::default());
        Regions { books, retired, last_id: 0, global, limit, accounts, request: 0 }
    }

    /// The same, where users share accounts.
    pub fn with_accounts(self, accounts: Arc<Accounts>) -> Regions {
        Regions { accounts, ..self }
    }

    /// ENOMEM if the user may not have a region of that layout as well.
    fn check_limit(&self, uid: u32, layout: &Layout) -> Result<()> {
        let account = self.accounts.of(uid);
        self.retired.check(account)?;
        let used: u64 = self.books_of(uid).map(|book| book.region.layout().total()).sum();
        let held = self.retired.bytes(account);
        let used = used.saturating_add(held);
        let room = self.limit.saturating_mul(ROOM);
        if used.saturating_add(layout.total()) > room {
            return Err(Error::no_memory(format!(
                "a region of {} MiB more would exceed the {} MiB that the regions of a user may \
                 have, of which {} MiB are in use{}",
                mib(layout.total()),
                mib(room),
                mib(used),
                match held {
                    0 => String::new(),
                    held => format!(
                        ", {} MiB of them by programs that hold memory although the ports are closed",
                        mib(held)
                    ),
                }
            ))
            .remedy(
                "close ports, end programs that keep memory of closed ones, open ports in a region \
                 that there is, or raise memory_per_user in the daemon's configuration",
            ));
        }
        self.check_asked(uid, 0)
    }

    /// ENOMEM if the user may not ask for `more` bytes of rings and buffers as well.
    pub fn check_asked(&self, uid: u32, more: u64) -> Result<()> {
        let used: u64 = self.books_of(uid).map(RegionBook::charge).sum();
        let held = self.retired.resident(self.accounts.of(uid));
        if used.saturating_add(held).saturating_add(more) <= self.limit {
            return Ok(());
        }
        if held > 0 {
            return Err(Error::no_memory(format!(
                "rings and buffers of {} MiB, and {} MiB that programs hold although the ports are \
                 closed, would exceed the {} MiB that each user may have",
                mib(used.saturating_add(more)),
                mib(held),
                mib(self.limit)
            ))
            .remedy(
                "end those programs, or let them unmap the memory, or raise memory_per_user in the \
                 daemon's configuration",
            ));
        }
        Err(Error::no_memory(format!(
            "rings and buffers of {} MiB would exceed the {} MiB that each user may have; close \
             ports, ask for fewer rings, slots or extra buffers, or raise memory_per_user in the \
             daemon's configuration",
            mib(used.saturating_add(more)),
            mib(self.limit)
        )))
    }

    /// The same, of a region.
    pub fn check_asked_of(&self, key: RegionKey, more: u64) -> Result<()> {
        let owner = self.books.get(&key).map(|book| book.uid);
        owner.map_or(Ok(()), |uid| self.check_asked(uid, more))
    }

    /// The regions of a user and of those who share the user's account.
    fn books_of(&self, uid: u32) -> impl Iterator<Item = &RegionBook> {
        let account = self.accounts.of(uid);
        self.books.values().filter(move |book| self.accounts.of(book.uid) == account)
    }

    /// The region that `mem_id` names for user `uid`; other users' regions do not exist
    /// (S-MEM-3). The global region comes into being when it is first asked for.
    pub fn by_id(&mut self, mem_id: u16, uid: u32) -> Result<RegionKey> {
        if mem_id == GLOBAL_ID {
            return self.global(uid);
        }
        let key = RegionKey::Private { mem_id };
        match self.books.get(&key) {
            Some(book) if book.uid == uid => Ok(key),
            _ => Err(Error::invalid(format!("there is no region {mem_id}"))
                .remedy("`ringway ports` shows the ids in use")),
        }
    }

    /// The user's global region. Its rings carry the AF_XDP headroom, so that buffers can go
    /// from one NIC to another.
    pub fn global(&mut self, uid: u32) -> Result<RegionKey> {
        let key = RegionKey::Global { uid };
        if !self.books.contains_key(&key) {
            let sizes = self.global;
            self.add(key, GLOBAL_ID, uid, layout_of(&sizes, ringway_xdp::RX_HEADROOM)?)?;
        }
        Ok(key)
    }

    /// The region of all ports of a user that ask for buffers of `size` bytes, so that buffers can go
    /// from one NIC to another there, too. It has as much memory as the user's global region, which it
    /// is where that has such buffers.
    pub fn with_buffers(&mut self, size: u32, uid: u32) -> Result<RegionKey> {
        if !BUF_SIZES.contains(&size) || !size.is_multiple_of(64) {
            return Err(Error::invalid(format!(
                "buffers of {size} bytes: a buffer has {} to {}, a multiple of 64; AF_XDP takes \
                 powers of two from 2048 up to a page",
                BUF_SIZES.start(),
                BUF_SIZES.end()
            )));
        }
        if self.global.buf_size.next_multiple_of(64) == size {
            return self.global(uid);
        }
        let fits = |book: &RegionBook| {
            book.shared && book.uid == uid && book.region.layout().bufs.size == size
        };
        if let Some((&key, _)) = self.books.iter().find(|(_, book)| fits(book)) {
            return Ok(key);
        }
        let memory = u64::from(self.global.buf_size) * u64::from(self.global.buf_num);
        let buf_num = (memory / u64::from(size)).clamp(4, MAX_BUFS.into()) as u32;
        let mem_id = self.next_id()?;
        let key = RegionKey::Private { mem_id };
        let sizes = Sizes { buf_size: size, buf_num, ..self.global };
        self.add(key, mem_id, uid, layout_of(&sizes, ringway_xdp::RX_HEADROOM)?)?;
        self.get(key).shared = true;
        Ok(key)
    }

    /// The region in the memory that the caller brings: the one that is there already, or a new
    /// one (S-EXT).
    pub fn external(
        &mut self,
        caller: &Caller,
        asked: &mut Extmem,
        headroom: u32,
    ) -> Result<RegionKey> {
        let sizes = sizes(&mut asked.sizes);
        let memory = asked.memory;
        let same = |book: &RegionBook| {
            let memfd = book.region.identity().map(|(dev, inode)| (dev, inode, 0));
            let is_same = book.origin == asked.same || memfd == asked.same;
            // It will be mapped where the caller's memory is: it must not be longer.
            let pages = |bytes: u64| bytes.div_ceil(4096);
            let fits = pages(book.region.layout().memsize()) <= pages(memory);
            book.uid == caller.uid && is_same && fits
        };
        // S-EXT-3.
        if asked.same.is_some()
            && let Some((&key, book)) = self.books.iter().find(|(_, book)| same(book))
        {
            asked.mem_id = book.region.mem_id();
            asked.copy_from = None;
            return Ok(key);
        }
        let layout = Layout::within(memory, &sizes, headroom).map_err(|e| {
            let cause = match e {
                LayoutError::Memory { .. } | LayoutError::Endless { .. } => Cause::NoRoom,
                _ => Cause::Invalid,
            };
            Error::new(cause, format!("memory of your own: {e}"))
        })?;
        // Its memory is about to be copied: all of it counts.
        self.check_asked(caller.uid, layout.total())?;
        let mem_id = self.next_id()?;
        let key = RegionKey::Private { mem_id };
        self.add(key, mem_id, caller.uid, layout)?;
        let book = self.get(key);
        (book.brought, book.origin) = (true, asked.same);
        asked.mem_id = mem_id;
        asked.copy_from = Some(0);
        Ok(key)
    }

    /// A new region of the given sizes.
    pub fn private(&mut self, uid: u32, sizes: &Sizes) -> Result<RegionKey> {
        let mem_id = self.next_id()?;
        let key = RegionKey::Private { mem_id };
        self.add(key, mem_id, uid, layout_of(sizes, 0)?)?;
        Ok(key)
    }

    fn next_id(&mut self) -> Result<u16> {
        for _ in 0..=u16::MAX {
            self.last_id = self.last_id.wrapping_add(1);
            let free = !self.books.contains_key(&RegionKey::Private { mem_id: self.last_id });
            if free && self.last_id > GLOBAL_ID {
                return Ok(self.last_id);
            }
        }
        Err(Error::no_memory("all 65534 region ids are in use").remedy("close some ports"))
    }

    fn add(&mut self, key: RegionKey, mem_id: u16, uid: u32, layout: Layout) -> Result<()> {
        self.check_limit(uid, &layout)?;
        crate::fault::step();
        let region = Region::create(mem_id, layout).map_err(|e| Error::no_memory(e.to_string()))?;
        self.books.insert(key, RegionBook::new(region, uid));
        Ok(())
    }

    /// The book of a region that a port holds.
    #[expect(clippy::expect_used, reason = "ports hold their regions, and keys come from ports")]
    pub fn get(&mut self, key: RegionKey) -> &mut RegionBook {
        crate::fault::step();
        let book = self.books.get_mut(&key).expect("a port holds its region");
        if book.taken_by.0 != self.request {
            book.taken_by = (self.request, Vec::new());
        }
        book
    }

    /// What is taken from now on another request takes.
    pub fn begin_request(&mut self) {
        self.request += 1;
    }

    /// After a panic: `rings`, `ifs` and `ports` are all that there are in the region. What is taken beyond
    /// that is free again, as far as it can be told.
    pub fn recount(&mut self, key: RegionKey, rings: &[&Ring], ifs: &[u32], ports: u32) {
        let request = self.request;
        let Some(book) = self.books.get_mut(&key) else { return };
        book.ports = ports;
        if ports == 0 {
            return self.drop_unused(key);
        }
        let objects = rings.iter().copied().chain(&book.leaving).map(|ring| ring.kring.object());
        let objects: HashSet<u32> = objects.collect();
        book.rings.retain(0, |object| objects.contains(&object));
        book.ifs.retain(0, |object| ifs.contains(&object));
        // Where a buffer is that was taken before only clients know.
        let (by, taken) = std::mem::take(&mut book.taken_by);
        if by == request && !taken.is_empty() {
            let of_ring = |ring: &&Ring| {
                let view = ring.kring.ring();
                (0..view.num_slots()).map(|i| view.slot(i).buf_idx).collect::<Vec<_>>()
            };
            let used: HashSet<u32> = rings.iter().flat_map(of_ring).collect();
            let lost = taken.iter().flat_map(|span| span.indices());
            lost.filter(|index| !used.contains(index)).for_each(|index| {
                book.give_buf(index);
            });
        }
    }

    pub fn has(&self, key: RegionKey) -> bool {
        self.books.contains_key(&key)
    }

    pub fn keys(&self) -> Vec<RegionKey> {
        self.books.keys().copied().collect()
    }

    /// The memory of a region that a port holds.
    #[expect(clippy::expect_used, reason = "ports hold their regions, and keys come from ports")]
    pub fn region(&self, key: RegionKey) -> &Arc<Region> {
        &self.books.get(&key).expect("a port holds its region").region
    }

    /// A port begins to use the region.
    pub fn hold(&mut self, key: RegionKey) {
        self.get(key).ports += 1;
    }

    /// A port stops using the region; the last one takes it with it (S-MEM-2a).
    pub fn release(&mut self, key: RegionKey) {
        let book = self.get(key);
        book.ports -= 1;
        self.drop_unused(key);
    }

    /// Drops a region that no port uses.
    pub fn drop_unused(&mut self, key: RegionKey) {
        if self.books.get(&key).is_some_and(|book| book.ports == 0)
            && let Some(book) = self.books.remove(&key)
        {
            let (region, uid) = (book.region.clone(), book.uid);
            drop(book);
            self.retire(region, uid);
        }
    }

    /// Lets go of a region. Its memory goes, unless somebody else holds it.
    fn retire(&mut self, region: Arc<Region>, uid: u32) {
        let (bytes, account) = (region.layout().total(), self.accounts.of(uid));
        // Without a probe we cannot tell; then it is as good as gone.
        let probe = region.holder_probe().ok();
        match Arc::try_unwrap(region) {
            Ok(region) => {
                let map = region.retire();
                match probe {
                    Some(probe) if probe.is_held() => {
                        free(bytes, map);
                        self.retired.add(account, bytes, probe);
                    }
                    probe => drop(free(bytes, (map, probe))),
                }
            }
            // A worker is about to let go of it: it is looked at again.
            Err(region) => {
                drop(region);
                probe.into_iter().for_each(|probe| self.retired.add(account, bytes, probe));
            }
        }
    }

    /// Forgets the regions without ports that a user's programs hold no more.
    pub fn look_at_retired(&mut self, uid: u32) {
        self.retired.look(Some(self.accounts.of(uid)));
    }

    /// Those of all users, once a second. Returns when to come again.
    pub fn look_from_time_to_time(&mut self) -> Option<Duration> {
        self.retired.look_from_time_to_time()
    }

    /// Regions that have lost pages.
    pub fn lost(&self) -> Vec<RegionKey> {
        let lost = self.books.iter().filter(|(_, book)| book.region.has_lost_pages());
        lost.map(|(&key, _)| key).collect()
    }

    /// The id of a region, and whose it is.
    pub fn owner(&self, key: RegionKey) -> Option<(u16, u32)> {
        self.books.get(&key).map(|book| (book.region.mem_id(), book.uid))
    }

    /// Walks on through the lists that clients have left, for a moment. Whether there was one, and whether
    /// there is more to do.
    pub fn walk_lists(&mut self) -> (bool, bool) {
        let with_list = self.books.values_mut().find(|book| book.is_freeing());
        let walked = with_list.map(|book| book.walk_lists(SLICE)).is_some();
        (walked, self.books.values().any(RegionBook::is_freeing))
    }

    /// Whether there are such lists in regions of an account.
    pub fn is_freeing(&self, account: u32) -> bool {
        self.books.values().any(|book| book.is_freeing() && self.accounts.of(book.uid) == account)
    }

    /// Whether a region counts for an account.
    pub fn is_of(&self, key: RegionKey, account: u32) -> bool {
        self.books.get(&key).is_some_and(|book| self.accounts.of(book.uid) == account)
    }

    /// How many regions user `uid` has, with those who share the user's account.
    pub fn of(&self, uid: u32) -> usize {
        self.books_of(uid).count() + self.retired.of(self.accounts.of(uid))
    }

    /// A page of it, for display.
    pub fn info(&self, from: RegionPosition) -> (Vec<RegionInfo>, Option<RegionPosition>) {
        let info = |book: &RegionBook| RegionInfo {
            mem_id: book.region.mem_id(),
            uid: book.uid,
            ports: book.ports,
            bytes: book.region.layout().memsize(),
            bufs: book.region.layout().bufs.total,
            free_bufs: book.free_bufs(),
        };
        let mut all: Vec<_> = self.books.values().map(info).collect();
        all.sort_by_key(|r| (r.uid, r.mem_id));
        all.retain(|r| (r.uid, r.mem_id) >= (from.uid, from.mem_id));
        let position = |r: &RegionInfo| RegionPosition { uid: r.uid, mem_id: r.mem_id };
        page(all.into_iter().map(|r| (position(&r), r)), |_| REGION_BYTES)
    }
}

fn layout_of(sizes: &Sizes, headroom: u32) -> Result<Layout> {
    Layout::new(sizes, headroom).map_err(|e| Error::no_memory(e.to_string()))
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Drops what holds `bytes` bytes of memory. Pages are freed one by one: many have a thread to do it, so
/// that nobody waits.
pub(crate) fn free<T: Send + 'static>(bytes: u64, memory: T) -> Option<thread::JoinHandle<()>> {
    if bytes < LARGE {
        return None;
    }
    // Where there can be no thread, we free it ourselves.
    thread::Builder::new().name("free".into()).spawn(move || drop(memory)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_large_region_to_be_freed() {
        let made = |bufs| {
            let sizes = Sizes { buf_num: bufs, ..Sizes::PRIVATE };
            Arc::new(Region::create(2, Layout::new(&sizes, 0).unwrap()).unwrap())
        };
        let is_mapped = |region: &std::sync::Weak<Region>| region.strong_count() > 0;
        let (small, large) = (made(1000), made(100_000));
        let seen = [&small, &large].map(Arc::downgrade);
        let bytes = |region: &Region| region.layout().total();
        assert!(free(bytes(&small), small).is_none() && !is_mapped(&seen[0]));
        free(bytes(&large), large).expect("a thread").join().unwrap();
        assert!(!is_mapped(&seen[1]));
    }

    #[test]
    fn buffers_of_a_size_are_in_one_region() {
        let mut regions = Regions::new(Sizes::GLOBAL, 1 << 30);
        assert_eq!(regions.with_buffers(2048, 7).unwrap(), RegionKey::Global { uid: 7 });
        let mine = regions.with_buffers(4096, 7).unwrap();
        assert_eq!(regions.with_buffers(4096, 7).unwrap(), mine);
        assert_ne!(regions.with_buffers(4096, 8).unwrap(), mine);
        let layout = *regions.get(mine).region.layout();
        assert_eq!((layout.headroom, layout.bufs.size), (256, 4096));
        assert_eq!(layout.bufs.total * 2, Sizes::GLOBAL.buf_num, "as much memory");
        // Others' memory of such buffers is none of it.
        regions.private(7, &Sizes { buf_size: 1024, ..Sizes::PRIVATE }).unwrap();
        let small = regions.with_buffers(1024, 7).unwrap();
        assert_eq!(regions.get(small).region.layout().headroom, 256);
        for bad in [0, 100, 511, 513, 4095, 65_600, u32::MAX] {
            assert_eq!(regions.with_buffers(bad, 7).unwrap_err().cause, Cause::Invalid, "{bad}");
        }
        let most = regions.with_buffers(512, 8).unwrap();
        assert_eq!(regions.get(most).region.layout().bufs.size, 512);
        // Empty regions of three sizes and a private one are there: together they may be as large as
        // ROOM times what the user may ask for, and not larger.
        let held: u64 = regions.books_of(7).map(|book| book.region.layout().total()).sum();
        regions.limit = held / ROOM;
        assert_eq!(regions.with_buffers(8192, 7).unwrap_err().cause, Cause::NoRoom);
        regions.limit = 1 << 30;
        regions.with_buffers(8192, 7).unwrap();
    }

    #[test]
    fn s_mem_2_ids_wrap_and_skip_those_in_use() {
        let mut regions = Regions::new(Sizes::GLOBAL, u64::MAX);
        let mut next = |last: Option<u16>| {
            regions.last_id = last.unwrap_or(regions.last_id);
            match regions.private(0, &Sizes::PRIVATE) {
                Ok(RegionKey::Private { mem_id }) => mem_id,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([next(None), next(None)], [2, 3]);
        assert_eq!([next(Some(u16::MAX - 1)), next(None)], [u16::MAX, 4]);
    }
}
