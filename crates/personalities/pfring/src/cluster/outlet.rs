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

    /// The name by which the member opens its end: to receive alone where nothing can be sent.
    pub fn other(&self, sends: bool) -> String {
        let flags = if sends { "" } else { RECEIVE_ONLY };
        format!("netmap:{}{flags}", other_end(self.port.name()))
    }
}

fn open(name: &str) -> Result<Port, Error> {
    Port::options().exclusive().open(name)
}

/// What follows the name of a port that is opened to receive alone.
const RECEIVE_ONLY: &str = "/R";

/// The name of a pipe's other end, without flags.
pub fn other_end(name: &str) -> String {
    let name = name.strip_suffix(RECEIVE_ONLY).unwrap_or(name);
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
