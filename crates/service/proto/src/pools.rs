//! The pools of a region.

use ringway_region::PoolShape;
use serde::{Deserialize, Serialize};

/// Where the pools of a region are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pools {
    /// Bytes that programs map.
    pub memsize: u64,
    /// Id of the region.
    pub mem_id: u16,
    /// Interfaces.
    pub ifs: PoolShape,
    /// Rings.
    pub rings: PoolShape,
    /// Buffers.
    pub bufs: PoolShape,
}
