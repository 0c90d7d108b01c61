//! A port that is closed with much in its rings: the close is answered, what was sent arrives, and then
//! its memory is free.

mod common;

use common::{World, shaped};
use ringway_abi::Dir;
use ringway_kring::Kring;
use ringway_proto::{Options, RegionInfo, Request};
use ringway_registry::{Caller, Handle, Progress, Registry, Settings, Step, Subject};
use ringway_testkit::skip_without_root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const RECEIVERS: usize = 16;
const FRAMES: u32 = 1000;
/// Slots of the port that sends them.
const SENDER: [u32; 2] = [1024, 16];

/// Opens ports that receive, and one that sends much to all of them.
fn send_much(w: &mut World) -> (Vec<(Handle, Kring)>, Handle) {
    send_much_as(w, "vale0:s")
}

/// The same by a port of that name.
fn send_much_as(w: &mut World, name: &str) -> (Vec<(Handle, Kring)>, Handle) {
    let mut receivers = Vec::new();
    for n in 0..RECEIVERS {
        let (handle, _) = w.register(&format!("vale0:r{n}"), shaped([1, 1], [16, 2048])).unwrap();
        receivers.push((handle, w.ring(handle, Dir::Rx)));
    }
    let (sender, _) = w.register(name, shaped([1, 1], SENDER)).unwrap();
    let tx = w.ring(sender, Dir::Tx);
    for at in 0..FRAMES {
        let slot = tx.ring().slot(at);
        tx.ring().buf(slot.buf_idx).unwrap().write(0, &[0xff; 64]);
        tx.ring().set_slot(at, slot.buf_idx, 1500, 0);
    }
    tx.csb().app.publish(FRAMES, FRAMES);
    (receivers, sender)
}

/// Waits until a worker says that it does not touch some rings any more.
fn hear_worker(w: &mut World) {
    let events = w.registry.events().unwrap();
    let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
    let heard = poll(&mut [PollFd::new(&events, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(heard, 1, "nobody says that the port is drained");
    w.registry.handle_events();
}

#[test]
fn what_a_closed_port_has_sent_arrives_and_then_its_memory_is_free() {
    let mut w = World::new();
    w.registry.events().unwrap();
    let (receivers, sender) = send_much(&mut w);
    w.close([sender]);
    // The port is gone at once, and its name free.
    assert_eq!(w.ports().len(), RECEIVERS);
    while w.regions().len() > RECEIVERS {
        hear_worker(&mut w);
    }
    for (handle, rx) in receivers {
        assert_eq!(rx.hwtail(), FRAMES);
        drop(rx);
        w.close([handle]);
    }
    w.assert_empty();
}

/// Ports that stay without their program: a persistent one, and the parent of a pipe. The next program has
/// rings of its own when all has arrived.
#[test]
fn what_the_last_program_of_a_port_that_stays_has_sent_arrives() {
    let mut w = World::new();
    w.registry.events().unwrap();
    let mut names = vec!["vale0:s"];
    if !skip_without_root("what_the_last_program_of_a_port_that_stays_has_sent_arrives") {
        names.push("per0");
        w.newif("per0").unwrap();
        w.attach("vale0:per0").unwrap();
    }
    for name in names {
        let (receivers, sender) = send_much_as(&mut w, name);
        // So that the one stays that does not by itself.
        let (pipe, _) = w.open("vale0:s{1");
        let before = w.regions();
        w.close([sender]);
        let (again, grant) = w.register(name, shaped([1, 1], SENDER)).unwrap();
        let bufs = |regions: Vec<RegionInfo>| {
            let region = regions.into_iter().find(|region| region.mem_id == grant.mem_id);
            region.expect("it is there").free_bufs
        };
        assert_eq!(bufs(w.regions()), bufs(before), "{name}: nothing is lost");
        for (handle, rx) in receivers {
            assert_eq!(rx.hwtail(), FRAMES, "{name}");
            drop(rx);
            w.close([handle]);
        }
        // It is served: what it sends is taken.
        let tx = w.ring(again, Dir::Tx);
        tx.csb().app.publish(1, 1);
        w.close([again, pipe]);
    }
    if w.ports().iter().any(|port| port.name == "per0") {
        w.detach("vale0:per0").unwrap();
        w.delif("per0").unwrap();
    }
    w.assert_empty();
}

#[test]
fn a_port_is_opened_when_the_memory_of_one_that_was_closed_is_free() {
    let settings = Settings { memory_per_user: 512 << 20, ..Settings::default() };
    let mut w = World { registry: Registry::new(settings), caller: Caller::myself() };
    w.registry.events().unwrap();
    let (receivers, sender) = send_much(&mut w);
    let opened = |w: &mut World, n| w.register(&format!("vale1:{n}"), shaped([1, 1], SENDER));
    let mut others = Vec::new();
    while let Ok((handle, _)) = opened(&mut w, others.len()) {
        others.push(handle);
    }
    assert!(!others.is_empty(), "the user has memory for some");
    w.close([sender]);

    let handle = w.registry.open();
    let (registration, options) = (shaped([1, 1], SENDER), Box::<Options>::default());
    let request = Request::Register { name: "vale1:more".into(), registration, options };
    let mut progress = Progress::default();
    // The worker may be through with it by now: at most times it is not.
    loop {
        match w.registry.begin(handle, &w.caller, &request, &mut progress) {
            Step::Answered(Ok(_)) => break,
            Step::Wait(Subject::Memory(account)) => {
                while w.registry.has_freed(&[account]).is_empty() {
                    hear_worker(&mut w);
                }
            }
            Step::Answered(Err(error)) => panic!("{error}"),
            _ => panic!("it waits for something else"),
        }
    }
    // Nothing is being freed any more.
    assert_eq!(opened(&mut w, 99).err(), Some(libc::ENOMEM));
    drop(w.registry);
    drop(receivers);
}
