//! Regions whose ports have gone, and which programs still hold: by a descriptor, or a mapping.
//!
//! Their memory stays for as long, so it stays on their users' accounts. The registry does not hear when
//! a program lets go: it looks.

use std::time::{Duration, Instant};

use ringway_proto::{Error, Result};
use ringway_region::HolderProbe;

use crate::{clock, free_memory::free};

/// Such regions of an account, at most: each is looked at with each request of its users.
const MOST: usize = 1024;

/// How often all users' are looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// One of them.
struct Held {
    account: u32,
    /// Bytes that programs can write to.
    bytes: u64,
    probe: HolderProbe,
}

#[derive(Default)]
pub(crate) struct Retired {
    all: Vec<Held>,
    /// When all were looked at.
    looked: Option<Instant>,
}

impl Retired {
    /// A region of `bytes` bytes has no ports any more, and somebody holds it.
    pub fn add(&mut self, account: u32, bytes: u64, probe: HolderProbe) {
        self.all.push(Held { account, bytes, probe });
    }

    /// As [`look`](Self::look) for all of them, once a second. Returns when to come again.
    pub fn look_from_time_to_time(&mut self) -> Option<Duration> {
        if self.all.is_empty() {
            return None;
        }
        let passed =
            self.looked.map_or(LOOK_AGAIN, |looked| clock::now().saturating_duration_since(looked));
        if let Some(left) = LOOK_AGAIN.checked_sub(passed).filter(|left| !left.is_zero()) {
            return Some(left);
        }
        self.look(None);
        self.looked = Some(clock::now());
        (!self.all.is_empty()).then_some(LOOK_AGAIN)
    }

    /// Forgets those of an account that nobody holds any more; of all without one.
    pub fn look(&mut self, account: Option<u32>) {
        let gone = |held: &mut Held| {
            account.is_none_or(|account| account == held.account) && !held.probe.is_held()
        };
        let gone: Vec<_> = self.all.extract_if(.., gone).map(|held| held.probe).collect();
        // All of them at once: they may be many.
        free(gone.iter().map(HolderProbe::resident).sum(), gone);
    }

    fn of_user(&self, account: u32) -> impl Iterator<Item = &Held> {
        self.all.iter().filter(move |held| held.account == account)
    }

    /// How many an account has: each costs a descriptor.
    pub fn of(&self, account: u32) -> usize {
        self.of_user(account).count()
    }

    /// Bytes of an account's that programs can write to.
    pub fn bytes(&self, account: u32) -> u64 {
        self.of_user(account).map(|held| held.bytes).sum()
    }

    /// Bytes of an account's that are in memory.
    pub fn resident(&self, account: u32) -> u64 {
        self.of_user(account).map(|held| held.probe.resident()).sum()
    }

    /// ENOMEM if there are too many to look at.
    pub fn check(&self, account: u32) -> Result<()> {
        if self.of(account) < MOST {
            return Ok(());
        }
        let problem = format!("programs of user {account} hold the memory of {MOST} closed ports");
        Err(Error::no_memory(problem).remedy("end them, or let them unmap it"))
    }
}
