//! What users are told to do, where the first thing that comes to mind would do harm or not help.

mod common;

use std::process::Command;

use common::{TX, World, all, monitor, one_at_a_time};
use ringway_proto::{Cause, Error, Options, Registration, Request};
use ringway_registry::{NamePattern, Reserved};
use ringway_testkit::skip_without_root;

/// A world of its own, with an interface of four queues in it.
fn world() -> World {
    let world = World::new();
    let link = "link add n0 numrxqueues 4 numtxqueues 4 up type veth peer name n1";
    assert!(Command::new("ip").args(link.split(' ')).status().unwrap().success());
    world
}

fn refused(w: &mut World, request: Request) -> Error {
    let handle = w.registry.open();
    let answer = w.registry.call(handle, &w.caller, request);
    w.registry.close(handle);
    answer.map(drop).unwrap_err()
}

impl World {
    fn attach_error(&mut self, name: &str) -> Error {
        let (stack, all_rings, mem_id, mode) = (false, true, 0, None);
        let request = Request::SwitchAttach { name: name.into(), stack, all_rings, mem_id, mode };
        refused(self, request)
    }
}

fn open(name: &str, registration: Registration) -> Request {
    Request::Register { name: name.into(), registration, options: Box::new(Options::default()) }
}

#[test]
fn remedies_leave_networks_as_they_are() {
    if skip_without_root("remedies_leave_networks_as_they_are") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = world();
    // A capture that takes no frames from the stack.
    let error = refused(&mut w, open("n0", monitor(TX)));
    assert!(error.remedy.contains("`ringway capture netmap:n0/rt`"), "{error}");

    let (handle, _) = w.open("n0");
    let queues = |queue| Request::RedirectQueues {
        name: "n0".into(),
        queues: vec![queue],
        to_program: false,
    };
    let error = refused(&mut w, queues(9));
    assert!(error.to_string().contains("there is no queue 9, only 4"), "{error}");
    w.close([handle]);

    // A monitor, before what cuts off the network.
    w.attach("vale0:n0").unwrap();
    for name in ["n0", "vale0:n0"] {
        let error = refused(&mut w, open(name, all()));
        assert!(
            error.remedy.starts_with("watch them with a monitor, `ringway capture vale0:n0/rt`"),
            "{error}"
        );
    }
    let watched = w.register("vale0:n0", monitor(TX)).unwrap().0;
    w.close([watched]);
    w.detach("vale0:n0").unwrap();
}

/// A port of a switch is found again by its name: by the configuration, by the next daemon, and by programs.
#[test]
fn an_interface_joins_a_switch_by_a_name_that_leads_to_it() {
    if skip_without_root("an_interface_joins_a_switch_by_a_name_that_leads_to_it") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = world();
    let ip = |words: &str| {
        assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success())
    };
    ip("link property add dev n0 altname other0");
    for name in ["q@2", "q{1", "q}1", "q/2"] {
        let error = w.attach_error(&format!("vale0:{name}"));
        assert!(error.problem.contains("none of / : @ { }"), "{error}");
    }
    // By its alternative name.
    w.attach("vale0:other0").unwrap();
    assert!(w.ports().iter().any(|port| port.name == "vale0:n0"), "{:?}", w.ports());
    let error = w.attach_error("vale1:other0");
    assert!(error.to_string().contains("vale0:n0: attached to a switch already"), "{error}");
    w.detach("vale0:n0").unwrap();
    // What is reserved by the one is not had by the other.
    w.caller.reservations =
        [Reserved { pattern: NamePattern::parse("vale0:n0").unwrap(), is_holder: false }].into();
    assert_eq!(w.attach_error("vale0:other0").cause, Cause::Denied);
}

/// A port of a switch has a region of its own, with room for few pipes; that of the user has more.
#[test]
fn a_port_with_many_pipes_is_opened_in_the_shared_region() {
    let mut w = World::new();
    let pipes = |w: &mut World, name: &str| {
        let mut handles = vec![w.open(name).0];
        let mem_id = w.ports().iter().find(|port| port.name == name).unwrap().mem_id;
        let refused = (0..16).find_map(|number| {
            let request = open(&format!("{name}{{{number}"), Registration { mem_id, ..all() });
            let handle = w.registry.open();
            handles.push(handle);
            w.registry.call(handle, &w.caller, request).err()
        });
        handles.into_iter().for_each(|handle| w.close([handle]));
        refused
    };
    let error = pipes(&mut w, "vale0:a").expect("it has no room for 16");
    assert!(error.remedy.contains("NAME@1"), "{error}");
}

/// What is attached is changed by its user, under the name that its port has.
#[test]
fn what_cannot_be_detached_says_why() {
    if skip_without_root("what_cannot_be_detached_says_why") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = world();
    w.attach("vale0:n0").unwrap();
    let detach =
        |port: &str| Request::SwitchDetachAll { bridge: "vale0".into(), ports: vec![port.into()] };
    w.caller.uid = 1000;
    let error = refused(&mut w, detach("n0"));
    assert_eq!(
        error.to_string(),
        "vale0:n0: it is user 0's, who alone can change it; ask that user, or root"
    );
    w.caller.uid = 0;
    for words in ["link set dev n0 down", "link set dev n0 name newer0"] {
        assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success());
    }
    w.registry.handle_events();
    let error = refused(&mut w, detach("newer0"));
    assert!(error.to_string().contains("renamed, and its port is vale0:n0 as before"), "{error}");
    w.detach("vale0:n0").unwrap();
}
