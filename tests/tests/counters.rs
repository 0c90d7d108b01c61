//! What an interface drops, in its counters: of each ring, of the port, by the library and by the
//! daemon.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    time::Duration,
};

use ringway::{Control, DeviceCounter, KernelCounters, Port, PortInfo, RingInfo};
use ringway_testkit::{Netns, PacketSocket, VethPair, frame, skip_without_root};
use ringway_tests::{
    isolated, one_at_a_time,
    packet::{numbered, receive, send},
    until,
};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(30);

fn wire() -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rwd"), Netns::quiet("rwd"));
    let pair = a.veth(&b, "n0", "n1");
    (a, b, pair)
}

/// What the daemon tells of the first receive ring of `n1`.
fn told() -> RingInfo {
    let control = Control::connect().unwrap();
    let is_it = |port: &PortInfo| port.name == "n1";
    let port = control.ports().unwrap().into_iter().find(is_it).expect("it is open");
    let rings = control.rings(&port).unwrap();
    assert_eq!(rings.iter().map(|ring| ring.receives).collect::<Vec<_>>(), [false, true]);
    rings.into_iter().find(|ring| ring.receives).unwrap()
}

/// What the device of the open interface `name` has counted meanwhile.
fn grown(name: &str) -> Vec<DeviceCounter> {
    let control = Control::connect().unwrap();
    let port = control.ports().unwrap().into_iter().find(|port| port.name == name);
    control.device_counters(&port.expect("it is open")).unwrap()
}

fn count(name: &str, driver: bool) -> Option<u64> {
    let grown = grown("n1");
    grown.iter().find(|it| (it.name.as_str(), it.driver) == (name, driver)).map(|it| it.count)
}

/// What `n1` has lost before a port of this mode could: on a busy machine the kernel's backlog of a processor, behind
/// the driver, can be full.
fn lost_before(mode: &str) -> u64 {
    match mode {
        "copy" => 0,
        _ => count("rx_dropped", false).unwrap_or(0),
    }
}

/// Sends to a port that does not look, until something is lost there; then everything that was sent has arrived or is
/// counted, at either end.
fn overrun(from: &mut Port, to: &mut Port, mode: &str) {
    let (frame, mut sent, unsent) = (numbered(1000), 0_u64, from.tx(0).stats().ring_full);
    until("something is lost", || {
        for _ in 0..100 {
            from.wait_tx(Some(LIMIT)).unwrap();
            send(from, &frame);
            sent += 1;
        }
        // A sync takes what there is room for, and sees what there was not.
        to.rx(0).sync();
        match to.stats().ring_full {
            0 => Err(format!("{sent} frames sent")),
            _ => Ok(()),
        }
    });
    // The frames that the sender's kernel has lost were counted there.
    until("all have arrived or are counted", || {
        from.tx(0).sync();
        let (arrived, lost) = (to.rx(0).stats().rx_packets, to.rx(0).stats().ring_full);
        let on_the_way = sent - (from.tx(0).stats().ring_full - unsent);
        match arrived + lost + lost_before(mode) {
            seen if seen == on_the_way => Ok(()),
            // Some wait in the blocks of the socket.
            seen if seen < on_the_way && mode == "packet" => Ok(()),
            seen => Err(format!("{seen} of {on_the_way}")),
        }
    });
}

/// A program that does not look: once its ring is full, the kernel has no buffers, and says so.
#[test]
fn what_finds_no_room() {
    if skip_without_root("what_finds_no_room") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("what_finds_no_room", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            let mut from = a.enter(|| Port::open("netmap:n0")).unwrap();
            let mut to = b.enter(|| Port::open(&format!("netmap:n1@mode={mode}"))).unwrap();
            overrun(&mut from, &mut to, mode);
            let stats = to.rx(0).stats();
            assert_eq!(stats.ring_full, to.stats().ring_full);
            assert_eq!((stats.too_long, stats.bad_slot), (0, 0), "{stats:?}");
            let ring = told();
            assert_eq!((ring.ring_full, ring.packets), (stats.ring_full, stats.rx_packets));
            let lost = stats.ring_full;
            let expected = KernelCounters {
                rx_dropped: lost,
                rx_fill_ring_empty_descs: lost,
                ..KernelCounters::default()
            };
            assert_eq!(ring.kernel, (mode != "packet").then_some(expected), "{mode}");

            let mut command: Command = home.command(home.bin().join("ringway"));
            let output = command.args(["ports", "--rings"]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let line = text.lines().find(|l| l.starts_with("n1") && l.contains("rx 0"));
            let line = line.unwrap_or_else(|| panic!("{text}"));
            assert!(line.contains(&format!("{lost} ring full")), "{text}");
            let kernel = format!("{lost} rx_dropped, {lost} rx_fill_ring_empty_descs");
            assert_eq!(line.contains(&kernel), mode != "packet", "{text}");
            // It goes on.
            receive(&mut to, 0, LIMIT);
        }
        home.assert_left();
    });
}

