//! Requests that take long: others are answered meanwhile, and nothing is left of those that are given up.

mod common;

use std::{fmt::Write, os::unix::net::UnixDatagram, process::Command, sync::Arc};

use common::{
    World, all,
    asked::{Asked, close_all},
    one_at_a_time, select,
};
use ringway_filter::Insn;
use ringway_proto::{
    Extmem, Filter, Options, PortShape, Registration, Reply, Request, RingSelection, RxSelector,
};
use ringway_region::Sizes;
use ringway_registry::{
    Caller, Done, Netns, Progress, Registry, Settings, SocketThere, Step, Subject, Work,
};
use ringway_testkit::skip_without_root;

/// Another user.
const SOMEBODY: u32 = 12345;

/// A world of its own, with an interface in it.
fn world() -> World {
    let world = World::new();
    let link = "link add n0 numrxqueues 4 numtxqueues 4 up type veth peer name n1";
    assert!(Command::new("ip").args(link.split(' ')).status().unwrap().success());
    world
}

fn open(name: &str, registration: Registration) -> Request {
    Request::Register { name: name.into(), registration, options: Box::new(Options::default()) }
}

/// The interfaces that there are, and whether each has an XDP program.
fn links() -> Vec<(String, bool)> {
    let output = Command::new("ip").args(["-o", "link"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| (line.split(':').nth(1).unwrap().trim().into(), line.contains("xdp")))
        .collect()
}

#[test]
fn others_are_answered_while_an_interface_is_set_up() {
    if skip_without_root("others_are_answered_while_an_interface_is_set_up") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let first = Registration { rings: RingSelection::One(0), ..all() };
    let mut opener = Asked::new(&mut world, open("n0", first));
    let mut pieces = 0;
    loop {
        let work = match opener.begin(&mut world) {
            Step::Do(work) => work,
            Step::Answered(answer) => break drop(answer.unwrap()),
            Step::Wait(_) => panic!("nobody else asks for anything"),
        };
        pieces += 1;
        // Nothing of this takes long.
        let other = world.registry.open();
        world.register_on(other, &format!("vale0:{pieces}"), all()).unwrap();
        assert!(matches!(world.ask(Request::Ports { from: 0 }), Ok(Reply::Ports { .. })));
        // What is about the same interface waits.
        let mut also = Asked::new(&mut world, open("n0", select(RingSelection::One(1))));
        assert_eq!(also.waits_for(&mut world).as_ref(), Some(work.subject()));
        world.registry.end(also.progress);
        world.registry.close(also.handle);
        opener.progress.put(work.run());
    }
    assert!(pieces >= 3, "its name, its watch, and the queue with what the stack sends: {pieces}");
    let mut also = Asked::new(&mut world, open("n0", select(RingSelection::One(1))));
    assert!(matches!(also.finish(&mut world), Ok(Reply::Granted(_))));
}

/// What a program is told of memory of its own (S-EXT-1), and what it is to copy, although the request was begun again
/// when that had been decided.
#[test]
fn s_ext_1_sizes_are_written_back_for_an_interface() {
    if skip_without_root("s_ext_1_sizes_are_written_back_for_an_interface") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    // Room for what an interface takes, and sizes by themselves.
    let zero =
        Sizes { if_size: 0, if_num: 0, ring_size: 0, ring_num: 64, buf_size: 0, buf_num: 16384 };
    let memory = 64 << 20;
    let extmem = Some(Extmem { memory, sizes: zero, mem_id: 0, same: None, copy_from: None });
    let options = Box::new(Options { extmem, ..Options::default() });
    let registration = select(RingSelection::One(0));
    let request = Request::Register { name: "n0".into(), registration, options };
    let mut asked = Asked::new(&mut world, request);
    let Reply::Granted(grant) = asked.finish(&mut world).unwrap() else { panic!("it is granted") };
    let told = grant.options.extmem.expect("it was asked for");
    let Sizes { if_size, if_num, ring_size, buf_size, .. } = told.sizes;
    assert!([if_size, if_num, ring_size, buf_size].iter().all(|size| *size > 0), "{told:?}");
    assert!(told.copy_from.is_some_and(|from| from > 0), "{told:?}");
}

/// Interfaces are looked up while others are answered, and what is found is one request's.
#[test]
fn names_of_interfaces_are_looked_up_for_one_request() {
    if skip_without_root("names_of_interfaces_are_looked_up_for_one_request") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let geometry = |name: &str| Request::PortGeometry { name: name.into(), mem_id: 0 };
    for request in [
        open("n0", all()),
        open("vale0:n0", all()),
        open("n0{1", all()),
        geometry("n0"),
        Request::HeaderLen { name: "n0".into() },
        Request::DeleteInterface { name: "n0".into() },
        Request::SwitchAttach {
            name: "vale0:n0".into(),
            stack: false,
            all_rings: true,
            mem_id: 0,
            mode: None,
        },
    ] {
        let mut asked = Asked::new(&mut world, request);
        let name = asked.request.name().to_owned();
        let work = asked.work(&mut world);
        assert!(matches!(work.subject(), Subject::Names(_)), "{name}");
        // Another's of the same account waits, and what is about no interface does not.
        let mut also = Asked::new(&mut world, geometry("n1"));
        assert!(matches!(also.begin(&mut world), Step::Wait(Subject::Names(_))), "{name}");
        world.ask(Request::Ports { from: 0 }).unwrap();
        world.register_on(also.handle, "vale1:a", all()).unwrap();
        world.registry.end(also.progress);
        world.registry.close(also.handle);
        let other = world.registry.open();
        world.register_on(other, "some{1", all()).unwrap();
        world.registry.close(other);
        asked.progress.put(work.run());
        let _ = asked.finish(&mut world);
        world.registry.close(asked.handle);
    }
    // Another interface has the name by the next request.
    let pairs = |world: &mut World| Asked::new(world, geometry("n0")).finish(world).map(drop);
    pairs(&mut world).unwrap();
    assert!(Command::new("ip").args(["link", "del", "n0"]).status().unwrap().success());
    assert_eq!(pairs(&mut world).unwrap_err().cause, ringway_proto::Cause::NoPort);
}

/// Where a caller is that names no interface, nothing finds out.
#[test]
fn the_namespace_of_a_caller_is_found_for_interfaces_alone() {
    let _turn = one_at_a_time();
    let mut world = World::new();
    let socket = || -> SocketThere { Arc::new(UnixDatagram::unbound().unwrap()) };
    let netns = |socket| Netns::on_demand(socket, Some(7), || panic!("nobody is to look"));
    world.caller = Caller::new(SOMEBODY, netns(Some(socket())));
    for name in ["vale0:a", "some{1", "some}1", "other{1"] {
        let mut asked = Asked::new(&mut world, open(name, all()));
        asked.finish(&mut world).unwrap();
    }
    world.ask(Request::Ports { from: 0 }).unwrap();
    // An interface is looked up elsewhere, as is what may have the name of one.
    for (socket, name) in [(None, "some{1"), (Some(socket()), "rwnosuch")] {
        world.caller = Caller::new(SOMEBODY, netns(socket));
        let mut asked = Asked::new(&mut world, open(name, all()));
        let work = asked.work(&mut world);
        assert!(matches!(work.subject(), Subject::Names(_)), "{name}");
        world.registry.discard(Done::lost(work.subject().clone()));
    }
}

/// What is made is made where the caller is, or not at all.
#[test]
fn nothing_is_made_for_a_caller_who_cannot_be_found() {
    if skip_without_root("nothing_is_made_for_a_caller_who_cannot_be_found") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let before = links();
    let socket: SocketThere = Arc::new(UnixDatagram::unbound().unwrap());
    let unknown = || Netns::Unknown("it is not to be entered");
    world.caller.netns = Netns::on_demand(Some(socket), Some(7), unknown);
    let new = Request::NewInterface { name: "per0".into(), shape: PortShape::default() };
    let error = Asked::new(&mut world, new).finish(&mut world).unwrap_err();
    assert_eq!(error.cause, ringway_proto::Cause::Denied, "{error}");
    assert_eq!(links(), before);
}

/// A user who may have two ports on a switch, and a world with an interface.
fn with_two_places() -> World {
    let mut world = world();
    world.registry = Registry::new(Settings {
        switches_per_user: 1,
        switch_ports_per_user: 2,
        ..Settings::default()
    });
    world.registry.deferred().defer_closings();
    world.caller.uid = SOMEBODY;
    world
}

fn attach(name: &str, stack: bool) -> Request {
    Request::SwitchAttach { name: name.into(), stack, all_rings: true, mem_id: 0, mode: None }
}

/// Who has no place on a switch for an interface, or for the stack behind it, is refused before anything is
/// opened.
#[test]
fn nothing_is_opened_for_who_has_no_place() {
    if skip_without_root("nothing_is_opened_for_who_has_no_place") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = with_two_places();
    let root = std::mem::replace(&mut world.caller.uid, 0);
    let (other, _) = world.register("vale1:root", all()).unwrap();
    world.caller.uid = SOMEBODY;
    let new = Request::NewInterface { name: "per0".into(), shape: PortShape::default() };
    world.ask(new).unwrap();
    let before = links();
    let mut held = vec![world.register("vale1:a", all()).unwrap().0];
    let refused = |world: &mut World, name: &str, stack: bool| {
        let mut asked = Asked::new(world, attach(name, stack));
        let error = loop {
            match asked.begin(world) {
                Step::Do(work) if matches!(work.subject(), Subject::Names(_)) => {
                    asked.progress.put(work.run());
                }
                Step::Do(work) => panic!("{name}: {:?} is opened", work.subject()),
                Step::Wait(subject) => panic!("{name}: it waits for {subject:?}"),
                Step::Answered(answer) => break answer.map(drop).unwrap_err(),
            }
        };
        assert_eq!(error.cause, ringway_proto::Cause::NoRoom, "{error}");
        world.registry.close(asked.handle);
    };
    for name in ["vale1:n0", "vale1:per0"] {
        refused(&mut world, name, true);
    }
    held.push(world.register("vale1:b", all()).unwrap().0);
    for stack in [false, true] {
        refused(&mut world, "vale1:n0", stack);
    }
    refused(&mut world, "vale1:per0", true);
    // The one switch that the user may have is another.
    held.push(world.register("vale2:a", all()).unwrap().0);
    for name in ["vale3:n0", "vale3:per0"] {
        refused(&mut world, name, true);
    }
    assert_eq!(links(), before);
    assert_eq!(close_all(&mut world), []);
    held.into_iter().chain([other]).for_each(|handle| world.registry.close(handle));
    close_all(&mut world);
    // With the places it works.
    for name in ["vale1:n0", "vale1:per0"] {
        world.attach_as(name, true).unwrap();
        world.detach(name).unwrap();
        close_all(&mut world);
    }
    world.delif("per0").unwrap();
    close_all(&mut world);
    world.caller.uid = root;
    world.assert_empty();
}

/// Where the place, or the memory, has gone while an interface was opened, or a pair made, that is undone as
/// slow work, while others are answered.
#[test]
fn what_is_refused_late_is_undone_elsewhere() {
    if skip_without_root("what_is_refused_late_is_undone_elsewhere") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = with_two_places();
    let root = std::mem::replace(&mut world.caller.uid, SOMEBODY);
    let before = links();
    for stack in [false, true] {
        let mut asked = Asked::new(&mut world, attach("vale1:n0", stack));
        let work = asked.opens(&mut world);
        let subject = work.subject().clone();
        asked.progress.put(work.run());
        // The operator takes the switch away.
        world.registry.change_limits(0, 2, None);
        let error = asked.finish(&mut world).unwrap_err();
        assert_eq!(error.cause, ringway_proto::Cause::NoRoom, "{error}");
        assert_eq!(close_all(&mut world), [subject]);
        assert_eq!(links(), before);
        world.registry.change_limits(1, 2, None);
        world.registry.close(asked.handle);
    }

    // While the pair is made, another port takes memory that is enough for one of them.
    let settings = Settings { memory_per_user: 30 << 20, ..Settings::default() };
    world.registry = Registry::new(settings);
    world.registry.deferred().defer_closings();
    let shape = PortShape { tx_slots: 2048, rx_slots: 2048, ..PortShape::default() };
    let new = Request::NewInterface { name: "per0".into(), shape };
    let mut asked = Asked::new(&mut world, new);
    let work = loop {
        match asked.begin(&mut world) {
            Step::Do(work) if matches!(work.subject(), Subject::Device(_)) => break work,
            Step::Do(work) => asked.progress.put(work.run()),
            Step::Answered(Err(error)) => panic!("{error}"),
            _ => panic!("a pair is made"),
        }
    };
    let subject = work.subject().clone();
    asked.progress.put(work.run());
    assert_ne!(links(), before);
    let slots = Registration { tx_slots: 2048, rx_slots: 2048, ..all() };
    let (port, _) = world.register("vale1:a", slots).unwrap();
    let error = asked.finish(&mut world).unwrap_err();
    assert_eq!(error.cause, ringway_proto::Cause::NoRoom, "{error}");
    assert_eq!(close_all(&mut world), [subject]);
    assert_eq!(links(), before);
    world.registry.close(port);
    world.registry.close(asked.handle);
    close_all(&mut world);
    world.caller.uid = root;
    world.assert_empty();
}

/// While an interface is opened for a switch, its places, its names and its memory are no other's.
#[test]
fn what_an_attachment_needs_is_held_for_it() {
    if skip_without_root("what_an_attachment_needs_is_held_for_it") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = with_two_places();
    let root = std::mem::replace(&mut world.caller.uid, SOMEBODY);
    let before = links();
    let no_room = |refused: Result<_, i32>| assert_eq!(refused.err(), Some(libc::ENOMEM));
    for (stack, is_given_up) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut asked = Asked::new(&mut world, attach("vale1:n0", stack));
        let work = asked.opens(&mut world);
        let subject = work.subject().clone();
        // The user may have a single switch, and it is going to be another.
        no_room(world.register("vale2:a", all()).map(drop));
        let mut held = Vec::new();
        if !stack {
            held.push(world.register("vale1:a", all()).unwrap().0);
        }
        no_room(world.register("vale1:b", all()).map(drop));
        // Programs that want the names wait, and find the interface taken.
        let mut others = ["n0", "vale1:n0", "n0{1"].map(|name| {
            let mut other = Asked::new(&mut world, open(name, all()));
            assert_eq!(other.waits_for(&mut world).as_ref(), Some(&subject), "{name}");
            other
        });
        if is_given_up {
            world.registry.end(std::mem::take(&mut asked.progress));
            held.push(world.register("vale1:b", all()).unwrap().0);
            world.registry.discard(work.run());
            assert_eq!(close_all(&mut world), [subject]);
        } else {
            asked.progress.put(work.run());
            asked.finish(&mut world).unwrap();
            let busy = others[0].finish(&mut world).unwrap_err();
            assert_eq!(busy.cause, ringway_proto::Cause::Busy, "{busy}");
            world.detach("vale1:n0").unwrap();
            close_all(&mut world);
        }
        for other in others {
            world.registry.end(other.progress);
            world.registry.close(other.handle);
        }
        held.into_iter().chain([asked.handle]).for_each(|handle| world.registry.close(handle));
        close_all(&mut world);
        assert_eq!(links(), before);
    }
    world.caller.uid = root;
    world.assert_empty();
}

