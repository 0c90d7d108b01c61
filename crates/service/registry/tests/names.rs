//! Names that are no interface's, and interfaces that no bridge takes.

mod common;

use common::{World, all};
use libc::{EINVAL, ENXIO};
use ringway_testkit::skip_without_root;

/// The kernel takes what is before a colon for the name: we do not, and have one port of an interface
/// and not two.
#[test]
fn a_name_with_a_colon_is_nobodys() {
    let mut w = World::new();
    assert_eq!(w.register("lo:1", all()).unwrap_err(), ENXIO);
    w.assert_empty();
}

/// It would give back each frame that it is sent.
#[test]
fn a_loopback_is_on_no_bridge() {
    if skip_without_root("a_loopback_is_on_no_bridge") {
        return;
    }
    let mut w = World::new();
    assert_eq!(w.attach("vale1:lo").unwrap_err(), EINVAL);
    w.assert_empty();
}
