//! Ports of a switch that may send, and flood, so much only: on each path of a frame, every frame arrives or
//! is counted.

use std::time::{Duration, Instant};

use ringway::{BridgePortInfo, Control, FloodLimit, Port, PortSettings, RateLimit};
use ringway_proto::{PortDrops, PortTotals};
use ringway_testkit::{Netns, PacketSocket, Proc, VethPair, frame, skip_without_root};
use ringway_tests::{isolated, until};

const LIMIT: Duration = Duration::from_secs(30);
const BROADCAST: [u8; 6] = [0xff; 6];
const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];
/// Bytes of a frame.
const LENGTH: usize = 1000;

/// By which path the frames go of an interface that is attached.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    /// The program in the kernel forwards.
    Kernel,
    /// The same with the host's stack behind the interface.
    Host,
    /// The worker does instead, for there is a monitor.
    Monitored,
    /// There is no program.
    Worker,
}

/// Containers with the interfaces `c0` and `c1`, which know each other, as the switch does.
struct World {
    here: Netns,
    there: Vec<Netns>,
    control: Control,
    _wires: Vec<VethPair>,
    _monitor: Option<Port>,
}

fn mac(number: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, number as u8 + 1]
}

/// From the first container.
fn frame_to(dst: [u8; 6]) -> Vec<u8> {
    let mut bytes = frame(0, LENGTH);
    bytes[..6].copy_from_slice(&dst);
    bytes[6..12].copy_from_slice(&mac(0));
    bytes
}

impl World {
    fn new(path: Path) -> World {
        let (here, mut there, mut wires) = (Netns::quiet("rwl"), Vec::new(), Vec::new());
        for (number, other) in [(1, 2), (2, 1)] {
            let netns = Netns::quiet("rwl");
            wires.push(here.veth(&netns, &format!("c{}", number - 1), "eth0"));
            netns.run(&format!(
                "sysctl -qw net.ipv6.conf.all.disable_ipv6=1
                 ip link set eth0 address 02:00:00:00:00:0{number} && ip link set lo up
                 ip addr add 10.8.0.{number}/24 dev eth0 && ip link set eth0 up
                 ip neigh replace 10.8.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0"
            ));
            there.push(netns);
        }
        let control = Control::connect().unwrap();
        here.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
        let mode = if path == Path::Worker { "@mode=copy" } else { "" };
        let monitor = here.enter(|| {
            for (name, host) in [("c0", path == Path::Host), ("c1", false)] {
                control.switch_attach("vale0", &format!("{name}{mode}"), host).unwrap();
            }
            (path == Path::Monitored).then(|| Port::open("vale0:c0/t").unwrap())
        });
        let world = World { here, there, control, _wires: wires, _monitor: monitor };
        until("the switch knows both", || {
            for (number, netns) in world.there.iter().enumerate() {
                let mut hello = frame_to(BROADCAST);
                hello[6..12].copy_from_slice(&mac(number));
                PacketSocket::new(netns, "eth0").send(&hello);
            }
            let known = ["vale0:c0", "vale0:c1"].map(|name| world.totals(name).known);
            if known == [1, 1] { Ok(()) } else { Err(format!("{known:?}")) }
        });
        world
    }

