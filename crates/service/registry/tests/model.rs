//! Random requests, valid and not, against a plain model of the rules of registration: every
//! answer of the registry is the one that the rules give, errno by errno and output by output.

mod common;

use std::collections::BTreeMap;

use common::World;
use libc::{EBUSY, EINVAL, ENODEV, ENOENT, ENOMEM, ENXIO};
use proptest::{collection::vec, prelude::*, sample::select};
use ringway_abi::Dir;
use ringway_proto::{Grant, Registration, Reply, Request, RingSelection};
use ringway_registry::Handle;

/// Names of every kind, well-formed and not.
const NAMES: [&str; 16] = [
    "vale0:a",
    "vale0:b",
    "vale1:a",
    "vale0:a{1",
    "vale0:a}1",
    "vale0:b{x",
    "p{1",
    "p}1",
    "p{2",
    "no interface",
    "",
    "vale0",
    "value:a",
    "{1",
    "p{",
    "vale-:a",
];

#[derive(Clone, Debug)]
enum Op {
    /// Register, on a new handle or on one that is bound already.
    Register {
        name: &'static str,
        reg: Registration,
        mem: Mem,
        on_bound: bool,
    },
    Close(usize),
    Info {
        name: &'static str,
    },
    HeaderGet {
        name: &'static str,
    },
    HeaderSet {
        name: &'static str,
        len: u32,
    },
    Find {
        name: &'static str,
    },
}

/// Which region to ask for.
#[derive(Clone, Copy, Debug)]
enum Mem {
    Default,
    Global,
    /// That of the n-th open handle, modulo.
    Of(usize),
    Nobodys,
}

