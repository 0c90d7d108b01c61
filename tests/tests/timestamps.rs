//! When frames were received on network interfaces: the time of a sync in their rings (S-SYNC-10), and
//! timestamps of each frame.

use std::{
    net::UdpSocket,
    num::NonZeroU64,
    time::{Duration, Instant},
};

use ringway::{Control, Error, Filter, NicMode, Port, Timestamps};
use ringway_testkit::{Netns, Proc, VethPair, skip_without_root};
use ringway_tests::{
    c::{Language::C11, Language::Cpp17, Library::Preloaded},
    compile, inside, isolated,
    packet::{numbered, send},
    until,
};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
    time::{DynamicClockId, clock_gettime_dynamic},
};

const LIMIT: Duration = Duration::from_secs(30);

/// The modes that a veth pair has.
const MODES: [NicMode; 3] = [NicMode::Copy, NicMode::Generic, NicMode::Packet];

/// Two namespaces, interface `n0` in one and `n1` in the other, with addresses.
fn wire() -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rwt"), Netns::quiet("rwt"));
    let pair = a.veth(&b, "n0", "n1");
    a.run("ip link set n0 mtu 9000 && ip addr add 10.4.0.1/24 dev n0");
    b.run("ip link set n1 mtu 9000 && ip addr add 10.4.0.2/24 dev n1");
    (a, b, pair)
}

fn open(netns: &Netns, spec: &str) -> Result<Port, Error> {
    netns.enter(|| Port::open(spec))
}

