//! Portals of threads: `fsl_usd.h`, and what `fsl_qman.h` and `fsl_bman.h` say of them.

use std::{
    ffi::c_int,
    os::fd::AsRawFd,
    ptr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use ringway_qbman::manager;

use super::result;
use crate::{
    abi::{bman_portal_config, portal_config},
    message::SOURCES,
    thread::{Bman, CPUS, Qman, bman, channel_of, qman},
};

/// `QBMAN_ANY_PORTAL_IDX`.
const ANY: u32 = u32::MAX;
/// `BM_PIRQ_*`: changes of depletion, the release ring.
const BSCN: u32 = 1;
const RCRI: u32 = 2;

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_thread_init() -> c_int {
    result(Qman::begin(None))
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_thread_init_idx(idx: u32) -> c_int {
    result(Qman::begin((idx != ANY).then_some(idx)))
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_thread_finish() -> c_int {
    result(Qman::finish())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_thread_init() -> c_int {
    result(Bman::begin(None))
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_thread_init_idx(idx: u32) -> c_int {
    result(Bman::begin((idx != ANY).then_some(idx)))
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_thread_finish() -> c_int {
    result(Bman::finish())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_thread_fd() -> c_int {
    qman(-libc::ENODEV, |qman| qman.notifier.fd().as_raw_fd())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_thread_fd() -> c_int {
    bman(-libc::ENODEV, |bman| bman.notifier.fd().as_raw_fd())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_thread_irq() {
    qman((), |qman| {
        qman.notifier.has_been_read();
        qman.arm();
    });
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_thread_irq() {
    bman((), |bman| {
        bman.notifier.has_been_read();
        bman.arm();
    });
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_global_init() -> c_int {
    manager();
    0
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_global_init() -> c_int {
    static DONE: AtomicBool = AtomicBool::new(false);
    manager();
    if DONE.swap(true, Relaxed) { -libc::EBUSY } else { 0 }
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_get_portal_config() -> *const portal_config {
    qman(ptr::null(), |qman| &raw const *qman.config)
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_get_portal_config() -> *const bman_portal_config {
    bman(ptr::null(), |bman| &raw const *bman.config)
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_affine_cpus() -> *const libc::cpu_set_t {
    CPUS.as_ptr().cast()
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_affine_cpus() -> *const libc::cpu_set_t {
    CPUS.as_ptr().cast()
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_affine_channel(cpu: c_int) -> u16 {
    match usize::try_from(cpu) {
        Ok(cpu) => channel_of(cpu).unwrap_or(0),
        Err(_) => qman(0, |qman| qman.config.channel),
    }
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_irqsource_get() -> u32 {
    qman(0, |qman| qman.sources.get())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_irqsource_add(bits: u32) -> c_int {
    qman(-libc::ENODEV, |qman| {
        qman.sources.set(qman.sources.get() | bits & SOURCES);
        qman.arm();
        // A thread that asks for interrupts is going to sleep.
        crate::fman::rely_on_workers();
        0
    })
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_irqsource_remove(bits: u32) -> c_int {
    qman(-libc::ENODEV, |qman| {
        qman.sources.set(qman.sources.get() & !bits);
        qman.portal.borrow().disarm(&qman.notifier);
        qman.arm();
        0
    })
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_irqsource_get() -> u32 {
    bman(0, |bman| bman.sources.get())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_irqsource_add(bits: u32) -> c_int {
    bman(-libc::ENODEV, |bman| {
        bman.sources.set(bman.sources.get() | bits & (BSCN | RCRI));
        bman.arm();
        0
    })
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_irqsource_remove(bits: u32) -> c_int {
    bman(-libc::ENODEV, |bman| {
        bman.sources.set(bman.sources.get() & !bits);
        manager().pools.disarm(&bman.notifier);
        bman.arm();
        0
    })
}
