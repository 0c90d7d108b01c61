//! Mirrors of the bridge: a port gets each frame once that others send or receive, and what becomes of the copies
//! is counted.

mod common;

use std::{collections::BTreeSet, sync::Arc};

use common::{BROADCAST, Client, bytes, header, mac};
use proptest::prelude::*;
use ringway_filter::{Insn, Program};
use ringway_vale::{
    Clock, Forwarding, Lossless, MirrorCounters, MirrorSources, MirrorTotals, PortConfig,
    PortFilter, SteppedBridge, SwitchMirror,
};

const PORTS: u8 = 5;

fn mirror(from: MirrorSources, [sent, received]: [bool; 2], to: u8) -> SwitchMirror {
    SwitchMirror { from, sent, received, to, filter: None, counters: Arc::default() }
}

/// A bridge that knows where all addresses are.
fn bridge() -> SteppedBridge {
    let addresses = (0..PORTS).map(|port| (mac(port), port)).collect();
    let forwarding = Forwarding::Static { addresses, flood_unknown: true };
    SteppedBridge::new(&forwarding, Clock::new(|| 0)).unwrap()
}

fn attached(bridge: &mut SteppedBridge, slots: u32) -> Vec<Client> {
    let clients: Vec<_> = (0..PORTS).map(|_| Client::new([1, 1], [slots; 2], 0)).collect();
    for (index, client) in (0..).zip(&clients) {
        let attached = bridge.attach(Box::new(client.port()), PortConfig::default());
        assert_eq!(attached, Some(index));
    }
    clients
}

/// A frame of 60 bytes, which has a number.
fn frame(to: [u8; 6], from: u8, number: u32) -> Vec<u8> {
    let mut frame = [&header(to, mac(from))[..], &number.to_be_bytes()].concat();
    frame.resize(60, 0);
    frame
}

fn send(client: &Client, frame: &[u8]) {
    client.fill(0, frame, frame.len() as u16, 0, None);
}

fn work(bridge: &mut SteppedBridge) {
    while bridge.round() {}
    bridge.flush_idle();
}

fn received(client: &Client) -> Vec<Vec<u8>> {
    bytes(client.receive(0, usize::MAX))
}

#[derive(Clone, Debug)]
struct Wanted {
    from: Option<BTreeSet<u8>>,
    sent: bool,
    received: bool,
    to: u8,
}

impl Wanted {
    fn mirror(&self, counters: &Arc<MirrorCounters>) -> SwitchMirror {
        let from = match &self.from {
            None => MirrorSources::All,
            Some(ports) => MirrorSources::Ports(ports.iter().copied().collect()),
        };
        let counters = counters.clone();
        SwitchMirror { counters, ..mirror(from, [self.sent, self.received], self.to) }
    }

    fn has(&self, port: u8) -> bool {
        port != self.to && self.from.as_ref().is_none_or(|ports| ports.contains(&port))
    }

    /// Whether it shows a frame with these receivers.
    fn shows(&self, source: u8, receivers: &[u8]) -> bool {
        let is_received = receivers.iter().any(|port| self.has(*port));
        source != self.to && (self.sent && self.has(source) || self.received && is_received)
    }
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let from = proptest::option::of(proptest::collection::btree_set(0..PORTS, 0..4));
    let directions = prop_oneof![Just((true, false)), Just((false, true)), Just((true, true))];
    (from, directions, 0..PORTS).prop_map(|(from, (sent, received), to)| Wanted {
        from,
        sent,
        received,
        to,
    })
}

