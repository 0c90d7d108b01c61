//! The pipes from the distributor to the members.

use ringway::{Error, Port};

use crate::abi::SLOTS;

/// Slots for what a member sends: fewer than for what it receives, and memory for more members.
const SENDS: u32 = 256;
/// Slots for what a member receives, by what rings of the port's region have room for: PF_RING's, an interface's, a
/// switch port's.
const RECEIVES: [u32; 3] = [SLOTS, 2048, 1024];

/// The distributor's end of a member's pipe.
pub struct Outlet {
    pub queue: u32,
    pub port: Port,
}

impl Outlet {
    /// A pipe that the member has from the distributor before, if it is in the memory of the port; else a new one.
    pub fn open(queue: u32, before: Option<&str>, mem_id: u16) -> Result<Outlet, Error> {
        if let Some(port) = before.and_then(|name| open(&other_end(name)).ok())
            && port.mem_id() == mem_id
        {
            return Ok(Outlet { queue, port });
        }
        let name = format!("netmap:{}{{{queue}", base());
        let options = |slots| Port::options().exclusive().rx_slots(SENDS).tx_slots(slots);
        let near = |slots| options(slots).region(mem_id).open(&name).ok();
        let port = match RECEIVES.into_iter().find_map(near) {
            Some(port) => port,
            // What is in other memory gets copies.
            None => options(SLOTS).open(&name)?,
        };
        Ok(Outlet { queue, port })
    }

    /// The name of the member's end.
    pub fn other(&self) -> String {
        format!("netmap:{}", other_end(self.port.name()))
    }
}

fn open(name: &str) -> Result<Port, Error> {
    Port::options().exclusive().open(name)
}

/// The name of a pipe's other end.
pub fn other_end(name: &str) -> String {
    let other = |c| match c {
        '{' => '}',
        '}' => '{',
        c => c,
    };
    name.chars().map(other).collect()
}

/// A name for pipes that no others have.
fn base() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    format!("pf_ring_{:x}", RandomState::new().build_hasher().finish())
}
