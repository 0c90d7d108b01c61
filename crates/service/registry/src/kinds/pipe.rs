//! Pipes: a pair of ports whose rings are each other's (S-PIPE).

use ringway_abi::Dir;
use ringway_proto::{Cause, Error, PortKind, Registration, Result, RingBackend, RingSelection};

use crate::{
    bind_reply::Fds,
    caller::Caller,
    interfaces,
    keys::plain_key,
    kinds::{
        OpenRequest, PortBackend, RingAt,
        attached::Attached,
        monitor::{self, Monitor},
        nic::Nic,
        parent::Parent,
        vale::{MAX_SLOTS, Vale},
    },
    name::PortName,
    nic_mode::ModeRequest,
    port::{Port, PortId, Ring, Shape, free_ring, make_ring},
    regions::RegionBook,
    registry::Registry,
    selection::{Selection, pipe_by_number},
    settings::Settings,
};

const MAX_PIPES: u32 = 64;
const MAX_RINGS: u16 = 256;

/// One end; the pair lives and dies together.
pub(crate) struct Pipe {
    parent: PortId,
    peer: PortId,
    /// Of this end, whether its rings have been made or not.
    shape: Shape,
}

impl Pipe {
    pub fn open(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<Option<PortId>> {
        if request.reg.rings == RingSelection::PipeEnd {
            return Err(pipe_by_number(request.name));
        }
        match request.port_name()? {
            PortName::Pipe { .. } => Pipe::find_or_make(registry, request).map(Some),
            _ => Ok(None),
        }
    }
}

impl PortBackend for Pipe {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Pipe)
    }

    /// The ring at the other end.
    fn link(&self, at: &RingAt<'_>, fds: &mut Fds) -> Result<RingBackend> {
        let rings = at.registry.port(self.peer).rings(other(at.dir));
        let ring = rings.get(usize::from(at.index)).ok_or_else(|| {
            Error::absent(format!("{}: the ring at the other end has gone", at.port.name))
        })?;
        Ok(RingBackend::Pipe {
            object: ring.kring.object(),
            num_slots: ring.kring.ring().num_slots(),
            doorbell: fds.add(ring.doorbell.as_ref())?,
        })
    }

    fn shape(&self, _settings: &Settings, _port: &Port) -> Shape {
        self.shape
    }

    fn peer(&self) -> Option<PortId> {
        Some(self.peer)
    }

    fn parent(&self) -> Option<PortId> {
        Some(self.parent)
    }

    /// Pipes of interfaces of one name are told apart as these are.
    fn netns(&self, registry: &Registry) -> Option<u64> {
        registry.ports.get(self.parent)?.backend.netns(registry)
    }

    /// What has been sent waits for who opens the other end again (S-PIPE-8).
    fn stays(&self, registry: &Registry) -> bool {
        registry.ports.get(self.peer).is_some_and(|peer| peer.bindings > 0)
    }

    /// A direction has rings, at both ends, from the first program on that wants one of them. They stay
    /// as long as the pipe.
    fn bind(
        registry: &mut Registry,
        id: PortId,
        wanted: &Selection,
        _request: ModeRequest,
    ) -> Result<()> {
        let Some(&Pipe { peer, shape, .. }) = registry.port(id).get() else { return Ok(()) };
        let mut made = Vec::new();
        let counts = shape.rings.into_iter().zip(shape.slots);
        for ((dir, wanted), (rings, slots)) in
            [Dir::Tx, Dir::Rx].into_iter().zip(wanted).zip(counts)
        {
            let port = registry.port(id);
            if wanted.is_empty() || !port.rings(dir).is_empty() {
                continue;
            }
            let book = registry.regions.get(port.region);
            match make_direction(book, rings, slots) {
                Ok(rings) => made.push((dir, rings)),
                Err(error) => {
                    made.into_iter().for_each(|(_, [tx, rx])| free_direction(book, tx, rx));
                    return Err(error);
                }
            }
        }
        if made.is_empty() {
            return Ok(());
        }
        for (dir, [tx, rx]) in made {
            let (mine, theirs) = if dir == Dir::Tx { (tx, rx) } else { (rx, tx) };
            *registry.port_mut(id).rings_mut(dir) = mine;
            *registry.port_mut(peer).rings_mut(other(dir)) = theirs;
        }
        Monitor::update_mirrors_if_any(registry, id);
        Monitor::update_mirrors_if_any(registry, peer);
        Ok(())
    }

    fn reclaim(registry: &mut Registry, id: PortId) {
        let Some(&Pipe { parent, peer, .. }) = registry.port(id).get() else { return };
        Pipe::free_rings(registry, id, peer);
        registry.remove(id);
        registry.remove(peer);
        registry.port_mut(parent).children -= 1;
        registry.reap(parent);
    }

    /// The sender at the other end feeds those that see what has reached this one.
    fn mirrors_changed(registry: &mut Registry, id: PortId, generation: u32) {
        let port = registry.port(id);
        let sender = port.backend.peer().map_or(&[][..], |peer| &registry.port(peer).tx);
        let rings = port.all_rings().chain(sender);
        rings.for_each(|ring| ring.kring.set_monitors(generation));
    }
}

