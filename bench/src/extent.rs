//! How much is measured.

/// Packets in a sync where the experiment is not about the batch.
pub const BATCH: usize = 256;

/// How much of a curve is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every point.
    Whole,
    /// A few points, to see that it works.
    Quick,
}
