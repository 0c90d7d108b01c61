//! A switch in place of a Linux bridge: containers, a wire to another host, the host's own stack, a
//! persistent port and a program on one switch, each way to attach them; set up from a network
//! namespace that is not the daemon's. Nothing is prepared for it: veth pairs are as they come.

use std::{
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use ringway::{Control, NicMode, Port};
use ringway_testkit::{Netns, Proc, Snapshot, VethPair, skip_without_root};
use ringway_tests::{inside, isolated, one_at_a_time, until};

const LIMIT: Duration = Duration::from_secs(30);

/// A host with the interface that is its way to the others.
struct Host {
    netns: Netns,
    interface: &'static str,
    number: u8,
}

impl Host {
    fn address(&self) -> String {
        format!("10.8.0.{}", self.number)
    }

    fn address6(&self) -> String {
        format!("fd08::{}", self.number)
    }

    /// Both addresses, for good at once.
    fn configure(&self) {
        let Host { interface, .. } = self;
        self.netns.run(&format!(
            "ip addr add {}/24 dev {interface} && ip link set {interface} up &&
             ip -6 addr add {}/64 dev {interface} nodad",
            self.address(),
            self.address6()
        ));
    }
}

/// Pings by IPv4, and so ARP, and IPv6, and so neighbour discovery; TCP by both.
fn assert_connected(a: &Host, b: &Host) {
    for address in [b.address(), b.address6()] {
        a.netns.ping(&format!("-c 2 -i 0.05 -W 10 {address}"));
        let mut server = b.netns.command("iperf3");
        server.args(["-s", "-1", "--forceflush"]);
        let server = Proc::spawn(server);
        server.wait_for("listening", LIMIT);
        let line = format!("iperf3 -c {address} -n 16M");
        let output = a.netns.try_run(&line);
        let text = String::from_utf8_lossy(&output.stdout);
        println!("{line}: {}", text.lines().rev().nth(2).unwrap_or_default());
        assert!(output.status.success(), "{line}: {text}; the server: {}", server.output());
    }
}

/// As DHCP does it: who has no address asks everybody, and is answered at everybody's address.
fn assert_asks_for_an_address(client: &Host, server: &Host) {
    let everybody = |port: u16| SocketAddr::from(([255; 4], port));
    let [asks, answers] = [(client, 68), (server, 67)].map(|(host, port)| {
        let Host { netns, interface, .. } = host;
        netns.run(&format!(
            "ip link set {interface} up && ip route add default dev {interface}
             sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.{interface}.rp_filter=0"
        ));
        let socket = netns.enter(|| UdpSocket::bind(("0.0.0.0", port))).expect("a free port");
        socket.set_broadcast(true).expect("a socket option");
        socket.set_read_timeout(Some(Duration::from_secs(1))).expect("not zero");
        socket
    });
    let mut bytes = [0; 64];
    until("the one without an address is answered", || {
        let step = |what: std::io::Result<usize>| what.map_err(|e| e.to_string());
        step(asks.send_to(b"discover", everybody(67)))?;
        let (n, from) = answers.recv_from(&mut bytes).map_err(|e| e.to_string())?;
        assert_eq!((&bytes[..n], from), (&b"discover"[..], SocketAddr::from(([0; 4], 68))));
        step(answers.send_to(b"offer", everybody(68)))?;
        let n = step(asks.recv(&mut bytes))?;
        assert_eq!(bytes[..n], *b"offer");
        Ok(())
    });
    for Host { netns, interface, .. } in [client, server] {
        netns.run(&format!("ip route del default dev {interface}"));
    }
}

/// A program with the address 10.8.0.99: it answers whoever asks for that, and gets a datagram.
fn assert_reaches(host: &Host, program: &mut Port) {
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 99];
    const ADDRESS: [u8; 4] = [10, 8, 0, 99];
    let socket = host.netns.enter(|| UdpSocket::bind("0.0.0.0:0")).expect("any port");
    until("a datagram has reached the program", || {
        socket
            .send_to(b"to a program", SocketAddr::from((ADDRESS, 9)))
            .map_err(|e| e.to_string())?;
        program.wait_rx(Some(Duration::from_millis(500))).map_err(|e| e.to_string())?;
        let heard: Vec<_> = program.rx(0).batch(64).map(|frame| frame.to_vec()).collect();
        for frame in &heard {
            if frame.ends_with(b"to a program") && frame[..6] == MAC {
                return Ok(());
            }
            if frame[12..14] == [8, 6] && frame[20..22] == [0, 1] && frame[38..42] == ADDRESS {
                let mut answer = frame.clone();
                answer[..6].copy_from_slice(&frame[6..12]);
                answer[6..12].copy_from_slice(&MAC);
                answer[21] = 2;
                answer[22..28].copy_from_slice(&MAC);
                answer[28..32].copy_from_slice(&ADDRESS);
                answer[32..42].copy_from_slice(&frame[22..32]);
                assert!(program.tx(0).push(&answer));
            }
        }
        program.tx(0).sync();
        program.rx(0).sync();
        Err(format!("of {} frames none was it", heard.len()))
    });
}

