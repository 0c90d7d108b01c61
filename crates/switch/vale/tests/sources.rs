//! Ports that claim addresses: bound to their own, counted, and unable to crowd out others.

mod common;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use common::{BROADCAST, Client, barrier, bytes, header, mac};
use ringway_switch_port::Drops;
use ringway_vale::{
    Bridge, Clock, Forwarding, PortConfig, SourceAddresses, StaticAddress, SteppedBridge,
};

fn world(
    name: &str,
    sources: [SourceAddresses; 3],
) -> (Bridge, Vec<Client>, Vec<impl Fn() -> [u64; 4]>) {
    let bridge = Bridge::start(name).unwrap();
    let clients: Vec<_> = (0..3).map(|_| Client::new([1, 1], [1024, 1024], 0)).collect();
    let attach = |(client, sources): (&Client, SourceAddresses)| {
        let config = PortConfig { sources, ..PortConfig::default() };
        let counters = client.attach_as(&bridge, config).1;
        move || {
            let totals = counters.totals();
            [totals.sent_packets, totals.drops.spoofed, totals.moved, totals.unlearned]
        }
    };
    let counters = clients.iter().zip(sources).map(attach).collect();
    (bridge, clients, counters)
}

fn send(bridge: &Bridge, client: &Client, frame: &[u8]) {
    client.send(frame);
    client.drained(0);
    barrier(bridge);
}

#[test]
fn a_port_speaks_for_its_addresses_alone() {
    let only = SourceAddresses::Only(vec![mac(20), mac(1)]);
    let (bridge, clients, counters) =
        world("vale-sources", [only, SourceAddresses::One, SourceAddresses::Any]);
    for source in [1, 20, 2, 9] {
        send(&bridge, &clients[0], &header(BROADCAST, mac(source)));
        send(&bridge, &clients[1], &header(BROADCAST, mac(source + 100)));
    }
    let senders = |frames: Vec<Vec<u8>>| -> Vec<u8> { frames.iter().map(|f| f[11]).collect() };
    let mut seen = senders(bytes(clients[2].receive(0, usize::MAX)));
    seen.sort();
    assert_eq!(seen, [1, 20, 101]);
    assert_eq!(counters[0]()[1], 2);
    assert_eq!(counters[1]()[1], 3);
    // What it is bound to stays, although it is configured anew; another setting frees it.
    let lossless = Some(Default::default());
    let bound = PortConfig { sources: SourceAddresses::One, lossless, ..PortConfig::default() };
    assert!(bridge.configure(1, bound));
    send(&bridge, &clients[1], &header(BROADCAST, mac(102)));
    assert_eq!(counters[1]()[1], 4);
    assert!(bridge.configure(1, PortConfig::default()));
    send(&bridge, &clients[1], &header(BROADCAST, mac(102)));
    assert_eq!(senders(bytes(clients[2].receive(0, usize::MAX))), [102]);
}

/// A port that sends with its neighbour's address gets what is for that one, as in netmap, until the
/// neighbour sends again. It shows.
#[test]
fn claiming_a_neighbours_address_is_counted() {
    let any = || SourceAddresses::Any;
    let (bridge, clients, counters) = world("vale-claims", [any(), any(), any()]);
    send(&bridge, &clients[0], &header(BROADCAST, mac(1)));
    assert_eq!(counters[0]()[2], 0);
    send(&bridge, &clients[1], &header(BROADCAST, mac(1)));
    assert_eq!([counters[0]()[2], counters[1]()[2]], [0, 1]);
    send(&bridge, &clients[0], &header(BROADCAST, mac(1)));
    assert_eq!([counters[0]()[2], counters[1]()[2]], [1, 1]);
}

static NOW: AtomicU64 = AtomicU64::new(0);

/// A port with a limit of addresses: what it sends with further ones is dropped, until one of them is forgotten,
/// or goes elsewhere. An address that is behind another port is no exception.
#[test]
fn a_port_has_so_many_addresses() {
    let clock = Clock::new(|| NOW.load(Relaxed));
    let forwarding = Forwarding::Learning { ageing_seconds: 10 };
    let mut bridge = SteppedBridge::new(&forwarding, clock).unwrap();
    let clients: Vec<_> = (0..2).map(|_| Client::new([1, 1], [1024, 1024], 0)).collect();
    let limited = PortConfig { max_addresses: Some(2), ..PortConfig::default() };
    for (client, config) in clients.iter().zip([limited, PortConfig::default()]) {
        bridge.attach(Box::new(client.port()), config).unwrap();
    }
    let mut send = |from: usize, sources: &[u8]| -> Vec<u8> {
        for source in sources {
            clients[from].fill(0, &header(BROADCAST, mac(*source)), 14, 0, None);
        }
        bridge.flush_idle();
        clients[from].tx_sync(0);
        while bridge.round() {}
        let frames = bytes(clients[1 - from].receive(0, usize::MAX));
        while bridge.round() {}
        frames.iter().map(|frame| frame[11]).collect()
    };
    // In one burst, and again.
    assert_eq!(send(0, &[1, 2, 3, 1, 4, 2]), [1, 2, 1, 2]);
    assert_eq!(send(0, &[3, 1]), [1]);
    assert_eq!(send(1, &[7]), [7]);
    assert_eq!(send(0, &[7]), [], "it is behind the other");
    assert_eq!(send(1, &[1]), [1], "one of the two has moved");
    assert_eq!(send(0, &[3, 1]), [3]);
    NOW.store(5_000, Relaxed);
    assert_eq!(send(0, &[3]), [3]);
    NOW.store(12_000, Relaxed);
    assert_eq!(send(0, &[3, 5, 6]), [3, 5], "2 was not seen for so long");
    let totals = bridge.totals(0).unwrap();
    assert_eq!((totals.drops.spoofed, totals.sent_packets), (6, 15));
    assert_eq!(totals.known, 2);
}