/// A program that never looks, as if it were stopped: the daemon has its losses all the same, and each of them once,
/// whichever of the two asks the kernel first.
#[test]
fn what_a_stopped_program_loses() {
    if skip_without_root("what_a_stopped_program_loses") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("what_a_stopped_program_loses", |_| {
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            let wire = PacketSocket::new(&a, "n0");
            let mut to = b.enter(|| Port::open(&format!("netmap:n1@mode={mode}"))).unwrap();
            let mut sent = 0;
            let mut overrun = |before: u64| {
                until("the daemon tells that something is lost", || {
                    (0..1000).for_each(|_| wire.send(&frame(1, 1000)));
                    sent += 1000;
                    match told().ring_full {
                        lost if lost > before => Ok(lost),
                        _ => Err(format!("{mode}: nothing of {sent}")),
                    }
                })
            };
            let lost = overrun(0);
            assert_eq!((told().ring_full, told().packets), (lost, 0), "{mode}");
            let lost = overrun(lost);
            // Now the program looks.
            let mut arrived = 0;
            until("all have arrived or are counted", || {
                to.rx(0).sync();
                arrived += to.rx(0).batch(1024).count() as u64;
                match arrived + to.rx(0).stats().ring_full + lost_before(mode) {
                    seen if seen == sent => Ok(()),
                    seen => Err(format!("{mode}: {seen} of {sent}")),
                }
            });
            let stats = to.rx(0).stats();
            assert!(stats.ring_full >= lost, "{mode}: {lost} of {stats:?}");
            assert_eq!((told().ring_full, told().packets), (stats.ring_full, arrived), "{mode}");
        }
    });
}

/// What the interface and its driver drop while a port is open is told under their names, in each way to ask; and
/// what they had dropped before is not.
#[test]
fn what_the_device_loses() {
    if skip_without_root("what_the_device_loses") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("what_the_device_loses", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        let (a, b, _pair) = wire();
        let mut from = a.enter(|| Port::open("netmap:n0")).unwrap();
        for _ in 0..2 {
            let mut to = b.enter(|| Port::open("netmap:n1@mode=copy")).unwrap();
            overrun(&mut from, &mut to, "copy");
            // Each time alone what was lost since this port was opened.
            let lost = told().ring_full;
            assert_eq!(count("rx_dropped", false), Some(lost), "{:?}", grown("n1"));
            assert_eq!(count("rx_queue_0_drops", true), Some(lost), "{:?}", grown("n1"));
            assert_eq!(grown("n0"), []);

            let ringway = |args: &[&str]| {
                let command: Command = home.command(home.bin().join("ringway"));
                let output = b.enter(|| {
                    let mut command = command;
                    command.args(args).output().unwrap()
                });
                String::from_utf8_lossy(&output.stdout).into_owned()
            };
            let device = format!("rx_dropped {lost}; driver: rx_queue_0_drops {lost}");
            let text = ringway(&["ports"]);
            let line = text.lines().find(|line| line.starts_with("n1")).unwrap_or_default();
            assert!(
                line.contains(&format!("{lost} ring full")) && line.contains(&device),
                "{text}"
            );
            let json = ringway(&["ports", "--json"]);
            let line = json.lines().find(|line| line.contains("\"n1\"")).unwrap_or_default();
            for part in [
                format!("\"ring_full\":{lost},"),
                format!("\"rx_fill_ring_empty_descs\":{lost},"),
                format!("{{\"name\":\"rx_queue_0_drops\",\"driver\":true,\"count\":{lost}}}"),
            ] {
                assert!(line.contains(&part), "{part}: {json}");
            }
            let diagnosis = ringway(&["doctor", "n1"]);
            assert!(diagnosis.contains(&format!("its device counts {device}")), "{diagnosis}");
            drop(to);
        }
        drop(from);
        home.assert_left();
    });
}

