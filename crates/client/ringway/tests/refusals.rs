//! What is refused, and what the errors say.

use std::time::Duration;

use ringway::{Cause, Error, Filter, Interest, Port};
use ringway_doc as doc;

fn refused(opened: Result<Port, Error>) -> Error {
    opened.map(|_| ()).expect_err("it is refused")
}

#[test]
fn a_region_is_shared_with_an_open_port() {
    let error = refused(doc::open("vale6:r@share=vale6:zz"));
    assert_eq!(error.port(), Some("vale6:r@share=vale6:zz"));
    assert!(error.to_string().contains("vale6:zz is not open; open it first"), "{error}");
    let with = doc::open("vale6:with").unwrap();
    let beside = doc::open("vale6:beside@share=vale6:with").unwrap();
    assert!(beside.shares_region_with(&with));
}

#[test]
fn names_of_no_port_are_invalid() {
    for name in ["vale6", "vale6:", "vale6@conf:slots=64", "vale-6:a", "vale6:\u{fffd}"] {
        assert_eq!(refused(doc::open(name)).cause(), Cause::Invalid, "{name}");
    }
}

#[test]
fn a_port_that_was_shut_says_so() {
    let mut port = doc::open("vale6:shut").unwrap();
    port.shut();
    let error = port.check(Interest::Rx).unwrap_err();
    assert_eq!((error.cause(), error.port()), (Cause::Gone, Some("vale6:shut")));
    for error in [error, port.wait_rx(Some(Duration::ZERO)).unwrap_err()] {
        assert!(error.to_string().contains("the port has been closed"), "{error}");
    }
}

#[test]
fn the_filter_of_a_switch_port_stays() {
    let filter = || Filter::new("udp").unwrap();
    let port = doc::options().filter(filter()).open("vale6:filtered").unwrap();
    for error in [port.set_filter(filter()).unwrap_err(), port.clear_filter().unwrap_err()] {
        assert_eq!(error.cause(), Cause::Unsupported);
        assert!(error.to_string().contains("open the port again with the other filter"), "{error}");
    }
}

/// Numbers of slots go on beyond those that are held.
#[test]
fn slots_of_any_number_are_scanned() {
    let mut port = doc::open("vale6:scan").unwrap();
    let mut rx = port.rx(0);
    let slots = rx.slots();
    let stopped = slots.scan(u32::MAX - 3..u32::MAX, |_, _, _: &[u8; 16]| true);
    assert_eq!(stopped, u32::MAX);
}
