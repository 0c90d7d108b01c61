//! Pipes between two users, who both say so.

mod common;

use common::{RX, World, all, monitor, select};
use libc::{EBUSY, EINVAL};
use ringway_errno::errno;
use ringway_proto::{Grant, Options, PortInfo, Registration, Reply, Request, RingSelection};
use ringway_registry::Handle;

const ALICE: u32 = 1001;
const BOB: u32 = 1002;
const MALLORY: u32 = 1003;

/// Opens a port as user `me`, sharing it with user `other`.
fn open_with(
    world: &mut World,
    me: u32,
    other: u32,
    name: &str,
    reg: Registration,
) -> Result<(Handle, Grant), i32> {
    world.caller.uid = me;
    let handle = world.registry.open();
    let options = Options { user: Some(other), ..Options::default() };
    let request =
        Request::Register { name: name.into(), registration: reg, options: Box::new(options) };
    match world.registry.call(handle, &world.caller, request) {
        Ok((Reply::Granted(grant), _)) => Ok((handle, *grant)),
        Ok(other) => panic!("{other:?}"),
        Err(error) => {
            world.registry.close(handle);
            Err(errno(error.cause))
        }
    }
}

fn open(world: &mut World, me: u32, other: u32, name: &str) -> Result<(Handle, Grant), i32> {
    open_with(world, me, other, name, all())
}

fn ports(world: &mut World) -> Vec<PortInfo> {
    match world.ask(Request::Ports { from: 0 }) {
        Ok(Reply::Ports { ports, .. }) => ports,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pipe_between_two_users_is_theirs_alone() {
    let mut w = World::new();
    let (one, from) = open(&mut w, ALICE, BOB, "p{1").unwrap();
    let (other, to) = open(&mut w, BOB, ALICE, "p}1").unwrap();
    assert_eq!(from.registration.mem_id, to.registration.mem_id, "they share the memory");

    // Who is named by nobody has pipes of his own, by the same name, whatever he says.
    let mut others = Vec::new();
    for (me, with) in [(MALLORY, ALICE), (MALLORY, BOB), (ALICE, MALLORY), (BOB, BOB)] {
        let (handle, grant) = open(&mut w, me, with, "p}1").unwrap();
        assert_ne!(grant.registration.mem_id, from.registration.mem_id);
        others.push(handle);
    }
    w.caller.uid = ALICE;
    let (own, grant) = w.register("p{1", all()).unwrap();
    assert_ne!(
        grant.registration.mem_id, from.registration.mem_id,
        "nor does a pipe of one's own change"
    );
    others.push(own);

    // One of the two may go and come back.
    w.registry.close(one);
    let (again, grant) = open(&mut w, ALICE, BOB, "p{1").unwrap();
    assert_eq!(grant.registration.mem_id, to.registration.mem_id);
    // A second pipe of the two has the same parent, and memory.
    let (second, grant) = open(&mut w, BOB, ALICE, "p{2").unwrap();
    assert_eq!(grant.registration.mem_id, to.registration.mem_id);

    others.extend([other, again, second]);
    others.into_iter().for_each(|handle| w.registry.close(handle));
    w.assert_empty();
}

/// The other user gets at nothing but the pipe.
#[test]
fn only_the_pipe_is_shared() {
    let mut w = World::new();
    w.caller.uid = ALICE;
    let (vale, grant) = w.register("vale1:a", all()).unwrap();
    assert_eq!(open(&mut w, ALICE, BOB, "vale1:a{1").unwrap_err(), EINVAL, "a port's memory");
    assert_eq!(open(&mut w, ALICE, BOB, "vale1:a").unwrap_err(), EINVAL, "not a pipe");
    let in_region = Registration { mem_id: grant.registration.mem_id, ..all() };
    assert_eq!(open_with(&mut w, ALICE, BOB, "p{1", in_region).unwrap_err(), EINVAL);
    let host = select(RingSelection::Host);
    assert_eq!(open_with(&mut w, ALICE, BOB, "p{1", host).unwrap_err(), EINVAL);
    w.registry.close(vale);
    w.assert_empty();

    let (end, grant) = open(&mut w, ALICE, BOB, "p{1").unwrap();
    let monitor = monitor(RX);
    assert_eq!(open_with(&mut w, BOB, ALICE, "p{1", monitor).unwrap_err(), EINVAL);
    // By the region's number nobody but its user gets in.
    w.caller.uid = BOB;
    let in_region = Registration { mem_id: grant.registration.mem_id, ..all() };
    assert!(matches!(w.register("vale2:b", in_region), Err(EINVAL | EBUSY)));
    assert_eq!(ports(&mut w).len(), 2, "the two ends");
    w.registry.close(end);
    w.assert_empty();
}
