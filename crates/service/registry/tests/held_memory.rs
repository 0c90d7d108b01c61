//! Memory of closed ports that programs keep stays on their users' accounts.

mod common;

use common::{World, all};
use libc::ENOMEM;
use ringway_proto::{Options, Registration, Reply, Request};
use ringway_region::Mapping;
use ringway_registry::{Caller, Handle, Registry, Settings};
use ringway_testkit::{StuckWrite, skip_without_root};
use rustix::fd::OwnedFd;

/// Bytes that each user may have.
const QUOTA: u64 = 64 << 20;
/// Extra buffers of a port: 10 MiB.
const EXTRA: u32 = 5000;
/// As often as the extra buffers alone fit into the account.
const MOST: usize = (QUOTA / (EXTRA as u64 * 2048)) as usize;

fn world() -> World {
    let settings = Settings { memory_per_user: QUOTA, ..Settings::default() };
    World { registry: Registry::new(settings), caller: Caller::myself() }
}

/// Opens a port, writes to all of its extra buffers, and returns what it has of the memory: a descriptor.
fn open(w: &mut World) -> Result<(Handle, OwnedFd, u64), String> {
    let registration = Registration { extra_bufs: EXTRA, ..all() };
    let (name, options) = ("vale0:a".into(), Box::<Options>::default());
    let handle = w.registry.open();
    let request = Request::Register { name, registration, options };
    match w.registry.call(handle, &w.caller, request) {
        Ok((Reply::Granted(grant), mut fds)) => {
            let memfd = fds.swap_remove(0);
            for index in grant.extra_bufs.iter().flat_map(|span| span.indices()) {
                let at = grant.layout.bufs.object(index).unwrap();
                rustix::io::pwrite(&memfd, &[1; 4], at).unwrap();
            }
            Ok((handle, memfd, grant.layout.total()))
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => {
            w.registry.close(handle);
            assert_eq!(ringway_errno::errno(error.cause), ENOMEM);
            Err(error.to_string())
        }
    }
}

/// Opens, closes and keeps the memory, until that is refused.
fn keep_all<T>(w: &mut World, keep: impl Fn(OwnedFd, u64) -> T) -> (Vec<T>, String) {
    let mut kept = Vec::new();
    loop {
        match open(w) {
            Ok((handle, memfd, len)) => {
                w.registry.close(handle);
                kept.push(keep(memfd, len));
            }
            Err(said) => return (kept, said),
        }
        assert!(kept.len() < 100, "1 GiB is kept");
    }
}

#[test]
fn what_is_kept_counts() {
    let mut w = world();
    let (kept, said) = keep_all(&mut w, |memfd, _| memfd);
    assert!((2..=MOST).contains(&kept.len()), "{}", kept.len());
    assert!(said.contains("although the ports are closed"), "{said}");
    // Others have their own.
    w.caller.uid += 1;
    let (handle, ..) = open(&mut w).unwrap();
    w.registry.close(handle);
    w.caller.uid -= 1;
    drop(kept);
    let (handle, ..) = open(&mut w).unwrap();
    w.registry.close(handle);
    w.assert_empty();
}

#[test]
fn mappings_count_as_descriptors_do() {
    let mut w = world();
    let map = |memfd: OwnedFd, len: u64| Mapping::open(memfd, len as usize).unwrap();
    let (kept, said) = keep_all(&mut w, map);
    assert!((2..=MOST).contains(&kept.len()), "{}", kept.len());
    assert!(said.contains("although the ports are closed"), "{said}");
    let descriptors = |w: &World| w.registry.descriptors(w.caller.uid);
    let before = descriptors(&w);
    drop(kept);
    assert!(w.registry.housekeeping().is_none(), "nothing is held any more");
    assert!(descriptors(&w) < before && descriptors(&w) == 0);
}

/// A client holds the inode's lock of what it keeps: nothing waits for it.
#[test]
fn what_is_kept_may_be_locked() {
    if skip_without_root("what_is_kept_may_be_locked") {
        return;
    }
    let mut w = world();
    let (handle, memfd, len) = open(&mut w).unwrap();
    let stuck = StuckWrite::into(&memfd, len - 1).unwrap();
    w.registry.close(handle);
    let (handle, ..) = open(&mut w).unwrap();
    w.registry.close(handle);
    assert!(w.registry.housekeeping().is_some());
    drop((stuck, memfd));
}
