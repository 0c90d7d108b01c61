//! A request that panics, wherever that is, leaves the books as they were, and everybody else's ports; a
//! worker that panics costs the port that it had in hand.

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::{
    RX, TX, World, ZERO_COPY, all,
    faults::{asks, at_each_step, books, close_at_each_step, quiet, register},
    monitor, shaped,
};
use ringway_kring::{Doorbell, Kring, Outcome};
use ringway_proto::{
    Forwarding, PortSettings, PortShape, Registration, Reply, Request, RingBackend, RingSelection,
    Vlan,
};
use ringway_region::Region;
use ringway_registry::Handle;
use ringway_ring::WorkerServed;
use ringway_testkit::{is_root, skip_without_root};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
};

/// With ports of others, which nothing happens to.
fn world() -> (World, Vec<Handle>) {
    let mut w = World::new();
    let mut handles: Vec<_> =
        ["vale0:other", "vale0:other{1", "own{1", "own}1"].map(|name| w.open(name).0).into();
    handles.push(w.register("vale0:other", monitor(RX)).unwrap().0);
    (w, handles)
}

#[test]
fn registrations() {
    let _turn = quiet();
    let (mut w, others) = world();
    let extra = Registration { extra_bufs: 10, ..shaped([2, 3], [64, 64]) };
    let exclusive = Registration { exclusive: true, ..all() };
    let null = Registration {
        rings: RingSelection::Null { sink: false },
        mem_id: 1,
        ..shaped([2, 2], [64, 64])
    };
    let requests = [
        ("vale0:a", all()),
        ("vale1:a", extra),
        ("vale1:a", exclusive),
        ("vale0:a{1", all()),
        ("vale0:other{1", all()),
        ("vale0:other}1", all()),
        ("vale0:other{2", extra),
        ("new{1", all()),
        ("own}1", all()),
        ("vale0:other", all()),
        ("vale0:other", monitor(TX)),
        ("vale0:other", monitor(ZERO_COPY)),
        ("vale0:other{1", monitor(RX)),
        ("null", null),
    ];
    for (name, reg) in requests {
        let steps = at_each_step(&mut w, register(name, reg), |_| ());
        assert!(steps > 2, "{name}: {steps}");
        let steps = close_at_each_step(&mut w, |w| w.register(name, reg).unwrap().0);
        assert!(steps > 0, "closing {name}: {steps}");
    }
    others.into_iter().for_each(|handle| w.registry.close(handle));
    w.assert_empty();
}

#[test]
fn switches_and_persistent_ports() {
    let _turn = quiet();
    let (mut w, others) = world();
    let new = |bridge: &str| Request::SwitchNew { bridge: bridge.into(), one_address: false };
    let delete = |bridge: &str| Request::SwitchDelete { bridge: bridge.into() };
    at_each_step(&mut w, new("vale7"), |w| drop(w.ask(delete("vale7"))));
    if is_root() {
        // The first one opens what stays open.
        w.newif("per0").unwrap();
        w.delif("per0").unwrap();
        let shape = PortShape::default();
        let make = Request::NewInterface { name: "per0".into(), shape };
        at_each_step(&mut w, make, |w| {
            let _ = w.delif("per0");
        });
        for name in ["vale0:per0", "vale3:per0"] {
            for stack in [false, true] {
                // A port that is on its way from one switch to another is lost at worst.
                for steps in 0.. {
                    let before = books(&mut w);
                    w.newif("per0").unwrap();
                    let end = asks(&mut w, steps, attach(name, stack));
                    let detached = end && asks(&mut w, steps, detach(name));
                    let _ = w.detach(name);
                    let _ = w.delif("per0");
                    assert_eq!(books(&mut w), before, "{name} after {steps} steps");
                    if detached {
                        break;
                    }
                }
            }
        }
        w.newif("per0").unwrap();
        for rings in [RingSelection::All, RingSelection::Host] {
            let reg = Registration { rings, ..all() };
            at_each_step(&mut w, register("per0", reg), |_| ());
            close_at_each_step(&mut w, |w| w.register("per0", reg).unwrap().0);
        }
        w.delif("per0").unwrap();
    }
    others.into_iter().for_each(|handle| w.registry.close(handle));
    w.assert_empty();
}

fn attach(name: &str, stack: bool) -> Request {
    let name = name.into();
    Request::SwitchAttach { name, stack, all_rings: true, mem_id: 0, mode: None }
}

fn detach(name: &str) -> Request {
    Request::SwitchDetach { name: name.into() }
}

/// A program's port on a switch.
struct Client {
    handle: Handle,
    tx: Kring,
    rx: Kring,
    driver: WorkerServed,
    told: Doorbell,
}

impl Client {
    fn open(w: &mut World, name: &str) -> Client {
        let handle = w.registry.open();
        let answer = w.registry.call(handle, &w.caller, register(name, all())).unwrap();
        let (Reply::Granted(grant), fds) = answer else { panic!("it is granted") };
        let mut fds: Vec<_> = fds.into_iter().map(Some).collect();
        let mut fd = |index: usize| fds[index].take().unwrap();
        let region = Region::open(fd(0), grant.mem_id, grant.layout).unwrap().into();
        let ring = |at: usize| {
            let ring = &grant.rings[at];
            Kring::open(&region, ring.object, ring.dir, ring.num_slots).unwrap()
        };
        let RingBackend::Served { worker } = grant.rings[0].link else { panic!("it is served") };
        Client {
            handle,
            tx: ring(0),
            rx: ring(1),
            driver: WorkerServed::new(Arc::new(fd(worker.into()).into())),
            told: fd(grant.rings[1].doorbell.into()).into(),
        }
    }