/// The direction of the ring that a ring is connected with.
fn other(dir: Dir) -> Dir {
    match dir {
        Dir::Tx => Dir::Rx,
        Dir::Rx => Dir::Tx,
    }
}

impl Pipe {
    /// The pipe end of that name; both ends come into being together if need be.
    pub(crate) fn find_or_make(
        registry: &mut Registry,
        request: &OpenRequest<'_>,
    ) -> Result<PortId> {
        let &OpenRequest { caller, name, reg, .. } = request;
        let (parent, id, master) = parse(name, reg)?;
        let keys = pipe_keys(parent, id, caller)?;
        if let Some(end) = registry.ports.named(key_of(&keys, master)) {
            return registry.ports.owned(end, caller);
        }
        let parent = Pipe::parent_of(registry, &OpenRequest { name: parent, ..*request })?;
        let ends = Pipe::make_or_reap(registry, caller, name, parent, reg, keys)?;
        Ok(if master { ends[0] } else { ends[1] })
    }

    /// The end of that name of a pipe that belongs to the caller and to user `other`, who both say
    /// so. All that they share is the pipe, which has a region of its own; it counts as that of the
    /// one who comes first.
    pub(crate) fn find_or_make_shared(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        reg: &Registration,
        other: u32,
    ) -> Result<PortId> {
        let (parent, id, master) = parse(name, reg)?;
        if reg.mem_id != 0 || monitor::is_asked(reg) {
            return Err(Error::invalid(
                "a pipe with another user has memory of its own, and no monitors",
            )
            .at(name)
            .remedy("ask for neither"));
        }
        let is_free = matches!(PortName::parse(parent, Cause::NoRoom)?, PortName::Plain(_))
            && !interfaces::exists(parent, caller)?;
        if !is_free {
            return Err(Error::invalid(format!(
                "{parent} is another port, whose memory the other user would have"
            ))
            .at(name)
            .remedy("choose another name"));
        }
        let users = [caller.uid.min(other), caller.uid.max(other)];
        let key = |name: String| format!("{name}\0{}+{}", users[0], users[1]);
        let keys = ['{', '}'].map(|brace| key(format!("{parent}{brace}{id}")));
        if let Some(end) = registry.ports.named(key_of(&keys, master)) {
            return registry.ports.owned(end, caller);
        }
        let parent_key = key(parent.into());
        let parent = match registry.ports.named(&parent_key) {
            Some(id) => registry.ports.owned(id, caller)?,
            None => Parent::private(registry, caller, parent, reg, parent_key)?,
        };
        registry.port_mut(parent).shared_with.get_or_insert(other);
        let ends = Pipe::make_or_reap(registry, caller, name, parent, reg, keys)?;
        for end in ends {
            registry.port_mut(end).shared_with = Some(other);
        }
        Ok(if master { ends[0] } else { ends[1] })
    }

