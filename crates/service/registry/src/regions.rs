//! The book of regions: which exist, and whose they are.

use std::{collections::HashMap, ops::RangeInclusive, sync::Arc};

use ringway_kring::SignalAllowance;
use ringway_nic_setup::{Interface, ZERO_COPY_CHUNK, zero_copy_room};
use ringway_proto::{Cause, Error, Extmem, RegionInfo, RegionPosition, Result};
use ringway_region::{
    Layout, LayoutError, MAX_BUFS, MAX_IF_SIZE, MAX_RINGS, MAX_SPARES, NetifView, Region, Sizes,
};

use crate::{
    accounts::Accounts, caller::Caller, charge::Charges, host_rings::MAX_HOST_RINGS,
    options::sizes, page::page, port::Ring, retired::Retired,
};

mod book;
mod freeing;
mod limits;

pub(crate) use book::RegionBook;

/// Id of every user's global region (S-MEM-2).
pub(crate) const GLOBAL_ID: u16 = 1;

/// Bytes of a buffer that a port may ask for: with the headroom of NICs, and what a slot's length tells.
const BUF_SIZES: RangeInclusive<u32> = 512..=65_536;

/// Bytes of a region in a list, at most.
const REGION_BYTES: usize = 58;

/// Which region: the global one of a user, or any other by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RegionKey {
    Global { uid: u32 },
    Private { mem_id: u16 },
}

pub(crate) struct Regions {
    books: HashMap<RegionKey, RegionBook>,
    retired: Retired,
    /// Memory in no region.
    charges: Charges,
    last_id: u16,
    global: Sizes,
    limit: u64,
    accounts: Arc<Accounts>,
    /// What signals of doorbells may take, of each account that has any.
    signals: HashMap<u32, Arc<SignalAllowance>>,
    /// Requests so far.
    request: u64,
    /// Some memory has been freed since that was last [asked](Self::take_freed).
    freed: bool,
}

impl Regions {
    /// No regions. `global`: what a user's global region has; `limit`: bytes that one user may ask for
    /// in all of his regions together.
    pub fn new(global: Sizes, limit: u64) -> Regions {
        Regions {
            books: HashMap::new(),
            retired: Retired::default(),
            charges: Charges::default(),
            last_id: 0,
            global,
            limit,
            accounts: Arc::default(),
            signals: HashMap::new(),
            request: 0,
            freed: false,
        }
    }

    /// The same, where users share accounts.
    pub fn with_accounts(self, accounts: Arc<Accounts>) -> Regions {
        Regions { accounts, ..self }
    }

    /// The region that `mem_id` names for user `uid`; other users' regions do not exist
    /// (S-MEM-3). The global region comes into being when it is first asked for.
    pub fn by_id(&mut self, mem_id: u16, uid: u32) -> Result<RegionKey> {
        if mem_id == GLOBAL_ID {
            return self.global(uid);
        }
        self.check_id(mem_id, uid).map(|()| RegionKey::Private { mem_id })
    }