fn registration() -> impl Strategy<Value = Registration> {
    let rest = select(vec![
        RingSelection::All,
        RingSelection::Host,
        RingSelection::AllAndHost,
        RingSelection::OneHost(0),
        RingSelection::Null { sink: false },
        RingSelection::PipeEnd,
        RingSelection::Other(0),
        RingSelection::Other(9),
    ]);
    let one = prop_oneof![4 => Just(0u16), 1 => 0u16..4].prop_map(RingSelection::One);
    let chosen = prop_oneof![6 => Just(RingSelection::All), 3 => one, 2 => rest];
    // Two of six, of which one is none.
    let flags = || 0u8..6;
    let rings = || prop_oneof![3 => Just(0u16), 2 => 1u16..4];
    let slots = || select(vec![0u32, 0, 16, 100]);
    let counts = (rings(), rings(), slots(), slots());
    (counts, chosen, flags(), flags(), select(vec![0u32, 0, 7])).prop_map(
        |((tx_rings, rx_rings, tx_slots, rx_slots), rings, one, other, extra_bufs)| {
            let has = |flag| one == flag || other == flag;
            Registration {
                tx_rings,
                rx_rings,
                tx_slots,
                rx_slots,
                rings,
                exclusive: has(1),
                without_tx: has(2),
                without_rx: has(3),
                accept_header: has(4),
                client_word: u64::from(has(5)),
                extra_bufs,
                ..Default::default()
            }
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let name = || select(NAMES.to_vec());
    let mem = prop_oneof![
        6 => Just(Mem::Default), 1 => Just(Mem::Global),
        2 => any::<usize>().prop_map(Mem::Of), 1 => Just(Mem::Nobodys),
    ];
    prop_oneof![
        10 => (name(), registration(), mem, prop::bool::weighted(0.05)).prop_map(
            |(name, reg, mem, on_bound)| Op::Register { name, reg, mem, on_bound }),
        5 => any::<usize>().prop_map(Op::Close),
        1 => name().prop_map(|name| Op::Info { name }),
        1 => name().prop_map(|name| Op::HeaderGet { name }),
        1 => (name(), select(vec![0u32, 10, 11, 12])).prop_map(|(name, len)| Op::HeaderSet { name, len }),
        1 => name().prop_map(|name| Op::Find { name }),
    ]
}

/// A port as the rules describe it: tx before rx everywhere.
#[derive(Clone, Debug)]
struct Port {
    rings: [u16; 2],
    slots: [u32; 2],
    mem_id: Option<u16>,
    header: u32,
    /// Who has each ring, and how: handle and whether exclusively.
    users: [Vec<Vec<(Handle, bool)>>; 2],
}

#[derive(Default)]
struct Model {
    ports: BTreeMap<String, Port>,
    /// Open handles with the port of each, and the region of each.
    handles: Vec<(Handle, String, u16)>,
    null_ports: usize,
}

/// Master and slave of a pipe, and its parent.
fn pipe(name: &str) -> Option<(String, String, String)> {
    let at = name.rfind('{').or_else(|| name.rfind('}'))?;
    let (parent, id) = (&name[..at], &name[at + 1..]);
    Some((format!("{parent}{{{id}"), format!("{parent}}}{id}"), parent.into()))
}

fn port(rings: [u16; 2], slots: [u32; 2], mem_id: Option<u16>) -> Port {
    let none = |n: u16| vec![Vec::new(); n.into()];
    Port { rings, slots, mem_id, header: 0, users: [none(rings[0]), none(rings[1])] }
}

fn or_default(asked: u32, default: u32) -> u32 {
    if asked == 0 { default } else { asked }
}

impl Model {
    fn exists(&self, mem_id: u16) -> bool {
        mem_id == 1 || self.handles.iter().any(|(_, _, id)| *id == mem_id)
    }

    /// The errno of a name that names nothing that could be (S-VALE-1, S-PIPE-1, S-REG-2).
    fn malformed(name: &str, wrong_vale: i32) -> Option<i32> {
        match name {
            "{1" | "p{" => Some(EINVAL),
            "vale0" | "value:a" | "vale-:a" => Some(wrong_vale),
            "no interface" | "" => Some(ENXIO),
            _ => None,
        }
    }

    /// The ports that opening `name` brings into being, with the shapes that the request gives
    /// them (S-VALE-3, S-PIPE-2, 4).
    fn come_into_being(&self, name: &str, reg: &Registration) -> Vec<(String, Port)> {
        let mut new = Vec::new();
        if self.ports.contains_key(name) {
            return new;
        }
        let mem_id = (reg.mem_id != 0).then_some(reg.mem_id);
        let rings = [reg.tx_rings.max(1), reg.rx_rings.max(1)];
        let Some((master, slave, parent)) = pipe(name) else {
            let slots = [or_default(reg.tx_slots, 1024), or_default(reg.rx_slots, 1024)];
            new.push((name.into(), port(rings, slots, mem_id)));
            return new;
        };
        let (mut inherited, mut region) = ([1024, 1024], mem_id);
        match self.ports.get(&parent) {
            Some(parent) => (inherited, region) = (parent.slots, parent.mem_id),
            // A parent that has pipes already exists although nobody has it open.
            None => match self.siblings(&parent).next() {
                Some(sibling) => region = sibling.mem_id,
                None if parent.starts_with("vale") => {
                    new.push((parent.clone(), port([1, 1], [1024, 1024], mem_id)));
                }
                None => {}
            },
        }
        let [tx, rx] = [0, 1].map(|i| or_default([reg.tx_slots, reg.rx_slots][i], inherited[i]));
        new.push((master, port(rings, [tx, rx], region)));
        new.push((slave, port([rings[1], rings[0]], [rx, tx], region)));
        new
    }

    fn siblings<'a>(&'a self, parent: &'a str) -> impl Iterator<Item = &'a Port> {
        let child = move |name: &str| pipe(name).is_some_and(|(_, _, p)| p == parent);
        self.ports.iter().filter(move |(name, _)| child(name)).map(|(_, port)| port)
    }

    /// Ring selection (S-REG-4).
    fn select(port: &Port, reg: &Registration) -> Result<[Vec<u16>; 2], i32> {
        let all = port.rings;
        let mut chosen = match reg.rings {
            RingSelection::All | RingSelection::Null { .. } => {
                all.map(|n| (0..n).collect::<Vec<_>>())
            }
            RingSelection::One(id) if id < all[0] || id < all[1] => {
                all.map(|n| vec![if id < n { id } else { 0 }; (n > 0).into()])
            }
            _ => return Err(EINVAL),
        };
        if reg.without_tx {
            chosen[0].clear();
        }
        if reg.without_rx {
            chosen[1].clear();
        }
        Ok(chosen)
    }

    /// What the rules say of a registration: the port and its rings, or the errno (S-REG-1).
    fn judge(&self, name: &str, reg: &Registration, bound: bool) -> Result<[Vec<u16>; 2], i32> {
        if bound {
            return Err(EBUSY);
        }
        if reg.mem_id != 0 && !self.exists(reg.mem_id) {
            return Err(EINVAL);
        }
        if matches!(reg.rings, RingSelection::Null { .. }) {
            if reg.mem_id == 0 {
                return Err(EINVAL);
            }
            let shape = port([reg.tx_rings, reg.rx_rings], [0, 0], None);
            // Rings without slots cannot be.
            let empty = |rings, slots| rings > 0 && slots == 0;
            if empty(reg.tx_rings, reg.tx_slots) || empty(reg.rx_rings, reg.rx_slots) {
                return Err(ENOMEM);
            }
            return Model::select(&shape, reg);
        }
        if reg.rings == RingSelection::PipeEnd {
            return Err(EINVAL);
        }
        if let Some(errno) = Model::malformed(name, ENOMEM) {
            return Err(errno);
        }
        if pipe(name).is_some() && !matches!(reg.rings, RingSelection::All | RingSelection::One(_))
        {
            return Err(EINVAL);
        }
        let new = self.come_into_being(name, reg);
        let found = new.iter().find(|(n, _)| n == name).map(|(_, port)| port);
        let port = found.or_else(|| self.ports.get(name)).expect("found or made");
        if port.header != 0 && !reg.accept_header {
            return Err(libc::EIO);
        }
        let rings = Model::select(port, reg)?;
        let exclusive = reg.exclusive;
        for (users, chosen) in port.users.iter().zip(&rings) {
            for users in chosen.iter().map(|&i| &users[usize::from(i)]) {
                if users.iter().any(|(_, exclusively)| *exclusively)
                    || exclusive && !users.is_empty()
                {
                    return Err(EBUSY);
                }
            }
        }
        Ok(rings)
    }

    fn register(
        &mut self,
        name: &str,
        reg: &Registration,
        grant: &Grant,
        handle: Handle,
        rings: &[Vec<u16>; 2],
    ) {
        let mem_id = grant.mem_id;
        if matches!(reg.rings, RingSelection::Null { .. }) {
            self.null_ports += 1;
            self.handles.push((handle, format!("null port {}", self.null_ports), mem_id));
            return;
        }
        for (name, mut port) in self.come_into_being(name, reg) {
            port.mem_id = Some(mem_id);
            self.ports.insert(name, port);
        }
        let port = self.ports.get_mut(name).expect("found or made");
        let exclusive = reg.exclusive;
        for (users, chosen) in port.users.iter_mut().zip(rings) {
            chosen.iter().for_each(|&i| users[usize::from(i)].push((handle, exclusive)));
        }
        self.handles.push((handle, name.into(), mem_id));
    }

    /// Whether the rings would be in a region that there is already.
    fn shares(&self, name: &str, reg: &Registration) -> bool {
        reg.mem_id != 0 || pipe(name).is_some() || self.ports.contains_key(name)
    }

    fn open(&self, name: &str) -> bool {
        self.handles.iter().any(|(_, n, _)| n == name)
    }

    /// Ports that nothing refers to vanish: pipes when both ends are closed, and then their
    /// parents (S-VALE-3, S-PIPE-8).
    fn close(&mut self, handle: Handle) {
        self.handles.retain(|(h, _, _)| *h != handle);
        for port in self.ports.values_mut() {
            port.users.iter_mut().flatten().for_each(|users| users.retain(|(h, _)| *h != handle));
        }
        let names: Vec<String> = self.ports.keys().cloned().collect();
        for name in names.iter().filter(|name| pipe(name).is_some()) {
            let (master, slave, _) = pipe(name).expect("filtered");
            if !self.open(&master) && !self.open(&slave) {
                self.ports.remove(name);
            }
        }
        for name in names.iter().filter(|name| pipe(name).is_none()) {
            if !self.open(name) && self.siblings(name).next().is_none() {
                self.ports.remove(name);
            }
        }
    }
}

fn granted(grant: &Grant, dir: Dir) -> Vec<u16> {
    grant.rings.iter().filter(|ring| ring.dir == dir).map(|ring| ring.index).collect()
}

fn step(w: &mut World, m: &mut Model, op: &Op) -> Result<(), TestCaseError> {
    match op {
        Op::Register { name, reg, mem, on_bound } => {
            let mem_id = match mem {
                Mem::Default => 0,
                Mem::Global => 1,
                Mem::Of(n) => m.handles.get(n % m.handles.len().max(1)).map_or(0, |h| h.2),
                Mem::Nobodys => 60_000,
            };
            let reg = Registration { mem_id, ..*reg };
            let bound = m.handles.first().filter(|_| *on_bound).map(|h| h.0);
            let handle = bound.unwrap_or_else(|| w.registry.open());
            let answer = w.register_on(handle, name, reg);
            let mut expected = m.judge(name, &reg, bound.is_some());
            let shares = m.shares(name, &reg);
            // The model does not count objects: a region that others use may have too few left,
            // which shows before the rings of the new port are looked at.
            if bound.is_none() && matches!(answer, Err(ENOMEM)) && shares {
                expected = Err(ENOMEM);
            }
            prop_assert_eq!(
                answer.as_ref().map(drop).map_err(|e| *e),
                expected.as_ref().map(drop).map_err(|e| *e),
                "{:?} {:?}",
                name,
                reg
            );
            let (Ok(grant), Ok(rings)) = (answer, expected) else {
                if bound.is_none() {
                    w.registry.close(handle);
                }
                return Ok(());
            };
            prop_assert_eq!([granted(&grant, Dir::Tx), granted(&grant, Dir::Rx)], rings.clone());
            let made = m.come_into_being(name, &reg);
            let made = made.iter().find(|(n, _)| n == name).map(|(_, p)| p);
            if let Some(port) = made.or_else(|| m.ports.get(*name))
                && !matches!(reg.rings, RingSelection::Null { .. })
            {
                let out = grant.registration;
                prop_assert_eq!([out.tx_rings, out.rx_rings], port.rings);
                prop_assert_eq!([out.tx_slots, out.rx_slots], port.slots);
                if let Some(mem_id) = port.mem_id {
                    prop_assert_eq!(out.mem_id, mem_id, "S-MEM-3");
                }
                let unchanged = |r: &Registration| {
                    let without = [r.without_tx, r.without_rx];
                    (r.rings, without, r.exclusive, r.monitor, r.accept_header, r.client_word)
                };
                prop_assert_eq!(unchanged(&out), unchanged(&reg), "S-REG-7");
                prop_assert_eq!([out.host_tx_rings, out.host_rx_rings], [0, 0], "S-REG-7");
            }
            prop_assert_eq!(grant.mem_id, grant.registration.mem_id);
            // Of those that are left there, if others use the region.
            let extra = grant.registration.extra_bufs;
            prop_assert!(extra == reg.extra_bufs || shares && extra < reg.extra_bufs, "{}", extra);
            m.register(name, &reg, &grant, handle, &rings);
        }
        Op::Close(n) => {
            if !m.handles.is_empty() {
                let handle = m.handles[n % m.handles.len()].0;
                w.registry.close(handle);
                m.close(handle);
            }
        }
        Op::Info { name } => {
            let all = Registration::default();
            let mut expected = match Model::malformed(name, ENOMEM) {
                // No name asks for a region (S-MEM-11).
                Some(_) if name.is_empty() => Ok(None),
                Some(errno) => Err(errno),
                None => Ok(m
                    .come_into_being(name, &all)
                    .into_iter()
                    .find(|(n, _)| n == name)
                    .map(|(_, port)| port)
                    .or_else(|| m.ports.get(*name).cloned())),
            };
            let answer = w.ask(Request::PortGeometry { name: (*name).into(), mem_id: 0 });
            // As for a registration: a pipe comes into being, in a region that others use.
            if matches!(answer, Err(ENOMEM)) && m.shares(name, &all) {
                expected = Err(ENOMEM);
            }
            match (answer, expected) {
                (Ok(Reply::PortGeometry(info)), Ok(Some(port))) => {
                    prop_assert_eq!([info.tx_rings, info.rx_rings], port.rings);
                    prop_assert_eq!([info.tx_slots, info.rx_slots], port.slots);
                }
                (Ok(Reply::PortGeometry(info)), Ok(None)) => prop_assert_eq!(info.mem_id, 1),
                (answer, expected) => {
                    prop_assert_eq!(answer.map(drop), expected.map(drop), "{}", name);
                }
            }
        }
        Op::HeaderGet { name } => {
            // Questions make no ports (S-VHDR-1).
            let absent = if pipe(name).is_some() { ENODEV } else { ENXIO };
            let expected = match Model::malformed(name, ENXIO) {
                Some(errno) => Err(errno),
                None => m.ports.get(*name).map(|port| port.header).ok_or(absent),
            };
            let answer = match w.ask(Request::HeaderLen { name: (*name).into() }) {
                Ok(Reply::HeaderLen(len)) => Ok(len),
                Ok(other) => panic!("{other:?}"),
                Err(errno) => Err(errno),
            };
            prop_assert_eq!(answer, expected, "{}", name);
        }
        Op::HeaderSet { name, len } => {
            let vale = pipe(name).is_none();
            let expected = match m.ports.get_mut(*name).filter(|_| vale) {
                None => Err(ENXIO),
                Some(_) if ![0, 10, 12].contains(len) => Err(EINVAL),
                Some(port) => {
                    port.header = *len;
                    Ok(())
                }
            };
            let answer = w.ask(Request::SetHeaderLen { name: (*name).into(), len: *len });
            prop_assert_eq!(answer.map(drop), expected, "{}", name);
        }
        Op::Find { name } => {
            // S-VALE-18: the bridge must be there; a port that is not has index 255.
            let bridge = name.split_once(':').map(|(bridge, _)| bridge);
            let on = |port: &String| {
                port.split_once(':').map(|(b, _)| b) == bridge && pipe(port).is_none()
            };
            let expected = match name {
                // No name asks for the first port there is.
                &"" => {
                    m.ports.keys().any(|port| pipe(port).is_none()).then_some(true).ok_or(ENOENT)
                }
                name if !name.starts_with("vale") => Err(EINVAL),
                _ if bridge.is_none() || !m.ports.keys().any(on) => Err(ENOENT),
                name => Ok(m.ports.contains_key(*name) && pipe(name).is_none()),
            };
            let answer = w.list(name, 0, 0).map(|(_, _, port)| port != 255);
            prop_assert_eq!(answer, expected, "{}", name);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_registry_does_what_the_rules_say(ops in vec(op(), 1..50)) {
        let (mut w, mut m) = (World::new(), Model::default());
        for op in &ops {
            step(&mut w, &mut m, op)?;
        }
    }
}
