//! Whole frames, in however many slots.

use std::time::Duration;

use ringway::Port;

use crate::packet;

/// Longer than any test waits.
const LIMIT: Duration = Duration::from_secs(30);

/// The next frame that `port` receives by its first ring.
pub fn receive(port: &mut Port) -> Vec<u8> {
    packet::receive(port, 0, LIMIT).0
}
