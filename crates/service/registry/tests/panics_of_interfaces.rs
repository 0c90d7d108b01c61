//! Requests about interfaces that panic, wherever that is: nothing of them is left on the interface, and others
//! keep their queues and host rings. The same of persistent ports on two switches.

mod common;

use common::{
    World, all,
    faults::{
        apart, asks, at_each_step, books, close_at_each_step, fails_after, quiet, register,
        register_with,
    },
    select,
};
use ringway_proto::{
    Action, Ebpf, Filter, NicMode, Options, Polling, Registration, Request, RingSelection,
    RxSelector,
};
use ringway_region::Sizes;
use ringway_registry::{Caller, Handle, Netns as CallersNetns, Registry, Settings};
use ringway_testkit::{Netns, NicState, isolate_thread, skip_without_root};

/// Another user, besides this process's.
const SOMEBODY: u32 = 12345;

/// A registry, and an interface of two queues, n0.
struct Interfaces {
    world: World,
    netns: Netns,
    before: NicState,
}

impl Interfaces {
    /// In this thread's network namespace, or in one that only the caller is in.
    fn new(elsewhere: bool) -> Interfaces {
        isolate_thread();
        // Less to be pinned, and to be freed.
        let global_region = Sizes { buf_num: 2048, ..Sizes::GLOBAL };
        let settings =
            Settings { max_bridges: 8, nic_slots: 64, global_region, ..Settings::default() };
        let world = World { registry: Registry::new(settings), caller: Caller::myself() };
        let netns = if elsewhere { Netns::quiet("rwi") } else { Netns::root() };
        netns.run(
            "sysctl -qw net.ipv6.conf.default.disable_ipv6=1 && \
             ip link add n0 numrxqueues 2 numtxqueues 2 up type veth peer name n1 && \
             ip link set n1 up",
        );
        let before = NicState::take(&netns, "n0");
        let mut interfaces = Interfaces { world, netns, before };
        interfaces.become_user(interfaces.world.caller.uid);
        // What the first request opens for all that follow.
        let (handle, _) = interfaces.world.open("n0");
        interfaces.world.registry.close(handle);
        interfaces.assert_restored();
        interfaces
    }

    /// From now on that user asks, from where the interface is.
    fn become_user(&mut self, uid: u32) {
        let netns = match self.netns.name() {
            Some(_) => CallersNetns::other(self.netns.fd()),
            None => CallersNetns::Own,
        };
        self.world.caller = Caller::new(uid, netns);
        self.world.caller.may_use_nics = true;
    }

    /// Opens rings for another user, who has them from now on.
    fn somebody_has(&mut self, rings: RingSelection, mode: NicMode) -> Handle {
        let own = self.world.caller.uid;
        self.become_user(SOMEBODY);
        let handle = self.open(rings, mode);
        self.become_user(own);
        handle
    }

    fn open(&mut self, rings: RingSelection, mode: NicMode) -> Handle {
        let handle = self.world.registry.open();
        let answer =
            self.world.registry.call(handle, &self.world.caller, open_in(select(rings), mode));
        answer.unwrap_or_else(|error| panic!("{rings:?} in {mode}: {error}"));
        handle
    }

    fn sweep(&mut self, what: &str, request: Request) {
        let steps = at_each_step(&mut self.world, request.clone(), |_| ());
        assert!(steps > 2, "{what}: {steps}");
        let steps = close_at_each_step(&mut self.world, |w| {
            let handle = w.registry.open();
            let answer = w.registry.call(handle, &w.caller, request.clone());
            answer.unwrap_or_else(|error| panic!("{what}: {error}"));
            handle
        });
        assert!(steps > 0, "closing {what}: {steps}");
    }

    fn assert_restored(&self) {
        self.before.assert_restored(&self.netns);
    }
}

fn open_in(registration: Registration, mode: NicMode) -> Request {
    register_with("n0", registration, Options { mode: Some(mode), ..Options::default() })
}

fn filter(text: &str) -> Option<Filter> {
    let insns = ringway_filter::Program::everything().insns().to_vec();
    Some(Filter { text: text.into(), insns, one_in: 1 })
}

