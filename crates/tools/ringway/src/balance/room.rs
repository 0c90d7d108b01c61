//! Where the port is whose packets are shared out: its pipes lie in the same memory.

use crate::error::Result;
use ringway::{FileSpec, OpenOptions, PortSpec};

/// Pipes that the region of a switch's port has room for.
const IN_A_REGION_OF_ITS_OWN: u32 = 2;

/// The region that the ports of a user share.
const SHARED: u16 = 1;

/// Has `port` opened where there is room for so many pipes of it: a port of a switch is in a region of its own
/// otherwise, unless its name says in which.
pub fn with_room(options: OpenOptions, port: &str, pipes: u32) -> Result<OpenOptions> {
    if pipes <= IN_A_REGION_OF_ITS_OWN || FileSpec::is_file(port) {
        return Ok(options);
    }
    let PortSpec { name, registration, share, .. } = PortSpec::parse(port)?;
    let is_free = registration.mem_id == 0 && share.is_none();
    Ok(if is_free && name.contains(':') { options.region(SHARED) } else { options })
}
