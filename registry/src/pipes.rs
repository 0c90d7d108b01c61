//! Pipes: a pair of ports whose rings are each other's (S-PIPE).

use ringway_abi::{Dir, NR_REG_ALL_NIC, NR_REG_ONE_NIC, nmreq_register};
use ringway_proto::{Error, Result};

use crate::{
    monitors,
    name::{PortName, plain_key},
    nic,
    port::{Kind, PortId, Ring, Shape, free_ring, make_ring},
    regions::RegionBook,
    registry::{Caller, Registry},
};

const MAX_PIPES: u32 = 64;
const MAX_RINGS: u16 = 256;
const MAX_SLOTS: u32 = 4096;
const DEFAULT_SLOTS: u32 = 1024;

/// The rings of both ends.
struct Ends {
    master: [Vec<Ring>; 2],
    slave: [Vec<Ring>; 2],
}

impl Registry {
    /// The pipe end of that name; both ends come into being together if need be.
    pub(crate) fn pipe_end(
        &mut self,
        caller: &Caller,
        name: &str,
        reg: &nmreq_register,
    ) -> Result<PortId> {
        let (parent, id, master) = parse(name, reg)?;
        let keys = pipe_keys(parent, id, caller);
        if let Some(&end) = self.names.get(&keys[usize::from(!master)]) {
            return self.owned(end, caller);
        }
        let parent = self.pipe_parent(caller, parent, reg)?;
        let ends = self.make_pipe_or_reap(caller, name, parent, reg, keys)?;
        Ok(ends[usize::from(!master)])
    }

    /// The end of that name of a pipe that belongs to the caller and to user `other`, who both say
    /// so. All that they share is the pipe, which has a region of its own; it counts as that of the
    /// one who comes first.
    pub(crate) fn shared_pipe_end(
        &mut self,
        caller: &Caller,
        name: &str,
        reg: &nmreq_register,
        other: u32,
    ) -> Result<PortId> {
        let (parent, id, master) = parse(name, reg)?;
        if reg.nr_mem_id != 0 || monitors::is_asked(reg) {
            return Err(Error::invalid(format!(
                "{name}: a pipe with another user has memory of its own, and no monitors; ask for \
                 neither"
            )));
        }
        let is_free = matches!(PortName::parse(parent, libc::ENOMEM)?, PortName::Plain(_))
            && !nic::exists(parent, caller)?;
        if !is_free {
            return Err(Error::invalid(format!(
                "{name}: {parent} is another port, whose memory the other user would have; choose \
                 another name"
            )));
        }
        let users = [caller.uid.min(other), caller.uid.max(other)];
        let key = |name: String| format!("{name}\0{}+{}", users[0], users[1]);
        let keys = ['{', '}'].map(|brace| key(format!("{parent}{brace}{id}")));
        if let Some(&end) = self.names.get(&keys[usize::from(!master)]) {
            return self.owned(end, caller);
        }
        let parent_key = key(parent.into());
        let parent = match self.names.get(&parent_key) {
            Some(&id) => self.owned(id, caller)?,
            None => self.private_parent(caller, parent, parent_key)?,
        };
        self.port_mut(parent).shared_with.get_or_insert(other);
        let ends = self.make_pipe_or_reap(caller, name, parent, reg, keys)?;
        for end in ends {
            self.port_mut(end).shared_with = Some(other);
        }
        Ok(ends[usize::from(!master)])
    }

    fn make_pipe_or_reap(
        &mut self,
        caller: &Caller,
        name: &str,
        parent_id: PortId,
        reg: &nmreq_register,
        keys: [String; 2],
    ) -> Result<[PortId; 2]> {
        match self.make_pipe(caller, name, parent_id, reg, keys) {
            Ok(ends) => Ok(ends),
            Err(error) => {
                self.reap(parent_id);
                Err(error)
            }
        }
    }

    fn pipe_parent(&mut self, caller: &Caller, name: &str, reg: &nmreq_register) -> Result<PortId> {
        match PortName::parse(name, libc::ENOMEM)? {
            PortName::Vale { .. } => {
                // The counts of the request describe the pipe, not its parent (S-PIPE-4).
                let plain = nmreq_register { nr_mem_id: reg.nr_mem_id, ..Default::default() };
                self.vale_port(caller, name, &plain)
            }
            PortName::Pipe { .. } => {
                Err(Error::invalid(format!("{name}: a pipe cannot be the parent of pipes")))
            }
            PortName::Plain(_) => {
                if let Some(&id) = self.names.get(&plain_key(name, caller)) {
                    return self.owned(id, caller);
                }
                match nic::exists(name, caller)? {
                    true => self.nic_port(caller, name, reg.nr_mem_id),
                    false => self.parent_port(caller, name, reg.nr_mem_id),
                }
            }
        }
    }

