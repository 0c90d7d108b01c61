//! Rings that share the packets of a device.

use std::ffi::c_int;

use super::of_ring;
use crate::{
    abi::*,
    cluster::Member,
    errno::{fails, keep_errno},
    ring::Ring,
};

/// The first queue that is free.
const AUTO: u16 = 64;

fn join(ring: &Ring, id: u16, queue: u16, kind: c_int, options: u32) -> c_int {
    without_rule_thread(ring, || try_join(ring, id, queue, kind, options))
}

fn without_rule_thread(ring: &Ring, change: impl FnOnce() -> Result<(), c_int>) -> c_int {
    let result = keep_errno(|| {
        ring.stop_rule_thread();
        let result = change();
        ring.start_rule_thread();
        result
    });
    result.map_or_else(|errno| fails(ERROR_GENERIC, errno), |()| 0)
}

fn try_join(ring: &Ring, id: u16, queue: u16, kind: c_int, options: u32) -> Result<(), c_int> {
    if id == 0 {
        return Err(libc::EINVAL);
    }
    let mut reader = match &ring.sources[..] {
        // While another thread receives, the ring stays as it is.
        [_] => Some(ring.reader.borrow().ok_or(libc::EBUSY)?),
        _ => None,
    };
    if let Some(reader) = &mut reader {
        // They are packets of the whole device, in memory that goes.
        (reader.kept, reader.last) = (None, None);
    }
    // A ring that is in another cluster leaves it first.
    leave(ring)?;
    let device = ring.device.replace(';', ",");
    let kind = u32::try_from(kind).unwrap_or(u32::MAX);
    let mut member = Member::join(id, queue.into(), kind, options, &device)?;
    if let [source] = &ring.sources[..] {
        member.share_out(source)?;
    }
    ring.admission.set_member(Some(member));
    Ok(())
}

fn leave(ring: &Ring) -> Result<(), c_int> {
    ring.admission.take_member().map_or(Ok(()), |member| member.leave(&ring.sources))
}

/// Leaves; a thread that receives goes on with the device.
fn try_leave(ring: &Ring) -> Result<(), c_int> {
    let mut reader = ring.reader.borrow();
    if let Some(reader) = &mut reader {
        // The memory that they are in may go. Where a read is under way, it stays until the next.
        (reader.kept, reader.last) = (None, None);
    }
    leave(ring)
}

of_ring! {
    fn pfring_set_cluster(id: u32, kind: c_int) -> c_int, else ERROR_GENERIC,
        |ring| join(ring, u16::try_from(id).unwrap_or(0), AUTO, kind, 0);
    fn pfring_set_cluster_consumer(id: u16, queue: u16, kind: c_int, options: u32) -> c_int, else ERROR_GENERIC,
        |ring| join(ring, id, queue, kind, options);
    fn pfring_remove_from_cluster() -> c_int, else ERROR_GENERIC,
        |ring| without_rule_thread(ring, || try_leave(ring));
}