/// The first to open an interface decides what it is.
#[test]
fn first_users() {
    if skip_without_root("first_users") || apart("first_users") {
        return;
    }
    let _turn = quiet();
    // Each step after the interface was opened costs an opening: so not everything in every way.
    let mut of = Interfaces::new(false);
    let extra = Registration { extra_bufs: 10, exclusive: true, ..all() };
    let options = Options { filter: filter("everything"), ..Options::default() };
    of.sweep("with a filter", register_with("n0", extra, options));
    of.sweep("generic", open_in(select(RingSelection::One(1)), NicMode::Generic));
    of.sweep("packets", open_in(select(RingSelection::AllAndHost), NicMode::Packet));
    of.assert_restored();
    of.world.assert_empty();
}

/// The same for an interface in a namespace that is not the registry's.
#[test]
fn first_users_elsewhere() {
    if skip_without_root("first_users_elsewhere") || apart("first_users_elsewhere") {
        return;
    }
    let _turn = quiet();
    let mut of = Interfaces::new(true);
    of.sweep("elsewhere", open_in(select(RingSelection::AllAndHost), NicMode::Copy));
    of.assert_restored();
    of.world.assert_empty();
}

/// What one user's requests do to what another has: a queue, or the host rings.
#[test]
fn beside_others() {
    if skip_without_root("beside_others") || apart("beside_others") {
        return;
    }
    let _turn = quiet();
    let mut of = Interfaces::new(false);
    for mode in [NicMode::Copy, NicMode::Packet] {
        let other = of.somebody_has(RingSelection::One(1), mode);
        of.sweep(&format!("a queue in {mode}"), open_in(select(RingSelection::One(0)), mode));
        // Another user's program can have each part of it after all that.
        let own = of.open(RingSelection::One(0), mode);
        of.sweep("host rings beside an own queue", register("n0", select(RingSelection::Host)));
        let host = of.somebody_has(RingSelection::Host, mode);
        of.world.close([own, host]);
        let host = of.somebody_has(RingSelection::Host, mode);
        of.world.close([host, other]);
        of.assert_restored();
    }
    of.world.assert_empty();
}

fn insn(code: u8, immediate: i32) -> Ebpf {
    Ebpf { code, registers: 0, offset: 0, immediate }
}

/// What programs ask about rings that they have.
#[test]
fn filters_and_queues() {
    if skip_without_root("filters_and_queues") || apart("filters_and_queues") {
        return;
    }
    let _turn = quiet();
    let mut of = Interfaces::new(false);
    let other = of.somebody_has(RingSelection::One(1), NicMode::Copy);
    let own = of.open(RingSelection::One(0), NicMode::Copy);
    let host = of.open(RingSelection::Host, NicMode::Copy);
    let set = |rings, filter| Request::SetFilter { name: "n0".into(), rings, filter };
    for rings in [RxSelector::Queues, RxSelector::Host] {
        let steps = at_each_step(&mut of.world, set(rings, filter("all")), |w| {
            w.ask(set(rings, None)).unwrap();
        });
        assert!(steps > 0);
        // And from one to another.
        of.world.ask(set(rings, filter("first"))).unwrap();
        at_each_step(&mut of.world, set(rings, filter("second")), |w| {
            w.ask(set(rings, filter("first"))).unwrap();
        });
        of.world.ask(set(rings, None)).unwrap();
    }
    let act = |text: Option<&str>| {
        let action = text.map(|text| Action {
            text: text.into(),
            insns: vec![insn(0xb7, 2), insn(0x95, 0)],
            redirects: vec!["n0".into()],
        });
        Request::SetAction { name: "n0".into(), rings: RxSelector::Queues, action }
    };
    let steps = at_each_step(&mut of.world, act(Some("pass")), |w| drop(w.ask(act(None)).unwrap()));
    assert!(steps > 0);
    of.world.ask(act(Some("first"))).unwrap();
    at_each_step(&mut of.world, act(Some("second")), |w| {
        w.ask(act(Some("first"))).unwrap();
    });
    of.world.ask(act(None)).unwrap();
    let redirect =
        |to_program| Request::RedirectQueues { name: "n0".into(), queues: vec![0], to_program };
    at_each_step(&mut of.world, redirect(false), |w| drop(w.ask(redirect(true)).unwrap()));
    // A way to the stack goes with the handle.
    for steps in 0.. {
        let before = books(&mut of.world);
        let handle = of.open(RingSelection::One(0), NicMode::Copy);
        let caller = Caller::myself();
        let ask = |w: &mut World| w.registry.call(handle, &caller, Request::Stack).map(drop);
        let done = fails_after(&mut of.world, steps, ask);
        of.world.registry.close(handle);
        assert_eq!(books(&mut of.world), before, "a way to the stack after {steps} steps");
        if done.is_some() {
            break;
        }
    }
    of.world.close([own, host, other]);
    of.assert_restored();
    of.world.assert_empty();
}

