//! Two hosts and a cable.

use std::{net::UdpSocket, time::Duration};

use ringway_testkit::{Netns, VethPair};

use crate::until;

/// Longer than a datagram takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Two quiet hosts with interface `n0` in one and `n1` in the other, which know each other's
/// addresses: their stacks say nothing that they are not told to.
pub fn wire() -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rww"), Netns::quiet("rww"));
    let pair = connect(&a, &b);
    (a, b, pair)
}

/// The cable between them, with addresses 10.9.0.1 and 10.9.0.2.
pub fn connect(a: &Netns, b: &Netns) -> VethPair {
    let pair = a.veth(b, "n0", "n1");
    for (netns, interface, own, other) in [(a, "n0", 1, 2), (b, "n1", 2, 1)] {
        netns.run(&format!(
            "ip link set {interface} address 02:00:00:00:00:0{own} &&
             ip addr add 10.9.0.{own}/24 dev {interface} &&
             ip neigh add 10.9.0.{other} lladdr 02:00:00:00:00:0{other} dev {interface}"
        ));
    }
    pair
}

/// Waits until something has been sent through an interface: whoever receives with `traffic` says
/// hello when it has the port.
pub fn await_sent(netns: &Netns, interface: &str) {
    until("something is sent", || match netns.run(&format!("ip -s -j link show {interface}")) {
        stats if stats.contains("\"tx\":{\"bytes\":0") => Err(stats),
        _ => Ok(()),
    });
}

/// A socket of each host's stack, connected with the other's.
pub fn sockets(a: &Netns, b: &Netns) -> [UdpSocket; 2] {
    let socket = |netns: &Netns, own, other| {
        netns.enter(|| {
            let socket = UdpSocket::bind(format!("10.9.0.{own}:9009")).expect("our address");
            socket.connect(format!("10.9.0.{other}:9009")).expect("a route");
            socket.set_read_timeout(Some(LIMIT)).expect("not zero");
            socket
        })
    };
    [socket(a, 1, 2), socket(b, 2, 1)]
}
