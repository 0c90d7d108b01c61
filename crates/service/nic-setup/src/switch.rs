//! A switch's program in the kernel, which forwards between attached interfaces, and the way of what it
//! leaves to the worker.
//!
//! ```text
//!   interface A --> [switch] --known--> interface B
//!                      |
//!                      '--all else--> a ====== s       a private pair; at `s`: an AF_PACKET socket, the worker's
//! ```
//!
//! The program is one for each switch, attached to each of its interfaces. It goes with the last holder of
//! its [attachment](crate::tc).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::Map;
use ringway_fastpath::{FastPath, Maps};
use ringway_packet::PacketPort;
use serde::{Deserialize, Serialize};

use crate::operation::{AttachSwitchProgram, MakeSwitchProgram};
use crate::pair::{OuterEnd, PairConfig};
use crate::parcel::Fd;
use crate::tc::{Attachment, Hook, Lease};
use crate::{
    Error, INJECTED, Interface, PrivatePair, Source, TxSocket, attached, helper, object,
    packet::{listen, open_messages},
    sys,
};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/switch.bpf.o"));

/// The program in `switch.bpf.c`.
pub(crate) const PROGRAM: &str = "ringway_switch";

/// Bytes that the port of such an interface takes at most to receive into and send from.
pub const SWITCHED_PORT_MEMORY: u64 = 8 << 20;

/// A place that is no port's yet.
const NO_PORT: u32 = u32::MAX;

/// A switch's program, loaded.
pub struct SwitchProgram {
    program: Fd,
    places: Fd,
}

/// The same on its way from the helper, with its table.
#[derive(Serialize, Deserialize)]
pub(crate) struct SwitchParts {
    program: Fd,
    places: Fd,
    /// Of [`Maps`].
    maps: [Fd; 6],
    cpus: usize,
}

/// The names of those.
const MAPS: [&str; 6] = ["table", "seen", "ports", "settings", "begun", "counts"];

/// An interface whose frames the program looks at, as long as this is there or another holds its link.
pub struct SwitchedInterface {
    attachment: Attachment,
    place: Place,
    _pair: PrivatePair,
}

/// What the program knows of an interface, until this is dropped.
struct Place {
    places: Fd,
    ifindex: u32,
    /// The outer end of the pair that leads to the worker.
    slow: u32,
}

impl Place {
    fn set(&self, port: u32) -> io::Result<()> {
        let [port, slow] = [port, self.slow].map(u32::to_ne_bytes);
        sys::map_update(self.places.as_fd(), self.ifindex, &[port, slow].concat())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It fails where there is none.
        let _ = sys::map_delete(self.places.as_fd(), self.ifindex);
    }
}

impl SwitchProgram {
    /// Loads it; and its table, for a worker. `secret` is what the places of addresses depend on. Kernel 5.12
    /// and newer.
    pub fn new(secret: [u64; 2]) -> Result<(SwitchProgram, FastPath), Error> {
        let SwitchParts { program, places, maps, cpus } = helper::run(MakeSwitchProgram)?;
        let [table, seen, ports, settings, begun, counts] = maps.each_ref().map(Fd::as_fd);
        let maps = Maps { table, seen, ports, settings, begun, counts };
        let table = FastPath::new(maps, cpus, secret).map_err(refused(""))?;
        Ok((SwitchProgram { program, places }, table))
    }

    /// Attaches it to an interface of the calling thread's network namespace, whose stack gets nothing any
    /// more. What the program does not forward comes by the port that is returned, and what is delivered
    /// to that is sent; all of it until the interface is [known](SwitchedInterface::set_port) as a port.
    pub fn attach(&self, interface: &Interface) -> Result<(SwitchedInterface, PacketPort), Error> {
        let name = format!("rwport{}", interface.index);
        let outer = OuterEnd::Internal;
        let mtu = interface.mtu;
        let pair = PrivatePair::new(&PairConfig { name: &name, mtu, mac: None, queues: 1, outer })?;
        let rx = pair.inside(|inner| {
            let source = Source {
                interface: &interface.name,
                ifindex: inner.index,
                queue: 0,
                queues: 1,
                ignored_mark: INJECTED,
                hardware_time: false,
            };
            let socket = open_messages(&source)?;
            listen(socket.as_fd(), inner.index, true).map_err(refused(&interface.name))?;
            Ok(socket)
        })?;
        let tx = TxSocket::open(&interface.name, interface.index)?;
        let (longest, index) = (interface.longest_frame(), interface.index);
        let port = PacketPort::beside_program(rx, tx.fd, longest, index);
        let port = port.map_err(refused(&interface.name))?;
        let copy = |fd: &Fd| fd.0.try_clone().map(Fd).map_err(refused(&interface.name));
        let (places, program) = (copy(&self.places)?, copy(&self.program)?);
        let place = Place { places, ifindex: index, slow: pair.outer().index };
        place.set(NO_PORT).map_err(refused(&interface.name))?;
        let lease = Lease::new(interface, Hook::Ingress)?;
        let interface = interface.clone();
        let attachment = helper::run(AttachSwitchProgram { interface, program, lease })?;
        Ok((SwitchedInterface { attachment, place, _pair: pair }, port))
    }
}

impl SwitchedInterface {
    /// It is this port of the switch.
    pub fn set_port(&self, port: u8) {
        // It has an entry, which the kernel changes.
        let _ = self.place.set(port.into());
    }
}

impl Drop for SwitchedInterface {
    fn drop(&mut self) {
        self.attachment.end();
    }
}

pub(crate) fn make_here() -> Result<SwitchParts, Error> {
    let make = || -> io::Result<SwitchParts> {
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| error)?;
        let entries = ringway_fastpath::PORTS * cpus;
        let mut object = object::load_with(OBJECT, "counts", entries as u32)?;
        let program = object::classifier(&mut object, PROGRAM)?;
        let mut map = |name: &str| -> io::Result<Fd> {
            match object.take_map(name) {
                Some(Map::Array(map) | Map::HashMap(map)) => {
                    Ok(Fd(map.fd().as_fd().try_clone_to_owned()?))
                }
                _ => Err(io::Error::other("no such map in the object")),
            }
        };
        let places = map("places")?;
        let maps: Vec<Fd> = MAPS.iter().map(|name| map(name)).collect::<io::Result<_>>()?;
        let maps = maps.try_into().map_err(|_| io::Error::other("a map is missing"))?;
        Ok(SwitchParts { program: Fd(program), places, maps, cpus })
    };
    make().map_err(refused(""))
}

pub(crate) fn attach_here(
    interface: &Interface,
    program: BorrowedFd<'_>,
    lease: Option<Lease>,
) -> Result<Attachment, Error> {
    if let Some(why) = interface.unfit_to_forward() {
        return Err(refused(&interface.name)(io::Error::other(why)));
    }
    attached::check_no_program(interface)?;
    attached::check_no_ingress_drop(interface)?;
    Attachment::new(program, interface, Hook::Ingress, lease)
}

fn refused(interface: &str) -> impl FnOnce(io::Error) -> Error {
    Error::refused(
        interface,
        "no program in the kernel can forward for the switch",
        "the kernel needs to be 5.12 or newer; see `ringway doctor`",
    )
}
