//! Attacks by ports of switches, and by pipes.

use std::{collections::BTreeMap, thread, time::Duration};

use ringway::{Control, Error, Lossless, NS_INDIRECT, NS_MOREFRAG, Port, PortSettings, Slot};

use super::{Attacker, as_many};
use crate::{Random, frame::BROADCAST, scribbler::scribble};

/// Receivers of all that is flooded.
const RECEIVERS: usize = 40;
const RINGS: u16 = 16;
/// Milliseconds that a lossless port would have others wait: the most that can be said.
const FOR_EVER: u32 = u32::MAX;
/// Addresses claimed in a round.
const ADDRESSES: u32 = 20_000;
/// Senders that one user may have beside a receiver, and how often each fills its ring.
const SENDERS: usize = 62;
const FILLS: usize = 40;
/// Groups that a switch notes of a port, and those in one report of a host's.
const GROUPS: u8 = 255;
const RECORDS: u8 = 51;
/// Longer than it is from one query of a switch to the next.
const ASKED: Duration = Duration::from_millis(1500);
/// Slots of those that a worker finds in one look.
const BURST: u32 = 128;
/// The receiver's address.
const SINK: [u8; 6] = [2, 0, 0, 0, 0x77, 1];
/// More than a switch has places, and more switches than there may be.
const PLACES: usize = 300;
const SWITCHES: usize = 100;
/// More pipes than a list of one message holds.
const PIPES: usize = 4000;

pub(super) fn scribble_tx(attacker: &Attacker) -> Result<String, Error> {
    scribble(&attacker.port(""), false).map(|()| String::new())
}

pub(super) fn scribble_rx(attacker: &Attacker) -> Result<String, Error> {
    scribble(&attacker.port(""), true).map(|()| String::new())
}

/// Closes a port with all its rings full, of the longest frames, for many that take nothing.
pub(super) fn full_rings(attacker: &Attacker) -> Result<String, Error> {
    let receivers = (0..RECEIVERS).map(|n| attacker.port(n));
    let (_receivers, got) = as_many(&Port::options().rx_only(), receivers);
    let mut port = Port::options().tx_rings(RINGS).rx_rings(1).open(&attacker.port(""))?;
    let frame = vec![0xff; port.max_frame()];
    for ring in 0..port.tx_rings() {
        while port.tx(ring).push(&frame) {}
    }
    for ring in 0..port.tx_rings() {
        port.tx(ring).sync();
    }
    Ok(got)
}

/// Floods itself, and asks that all wait until it takes anything, which it does not.
pub(super) fn stuck_lossless(attacker: &Attacker) -> Result<String, Error> {
    let name = attacker.port("stuck");
    let _stuck = Port::options().rx_only().open(&name)?;
    let lossless = Some(Some(Lossless { patience_ms: FOR_EVER }));
    let settings = PortSettings { lossless, ..PortSettings::default() };
    let got = match Control::connect()?.switch_port(&name, settings) {
        Ok(()) => "it is lossless".into(),
        Err(error) => error.to_string(),
    };
    let mut port = Port::open(&attacker.port(""))?;
    for _ in 0..ADDRESSES {
        port.tx(0).push(&[0xff; 60]);
        port.tx(0).sync();
    }
    Ok(got)
}

/// Frames from and to addresses that nobody has: all of them are learned, and all are flooded.
pub(super) fn addresses(attacker: &Attacker) -> Result<String, Error> {
    let mut port = Port::open(&attacker.port(""))?;
    let mut bytes = [0; 60];
    for n in 0..ADDRESSES {
        attacker.random.borrow_mut().fill(&mut bytes);
        // Unicast from here; now and then to everybody.
        bytes[6] = bytes[6] & !1 | 2;
        if n % 64 == 0 {
            bytes[..6].copy_from_slice(&BROADCAST);
        }
        while !port.tx(0).push(&bytes) {
            port.tx(0).sync();
            thread::yield_now();
        }
    }
    port.tx(0).sync();
    Ok(format!("{ADDRESSES} frames"))
}

/// As many ports of the neighbours' switch, and as many switches, as the daemon has for it.
pub(super) fn places(attacker: &Attacker) -> Result<String, Error> {
    let few = Port::options().tx_slots(16).rx_slots(16);
    let (_ports, places) = as_many(&few, (0..PLACES).map(|n| attacker.port(n)));
    let (_switches, switches) = as_many(&few, (0..SWITCHES).map(|n| format!("valeat{n}:p")));
    Ok(format!("of a switch, {places}; of switches, {switches}"))
}

/// Has as many ports as there may be join as many groups as are noted, and leave them at once: a switch that asks
/// has to ask for each of them. Then they are closed.
pub(super) fn leaves(attacker: &Attacker) -> Result<String, Error> {
    const JOINS: u8 = 4;
    const LEAVES: u8 = 3;
    let few = Port::options().tx_slots(64).rx_slots(64);
    let (mut ports, got) = as_many(&few, (0..SENDERS).map(|n| attacker.port(n)));
    for kind in [JOINS, LEAVES] {
        for port in &mut ports {
            for first in (0..GROUPS).step_by(RECORDS.into()) {
                port.tx(0).push(&report(kind, first));
            }
            port.tx(0).sync();
        }
    }
    thread::sleep(ASKED);
    Ok(got)
}