/// What attaching could have changed of the interfaces, and did not.
fn state(netns: &Netns) -> String {
    netns.run("ip -d link show type veth; for i in n0 c0 c1; do ethtool -k $i; done")
}

fn replaces_a_linux_bridge(test: &str, mode: Option<NicMode>, keep: bool) {
    let _turn = one_at_a_time();
    isolated(test, |home| {
        let before = Snapshot::take();
        home.install(&[("ringway", "ringway-cli")]);
        let host = |interface, number| Host { netns: Netns::new("rwb"), interface, number };
        let stack = host("n0", 5);
        let (a, b) = (host("eth0", 1), host("eth0", 2));
        let remote = host("r0", 3);
        let persistent = host("p0", 4);
        let wires: Vec<VethPair> = [("c0", &a), ("c1", &b), ("n0", &remote)]
            .map(|(here, there)| stack.netns.veth(&there.netns, here, there.interface))
            .into();
        let untouched = state(&stack.netns);
        let ringway = |host: &Host, line: &str| {
            let mut command = home.command(home.bin().join("ringway"));
            command.args(line.split(' '));
            if let Some(mode) = mode {
                command.env("RINGWAY_NIC_MODE", mode.name());
            }
            let (status, output) = Proc::spawn(inside(&host.netns, command)).wait();
            assert!(status.success(), "{line}: {output}");
            output
        };
        // The daemon is of this process's network namespace, and nothing here is in that.
        let control = Control::connect().unwrap();
        if keep {
            ringway(&stack, "switch new vale8");
        }
        ringway(&stack, "switch attach vale8 n0 c0 c1 --host");
        let listed = ringway(&stack, "switch list");
        let expected = mode.unwrap_or(NicMode::Copy);
        for port in ["n0", "c0", "c1"] {
            assert!(listed.contains(&format!("vale8:{port} ({expected})")), "{listed}");
        }
        persistent.netns.enter(|| {
            control.interface_new("p0", Default::default()).unwrap();
            control.switch_attach("vale8", "p0", true).unwrap();
        });
        let mut program = Port::open("vale8:program").unwrap();

        assert_asks_for_an_address(&a, &remote);
        let hosts = [a, b, remote, persistent, stack];
        hosts.iter().for_each(Host::configure);
        for (i, from) in hosts.iter().enumerate() {
            for to in &hosts[i + 1..] {
                assert_connected(from, to);
            }
            assert_reaches(from, &mut program);
        }
        drop(program);

        let [a, b, remote, persistent, stack] = hosts;
        persistent.netns.enter(|| {
            control.switch_detach("vale8", "p0").unwrap();
            control.interface_delete("p0").unwrap();
        });
        drop(control);
        ringway(&stack, "switch delete vale8");
        home.assert_left();
        until("the interfaces are as they were", || match state(&stack.netns) {
            now if now == untouched => Ok(()),
            now => Err(now),
        });
        // The stack has its interface back.
        assert_connected(&stack, &remote);
        drop((wires, a, b, remote, persistent, stack));
        before.assert_clean();
    });
}

#[test]
fn in_place_of_a_linux_bridge() {
    if !skip_without_root("in_place_of_a_linux_bridge") {
        replaces_a_linux_bridge("in_place_of_a_linux_bridge", None, false);
    }
}

#[test]
fn in_place_of_a_linux_bridge_in_packet_mode() {
    let test = "in_place_of_a_linux_bridge_in_packet_mode";
    if !skip_without_root(test) {
        replaces_a_linux_bridge(test, Some(NicMode::Packet), true);
    }
}
