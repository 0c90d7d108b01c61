//! How frame queues come and go.

use std::{
    ffi::{c_int, c_ulong},
    sync::atomic::Ordering::Relaxed,
};

use ringway_qbman::{QUEUES, Retired, Schedule, Stage, Volatile, manager};

use super::{refused, result};
use crate::{
    abi::{qm_fqd, qm_mcc_initfq, qman_fq},
    argument::{Fq, In, Out},
    dma::find,
    handles,
    message::{
        CHANGING, FQRNI, NOT_EMPTY, OOS, ORDER_LIST, PARKED, RETIRED, SCHEDULED, fqs, note_retired,
        of_queue,
    },
    poll::VDQCR,
    settings::{CGE, WE_CONTEXTA, WE_CONTEXTB, WE_DESTWQ, WE_OAC, WE_TDTHRESH},
    thread::qman,
};

/// `QMAN_FQ_FLAG_*`.
pub const NO_ENQUEUE: u64 = 1;
const NO_MODIFY: u64 = 2;
pub const TO_DCPORTAL: u64 = 4;
const AS_IS: u64 = 0x10;
const DYNAMIC_FQID: u64 = 0x20;
/// What a program may say.
const FLAGS: u32 = 0x3f;
/// `QMAN_FQ_STATE_*` that `qman_fq_state` gives.
const CGR_EN: u64 = 0x1000_0000;
const STATES: u64 = CHANGING | NOT_EMPTY | ORDER_LIST | CGR_EN | VDQCR;
const BLOCK_OOS: u64 = CHANGING | NOT_EMPTY | ORDER_LIST;
/// `QMAN_FQ_DESTROY_PARKED`, `QMAN_INITFQ_FLAG_*`.
const DESTROY_PARKED: u32 = 1;
const SCHED: u32 = 1;
const LOCAL: u32 = 4;
/// The work queue of a queue that is local and names none.
const LOCAL_WQ: u16 = 4;

fn state_of(stage: Stage) -> c_int {
    match stage {
        Stage::OutOfService => OOS,
        Stage::Parked => PARKED,
        Stage::Scheduled => SCHEDULED,
        Stage::Retired => RETIRED,
    }
}