/// A request is not begun again for ever.
#[test]
fn waiting_for_what_others_hold_has_an_end() {
    if skip_without_root("waiting_for_what_others_hold_has_an_end") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let mut asked = Asked::new(&mut world, attach("vale0:n0", false));
    let work = asked.opens(&mut world);
    let mut other = Asked::new(&mut world, open("vale0:n0", all()));
    let mut begun = 0;
    let error = loop {
        match other.begin(&mut world) {
            Step::Wait(subject) => assert_eq!(&subject, work.subject()),
            Step::Answered(answer) => break answer.map(drop).unwrap_err(),
            Step::Do(_) => panic!("the name is held"),
        }
        begun += 1;
    };
    assert_eq!((begun, error.cause), (1000, ringway_proto::Cause::Busy), "{error}");
    asked.progress.put(work.run());
    asked.finish(&mut world).unwrap();
    world.detach("vale0:n0").unwrap();
    [asked.handle, other.handle].into_iter().for_each(|handle| world.registry.close(handle));
    world.assert_empty();
}

/// A way to the stack stays as long as the handle that has it, whether anybody has host rings or not.
#[test]
fn a_way_to_the_stack_goes_with_its_handle() {
    if skip_without_root("a_way_to_the_stack_goes_with_its_handle") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let before = links();
    let is_there = || links().iter().any(|(name, _)| name.starts_with("rwhost"));
    let [handle, other] = [0, 1].map(|ring| {
        let handle = world.registry.open();
        world.register_on(handle, "n0", select(RingSelection::One(ring))).unwrap();
        handle
    });
    let mut asked = Asked { handle, request: Request::Stack, progress: Progress::default() };
    asked.finish(&mut world).unwrap();
    assert!(is_there());
    world.registry.close(other);
    assert!(is_there());
    world.registry.close(handle);
    assert_eq!(links(), before);
}

