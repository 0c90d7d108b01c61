//! Real programs across interfaces that Ringway has: DHCP, ARP, IPv6 neighbour discovery, HTTP, ping
//! and iperf3; over wires with several queues, long frames, little room, and VLANs.

use std::{fs, process::Command, time::Duration};

use ringway_testkit::{
    Netns, NicState, Proc, Snapshot, VethPair, install_script, skip_without_root,
};
use ringway_tests::{Home, assert_connected, inside, one_at_a_time, until};

const LIMIT: Duration = Duration::from_secs(30);

/// The address of the host that serves, and of the one that asks where it has no DHCP.
const SERVER: &str = "10.4.0.1";
const CLIENT: &str = "10.4.0.2";

fn home() -> Home {
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli")]);
    home
}

fn ringway(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(home.bin().join("ringway"));
    command.args(args);
    command
}

/// Runs `ringway` to its end.
fn ringway_does(home: &Home, netns: &Netns, args: &[&str]) {
    let (status, said) = Proc::spawn(inside(netns, ringway(home, args))).wait();
    assert!(status.success(), "ringway {args:?}: {said}");
}

/// Lets `ringway bridge` stand between an interface and its stack.
fn bridged(home: &Home, netns: &Netns, interface: &str) -> Proc {
    let port = format!("netmap:{interface}");
    let bridge = Proc::spawn(inside(netns, ringway(home, &["bridge", &port])));
    bridge.wait_for("bridging", LIMIT);
    bridge
}

/// A veth pair leaves checksums to hardware that is not there; a wire would not take that.
fn without_offload(netns: &Netns, interface: &str) {
    netns.run(&format!("ethtool -K {interface} tx off > /dev/null"));
}

/// Waits until an interface has the address of its own by which IPv6 begins.
fn wait_for_address(netns: &Netns, interface: &str) {
    until("the interface has an address", || {
        let shown = netns.run(&format!("ip -6 addr show dev {interface} scope link"));
        match shown.contains("fe80") && !shown.contains("tentative") {
            true => Ok(()),
            false => Err(shown),
        }
    });
}

fn wired(queues: u32) -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::new("rwp"), Netns::new("rwp"));
    let pair = a.veth_queues(&b, "n0", "n1", queues);
    without_offload(&b, "n1");
    (a, b, pair)
}

/// The first host gets its address from the second, by DHCP.
fn assert_dhcp(home: &Home, a: (&Netns, &str), b: (&Netns, &str)) {
    let at = |name: &str| home.path().join(name).display().to_string();
    let [config, leases, pid, script] = ["udhcpd.conf", "leases", "udhcpd.pid", "bound"].map(at);
    fs::write(&leases, "").unwrap();
    let interface = b.1;
    let lines = format!(
        "start 10.4.0.100\nend 10.4.0.100\ninterface {interface}\nlease_file {leases}\n\
         pidfile {pid}\noption subnet 255.255.255.0\n"
    );
    fs::write(&config, lines).unwrap();
    let bound = "#!/bin/sh\n[ \"$1\" != bound ] || ip addr add $ip/$mask dev $interface\n";
    install_script(bound, &script);

    let mut server = b.0.command("busybox");
    server.args(["udhcpd", "-f", &config]);
    let server = Proc::spawn(server);
    server.wait_for("started", LIMIT);
    let said = a.0.run(&format!("busybox udhcpc -f -n -q -T 1 -t 30 -i {} -s {script} 2>&1", a.1));
    assert!(said.contains("10.4.0.100"), "{said}");
    assert!(a.0.run("ip -br addr").contains("10.4.0.100/24"));
    a.0.ping(&format!("-c 3 -i 0.05 -w 30 {SERVER}"));
    a.0.run(&format!("ip addr del 10.4.0.100/24 dev {}", a.1));
}

/// The stacks find each other by ARP, and by neighbour discovery.
fn assert_neighbours(a: (&Netns, &str), b: (&Netns, &str)) {
    let mac = b.0.run(&format!("cat /sys/class/net/{}/address", b.1));
    for (netns, interface, number) in [(b.0, b.1, 1), (a.0, a.1, 2)] {
        netns.run(&format!("ip addr add fd00:4::{number}/64 dev {interface}"));
    }
    for server in [SERVER, "fd00:4::1"] {
        a.0.run("ip neigh flush all; ip -6 neigh flush all");
        // An IPv6 address is nobody's until it is known to be nobody else's.
        until("the neighbour answers", || a.0.try_ping(&format!("-c 1 -w 1 {server}")));
        let found = a.0.run(&format!("ip neigh show to {server}"));
        assert!(found.contains(mac.trim()), "{server}: {found:?}, and not {mac}");
        a.0.ping(&format!("-c 5 -i 0.05 -w 30 -s 1000 {server}"));
    }
}

