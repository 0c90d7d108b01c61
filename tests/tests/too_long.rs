//! A slot that is longer than its buffer, on every kind of port: its packet arrives whole or not at
//! all, never cut, and what is lost is counted where a user looks (S-SYNC-9).

use std::time::Duration;

use ringway::{Control, Port, Slot};
use ringway_abi::NS_MOREFRAG;
use ringway_testkit::{Netns, PacketSocket, frame, skip_without_root};
use ringway_tests::{
    c::{Language::C11, Library::Libnetmap, succeed},
    compile, inside, isolated,
    packet::{numbered, receive},
    until,
    wire::wire,
};

const LIMIT: Duration = Duration::from_secs(30);

fn open(netns: &Netns, name: &str) -> Port {
    netns.enter(|| Port::open(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Puts a packet of slots of these lengths, of which each buffer is full, into the last tx ring: a
/// host ring, where there is one.
fn put(port: &mut Port, number: u8, lengths: &[usize]) {
    let room = port.max_frame();
    let last = port.tx_rings() - 1;
    let mut tx = port.tx(last);
    let mut slots = tx.slots();
    for (n, &length) in (0..).zip(lengths) {
        let whole = frame(number.into(), room);
        slots.write(n, 0, &whole);
        let flags = if n as usize + 1 < lengths.len() { NS_MOREFRAG } else { 0 };
        slots.set(n, Slot { len: length as u16, flags, ..slots.get(n) });
    }
    slots.advance(lengths.len() as u32);
    tx.sync();
}

/// The lengths of the packets that come up to the one with number 0, which is good.
fn received(port: &mut Port) -> Vec<(u8, usize)> {
    let (mut packets, mut length) = (Vec::new(), 0);
    loop {
        assert!(port.wait_rx(Some(LIMIT)).unwrap(), "only {packets:?} came");
        for ring in 0..port.rx_rings() {
            for slot in port.rx(ring).batch(64) {
                length += slot.len();
                if slot.more_fragments() {
                    continue;
                }
                let number = slot.read::<1>(17).map_or(u8::MAX, |[number]| number);
                packets.push((number, length));
                length = 0;
                if number == 0 {
                    return packets;
                }
            }
        }
    }
}

/// What `ringway ports --rings` has of a port, and `ringway switch stats`.
fn too_long(port: &str) -> u64 {
    let control = Control::connect().unwrap();
    let ports = control.ports().unwrap();
    let rings = ports.iter().filter(|info| info.name.contains(port));
    let rings = rings.flat_map(|info| control.rings(info).unwrap()).map(|ring| ring.too_long);
    let switches = control.switches().unwrap();
    let members = switches.iter().flat_map(|switch| &switch.ports);
    let members = members.filter(|member| member.name.contains(port));
    rings.sum::<u64>() + members.map(|member| member.totals.drops.too_long).sum::<u64>()
}

#[test]
fn packets_arrive_whole_or_not_at_all() {
    if skip_without_root("packets_arrive_whole_or_not_at_all") {
        return;
    }
    isolated("packets_arrive_whole_or_not_at_all", |_| {
        let nic = ["copy", "generic", "packet"].map(|mode| {
            (format!("netmap:n0@mode={mode}"), format!("netmap:n1@mode={mode}"), "n0".to_owned())
        });
        let larger = ("netmap:n0@buffers=4096".into(), "netmap:n1".into(), "n0".into());
        let others = [
            ("netmap:n0^", "netmap:n0/r", "n0"),
            ("vale0:p", "vale0:q", "vale0:p"),
            ("vale1:p", "netmap:n1", "vale1:p"),
        ];
        let others = others.map(|(from, to, counts)| (from.into(), to.into(), counts.into()));
        for (from, to, counts) in nic.into_iter().chain([larger]).chain(others) {
            let (a, b, _pair) = wire();
            for (netns, interface) in [(&a, "n0"), (&b, "n1")] {
                netns.run(&format!("ip link set {interface} mtu 9000"));
            }
            let control = Control::connect().unwrap();
            if from.starts_with("vale1") {
                a.enter(|| control.switch_attach("vale1", "n0", false)).unwrap();
            }
            let far = if to.contains("n1") { &b } else { &a };
            let host = from.ends_with('^');
            // The stack is seen by a socket of its own.
            let stack = host.then(|| PacketSocket::new(&a, "n0"));
            let mut receiver = stack.is_none().then(|| open(far, &to));
            let mut sender = open(&a, &from);
            let room = sender.max_frame();
            let mut lost = 0;
            let common =
                [&[room + 1][..], &[usize::from(u16::MAX)], &[room + 1, 60], &[60, room + 1]];
            // A packet has one slot on a host ring (S-HOST-4), however short it is.
            let on_host: &[&[usize]] = if host { &[&[400; 3], &[60; 40]] } else { &[] };
            for &lengths in common.iter().chain(on_host) {
                lost += 1;
                put(&mut sender, lost, lengths);
                put(&mut sender, 0, &[60]);
                match (&mut receiver, &stack) {
                    (Some(receiver), _) => {
                        assert_eq!(received(receiver), [(0, 60)], "{from} to {to}: {lengths:?}");
                    }
                    (None, Some(stack)) => {
                        assert_eq!(stack.hear().bytes, frame(0, 60), "{from}: {lengths:?}");
                    }
                    (None, None) => unreachable!("one of them is there"),
                }
            }
            until(&format!("{from}: {lost} are counted"), || match too_long(&counts) {
                n if n == u64::from(lost) => Ok(()),
                n => Err(format!("{n} are")),
            });
            drop((sender, receiver));
            if from.starts_with("vale1") {
                a.enter(|| control.switch_detach("vale1", "n0")).unwrap();
            }
        }
    });
}

/// A packet that is shorter than an Ethernet header is dropped for the same reason everywhere.
#[test]
fn short_packets_have_one_reason() {
    if skip_without_root("short_packets_have_one_reason") {
        return;
    }
    isolated("short_packets_have_one_reason", |home| {
        let (a, _b, pair) = wire();
        let control = Control::connect().unwrap();
        // What rings and switches tell of a port: too short, bad slots, too long.
        let dropped = |port: &str| {
            let ports = control.ports().unwrap();
            let rings = ports.iter().filter(|info| info.name.contains(port));
            let rings = rings.flat_map(|info| control.rings(info).unwrap());
            let of_rings = rings.map(|ring| [ring.too_short, ring.bad_slot, ring.too_long]);
            let switches = control.switches().unwrap();
            let members = switches.iter().flat_map(|switch| &switch.ports);
            let members = members.filter(|member| member.name.contains(port));
            let drops = members.map(|member| member.totals.drops);
            let of_switches = drops.map(|drops| [drops.too_short, drops.bad_slot, drops.too_long]);
            let all: Vec<_> = of_rings.chain(of_switches).collect();
            [0, 1, 2].map(|reason| all.iter().map(|counts| counts[reason]).sum::<u64>())
        };
        for (name, counts) in [
            ("netmap:n0@mode=copy", "n0"),
            ("netmap:n0@mode=generic", "n0"),
            ("netmap:n0@mode=packet", "n0"),
            ("netmap:n0^", "n0"),
            ("vale0:p", "vale0:p"),
        ] {
            let mut port = open(&a, name);
            put(&mut port, 1, &[13]);
            put(&mut port, 1, &[1]);
            until(&format!("{name}: they are counted"), || match dropped(counts) {
                [2, 0, 0] => Ok(()),
                found => Err(format!("{found:?}")),
            });
        }
        // A capture file has all frames that are not empty.
        let file = format!("file:{}@write", home.path().join("short.pcap").display());
        let mut port = Port::open(&file).unwrap();
        for lengths in [&[13][..], &[0], &[0, 0]] {
            put(&mut port, 1, lengths);
        }
        port.finish_file().unwrap();
        let stats = port.stats();
        assert_eq!((stats.tx_packets, stats.too_short, stats.bad_slot), (1, 2, 0));
        drop((port, control, pair));
        home.assert_left();
    });
}

/// A capture file has whole frames only; a pipe, which looks at nothing, hands slots on as they are.
#[test]
fn files_and_pipes() {
    isolated("files_and_pipes", |home| {
        let file = format!("file:{}", home.path().join("some.pcap").display());
        let mut port = Port::open(&format!("{file}@write")).unwrap();
        let room = port.max_frame();
        for lengths in [&[room + 1][..], &[room, room + 1, 60], &[usize::from(u16::MAX), 60]] {
            put(&mut port, 1, lengths);
        }
        put(&mut port, 0, &[room, 60]);
        port.finish_file().unwrap();
        assert_eq!(port.stats().too_long, 3);
        assert_eq!(received(&mut Port::open(&file).unwrap()), [(0, room + 60)]);

        let (mut from, mut to) = (Port::open("p{1").unwrap(), Port::open("p}1").unwrap());
        put(&mut from, 1, &[room + 1]);
        assert!(to.wait_rx(Some(LIMIT)).unwrap());
        assert_eq!(usize::from(to.rx(0).slots().get(0).len), room + 1);
    });
}

/// Our own `nm_inject` and `nmport_inject` split by what a slot can have, which is less than a
/// buffer where interfaces are.
#[test]
fn what_is_injected_is_split_by_what_fits() {
    if skip_without_root("what_is_injected_is_split_by_what_fits") {
        return;
    }
    isolated("what_is_injected_is_split_by_what_fits", |home| {
        home.install(&[("libnetmap.so", "ringway-libnetmap")]);
        let program = compile(home, "tests/c/inject_long.c", C11, Libnetmap);
        let (a, b, _pair) = wire();
        for (netns, interface) in [(&a, "n0"), (&b, "n1")] {
            netns.run(&format!("ip link set {interface} mtu 9000"));
        }
        let mut far = open(&b, "netmap:n1");
        for length in [1792, 1793, 2000, 2048, 2049, 5000] {
            let mut command = home.command(&program);
            command.args(["netmap:n0", &length.to_string()]);
            succeed(inside(&a, command));
            for _ in 0..2 {
                let (bytes, _) = receive(&mut far, 0, LIMIT);
                assert!(bytes == numbered(length), "{} of {length} bytes", bytes.len());
            }
        }
        assert_eq!(far.stats().too_long, 0);
    });
}
