//! Monitors (S-MON): what they see, when, and that no other program notices them.

use std::{fs::File, os::fd::AsRawFd, time::Duration};

use ringway::{Answer, Control, Error, Index, Interest, Page, Port, Session};
use ringway_abi::{Dir, NS_BUF_CHANGED, NS_TXMON};
use ringway_proto::{
    BridgeInfo, NicMode, PortShape, RegionInfo, RegionPosition, Request, SwitchPosition,
};
use ringway_registry::{LocalRegistry, Settings};
use ringway_testkit::{Netns, Proc, VethPair, is_root, isolate_thread, skip_without_root};
use ringway_tests::{
    frame::{self, Seen},
    isolated, until,
};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

const FLOW: u32 = 9;
const LIMIT: Option<Duration> = Some(Duration::from_secs(20));

/// A registry in this process, with its bridges; in a network namespace of the test's own, if it
/// may have one.
struct World(LocalRegistry);

impl World {
    fn new() -> World {
        if is_root() {
            isolate_thread();
        }
        World(LocalRegistry::new(Settings::default()))
    }

    fn try_open(&self, spec: &str) -> Result<Port, Error> {
        Port::options().over(self.0.clone()).open(spec)
    }

    fn open(&self, spec: &str) -> Port {
        self.try_open(spec).unwrap_or_else(|e| panic!("{spec}: {e}"))
    }

    fn ask<T: Answer>(&self, request: Request) -> T {
        Session::over(&self.0).call(request).unwrap().0
    }

    fn newif(&self, name: &str) {
        let _: PortShape =
            self.ask(Request::NewInterface { name: name.into(), shape: PortShape::default() });
    }

    fn attach(&self, name: &str) {
        self.attach_in(name, None);
    }

    fn attach_in(&self, name: &str, mode: Option<NicMode>) {
        let _: Index = self.ask(Request::SwitchAttach {
            name: name.into(),
            stack: false,
            all_rings: true,
            mem_id: 0,
            mode,
        });
    }

    fn detach(&self, name: &str) {
        let _: Index = self.ask(Request::SwitchDetach { name: name.into() });
    }

    fn regions(&self) -> Vec<RegionInfo> {
        let from = RegionPosition::default();
        let page = self.ask::<Page<RegionInfo, RegionPosition>>(Request::Regions { from });
        as_they_are(page.items)
    }

    /// When this returns, the workers have dealt with everything that was synced before.
    fn barrier(&self) {
        for _ in 0..2 {
            let from = SwitchPosition::default();
            let _: Page<BridgeInfo, SwitchPosition> = self.ask(Request::Switches { from });
        }
    }
}

/// Sends frames with these numbers to everybody, in one sync.
fn send(port: &mut Port, numbers: impl IntoIterator<Item = u64>) {
    let mut bytes = Vec::new();
    for number in numbers {
        frame::build(&mut bytes, frame::BROADCAST, frame::mac(FLOW, 1), FLOW, number);
        assert!(port.tx(0).push(&bytes), "room in the ring");
    }
    port.tx(0).sync();
}

/// Takes what is in the ring, without a sync after it: numbers, and whether the frames are marked
/// as sent.
fn take(port: &mut Port) -> Vec<(u64, bool)> {
    let ring = port.binding().rings(Dir::Rx)[0].kring().ring().clone();
    let (mut spare, mut at) = (Vec::new(), ring.head());
    let read = |frame: ringway::RxFrame<'_>| {
        let sent = ring.slot(at).flags & NS_TXMON != 0;
        at = ring.next(at);
        match frame::look(&frame.to_vec(), &mut spare) {
            Seen::Ours { number, .. } => (number, sent),
            other => panic!("{other:?}"),
        }
    };
    port.rx(0).batch(usize::MAX).map(read).collect()
}