/// The summary of a command has what was lost while it ran.
#[test]
fn a_summary_has_what_the_device_lost() {
    if skip_without_root("a_summary_has_what_the_device_lost") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_summary_has_what_the_device_lost", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        for command in [&["recv"][..], &["capture", "--write", "/dev/null", "--overwrite"]] {
            let (a, b, _pair) = wire();
            let wire = PacketSocket::new(&a, "n0");
            let mut ringway: Command = home.command(home.bin().join("ringway"));
            ringway.args(command).args(["netmap:n1@mode=copy", "--json"]).stdout(Stdio::piped());
            let mut child = b.enter(|| ringway.spawn().unwrap());
            let pid = Pid::from_child(&child);
            let (mut results, mut text) =
                (BufReader::new(child.stdout.take().unwrap()), String::new());
            results.read_line(&mut text).unwrap();
            assert!(text.contains(r#""type":"open""#), "{text}");
            kill_process(pid, Signal::STOP).unwrap();
            until("something is lost", || {
                (0..1000).for_each(|_| wire.send(&frame(1, 1000)));
                match told().ring_full {
                    0 => Err("nothing is".to_string()),
                    _ => Ok(()),
                }
            });
            let lost = told().ring_full;
            for signal in [Signal::INT, Signal::CONT] {
                kill_process(pid, signal).unwrap();
            }
            results.read_to_string(&mut text).unwrap();
            child.wait().unwrap();
            for part in [
                format!(r#""ring_full":{lost},"#),
                format!(
                    r#"{{"type":"device","port":"n1","counters":[{{"name":"rx_dropped","driver":false,"count":{lost}}}"#
                ),
            ] {
                assert!(text.contains(&part), "{part}: {text}");
            }
        }
        home.assert_left();
    });
}

/// An interface on a switch has such counters, too: what the kernel forwards to it waits in its queueing discipline,
/// which no counter of the switch or the interface knows.
#[test]
fn what_an_attached_interface_loses() {
    /// More than the discipline holds, fewer than the socket.
    const AT_ONCE: u64 = 50;
    if skip_without_root("what_an_attached_interface_loses") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("what_an_attached_interface_loses", |home| {
        let (here, there) = (Netns::quiet("rwd"), Netns::quiet("rwd"));
        let _wires = ["n0", "n1"].map(|name| here.veth(&there, name, &format!("{name}f")));
        let control = Control::connect().unwrap();
        here.enter(|| {
            for name in ["n0", "n1"] {
                control.switch_attach("vale0", name, false).unwrap();
            }
        });
        here.run("tc qdisc replace dev n1 root tbf rate 8mbit burst 2kb limit 8kb");
        let (from, to) = (PacketSocket::new(&there, "n0f"), PacketSocket::new(&there, "n1f"));
        let addressed = |from: u8, to: u8| {
            let mut bytes = frame(1, 1000);
            bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
            bytes[11] = from;
            bytes
        };
        to.send(&addressed(2, 1));
        from.send(&addressed(1, 2));
        assert_eq!(to.hear().bytes.len(), 1000);
        let (mut sent, mut arrived) = (0, 0);
        let mut count = |frames: u64| {
            (0..frames).for_each(|_| from.send(&addressed(1, 2)));
            sent += frames;
            arrived += std::iter::from_fn(|| to.try_hear()).count() as u64;
            let port = control.ports().unwrap().into_iter().find(|port| port.name == "vale0:n1");
            let grown = control.device_counters(&port.expect("it is attached")).unwrap();
            let dropped = grown.iter().find(|counter| counter.name == "qdisc_dropped");
            (dropped.map_or(0, |counter| counter.count), arrived, sent)
        };
        // The first are the worker's, until the kernel's program knows the address; its frames do not wait there.
        until("the discipline drops", || match count(AT_ONCE) {
            (0, arrived, sent) => Err(format!("{arrived} of {sent}")),
            _ => Ok(()),
        });
        until("each frame has arrived, or is counted", || match count(0) {
            (dropped, arrived, sent) if dropped + arrived == sent => Ok(()),
            (dropped, arrived, sent) => Err(format!("{dropped} + {arrived} of {sent}")),
        });
        control.switch_delete("vale0").unwrap();
        drop(control);
        home.assert_left();
    });
}

