//! A switch in place of a Linux bridge: containers, a wire to another host, the host's own stack, a
//! persistent port and a program on one switch, each way to attach them; set up from a network
//! namespace that is not the daemon's. Nothing is prepared for it: veth pairs are as they come.

use std::{
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use ringway::{Control, Forwarding, Lossless, NicMode, Port, PortSettings, PortShape};
use ringway_testkit::{Netns, PacketSocket, Proc, Snapshot, VethPair, frame, skip_without_root};
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
        a.netns.ping(&format!("-c 2 -i 0.05 -w 30 {address}"));
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
        let expected = mode.filter(|mode| *mode != NicMode::Packet).map_or("kernel", |m| m.name());
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

/// A host with two cables from the switch's, of which nothing is on the switch yet.
fn cables(names: [&str; 2]) -> (Netns, Netns, [VethPair; 2]) {
    let (here, there) = (Netns::quiet("rwl"), Netns::quiet("rwl"));
    let pairs = names.map(|name| here.veth(&there, name, &format!("{name}-far")));
    (here, there, pairs)
}

fn attach(netns: &Netns, control: &Control, interfaces: &[&str]) {
    netns.enter(|| {
        for interface in interfaces {
            control.switch_attach("vale0", interface, false).unwrap_or_else(|e| panic!("{e}"));
        }
    });
}

/// Both ends of one veth pair on a switch: a frame goes round until one end is blocked, and the switch
/// says which, until it is told to let it take part again.
#[test]
fn a_loop_is_found_blocked_and_told() {
    if skip_without_root("a_loop_is_found_blocked_and_told") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_loop_is_found_blocked_and_told", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        let netns = Netns::quiet("rwl");
        let pair = netns.veth(&netns, "l0", "l1");
        let control = Control::connect().unwrap();
        let mut program = Port::open("vale0:a").unwrap();
        attach(&netns, &control, &["l0", "l1"]);
        let ringway = |line: &str| {
            let mut command = home.command(home.bin().join("ringway"));
            command.args(line.split(' '));
            let (status, output) = Proc::spawn(command).wait();
            assert!(status.success(), "{line}: {output}");
            output
        };
        let mut goes_round_until_blocked = || {
            until("one end is blocked", || {
                program.tx(0).push(&frame(1, 60));
                program.tx(0).sync();
                let switches = control.switches().map_err(|e| e.to_string())?;
                let blocked = switches[0].ports.iter().find(|port| port.loops_with.is_some());
                blocked.cloned().ok_or(format!("{:?}", switches[0].ports))
            })
        };
        let blocked = goes_round_until_blocked();
        let other = blocked.loops_with.unwrap();
        assert!(blocked.name != other && other.starts_with("vale0:l"), "{} {other}", blocked.name);
        let state = format!("blocked: frames go round by {other}");
        for line in ["switch stats", "switch list", "ports"] {
            let shown = ringway(line);
            assert!(shown.contains(&state), "{line}: {shown}");
        }
        assert!(ringway("switch stats --json").contains(&format!("\"loops_with\":\"{other}\"")));
        ringway(&format!("switch port {} --unblock", blocked.name));
        assert!(!ringway("switch stats").contains("blocked"));
        // By what the switch looks for loops gets past filters, of the program in the kernel and of the worker.
        for end in ["l0", "l1"] {
            ringway(&format!("switch port vale0:{end} --filter-in ether[12:2]!=0x9000"));
        }
        goes_round_until_blocked();
        drop((pair, program, control));
        home.assert_left();
    });
}

/// Frames go round through trunks without a native VLAN; through the host's stack, which is a bridge between
/// two persistent ports; and through another switch that has joined two. Each time one port is blocked.
#[test]
fn loops_behind_other_ports_are_found() {
    if skip_without_root("loops_behind_other_ports_are_found") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("loops_behind_other_ports_are_found", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        let netns = Netns::quiet("rwl");
        let pair = netns.veth(&netns, "l0", "l1");
        let control = Control::connect().unwrap();
        let ringway = |line: &str| {
            let mut command = home.command(home.bin().join("ringway"));
            command.args(line.split(' '));
            let (status, output) = Proc::spawn(command).wait();
            assert!(status.success(), "{line}: {output}");
        };
        // What a program sends to all goes round between two of the switch's ports, until one is blocked.
        let is_blocked = |switch: &str, program: &mut Port, among: [&str; 2]| {
            let blocked = until(&format!("a port of {switch} is blocked"), || {
                program.tx(0).push(&frame(1, 60));
                program.tx(0).sync();
                let switches = control.switches().map_err(|e| e.to_string())?;
                let mut ports = switches.iter().flat_map(|switch| &switch.ports);
                let blocked = ports.find(|port| port.loops_with.is_some());
                blocked.cloned().ok_or(format!("{switches:?}"))
            });
            let ends = [&*blocked.name, blocked.loops_with.as_deref().unwrap()];
            for end in among {
                assert!(ends.contains(&end), "{ends:?}");
            }
            ringway(&format!("switch port {} --unblock", blocked.name));
        };

        let mut tagged = Port::open("vale0:a").unwrap();
        attach(&netns, &control, &["l0", "l1"]);
        ringway("switch port vale0:a --access 20");
        ringway("switch port vale0:l0 --trunk 10,20");
        ringway("switch port vale0:l1 --trunk 20,30");
        is_blocked("vale0", &mut tagged, ["vale0:l0", "vale0:l1"]);
        drop((pair, tagged));

        let mut program = Port::open("vale1:a").unwrap();
        netns.run("ip link add br0 type bridge && ip link set br0 up");
        netns.enter(|| {
            for name in ["p0", "p1"] {
                control.interface_new(name, PortShape::default()).unwrap();
                control.switch_attach("vale1", name, true).unwrap();
                netns.run(&format!("ip link set {name} master br0 up"));
            }
        });
        is_blocked("vale1", &mut program, ["vale1:p0^", "vale1:p1^"]);
        netns.run("ip link del br0");
        netns.enter(|| {
            for name in ["p0", "p1"] {
                control.switch_detach("vale1", name).unwrap();
                control.switch_attach("vale1", name, false).unwrap();
                control.switch_attach("vale2", name, false).unwrap();
            }
        });
        // Either switch may find it first.
        until("a port is blocked", || {
            program.tx(0).push(&frame(1, 60));
            program.tx(0).sync();
            let switches = control.switches().map_err(|e| e.to_string())?;
            let mut ports = switches.iter().flat_map(|switch| &switch.ports);
            let blocked = ports.find(|port| port.loops_with.is_some());
            blocked.map(drop).ok_or(format!("{switches:?}"))
        });
        netns.enter(|| {
            for name in ["p0", "p1"] {
                control.switch_detach("vale2", name).unwrap();
                control.switch_detach("vale1", name).unwrap();
                control.interface_delete(name).unwrap();
            }
        });
        drop((program, control));
        home.assert_left();
    });
}