    /// EINVAL if a user has no region of that id.
    pub fn check_id(&self, mem_id: u16, uid: u32) -> Result<()> {
        match self.books.get(&RegionKey::Private { mem_id }) {
            _ if mem_id == GLOBAL_ID => Ok(()),
            Some(book) if book.uid == uid => Ok(()),
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

    /// The region of a NIC's port that asks for no other: the user's global one, or, where its driver receives
    /// into buffers itself and those of the global region do not hold what it does, one whose buffers
    /// do. A port with so many `rings`, each of so many `slots`, that these are too small has a
    /// [large](Self::large) one.
    pub fn of_nic(
        &mut self,
        interface: &Interface,
        rings: u32,
        slots: u32,
        uid: u32,
    ) -> Result<RegionKey> {
        let fits = |size| interface.longest_frame() <= zero_copy_room(size);
        let zero_copy = interface.zero_copy && !fits(self.global.buf_size) && fits(ZERO_COPY_CHUNK);
        // With one host ring each way.
        if NetifView::size_with(rings + 2) > self.global.if_size {
            let buf_size = if zero_copy { ZERO_COPY_CHUNK } else { self.global.buf_size };
            return self.large(buf_size, rings, slots, uid);
        }
        match zero_copy {
            true => self.with_buffers(ZERO_COPY_CHUNK, uid),
            false => self.global(uid),
        }
    }

    /// A region of a user for NICs with very many rings, as large as the limits of a region are: its memory is there
    /// when it is used. NICs share it as long as it has ring objects for all of them, so that buffers can go from one to
    /// another.
    fn large(&mut self, buf_size: u32, rings: u32, slots: u32, uid: u32) -> Result<RegionKey> {
        let rings = rings + 2 * u32::from(MAX_HOST_RINGS);
        let has_room = |book: &RegionBook| {
            book.large
                && book.uid == uid
                && book.region.layout().bufs.size == buf_size.next_multiple_of(64)
                && book.free_rings() >= rings as usize
        };
        if let Some((&key, _)) = self.books.iter().find(|(_, book)| has_room(book)) {
            return Ok(key);
        }
        let buf_num = MAX_RINGS.saturating_mul(slots.saturating_add(MAX_SPARES));
        let sizes = Sizes {
            if_size: MAX_IF_SIZE,
            ring_num: MAX_RINGS,
            buf_size,
            buf_num: buf_num.clamp(self.global.buf_num.min(MAX_BUFS), MAX_BUFS),
            ..self.global
        };
        let mem_id = self.next_id()?;
        let key = RegionKey::Private { mem_id };
        self.add(key, mem_id, uid, layout_of(&sizes, ringway_xdp::RX_HEADROOM)?)?;
        self.get(key).large = true;
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

    /// ENOMEM if the user may not have such a region.
    pub fn check_private(&self, uid: u32, sizes: &Sizes) -> Result<()> {
        self.check_limit(uid, &layout_of(sizes, 0)?)
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
        let signals = self.signals_of(uid);
        self.books.insert(key, RegionBook::new(region, uid, signals));
        Ok(())
    }

    /// What the doorbells of all regions share that are of the account of user `uid`.
    fn signals_of(&mut self, uid: u32) -> Arc<SignalAllowance> {
        // Those that nothing is charged to any more.
        self.signals.retain(|_, signals| Arc::strong_count(signals) > 1);
        self.signals.entry(self.accounts.of(uid)).or_default().clone()
    }

    /// The book of a region that a port holds.
    #[expect(clippy::expect_used, reason = "ports hold their regions, and keys come from ports")]
    pub fn get(&mut self, key: RegionKey) -> &mut RegionBook {
        crate::fault::step();
        let book = self.books.get_mut(&key).expect("a port holds its region");
        book.begin(self.request);
        book
    }

    /// What is taken from now on another request takes.
    pub fn begin_request(&mut self) {
        self.request += 1;
    }

    /// After a panic: `rings`, `ifs` and `ports` are all that there are in the region. What is taken beyond
    /// that is free again, as far as it can be told.
    pub fn recount(&mut self, key: RegionKey, rings: &[&Ring], ifs: &[u32], ports: u32) {
        let Some(book) = self.books.get_mut(&key) else { return };
        book.ports = ports;
        match ports {
            0 => self.drop_unused(key),
            _ => book.recount(rings, ifs, self.request),
        }
    }

    /// Ports that hold a region, and the objects of rings and interfaces that are taken of it.
    #[cfg(feature = "faults")]
    pub fn taken(&self, key: RegionKey) -> (u32, usize, usize) {
        self.books.get(&key).map_or((0, 0, 0), |book| {
            let (rings, ifs) = book.taken_objects();
            (book.ports, rings, ifs)
        })
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

    /// Regions that have lost pages.
    pub fn lost(&self) -> Vec<RegionKey> {
        let lost = self.books.iter().filter(|(_, book)| book.region.has_lost_pages());
        lost.map(|(&key, _)| key).collect()
    }

    /// The id of a region, and whose it is.
    pub fn owner(&self, key: RegionKey) -> Option<(u16, u32)> {
        self.books.get(&key).map(|book| (book.region.mem_id(), book.uid))
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
            asked: book.charge(),
        };
        let place = |book: &&RegionBook| (book.uid, book.region.mem_id());
        let is_due = |book: &&RegionBook| place(book) >= (from.uid, from.mem_id);
        let mut all: Vec<_> = self.books.values().filter(is_due).collect();
        all.sort_by_key(place);
        let position = |r: &RegionInfo| RegionPosition { uid: r.uid, mem_id: r.mem_id };
        page(all.into_iter().map(info).map(|r| (position(&r), r)), |_| REGION_BYTES)
    }
}

fn layout_of(sizes: &Sizes, headroom: u32) -> Result<Layout> {
    Layout::new(sizes, headroom).map_err(|e| Error::no_memory(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{limits::ROOM, *};
    use crate::accounts::UidRange;

    /// The time for signals is an account's, however many regions and users it has.
    #[test]
    fn users_of_an_account_share_the_time_for_signals() {
        let range = UidRange { first: 1000, count: 10, owner: 7 };
        let accounts = Arc::new(Accounts::new(vec![range]));
        let mut regions = Regions::new(Sizes::GLOBAL, 1 << 30).with_accounts(accounts);
        let mut signals = |uid, buf_size| {
            let region = regions.with_buffers(buf_size, uid).unwrap();
            regions.get(region).signals.clone()
        };
        let [mine, others] = [7, 8].map(|uid| signals(uid, 2048));
        assert!(!Arc::ptr_eq(&mine, &others));
        for (uid, buf_size) in [(7, 4096), (1003, 2048), (1004, 4096)] {
            assert!(Arc::ptr_eq(&mine, &signals(uid, buf_size)), "{uid}");
        }
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

    /// NICs with more rings than an interface object of the global region has room for share a region, as long as that
    /// has ring objects for all of them.
    #[test]
    fn nics_with_many_rings_have_a_larger_region() {
        let mut regions = Regions::new(Sizes::GLOBAL, 4 << 30);
        let mut large = |rings| {
            let key = regions.large(2048, rings, 1024, 7).unwrap();
            let book = regions.get(key);
            let taken = (0..rings).map(|_| book.take_ring().unwrap()).count();
            assert_eq!(taken as u32, rings);
            (key, NetifView::fits(&book.region, rings as usize + 2 * usize::from(MAX_HOST_RINGS)))
        };
        let (first, second, third) = (large(2 * 224), large(2 * 224), large(2 * 64));
        assert!(first.1 && second.1 && third.1);
        assert_eq!(first.0, second.0);
        assert_ne!(first.0, third.0);
        assert_ne!(regions.with_buffers(2048, 7).unwrap(), first.0);
        let layout = *regions.get(first.0).region.layout();
        assert_eq!((layout.headroom, layout.bufs.size), (256, 2048));
        assert!(layout.bufs.total >= 2 * 224 * (1024 + MAX_SPARES));
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
