//! Memory of this process that is in no region: what switches have of interfaces to receive into.
//!
//! It is on its user's account from when there is something in it until that is closed, however it is: a
//! [`Charge`] goes with what it is for.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Bytes of each account.
#[derive(Default)]
pub(crate) struct Charges(HashMap<u32, Arc<AtomicU64>>);

/// Some bytes on an account, until it is dropped: on any thread.
#[derive(Debug, Default)]
pub(crate) struct Charge {
    bytes: u64,
    account: Arc<AtomicU64>,
}

impl Charges {
    /// Puts bytes on an account.
    pub fn add(&mut self, account: u32, bytes: u64) -> Charge {
        self.0.retain(|_, of| Arc::strong_count(of) > 1);
        let account = self.0.entry(account).or_default().clone();
        account.fetch_add(bytes, Relaxed);
        Charge { bytes, account }
    }

    /// What is on an account.
    pub fn of(&self, account: u32) -> u64 {
        self.0.get(&account).map_or(0, |of| of.load(Relaxed))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_on_the_account_as_long_as_their_charge_lives() {
        let mut charges = Charges::default();
        let (first, second) = (charges.add(7, 100), charges.add(7, 20));
        let other = charges.add(8, 3);
        assert_eq!([charges.of(7), charges.of(8), charges.of(9)], [120, 3, 0]);
        drop(first);
        assert_eq!(charges.of(7), 20);
        drop((second, other));
        assert_eq!([charges.of(7), charges.of(8)], [0, 0]);
    }
}