/// Waits for `count` frames, and gives them back.
fn receive(port: &mut Port, count: usize) -> Vec<(u64, bool)> {
    let mut all = Vec::new();
    while all.len() < count {
        assert!(port.wait_rx(LIMIT).unwrap(), "{}: {all:?} of {count}", port.name());
        all.extend(take(port));
    }
    port.rx(0).sync();
    all
}

fn is_silent(port: &mut Port) -> bool {
    !port.poll(Interest::Rx)
}

fn sent(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, bool)> {
    numbers.into_iter().map(|n| (n, true)).collect()
}

fn received(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, bool)> {
    numbers.into_iter().map(|n| (n, false)).collect()
}

/// Two ports that reach each other, by the names that they are monitored by.
fn pairs(w: &World) -> Vec<[&'static str; 2]> {
    let mut pairs = vec![["vale0:a", "vale0:b"], ["p{1", "p}1"]];
    if is_root() {
        w.newif("per");
        w.attach("vale1:per");
        pairs.extend([["vale1:a", "per"], ["vale1:per", "vale1:c"]]);
    }
    pairs
}

#[test]
fn s_scen_6_copies_and_the_receiver_gets_it_too() {
    let w = World::new();
    for names in pairs(&w) {
        let [mut a, mut b] = names.map(|name| w.open(name));
        let [mut t, mut r, mut both] = [(0, "t"), (1, "r"), (0, "rt")]
            .map(|(i, flags)| w.open(&format!("{}/{flags}", names[i])));
        let mut other = w.open(&format!("{}/r", names[0]));
        send(&mut a, 0..5);
        if names[0].starts_with('p') {
            assert!(!is_silent(&mut t) && !is_silent(&mut r), "S-MON-4: nobody else does anything");
        }
        assert_eq!(receive(&mut t, 5), sent(0..5), "{names:?}");
        assert_eq!(receive(&mut r, 5), received(0..5), "{names:?}");
        assert_eq!(receive(&mut both, 5), sent(0..5), "{names:?}");
        assert_eq!(receive(&mut b, 5), received(0..5), "{names:?}");
        send(&mut b, 5..8);
        assert_eq!(receive(&mut both, 3), received(5..8), "{names:?}");
        assert_eq!(receive(&mut other, 3), received(5..8), "{names:?}");
        assert_eq!(receive(&mut a, 3), received(5..8), "{names:?}");
        w.barrier();
        assert!([t, r, both, other].iter_mut().all(is_silent), "{names:?}: each frame once");
    }
}

#[test]
fn s_scen_7_buffers_of_a_pipe() {
    let w = World::new();
    let (mut a, mut b) = (w.open("p{1"), w.open("p}1"));
    let (mut z_sent, mut z_received) = (w.open("p{1/z"), w.open("p}1/z"));
    assert_eq!(a.mem_id(), z_sent.mem_id());
    send(&mut a, 0..4);
    assert_eq!(b.rx(0).sync(), 4);
    a.tx(0).sync();
    assert!(is_silent(&mut z_sent) && is_silent(&mut z_received), "nothing was released");
    assert_eq!(take(&mut b), received(0..4));
    assert!(is_silent(&mut z_received), "nothing was synced");
    b.rx(0).sync();
    assert_eq!(receive(&mut z_received, 4), received(0..4));
    // The receiver's monitor has had the packets' buffers: others come back.
    assert!(is_silent(&mut z_sent));
    a.tx(0).sync();
    let ring = z_sent.binding().rings(Dir::Rx)[0].kring().clone();
    assert!(z_sent.poll(Interest::Rx));
    assert_eq!(ring.ring().distance(ring.ring().head(), ring.hwtail()), 4);
    let owners = a.binding().rings(Dir::Tx)[0].kring().ring();
    assert!((0..4).all(|i| owners.slot(i).flags & NS_BUF_CHANGED != 0));
}

