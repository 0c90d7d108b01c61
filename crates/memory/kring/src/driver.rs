//! What moves the packets of a ring, as a sync sees it.

use crate::kring::Kring;

/// What a sync did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The driver has done what there was to do.
    Done,
    /// Somebody else is syncing this ring; it was left alone.
    Busy,
    /// See [`BadIndex`](crate::BadIndex).
    Reinitialised,
    /// The ring's driver does nothing, now or ever: see [`Driver::fails`].
    Failed,
}

impl Outcome {
    /// Whether `poll` reports it as an error (S-POLL-6).
    pub fn is_error(self) -> bool {
        matches!(self, Outcome::Reinitialised | Outcome::Failed)
    }
}

/// What moves the packets of one ring: the `txsync` or `rxsync` of a kind of port.
///
/// Called with the ring locked and its cursors accepted. A driver hands on or releases the
/// slots up to `head`, and publishes `hwcur` and `hwtail` in the ring's service line, unless
/// somebody else does that for it.
pub trait Driver {
    /// Moves what there is to move, up to the accepted cursors.
    fn sync(&self, kring: &Kring, accepted: Accepted);

    /// Whether a sync is an error: the driver is not called then.
    #[inline]
    fn fails(&self, _kring: &Kring) -> bool {
        false
    }

    /// The tail to tell the program after a sync: an index of the ring.
    #[inline]
    fn tail(&self, kring: &Kring) -> u32 {
        kring.hwtail()
    }
}

/// Cursors that the sync accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The first slot that the program keeps.
    pub head: u32,
    /// Where the program wants to be woken.
    pub cur: u32,
}