/// The first host fetches a file of the second's, both ways of which are compared by checksum.
fn assert_fetches(home: &Home, a: &Netns, b: &Netns, server: &str, megabytes: u32) {
    let folder = home.path().join("www");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("file");
    b.run(&format!("head -c {megabytes}M /dev/urandom > {}", file.display()));
    let mut httpd = b.command("busybox");
    httpd.args(["httpd", "-f", "-p", &format!("{server}:8080"), "-h"]).arg(&folder);
    let _httpd = Proc::spawn(httpd);
    until("the server listens", || match b.run("cat /proc/net/tcp").contains(":1F90 ") {
        true => Ok(()),
        false => Err("nobody listens".into()),
    });
    let sum = |netns: &Netns, line: &str| {
        netns.run(&format!("{line} | sha256sum")).split(' ').next().map(String::from)
    };
    let sent = sum(b, &format!("cat {}", file.display()));
    let fetch = format!("busybox wget -q -O - http://{server}:8080/file");
    assert_eq!(sum(a, &fetch), sent, "another file has come");
}

fn address(netns: &Netns, interface: &str, address: &str) {
    netns.run(&format!("ip addr add {address}/24 dev {interface}"));
}

/// All of them.
fn assert_all(home: &Home, a: (&Netns, &str), b: (&Netns, &str)) {
    address(b.0, b.1, SERVER);
    assert_dhcp(home, a, b);
    address(a.0, a.1, CLIENT);
    assert_neighbours(a, b);
    assert_fetches(home, a.0, b.0, SERVER, 16);
    assert_connected(a.0, b.0, SERVER);
}

/// `ringway bridge` between an interface of four queues and its stack.
#[test]
fn between_an_interface_and_its_stack() {
    if skip_without_root("between_an_interface_and_its_stack") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    for mode in ["", "@mode=generic", "@mode=packet"] {
        let home = home();
        let (a, b, pair) = wired(4);
        wait_for_address(&a, "n0");
        let untouched = NicState::take(&a, "n0");
        let bridge = bridged(&home, &a, &format!("n0{mode}"));
        assert_all(&home, (&a, "n0"), (&b, "n1"));
        bridge.kill();
        a.run(&format!("ip addr del {CLIENT}/24 dev n0; ip addr del fd00:4::2/64 dev n0"));
        untouched.assert_restored(&a);
        home.assert_left();
        pair.delete();
    }
    before.assert_clean();
}

/// Three hosts on a switch: two by their cables, and that of the switch itself.
#[test]
fn on_a_switch() {
    if skip_without_root("on_a_switch") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = home();
    let hosts = [(); 3].map(|()| Netns::new("rwp"));
    let [switch, a, b] = &hosts;
    let pairs = [switch.veth(a, "s0", "n0"), switch.veth_queues(b, "s1", "n1", 4)];
    without_offload(a, "n0");
    without_offload(b, "n1");
    let untouched = ["s0", "s1"].map(|name| {
        wait_for_address(switch, name);
        NicState::take(switch, name)
    });
    ringway_does(&home, switch, &["switch", "attach", "vale4", "s0", "--host"]);
    ringway_does(&home, switch, &["switch", "attach", "vale4", "s1"]);
    assert_all(&home, (a, "n0"), (b, "n1"));

    let third = "10.4.0.3";
    address(switch, "s0", third);
    assert_connected(a, switch, third);
    assert_fetches(&home, b, switch, third, 4);
    switch.run(&format!("ip addr del {third}/24 dev s0"));
    ringway_does(&home, switch, &["switch", "delete", "vale4"]);
    untouched.iter().for_each(|state| state.assert_restored(switch));
    home.assert_left();
    pairs.into_iter().for_each(VethPair::delete);
    drop(hosts);
    before.assert_clean();
}