proptest! {
    /// What each port gets, and what each mirror counts, is what a list of rules says.
    #[test]
    fn copies_are_those_of_the_model(
        mirrors in proptest::collection::vec(wanted(), 0..4),
        // Port 9 is to all.
        frames in proptest::collection::vec((0..PORTS, prop_oneof![0..PORTS, Just(9)]), 1..60),
        burst in 1_usize..20,
    ) {
        let mut bridge = bridge();
        let clients = attached(&mut bridge, 512);
        let counters: Vec<Arc<MirrorCounters>> = mirrors.iter().map(|_| Arc::default()).collect();
        let set = mirrors.iter().zip(&counters).map(|(wanted, counters)| wanted.mirror(counters));
        bridge.set_switch_mirrors(set.collect());

        let mut expected: Vec<Vec<Vec<u8>>> = vec![Vec::new(); PORTS.into()];
        let mut copied = vec![0; mirrors.len()];
        let is_target = |port: u8| mirrors.iter().any(|mirror| mirror.to == port);
        for (number, (from, to)) in (0..).zip(&frames) {
            let is_for = |port: &u8| *to == *port || *to == 9;
            let receivers: Vec<u8> = (0..PORTS)
                .filter(|port| port != from && is_for(port) && !is_target(*port))
                .collect();
            let to = if *to == 9 { BROADCAST } else { mac(*to) };
            let frame = frame(to, *from, number);
            send(&clients[usize::from(*from)], &frame);
            receivers.iter().for_each(|port| expected[usize::from(*port)].push(frame.clone()));
            for (mirror, copied) in mirrors.iter().zip(&mut copied) {
                if mirror.shows(*from, &receivers) {
                    expected[usize::from(mirror.to)].push(frame.clone());
                    *copied += 1;
                }
            }
            if (number as usize).is_multiple_of(burst) {
                clients.iter().for_each(|client| client.tx_sync(0));
                work(&mut bridge);
            }
        }
        clients.iter().for_each(|client| client.tx_sync(0));
        work(&mut bridge);
        for (port, client) in clients.iter().enumerate() {
            // Each sender's turn comes when it does.
            let (mut got, mut expected) = (received(client), expected[port].clone());
            got.sort();
            expected.sort();
            prop_assert_eq!(got, expected, "port {}", port);
        }
        for (counters, copied) in counters.iter().zip(copied) {
            let (copied_packets, copied_bytes) = (copied, 60 * copied);
            let expected = MirrorTotals { copied_packets, copied_bytes, ..<_>::default() };
            prop_assert_eq!(counters.totals(), expected);
        }
    }
}

#[test]
fn what_has_no_room_is_counted() {
    let mut bridge = bridge();
    let clients = attached(&mut bridge, 64);
    let of_all = mirror(MirrorSources::All, [true, true], 4);
    let counters = of_all.counters.clone();
    bridge.set_switch_mirrors(vec![of_all]);
    for number in 0..100 {
        send(&clients[0], &frame(mac(1), 0, number));
        clients[0].tx_sync(0);
        work(&mut bridge);
        assert_eq!(received(&clients[1]).len(), 1, "the receiver has all");
    }
    let totals = counters.totals();
    assert_eq!((totals.copied_packets, totals.ring_full), (63, 37));
    assert_eq!(bridge.totals(4).unwrap().drops.ring_full, 37);
    assert_eq!(received(&clients[4]).len(), 63);

    // A program that does not read gets none.
    clients[4].set_receives(false);
    send(&clients[0], &frame(mac(1), 0, 0));
    clients[0].tx_sync(0);
    work(&mut bridge);
    assert_eq!(counters.totals(), MirrorTotals { no_destination: 1, ..totals });
}

/// Classic BPF: the 12th byte of the frame is this.
fn from_machine(last: u8) -> Arc<PortFilter> {
    let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
    let insns =
        [insn(0x30, 0, 0, 11), insn(0x15, 0, 1, last.into()), insn(6, 0, 0, 1), insn(6, 0, 0, 0)];
    let program = Program::new(insns.to_vec()).unwrap();
    Arc::new(PortFilter { text: "from".into(), program })
}

#[test]
fn a_filter_chooses() {
    let mut bridge = bridge();
    let clients = attached(&mut bridge, 64);
    let filter = Some(from_machine(mac(1)[5]));
    let filtered = SwitchMirror { filter, ..mirror(MirrorSources::All, [true, false], 4) };
    let counters = filtered.counters.clone();
    bridge.set_switch_mirrors(vec![filtered]);
    let sent: Vec<_> = (0..3).map(|from| frame(mac(3), from, 7)).collect();
    for (client, frame) in clients.iter().zip(&sent) {
        send(client, frame);
        client.tx_sync(0);
    }
    work(&mut bridge);
    assert_eq!(received(&clients[4]), [sent[1].clone()]);
    let expected = MirrorTotals { copied_packets: 1, copied_bytes: 60, ..<_>::default() };
    assert_eq!(counters.totals(), expected);

    // What the port's own filter keeps from it is counted.
    let config = PortConfig { filter_out: Some(from_machine(mac(2)[5])), ..PortConfig::default() };
    assert!(bridge.configure(4, config));
    send(&clients[1], &sent[1]);
    clients[1].tx_sync(0);
    work(&mut bridge);
    assert_eq!(counters.totals(), MirrorTotals { denied: 1, ..expected });
}

