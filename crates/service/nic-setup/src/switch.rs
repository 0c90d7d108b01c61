//! A switch's program in the kernel, which forwards between attached interfaces, and the way of what it
//! leaves to the worker.
//!
//! ```text
//!   interface A --> [switch] --known--> interface B
//!                      |
//!                      '--all else--> a ====== s       a private pair; at `s`: an AF_PACKET socket, the worker's
//!
//!   stack behind A --> [stack] --known--> interface B, or A
//!                         '--all else--> a pair of its own, by which the worker sends to the stack, too
//! ```
//!
//! The programs are one of each kind for a switch, attached to each of its interfaces. They go with the
//! last holder of their [attachment](crate::tc).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya::maps::Map;
use ringway_fastpath::{FastPath, Maps};
use ringway_packet::{KernelWay, PacketPort};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::host::HostEnd;
use crate::operation::{AttachSwitchProgram, MakeSwitchProgram};
use crate::pair::{OF_PORT, OuterEnd, PairConfig};
use crate::parcel::Fd;
use crate::tc::{Attachment, Hook, Lease};
use crate::{
    Error, INJECTED, InjectMark, Interface, PrivatePair, Promiscuous, Source, TxSocket, attached,
    helper, kept, object,
    packet::{listen, open_messages},
    sys,
};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/switch.bpf.o"));
/// The same for kernels that do not take a program with filters: those before 5.17.
const UNFILTERED: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/switch_unfiltered.bpf.o"));

/// The programs in `switch.bpf.c`: for what an interface receives, and for what the stack sends by it.
pub(crate) const PROGRAM: &str = "ringway_switch";
pub(crate) const STACK_PROGRAM: &str = "ringway_stack";

/// In `places`: the port of the stack.
const OF_STACK: u32 = 1 << 31;

/// Bytes that the port of such an interface takes at most to receive into and send from.
pub const SWITCHED_PORT_MEMORY: u64 = 8 << 20;

/// A place that is no port's yet.
const NO_PORT: u32 = u32::MAX;

/// A switch's programs, loaded.
pub struct SwitchProgram {
    program: Fd,
    stack_program: Fd,
    places: Fd,
}

/// The same on its way from the helper, with its table.
#[derive(Serialize, Deserialize)]
pub(crate) struct SwitchParts {
    program: Fd,
    stack_program: Fd,
    places: Fd,
    /// Of [`Maps`].
    maps: [Fd; 8],
    /// The last of them, where the program interprets filters.
    filters: Option<Fd>,
    cpus: usize,
}

/// The names of those.
const MAPS: [&str; 8] =
    ["table", "seen", "ports", "vlans", "settings", "begun", "counts", "policing"];

/// A port whose frames a program looks at, as long as this is there or another holds its link. `W`: the way
/// from the program to the worker.
pub struct Switched<W> {
    attachment: Attachment,
    /// Of an interface: a network card takes what is for other addresses.
    promiscuous: Option<Promiscuous>,
    /// Both for the next daemon.
    _kept: Option<kept::Kept>,
    place: Place,
    _way: W,
}

/// An interface: what it receives.
pub type SwitchedInterface = Switched<PrivatePair>;

/// The stack behind one: what it sends.
pub type SwitchedStack = Switched<HostEnd>;

/// What the program knows of an interface, or of the stack behind it, until this is dropped.
struct Place {
    places: Fd,
    /// The interface's number, and [`OF_STACK`].
    key: u32,
    /// The outer end of the pair that leads to the worker.
    slow: u32,
}

impl Place {
    fn set(&self, port: u32) -> io::Result<()> {
        let [port, slow] = [port, self.slow].map(u32::to_ne_bytes);
        sys::map_update(self.places.as_fd(), self.key, &[port, slow].concat())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It fails where there is none.
        let _ = sys::map_delete(self.places.as_fd(), self.key);
    }
}

impl SwitchProgram {
    /// Loads them; and their table, for a worker. `secret` is what the places of addresses depend on. Kernel 5.12
    /// and newer.
    pub fn new(secret: [u64; 2]) -> Result<(SwitchProgram, FastPath), Error> {
        let SwitchParts { program, stack_program, places, maps, filters, cpus } =
            helper::run(MakeSwitchProgram)?;
        let [table, seen, ports, vlans, settings, begun, counts, policing] =
            maps.each_ref().map(Fd::as_fd);
        let filters = filters.as_ref().map(Fd::as_fd);
        let maps = Maps { table, seen, ports, vlans, settings, begun, counts, policing, filters };
        let table = FastPath::new(maps, cpus, secret).map_err(refused(""))?;
        Ok((SwitchProgram { program, stack_program, places }, table))
    }

    /// Attaches it to an interface of the calling thread's network namespace, which is promiscuous from now on,
    /// and whose stack gets nothing any more. What the program does not forward comes by the port that is
    /// returned, and what is delivered to that is sent; all of it until the interface is
    /// [known](Switched::set_port) as a port.
    pub fn attach(&self, interface: &Interface) -> Result<(SwitchedInterface, PacketPort), Error> {
        let name = format!("{OF_PORT}{}", interface.index);
        let outer = OuterEnd::Whole;
        let mtu = interface.mtu;
        let pair = PrivatePair::new(&PairConfig { name: &name, mtu, mac: None, queues: 1, outer })
            .map_err(|e| e.made_for(&interface.name))?;
        let rx = pair.inside(|inner| messages(interface, inner))?;
        let tx = TxSocket::open(&interface.name, interface.index)?;
        let port = port(interface, rx, tx, KernelWay::Interface(interface.index))?;
        let place = self.place(interface, interface.index, &pair)?;
        let promiscuous = Promiscuous::hold(interface)?;
        let attachment = hook(interface, Hook::Ingress, &self.program)?;
        Ok((Switched::new(attachment, Some(promiscuous), place, pair), port))
    }