#[test]
fn s_scen_7_buffers_that_a_pipe_returns() {
    let w = World::new();
    let (mut a, mut b) = (w.open("p{1"), w.open("p}1"));
    let mut z = w.open("p{1/z");
    // More than once around the ring.
    for round in 0..5u64 {
        let numbers = round * 300..(round + 1) * 300;
        send(&mut a, numbers.clone());
        assert_eq!(receive(&mut b, 300), received(numbers.clone()));
        assert!(is_silent(&mut z), "the sender has not synced");
        a.tx(0).sync();
        assert_eq!(receive(&mut z, 300), sent(numbers));
        assert_eq!(a.tx(0).space(), 1023);
    }
}

#[test]
fn s_scen_7_buffers_of_a_switch() {
    let w = World::new();
    let (mut a, mut b) = (w.open("vale0:a"), w.open("vale0:b"));
    let (mut z_sent, mut z_received) = (w.open("vale0:a/z"), w.open("vale0:b/z"));
    for round in 0..5u64 {
        let numbers = round * 300..(round + 1) * 300;
        send(&mut a, numbers.clone());
        assert_eq!(receive(&mut z_sent, 300), sent(numbers.clone()), "S-MON-5: immediately");
        assert!(b.wait_rx(LIMIT).unwrap());
        w.barrier();
        assert!(is_silent(&mut z_received), "nothing was released");
        assert_eq!(receive(&mut b, 300), received(numbers.clone()));
        assert_eq!(receive(&mut z_received, 300), received(numbers));
        a.tx(0).sync();
        assert_eq!(a.tx(0).space(), 1023);
    }
    w.barrier();
    assert!(is_silent(&mut z_sent) && is_silent(&mut z_received));
}

/// An interface that a switch has: no program has it open, and its monitors see what passes, both ways.
#[test]
fn s_mon_3_an_interface_of_a_switch() {
    if skip_without_root("s_mon_3_an_interface_of_a_switch") {
        return;
    }
    for mode in [NicMode::Copy, NicMode::Generic, NicMode::Packet] {
        let w = World::new();
        Netns::root().run(
            "sysctl -qw net.ipv6.conf.default.disable_ipv6=1 && \
             ip link add nic0 type veth peer name nic1 && \
             ip link set nic0 up && ip link set nic1 up",
        );
        let mut far = w.open("netmap:nic1@mode=packet");
        w.attach_in("vale0:nic0", Some(mode));
        let mut near = w.open("vale0:a");
        let [mut t, mut r, mut both] =
            ["t", "r", "rt"].map(|flags| w.open(&format!("vale0:nic0/{flags}")));
        for round in 0..3u64 {
            let first = 10 * round;
            send(&mut near, first..first + 5);
            assert_eq!(receive(&mut far, 5), received(first..first + 5), "{mode}");
            assert_eq!(receive(&mut r, 5), received(first..first + 5), "{mode}");
            assert_eq!(receive(&mut both, 5), received(first..first + 5), "{mode}");
            send(&mut far, first + 5..first + 8);
            assert_eq!(receive(&mut near, 3), received(first + 5..first + 8), "{mode}");
            assert_eq!(receive(&mut t, 3), sent(first + 5..first + 8), "{mode}");
            assert_eq!(receive(&mut both, 3), sent(first + 5..first + 8), "{mode}");
            w.barrier();
            assert!(
                [&mut t, &mut r, &mut both].into_iter().all(is_silent),
                "{mode}: each frame once"
            );
        }
        let refused = w.try_open("vale0:nic0/z").unwrap_err().to_string();
        assert!(refused.contains("vale0:nic0") && refused.contains("copies"), "{refused}");
        // One that goes leaves the others their frames.
        drop(r);
        send(&mut near, 90..95);
        assert_eq!(receive(&mut both, 5), received(90..95), "{mode}");
        w.detach("vale0:nic0");
        for monitor in [&mut t, &mut both] {
            let end = monitor.wait_rx(LIMIT);
            assert!(matches!(end, Err(Error::Monitor { .. })), "{mode}: {end:?}");
        }
        drop(far);
        Netns::root().run("ip link del nic0");
    }
}

