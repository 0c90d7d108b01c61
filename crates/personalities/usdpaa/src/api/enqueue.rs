//! Frames of the program.

use std::{ffi::c_int, sync::atomic::Ordering::Relaxed};

use ringway_qbman::{Command, Consume, Order, OrderKind};

use super::queues::NO_ENQUEUE;
use crate::{
    abi::{qm_fd, qman_fq},
    argument::{Fq, In},
    handles,
    thread::qman,
};

/// `QMAN_ENQUEUE_FLAG_*`.
const DCA: u32 = 0x8000;
const DCA_PARK: u32 = 0x4000;
const NLIS: u32 = 0x0100_0000;
const HOLE: u32 = 0x0200_0000;
const NESN: u32 = 0x0400_0000;

#[inline]
fn enqueue(fq: *mut qman_fq, fd: qm_fd, flags: u32, order: Option<Order>) -> c_int {
    let Some(fq) = Fq::new(fq) else { return -libc::EINVAL };
    let Some(tag) = handles::of(fq) else { return -libc::EINVAL };
    let is_frame = order.is_none_or(|order| order.kind == OrderKind::Frame);
    if is_frame && fq.flags().load(Relaxed) & NO_ENQUEUE != 0 {
        return -libc::EINVAL;
    }
    let consume = Consume { place: (flags >> 8 & 0xf) as usize, park: flags & DCA_PARK != 0 };
    let command = Command {
        queue: fq.fqid(),
        frame: fd.into(),
        tag,
        order,
        consume: (flags & DCA != 0).then_some(consume),
    };
    qman(-libc::ENODEV, |qman| {
        // Within a callback, with others when its batch is done.
        let is_later = qman.is_polling.get();
        let result = qman.portal.borrow_mut().enqueue(command, is_later);
        result.map_or(-libc::EBUSY, |()| 0)
    })
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`, and a frame.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_enqueue(fq: *mut qman_fq, fd: In<qm_fd>, flags: u32) -> c_int {
    match fd.get() {
        Some(fd) => enqueue(fq, fd, flags, None),
        None => -libc::EINVAL,
    }
}

/// # Safety
/// As USDPAA says: objects of `qman_create_fq`, and a frame, which holes need not have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_enqueue_orp(
    fq: *mut qman_fq,
    fd: In<qm_fd>,
    flags: u32,
    orp: *mut qman_fq,
    orp_seqnum: u16,
) -> c_int {
    let Some(point) = Fq::new(orp) else { return -libc::EINVAL };
    let kind = match flags {
        flags if flags & HOLE != 0 => OrderKind::Hole,
        flags if flags & NESN != 0 => OrderKind::Advance,
        _ => OrderKind::Frame,
    };
    let fd = match (fd.get(), kind) {
        (Some(fd), _) => fd,
        (None, OrderKind::Frame) => return -libc::EINVAL,
        (None, _) => qm_fd::default(),
    };
    let sequence = orp_seqnum & 0x3fff;
    let order = Order { point: point.fqid(), sequence, kind, is_last: flags & NLIS == 0 };
    enqueue(fq, fd, flags, Some(order))
}
