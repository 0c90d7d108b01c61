//! Programs beside the traffic control of an interface where the kernel has no tcx: each of these tests is such a
//! kernel's.

#![allow(clippy::disallowed_methods, reason = "a test's own variable")]

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::{Wire, stay_on_one_cpu};
use ringway_filter::Program;
use ringway_nic_setup::{
    EgressFilter, EgressRedirect, Error, Filter, HostEnd, IngressDrop, Interface,
};
use ringway_testkit::{Netns, NicState, forbid_tcx_here, skip_without_root};

/// The environment of the process that a test kills: an interface.
const KILLED: &str = "RINGWAY_TEST_KILLED";

/// A wire, of which `a0` hears what is sent to 10.9.0.1 at `b0`.
struct Addressed {
    wire: Wire,
    ear: UdpSocket,
    mouth: UdpSocket,
}

impl Addressed {
    fn new() -> Addressed {
        // Each CPU has a queue of the frames that a stack is to receive.
        stay_on_one_cpu();
        let wire = Wire::new();
        wire.a.run("ip address add 10.9.0.1/24 dev a0");
        wire.b.run("ip address add 10.9.0.2/24 dev b0");
        let bind = |netns: &Netns, address: &str| {
            let socket = netns.enter(|| UdpSocket::bind(address).unwrap());
            socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            socket
        };
        let (ear, mouth) = (bind(&wire.a, "10.9.0.1:9"), bind(&wire.b, "10.9.0.2:9"));
        // From then on the neighbours know each other.
        let addressed = Addressed { wire, ear, mouth };
        addressed.mouth.send_to(&[1], "10.9.0.1:9").unwrap();
        addressed.ear.recv(&mut [0]).expect("the wire carries frames");
        addressed
    }

    fn interface(&self) -> Interface {
        self.wire.a.enter(|| Interface::by_name("a0").unwrap())
    }

    fn begin(&self) -> Result<IngressDrop, Error> {
        let interface = self.interface();
        let mut drop = self.wire.a.enter(|| IngressDrop::begin(&interface))?;
        (0..interface.queues()).for_each(|queue| drop.set_queue(queue, true));
        Ok(drop)
    }

    /// Whether the stack behind `a0` hears what is sent from the other end. What is sent here after it comes after it,
    /// for both are in the queue of one CPU.
    fn hears(&self) -> bool {
        const HERE: u8 = 0;
        const THERE: u8 = 1;
        self.mouth.send_to(&[THERE], "10.9.0.1:9").unwrap();
        let here = self.wire.a.enter(|| UdpSocket::bind("10.9.0.1:0").unwrap());
        here.send_to(&[HERE], "10.9.0.1:9").unwrap();
        let mut got = [0];
        let mut heard = false;
        loop {
            self.ear.recv(&mut got).expect("what is sent here arrives");
            match got {
                [HERE] => return heard,
                _ => heard = true,
            }
        }
    }

