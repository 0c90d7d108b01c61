//! What the users' memory counts for, and how much each may have.

use ringway_proto::{Error, Result};
use ringway_region::Layout;

use super::{RegionBook, RegionKey, Regions};
use crate::charge::Charge;

/// How much larger than what a user may ask for at once the regions may be that it is in: a program can
/// write to all of its region, and mostly does not.
pub(super) const ROOM: u64 = 4;

impl Regions {
    /// ENOMEM if the user may not have a region of that layout as well.
    pub(super) fn check_limit(&self, uid: u32, layout: &Layout) -> Result<()> {
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
        let account = self.accounts.of(uid);
        let used = self.books_of(uid).map(RegionBook::charge).sum::<u64>();
        let used = used.saturating_add(self.charges.of(account));
        let held = self.retired.resident(account);
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

    /// Puts memory that is in no region on a user's account. ENOMEM as in [`check_asked`](Self::check_asked).
    pub fn charge(&mut self, uid: u32, bytes: u64) -> Result<Charge> {
        if bytes > 0 {
            self.check_asked(uid, bytes)?;
        }
        Ok(self.charges.add(self.accounts.of(uid), bytes))
    }

    /// The same of what was charged before it was known how much it takes.
    pub fn recharge(&mut self, uid: u32, before: Charge, bytes: u64) -> Result<Charge> {
        drop(before);
        self.charge(uid, bytes)
    }

    /// The same, of a region.
    pub fn check_asked_of(&self, key: RegionKey, more: u64) -> Result<()> {
        let owner = self.books.get(&key).map(|book| book.uid);
        owner.map_or(Ok(()), |uid| self.check_asked(uid, more))
    }

    /// The regions of a user and of those who share the user's account.
    pub(super) fn books_of(&self, uid: u32) -> impl Iterator<Item = &RegionBook> {
        let account = self.accounts.of(uid);
        self.books.values().filter(move |book| self.accounts.of(book.uid) == account)
    }

    /// The account that a region counts for.
    pub fn account_of(&self, key: RegionKey) -> u32 {
        self.accounts.of(self.books.get(&key).map_or(0, |book| book.uid))
    }

    /// Whether a region counts for an account.
    pub fn is_of(&self, key: RegionKey, account: u32) -> bool {
        self.books.get(&key).is_some_and(|book| self.accounts.of(book.uid) == account)
    }

    /// How many regions user `uid` has, with those who share the user's account.
    pub fn of(&self, uid: u32) -> usize {
        self.books_of(uid).count() + self.retired.of(self.accounts.of(uid))
    }
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