    fn port(&self, name: &str) -> BridgePortInfo {
        let switches = self.control.switches().unwrap();
        let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
        ports.find(|port| port.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    fn totals(&self, name: &str) -> PortTotals {
        self.port(name).totals
    }

    fn set(&self, settings: PortSettings) {
        self.control.switch_port("vale0:c0", settings).unwrap();
    }

    /// The first container sends so many frames to the other, or to all. What that has counted at the sender, and
    /// at the receiver, when all of them are.
    fn send(&self, dst: [u8; 6], frames: u64) -> [PortTotals; 2] {
        let [before, received_before] = ["vale0:c0", "vale0:c1"].map(|name| self.totals(name));
        let (socket, bytes) = (PacketSocket::new(&self.there[0], "eth0"), frame_to(dst));
        (0..frames).for_each(|_| socket.send(&bytes));
        let mut counted = [before, received_before];
        until("all are counted", || {
            let [now, received] = ["vale0:c0", "vale0:c1"].map(|name| self.totals(name));
            let since = |now: PortTotals, before: PortTotals| PortTotals {
                sent_packets: now.sent_packets - before.sent_packets,
                received_packets: now.received_packets - before.received_packets,
                received_bytes: now.received_bytes - before.received_bytes,
                drops: PortDrops {
                    over_rate: now.drops.over_rate - before.drops.over_rate,
                    storm: now.drops.storm - before.drops.storm,
                    storm_broadcast: now.drops.storm_broadcast - before.drops.storm_broadcast,
                    storm_multicast: now.drops.storm_multicast - before.drops.storm_multicast,
                    storm_unknown: now.drops.storm_unknown - before.drops.storm_unknown,
                    ring_full: now.drops.ring_full - before.drops.ring_full,
                    ..PortDrops::default()
                },
                ..PortTotals::default()
            };
            counted = [since(now, before), since(received, received_before)];
            let [now, received] = &counted;
            // What a socket had no room for was not sent.
            let sent = now.sent_packets + now.drops.ring_full;
            let arrived = received.received_packets + received.drops.ring_full;
            match sent >= frames
                && arrived + now.drops.over_rate + storms(&now.drops) >= now.sent_packets
            {
                true => Ok(()),
                false => Err(format!("{counted:?}")),
            }
        });
        counted
    }

    fn assert_rate_is_kept(&self, path: Path) {
        // 10 kB a second: what is sent takes 50 seconds.
        let limit = RateLimit { bits_per_second: 80_000, burst_bytes: 20_000 };
        let begin = Instant::now();
        self.set(PortSettings { rate: Some(Some(limit)), ..PortSettings::default() });
        let mode = self.port("vale0:c0").mode.unwrap_or_default();
        let expected = match path {
            Path::Kernel | Path::Host => "kernel",
            Path::Monitored => "kernel, by the worker: it has monitors",
            Path::Worker => "copy",
        };
        assert_eq!(mode.split(';').next(), Some(expected), "{path:?}");
        let [sent, received] = self.send(mac(1), 500);
        let elapsed = begin.elapsed();
        let most =
            limit.burst_bytes as f64 + limit.bits_per_second as f64 / 8.0 * elapsed.as_secs_f64();
        let arrived = received.received_packets + received.drops.ring_full;
        assert_eq!(arrived + sent.drops.over_rate, sent.sent_packets, "{path:?}");
        assert!(arrived >= 20, "{path:?}: the burst: {received:?}");
        let bytes = received.received_bytes as f64;
        assert!(bytes <= most, "{path:?}: {bytes} bytes of {most} in {elapsed:?}");
        // Its broadcasts, which the worker sees, are of the same rate.
        let [sent, received] = self.send(BROADCAST, 500);
        assert!(sent.drops.over_rate > 0, "{path:?}: {sent:?}");
        let bytes = bytes + received.received_bytes as f64;
        let most = limit.burst_bytes as f64
            + limit.bits_per_second as f64 / 8.0 * begin.elapsed().as_secs_f64();
        assert!(bytes <= most, "{path:?}: {bytes} bytes of {most}");
        self.set(PortSettings { rate: Some(None), ..PortSettings::default() });
        let [sent, received] = self.send(mac(1), 100);
        assert_eq!(sent.drops.over_rate, 0, "{path:?}: {sent:?}");
        assert_eq!(received.received_packets + received.drops.ring_full, sent.sent_packets);
    }

    fn assert_storm_is_held(&self, path: Path) {
        const MOST: u32 = 50;
        let begin = Instant::now();
        self.set(PortSettings { storm: Some(Some(MOST)), ..PortSettings::default() });
        for dst in [BROADCAST, mac(77), GROUP] {
            let [sent, received] = self.send(dst, 2000);
            let arrived = received.received_packets + received.drops.ring_full;
            assert_eq!(arrived + sent.drops.storm, sent.sent_packets, "{path:?}: {dst:?}");
            assert!(sent.drops.storm > 0, "{path:?}: {dst:?}: {sent:?}");
            let most = f64::from(MOST) * (1.0 + begin.elapsed().as_secs_f64());
            assert!(arrived as f64 <= most, "{path:?}: {arrived} of {most}");
        }
        let [sent, received] = self.send(mac(1), 300);
        assert_eq!(sent.drops.storm, 0, "{path:?}: known unicast passes");
        assert_eq!(received.received_packets + received.drops.ring_full, sent.sent_packets);
        self.set(PortSettings { storm: Some(None), ..PortSettings::default() });
        let [sent, _] = self.send(BROADCAST, 300);
        assert_eq!(sent.drops.storm, 0, "{path:?}: {sent:?}");
    }

    /// A limit of one kind drops frames of that kind, under its own name, and no others.
    fn assert_kinds_are_held_apart(&self, path: Path) {
        let limit = FloodLimit { frames_per_second: 20, burst_frames: 60 };
        let (wanted, none) = (Some(Some(limit)), PortSettings::default);
        let all = [(BROADCAST, "broadcast"), (GROUP, "multicast"), (mac(77), "unknown")];
        for (dst, kind) in all {
            let begin = Instant::now();
            self.set(match kind {
                "broadcast" => PortSettings { storm_broadcast: wanted, ..none() },
                "multicast" => PortSettings { storm_multicast: wanted, ..none() },
                _ => PortSettings { storm_unknown: wanted, ..none() },
            });
            let [sent, received] = self.send(dst, 1000);
            let dropped = of_kind(&sent.drops, kind);
            let arrived = received.received_packets + received.drops.ring_full;
            assert_eq!(storms(&sent.drops), dropped, "{path:?}: {kind}: {sent:?}");
            assert_eq!(arrived + dropped, sent.sent_packets, "{path:?}: {kind}");
            let most = f64::from(limit.burst_frames)
                + f64::from(limit.frames_per_second) * begin.elapsed().as_secs_f64();
            assert!(
                arrived >= 60 && arrived as f64 <= most,
                "{path:?}: {kind}: {arrived} of {most}"
            );
            for (dst, other) in all.into_iter().filter(|(_, other)| *other != kind) {
                let [sent, _] = self.send(dst, 200);
                assert_eq!(storms(&sent.drops), 0, "{path:?}: {kind}, {other}: {sent:?}");
            }
            let off = Some(None);
            let (storm_broadcast, storm_multicast, storm_unknown) = (off, off, off);
            self.set(PortSettings { storm_broadcast, storm_multicast, storm_unknown, ..none() });
        }
        let [sent, _] = self.send(BROADCAST, 300);
        assert_eq!(storms(&sent.drops), 0, "{path:?}: {sent:?}");
    }
}

/// Frames that a port was not to flood.
fn storms(drops: &PortDrops) -> u64 {
    let kinds = ["broadcast", "multicast", "unknown"].map(|kind| of_kind(drops, kind));
    drops.storm + kinds.iter().sum::<u64>()
}

fn of_kind(drops: &PortDrops, kind: &str) -> u64 {
    let reason = format!("storm_{kind}");
    drops.reasons().into_iter().find(|(name, _)| *name == reason).expect("there is such a reason").1
}

/// What a port sends is within its rate, whichever path it takes, and the rest is counted.
#[test]
fn a_policed_port_keeps_its_rate_on_each_path() {
    if skip_without_root("a_policed_port_keeps_its_rate_on_each_path") {
        return;
    }
    isolated("a_policed_port_keeps_its_rate_on_each_path", |_| {
        for path in [Path::Kernel, Path::Host, Path::Monitored, Path::Worker] {
            let world = World::new(path);
            world.assert_rate_is_kept(path);
            world.control.switch_delete("vale0").unwrap();
        }
    });
}

/// A storm is held at its sender, and what the switch knows the way for passes.
#[test]
fn a_storm_is_held_and_known_unicast_passes() {
    if skip_without_root("a_storm_is_held_and_known_unicast_passes") {
        return;
    }
    isolated("a_storm_is_held_and_known_unicast_passes", |_| {
        for path in [Path::Kernel, Path::Host, Path::Monitored, Path::Worker] {
            let world = World::new(path);
            world.assert_storm_is_held(path);
            world.control.switch_delete("vale0").unwrap();
        }
    });
}

/// Broadcasts, multicasts and frames to unknown addresses, each by their own limit.
#[test]
fn each_kind_of_storm_is_held_on_each_path() {
    if skip_without_root("each_kind_of_storm_is_held_on_each_path") {
        return;
    }
    isolated("each_kind_of_storm_is_held_on_each_path", |_| {
        for path in [Path::Kernel, Path::Host, Path::Monitored, Path::Worker] {
            let world = World::new(path);
            world.assert_kinds_are_held_apart(path);
            world.control.switch_delete("vale0").unwrap();
        }
    });
}

/// TCP in frames of up to 64 KiB, which the kernel forwards whole: they count with the headers of their segments.
#[test]
fn a_stack_is_policed_in_the_kernel() {
    if skip_without_root("a_stack_is_policed_in_the_kernel") {
        return;
    }
    isolated("a_stack_is_policed_in_the_kernel", |_| {
        let world = World::new(Path::Kernel);
        let limit = RateLimit::new(200_000_000);
        let begin = Instant::now();
        world.set(PortSettings { rate: Some(Some(limit)), ..PortSettings::default() });
        let before = world.totals("vale0:c1").received_bytes;
        let mut server = world.there[1].command("iperf3");
        server.args(["-s", "-1", "--forceflush"]);
        let server = Proc::spawn(server);
        server.wait_for("listening", LIMIT);
        let output = world.there[0].try_run("iperf3 -c 10.8.0.2 -n 20M");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}; the server: {}", server.output());
        let bytes = world.totals("vale0:c1").received_bytes - before;
        let elapsed = begin.elapsed();
        let most =
            limit.burst_bytes as f64 + limit.bits_per_second as f64 / 8.0 * elapsed.as_secs_f64();
        assert!(
            bytes > limit.burst_bytes && bytes as f64 <= most,
            "{bytes} of {most} in {elapsed:?}"
        );
        assert!(world.totals("vale0:c0").drops.over_rate > 0);
        world.control.switch_delete("vale0").unwrap();
        drop(world.here);
    });
}
