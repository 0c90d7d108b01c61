//! Rings that share the packets of a device.

use std::ffi::c_int;

use super::of_ring;
use crate::{abi::*, cluster::Member, errno::fails, ring::Ring};

/// The first queue that is free.
const AUTO: u16 = 64;

fn join(ring: &Ring, id: u16, queue: u16, kind: c_int, options: u32) -> c_int {
    done(ring, try_join(ring, id, queue, kind, options))
}

/// The end of a call that has stopped the rule thread.
fn done(ring: &Ring, result: Result<(), c_int>) -> c_int {
    ring.start_rule_thread();
    match result {
        Ok(()) => 0,
        Err(errno) => fails(ERROR_GENERIC, errno),
    }
}

fn try_join(ring: &Ring, id: u16, queue: u16, kind: c_int, options: u32) -> Result<(), c_int> {
    if id == 0 {
        return Err(libc::EINVAL);
    }
    // A ring that is in another cluster leaves it first.
    leave(ring)?;
    let device = ring.device.replace(';', ",");
    let kind = u32::try_from(kind).unwrap_or(u32::MAX);
    let mut member = Member::join(id, queue.into(), kind, options, &device)?;
    if let [source] = &ring.sources[..] {
        let mut reader = ring.reader.try_lock().map_err(|_| libc::EBUSY)?;
        // They are packets of the whole device, in memory that goes.
        (reader.kept, reader.last) = (None, None);
        member.share_out(source)?;
    }
    ring.admission.set_member(Some(member));
    Ok(())
}

fn leave(ring: &Ring) -> Result<(), c_int> {
    ring.stop_rule_thread();
    let Some(member) = ring.admission.take_member() else { return Ok(()) };
    let mut reader = ring.reader.try_lock().map_err(|_| libc::EBUSY)?;
    (reader.kept, reader.last) = (None, None);
    member.leave()
}

of_ring! {
    fn pfring_set_cluster(id: u32, kind: c_int) -> c_int, else ERROR_GENERIC,
        |ring| join(ring, u16::try_from(id).unwrap_or(0), AUTO, kind, 0);
    fn pfring_set_cluster_consumer(id: u16, queue: u16, kind: c_int, options: u32) -> c_int, else ERROR_GENERIC,
        |ring| join(ring, id, queue, kind, options);
    fn pfring_remove_from_cluster() -> c_int, else ERROR_GENERIC, |ring| done(ring, leave(ring));
}
