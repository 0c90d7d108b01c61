//! A port that is closed with much in its rings: the close is answered, what was sent arrives, and then
//! its memory is free.

mod common;

use std::sync::Arc;

use common::{World, shaped};
use ringway_abi::Dir;
use ringway_kring::Kring;
use ringway_proto::{Grant, Reply, Request};
use ringway_region::Region;
use ringway_registry::Handle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const RECEIVERS: usize = 16;
const FRAMES: u32 = 1000;

/// A ring of an open port, as its program has it.
fn ring(w: &mut World, handle: Handle, dir: Dir) -> Kring {
    let described = w.registry.call(handle, &w.caller, Request::Describe);
    let Ok((Reply::Granted(grant), mut fds)) = described else { panic!("{described:?}") };
    let Grant { mem_id, layout, rings, .. } = *grant;
    let region: Arc<Region> = Region::open(fds.swap_remove(0), mem_id, layout).unwrap().into();
    let ring = rings.iter().find(|ring| ring.dir == dir).unwrap();
    Kring::open(&region, ring.object, dir, ring.num_slots).unwrap()
}

#[test]
fn what_a_closed_port_has_sent_arrives_and_then_its_memory_is_free() {
    let mut w = World::new();
    w.registry.events().unwrap();
    let mut receivers = Vec::new();
    for n in 0..RECEIVERS {
        let (handle, _) = w.register(&format!("vale0:r{n}"), shaped([1, 1], [16, 2048])).unwrap();
        receivers.push((handle, ring(&mut w, handle, Dir::Rx)));
    }
    let (sender, _) = w.register("vale0:s", shaped([1, 1], [1024, 16])).unwrap();
    let tx = ring(&mut w, sender, Dir::Tx);
    for at in 0..FRAMES {
        let slot = tx.ring().slot(at);
        tx.ring().buf(slot.buf_idx).unwrap().write(0, &[0xff; 64]);
        tx.ring().set_slot(at, slot.buf_idx, 1500, 0);
    }
    tx.csb().app.publish(FRAMES, FRAMES);
    drop(tx);
    w.close([sender]);
    // The port is gone at once, and its name free.
    assert_eq!(w.ports().len(), RECEIVERS);
    while w.regions().len() > RECEIVERS {
        let events = w.registry.events().unwrap();
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        let heard = poll(&mut [PollFd::new(&events, PollFlags::IN)], Some(&patience)).unwrap();
        assert_eq!(heard, 1, "nobody says that the port is drained");
        w.registry.handle_events();
    }
    for (handle, rx) in receivers {
        assert_eq!(rx.hwtail(), FRAMES);
        drop(rx);
        w.close([handle]);
    }
    w.assert_empty();
}