/// Frames that wait for a lossless port after others have them, and go on later, are copied once, also where another mirror
/// comes before it in the list meanwhile, or goes.
#[test]
fn a_frame_that_waits_is_copied_once() {
    for directions in [[true, false], [false, true], [true, true]] {
        let mut bridge = bridge();
        let clients = attached(&mut bridge, 16);
        let lossless = Some(Lossless::default());
        assert!(bridge.configure(3, PortConfig { lossless, ..PortConfig::default() }));
        let shown = mirror(MirrorSources::Ports(vec![0, 1, 2, 3]), directions, 4);
        let counters = shown.counters.clone();
        // Of a port that sends nothing.
        let other = mirror(MirrorSources::Ports(vec![1]), [true, false], 4);
        let mut lists = [vec![shown.clone()], vec![other, shown]].into_iter().cycle();
        let (mut copies, mut others) = (Vec::new(), Vec::new());
        let sent: Vec<_> = (0..60).map(|number| frame(BROADCAST, 0, number)).collect();
        let (mut rest, mut waited) = (sent.iter().peekable(), false);
        while others.len() < sent.len() {
            bridge.set_switch_mirrors(lists.next().unwrap());
            let view = clients[0].tx[0].ring();
            while view.head() != view.tail()
                && let Some(frame) = rest.next()
            {
                send(&clients[0], frame);
            }
            clients[0].tx_sync(0);
            work(&mut bridge);
            copies.extend(received(&clients[4]));
            received(&clients[1]);
            received(&clients[2]);
            waited |= bridge.state(0).unwrap().waits_for == Some(3);
            others.extend(bytes(clients[3].receive(0, 3)));
        }
        work(&mut bridge);
        copies.extend(received(&clients[4]));
        assert!(waited && rest.peek().is_none());
        assert_eq!(others, sent);
        assert_eq!(copies, sent, "{directions:?}");
        assert_eq!(counters.totals().copied_packets, 60);
    }
}

/// What the switch does not take is not shown, and what it has no port for is.
#[test]
fn refused_frames_are_not_copied() {
    let mut bridge = bridge();
    let clients = attached(&mut bridge, 16);
    let filter_in = Some(from_machine(mac(0)[5]));
    assert!(bridge.configure(0, PortConfig { filter_in, ..PortConfig::default() }));
    bridge.set_switch_mirrors(vec![mirror(MirrorSources::Ports(vec![0]), [true, true], 4)]);
    let nowhere = frame(mac(0), 0, 1);
    for frame in [&nowhere, &frame(mac(1), 3, 2), &nowhere[..9].to_vec()] {
        send(&clients[0], frame);
    }
    clients[0].tx_sync(0);
    work(&mut bridge);
    assert_eq!(received(&clients[4]), [nowhere]);
    let drops = bridge.totals(0).unwrap().drops;
    assert_eq!((drops.no_destination, drops.denied, drops.too_short), (1, 1, 1));
}

/// With the mirror, the port is as others again.
#[test]
fn a_port_is_a_mirrors_as_long_as_there_is_one() {
    let mut bridge = bridge();
    let clients = attached(&mut bridge, 16);
    let to_all = frame(BROADCAST, 0, 1);
    let hears = |bridge: &mut SteppedBridge| {
        send(&clients[0], &to_all);
        clients[0].tx_sync(0);
        work(bridge);
        clients.iter().map(received).map(|frames| frames.len()).collect::<Vec<_>>()
    };
    assert_eq!(hears(&mut bridge), [0, 1, 1, 1, 1]);
    bridge.set_switch_mirrors(vec![mirror(MirrorSources::Ports(vec![1]), [true, false], 4)]);
    assert_eq!(hears(&mut bridge), [0, 1, 1, 1, 0]);
    bridge.set_switch_mirrors(vec![mirror(MirrorSources::Ports(vec![1]), [false, true], 4)]);
    assert_eq!(hears(&mut bridge), [0, 1, 1, 1, 1]);
    bridge.set_switch_mirrors(Vec::new());
    assert_eq!(hears(&mut bridge), [0, 1, 1, 1, 1]);
}
