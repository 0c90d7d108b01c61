//! What the daemon tells of ports, switches and rings.

use ringway::{BridgeInfo, Control, PortInfo, RingInfo};
use std::time::Instant;

/// What there was at one time.
pub struct Sample {
    pub at: Instant,
    pub switches: Vec<BridgeInfo>,
    pub ports: Vec<(PortInfo, Vec<RingInfo>)>,
}

impl Sample {
    /// Asks for all of it.
    pub fn take(control: &Control) -> Taken {
        let at = Instant::now();
        let rings = |port: PortInfo| {
            // One that has gone meanwhile has none.
            let rings = control.rings(&port).unwrap_or_default();
            (port, rings)
        };
        let ports = control.ports()?.into_iter().map(rings).collect();
        Ok(Sample { at, switches: control.switches()?, ports })
    }
}

/// A sample, or why there is none.
pub type Taken = std::result::Result<Sample, ringway::Error>;