fn now() -> u64 {
    let now = clock_gettime_dynamic(DynamicClockId::Tai).unwrap();
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The timestamp of the next packet, which is `bytes`.
fn timestamp(port: &mut Port, bytes: &[u8]) -> Option<NonZeroU64> {
    assert!(port.wait_rx(Some(LIMIT)).unwrap(), "nothing arrives");
    let (mut received, mut time) = (Vec::new(), None);
    let mut rx = port.rx(0);
    for (i, frame) in rx.batch(usize::MAX).enumerate() {
        time = if i == 0 { frame.timestamp() } else { time };
        received.extend(frame.to_vec());
        if !frame.more_fragments() {
            break;
        }
    }
    assert!(received == bytes, "another packet");
    time
}

/// Of each packet in every mode, of several slots too, and never one of another.
#[test]
fn of_software() {
    if skip_without_root("of_software") {
        return;
    }
    isolated("of_software", |home| {
        let (a, b, _pair) = wire();
        let mut from = open(&a, "netmap:n0").unwrap();
        for mode in MODES {
            let mut to = open(&b, &format!("netmap:n1@mode={mode}@timestamps=software")).unwrap();
            // Round the ring, so that buffers are used again.
            let mut last = now();
            for i in 0..1500 {
                let bytes = numbered(if i % 100 == 0 { 9014 } else { 60 + i % 1000 });
                send(&mut from, &bytes);
                let time = timestamp(&mut to, &bytes).expect("software tells always").get();
                assert!((last..=now()).contains(&time), "{mode}, packet {i}: {time} from {last}");
                last = time;
            }
            drop(to);
            // Who asked for none has none.
            let mut to = open(&b, &format!("netmap:n1@mode={mode}")).unwrap();
            let bytes = numbered(60);
            send(&mut from, &bytes);
            assert_eq!(timestamp(&mut to, &bytes), None);
        }
        drop(from);
        home.assert_left();
    });
}

/// A monitor has the times of the port that it watches; of one without timestamps it has times all
/// the same.
#[test]
fn monitors_hand_them_on() {
    if skip_without_root("monitors_hand_them_on") {
        return;
    }
    isolated("monitors_hand_them_on", |home| {
        let (a, b, _pair) = wire();
        let mut from = open(&a, "netmap:n0").unwrap();
        for mode in MODES {
            for (option, is_handed_on) in [("@timestamps=software", true), ("", false)] {
                let mut to = open(&b, &format!("netmap:n1@mode={mode}{option}")).unwrap();
                let mut monitor = open(&b, "netmap:n1/r").unwrap();
                for i in 0..20 {
                    let bytes = numbered(if i % 10 == 0 { 4014 } else { 60 + i });
                    let before = now();
                    send(&mut from, &bytes);
                    let time = timestamp(&mut to, &bytes);
                    let shown = timestamp(&mut monitor, &bytes).expect("a monitor tells always");
                    assert!((before..=now()).contains(&shown.get()), "{mode}, packet {i}: {shown}");
                    assert_eq!(time == Some(shown), is_handed_on, "{mode}, packet {i}");
                }
            }
        }
        drop(from);
        home.assert_left();
    });
}

/// The monitor of an interface on a switch has the times at which the kernel received the frames,
/// however late the switch's worker finds them.
#[test]
fn a_late_worker_does_not_make_frames_late() {
    if skip_without_root("a_late_worker_does_not_make_frames_late") {
        return;
    }
    const FRAMES: u8 = 20;
    isolated("a_late_worker_does_not_make_frames_late", |home| {
        let (a, b, _pair) = wire();
        a.run("ip neigh add 10.4.0.2 lladdr 02:00:00:00:00:02 dev n0");
        let socket = a.enter(|| UdpSocket::bind("10.4.0.1:0")).unwrap();
        let received = || {
            let told = b.run("cat /sys/class/net/n1/statistics/rx_packets");
            told.trim().parse::<u64>().unwrap()
        };
        for mode in MODES {
            let control = Control::connect().unwrap();
            let name = format!("n1@mode={mode}");
            b.enter(|| control.switch_attach("vale0", &name, false)).unwrap();
            // The second time in memory that has the times of the first.
            for _ in 0..2 {
                let mut monitor = open(&b, "vale0:n1/t").unwrap();
                let daemon = Pid::from_raw(home.daemon() as i32).unwrap();
                kill_process(daemon, Signal::STOP).unwrap();
                let (before, count) = (now(), received());
                for i in 0..FRAMES {
                    socket.send_to(&[i; 18], "10.4.0.2:9").unwrap();
                }
                until("the kernel has the frames", || match received() - count {
                    all if all >= FRAMES.into() => Ok(()),
                    few => Err(format!("{few} of {FRAMES}")),
                });
                let after = now();
                kill_process(daemon, Signal::CONT).unwrap();
                let mut last = before;
                for i in 0..FRAMES {
                    assert!(
                        monitor.wait_rx(Some(LIMIT)).unwrap(),
                        "{mode}: frame {i} does not come"
                    );
                    let mut rx = monitor.rx(0);
                    let frame = rx.batch(1).next().unwrap();
                    assert_eq!(frame.to_vec().last(), Some(&i), "{mode}");
                    let time = frame.timestamp().expect("a monitor tells always").get();
                    assert!(
                        (last..=after).contains(&time),
                        "{mode}, frame {i}: {time}, not {last} to {after}"
                    );
                    last = time;
                }
                drop(monitor);
            }
            b.enter(|| control.switch_detach("vale0", "n1")).unwrap();
        }
        home.assert_left();
    });
}

/// A veth pair tells programs of hardware timestamps, but has none to tell of: no packet has one, and
/// none has that of another. With filters, too.
#[test]
fn of_hardware() {
    if skip_without_root("of_hardware") {
        return;
    }
    isolated("of_hardware", |home| {
        let (a, b, _pair) = wire();
        let mut from = open(&a, "netmap:n0").unwrap();
        let options = Port::options().timestamps(Timestamps::Hardware);
        let mut to = b.enter(|| options.open("netmap:n1")).unwrap();
        let mode = || {
            let ports = Control::connect().unwrap().ports().unwrap();
            ports.into_iter().find(|port| port.name == "n1").unwrap().mode.unwrap()
        };
        assert!(mode().starts_with("copy; not zerocopy: "), "{}", mode());
        for i in 0..1500 {
            if i == 700 {
                to.set_filter(Filter::new("ether proto 0x88b5").unwrap()).unwrap();
            }
            let bytes = numbered(60 + i);
            send(&mut from, &bytes);
            assert_eq!(timestamp(&mut to, &bytes), None, "packet {i}");
        }
        drop(to);
        let mut to = open(&b, "netmap:n1@mode=packet@timestamps=hardware").unwrap();
        let bytes = numbered(60);
        send(&mut from, &bytes);
        assert_eq!(timestamp(&mut to, &bytes), None);
        drop((from, to));
        home.assert_left();
    });
}

/// What cannot be had is refused, with the reason; and who opens an interface first decides.
#[test]
fn timestamps_are_what_was_asked_for_or_an_error() {
    if skip_without_root("timestamps_are_what_was_asked_for_or_an_error") {
        return;
    }
    isolated("timestamps_are_what_was_asked_for_or_an_error", |home| {
        let (a, b, _pair) = wire();
        // Programs run in its driver's hook, but learn no times.
        a.run("ip tuntap add dev t0 mode tap && ip link set t0 up");
        for spec in ["netmap:t0@timestamps=hardware", "netmap:t0@mode=copy@timestamps=hardware"] {
            let refused = open(&a, spec).unwrap_err();
            assert_eq!(ringway_errno::errno(refused.cause()), Errno::OPNOTSUPP.raw_os_error());
            assert!(refused.to_string().contains("its driver tells"), "{refused}");
            assert!(refused.to_string().contains("open it without"), "{refused}");
        }
        drop(open(&a, "netmap:t0@timestamps=software").unwrap());
        let refused = open(&a, "netmap:n0@mode=generic@timestamps=hardware").unwrap_err();
        assert!(refused.to_string().contains("generic mode has no hardware"), "{refused}");

        let first = open(&b, "netmap:n1/T").unwrap();
        let refused = open(&b, "netmap:n1/R@timestamps=software").unwrap_err();
        assert_eq!(ringway_errno::errno(refused.cause()), Errno::BUSY.raw_os_error());
        assert!(refused.to_string().contains("without software timestamps"), "{refused}");
        drop(first);
        let first = open(&b, "netmap:n1/T@timestamps=software").unwrap();
        let mut second = open(&b, "netmap:n1/R").unwrap();
        let mut from = open(&a, "netmap:n0").unwrap();
        let bytes = numbered(60);
        send(&mut from, &bytes);
        assert!(timestamp(&mut second, &bytes).is_some(), "all have them");
        drop((first, second, from));
        home.assert_left();
    });
}

/// What the stack gets is as if nobody had asked.
#[test]
fn the_stack_has_its_frames() {
    if skip_without_root("the_stack_has_its_frames") {
        return;
    }
    isolated("the_stack_has_its_frames", |home| {
        let (a, b, _pair) = wire();
        for timestamps in [Timestamps::Software, Timestamps::Hardware] {
            let spec = format!("netmap:n1~0@timestamps={timestamps}");
            let port = open(&b, &spec).unwrap();
            b.enter(|| Control::connect().unwrap().redirect_queues("netmap:n1", &[0], false))
                .unwrap();
            until("the stack answers", || a.try_ping("-c 3 -i 0.05 -w 10 -s 8000 10.4.0.2"));
            drop(port);
        }
        home.assert_left();
    });
}

/// In C, in every mode: rings are stamped at each sync, and frames have timestamps where they are
/// asked for.
#[test]
fn in_c() {
    if skip_without_root("in_c") {
        return;
    }
    isolated("in_c", |home| {
        let (a, b, _pair) = wire();
        let programs =
            [C11, Cpp17].map(|language| compile(home, "tests/c/timestamps.c", language, Preloaded));
        let mut from = open(&a, "netmap:n0").unwrap();
        for (mode, program) in MODES.iter().zip(programs.iter().cycle()) {
            let mut command = home.command(program);
            command.arg("n1").env("LD_PRELOAD", home.library());
            command.env("RINGWAY_NIC_MODE", mode.name()).env("RINGWAY_NIC_TIMESTAMPS", "software");
            let program = Proc::spawn(inside(&b, command));
            program.wait_for("ready", LIMIT);
            let deadline = Instant::now() + LIMIT;
            while !program.output().contains("done") && Instant::now() < deadline {
                send(&mut from, &numbered(60));
                from.wait_tx(Some(Duration::from_millis(20))).unwrap();
                if let Some(said) = program.output().lines().find(|l| l.starts_with("not ok")) {
                    panic!("{mode}: {said}");
                }
            }
            let (status, output) = program.wait();
            assert!(status.success() && !output.contains("not ok"), "{mode}: {output}");
        }
        drop(from);
        home.assert_left();
    });
}
