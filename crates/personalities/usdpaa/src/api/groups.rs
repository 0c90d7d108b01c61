//! Congestion groups.

use std::ffi::c_int;

use ringway_qbman::{GROUPS, GroupSettings, Unit, manager};

use super::{refused, result};
use crate::{
    abi::{mc_cgr, qm_mcc_initcgr, qm_mcr_querycgr, qm_mcr_querycongestion, qman_cgr},
    argument::{Cgr, In, Out},
    thread::qman,
};

/// `QMAN_CGR_FLAG_USE_INIT`.
const USE_INIT: u32 = 1;
/// `QM_CGR_WE_*`, from the parameters of green on.
const WE_WR_PARM: [u16; 3] = [0x400, 0x200, 0x100];
const WE_WR_EN: [u16; 3] = [0x80, 0x40, 0x20];
const WE_CSCN_EN: u16 = 0x10;
const WE_CSCN_TARG: u16 = 8;
const WE_CSTD_EN: u16 = 4;
const WE_CS_THRES: u16 = 2;
const WE_MODE: u16 = 1;

fn to_bytes(cgr: mc_cgr) -> [u8; 25] {
    // SAFETY: packed, of integers alone.
    unsafe { std::mem::transmute(cgr) }
}

fn from_bytes(bytes: [u8; 25]) -> mc_cgr {
    // SAFETY: packed, of integers alone.
    unsafe { std::mem::transmute(bytes) }
}

/// Writes the fields that `we_mask` names.
fn write(cgr: &mut mc_cgr, we_mask: u16, from: &mc_cgr) {
    let names = |bit| we_mask & bit != 0;
    let (mut parameters, given) = (cgr.wr_parm, from.wr_parm);
    for colour in 0..3 {
        if names(WE_WR_PARM[colour]) {
            parameters[colour] = given[colour];
        }
        if names(WE_WR_EN[colour]) {
            cgr.wr_en[colour] = from.wr_en[colour];
        }
    }
    cgr.wr_parm = parameters;
    if names(WE_CSCN_EN) {
        cgr.cscn_en = from.cscn_en;
    }
    if names(WE_CSCN_TARG) {
        cgr.cscn_targ = from.cscn_targ;
    }
    if names(WE_CSTD_EN) {
        cgr.cstd_en = from.cstd_en;
    }
    if names(WE_CS_THRES) {
        cgr.cs_thres = from.cs_thres & 0x1fff;
    }
    if names(WE_MODE) {
        cgr.mode = from.mode;
    }
}

/// Changes a group as options say; from its settings, or from none.
fn change(number: u32, flags: u32, opts: In<qm_mcc_initcgr>) -> Result<(), c_int> {
    let group = manager().group(number).map_err(|_| -libc::EINVAL)?;
    let before = if flags & USE_INIT != 0 { [0; 25] } else { group.settings().attributes };
    let mut cgr = from_bytes(before);
    if let Some(opts) = opts.get() {
        write(&mut cgr, opts.we_mask, &{ opts.cgr });
    }
    let (exponent, mantissa) = (cgr.cs_thres & 0x1f, u64::from(cgr.cs_thres >> 5 & 0xff));
    let settings = GroupSettings {
        unit: if cgr.mode & 1 != 0 { Unit::Frames } else { Unit::Bytes },
        threshold: (mantissa > 0).then_some(mantissa << exponent),
        drops: cgr.cstd_en != 0,
        attributes: to_bytes(cgr),
    };
    manager().set_group(number, settings).map_err(refused)
}

fn create(cgr: *mut qman_cgr, flags: u32, opts: In<qm_mcc_initcgr>) -> Result<(), c_int> {
    let cgr = Cgr::new(cgr).ok_or(-libc::EINVAL)?;
    qman(Err(-libc::ENODEV), |qman| {
        if qman.groups.borrow().iter().any(|(other, _)| *other == cgr) {
            return Err(-libc::EBUSY);
        }
        change(cgr.number(), flags, opts)?;
        cgr.set_channel(qman.config.channel);
        qman.groups.borrow_mut().push((cgr, false));
        Ok(())
    })
}

/// # Safety
/// As USDPAA says: an object with its number and its callback, which stays until it is deleted; options, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_create_cgr(
    cgr: *mut qman_cgr,
    flags: u32,
    opts: In<qm_mcc_initcgr>,
) -> c_int {
    result(create(cgr, flags, opts))
}

/// # Safety
/// As USDPAA says: an object with its number and its callback, which stays until it is deleted; options, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_create_cgr_to_dcp(
    cgr: *mut qman_cgr,
    flags: u32,
    _dcp_portal: u16,
    opts: In<qm_mcc_initcgr>,
) -> c_int {
    // Interfaces are told of congestion by rejections.
    result(create(cgr, flags, opts))
}

/// # Safety
/// As USDPAA says: an object of `qman_create_cgr`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_delete_cgr(cgr: *mut qman_cgr) -> c_int {
    let Some(cgr) = Cgr::new(cgr) else { return -libc::EINVAL };
    qman(-libc::ENODEV, |qman| {
        let mut groups = qman.groups.borrow_mut();
        match groups.iter().position(|(other, _)| *other == cgr) {
            Some(place) => {
                groups.remove(place);
                0
            }
            // Of another portal, or of none.
            None => -libc::EINVAL,
        }
    })
}

/// # Safety
/// As USDPAA says: an object with its number; options, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_modify_cgr(
    cgr: *mut qman_cgr,
    flags: u32,
    opts: In<qm_mcc_initcgr>,
) -> c_int {
    let modify = || change(Cgr::new(cgr).ok_or(-libc::EINVAL)?.number(), flags, opts);
    result(modify())
}

/// # Safety
/// As USDPAA says: an object with its number, and room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_query_cgr(cgr: *mut qman_cgr, answer: Out<qm_mcr_querycgr>) -> c_int {
    let query = || {
        let number = Cgr::new(cgr).ok_or(-libc::EINVAL)?.number();
        let group = manager().group(number).map_err(|_| -libc::EINVAL)?;
        let mut cgr = from_bytes(group.settings().attributes);
        cgr.cs = group.is_congested().into();
        let count = group.count();
        let (high, low) = ((count >> 32) as u8, count as u32);
        // No average is kept: what is in it now is the best there is.
        let is_put = answer.put(qm_mcr_querycgr {
            cgr,
            i_bcnt_hi: high,
            i_bcnt_lo: low,
            a_bcnt_hi: high,
            a_bcnt_lo: low,
            ..qm_mcr_querycgr::default()
        });
        is_put.then_some(()).ok_or(-libc::EINVAL)
    };
    result(query())
}

/// # Safety
/// As USDPAA says: room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_query_congestion(answer: Out<qm_mcr_querycongestion>) -> c_int {
    let mut state = [0u32; 8];
    for number in 0..GROUPS {
        if manager().group(number as u32).is_ok_and(|group| group.is_congested()) {
            state[number / 32] |= 0x8000_0000 >> (number % 32);
        }
    }
    let is_put = answer.put(qm_mcr_querycongestion { reserved: [0; 32], state });
    if is_put { 0 } else { -libc::EINVAL }
}