    fn make_pipe(
        &mut self,
        caller: &Caller,
        name: &str,
        parent: PortId,
        reg: &nmreq_register,
        [master_key, slave_key]: [String; 2],
    ) -> Result<[PortId; 2]> {
        let parent_port = self.port(parent);
        if matches!(parent_port.kind, Kind::Attached { .. }) {
            return Err(Error::busy(format!("{name}: its parent is attached to a bridge")));
        }
        if parent_port.children >= MAX_PIPES {
            return Err(Error::invalid(format!(
                "{name}: its parent has {MAX_PIPES} pipes already, the most there can be"
            )));
        }
        let parents = parent_port.shape().slots.map(|n| if n == 0 { DEFAULT_SLOTS } else { n });
        let slots =
            |asked, default| if asked == 0 { default } else { std::cmp::min(asked, MAX_SLOTS) };
        let shape = Shape {
            rings: [reg.nr_tx_rings, reg.nr_rx_rings].map(|n| n.clamp(1, MAX_RINGS).into()),
            slots: [slots(reg.nr_tx_slots, parents[0]), slots(reg.nr_rx_slots, parents[1])],
        };
        let region = parent_port.region;
        let ends = make_ends(self.regions.get(region), shape)?;

        let at = name.rfind('{').or_else(|| name.rfind('}')).unwrap_or(0);
        let named = |brace: &str| format!("{}{brace}{}", &name[..at], &name[at + 1..]);
        let (master_name, slave_name) = (named("{"), named("}"));
        let mut add = |name: &str, key: String, [tx, rx]: [Vec<Ring>; 2]| {
            let kind = Kind::Pipe { parent, peer: 0 };
            let id = self.add_port(name, Some(key), caller.uid, region, kind);
            let port = self.port_mut(id);
            (port.tx, port.rx) = (tx, rx);
            id
        };
        let master = add(&master_name, master_key, ends.master);
        let slave = add(&slave_name, slave_key, ends.slave);
        for (end, other) in [(master, slave), (slave, master)] {
            if let Kind::Pipe { peer, .. } = &mut self.port_mut(end).kind {
                *peer = other;
            }
        }
        self.port_mut(parent).children += 1;
        Ok([master, slave])
    }

    /// Frees the rings of both ends. Where the receiver holds a slot, the buffer in its ring
    /// is the packet's; elsewhere the one in the sender's ring is. The other copy is stale.
    pub(crate) fn free_pipe_rings(&mut self, one: PortId, other: PortId) {
        let mut take = |id: PortId| {
            let port = self.port_mut(id);
            (port.region, std::mem::take(&mut port.tx), std::mem::take(&mut port.rx))
        };
        let (region, one_tx, one_rx) = take(one);
        let (_, other_tx, other_rx) = take(other);
        let book = self.regions.get(region);
        free_direction(book, one_tx, other_rx);
        free_direction(book, other_tx, one_rx);
    }
}

/// Parent, id, and whether it is the first end.
fn parse<'a>(name: &'a str, reg: &nmreq_register) -> Result<(&'a str, &'a str, bool)> {
    let PortName::Pipe { parent, id, master } = PortName::parse(name, libc::ENOMEM)? else {
        return Err(Error::invalid(format!(
            "{name}: not a pipe; pipes alone can be shared with another user"
        )));
    };
    if ![NR_REG_ALL_NIC, NR_REG_ONE_NIC].contains(&reg.nr_mode) {
        return Err(Error::invalid(format!("{name}: a pipe has no host rings; drop the suffix")));
    }
    Ok((parent, id, master))
}

/// The keys of the ends of a pipe: they belong to its parent's name, per user; and where that is an
/// interface's, to its network namespace.
pub(crate) fn pipe_keys(parent: &str, id: &str, caller: &Caller) -> [String; 2] {
    let of_interface = caller.netns().is_some()
        && matches!(PortName::parse(parent, libc::ENOMEM), Ok(PortName::Plain(_)))
        && nic::exists(parent, caller).unwrap_or(false);
    ['{', '}'].map(|brace| match format!("{parent}{brace}{id}") {
        end if of_interface => plain_key(&end, caller),
        end => format!("{end}\0{}", caller.uid),
    })
}

/// Rings of both ends; the receiving ring begins with the sender's buffers in its slots, so
/// that a pipe costs one set of buffers a direction.
fn make_ends(book: &mut RegionBook, shape: Shape) -> Result<Ends> {
    let [tx_rings, rx_rings] = shape.rings;
    let [tx_slots, rx_slots] = shape.slots;
    let mut ends = Ends { master: Default::default(), slave: Default::default() };
    let mut direction = |count: u32, slots: u32| -> Result<[Vec<Ring>; 2]> {
        let mut made = [Vec::new(), Vec::new()];
        for index in 0..count {
            let pair =
                make_ring(book, Dir::Tx, index, slots, None).and_then(
                    |(tx, bufs)| match make_ring(book, Dir::Rx, index, slots, Some(&bufs)) {
                        Ok((rx, _)) => Ok((tx, rx)),
                        Err(error) => {
                            free_ring(book, &tx);
                            Err(error)
                        }
                    },
                );
            match pair {
                Ok((tx, rx)) => {
                    made[0].push(tx);
                    made[1].push(rx);
                }
                Err(error) => {
                    let [tx, rx] = made;
                    free_direction(book, tx, rx);
                    return Err(error);
                }
            }
        }
        Ok(made)
    };
    let [master_tx, slave_rx] = direction(tx_rings, tx_slots)?;
    match direction(rx_rings, rx_slots) {
        Ok([slave_tx, master_rx]) => {
            ends.master = [master_tx, master_rx];
            ends.slave = [slave_tx, slave_rx];
            Ok(ends)
        }
        Err(error) => {
            free_direction(book, master_tx, slave_rx);
            Err(error)
        }
    }
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