    /// Sends a frame to all.
    fn send(&self) {
        let ring = self.tx.ring();
        let (at, frame) = (ring.head(), [0xff; 60]);
        let index = ring.slot(at).buf_idx;
        ring.buf(index).unwrap().write(0, &frame);
        ring.set_slot(at, index, 60, 0);
        ring.set_head(ring.next(at));
        ring.set_cur(ring.next(at));
        assert_eq!(self.tx.sync(&self.driver), Outcome::Done);
    }

    /// Waits until something arrives. False: it never will.
    fn receives(&self) -> bool {
        loop {
            self.told.drain();
            self.rx.csb().app.arm();
            assert_eq!(self.rx.sync(&self.driver), Outcome::Done);
            if self.rx.is_ended() {
                return false;
            }
            if self.rx.ring().head() != self.rx.ring().tail() {
                return true;
            }
            hear(&self.told);
        }
    }
}

/// Sleeps until it is readable.
fn hear(fd: impl AsFd) {
    let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&patience)), Ok(1));
}

/// The worker of a switch panics over a frame: the port that has sent it is closed, and its program hears of
/// it; the switch goes on, and the port can be opened again.
#[test]
fn a_panic_of_a_worker() {
    let _turn = quiet();
    let mut w = World::new();
    w.registry.events().unwrap();
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
    let [bad, good] = ["vale0:bad", "vale0:good"].map(|name| Client::open(&mut w, name));
    w.registry.panic_over_frames("vale0");
    bad.send();
    hear(w.registry.events().unwrap());
    w.registry.handle_events();
    let notices = w.registry.notices();
    assert!(notices.len() == 1 && notices[0].text.contains("vale0:bad"), "{notices:?}");
    assert!(!bad.receives());
    assert_eq!(books(&mut w).switches, [("vale0".into(), vec!["vale0:good".into()])]);

    w.registry.call(good.handle, &w.caller, learn()).unwrap();
    let again = Client::open(&mut w, "vale0:bad");
    again.send();
    assert!(good.receives());
    good.send();
    assert!(again.receives());
    w.close([bad.handle, good.handle, again.handle]);
    w.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    w.assert_empty();
}

/// What users have set up to stay comes back by itself: a persistent port with its device, in its place and
/// with its settings there.
#[test]
fn what_stays_comes_back_after_a_panic_of_a_worker() {
    if skip_without_root("what_stays_comes_back_after_a_panic_of_a_worker") {
        return;
    }
    let _turn = quiet();
    let mut w = World::new();
    w.registry.events().unwrap();
    w.newif("per0").unwrap();
    w.ask(attach("vale0:per0", true)).unwrap();
    let settings = PortSettings { vlan: Some(Vlan::Access(7)), ..PortSettings::default() };
    w.ask(Request::SwitchPort { name: "vale0:per0".into(), settings }).unwrap();
    let ports = |w: &mut World| match w.ask(Request::Switches { from: Default::default() }) {
        Ok(Reply::Switches { mut switches, .. }) if switches.len() == 1 => {
            let mut ports = switches.remove(0).ports;
            ports.sort_by(|a, b| a.name.cmp(&b.name));
            ports.into_iter().map(|p| (p.name, p.vlan, p.mode)).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let before = ports(&mut w);
    let bad = Client::open(&mut w, "per0");
    w.registry.panic_over_frames("vale0");
    bad.send();
    hear(w.registry.events().unwrap());
    w.registry.handle_events();
    assert!(!bad.receives());
    let absent = ports(&mut w);
    let [(name, _, Some(why))] = &absent[..] else { panic!("{absent:?}") };
    assert!(name == "vale0:per0" && why.contains("not back yet"), "{absent:?}");
    w.ask(learn()).unwrap();

    // The device of the one before is cleared away meanwhile.
    assert!(w.registry.expected().due(Instant::now()).is_none(), "it is left alone for a while");
    let end = Instant::now() + Duration::from_secs(60);
    while let Some(wait) = w.registry.expected().next_due(Instant::now()) {
        std::thread::sleep(wait);
        while let Some(due) = w.registry.expected().due(Instant::now()) {
            let outcome = w.registry.call(bad.handle, &w.caller, due.request.clone());
            w.registry.tried_again(&due, outcome.map(drop), Instant::now());
        }
        assert!(Instant::now() < end, "{:?}", ports(&mut w));
    }
    assert_eq!(ports(&mut w), before);
    w.close([bad.handle]);
    w.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    w.delif("per0").unwrap();
    w.assert_empty();
}

/// Learns otherwise than a new switch does: asked for what it does already, it goes on as it is.
fn learn() -> Request {
    let forwarding = Forwarding::Learning { ageing_seconds: 60 };
    Request::SwitchForward { bridge: "vale0".into(), forwarding }
}
