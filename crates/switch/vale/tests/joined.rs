//! Two bridges with a port in common (S-VALE-14): `program_port.rs`.

mod common;

use std::sync::Arc;

use common::{BROADCAST, Client, barrier, header, listen, mac};
use ringway_ring::WorkerServed;
use ringway_vale::{Bridge, PortConfig, PortCounters, ProgramPort, Vlan};

/// The middle one is a port of the first bridge, and the second bridge is its program.
fn join(middle: &Client, first: &Bridge, second: &Bridge) -> Arc<PortCounters> {
    middle.attach(first);
    let rx = middle.rx.iter().map(|k| (k.clone(), middle.rx_bell.clone())).collect();
    let driver = WorkerServed::new(middle.worker.clone());
    let port = ProgramPort::new(middle.tx.clone(), rx, driver).unwrap();
    let counters = Arc::new(PortCounters::default());
    second.attach(Box::new(port), PortConfig::default(), counters.clone()).unwrap();
    counters
}

/// Waits for the next frame, and returns its bytes.
fn next(client: &Client) -> Vec<u8> {
    loop {
        if let Some(frame) = client.receive(0, 1).pop() {
            return frame.into_iter().flat_map(|(bytes, _)| bytes).collect();
        }
        client.rx_bell.drain();
        client.rx[0].csb().app.arm();
        match client.receive(0, 1).pop() {
            Some(frame) => return frame.into_iter().flat_map(|(bytes, _)| bytes).collect(),
            None => listen(&client.rx_bell),
        }
    }
}

#[test]
fn what_one_bridge_delivers_the_other_sends_on() {
    let (first, second) = (Bridge::start("one").unwrap(), Bridge::start("two").unwrap());
    let [a, b, middle] = [(); 3].map(|()| Client::new([1, 1], [64, 64], 0));
    a.attach(&first);
    let counters = join(&middle, &first, &second);
    b.attach(&second);

    let frame = |dst, src, n: u32| [&header(dst, src)[..], &n.to_le_bytes(), &[7; 50]].concat();
    for n in 0..1000 {
        let (there, back) = (frame(BROADCAST, mac(1), n), frame(mac(1), mac(2), n));
        a.send(&there);
        assert_eq!(next(&b), there);
        b.send(&back);
        assert_eq!(next(&a), back);
    }
    // In pieces, too: what is whole on one side is whole on the other.
    a.fill(0, &frame(mac(2), mac(1), 0)[..40], 40, ringway_abi::NS_MOREFRAG, None);
    a.fill(0, &[9; 1000], 1000, 0, None);
    a.tx_sync(0);
    assert_eq!(next(&b), [&frame(mac(2), mac(1), 0)[..40], &[9; 1000]].concat());

    barrier(&second);
    second.count();
    let totals = counters.totals();
    assert_eq!((totals.sent_packets, totals.received_packets), (1001, 1000));
    assert_eq!(totals.drops, Default::default());
}

/// A bridge that is full drops, and counts it; nobody waits.
#[test]
fn what_does_not_fit_is_counted() {
    let second = Bridge::start("two").unwrap();
    let (middle, b) = (Client::new([1, 1], [8, 8], 0), Client::new([1, 1], [64, 64], 0));
    let rx = vec![(middle.rx[0].clone(), middle.rx_bell.clone())];
    // Nobody serves the port's rings: its first bridge is not there.
    let driver = WorkerServed::new(middle.worker.clone());
    let port = ProgramPort::new(middle.tx.clone(), rx, driver).unwrap();
    let counters = Arc::new(PortCounters::default());
    second.attach(Box::new(port), PortConfig::default(), counters.clone()).unwrap();
    b.attach(&second);
    for _ in 0..10 {
        b.send(&[&header(BROADCAST, mac(2))[..], &[0; 46]].concat());
        b.drained(0);
    }
    barrier(&second);
    second.count();
    let totals = counters.totals();
    assert_eq!((totals.received_packets, totals.drops.ring_full), (7, 3));
}

/// Tags come and go, and virtio-net headers too, where the bridges meet.
#[test]
fn frames_are_dressed_for_the_other_bridge() {
    let (first, second) = (Bridge::start("one").unwrap(), Bridge::start("two").unwrap());
    let [a, b, middle] = [(); 3].map(|()| Client::new([1, 1], [64, 64], 0));
    let with = |vlan| PortConfig { vlan, ..PortConfig::default() };
    a.attach(&first);
    join(&middle, &first, &second);
    let (trunk, _) = b.attach_as(&second, with(Vlan::Access(7)));
    let plain = [&header(BROADCAST, mac(1))[..], &[5; 50]].concat();
    let tagged = [&plain[..12], &[0x81, 0, 0, 7], &plain[12..]].concat();
    let there_and_back = |sent: [&[u8]; 2], got: [&[u8]; 2]| {
        b.send(sent[0]);
        assert_eq!(next(&a), got[0]);
        a.send(sent[1]);
        assert_eq!(next(&b), got[1]);
    };

    let all = Vlan::Trunk { allowed: [7].into(), native: None };
    assert!(second.configure(0, with(all)));
    there_and_back([&plain, &tagged], [&tagged, &plain]);

    assert!(second.configure(trunk, PortConfig::default()));
    let headed = |header_len| PortConfig { header_len, ..PortConfig::default() };
    assert!(first.configure(1, headed(12)) && second.configure(0, headed(12)));
    there_and_back([&plain, &plain], [&plain, &plain]);
}