/// What an interface has received with a source that is a group's, or zero, goes nowhere, with any settings of the port.
/// What a program sends is forwarded, as in netmap.
#[test]
fn no_machine_sends_with_such_an_address() {
    const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];
    let mut bridge = SteppedBridge::new(&Forwarding::default(), Clock::new(|| 0)).unwrap();
    let clients: Vec<_> = (0..3).map(|_| Client::new([1, 1], [1024, 1024], 0)).collect();
    let interface = PortConfig { is_interface: true, ..PortConfig::default() };
    for (client, config) in clients.iter().zip([&interface, &interface, &PortConfig::default()]) {
        bridge.attach(Box::new(client.port()), config.clone()).unwrap();
    }
    let send = |bridge: &mut SteppedBridge, from: usize, to: [u8; 6]| -> [usize; 3] {
        for source in [[0; 6], [0xff; 6], GROUP, mac(1), [0, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 0]] {
            clients[from].fill(0, &header(to, source), 14, 0, None);
        }
        clients[from].tx_sync(0);
        while bridge.round() {}
        let got = [0, 1, 2].map(|at| bytes(clients[at].receive(0, usize::MAX)).len());
        while bridge.round() {}
        got
    };
    assert_eq!(send(&mut bridge, 0, BROADCAST), [0, 3, 3]);
    assert_eq!(send(&mut bridge, 0, mac(9)), [0, 3, 3]);
    bridge.flush_idle();
    let totals = bridge.totals(0).unwrap();
    assert_eq!((totals.sent_packets, totals.drops.bad_source, totals.known), (12, 6, 3));
    // It is no address too many, none that the port may not have, and not in the wrong VLAN.
    let strict = PortConfig {
        max_addresses: Some(3),
        sources: SourceAddresses::Only(vec![mac(1)]),
        ..interface.clone()
    };
    assert!(bridge.configure(0, strict));
    assert_eq!(send(&mut bridge, 0, BROADCAST), [0, 1, 1]);
    let drops = bridge.totals(0).unwrap().drops;
    assert_eq!((drops.bad_source, drops.spoofed), (9, 2));
    assert_eq!(send(&mut bridge, 2, BROADCAST), [6, 6, 0]);
    assert_eq!(bridge.totals(2).unwrap().drops, Drops::default());
}

/// A port that makes up addresses without end: those of its neighbours stay known.
#[test]
fn made_up_addresses_crowd_out_nobody() {
    let any = || SourceAddresses::Any;
    let (bridge, clients, counters) = world("vale-crowd", [any(), any(), any()]);
    send(&bridge, &clients[0], &header(BROADCAST, mac(1)));
    clients[2].receive(0, usize::MAX);
    for round in 0..100u8 {
        for n in 0..100u8 {
            let made_up = [2, 7, round, n, 7, 7];
            clients[1].fill(0, &header(mac(1), made_up), 14, 0, None);
        }
        clients[1].tx_sync(0);
        clients[1].drained(0);
        clients[0].receive(0, usize::MAX);
        // What is flooded comes here, too.
        assert_eq!(clients[2].receive(0, usize::MAX).len(), 0, "round {round}");
    }
    bridge.count();
    assert!(counters[1]()[3] > 1_000, "many of its own are not learned: {:?}", counters[1]());
}

/// A packet whose source is not learned counts once, however often it is decided where it goes: also if the port's addresses are
/// counted, and while it waits for a lossless port.
#[test]
fn what_is_not_learned_counts_once() {
    const PACKETS: u64 = 40;
    let limited = PortConfig { max_addresses: Some(5), ..PortConfig::default() };
    let lossless = PortConfig { lossless: Some(Default::default()), ..PortConfig::default() };
    for config in [PortConfig::default(), limited] {
        let clock = Clock::new(|| 1000);
        let mut bridge = SteppedBridge::new(&Forwarding::default(), clock).unwrap();
        let [sender, receiver] = [64, 8].map(|slots| Client::new([1, 1], [slots; 2], 0));
        let index = bridge.attach(Box::new(sender.port()), config).unwrap();
        let other = bridge.attach(Box::new(receiver.port()), lossless.clone()).unwrap();
        bridge.set_static_addresses(vec![StaticAddress { mac: mac(9), vlan: 0, port: other }]);
        let frame = [&header(BROADCAST, mac(9))[..], &[0; 46]].concat();
        (0..PACKETS).for_each(|_| sender.fill(0, &frame, 60, 0, None));
        sender.tx_sync(0);
        let mut got = 0;
        while got < PACKETS {
            while bridge.round() {}
            bridge.flush_idle();
            got += receiver.receive(0, 1).len() as u64;
        }
        let totals = bridge.totals(index).unwrap();
        assert_eq!((totals.sent_packets, totals.unlearned), (PACKETS, PACKETS));
    }
}
