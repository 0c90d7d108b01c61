//! Where packets go out that a ring passes on: an interface, or a port.
//!
//! A port is opened by one ring of a process: a second one would be a monitor, which cannot send. So outlets send by the
//! ring that has it, be it the program's or an outlet's before.

use std::{
    ffi::c_int,
    sync::{Arc, Mutex, Weak},
};

use crate::{
    abi::MAX_CAPLEN,
    device::{self, Element, Target},
    interface::Interface,
    ring::{Ring, lock},
    send::Sender,
};

/// A device that is sent to, and not received from.
pub enum Outlet {
    Interface(Sender),
    /// The program's ring, which it may close, and the device by its place.
    Program(Weak<Ring>, usize),
    /// A ring of outlets alone.
    Port(Arc<Ring>),
}

/// Rings of this process that outlets may send by.
static PROGRAMS: Mutex<Vec<Weak<Ring>>> = Mutex::new(Vec::new());
static OUTLETS: Mutex<Vec<Weak<Ring>>> = Mutex::new(Vec::new());

/// Outlets may send by this ring of the program.
pub fn offer(ring: &Arc<Ring>) {
    let mut rings = lock(&PROGRAMS);
    rings.retain(|ring| ring.strong_count() > 0);
    rings.push(Arc::downgrade(ring));
}

/// A ring with the port, through which packets can be sent, and the port's place in it.
fn find(rings: &[Weak<Ring>], port: &str) -> Option<(Arc<Ring>, usize)> {
    rings.iter().filter_map(Weak::upgrade).find_map(|ring| {
        let is_it = |source: &crate::source::Source| source.name == port && source.sends();
        let place = ring.sources.iter().position(is_it)?;
        Some((ring, place))
    })
}

impl Outlet {
    /// `None` for what is not there, cannot send, or is more than one device.
    pub fn open(device: &str) -> Option<Outlet> {
        let elements = device::parse(device)?;
        let [Element { target, .. }] = &elements[..] else { return None };
        match target {
            Target::Interface(name) => {
                let index = Interface::new(name)?.index()?;
                Sender::new(u32::try_from(index).ok()?).ok().map(Outlet::Interface)
            }
            Target::Port(name) => Outlet::of_port(device, name),
            Target::Any => None,
        }
    }

    fn of_port(device: &str, port: &str) -> Option<Outlet> {
        if let Some((ring, place)) = find(&lock(&PROGRAMS), port) {
            return Some(Outlet::Program(Arc::downgrade(&ring), place));
        }
        let mut outlets = lock(&OUTLETS);
        outlets.retain(|ring| ring.strong_count() > 0);
        if let Some((ring, _)) = find(&outlets, port) {
            return Some(Outlet::Port(ring));
        }
        let ring = Arc::new(Ring::open(device, MAX_CAPLEN, 0).ok()?);
        if !ring.sources.first()?.sends() {
            return None;
        }
        outlets.push(Arc::downgrade(&ring));
        Some(Outlet::Port(ring))
    }

    /// Sends a packet; an error number else.
    pub fn send(&self, packet: &[u8]) -> Result<(), c_int> {
        let by = |ring: &Ring, place: usize| {
            ring.sources.get(place).map_or(Err(libc::ENODEV), |source| source.send(packet))
        };
        match self {
            Outlet::Interface(sender) => sender.send(packet),
            Outlet::Program(ring, place) => {
                ring.upgrade().map_or(Err(libc::ENODEV), |ring| by(&ring, *place))
            }
            Outlet::Port(ring) => by(ring, 0),
        }
    }
}