/// An interface joins a switch, is polled, and leaves it.
#[test]
fn attached() {
    if skip_without_root("attached") || apart("attached") {
        return;
    }
    let _turn = quiet();
    for (elsewhere, mode, stack) in [
        (false, NicMode::Copy, true),
        (true, NicMode::Generic, false),
        (false, NicMode::Packet, true),
    ] {
        let mut of = Interfaces::new(elsewhere);
        let (other, _) = of.world.open("vale0:other");
        let attach = Request::SwitchAttach {
            name: "vale0:n0".into(),
            stack,
            all_rings: true,
            mem_id: 0,
            mode: Some(mode),
        };
        at_each_step(&mut of.world, attach.clone(), |w| {
            let _ = w.detach("vale0:n0");
        });
        let polling = Polling::OneCpu { cpu: 0, count: 1 };
        let poll = |enable| Request::SwitchPoll { name: "vale0:n0".into(), enable, polling };
        for last in [poll(true), Request::SwitchDetach { name: "vale0:n0".into() }] {
            let before = books(&mut of.world);
            for steps in 0.. {
                of.world.ask(attach.clone()).unwrap();
                let end = asks(&mut of.world, steps, last.clone());
                // One that is polled stays.
                let _ = of.world.ask(poll(false));
                let _ = of.world.detach("vale0:n0");
                assert_eq!(books(&mut of.world), before, "{last:?} after {steps} steps");
                if end {
                    break;
                }
            }
        }
        of.assert_restored();
        of.world.registry.close(other);
        of.world.assert_empty();
        // The next one has the name again.
        of.netns.run("ip link del n0");
    }
}

/// A persistent port on one switch joins a second one, and leaves them, in either order.
#[test]
fn second_switches() {
    if skip_without_root("second_switches") || apart("second_switches") {
        return;
    }
    let _turn = quiet();
    let mut w = World::new();
    let (other, _) = w.open("vale0:other");
    let attach = |name: &str, stack| Request::SwitchAttach {
        name: name.into(),
        stack,
        all_rings: true,
        mem_id: 0,
        mode: None,
    };
    let detach = |name: &str| Request::SwitchDetach { name: name.into() };
    w.newif("per0").unwrap();
    w.delif("per0").unwrap();
    let (first, second) = ("vale0:per0", "vale3:per0");
    for stack in [false, true] {
        let requests = [attach(second, stack), detach(second), detach(first)];
        for at in 0..requests.len() {
            let before = books(&mut w);
            for steps in 0.. {
                w.newif("per0").unwrap();
                w.ask(attach(first, false)).unwrap();
                let [before_it @ .., it] = &requests[..=at] else { unreachable!() };
                before_it.iter().for_each(|request| drop(w.ask(request.clone()).unwrap()));
                let end = asks(&mut w, steps, it.clone());
                for name in [second, first] {
                    let _ = w.detach(name);
                }
                let _ = w.delif("per0");
                assert_eq!(books(&mut w), before, "{it:?} after {steps} steps");
                if end {
                    break;
                }
            }
        }
    }
    w.registry.close(other);
    w.assert_empty();
}
