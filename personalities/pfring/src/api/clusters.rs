//! Rings that share the packets of a device.

use std::ffi::c_int;

use ringway_capture::Opened;

use super::of_ring;
use crate::{abi::*, argument::fails, cluster::Member, ring::Ring};

/// The first queue that is free.
const AUTO: u16 = 64;

fn join(ring: &Ring, id: u16, queue: u16, kind: c_int) -> c_int {
    if id == 0 {
        return fails(ERROR_GENERIC, libc::EINVAL);
    }
    // One that is in another cluster leaves it first.
    ring.admission.set_member(None);
    let device = ring.device.replace(';', ",");
    let kind = u32::try_from(kind).unwrap_or(u32::MAX);
    match Member::join(id, queue.into(), kind, &device) {
        Ok(mut member) => {
            if let [source] = &ring.sources[..]
                && let Opened::Tap(tap) = &source.opened
            {
                member.share_out(tap.fd());
            }
            ring.admission.set_member(Some(member));
            0
        }
        Err(errno) => fails(ERROR_GENERIC, errno),
    }
}

of_ring! {
    fn pfring_set_cluster(id: u32, kind: c_int) -> c_int, else ERROR_GENERIC,
        |ring| join(ring, u16::try_from(id).unwrap_or(0), AUTO, kind);
    fn pfring_set_cluster_consumer(id: u16, queue: u16, kind: c_int, _options: u32) -> c_int, else ERROR_GENERIC,
        |ring| join(ring, id, queue, kind);
    fn pfring_remove_from_cluster() -> c_int, else ERROR_GENERIC, |ring| {
        ring.admission.set_member(None);
        0
    };
}