/// Whenever the client of a request goes, the interface is as it was.
#[test]
fn a_request_that_is_given_up_leaves_nothing() {
    if skip_without_root("a_request_that_is_given_up_leaves_nothing") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let (before, descriptors) = (links(), world.registry.descriptors(world.caller.uid));
    for (pieces, in_time) in (0..5).flat_map(|pieces| [(pieces, false), (pieces, true)]) {
        let rings = Registration { rings: RingSelection::AllAndHost, ..all() };
        let mut opener = Asked::new(&mut world, open("n0", rings));
        let mut work = Some(opener.work(&mut world));
        for _ in 0..pieces {
            let Some(done) = work.take().map(Work::run) else { break };
            opener.progress.put(done);
            work = match opener.begin(&mut world) {
                Step::Do(work) => Some(work),
                _ => None,
            };
        }
        // The client goes before the work is done, or after.
        let (mut work, mut done) = (work, None);
        if in_time {
            done = work.take().map(Work::run);
        }
        world.registry.end(opener.progress);
        world.registry.close(opener.handle);
        if let Some(done) = done.or_else(|| work.map(Work::run)) {
            world.registry.discard(done);
        }
        assert!(
            matches!(world.ask(Request::Ports { from: 0 }), Ok(Reply::Ports { ports, .. }) if ports.is_empty())
        );
        assert_eq!(links(), before, "{pieces}, {in_time}");
        assert_eq!(world.registry.descriptors(world.caller.uid), descriptors);
    }
}