/// What was released before a monitor came is not for it.
#[test]
fn s_mon_5_only_what_comes_back_from_now_on() {
    let w = World::new();
    for [a, b] in [["vale0:a", "vale0:b"], ["p{1", "p}1"]] {
        let [mut sender, mut receiver] = [a, b].map(|name| w.open(name));
        send(&mut sender, 0..10);
        assert_eq!(receive(&mut receiver, 10).len(), 10);
        sender.tx(0).sync();
        w.barrier();
        let (mut z_sent, mut z_received) = (w.open(&format!("{a}/z")), w.open(&format!("{b}/z")));
        sender.tx(0).sync();
        receiver.rx(0).sync();
        send(&mut sender, 10..12);
        assert_eq!(receive(&mut receiver, 2), received(10..12));
        assert_eq!(receive(&mut z_received, 2), received(10..12));
        sender.tx(0).sync();
        assert_eq!(z_sent.wait_rx(LIMIT).map(|_| z_sent.rx(0).available()).unwrap(), 2);
    }
}

#[test]
fn s_mon_7_several_at_once() {
    let w = World::new();
    for [a, b] in [["vale0:a", "vale0:b"], ["p{1", "p}1"]] {
        let [mut sender, mut receiver] = [a, b].map(|name| w.open(name));
        let mut copies: Vec<Port> = (0..3).map(|_| w.open(&format!("{b}/r"))).collect();
        let mut chain: Vec<Port> = (0..3).map(|_| w.open(&format!("{b}/z"))).collect();
        for round in 0..3u64 {
            let numbers = round * 10..round * 10 + 10;
            send(&mut sender, numbers.clone());
            assert_eq!(receive(&mut receiver, 10), received(numbers.clone()));
            for copy in &mut copies {
                assert_eq!(receive(copy, 10), received(numbers.clone()));
            }
            for link in &mut chain {
                assert_eq!(receive(link, 10), received(numbers.clone()));
            }
            w.barrier();
            assert!(chain.iter_mut().chain(&mut copies).all(is_silent));
            // Each time one less, from another end; copies come and go.
            drop(chain.remove(if round == 0 { 1 } else { 0 }));
            drop(copies.remove(0));
            copies.push(w.open(&format!("{b}/r")));
        }
    }
}

#[test]
fn s_mon_6_a_full_monitor_costs_the_target_nothing() {
    let w = World::new();
    for [a, b] in [["vale0:a", "vale0:b"], ["p{1", "p}1"]] {
        let [mut sender, mut receiver] = [a, b].map(|name| w.open(name));
        let mut small =
            Port::options().over(w.0.clone()).rx_slots(8).open(&format!("{b}/r")).unwrap();
        let z = Port::options().over(w.0.clone()).rx_slots(8).open(&format!("{b}/z")).unwrap();
        for round in 0..4u64 {
            let numbers = round * 500..(round + 1) * 500;
            send(&mut sender, numbers.clone());
            assert_eq!(receive(&mut receiver, 500), received(numbers));
            sender.tx(0).sync();
        }
        w.barrier();
        assert_eq!(receive(&mut small, 7).len(), 7);
        assert!(is_silent(&mut small));
        drop(z);
    }
}