    fn make_or_reap(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        parent_id: PortId,
        reg: &Registration,
        keys: [String; 2],
    ) -> Result<[PortId; 2]> {
        match Pipe::make(registry, caller, name, parent_id, reg, keys) {
            Ok(ends) => Ok(ends),
            Err(error) => {
                registry.reap(parent_id);
                Err(error)
            }
        }
    }

    /// `request`: that of the pipe, with the parent's name.
    fn parent_of(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<PortId> {
        let &OpenRequest { caller, name, reg, .. } = request;
        match request.port_name()? {
            PortName::Vale { .. } => {
                // The counts of the request describe the pipe, not its parent (S-PIPE-4).
                let plain = Registration { mem_id: reg.mem_id, ..Default::default() };
                Vale::find_or_make(registry, &OpenRequest { reg: &plain, ..*request })
            }
            PortName::Pipe { .. } => {
                Err(Error::invalid("a pipe cannot be the parent of pipes").at(name))
            }
            PortName::Plain(_) => {
                if let Some(id) = registry.named(&plain_key(name, caller))? {
                    return registry.ports.owned(id, caller);
                }
                match interfaces::exists(name, caller)? {
                    true => Nic::find_or_make(registry, caller, name, reg.mem_id),
                    false => Parent::find_or_make(registry, caller, name, reg),
                }
            }
        }
    }

    fn make(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        parent: PortId,
        reg: &Registration,
        [master_key, slave_key]: [String; 2],
    ) -> Result<[PortId; 2]> {
        let parent_port = registry.port(parent);
        if parent_port.is::<Attached>() {
            return Err(Error::busy("its parent is attached to a switch").at(name));
        }
        // S-PIPE-3.
        if parent_port.children >= MAX_PIPES {
            return Err(Error::invalid(format!(
                "its parent has {MAX_PIPES} pipes already, the most there can be"
            ))
            .at(name));
        }
        let inherited = registry.port(parent).shape(&registry.settings).slots;
        let slots =
            |asked, inherited| if asked == 0 { inherited } else { std::cmp::min(asked, MAX_SLOTS) };
        let [tx, rx] = [reg.tx_rings, reg.rx_rings].map(|n| n.clamp(1, MAX_RINGS).into());
        let tx_slots = slots(reg.tx_slots, inherited[0]);
        let rx_slots = slots(reg.rx_slots, inherited[1]);
        // S-PIPE-6.
        let master = Shape { rings: [tx, rx], slots: [tx_slots, rx_slots] };
        let slave = Shape { rings: [rx, tx], slots: [rx_slots, tx_slots] };
        // S-PIPE-5.
        let region = parent_port.region;
        registry.regions.get(region).check_slots(tx_slots.max(rx_slots))?;

        let halves = name.rsplit_once('{').or_else(|| name.rsplit_once('}'));
        let (stem, pipe) = halves.unwrap_or((name, ""));
        let named = |brace: &str| format!("{stem}{brace}{pipe}");
        let (master_name, slave_name) = (named("{"), named("}"));
        let mut add = |name: &str, key: String, shape: Shape| {
            // The peer is known when both are there.
            let backend = Pipe { parent, peer: 0, shape };
            registry.add_port(name, Some(key), caller.uid, region, backend)
        };
        let master = add(&master_name, master_key, master);
        let slave = add(&slave_name, slave_key, slave);
        for (end, other) in [(master, slave), (slave, master)] {
            if let Some(pipe) = registry.port_mut(end).get_mut::<Pipe>() {
                pipe.peer = other;
            }
        }
        registry.port_mut(parent).children += 1;
        Ok([master, slave])
    }

    /// Frees the rings of both ends. Where the receiver holds a slot, the buffer in its ring
    /// is the packet's; elsewhere the one in the sender's ring is. The other copy is stale.
    pub(crate) fn free_rings(registry: &mut Registry, one: PortId, other: PortId) {
        let region = registry.port(one).region;
        let book = registry.regions.get(region);
        let mut take = |id: PortId| match registry.ports.get_mut(id) {
            Some(port) => (std::mem::take(&mut port.tx), std::mem::take(&mut port.rx)),
            None => Default::default(),
        };
        let (one_tx, one_rx) = take(one);
        let (other_tx, other_rx) = take(other);
        free_direction(book, one_tx, other_rx);
        free_direction(book, other_tx, one_rx);
    }
}

/// Parent, id, and whether it is the first end.
fn parse<'a>(name: &'a str, reg: &Registration) -> Result<(&'a str, &'a str, bool)> {
    let PortName::Pipe { parent, id, master } = PortName::parse(name, Cause::NoRoom)? else {
        return Err(Error::invalid("not a pipe")
            .at(name)
            .remedy("pipes alone can be shared with another user"));
    };
    if !matches!(reg.rings, RingSelection::All | RingSelection::One(_)) {
        return Err(Error::invalid("a pipe has no host rings").at(name).remedy("drop the suffix"));
    }
    Ok((parent, id, master))
}