/// A filter with so many ways through it that the verifier gives up, or nearly: by what it finds it notes
/// one of four values in each of up to eight words, and asks for all of them at the end.
fn branchy(words: u32) -> Filter {
    const LD_IMM: u16 = 0x00;
    const LDB_ABS: u16 = 0x30;
    const LD_MEM: u16 = 0x60;
    const ST: u16 = 0x02;
    const JEQ: u16 = 0x15;
    const RET: u16 = 0x06;
    let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
    // Every other word is at a place where the verifier knows what is in it.
    let place = |word| 2 * word;
    let mut insns = vec![insn(LD_IMM, 0, 0, 0)];
    insns.extend((0..words).map(|word| insn(ST, 0, 0, place(word))));
    for (word, value) in (0..words).flat_map(|word| (1..4).map(move |value| (word, value))) {
        insns.extend([
            insn(LDB_ABS, 0, 0, 4 * word + value),
            insn(JEQ, 0, 2, 7),
            insn(LD_IMM, 0, 0, value),
            insn(ST, 0, 0, place(word)),
        ]);
    }
    for (word, value) in (0..words).flat_map(|word| (1..4).map(move |value| (word, value))) {
        insns.extend([
            insn(LD_MEM, 0, 0, place(word)),
            insn(JEQ, 0, 1, value),
            insn(LD_IMM, 0, 0, 3),
        ]);
    }
    insns.push(insn(RET, 0, 0, 0xffff));
    Filter { text: "branchy".into(), insns, one_in: 1 }
}

