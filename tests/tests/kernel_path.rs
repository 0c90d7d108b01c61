//! A switch's program in the kernel: what it forwards, what it leaves to the worker, and that nobody can
//! tell which of the two it was, but by the speed.

use std::{
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use ringway::{BridgePortInfo, Control, Port, PortSettings, Vlan};
use ringway_proto::PortTotals;
use ringway_testkit::{Netns, PacketSocket, Proc, Snapshot, VethPair, frame, skip_without_root};
use ringway_tests::{beside_others, ends, isolated, one_at_a_time, receive, until};

const LIMIT: Duration = Duration::from_secs(30);

/// Containers `c0`, `c1` and so on, each with an interface of that name on the switch's side.
struct Containers {
    here: Netns,
    there: Vec<Netns>,
    wires: Vec<VethPair>,
}

impl Containers {
    fn new(count: usize) -> Containers {
        let (here, mut there, mut wires) = (Netns::quiet("rwk"), Vec::new(), Vec::new());
        for number in 0..count {
            let netns = Netns::quiet("rwk");
            wires.push(here.veth(&netns, &format!("c{number}"), "eth0"));
            let own = number + 1;
            netns.run(&format!(
                "sysctl -qw net.ipv6.conf.all.disable_ipv6=1
                 ip link set eth0 address 02:00:00:00:00:0{own} && ip link set lo up
                 ip addr add 10.8.0.{own}/24 dev eth0 && ip link set eth0 up"
            ));
            there.push(netns);
        }
        Containers { here, there, wires }
    }

    fn attach(&self, control: &Control) {
        self.here.enter(|| {
            for number in 0..self.there.len() {
                control.switch_attach("vale0", &format!("c{number}"), false).unwrap();
            }
        });
    }

    /// Each has its neighbours' addresses, and the switch knows all of them.
    fn introduce(&self) {
        for netns in &self.there {
            for other in 1..=self.there.len() {
                netns.try_run(&format!(
                    "ip neigh replace 10.8.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0"
                ));
            }
        }
        for netns in &self.there {
            PacketSocket::new(netns, "eth0").send(&broadcast(netns));
        }
    }
}

/// From a container's own address.
fn broadcast(netns: &Netns) -> Vec<u8> {
    let text = netns.run("cat /sys/class/net/eth0/address");
    let mac: Vec<u8> =
        text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let mut bytes = frame(0, 60);
    bytes[..6].fill(0xff);
    bytes[6..12].copy_from_slice(&mac);
    bytes
}

fn port(control: &Control, name: &str) -> BridgePortInfo {
    let switches = control.switches().unwrap();
    let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
    ports.find(|port| port.name == name).unwrap_or_else(|| panic!("there is no {name}"))
}

fn totals(control: &Control, name: &str) -> PortTotals {
    port(control, name).totals
}

/// So many megabytes by TCP, from the first to the second.
fn tcp(from: &Netns, to: &Netns, address: &str, megabytes: u32) {
    let mut server = to.command("iperf3");
    server.args(["-s", "-1", "--forceflush"]);
    let server = Proc::spawn(server);
    server.wait_for("listening", LIMIT);
    let line = format!("iperf3 -c {address} -n {megabytes}M");
    let output = from.try_run(&line);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{line}: {text}; the server: {}", server.output());
}

/// Bytes of a frame that `name` has sent, on average, in a TCP connection. One before that is not counted: its first
/// frames go by the worker, which has to learn the addresses.
fn bytes_of_a_frame(
    control: &Control,
    name: &str,
    [from, to]: [&Netns; 2],
    address: &str,
    megabytes: u32,
) -> u64 {
    tcp(from, to, address, 1);
    let before = totals(control, name);
    tcp(from, to, address, megabytes);
    let after = totals(control, name);
    (after.sent_bytes - before.sent_bytes) / (after.sent_packets - before.sent_packets)
}

/// A stack's segments of up to 64 KiB cross whole, which they do in the kernel alone: a worker cuts them up.
/// Both paths count for the same ports.
#[test]
fn what_the_switch_knows_is_forwarded_whole() {
    if skip_without_root("what_the_switch_knows_is_forwarded_whole") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("what_the_switch_knows_is_forwarded_whole", |home| {
        let before = Snapshot::take();
        let control = Control::connect().unwrap();
        let containers = Containers::new(2);
        containers.attach(&control);
        assert_eq!(port(&control, "vale0:c0").mode.as_deref(), Some("kernel"));
        containers.introduce();
        let [a, b] = &containers.there[..] else { panic!("two") };
        let frames_in = || {
            let text = containers.here.run("cat /sys/class/net/c0/statistics/rx_packets");
            text.trim().parse::<u64>().unwrap()
        };
        let (there, counted) = (frames_in(), totals(&control, "vale0:c0").sent_packets);
        let whole = bytes_of_a_frame(&control, "vale0:c0", [a, b], "10.8.0.2", 64);
        assert!(whole > 3 * 1514, "{whole} bytes a frame");
        until("every frame is counted, by one or the other", || {
            let (there, now) = (frames_in() - there, totals(&control, "vale0:c0"));
            if now.sent_packets - counted == there {
                Ok(())
            } else {
                Err(format!("{there}, {now:?}"))
            }
        });

        // Where somebody watches, the worker sees to it; and not a moment longer.
        let monitor = containers.here.enter(|| Port::open("vale0:c0/t")).unwrap();
        let cut = bytes_of_a_frame(&control, "vale0:c0", [a, b], "10.8.0.2", 4);
        assert!(cut <= 1514, "{cut} bytes a frame");
        let mode = || port(&control, "vale0:c0").mode;
        assert_eq!(mode().as_deref(), Some("kernel, by the worker: it has monitors"));
        drop(monitor);
        until("the kernel forwards again", || {
            if mode().as_deref() == Some("kernel") { Ok(()) } else { Err(format!("{:?}", mode())) }
        });
        let whole = bytes_of_a_frame(&control, "vale0:c0", [a, b], "10.8.0.2", 64);
        assert!(whole > 3 * 1514, "{whole} bytes a frame");

        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
        before.assert_clean();
    });
}

/// The worker forgets a port's address a thousand times, and learns it again, while frames come one after
/// the other: each arrives, once, in its order.
#[test]
fn frames_stay_in_order_while_they_change_their_path() {
    const CHANGES: u32 = 1000;
    if skip_without_root("frames_stay_in_order_while_they_change_their_path") {
        return;
    }
    let _turn = beside_others();
    isolated("frames_stay_in_order_while_they_change_their_path", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(2);
        containers.attach(&control);
        containers.introduce();
        let [a, b] = &containers.there[..] else { panic!("two") };
        let to = SocketAddr::from(([10, 8, 0, 2], 9000));
        let receiver = b.enter(|| UdpSocket::bind(to)).unwrap();
        receiver.set_read_timeout(Some(LIMIT)).unwrap();
        let sender = a.enter(|| UdpSocket::bind("10.8.0.1:0")).unwrap();
        sender.connect(to).unwrap();
        let number = |socket: &UdpSocket| {
            let mut bytes = [0; 8];
            socket.recv(&mut bytes).expect("every frame arrives");
            u64::from_ne_bytes(bytes)
        };
        let mut next = 0u64;
        for change in 0..CHANGES {
            // What the switch has learned of one end, or of the other, is forgotten.
            let port = format!("vale0:c{}", change % 2);
            let group_forward = Some((change / 2 % 2) as u16 * 0b10_0000_0000);
            control
                .switch_port(&port, PortSettings { group_forward, ..PortSettings::default() })
                .unwrap();
            // Its first frame is learned by; those behind it are the ones that could overtake it.
            if change % 2 == 1 {
                PacketSocket::new(b, "eth0").send(&broadcast(b));
            }
            for at in next..next + 32 {
                sender.send(&at.to_ne_bytes()).unwrap();
            }
            for expected in next..next + 32 {
                assert_eq!(number(&receiver), expected, "after change {change}");
            }
            next += 32;
        }
        // Most went by the kernel, or there was nothing to keep in order.
        let sent = totals(&control, "vale0:c0").sent_packets;
        assert!(sent >= next, "{sent}");
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// Ports of one VLAN are as fast as without; those of another get nothing.
#[test]
fn vlans_are_kept_apart() {
    if skip_without_root("vlans_are_kept_apart") {
        return;
    }
    let _turn = beside_others();
    isolated("vlans_are_kept_apart", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(3);
        containers.attach(&control);
        containers.introduce();
        for (number, vlan) in [(0, 5), (1, 5), (2, 6)] {
            let vlan = Some(Vlan::Access(vlan));
            let settings = PortSettings { vlan, ..PortSettings::default() };
            control.switch_port(&format!("vale0:c{number}"), settings).unwrap();
        }
        containers.introduce();
        let [a, b, c] = &containers.there[..] else { panic!("three") };
        let whole = bytes_of_a_frame(&control, "vale0:c0", [a, b], "10.8.0.2", 64);
        assert!(whole > 3 * 1514, "{whole} bytes a frame");
        // The neighbours know each other's addresses, so it is no question that is lost.
        assert!(a.try_ping("-c 2 -i 0.1 -w 1 10.8.0.3").is_err());
        // A tag of the other VLAN is not for such a port to send.
        let before = totals(&control, "vale0:c0").drops.vlan;
        let mut tagged = frame(1, 60);
        tagged[..12].copy_from_slice(&[2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 1]);
        tagged[12..16].copy_from_slice(&[0x81, 0, 0, 6]);
        let heard = PacketSocket::new(c, "eth0");
        PacketSocket::new(a, "eth0").send(&tagged);
        until("the frame is dropped", || match totals(&control, "vale0:c0").drops.vlan {
            now if now > before => Ok(()),
            now => Err(now.to_string()),
        });
        while let Some(other) = heard.try_hear() {
            assert_ne!(other.bytes[..12], tagged[..12]);
        }
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// Between an access port and trunks, with a tag at one end, at both, and at none.
#[test]
fn tagged_frames_take_the_kernels_path() {
    if skip_without_root("tagged_frames_take_the_kernels_path") {
        return;
    }
    let _turn = beside_others();
    isolated("tagged_frames_take_the_kernels_path", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(4);
        containers.attach(&control);
        let trunk = |native| Vlan::Trunk { allowed: [5, 6].into(), native };
        let vlans = [Vlan::Access(5), trunk(None), trunk(Some(7)), trunk(Some(5))];
        for (number, vlan) in vlans.into_iter().enumerate() {
            let settings = PortSettings { vlan: Some(vlan), ..PortSettings::default() };
            control.switch_port(&format!("vale0:c{number}"), settings).unwrap();
            let mode = port(&control, &format!("vale0:c{number}")).mode;
            assert_eq!(mode.as_deref(), Some("kernel"));
        }
        let [access, trunk, other, native] = &containers.there[..] else { panic!("four") };
        // As 802.1Q devices, which not all kernels have.
        let _tags = [trunk, other].map(|netns| [netns.tag("eth0", 0x8100, 5), netns.untag("eth0")]);
        for (from, to, address) in [
            (access, trunk, "10.8.0.2"),
            (trunk, access, "10.8.0.1"),
            (trunk, other, "10.8.0.3"),
            (native, other, "10.8.0.3"),
            (access, native, "10.8.0.4"),
        ] {
            let number = containers.there.iter().position(|netns| std::ptr::eq(netns, from));
            let name = format!("vale0:c{}", number.unwrap());
            from.ping(&format!("-c 1 -w 30 {address}"));
            let whole = bytes_of_a_frame(&control, &name, [from, to], address, 32);
            assert!(whole > 3 * 1514, "{name} to {address}: {whole} bytes a frame");
        }
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// The tag of a frame that ends within a second tag cannot be taken off: it is dropped, and was sent once.
#[test]
fn a_frame_whose_tag_cannot_be_taken_is_sent_once() {
    if skip_without_root("a_frame_whose_tag_cannot_be_taken_is_sent_once") {
        return;
    }
    let _turn = beside_others();
    isolated("a_frame_whose_tag_cannot_be_taken_is_sent_once", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(2);
        containers.attach(&control);
        let trunk = Vlan::Trunk { allowed: [5].into(), native: None };
        for (name, vlan) in [("vale0:c0", Vlan::Access(5)), ("vale0:c1", trunk)] {
            let settings = PortSettings { vlan: Some(vlan), ..PortSettings::default() };
            control.switch_port(name, settings).unwrap();
        }
        let [access, trunk] = &containers.there[..] else { panic!("two") };
        let sockets = [access, trunk].map(|netns| PacketSocket::new(netns, "eth0"));
        // Behind the addresses of a frame for all.
        let (from_access, mut from_trunk) = (broadcast(access), broadcast(trunk));
        from_trunk.splice(12..12, [0x81, 0, 0, 5]);
        let mut cut: Vec<u8> = [&from_access[6..12], &from_trunk[6..12]].concat();
        cut.extend([0x81, 0, 0, 5, 0x88, 0xa8, 0, 0]);
        let counted = || totals(&control, "vale0:c1");
        sockets[0].send(&from_access);
        sockets[1].send(&from_trunk);
        until("the switch knows both", || {
            let sent = ["vale0:c0", "vale0:c1"].map(|name| totals(&control, name).sent_packets);
            if sent.contains(&0) { Err(format!("{sent:?}")) } else { Ok(()) }
        });
        // The worker has the first ones.
        let (before, after) = until("the kernel drops one", || {
            let before = counted();
            sockets[1].send(&cut);
            let after = until("it is counted", || match counted() {
                after if after.sent_packets > before.sent_packets => Ok(after),
                after => Err(format!("{after:?}")),
            });
            match after.drops.ring_full - before.drops.ring_full {
                1 => Ok((before, after)),
                _ => Err(format!("{after:?}")),
            }
        });
        assert_eq!(after.sent_packets - before.sent_packets, 1, "{before:?}, {after:?}");
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// A frame that is too long for its receiver's interface is dropped, and counted there; one for an interface without a
/// link goes to the others, as its address is forgotten; one for a program comes up; an address that moves is found where it is.
#[test]
fn the_kernel_does_what_the_worker_would() {
    if skip_without_root("the_kernel_does_what_the_worker_would") {
        return;
    }
    let _turn = beside_others();
    isolated("the_kernel_does_what_the_worker_would", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(3);
        containers.attach(&control);
        containers.introduce();
        let [a, b, c] = &containers.there[..] else { panic!("three") };
        let [from, to, other] = [a, b, c].map(|netns| PacketSocket::new(netns, "eth0"));
        let mut bytes = frame(1, 1200);
        bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        let arrives = |socket: &PacketSocket, bytes: &[u8]| {
            from.send(bytes);
            let ours = |heard: ringway_testkit::Heard| (heard.bytes == bytes).then_some(());
            std::iter::from_fn(|| socket.hear_within(LIMIT)).find_map(ours).expect("it arrives");
        };
        arrives(&to, &bytes);

        // The way between the kernel and the worker is no port of its own.
        let links = containers.here.run("ip -br link");
        let mut names = links.split_whitespace().filter_map(|word| word.split('@').next());
        let private = names.find(|name| name.starts_with("rwport")).expect("a port has one");
        let attached = containers.here.enter(|| control.switch_attach("vale0", private, false));
        let said = attached.unwrap_err().to_string();
        assert!(said.contains("the daemon has made that interface"), "{said}");

        containers.here.run("ip link set c1 mtu 1000");
        until("the switch has the new MTU", || {
            let before = totals(&control, "vale0:c1").drops.too_long;
            from.send(&bytes);
            let after = || totals(&control, "vale0:c1").drops.too_long;
            if after() > before { Ok(()) } else { Err(format!("{before}")) }
        });
        containers.here.run("ip link set c1 mtu 1500");
        until("and the old one again", || {
            from.send(&bytes);
            let heard = std::iter::from_fn(|| to.try_hear()).find(|heard| heard.bytes == bytes);
            heard.map(drop).ok_or(String::new())
        });

        // Without a link nothing is left to the kernel. The others get what is for an address there.
        to.send(&broadcast(b));
        arrives(&to, &bytes);
        let is_in = |mode: &str| {
            until(mode, || match port(&control, "vale0:c1").mode {
                Some(now) if now == mode => Ok(()),
                now => Err(format!("{now:?}")),
            });
        };
        containers.here.run("ip link set c1 down");
        // The switch hears of it, and forgets the addresses there, when it may.
        is_in("kernel, by the worker: it has no link");
        arrives(&other, &bytes);
        containers.here.run("ip link set c1 up");
        is_in("kernel");
        arrives(&to, &bytes);

        // The second's address, which is learned anew, and then comes from the third container. What the second
        // sends is lost as long as the kernel has not told its interface of the link.
        until("the second's address is known", || {
            to.send(&broadcast(b));
            match totals(&control, "vale0:c1").known {
                0 => Err(String::new()),
                _ => Ok(()),
            }
        });
        arrives(&to, &bytes);
        let mut moved = broadcast(b);
        moved[14] = 1;
        other.send(&moved);
        // It has heard the same frame while nobody knew the second's address.
        bytes[20] ^= 1;
        until("frames go to the third container", || {
            from.send(&bytes);
            let heard = std::iter::from_fn(|| other.try_hear()).find(|heard| heard.bytes == bytes);
            heard.map(drop).ok_or(String::new())
        });
        assert_eq!(totals(&control, "vale0:c2").moved, 1);

        // A frame for a program comes up to it.
        let mut program = Port::open("vale0:program").unwrap();
        let mut hello = frame(2, 60);
        hello[..12].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9]);
        ringway_tests::packet::send(&mut program, &hello);
        bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        from.send(&bytes);
        while receive(&mut program) != bytes {}
        drop(program);
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// VXLAN between two containers: TCP within UDP, whose checksums nobody has finished.
#[test]
fn tunnels_cross() {
    if skip_without_root("tunnels_cross") {
        return;
    }
    let _turn = beside_others();
    isolated("tunnels_cross", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(2);
        containers.attach(&control);
        containers.introduce();
        let [a, b] = &containers.there[..] else { panic!("two") };
        for (netns, own, other) in [(a, 1, 2), (b, 2, 1)] {
            netns.run(&format!(
                "ip link add vx0 type vxlan id 7 dstport 4789 local 10.8.0.{own} \
                     remote 10.8.0.{other} dev eth0
                 ip addr add 10.7.0.{own}/24 dev vx0 && ip link set vx0 up"
            ));
        }
        tcp(a, b, "10.7.0.2", 16);
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// The stack of this side is behind `c0`, as 10.8.0.9; what it sends and receives crosses whole, to and from
/// the wire of that interface and another container.
#[test]
fn the_host_takes_the_kernels_path() {
    if skip_without_root("the_host_takes_the_kernels_path") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("the_host_takes_the_kernels_path", |home| {
        let before = Snapshot::take();
        let control = Control::connect().unwrap();
        let containers = Containers::new(2);
        let here = &containers.here;
        here.run("ip link set lo up && ip addr add 10.8.0.9/24 dev c0");
        here.enter(|| {
            control.switch_attach("vale0", "c0", true).unwrap();
            control.switch_attach("vale0", "c1", false).unwrap();
        });
        assert_eq!(port(&control, "vale0:c0").mode.as_deref(), Some("kernel"));
        for (netns, address) in containers.there.iter().zip(["10.8.0.1", "10.8.0.2"]) {
            let mut cut = vec![];
            for (is_here, from, to, address) in
                [(true, here, netns, address), (false, netns, here, "10.8.0.9")]
            {
                // The connection's first frames go by the worker.
                tcp(from, to, address, 1);
                let counted = totals(&control, "vale0:c0^");
                tcp(from, to, address, 64);
                let now = totals(&control, "vale0:c0^");
                cut.push(if is_here {
                    (now.sent_bytes - counted.sent_bytes)
                        / (now.sent_packets - counted.sent_packets)
                } else {
                    (now.received_bytes - counted.received_bytes)
                        / (now.received_packets - counted.received_packets)
                });
            }
            assert!(cut.iter().all(|bytes| *bytes > 3 * 1514), "{address}: {cut:?} bytes a frame");
        }
        let [a, b] = &containers.there[..] else { panic!("two") };
        tcp(a, b, "10.8.0.2", 16);

        // Set down, it hears nothing, and that is counted.
        let lost = || {
            let [from, wire] = ["vale0:c1", "vale0:c0"].map(|name| totals(&control, name).drops);
            from.no_destination + wire.ring_full
        };
        let counted = lost();
        let text = here.run("cat /sys/class/net/c0/address");
        let mac: Vec<u8> =
            text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        let mut bytes = broadcast(b);
        bytes[..6].copy_from_slice(&mac);
        let sender = PacketSocket::new(b, "eth0");
        here.run("ip link set c0 down");
        until("what it cannot hear is counted", || {
            sender.send(&bytes);
            if lost() > counted { Ok(()) } else { Err(String::new()) }
        });
        here.run("ip link set c0 up");
        // The switch hears of the link when the kernel tells it.
        until("the host answers again", || b.try_ping("-c 1 -w 1 10.8.0.9"));
        b.ping("-c 2 -i 0.1 -w 30 10.8.0.9");

        control.switch_delete("vale0").unwrap();
        a.ping("-c 2 -i 0.1 -w 30 10.8.0.9");
        drop((control, containers));
        home.assert_left();
        before.assert_clean();
    });
}

/// What is for all reaches an interface's wire, its stack and the other ports, once each; also while the worker
/// takes over and gives back what passes between wire and stack, when it may come twice, but never not.
#[test]
fn what_is_for_all_reaches_the_host_and_the_wire() {
    const FRAMES: u64 = 400;
    if skip_without_root("what_is_for_all_reaches_the_host_and_the_wire") {
        return;
    }
    let _turn = beside_others();
    isolated("what_is_for_all_reaches_the_host_and_the_wire", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(2);
        let here = &containers.here;
        here.run("ip link set lo up && ip addr add 10.8.0.9/24 brd + dev c0");
        here.enter(|| {
            control.switch_attach("vale0", "c0", true).unwrap();
            control.switch_attach("vale0", "c1", false).unwrap();
        });
        let places = [here, &containers.there[0], &containers.there[1]];
        let sockets: Vec<UdpSocket> = places
            .iter()
            .map(|netns| {
                let socket = netns.enter(|| UdpSocket::bind("0.0.0.0:9000")).unwrap();
                socket.set_broadcast(true).unwrap();
                socket.set_read_timeout(Some(LIMIT)).unwrap();
                socket
            })
            .collect();
        for (from, sender) in sockets.iter().enumerate() {
            let others = || sockets.iter().enumerate().filter(|(to, _)| *to != from);
            (0..FRAMES).for_each(|number| {
                sender.send_to(&number.to_ne_bytes(), "10.8.0.255:9000").unwrap();
                for (to, socket) in others() {
                    let mut bytes = [0; 8];
                    socket.recv(&mut bytes).expect("each frame comes");
                    let came = u64::from_ne_bytes(bytes);
                    assert_eq!(came, number, "once and in order, from {from} to {to}");
                }
                // The sender hears itself.
                sender.recv(&mut [0; 8]).unwrap();
            });
        }
        for (from, sender) in sockets.iter().enumerate() {
            let mut monitor = None;
            for first in (0..FRAMES).step_by(8) {
                // Where somebody watches, the worker sees to it.
                monitor = match monitor.take() {
                    None => Some(here.enter(|| Port::open("vale0:c0/t")).unwrap()),
                    Some(_) => None,
                };
                for number in first..first + 8 {
                    sender.send_to(&number.to_ne_bytes(), "10.8.0.255:9000").unwrap();
                }
                for (to, socket) in sockets.iter().enumerate() {
                    let mut missing: Vec<u64> = (first..first + 8).collect();
                    while !missing.is_empty() {
                        let mut bytes = [0; 8];
                        let heard = socket.recv(&mut bytes);
                        heard.unwrap_or_else(|e| {
                            panic!("{from} to {to}: {missing:?} never come: {e}")
                        });
                        missing.retain(|number| *number != u64::from_ne_bytes(bytes));
                    }
                }
            }
        }
        // And what the host said to itself is no frame.
        let known: u64 = ["vale0:c0", "vale0:c0^", "vale0:c1"]
            .map(|name| totals(&control, name).known)
            .iter()
            .sum();
        assert_eq!(known, 3);
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// A container sends frames with unknown addresses as fast as it can. The kernel goes on forwarding for the other
/// containers: the switch does not forget their addresses.
#[test]
fn a_container_that_floods_takes_nobody_from_the_kernels_path() {
    if skip_without_root("a_container_that_floods_takes_nobody_from_the_kernels_path") {
        return;
    }
    let _turn = beside_others();
    isolated("a_container_that_floods_takes_nobody_from_the_kernels_path", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(3);
        containers.attach(&control);
        containers.introduce();
        let [a, b, hostile] = &containers.there[..] else { panic!("three") };
        tcp(a, b, "10.8.0.2", 1);
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (begun, begins) = std::sync::mpsc::channel();
        let sent = std::thread::scope(|scope| {
            let flood = scope.spawn(|| {
                let stopped = stopped;
                let socket = PacketSocket::new(hostile, "eth0");
                let mut bytes = frame(0, 60);
                let mut sent = 0u64;
                loop {
                    if let Err(std::sync::mpsc::TryRecvError::Disconnected) = stopped.try_recv() {
                        return sent;
                    }
                    for _ in 0..256 {
                        sent += 1;
                        // Of one card's vendor, and of another's.
                        bytes[..6].copy_from_slice(&((sent << 17) | 2).to_le_bytes()[..6]);
                        bytes[6..12].copy_from_slice(&((sent << 17) | 6).to_le_bytes()[..6]);
                        // It finds the queue full at times.
                        socket.try_send(&bytes);
                    }
                    let _ = begun.send(());
                }
            });
            (0..16).for_each(|_| begins.recv().unwrap());
            let whole = bytes_of_a_frame(&control, "vale0:c0", [a, b], "10.8.0.2", 256);
            // The worker would cut them to what a wire takes.
            assert!(whole > 1514, "{whole} bytes a frame");
            drop(stop);
            flood.join().unwrap()
        });
        assert!(sent > 16 * 256);
        let [one, two, other] = ["vale0:c0", "vale0:c1", "vale0:c2"].map(|c| totals(&control, c));
        assert_eq!((one.known, two.known), (1, 1));
        assert_eq!(
            (one.reordered, two.reordered),
            (0, 0),
            "they wait for no frame of another port"
        );
        assert!(other.known > 0 && other.unlearned > 0, "{other:?}");
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// Containers that are isolated reach the host, and not each other: whichever path a frame takes.
#[test]
fn isolated_containers_reach_the_host_alone() {
    if skip_without_root("isolated_containers_reach_the_host_alone") {
        return;
    }
    let _turn = beside_others();
    isolated("isolated_containers_reach_the_host_alone", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(3);
        let here = &containers.here;
        here.run("ip link set lo up && ip addr add 10.8.0.9/24 dev c0");
        here.enter(|| {
            control.switch_attach("vale0", "c0", true).unwrap();
            control.switch_attach("vale0", "c1", false).unwrap();
            control.switch_attach("vale0", "c2", false).unwrap();
        });
        containers.introduce();
        let [_, a, b] = &containers.there[..] else { panic!("three") };
        a.ping("-c 2 -i 0.1 -w 30 10.8.0.3");
        let isolate = |isolated| {
            for port in ["vale0:c1", "vale0:c2"] {
                let isolated = Some(isolated);
                control
                    .switch_port(port, PortSettings { isolated, ..PortSettings::default() })
                    .unwrap();
            }
        };
        isolate(true);
        containers.introduce();
        // The stacks know each other's addresses, and so does the switch.
        let before = totals(&control, "vale0:c1");
        assert!(a.try_ping("-c 3 -i 0.1 -w 1 10.8.0.3").is_err());
        let after = totals(&control, "vale0:c1");
        let lost = after.drops.filtered - before.drops.filtered;
        assert!(lost >= 3, "{lost} of 3 counted");
        let sent = after.sent_packets - before.sent_packets;
        assert!(sent >= lost, "{sent} sent, of which {lost} were dropped");
        assert_eq!(port(&control, "vale0:c1").mode.as_deref(), Some("kernel"));
        for netns in [a, b] {
            netns.ping("-c 2 -i 0.1 -w 30 10.8.0.9");
            netns.ping("-c 2 -i 0.1 -w 30 10.8.0.1");
        }
        let monitor = here.enter(|| Port::open("vale0:c1/t")).unwrap();
        assert!(a.try_ping("-c 2 -i 0.1 -w 1 10.8.0.3").is_err());
        drop(monitor);
        isolate(false);
        a.ping("-c 2 -i 0.1 -w 30 10.8.0.3");
        control.switch_delete("vale0").unwrap();
        drop((control, containers));
        home.assert_left();
    });
}

/// The interface of a container goes with it. Its next one, of the same name, is on the switch without a
/// word from anybody, and in the same VLAN: never in that of others. Nothing stays for its sake.
#[test]
fn a_place_waits_for_the_containers_return() {
    if skip_without_root("a_place_waits_for_the_containers_return") {
        return;
    }
    let _turn = beside_others();
    isolated("a_place_waits_for_the_containers_return", |home| {
        let control = Control::connect().unwrap();
        let mut containers = Containers::new(3);
        containers.attach(&control);
        for number in [0, 1] {
            let vlan = Some(Vlan::Access(5));
            let settings = PortSettings { vlan, ..PortSettings::default() };
            control.switch_port(&format!("vale0:c{number}"), settings).unwrap();
        }
        // Those that are there, not those that are waited for.
        let ports = || -> Vec<(String, Vlan)> {
            let switches = control.switches().unwrap();
            let ports = switches.into_iter().flat_map(|switch| switch.ports);
            let is_back = |port: &BridgePortInfo| {
                port.mode.as_ref().is_none_or(|mode| !mode.starts_with("not back yet"))
            };
            ports.filter(is_back).map(|port| (port.name, port.vlan)).collect()
        };
        for _ in 0..2 {
            drop(containers.wires.remove(0));
            until("the port has gone", || match ports() {
                ports if ports.iter().all(|(name, _)| name != "vale0:c0") => Ok(()),
                ports => Err(format!("{ports:?}")),
            });
            containers.wires.insert(0, containers.here.veth(&containers.there[0], "c0", "eth0"));
            until("it is back, in its VLAN", || match ports() {
                ports if ports.contains(&("vale0:c0".into(), Vlan::Access(5))) => Ok(()),
                ports => Err(format!("{ports:?}")),
            });
        }
        // A hook that attaches it by hand, as for a new container, has no error for it; but once.
        let attach = || containers.here.enter(|| control.switch_attach("vale0", "c0", false));
        attach().unwrap();
        assert!(attach().unwrap_err().to_string().contains("attached already"));
        containers.there[0]
            .run("ip link set eth0 address 02:00:00:00:00:01 && ip addr add 10.8.0.1/24 dev eth0");
        containers.there[0].ping("-c 2 -i 0.1 -w 30 10.8.0.2");
        assert!(containers.there[0].try_ping("-c 2 -i 0.1 -w 1 10.8.0.3").is_err());

        // Detached by hand meanwhile, it does not come back.
        drop(containers.wires.remove(0));
        until("the port has gone", || match ports() {
            ports if ports.iter().all(|(name, _)| name != "vale0:c0") => Ok(()),
            ports => Err(format!("{ports:?}")),
        });
        control.switch_detach("vale0", "c0").unwrap();
        assert!(control.switch_detach("vale0", "c0").is_err(), "it is given up");

        // The others go, and nothing keeps the daemon.
        containers.wires.clear();
        until("all have gone", || match ports() {
            ports if ports.is_empty() => Ok(()),
            ports => Err(format!("{ports:?}")),
        });
        drop((control, containers));
        home.assert_left();
    });
}

/// The daemon is killed: the interfaces are as they were, and their stacks have what they receive.
#[test]
fn nothing_is_left_of_a_daemon_that_was_killed() {
    if skip_without_root("nothing_is_left_of_a_daemon_that_was_killed") {
        return;
    }
    let _turn = beside_others();
    isolated("nothing_is_left_of_a_daemon_that_was_killed", |home| {
        let control = Control::connect().unwrap();
        let containers = Containers::new(2);
        let state = || {
            containers.here.run("ip -br link; tc filter show dev c0 ingress; ip -d link show c0")
        };
        let before = state();
        containers.attach(&control);
        assert_ne!(state(), before, "there is something to undo");
        drop(control);
        let daemon = home.daemon();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(daemon as i32).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
        // What it has open, its programs in the kernel among that, is closed one by one.
        assert!(ends(daemon, LIMIT));
        until("all is as before", || match state() {
            now if now == before => Ok(()),
            now => Err(now),
        });
        containers.here.run("ip addr add 10.8.0.9/24 dev c0");
        containers.there[0].ping("-c 2 -i 0.1 -w 30 10.8.0.9");
        drop(Control::connect().unwrap());
        home.assert_left();
    });
}
