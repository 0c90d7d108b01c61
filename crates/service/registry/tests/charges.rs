//! What switches have of interfaces to receive into is on their users' accounts.

mod common;

use common::{World, shaped};
use libc::ENOMEM;
use ringway_proto::{NicMode, Request};
use ringway_region::Sizes;
use ringway_registry::{Registry, Settings};
use ringway_testkit::{Netns, skip_without_root};

const MIB: u64 = 1 << 20;

/// In which an interface takes as much as it has queues.
const COPY: Option<NicMode> = Some(NicMode::Copy);

fn attach(name: &str, stack: bool) -> Request {
    Request::SwitchAttach { name: name.into(), stack, all_rings: true, mem_id: 0, mode: COPY }
}

/// Of the two ends of a pair, with three queues each, one fits, with its stack, or without and a port.
#[test]
fn interfaces_on_switches_count_with_their_users() {
    if skip_without_root("interfaces_on_switches_count_with_their_users") {
        return;
    }
    let global_region = Sizes { buf_num: 20_000, ..Sizes::GLOBAL };
    let settings = Settings { memory_per_user: 40 * MIB, global_region, ..Settings::default() };
    let mut w = World { registry: Registry::new(settings), ..World::new() };
    Netns::root().run(
        "ip link add nic0 numtxqueues 3 numrxqueues 3 type veth peer name nic1 numtxqueues 3 \
         numrxqueues 3 && ip link set nic0 up && ip link set nic1 up",
    );
    for _ in 0..3 {
        w.attach_in("vale0:nic0", true, COPY).unwrap();
        let handle = w.registry.open();
        let refused = w.registry.call(handle, &w.caller, attach("vale0:nic1", false)).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("nic1") && text.contains("memory_per_user"), "{text}");
        w.registry.close(handle);
        assert_eq!(w.register("vale0:a", shaped([1, 1], [64, 64])).unwrap_err(), ENOMEM);
        w.detach("vale0:nic0").unwrap();

        w.attach_in("vale0:nic1", false, COPY).unwrap();
        assert_eq!(w.attach_in("vale0:nic0", false, COPY).unwrap_err(), ENOMEM);
        let (port, _) = w.register("vale0:a", shaped([1, 1], [64, 64])).unwrap();
        w.registry.close(port);
        w.detach("vale0:nic1").unwrap();
    }
    // A persistent port's stack is one queue, and holds frames of any length.
    w.newif("per0").unwrap();
    w.attach_as("vale0:per0", true).unwrap();
    assert_eq!(w.attach_in("vale0:nic0", false, COPY).unwrap_err(), ENOMEM);
    w.detach("vale0:per0").unwrap();
    w.attach_in("vale0:nic0", false, COPY).unwrap();
    assert_eq!(w.attach_as("vale1:per0", true).unwrap_err(), ENOMEM);
    w.detach("vale0:nic0").unwrap();
    w.attach_as("vale1:per0", true).unwrap();
    w.detach("vale1:per0").unwrap();
    w.delif("per0").unwrap();
    w.assert_empty();
}