fn set(rings: RxSelector, filter: Filter) -> Request {
    Request::SetFilter { name: "n0".into(), rings, filter: Some(filter) }
}

/// A user whose filters are too complicated is refused; others' filters do not notice.
#[test]
fn a_complicated_filter_costs_the_user_who_asks_for_it() {
    if skip_without_root("a_complicated_filter_costs_the_user_who_asks_for_it") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let receive =
        |queue| Registration { rings: RingSelection::One(queue), without_tx: true, ..all() };
    let mine = world.registry.open();
    world.register_on(mine, "n0", receive(0)).unwrap();
    world.caller.uid = SOMEBODY;
    for queue in [1, 2] {
        let theirs = world.registry.open();
        world.register_on(theirs, "n0", receive(queue)).unwrap();
    }
    let mut refusals = String::new();
    for words in [1, 5, 6, 7] {
        let mut asked = Asked::new(&mut world, set(RxSelector::Queue(1), branchy(words)));
        // Others are answered while the kernel verifies it.
        let work = asked.work(&mut world);
        assert!(matches!(world.ask(Request::Ports { from: 0 }), Ok(Reply::Ports { .. })));
        asked.progress.put(work.run());
        if let Err(error) = asked.finish(&mut world) {
            writeln!(refusals, "{words}: {error}").unwrap();
        }
        let simple = Filter { text: "simple".into(), ..branchy(1) };
        let uid = std::mem::replace(&mut world.caller.uid, rustix::process::getuid().as_raw());
        world.ask(set(RxSelector::Queue(0), simple)).unwrap();
        world.caller.uid = uid;
    }
    assert!(refusals.contains("verify"), "{refusals}");
    assert!(refusals.lines().count() < 4, "{refusals}");
}

