//! What a request holds that makes a persistent port, until the port is there or the client has gone.

mod common;

use std::process::Command;

use common::{
    World, all,
    asked::{Asked, close_all},
    one_at_a_time,
};
use ringway_proto::{Cause, Options, PortShape, Request};
use ringway_registry::{Registry, Settings};
use ringway_testkit::skip_without_root;

/// Not root, which may have as many as there can be.
const SOMEBODY: u32 = 12345;

fn new(name: &str) -> Request {
    Request::NewInterface { name: name.into(), shape: PortShape::default() }
}

fn open(name: &str) -> Request {
    let options = Box::new(Options::default());
    Request::Register { name: name.into(), registration: all(), options }
}

fn device_exists(name: &str) -> bool {
    Command::new("ip").args(["link", "show", name]).output().unwrap().status.success()
}

#[test]
fn a_name_and_a_place_are_held_for_a_port_that_is_made() {
    if skip_without_root("a_name_and_a_place_are_held_for_a_port_that_is_made") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    let settings = Settings { switches_per_user: 1, ..Settings::default() };
    w.registry = Registry::new(settings);
    w.registry.deferred().defer_closings();
    let root = std::mem::replace(&mut w.caller.uid, SOMEBODY);
    for is_given_up in [false, true] {
        let mut asked = Asked::new(&mut w, new("per0"));
        let work = asked.opens(&mut w);
        let subject = work.subject().clone();
        // The user may have a single one.
        assert_eq!(w.newif("per1").unwrap_err(), libc::ENOMEM);
        // Requests that want the name wait until it is known whose it is.
        let mut others = [new("per0"), open("per0"), open("per0{1")].map(|request| {
            let mut other = Asked::new(&mut w, request);
            assert_eq!(other.waits_for(&mut w).as_ref(), Some(&subject), "{:?}", other.request);
            other
        });
        if is_given_up {
            w.registry.end(std::mem::take(&mut asked.progress));
            w.newif("per1").unwrap();
            w.delif("per1").unwrap();
            w.registry.discard(work.run());
            assert!(close_all(&mut w).contains(&subject));
        } else {
            asked.progress.put(work.run());
            asked.finish(&mut w).unwrap();
            assert!(device_exists("per0"));
            let [same, _, _] = &mut others;
            let there = same.finish(&mut w).unwrap_err();
            assert_eq!(there.cause, Cause::Exists, "{there}");
            assert_eq!(w.newif("per1").unwrap_err(), libc::ENOMEM);
            w.delif("per0").unwrap();
            close_all(&mut w);
        }
        for other in others {
            w.registry.end(other.progress);
            w.registry.close(other.handle);
        }
        w.registry.close(asked.handle);
        close_all(&mut w);
        assert!(!device_exists("per0"));
    }
    w.caller.uid = root;
    w.assert_empty();
}