/// A report of IGMPv3 with a record of that kind for each of some groups.
fn report(kind: u8, first: u8) -> Vec<u8> {
    let sum = |bytes: &[u8]| {
        let words = bytes.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1]));
        let sum: u32 = words.sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
    };
    let mut message = vec![0x22, 0, 0, 0, 0, 0, 0, RECORDS];
    (first..first + RECORDS).for_each(|n| message.extend([kind, 0, 0, 0, 239, 9, 9, n]));
    let checksum = sum(&message);
    message[2..4].copy_from_slice(&checksum);
    let [high, low] = (24 + message.len() as u16).to_be_bytes();
    let mut ip = vec![0x46, 0xc0, high, low, 0, 0, 0, 0, 1, 2, 0, 0, 10, 9, 9, 9, 224, 0, 0, 22];
    ip.extend([0x94, 4, 0, 0]);
    let checksum = sum(&ip);
    ip[10..12].copy_from_slice(&checksum);
    [&[1, 0, 0x5e, 0, 0, 22, 2, 0, 0, 0, 0x77, 3, 8, 0][..], &ip, &message].concat()
}

/// As many pipes as the daemon has for it.
pub(super) fn pipes(attacker: &Attacker) -> Result<String, Error> {
    // With a region for every few of them.
    let names = (0..PIPES).map(|n| format!("attacked{}{{{}", n / 4, n % 4));
    let (ports, got) = as_many(&Port::options().tx_slots(16).rx_slots(16), names);
    for _ in 0..3 {
        attacker.settle()?;
    }
    drop(ports);
    Ok(got)
}

pub(super) fn work_of_one(attacker: &Attacker) -> Result<String, Error> {
    work(attacker, 1)
}

pub(super) fn work_of_many(attacker: &Attacker) -> Result<String, Error> {
    work(attacker, SENDERS)
}

/// Every virtio-net header, length, chain of slots and flag from so many ports to one that has few slots:
/// all that a switch's worker can be made to do for nothing.
fn work(attacker: &Attacker, senders: usize) -> Result<String, Error> {
    let control = Control::connect()?;
    let mut sink = Port::options().tx_slots(16).rx_slots(16).open(&attacker.port("to"))?;
    let mut hello = [0; 60];
    hello[..6].copy_from_slice(&BROADCAST);
    hello[6..12].copy_from_slice(&SINK);
    sink.tx(0).push(&hello);
    sink.tx(0).sync();
    let options = Port::options().tx_slots(1024).rx_slots(16).accept_header();
    let (ports, got) = as_many(&options, (0..senders).map(|n| attacker.port(n)));
    let mut senders = Vec::new();
    for ((n, mut port), header_len) in
        ports.into_iter().enumerate().zip([10, 12, 0].into_iter().cycle())
    {
        control.set_header_len(&attacker.port(n), header_len)?;
        let mut tx = port.tx(0);
        let slots = tx.slots();
        let bufs = (0..slots.num_slots()).map(|n| (slots.place(n), slots.get(n).buf_idx)).collect();
        senders.push(Sender { port, header_len: header_len as usize, bufs });
    }
    let mut random = attacker.random.borrow_mut();
    for _ in 0..FILLS {
        senders.iter_mut().for_each(|sender| sender.fill(&mut random));
        let _ = sink.rx(0).batch(16).count();
        sink.rx(0).sync();
    }
    Ok(got)
}

struct Sender {
    port: Port,
    header_len: usize,
    /// The buffer that each place of the ring had at first.
    bufs: BTreeMap<u32, u32>,
}

impl Sender {
    /// Packets for the sink, and now and then for all, of one kind for each look of the worker.
    fn fill(&mut self, random: &mut Random) {
        let mut of = |among: &[u16]| among[random.below(among.len() as u64) as usize];
        let kind = of(&[0, 1, 3, 4, 5, 5, 0x81, 2]) as u8;
        let size = of(&[1, 7, 100, 536, 1460, 65535]);
        let (chain, length) = (of(&[1, 1, 2, 32, 64, 65]), of(&[0, 13, 60, 1500, 2048, 2049]));
        let flags = of(&[0, 0, NS_INDIRECT]);
        let (has_bad, is_for_all) = (of(&[0, 0, 0, 1]) == 1, of(&[0, 0, 0, 0, 0, 0, 0, 1]) == 1);
        let mut packet = vec![0; self.header_len];
        if let Some(header) = packet.first_chunk_mut::<10>() {
            (header[0], header[1]) = (of(&[0, 1, 2, 4]) as u8, kind);
            header[4..6].copy_from_slice(&size.to_ne_bytes());
            header[6..8].copy_from_slice(&34u16.to_ne_bytes());
            header[8..].copy_from_slice(&6u16.to_ne_bytes());
        }
        packet.extend(if is_for_all { BROADCAST } else { SINK });
        packet.extend([2, 0, 0, 0, 0x77, 2]);
        let protocol = if kind == 5 || kind == 3 { 17 } else { 6 };
        // IPv4 without options, and TCP or UDP.
        let ip = [8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend(ip);
        packet.extend([0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50]);
        packet.resize(self.header_len + 60, 0);
        let mut tx = self.port.tx(0);
        let mut slots = tx.slots();
        let packets = slots.held().min(BURST) / u32::from(chain);
        for n in 0..packets * u32::from(chain) {
            let in_chain = n % u32::from(chain);
            let own = self.bufs.get(&slots.place(n)).copied().unwrap_or_default();
            let slot = Slot { buf_idx: own, len: length, ..slots.get(n) };
            slots.set(n, slot);
            if in_chain == 0 {
                slots.write(n, 0, &packet);
            }
            let buf_idx = if has_bad && n % 3 == 1 { u32::MAX } else { own };
            let more = if in_chain + 1 < chain.into() { NS_MOREFRAG } else { 0 };
            slots.set(n, Slot { buf_idx, flags: more | flags, ..slot });
        }
        slots.advance(packets * u32::from(chain));
        tx.sync();
    }
}