/// What a request waits for may come to nothing.
#[test]
fn work_without_a_result_is_done_again() {
    if skip_without_root("work_without_a_result_is_done_again") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let mut opener = Asked::new(&mut world, open("n0", all()));
    let work = opener.work(&mut world);
    opener.progress.put(Done::lost(work.subject().clone()));
    assert!(matches!(opener.finish(&mut world), Ok(Reply::Granted(_))));
}

/// A program that keeps its socket keeps its queue, on its own account; the daemon does not wait for it.
#[test]
fn a_socket_that_a_program_keeps_is_its_users() {
    if skip_without_root("a_socket_that_a_program_keeps_is_its_users") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    // Not root, whose programs have the link of the XDP program as well.
    let own = std::mem::replace(&mut world.caller.uid, SOMEBODY);
    let handle = world.registry.open();
    let request = open("n0", select(RingSelection::One(0)));
    let (_, kept) = world.registry.call(handle, &world.caller, request).unwrap();
    world.registry.close(handle);

    let Ok(Reply::Ports { ports, .. }) = world.ask(Request::Ports { from: 0 }) else {
        panic!("it tells")
    };
    let mode = ports[0].mode.as_deref().unwrap();
    assert!(mode.contains("keeps the socket of queue 0"), "{ports:?}");
    let pid = std::process::id();
    assert!(world.registry.descriptors(SOMEBODY) > 0);
    for uid in [own, SOMEBODY] {
        world.caller.uid = uid;
        let mut asked = Asked::new(&mut world, open("n0", select(RingSelection::One(0))));
        let error = asked.finish(&mut world).unwrap_err();
        assert_eq!(error.cause, ringway_proto::Cause::Busy);
        let text = error.to_string();
        assert!(text.contains(&format!("user {SOMEBODY}")), "{text}");
        assert!(text.contains(&format!("end process {pid}")), "{text}");
        world.registry.close(asked.handle);
        // The others can be had.
        let mut asked = Asked::new(&mut world, open("n0", select(RingSelection::One(1))));
        asked.finish(&mut world).unwrap();
        world.registry.close(asked.handle);
    }
    drop(kept);
    let mut asked = Asked::new(&mut world, open("n0", select(RingSelection::One(0))));
    asked.finish(&mut world).unwrap();
    world.registry.close(asked.handle);
    assert!(
        matches!(world.ask(Request::Ports { from: 0 }), Ok(Reply::Ports { ports, .. }) if ports.is_empty())
    );
    assert_eq!(world.registry.descriptors(SOMEBODY), 0);
}