/// Frames wait on the wire, and are lost there: a bottleneck.
#[test]
fn over_a_wire_that_loses_and_delays() {
    if skip_without_root("over_a_wire_that_loses_and_delays") {
        return;
    }
    let _turn = one_at_a_time();
    let home = home();
    let (a, b, _pair) = wired(1);
    address(&a, "n0", CLIENT);
    address(&b, "n1", SERVER);
    let bridge = bridged(&home, &a, "n0");
    b.run("tc qdisc replace dev n1 root tbf rate 60mbit burst 4000 limit 20000");
    assert_fetches(&home, &a, &b, SERVER, 8);
    let seen = b.run("tc -s qdisc show dev n1");
    println!("{seen}");
    assert!(!seen.contains("dropped 0,"), "nothing was lost: {seen}");
    a.ping(&format!("-c 10 -i 0.05 -w 30 {SERVER}"));
    bridge.kill();
    home.assert_left();
}

/// Frames that have several buffers, through a program between two interfaces, and through a switch.
#[test]
fn with_jumbo_frames() {
    if skip_without_root("with_jumbo_frames") {
        return;
    }
    let _turn = one_at_a_time();
    let home = home();
    let hosts = [(); 3].map(|()| Netns::quiet("rwp"));
    let [middle, a, b] = &hosts;
    let _pairs = [middle.veth_queues(a, "s0", "n0", 4), middle.veth_queues(b, "s1", "n0", 4)];
    middle.run("ip link set s0 mtu 9000 && ip link set s1 mtu 9000");
    for (host, own) in [(a, CLIENT), (b, SERVER)] {
        host.run("ip link set n0 mtu 9000");
        without_offload(host, "n0");
        address(host, "n0", own);
    }
    let talk = || {
        // Whole: 8972 and the headers of ICMP and IP are 9000.
        a.ping(&format!("-c 5 -i 0.05 -w 30 -M do -s 8972 {SERVER}"));
        assert_fetches(&home, a, b, SERVER, 16);
        assert_connected(a, b, SERVER);
    };
    let bridge = ringway(&home, &["bridge", "netmap:s0", "netmap:s1"]);
    let bridge = Proc::spawn(inside(middle, bridge));
    bridge.wait_for("bridging", LIMIT);
    talk();
    bridge.kill();
    home.assert_left();

    for name in ["s0", "s1"] {
        ringway_does(&home, middle, &["switch", "attach", "vale4", name]);
    }
    talk();
    ringway_does(&home, middle, &["switch", "delete", "vale4"]);
    home.assert_left();
}

/// Two switches and a cable between them, which carries two VLANs with their tags. The hosts of the
/// one VLAN have the addresses of those of the other.
#[test]
fn vlans_between_switches() {
    if skip_without_root("vlans_between_switches") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = home();
    let switch = Netns::quiet("rwp");
    let hosts = [(); 4].map(|()| Netns::new("rwp"));
    let trunk = switch.veth(&switch, "t1", "t2");
    let does = |args: &[&str]| ringway_does(&home, &switch, args);
    let mut pairs = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let (side, vlan) = (1 + number / 2, ["10", "20"][number % 2]);
        let (port, bridge) = (format!("h{number}"), format!("vale{side}"));
        pairs.push(switch.veth(host, &port, "n0"));
        without_offload(host, "n0");
        address(host, "n0", [CLIENT, SERVER][number / 2]);
        does(&["switch", "attach", &bridge, &port]);
        does(&["switch", "port", &format!("{bridge}:{port}"), "--access", vlan]);
    }
    for side in ["1", "2"] {
        does(&["switch", "attach", &format!("vale{side}"), &format!("t{side}")]);
        does(&["switch", "port", &format!("vale{side}:t{side}"), "--trunk", "10,20"]);
    }
    let [a, x, b, y] = &hosts;
    for (near, far) in [(a, b), (x, y)] {
        assert_neighbours((near, "n0"), (far, "n0"));
        assert_fetches(&home, near, far, SERVER, 4);
    }
    assert_connected(a, b, SERVER);
    // Nobody of the other VLAN has heard any of it.
    let mac = |host: &Netns| host.run("cat /sys/class/net/n0/address");
    for (host, other) in [(x, b), (a, y)] {
        let neighbours = host.run("ip neigh; ip -6 neigh");
        assert!(!neighbours.contains(mac(other).trim()), "{neighbours}");
    }
    for side in ["1", "2"] {
        does(&["switch", "delete", &format!("vale{side}")]);
    }
    home.assert_left();
    trunk.delete();
    pairs.into_iter().for_each(VethPair::delete);
    drop((switch, hosts));
    before.assert_clean();
}