/// A program without descriptors cannot have its monitors' rings: what passes meanwhile is what they have lost.
#[test]
fn s_mon_6_what_passes_without_descriptors_is_counted() {
    isolated("s_mon_6_what_passes_without_descriptors_is_counted", |_| {
        let open = |spec: &str| Port::open(spec).unwrap_or_else(|e| panic!("{spec}: {e}"));
        let [mut from, _to] = ["netmap:m{1", "netmap:m}1"].map(open);
        let mut monitor = open("netmap:m{1/t");
        let limit = getrlimit(Resource::Nofile);
        let free = File::open("/dev/null").unwrap().as_raw_fd();
        let none = Rlimit { current: Some(free as u64), ..limit };
        setrlimit(Resource::Nofile, none).unwrap();
        let mut count = 0;
        for _ in 0..3 {
            send(&mut from, count..count + 5);
            count += 5;
        }
        setrlimit(Resource::Nofile, limit).unwrap();
        monitor.rx(0).sync();
        assert_eq!(take(&mut monitor), []);
        let first = until("the monitor's ring is had", || {
            send(&mut from, count..=count);
            count += 1;
            monitor.rx(0).sync();
            take(&mut monitor).first().copied().ok_or_else(|| format!("{count} have passed"))
        });
        assert_eq!(first, (count - 1, true));
        assert_eq!(monitor.stats().ring_full, count - 1);
    });
}

#[test]
fn s_mon_8_when_the_target_is_closed() {
    let w = World::new();
    for [a, b] in pairs(&w) {
        let peer = w.open(b);
        for flags in ["r", "t", "z"] {
            let spec = format!("{a}/{flags}");
            let target = w.open(a);
            let (mut monitor, mut second) = (w.open(&spec), w.open(&spec));
            assert!(!monitor.wait_rx(Some(Duration::ZERO)).unwrap());
            drop(target);
            assert!(matches!(monitor.wait_rx(LIMIT), Err(Error::Monitor { .. })));
            assert_eq!(
                ringway_errno::errno(w.try_open(&spec).unwrap_err().cause()),
                rustix::io::Errno::INVAL.raw_os_error(),
                "S-MON-1"
            );
            // Opened again, it is monitored by others only.
            let target = w.open(a);
            assert!(matches!(second.wait_rx(LIMIT), Err(Error::Monitor { .. })));
            let mut third = w.open(&spec);
            assert!(!third.wait_rx(Some(Duration::ZERO)).unwrap());
            drop((monitor, target, third));
        }
        drop(peer);
    }
    assert!(w.regions().len() <= 1, "that of the persistent port");
}

/// A monitor that was never synced before its target was closed delivers the packets that it has, and then the error.
#[test]
fn s_mon_8_what_came_before_the_target_was_closed() {
    let w = World::new();
    for [a, b] in [["vale0:a", "vale0:b"], ["p{1", "p}1"]] {
        for kind in ["r", "rt", "z", "rz"] {
            let [mut sender, mut target] = [a, b].map(|name| w.open(name));
            let mut monitor = w.open(&format!("{b}/{kind}"));
            send(&mut sender, 0..9);
            assert_eq!(receive(&mut target, 9), received(0..9));
            drop(target);
            assert!(monitor.check(Interest::Rx).is_err() && monitor.poll(Interest::Rx));
            assert_eq!(receive(&mut monitor, 9), received(0..9), "{b}/{kind}");
            for _ in 0..2 {
                let end = monitor.wait_rx(LIMIT);
                assert!(matches!(end, Err(Error::Monitor { .. })), "{b}/{kind}: {end:?}");
            }
        }
    }
}

#[test]
fn s_mon_3_a_monitor_sends_nothing() {
    let w = World::new();
    let _target = w.open("vale0:a");
    let mut monitor = w.open("vale0:a/t");
    assert!(matches!(monitor.wait_tx(LIMIT), Err(Error::Monitor { .. })));
}

/// A process that stands still amid feeding a monitor keeps the monitor's ring, and nothing else.
#[test]
fn a_ring_that_is_being_fed_stays() {
    let w = World::new();
    let _target = w.open("p{1");
    let free = |w: &World| w.regions()[0].free_bufs;
    let before = free(&w);
    let monitor = w.open("p{1/z");
    let held = free(&w);
    let ring = monitor.binding().rings(Dir::Rx)[0].kring().clone();
    let (hold, let_go) = std::sync::mpsc::channel::<()>();
    let (is_held, holds) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let guard = ring.try_feed(ring.feed_id());
            assert!(guard.is_mine(), "nothing feeds it");
            is_held.send(()).unwrap();
            let_go.recv().unwrap();
        });
        holds.recv().unwrap();
        drop(monitor);
        assert_eq!(free(&w), held + 1024, "the buffers of its tx ring");
        drop(w.open("p{1/r"));
        hold.send(()).unwrap();
    });
    drop(w.open("p{1"));
    assert_eq!(free(&w), before);
}

