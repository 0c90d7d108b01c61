//! How queues and channels are.

use std::ffi::c_int;

use ringway_qbman::{Error, Stage, manager};

use super::result;
use crate::{
    abi::{qm_fqd, qm_mcr_queryfq_np, qm_mcr_querywq, qman_fq},
    argument::{Fq, Out},
};

fn fqid(fq: *mut qman_fq) -> Result<u32, c_int> {
    Fq::new(fq).map(Fq::fqid).ok_or(-libc::EINVAL)
}

fn failed(error: Error) -> c_int {
    match error {
        Error::NoQueue(_) => -libc::ERANGE,
        _ => -libc::EIO,
    }
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`, and room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_query_fq(fq: *mut qman_fq, fqd: Out<qm_fqd>) -> c_int {
    let query = || {
        let settings = manager().settings(fqid(fq)?).map_err(failed)?;
        let is_put = fqd.put(qm_fqd::from_bytes(settings.attributes));
        is_put.then_some(()).ok_or(-libc::EINVAL)
    };
    result(query())
}

/// # Safety
/// As USDPAA says: an object of `qman_create_fq`, and room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_query_fq_np(fq: *mut qman_fq, np: Out<qm_mcr_queryfq_np>) -> c_int {
    let query = || {
        let now = manager().snapshot(fqid(fq)?).map_err(failed)?;
        // `QM_MCR_NP_STATE_*`.
        let state = match now.stage {
            Stage::OutOfService => 0,
            Stage::Retired => 1,
            Stage::Parked => 4,
            Stage::Scheduled if now.is_held => 5,
            Stage::Scheduled if now.is_listed => 3,
            Stage::Scheduled => 2,
        };
        let [a, b, c, _] = now.frames.to_ne_bytes();
        let is_put = np.put(qm_mcr_queryfq_np {
            state,
            odp_seq: now.sequence,
            orp_nesn: now.expected,
            byte_cnt: u32::try_from(now.bytes).unwrap_or(u32::MAX),
            frm_cnt: [a, b, c],
            ..qm_mcr_queryfq_np::default()
        });
        is_put.then_some(()).ok_or(-libc::EINVAL)
    };
    result(query())
}

/// # Safety
/// As USDPAA says: room, with a channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_query_wq(_query_dedicated: u8, wq: Out<qm_mcr_querywq>) -> c_int {
    let query = || {
        let mut answer = wq.get().ok_or(-libc::EINVAL)?;
        answer.wq_len = manager().lengths(answer.channel_wq >> 3).map_err(|_| -libc::EIO)?;
        wq.put(answer);
        Ok(())
    };
    result(query())
}
