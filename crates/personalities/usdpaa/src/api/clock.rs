//! Settings of the hardware's, which are kept and do nothing; and the channels of pools and engines.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed},
};

use crate::argument::Out;

static CLOCK: AtomicU64 = AtomicU64::new(0);
static WPM: AtomicI32 = AtomicI32::new(0);

#[unsafe(no_mangle)]
pub static mut qm_channel_pool1: u16 = *ringway_qbman::POOL_CHANNELS.start();
#[unsafe(no_mangle)]
pub static mut qm_channel_caam: u16 = 0x80;
#[unsafe(no_mangle)]
pub static mut qm_channel_pme: u16 = 0xa0;

/// # Safety
/// As USDPAA says: room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qm_get_clock(clock_hz: Out<u64>) -> c_int {
    match CLOCK.load(Relaxed) {
        0 => -libc::ENODEV,
        hz if clock_hz.put(hz) => 0,
        _ => -libc::EINVAL,
    }
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qm_set_clock(clock_hz: u64) -> c_int {
    CLOCK.store(clock_hz, Relaxed);
    0
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_set_wpm(wpm_enable: c_int) -> c_int {
    WPM.store((wpm_enable != 0).into(), Relaxed);
    0
}

/// # Safety
/// As USDPAA says: room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_get_wpm(wpm_enable: Out<c_int>) -> c_int {
    if wpm_enable.put(WPM.load(Relaxed)) { 0 } else { -libc::EINVAL }
}