/// Whoever closes first: buffers that were swapped come back.
#[test]
fn closed_in_any_order() {
    if skip_without_root("closed_in_any_order") {
        return;
    }
    let w = World::new();
    w.newif("per");
    w.attach("vale3:per");
    let before = w.regions();
    let names = ["vale3:per", "per/z", "per/rt", "per/z", "per{1", "per}1", "per{1/z", "per}1/z"];
    for seed in 0..40usize {
        let mut feeder = w.open("vale3:x");
        let mut ports: Vec<(&str, Port)> = names.iter().map(|name| (*name, w.open(name))).collect();
        let mut number = 0;
        for step in 0..names.len() {
            for _ in 0..3 {
                send(&mut feeder, number..number + 20);
                number += 20;
                for (name, port) in &mut ports {
                    if *name == "per{1" {
                        send(port, number..number + 20);
                    }
                    port.poll(Interest::Rx);
                    // Not all of it, not the frames that they were: both ends' buffers are taken.
                    port.rx(0).batch(15).for_each(drop);
                    port.poll(Interest::Both);
                }
            }
            let at = (seed * 7 + step * 3) % ports.len();
            drop(ports.swap_remove(at));
        }
        drop(feeder);
        assert_eq!(w.regions(), before, "order {seed}");
    }
}

/// Regions without what was ever in use at once, which is not taken back.
fn as_they_are(regions: Vec<RegionInfo>) -> Vec<RegionInfo> {
    regions.into_iter().map(|region| RegionInfo { asked: 0, ..region }).collect()
}

/// Two namespaces with interface `n0` in one and `n1` in the other, whose stacks are quiet.
fn wire() -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rwm"), Netns::quiet("rwm"));
    let pair = a.veth(&b, "n0", "n1");
    (a, b, pair)
}

#[test]
fn interfaces() {
    if skip_without_root("interfaces") {
        return;
    }
    isolated("interfaces", |home| {
        let (ours, theirs, _pair) = wire();
        let open = |netns: &Netns, spec: &str| netns.enter(|| Port::open(spec)).unwrap();
        let mut a = open(&ours, "netmap:n0");
        let mut b = open(&theirs, "netmap:n1");
        assert!(ours.enter(|| Port::open("netmap:n1/r")).is_err());
        let mut t = open(&ours, "netmap:n0/t");
        let mut r = open(&theirs, "netmap:n1/r");
        let mut both = open(&theirs, "netmap:n1/rt");
        let (mut z_sent, mut z_received) =
            (open(&ours, "netmap:n0/z"), open(&theirs, "netmap:n1/z"));
        let mut behind = open(&theirs, "netmap:n1/z");
        assert_eq!(z_sent.mem_id(), a.mem_id());
        // More than once around the rings.
        for round in 0..12u64 {
            let numbers = round * 200..(round + 1) * 200;
            send(&mut a, numbers.clone());
            assert_eq!(receive(&mut t, 200), sent(numbers.clone()));
            let mut got = Vec::new();
            while got.len() < 200 {
                assert!(b.wait_rx(LIMIT).unwrap());
                got.extend(take(&mut b));
            }
            assert_eq!(got, received(numbers.clone()));
            assert_eq!(receive(&mut r, 200), received(numbers.clone()), "before it is released");
            b.rx(0).sync();
            assert_eq!(receive(&mut both, 200), received(numbers.clone()));
            assert_eq!(receive(&mut z_received, 200), received(numbers.clone()));
            assert_eq!(receive(&mut behind, 200), received(numbers.clone()));
            let mut got = Vec::new();
            while got.len() < 200 {
                a.tx(0).sync();
                z_sent.poll(Interest::Rx);
                got.extend(take(&mut z_sent));
            }
            z_sent.rx(0).sync();
            assert_eq!(got, sent(numbers));
        }
        send(&mut b, 0..3);
        assert_eq!(receive(&mut a, 3), received(0..3));
        assert_eq!(receive(&mut both, 3), sent(0..3));
        drop(b);
        for mut monitor in [r, both, z_received, behind] {
            // Packets that its last sync has released come before the error.
            let rest = if monitor.poll(Interest::Rx) { receive(&mut monitor, 3) } else { vec![] };
            assert!(rest.is_empty() || rest == sent(0..3), "{rest:?}");
            assert!(matches!(monitor.wait_rx(LIMIT), Err(Error::Monitor { .. })));
        }
        let mut b = open(&theirs, "netmap:n1");
        send(&mut a, 0..3);
        assert_eq!(receive(&mut b, 3), received(0..3));
        drop((a, b, t, z_sent));
        home.assert_left();
    });
}

