//! A filter that is set once a device is open: what the mode of the interface is then, and what the program gets.

use ringway::Control;
use ringway_testkit::{Netns, PacketSocket, Proc, VethPair, frame, skip_without_root};
use ringway_tests::{
    GROUP, Home,
    c::{Language::C11, link},
    inside, isolated, isolated_with_system, until,
};
use rustix::process::Signal;

use crate::{LIMIT, install, run};

/// Frames with even numbers, as [`frame`] has them.
const EVEN: &str = "ether proto 0x88b5 and ether[17] & 1 = 0";

struct Wire {
    a: Netns,
    b: Netns,
    far: PacketSocket,
    _pair: VethPair,
}

impl Wire {
    fn new() -> Wire {
        let [a, b] = [(); 2].map(|()| Netns::quiet("rwl"));
        let pair = a.veth(&b, "n0", "n1");
        a.run("ip addr add 10.66.0.1/24 dev n0");
        b.run("ip addr add 10.66.0.2/24 dev n1");
        Wire { far: PacketSocket::new(&b, "n1"), a, b, _pair: pair }
    }

    fn send(&self, numbers: std::ops::Range<u32>) {
        numbers.for_each(|number| self.far.send(&frame(number, 60 + 20 * number as usize)));
    }

    /// Waits until an XDP program has had so many frames.
    fn arrived(&self, count: u64) {
        until("the frames have arrived", || {
            let statistics = self.a.run("ethtool -S n0");
            let has =
                |line: &str| line.trim().strip_prefix("rx_queue_0_xdp_packets: ")?.parse().ok();
            match statistics.lines().find_map(has) {
                Some(found) if count <= found => Ok(()),
                _ => Err(statistics),
            }
        });
    }
}

/// The mode of the interface's port, and how many filters it has.
fn mode() -> (String, usize) {
    let ports = Control::connect_running().unwrap().ports().unwrap();
    let port = ports.iter().find(|port| port.name == "n0").unwrap();
    let mode = port.mode.as_deref().unwrap_or_default();
    (mode.split(';').next().unwrap_or_default().into(), port.filters.len())
}

fn program(home: &Home) -> String {
    link(home, "tests/c/pcap_late_filter.c", C11, &["-lpcap"]).display().to_string()
}

fn numbers(said: &str) -> Vec<u32> {
    said.lines().filter_map(|line| line.strip_prefix("packet ")?.parse().ok()).collect()
}

fn open(home: &Home, wire: &Wire, device: &str, count: usize, how: &str) -> Proc {
    let line = format!("{} {device} {count} '{EVEN}' {how}", program(home));
    let late = run(home, Some(&wire.a), &line);
    late.wait_for("open", LIMIT);
    late
}

fn set_filter(late: &Proc) {
    late.signal(Signal::USR1);
    late.wait_for("filtered", LIMIT);
}

/// The interface is in packet mode from then on. What came before is read, first and once.
#[test]
fn a_filter_before_the_first_read_chooses_the_mode() {
    if skip_without_root("late_filter::a_filter_before_the_first_read_chooses_the_mode") {
        return;
    }
    isolated("late_filter::a_filter_before_the_first_read_chooses_the_mode", |home| {
        install(home);
        for how in ["loop", "poll"] {
            let wire = Wire::new();
            // The stack keeps the way out, to answer what it is left.
            let late = open(home, &wire, "netmap:n0/R", 20, how);
            assert_eq!(mode(), ("copy".into(), 0));
            wire.send(0..20);
            wire.arrived(20);
            set_filter(&late);
            assert_eq!(mode(), ("packet".into(), 1));
            // What does not match is the stack's.
            wire.b.ping("-c 1 -w 30 10.66.0.1");
            wire.send(20..40);
            let (status, said) = late.wait();
            assert!(status.success(), "{how}: {said}");
            assert_eq!(numbers(&said), (0..40).step_by(2).collect::<Vec<_>>(), "{how}: {said}");
            assert!(said.contains("received 20 dropped 0"), "{how}: {said}");
        }
    });
}

/// A filter that takes everything leaves nothing to the stack, and so does a mode that was asked for.
#[test]
fn without_a_need_the_mode_stays() {
    if skip_without_root("late_filter::without_a_need_the_mode_stays") {
        return;
    }
    isolated("late_filter::without_a_need_the_mode_stays", |home| {
        install(home);
        let wire = Wire::new();
        let late = open(home, &wire, "netmap:n0@mode=generic", 10, "loop");
        set_filter(&late);
        assert_eq!(mode(), ("generic".into(), 1));
        wire.send(0..20);
        let (status, said) = late.wait();
        assert!(status.success() && numbers(&said).len() == 10, "{said}");

        let tcpdump = run(home, Some(&wire.a), "tcpdump -i netmap:n0 -c 20 -w written");
        tcpdump.wait_for("listening on", LIMIT);
        assert_eq!(mode().0, "copy");
        wire.send(0..20);
        let (status, said) = tcpdump.wait();
        assert!(status.success(), "{said}");
    });
}

/// Another program has a monitor: it goes on as before.
#[test]
fn what_others_watch_stays_as_it_is() {
    if skip_without_root("late_filter::what_others_watch_stays_as_it_is") {
        return;
    }
    isolated("late_filter::what_others_watch_stays_as_it_is", |home| {
        install(home);
        let wire = Wire::new();
        let late = open(home, &wire, "netmap:n0", 20, "loop");
        let watching = run(home, Some(&wire.a), "ringway recv netmap:n0/r --count 20 --json");
        watching.wait_for(r#""type":"open""#, LIMIT);
        set_filter(&late);
        assert_eq!(mode(), ("copy".into(), 1));
        wire.send(0..40);
        for program in [late, watching] {
            let (status, said) = program.wait();
            assert!(status.success(), "{said}");
        }
    });
}

/// A program may give up root between the two: what it could not open again it keeps.
#[test]
fn another_user_keeps_the_port() {
    if skip_without_root("late_filter::another_user_keeps_the_port") {
        return;
    }
    isolated_with_system("late_filter::another_user_keeps_the_port", 10 * LIMIT, |home| {
        install(home);
        let _daemon = home.system_daemon(GROUP, 0o666);
        let wire = Wire::new();
        let mut shell = home.system_command("sh");
        let line = format!("exec ringway run -- {} netmap:n0 10 '{EVEN}' drop", program(home));
        shell.args(["-c", &line]);
        let late = Proc::spawn(inside(&wire.a, shell));
        late.wait_for("open", LIMIT);
        set_filter(&late);
        assert_eq!(mode(), ("copy".into(), 1));
        wire.send(0..20);
        let (status, said) = late.wait();
        assert!(status.success() && numbers(&said).len() == 10, "{said}");
    });
}