/// Far more frames at once than an interface has room for: those that do not arrive are counted, to the last,
/// in every mode.
#[test]
fn every_frame_arrives_or_is_counted() {
    const FRAMES: u64 = 30_000;
    const TO: [u8; 6] = [2, 0, 0, 0, 0, 9];
    if skip_without_root("every_frame_arrives_or_is_counted") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("every_frame_arrives_or_is_counted", |home| {
        let control = Control::connect().unwrap();
        for mode in [NicMode::Copy, NicMode::Generic, NicMode::Packet] {
            let (here, there, pairs) = cables(["f0", "f1"]);
            let names = ["f0", "f1"].map(|name| format!("{name}@mode={mode}"));
            attach(&here, &control, &names.each_ref().map(String::as_str));
            let sender = PacketSocket::new(&there, "f0-far");
            // For one port: what is for all may be joined by a frame of the switch's own.
            let addresses = vec![(TO, "f1".into())];
            let forwarding = Forwarding::Static { addresses, flood_unknown: false };
            control.switch_forward("vale0", forwarding).unwrap();
            let mut bytes = frame(1, 1514);
            bytes[..6].copy_from_slice(&TO);
            (0..FRAMES).for_each(|_| sender.send(&bytes));
            // As many as the sender's interface has let go.
            let near = "cat /sys/class/net/f0-far/statistics/tx_packets";
            let far = "cat /sys/class/net/f1-far/statistics/rx_packets";
            until(&format!("{mode}: all frames are accounted for"), || {
                let count = |line| there.run(line).trim().parse::<u64>().unwrap();
                let (left, arrived) = (count(near), count(far));
                let switches = control.switches().map_err(|e| e.to_string())?;
                let ports = &switches[0].ports;
                let lost: u64 = ports.iter().map(|port| port.totals.drops.ring_full).sum();
                match arrived + lost {
                    sum if sum == left => Ok(()),
                    sum => {
                        Err(format!("{arrived} arrived, {lost} lost: {sum} of {left}; {ports:?}"))
                    }
                }
            });
            here.enter(|| {
                control.switch_detach("vale0", "f0").unwrap();
                control.switch_detach("vale0", "f1").unwrap();
            });
            drop(pairs);
        }
        drop(control);
        home.assert_left();
    });
}

/// A sender that waits for a lossless port sees for which, in what people read and in what programs do.
#[test]
fn a_sender_sees_for_whom_it_waits() {
    isolated("a_sender_sees_for_whom_it_waits", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        let control = Control::connect().unwrap();
        let _receiver = Port::open("vale0:still").unwrap();
        let mut sender = Port::open("vale0:waits").unwrap();
        let settings = PortSettings {
            lossless: Some(Some(Lossless { patience_ms: 60_000 })),
            ..PortSettings::default()
        };
        control.switch_port("vale0:still", settings).unwrap();
        until("the receiver is full", || {
            while sender.tx(0).push(&[0xff; 60]) {}
            sender.tx(0).sync();
            let switches = control.switches().map_err(|e| e.to_string())?;
            let port = switches[0].ports.iter().find(|port| port.name == "vale0:waits").unwrap();
            match port.waits_for.as_deref() {
                Some("vale0:still") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
        for line in ["switch stats", "ports", "switch stats --json", "ports --json"] {
            let mut command = home.command(home.bin().join("ringway"));
            command.args(line.split(' '));
            let (status, output) = Proc::spawn(command).wait();
            assert!(status.success(), "{line}: {output}");
            let lines: Vec<_> =
                output.lines().filter(|line| line.contains("vale0:still")).collect();
            assert!(lines.iter().any(|line| line.contains("vale0:waits")), "{output}");
        }
    });
}