/// A monitor that is killed is not noticed; a killed target ends its monitors.
#[test]
fn sudden_deaths() {
    isolated("sudden_deaths", |home| {
        let control = Control::connect().unwrap();
        for [a, b] in [["vale0:a", "vale0:b"], ["p{1", "p}1"]] {
            let mut sender = Port::open(a).unwrap();
            let mut receiver = Port::open(b).unwrap();
            let mut number = 0;
            let mut exchange = |monitors: &mut [Port]| {
                send(&mut sender, number..number + 50);
                assert_eq!(receive(&mut receiver, 50), received(number..number + 50));
                for monitor in monitors {
                    assert_eq!(receive(monitor, 50), received(number..number + 50));
                }
                sender.tx(0).sync();
                number += 50;
            };
            exchange(&mut []);
            let now = || as_they_are(control.regions().unwrap());
            let regions = now();
            for _ in 0..5 {
                let specs = [format!("{b}/rt"), format!("{b}/z"), format!("{a}/z")];
                let victim = Proc::spawn(home.traffic(&["hold", &specs[0], &specs[1], &specs[2]]));
                victim.wait_for("open", LIMIT.unwrap());
                let mut barrier = [Port::open(&format!("{b}/r")).unwrap()];
                (0..3).for_each(|_| exchange(&mut barrier));
                victim.signal(Signal::KILL);
                let (_, output) = victim.wait();
                assert!(!output.contains("error"), "{output}");
                (0..3).for_each(|_| exchange(&mut barrier));
                drop(barrier);
                until("its buffers are back", || match now() {
                    now if now == regions => Ok(()),
                    now => Err(format!("{now:?} after {regions:?}")),
                });
            }
            drop((sender, receiver));

            let target = Proc::spawn(home.traffic(&["receive", b, "1"]));
            let mut sender = Port::open(a).unwrap();
            let open = |flags| {
                until("the target is open", || {
                    Port::open(&format!("{b}/{flags}")).map_err(|e| e.to_string())
                })
            };
            let mut monitors = ["r", "t", "z", "z"].map(open);
            send(&mut sender, 0..50);
            assert_eq!(receive(&mut monitors[0], 50), received(0..50));
            target.signal(Signal::KILL);
            target.wait();
            for monitor in &mut monitors {
                let end = loop {
                    match monitor.wait_rx(LIMIT) {
                        // What the target has sent to make itself known is among it.
                        Ok(true) => monitor.rx(0).batch(usize::MAX).for_each(drop),
                        end => break end,
                    }
                };
                assert!(matches!(end, Err(Error::Monitor { .. })), "{end:?}");
            }
        }
        drop(control);
        home.assert_left();
    });
}
