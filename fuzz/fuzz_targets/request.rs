//! Any messages of a client that is granted no network interfaces: the registry answers each, and
//! when the client's last handle is closed nothing of it is left.
//!
//! Before each message stands a byte that says which handle it is made on, and whether that is
//! closed first.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringway_proto::{Reply, Request};
use ringway_region::Sizes;
use ringway_registry::{Caller, Netns, Registry, Settings};
use ringway_testkit::{is_root, isolate_thread};

const UID: u32 = 1000;
const HANDLES: usize = 4;
const CLOSE: u8 = 0x80;
/// Bytes that a client's regions may have together.
const MEMORY: u64 = 256 << 20;

fn registry() -> Registry {
    let global_region = Sizes { buf_num: 4096, ..Sizes::GLOBAL };
    let settings =
        Settings { max_bridges: 4, memory_per_user: MEMORY, global_region, ..Settings::default() };
    Registry::new(settings)
}

fn caller() -> Caller {
    Caller::new(UID, Netns::Own)
}

fn run(mut bytes: &[u8]) {
    let mut registry = registry();
    let mut handles = [(); HANDLES].map(|()| registry.open());
    while let Some((&which, message)) = bytes.split_first() {
        let Ok((request, rest)) = postcard::take_from_bytes::<Request>(message) else { break };
        bytes = rest;
        let handle = &mut handles[usize::from(which & !CLOSE) % HANDLES];
        if which & CLOSE != 0 {
            registry.close(*handle);
            *handle = registry.open();
        }
        match registry.call(*handle, &caller(), request) {
            Ok((Reply::Granted(grant), fds)) => {
                let doorbells = grant.rings.iter().map(|ring| usize::from(ring.doorbell));
                assert!(doorbells.max().unwrap_or(0) < fds.len());
            }
            Ok((reply, _)) => drop(postcard::to_allocvec(&reply).unwrap()),
            Err(error) => assert!(!error.problem.is_empty()),
        }
        let all = Request::Regions { from: Default::default() };
        let Reply::Regions { regions, next: None } = ask(&mut registry, all) else { panic!() };
        assert!(regions.iter().map(|region| region.bytes).sum::<u64>() <= MEMORY);
    }

    handles.into_iter().for_each(|handle| registry.close(handle));
    // Bridges that were made to stay are the only thing that does.
    let all = || Request::Switches { from: Default::default() };
    let Reply::Switches { switches, .. } = ask(&mut registry, all()) else { panic!() };
    for bridge in switches.into_iter().map(|bridge| bridge.name) {
        ask(&mut registry, Request::SwitchDelete { bridge });
    }
    let regions = Request::Regions { from: Default::default() };
    for request in [all(), Request::Ports { from: 0 }, regions] {
        match ask(&mut registry, request) {
            Reply::Switches { switches: left, .. } => assert!(left.is_empty(), "{left:?}"),
            Reply::Ports { ports: left, .. } => assert!(left.is_empty(), "{left:?}"),
            Reply::Regions { regions: left, .. } => assert!(left.is_empty(), "{left:?}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(registry.handles(), 0);
}

/// A request that cannot fail, on a handle of its own.
fn ask(registry: &mut Registry, request: Request) -> Reply {
    let handle = registry.open();
    let reply = registry.call(handle, &caller(), request);
    registry.close(handle);
    reply.unwrap().0
}

fuzz_target!(|bytes: &[u8]| {
    if is_root() {
        isolate_thread();
    }
    run(bytes);
});
