//! Polling, and what is dequeued.

use std::ffi::{c_int, c_uint};

use ringway_qbman::Consume;

use crate::{
    POOL_MASK,
    abi::{qm_dqrr_entry, qman_cb_dc_ern},
    rejected,
    thread::qman,
};

/// Frames that `qman_poll` hands on in a call.
const FAST: usize = 8;
/// Calls of `qman_poll` for one look at messages, while there are frames.
const SLOW_EVERY: u32 = 10;

/// The pools of a mask of static dequeues, 0x8000 >> n, as a bit 1 << n for each; and back.
fn reverse(mask: u32) -> u32 {
    (mask & POOL_MASK).reverse_bits() >> 16
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_poll_dqrr(limit: c_uint) -> c_int {
    let limit = limit.min(c_int::MAX as c_uint) as usize;
    qman(0, |qman| qman.poll_frames(limit) as c_int)
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_poll_slow() -> u32 {
    qman(0, |qman| qman.poll_messages())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_poll() {
    qman((), |qman| {
        let frames = qman.poll_frames(FAST);
        let calls = qman.calls.get() + 1;
        let looks = frames == 0 || calls >= SLOW_EVERY;
        qman.calls.set(if looks { 0 } else { calls });
        if looks {
            qman.poll_messages();
        }
    });
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_stop_dequeues() {
    qman((), |qman| qman.portal.borrow_mut().stop());
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_start_dequeues() {
    qman((), |qman| qman.portal.borrow_mut().start());
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_static_dequeue_add(pools: u32) {
    qman((), |qman| {
        let mut portal = qman.portal.borrow_mut();
        let all = u32::from(portal.pools()) | reverse(pools);
        portal.set_pools(all as u16);
    });
    // What is there now wakes, too.
    qman((), |qman| {
        if qman.sources.get() != 0 {
            qman.arm();
        }
    });
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_static_dequeue_del(pools: u32) {
    qman((), |qman| {
        let mut portal = qman.portal.borrow_mut();
        portal.disarm(&qman.notifier);
        let left = u32::from(portal.pools()) & !reverse(pools);
        portal.set_pools(left as u16);
    });
    qman((), |qman| {
        if qman.sources.get() != 0 {
            qman.arm();
        }
    });
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_static_dequeue_get() -> u32 {
    qman(0, |qman| u32::from(qman.portal.borrow().pools()).reverse_bits() >> 16)
}

/// # Safety
/// As USDPAA says: an entry that was deferred. It is not read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_dca(dq: *mut qm_dqrr_entry, park_request: c_int) {
    qman((), |qman| {
        let entries = qman.dqrr.0.as_ptr_range();
        if entries.contains(&dq.cast_const().cast()) {
            let place = (dq as usize - entries.start as usize) / size_of::<qm_dqrr_entry>();
            qman.consume(Consume { place, park: park_request != 0 });
        }
    });
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_eqcr_is_empty() -> c_int {
    qman(1, |qman| qman.portal.borrow().is_flushed().into())
}

/// # Safety
/// As USDPAA says: a function, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_set_dc_ern(handler: Option<qman_cb_dc_ern>, affine: c_int) {
    if affine != 0 {
        qman((), |qman| qman.set_dc_ern(handler));
    } else {
        rejected::set_handler(handler);
    }
}