    /// Attaches it to what the stack sends by such an interface. What is for the stack is received by the
    /// interface: the program at its ingress lets it pass.
    pub fn attach_stack(
        &self,
        interface: &Interface,
    ) -> Result<(SwitchedStack, PacketPort), Error> {
        let mut end = HostEnd::whole(interface)?;
        end.set_inject_mark(InjectMark::IngressDrop);
        let (rx, tx) = end.inside(|inner| {
            Ok((messages(interface, inner)?, TxSocket::open(&interface.name, inner.index)?))
        })?;
        let port = port(interface, rx, tx, KernelWay::Stack(interface.index))?;
        let place = self.place(interface, interface.index | OF_STACK, end.pair())?;
        let attachment = hook(interface, Hook::Egress, &self.stack_program)?;
        Ok((Switched::new(attachment, None, place, end), port))
    }

    fn place(&self, interface: &Interface, key: u32, pair: &PrivatePair) -> Result<Place, Error> {
        // The kernel gives the number of an interface that has gone to another.
        if pair.outer().index == interface.index {
            return Err(refused(&interface.name)(Errno::NODEV.into()));
        }
        let places = self.places.0.try_clone().map(Fd).map_err(refused(&interface.name))?;
        let place = Place { places, key, slow: pair.outer().index };
        place.set(NO_PORT).map_err(refused(&interface.name))?;
        Ok(place)
    }
}

/// A socket that receives what comes out of a pair.
fn messages(interface: &Interface, inner: &Interface) -> Result<OwnedFd, Error> {
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
}

fn port(
    interface: &Interface,
    rx: OwnedFd,
    tx: TxSocket,
    way: KernelWay,
) -> Result<PacketPort, Error> {
    let port = PacketPort::beside_program(rx, tx.fd, interface.longest_frame(), way);
    port.map_err(refused(&interface.name))
}

fn hook(interface: &Interface, hook: Hook, program: &Fd) -> Result<Attachment, Error> {
    let program = program.0.try_clone().map(Fd).map_err(refused(&interface.name))?;
    let lease = Lease::new(interface, hook)?;
    let before = kept::programs_before();
    helper::run(AttachSwitchProgram { interface: interface.clone(), hook, program, lease, before })
}

impl<W> Switched<W> {
    fn new(
        attachment: Attachment,
        promiscuous: Option<Promiscuous>,
        place: Place,
        way: W,
    ) -> Switched<W> {
        let holds = promiscuous.iter().map(Promiscuous::as_fd);
        // What has no link ends with the daemon, and then needs no frames.
        let kept = attachment.kernel_link().and_then(|link| {
            let fds: Vec<_> = [link].into_iter().chain(holds).collect();
            kept::keep(&fds)
        });
        Switched { attachment, promiscuous, _kept: kept, place, _way: way }
    }

    /// It is this port of the switch.
    pub fn set_port(&self, port: u8) {
        // It has an entry, which the kernel changes.
        let _ = self.place.set(port.into());
    }
}

impl<W> Drop for Switched<W> {
    fn drop(&mut self) {
        self.attachment.end();
        self.promiscuous.iter().for_each(Promiscuous::end);
    }
}

pub(crate) fn make_here() -> Result<SwitchParts, Error> {
    let make = |object: &[u8]| -> io::Result<SwitchParts> {
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| error)?;
        let entries = ringway_fastpath::PORTS * cpus;
        let mut object = object::load_with(object, "counts", entries as u32)?;
        let program = Fd(object::classifier(&mut object, PROGRAM)?);
        let stack_program = Fd(object::classifier(&mut object, STACK_PROGRAM)?);
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
        let filters = map("filters").ok();
        Ok(SwitchParts { program, stack_program, places, maps, filters, cpus })
    };
    make(OBJECT).or_else(|_| make(UNFILTERED)).map_err(refused(""))
}

pub(crate) fn attach_here(
    interface: &Interface,
    hook: Hook,
    program: BorrowedFd<'_>,
    lease: Option<Lease>,
    before: &[u32],
) -> Result<Attachment, Error> {
    if hook == Hook::Ingress {
        if let Some(why) = interface.unfit_to_forward() {
            return Err(refused(&interface.name)(io::Error::other(why)));
        }
        attached::check_no_program(interface)?;
        attached::check_no_ingress_drop_but(interface, before)?;
    }
    Attachment::new(program, interface, hook, lease)
}

fn refused(interface: &str) -> impl FnOnce(io::Error) -> Error {
    Error::refused(
        interface,
        "no program in the kernel can forward for the switch",
        "the kernel needs to be 5.12 or newer; see `ringway doctor`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use aya::programs::loaded_programs;
    use ringway_testkit::skip_without_root;

    /// Instructions that the verifier follows: a switch waits for it. With what was known of each step of a filter it
    /// were 96 000, which took more than a second.
    const AT_MOST: u32 = 20_000;

    #[test]
    fn the_kernel_verifies_the_programs_quickly() {
        if skip_without_root("the_kernel_verifies_the_programs_quickly") {
            return;
        }
        let parts = make_here().unwrap();
        assert!(parts.filters.is_some(), "with filters");
        for name in [PROGRAM, STACK_PROGRAM] {
            let programs = loaded_programs().filter_map(Result::ok);
            let own = programs.filter(|program| program.name_as_str() == Some(name));
            let newest = own.max_by_key(|program| program.id()).expect("it is loaded");
            let followed =
                newest.verified_instruction_count().expect("the kernel is 5.16 or newer");
            assert!((1000..AT_MOST).contains(&followed), "{name}: {followed}");
        }
    }
}
