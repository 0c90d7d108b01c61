//! Ports that are isolated: nothing passes between two of them, and all reach the others.

mod common;

use common::{BROADCAST, Client, barrier, bytes, header, mac};
use ringway_vale::{Bridge, Lossless, PortConfig};

/// Two isolated ports and a third; if `waits`, the last is lossless, so that frames go out in steps.
fn check(name: &str, waits: bool) {
    let bridge = Bridge::start(name).unwrap();
    let clients: Vec<_> = (0..3).map(|_| Client::new([1, 1], [1024, 1024], 0)).collect();
    let counters: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(port, client)| {
            let lossless = (waits && port == 2).then(Lossless::default);
            let config = PortConfig { isolated: port < 2, lossless, ..PortConfig::default() };
            client.attach_as(&bridge, config).1
        })
        .collect();
    let send = |from: usize, to: [u8; 6]| {
        clients[from].send(&header(to, mac(from as u8)));
        clients[from].drained(0);
        barrier(&bridge);
    };
    let heard = || -> Vec<usize> {
        clients.iter().map(|client| bytes(client.receive(0, usize::MAX)).len()).collect()
    };
    // For all, before and after the switch knows the addresses; then for one.
    for _ in 0..2 {
        for (from, expected) in [(0, [0, 0, 1]), (1, [0, 0, 1]), (2, [1, 1, 0])] {
            send(from, BROADCAST);
            assert_eq!(heard(), expected, "from {from} to all");
        }
    }
    for (from, to, arrives) in [(0, 1, false), (1, 0, false), (0, 2, true), (2, 1, true)] {
        let before = counters[from].totals().drops.filtered;
        send(from, mac(to));
        assert_eq!(heard()[usize::from(to)] == 1, arrives, "from {from} to {to}");
        let lost = counters[from].totals().drops.filtered - before;
        assert_eq!(lost == 1, !arrives, "from {from} to {to}: {lost} counted");
    }
    // Not isolated any more, a port is heard again.
    assert!(bridge.configure(1, PortConfig::default()));
    send(1, BROADCAST);
    assert_eq!(heard(), [1, 0, 1]);
}

#[test]
fn nothing_passes_between_isolated_ports() {
    check("vale-isolated", false);
}

#[test]
fn nor_where_frames_wait() {
    check("vale-isolated-l", true);
}