    fn shows(&self, command: &str) -> String {
        self.wire.a.run(command)
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

#[test]
fn the_last_holder_of_a_filter_takes_it_away() {
    if skip_without_root("the_last_holder_of_a_filter_takes_it_away") {
        return;
    }
    forbid_tcx_here();
    let on = Addressed::new();
    let before = NicState::take(&on.wire.a, "a0");
    let ingress_drop = on.begin().unwrap();
    assert!(!on.hears());
    assert!(on.shows("tc qdisc show dev a0").contains("clsact"));
    let copy = ingress_drop.link_fd().try_clone_to_owned().unwrap();
    drop(ingress_drop);
    assert!(!on.hears());
    drop(copy);
    wait_until("the qdisc is removed", || !on.shows("tc qdisc show dev a0").contains("clsact"));
    assert!(on.hears());
    before.assert_restored(&on.wire.a);
}

/// It has no effect from then on, whoever has a copy.
#[test]
fn a_filter_ends_while_others_hold_it() {
    if skip_without_root("a_filter_ends_while_others_hold_it") {
        return;
    }
    forbid_tcx_here();
    let on = Addressed::new();
    let before = NicState::take(&on.wire.a, "a0");
    let first = on.begin().unwrap();
    let copies: Vec<OwnedFd> =
        (0..3).map(|_| first.link_fd().try_clone_to_owned().unwrap()).collect();
    assert!(!on.hears());
    first.end();
    assert!(on.hears());
    // Another one takes its place, and is not removed for it.
    let second = on.begin().unwrap();
    assert!(!on.hears());
    drop((first, copies));
    for _ in 0..100 {
        assert!(!on.hears());
    }
    drop(second);
    before.assert_restored(&on.wire.a);
}

#[test]
fn what_others_have_there_stays() {
    if skip_without_root("what_others_have_there_stays") {
        return;
    }
    forbid_tcx_here();
    let on = Addressed::new();
    on.shows("tc qdisc add dev a0 clsact");
    let before = NicState::take(&on.wire.a, "a0");
    drop(on.begin().unwrap());
    before.assert_restored(&on.wire.a);

    // This qdisc has no egress, and its filters for that would be in the way of what comes in.
    on.shows("tc qdisc del dev a0 clsact && tc qdisc add dev a0 ingress");
    let interface = on.interface();
    let refused = on.wire.a.enter(|| EgressRedirect::begin(&interface).err().unwrap());
    assert!(refused.to_string().contains("qdisc `ingress`"), "{refused}");
    assert!(on.hears());
}

/// The two hooks of an interface share the qdisc: whichever program goes last takes it away.
#[test]
fn both_hooks_are_restored_in_any_order() {
    if skip_without_root("both_hooks_are_restored_in_any_order") {
        return;
    }
    forbid_tcx_here();
    let on = Addressed::new();
    let before = NicState::take(&on.wire.a, "a0");
    for egress_first in [true, false] {
        let interface = on.interface();
        let egress = on.wire.a.enter(|| EgressRedirect::begin(&interface).unwrap());
        let ingress = on.begin().unwrap();
        if egress_first {
            drop(egress);
            assert!(!on.hears());
            drop(ingress);
        } else {
            drop(ingress);
            drop(egress);
        }
        before.assert_restored(&on.wire.a);
    }
    assert!(on.hears());
}

/// Of several who come at the same moment one has it.
#[test]
fn packet_mode_is_had_by_one() {
    if skip_without_root("packet_mode_is_had_by_one") {
        return;
    }
    forbid_tcx_here();
    const AT_ONCE: usize = 4;
    let on = Addressed::new();
    let before = NicState::take(&on.wire.a, "a0");
    for _ in 0..20 {
        let start = Barrier::new(AT_ONCE);
        let begin = || {
            start.wait();
            on.begin()
        };
        let begun = thread::scope(|scope| {
            let all: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(begin)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(begun.iter().filter(|one| one.is_ok()).count(), 1);
        for error in begun.iter().filter_map(|one| one.as_ref().err()) {
            assert!(matches!(error, Error::Occupied { .. }), "{error}");
        }
        assert!(!on.hears());
        begun.iter().flatten().for_each(IngressDrop::end);
    }
    before.assert_restored(&on.wire.a);
}

/// What the stack sends goes to the host rings, by a program and by another that takes its place, and out again.
#[test]
fn the_stack_is_redirected() {
    if skip_without_root("the_stack_is_redirected") {
        return;
    }
    forbid_tcx_here();
    let on = Addressed::new();
    let before = NicState::take(&on.wire.a, "a0");
    let interface = on.interface();
    let received = |netns: &Netns| -> u64 {
        netns.run("cat /sys/class/net/b0/statistics/rx_packets").trim().parse().unwrap()
    };
    let (host, mut redirect) = on.wire.a.enter(|| {
        let host = HostEnd::new(&interface, 1).unwrap();
        (host, EgressRedirect::begin(&interface).unwrap())
    });
    let at_host = || -> u64 {
        let name = host.pair().outer().name.clone();
        on.shows(&format!("cat /sys/class/net/{name}/statistics/tx_packets"))
            .trim()
            .parse()
            .unwrap()
    };
    let everything = Arc::new(Filter::new("a0", Program::everything(), 1).unwrap());
    let loaded = EgressFilter::of(&interface, &host, &everything).load().unwrap();
    for filter in [None, Some(&loaded)] {
        redirect.redirect(Some(&host), filter).unwrap();
        let (far, near) = (received(&on.wire.b), at_host());
        for _ in 0..10 {
            on.ear.send_to(b"x", "10.9.0.2:9").unwrap();
        }
        wait_until("the host rings have them", || at_host() >= near + 10);
        assert_eq!(received(&on.wire.b), far, "filter: {}", filter.is_some());
    }
    redirect.end();
    let far = received(&on.wire.b);
    on.ear.send_to(b"x", "10.9.0.2:9").unwrap();
    wait_until("it goes out again", || received(&on.wire.b) > far);
    drop(host);
    before.assert_restored(&on.wire.a);
}

/// With the process goes what would remove its filter: the filter lets all pass, and goes with the next one.
#[test]
fn a_filter_whose_process_and_guard_are_killed_has_no_effect() {
    if skip_without_root("a_filter_whose_process_and_guard_are_killed_has_no_effect") {
        return;
    }
    let on = Addressed::new();
    let before = NicState::take(&on.wire.a, "a0");
    let test = std::env::current_exe().unwrap();
    let mut command = Command::new(test);
    command.args(["--exact", "a_process_that_is_killed"]);
    command.env(KILLED, "a0").stdout(Stdio::piped());
    let mut child = on.wire.a.enter(|| command.spawn().unwrap());
    wait_until("the filter is there", || {
        on.shows("tc filter show dev a0 ingress").contains("ringway_slot")
    });
    wait_until("it drops", || !on.hears());
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel empties the slot a moment later.
    wait_until("all passes", || on.hears());
    assert!(on.shows("tc filter show dev a0 ingress").contains("ringway_slot"));

    forbid_tcx_here();
    drop(on.begin().unwrap());
    before.assert_restored(&on.wire.a);
}

/// What the test above starts; by itself it is nothing.
#[test]
fn a_process_that_is_killed() {
    let Ok(name) = std::env::var(KILLED) else { return };
    forbid_tcx_here();
    let interface = Interface::by_name(&name).unwrap();
    let mut ingress_drop = IngressDrop::begin(&interface).unwrap();
    (0..interface.queues()).for_each(|queue| ingress_drop.set_queue(queue, true));
    loop {
        thread::park();
    }
}