/// # Safety
/// As USDPAA says: room for an object, with its callbacks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_create_fq(fqid: u32, flags: u32, fq: *mut qman_fq) -> c_int {
    let create = || {
        let fq = Fq::new(fq).ok_or(-libc::EINVAL)?;
        let flags = c_ulong::from(flags & FLAGS);
        let mut fqid = fqid;
        if flags & DYNAMIC_FQID != 0 {
            fqid = manager().queue_ids.alloc(1, 1, false).map_err(|_| -libc::ENOMEM)?.0;
        } else if fqid == 0 || fqid >= QUEUES {
            return Err(-libc::EINVAL);
        }
        let Some(handle) = handles::add(fq) else {
            if flags & DYNAMIC_FQID != 0 {
                manager().queue_ids.release(fqid, 1);
            }
            return Err(-libc::ENOMEM);
        };
        fq.begin(fqid, flags, handle as usize);
        if flags & AS_IS != 0 && flags & NO_MODIFY == 0 {
            let (now, settings) = (manager().snapshot(fqid), manager().settings(fqid));
            let (now, settings) = (now.map_err(refused)?, settings.map_err(refused)?);
            fq.state().store(state_of(now.stage), Relaxed);
            let is_retired = now.stage == Stage::Retired;
            let left = u64::from(is_retired && now.frames > 0) * NOT_EMPTY;
            let member = u64::from(settings.group.is_some()) * CGR_EN;
            fq.flags().fetch_or(left | member, Relaxed);
        }
        Ok(())
    };
    result(create())
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_destroy_fq(fq: *mut qman_fq, flags: u32) {
    let Some(fq) = Fq::new(fq).filter(|fq| handles::of(*fq).is_some()) else { return };
    let is_done = match fq.state().load(Relaxed) {
        OOS => true,
        PARKED => flags & DESTROY_PARKED != 0,
        _ => false,
    };
    if !is_done {
        return;
    }
    qman((), |qman| {
        if qman.volatile.get() == Some(fq) {
            qman.volatile.set(None);
        }
    });
    handles::remove(fq);
    if fq.flags().load(Relaxed) & DYNAMIC_FQID != 0 {
        manager().queue_ids.release(fq.fqid(), 1);
    }
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_fq_fqid(fq: *mut qman_fq) -> u32 {
    Fq::new(fq).map_or(0, Fq::fqid)
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`, and room for what is asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_fq_state(fq: *mut qman_fq, state: Out<c_int>, flags: Out<u32>) {
    let Some(fq) = Fq::new(fq) else { return };
    state.put(fq.state().load(Relaxed));
    flags.put((fq.flags().load(Relaxed) & STATES) as u32);
}

/// A queue that a program may change.
///
/// # Errors
/// -EINVAL, also for one that is in none of these states; -EBUSY while it changes.
fn changeable(fq: *mut qman_fq, states: &[c_int]) -> Result<(Fq, u32), c_int> {
    let fq = Fq::new(fq).ok_or(-libc::EINVAL)?;
    let handle = handles::of(fq).ok_or(-libc::EINVAL)?;
    let flags = fq.flags().load(Relaxed);
    if flags & NO_MODIFY != 0 || !states.contains(&fq.state().load(Relaxed)) {
        return Err(-libc::EINVAL);
    }
    if flags & CHANGING != 0 {
        return Err(-libc::EBUSY);
    }
    Ok((fq, handle))
}

/// What was enqueued by this thread before is in its queues.
fn flush() {
    qman((), |qman| {
        if let Ok(mut portal) = qman.portal.try_borrow_mut() {
            portal.flush();
        }
    });
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`; options, of which only those fields are looked at that `we_mask` names, or
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_init_fq(
    fq: *mut qman_fq,
    flags: u32,
    opts: In<qm_mcc_initfq>,
) -> c_int {
    let init = || {
        let (fq, handle) = changeable(fq, &[OOS, PARKED])?;
        let (mut we_mask, mut fqd) =
            opts.get().map_or((0, qm_fqd::default()), |opts| (opts.we_mask, opts.fqd));
        if we_mask & WE_OAC != 0 && we_mask & WE_TDTHRESH != 0 {
            return Err(-libc::EINVAL);
        }
        if fq.flags().load(Relaxed) & TO_DCPORTAL == 0 {
            // The queue's handle comes with its frames, and its object's address is where their context is.
            fqd.context_b = handle;
            if we_mask & WE_CONTEXTA != 0 {
                let address = fq.ptr() as u64;
                let is_mapped = find(address as usize).is_some();
                let address = if is_mapped { address } else { 0 };
                fqd.context_a_hi = fqd.context_a_hi & 0xffff | (address >> 32 << 16) as u32;
                fqd.context_a_lo = address as u32;
            } else {
                (fqd.context_a_hi, fqd.context_a_lo) = (0, 0);
            }
            we_mask |= WE_CONTEXTA | WE_CONTEXTB;
        }
        if flags & LOCAL != 0 {
            let channel = qman(None, |qman| Some(qman.config.channel)).ok_or(-libc::ENODEV)?;
            let wq = if we_mask & WE_DESTWQ != 0 { fqd.dest_wq & 7 } else { LOCAL_WQ };
            fqd.dest_wq = channel << 3 | wq;
            we_mask |= WE_DESTWQ;
        }
        flush();
        let schedule = if flags & SCHED != 0 { Schedule::Scheduled } else { Schedule::Parked };
        let mut written = qm_fqd::default();
        let change = |settings: &mut ringway_qbman::Settings| {
            written = qm_fqd::from_bytes(settings.attributes);
            written.write(we_mask, &fqd);
            written.apply(settings);
        };
        manager().init(fq.fqid(), schedule, change).map_err(refused)?;
        let is_member = written.fq_ctrl & CGE != 0;
        fq.set_group(written.cgid.into());
        let before = fq.flags().load(Relaxed) & !CGR_EN;
        fq.flags().store(if is_member { before | CGR_EN } else { before }, Relaxed);
        fq.state().store(if flags & SCHED != 0 { SCHEDULED } else { PARKED }, Relaxed);
        Ok(())
    };
    result(init())
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_schedule_fq(fq: *mut qman_fq) -> c_int {
    let schedule = || {
        let (fq, _) = changeable(fq, &[PARKED])?;
        flush();
        manager().schedule(fq.fqid()).map_err(refused)?;
        fq.state().store(SCHEDULED, Relaxed);
        Ok(())
    };
    result(schedule())
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`, and room for flags, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_retire_fq(fq: *mut qman_fq, flags: Out<u32>) -> c_int {
    let retire = || {
        let (fq, handle) = changeable(fq, &[PARKED, SCHEDULED])?;
        let portal = qman(None, |qman| Some(qman.config.channel as u8)).ok_or(-libc::ENODEV)?;
        flush();
        // Before the message can come.
        fq.flags().fetch_or(CHANGING, Relaxed);
        match manager().retire(fq.fqid(), Some(portal)) {
            Ok(Retired::Later) => {
                flags.put(0);
                Ok(1)
            }
            Ok(Retired::Now(left)) => {
                let fqs = fqs(left);
                note_retired(fq, fqs);
                flags.put((fq.flags().load(Relaxed) & (NOT_EMPTY | ORDER_LIST)) as u32);
                if let Some(callback) = fq.callbacks().fqs {
                    let entry = of_queue(FQRNI, fq.fqid(), handle, fqs);
                    let portal = qman(std::ptr::null_mut(), |qman| qman.handle());
                    // SAFETY: the program's function, with its queue, and an entry that stays during the call.
                    unsafe { callback(portal, fq.ptr(), &entry) };
                }
                Ok(0)
            }
            Err(error) => {
                fq.flags().fetch_and(!CHANGING, Relaxed);
                Err(refused(error))
            }
        }
    };
    retire().unwrap_or_else(|error| error)
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_oos_fq(fq: *mut qman_fq) -> c_int {
    let oos = || {
        let (fq, _) = changeable(fq, &[RETIRED])?;
        if fq.flags().load(Relaxed) & BLOCK_OOS != 0 {
            return Err(-libc::EBUSY);
        }
        manager().out_of_service(fq.fqid()).map_err(refused)?;
        fq.state().store(OOS, Relaxed);
        Ok(())
    };
    result(oos())
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_fq_flow_control(fq: *mut qman_fq, xon: c_int) -> c_int {
    let control = || {
        let (fq, _) = changeable(fq, &[PARKED, SCHEDULED])?;
        manager().flow_control(fq.fqid(), xon != 0).map_err(refused)
    };
    result(control())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_shutdown_fq(fqid: u32) -> c_int {
    manager().shut_down(fqid, |_| {}).map_or(-libc::EINVAL, |()| 0)
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`, which stays until the dequeue is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_volatile_dequeue(fq: *mut qman_fq, _flags: u32, vdqcr: u32) -> c_int {
    /// The queue's number, which a program leaves out; the frames; and what comes first.
    const FQID: u32 = 0xff_ffff;
    const SDQCR_FIRST: u32 = 0x8000_0000;
    let begin = || {
        let fq = Fq::new(fq).filter(|fq| handles::of(*fq).is_some()).ok_or(-libc::EINVAL)?;
        if ![PARKED, RETIRED].contains(&fq.state().load(Relaxed)) || vdqcr & FQID != 0 {
            return Err(-libc::EINVAL);
        }
        if fq.flags().load(Relaxed) & VDQCR != 0 {
            return Err(-libc::EBUSY);
        }
        flush();
        qman(Err(-libc::ENODEV), |qman| {
            let frames = Some(vdqcr >> 24 & 0x3f).filter(|frames| *frames > 0);
            let is_last = vdqcr & SDQCR_FIRST != 0;
            let request = Volatile { queue: fq.fqid(), frames, is_last };
            if qman.volatile.get().is_some() {
                return Err(-libc::EBUSY);
            }
            qman.portal.borrow_mut().volatile(request).map_err(|error| match error {
                ringway_qbman::Error::Busy => -libc::EBUSY,
                _ => -libc::EINVAL,
            })?;
            fq.flags().fetch_or(VDQCR, Relaxed);
            qman.volatile.set(Some(fq));
            Ok(())
        })
    };
    result(begin())
}