/// The keys of the ends of a pipe: they belong to its parent's name, per user; and where that is an
/// interface's, to its network namespace.
pub(crate) fn pipe_keys(parent: &str, id: &str, caller: &Caller) -> Result<[String; 2]> {
    let of_interface = matches!(PortName::parse(parent, Cause::NoRoom), Ok(PortName::Plain(_)))
        && !caller.netns.is_own()
        && interfaces::exists_if_known(parent, caller)?;
    Ok(['{', '}'].map(|brace| match format!("{parent}{brace}{id}") {
        end if of_interface => plain_key(&end, caller),
        end => format!("{end}\0{}", caller.uid),
    }))
}

/// The key of one of both ends.
fn key_of(keys: &[String; 2], master: bool) -> &str {
    let [first, second] = keys;
    if master { first } else { second }
}

/// Rings of one direction, the sender's and the receiver's. The receiving rings begin with the sender's
/// buffers in their slots, so that a direction costs one set of buffers.
fn make_direction(book: &mut RegionBook, count: u32, slots: u32) -> Result<[Vec<Ring>; 2]> {
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for index in 0..count {
        let pair = make_ring(book, Dir::Tx, index, slots, None).and_then(|(tx, bufs)| {
            match make_ring(book, Dir::Rx, index, slots, Some(&bufs)) {
                Ok((rx, _)) => Ok((tx, rx)),
                Err(error) => {
                    free_ring(book, &tx);
                    Err(error)
                }
            }
        });
        match pair {
            Ok((tx, rx)) => {
                sent.push(tx);
                received.push(rx);
            }
            Err(error) => {
                free_direction(book, sent, received);
                return Err(error);
            }
        }
    }
    Ok([sent, received])
}

fn free_direction(book: &mut RegionBook, tx: Vec<Ring>, rx: Vec<Ring>) {
    for (tx, rx) in tx.iter().zip(&rx) {
        let (sender, receiver) = (tx.kring.ring(), rx.kring.ring());
        let (held_from, held_to) = (rx.kring.hwcur(), rx.kring.hwtail());
        let held = receiver.distance(held_from, held_to);
        for i in 0..sender.num_slots() {
            let ours = receiver.distance(held_from, i) < held;
            let slot = if ours { receiver.slot(i) } else { sender.slot(i) };
            book.give_buf(slot.buf_idx);
        }
        book.give_ring(tx.kring.object());
        book.give_ring(rx.kring.object());
    }
}