/// What the stack sends by an interface that a program, or a switch, has for sending goes to the host rings. Where
/// these are not open it is lost, and the stack does not know.
#[test]
fn what_the_stack_loses() {
    const SENT: u64 = 7;
    if skip_without_root("what_the_stack_loses") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("what_the_stack_loses", |home| {
        let (here, there, _pair) = wire();
        let control = Control::connect().unwrap();
        let stack = PacketSocket::new(&here, "n0");
        let send = || (0..SENT).for_each(|_| stack.send(&frame(1, 60)));
        let lost_at = |name: &str| {
            let port = control.ports().unwrap().into_iter().find(|port| port.name == name);
            let grown = control.device_counters(&port.expect("it is open")).unwrap();
            let lost = grown.into_iter().find(|counter| counter.name == "stack_dropped");
            lost.map_or(0, |counter| counter.count)
        };
        for mode in ["", "@mode=copy", "@mode=generic", "@mode=packet"] {
            let open = |part: &str| here.enter(|| Port::open(&format!("netmap:n0{part}{mode}")));
            let sender = open("/T").unwrap();
            assert_eq!(lost_at("n0"), 0, "{mode}");
            send();
            assert_eq!(lost_at("n0"), SENT, "{mode}");
            let host = open("^").unwrap();
            send();
            assert_eq!(lost_at("n0"), SENT, "{mode}: they went to the host rings");
            drop(host);
            send();
            assert_eq!(lost_at("n0"), 2 * SENT, "{mode}");
            drop(sender);
            until("the port is closed", || match control.ports().unwrap().len() {
                0 => Ok(()),
                open => Err(format!("{open} open")),
            });
            // What is sent now leaves by the interface.
            let wire = PacketSocket::new(&there, "n1");
            send();
            (0..SENT).for_each(|_| assert_eq!(wire.hear().bytes, frame(1, 60)));
        }
        for (host, lost) in [(false, SENT), (true, 0)] {
            here.enter(|| control.switch_attach("vale0", "n0", host)).unwrap();
            send();
            assert_eq!(lost_at("vale0:n0"), lost, "with the stack: {host}");
            here.enter(|| control.switch_detach("vale0", "n0")).unwrap();
        }
        drop(control);
        home.assert_left();
    });
}

/// A program on a switch that does not look: what the switch has no room for is in its ring's counters.
#[test]
fn what_a_switch_loses() {
    let _turn = one_at_a_time();
    isolated("what_a_switch_loses", |_| {
        const SENT: u64 = 10_000;
        let mut to = Port::options().rx_rings(2).open("vale0:to").unwrap();
        let mut from = Port::open("vale0:from").unwrap();
        let frame = numbered(60);
        for _ in 0..SENT {
            while !from.tx(0).push(&frame) {
                from.wait_tx(Some(LIMIT)).unwrap();
            }
        }
        until("all have arrived or are counted", || {
            from.tx(0).sync();
            let arrived = to.rx(0).sync() as u64;
            match arrived + to.rx(0).stats().ring_full {
                SENT => Ok(()),
                seen => Err(format!("{seen} of {SENT}")),
            }
        });
        let switches = Control::connect().unwrap().switches().unwrap();
        let port = switches[0].ports.iter().find(|port| port.name == "vale0:to").unwrap();
        assert_eq!(port.totals.drops.ring_full, to.stats().ring_full);
        assert_eq!(to.rx_stats(), to.rx(0).stats(), "they are those of the first ring");
        assert_eq!((from.stats().ring_full, to.stats().too_long), (0, 0));
    });
}
