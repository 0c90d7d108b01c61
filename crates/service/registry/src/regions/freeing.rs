//! What comes back: rings, lists of buffers, and whole regions with what programs still hold of them.

use std::{sync::Arc, time::Duration};

use ringway_region::{HolderProbe, Region};

use super::{RegionBook, RegionKey, Regions, book::SLICE};
use crate::{
    free_memory::free,
    port::{Port, Ring, free_ring},
};

impl Regions {
    /// Frees the rings of a port and their buffers.
    pub fn free_rings_of(&mut self, port: &mut Port) {
        let book = self.get(port.region);
        port.take_rings().iter().for_each(|ring| free_ring(book, ring));
    }

    /// Frees rings that are no port's any more, but are counted for the region beside its ports, and lets go
    /// of it.
    pub fn free_leftover(&mut self, key: RegionKey, rings: Vec<Ring>) {
        let book = self.get(key);
        // They hold the region, which may be freed next.
        rings.into_iter().for_each(|ring| free_ring(book, &ring));
        self.release_leftover(key);
    }

    /// Lets go of a region when such rings have been freed.
    pub fn release_leftover(&mut self, key: RegionKey) {
        self.release(key);
        self.freed = true;
    }

    /// Whether some memory has been freed since the last call.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
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
        let resident = probe.as_ref().map_or(bytes, HolderProbe::resident);
        match Arc::try_unwrap(region) {
            Ok(region) => {
                let map = region.retire();
                match probe {
                    Some(probe) if probe.is_held() => {
                        free(resident, map);
                        self.retired.add(account, bytes, probe);
                    }
                    probe => drop(free(resident, (map, probe))),
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

    /// Walks on through the lists that clients have left, for a moment. Whether there is more to do.
    pub fn walk_lists(&mut self) -> bool {
        if let Some(book) = self.books.values_mut().find(|book| book.is_freeing()) {
            book.walk_lists(SLICE);
            self.freed = true;
        }
        self.books.values().any(RegionBook::is_freeing)
    }

    /// Whether there are such lists in regions of an account.
    pub fn is_freeing(&self, account: u32) -> bool {
        self.books.values().any(|book| book.is_freeing() && self.accounts.of(book.uid) == account)
    }
}
