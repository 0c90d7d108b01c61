//! Rings come and go.

use std::ffi::c_int;
use std::io::{self, Write};

use super::of_ring;
use crate::{
    abi::*,
    argument::{Handle, Out, Text},
    errno::set_errno,
    ring::Ring,
};

fn open(device: Option<&str>, caplen: u32, flags: u32) -> Handle {
    let ring = device.ok_or(libc::EINVAL).and_then(|device| Ring::open(device, caplen, flags));
    match ring {
        Ok(ring) => {
            set_errno(0);
            Handle::new(ring)
        }
        Err(errno) => {
            set_errno(if errno == 0 { libc::ENODEV } else { errno });
            Handle::NULL
        }
    }
}

/// # Safety
/// As PF_RING says: a name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_open(device: Text, caplen: u32, flags: u32) -> Handle {
    open(device.get().as_deref(), caplen, flags)
}

/// # Safety
/// As PF_RING says: a name, and room for 64 rings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_open_multichannel(
    device: Text,
    caplen: u32,
    flags: u32,
    rings: Out<Handle>,
) -> u8 {
    let Some(device) = device.get() else { return 0 };
    let Some(probe) = open(Some(&device), caplen, flags).take() else { return 0 };
    let channels = probe.sources.first().map_or(1, |source| source.queues);
    drop(probe);
    let mut opened = 0;
    while opened < channels.min(MAX_NUM_RX_CHANNELS as u8) {
        let ring = open(Some(&format!("{device}@{opened}")), caplen, flags);
        if ring.get().is_none() {
            break;
        }
        if !rings.at(opened.into()).put(ring) {
            drop(ring.take());
            break;
        }
        opened += 1;
    }
    opened
}

/// # Safety
/// As PF_RING says: the ring is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_close(ring: Handle) {
    if let Some(ring) = ring.take() {
        ring.shut_down();
        ring.stop_rule_thread();
    }
}

of_ring! {
    fn pfring_shutdown() -> (), else (), |ring| ring.shut_down();
    fn pfring_enable_ring() -> c_int, else ERROR_GENERIC, |ring| {
        ring.enable();
        0
    };
    fn pfring_disable_ring() -> c_int, else ERROR_GENERIC, |ring| {
        ring.set_enabled(false);
        ring.stop_rule_thread();
        0
    };
    fn pfring_bind(_device: Text) -> c_int, else ERROR_GENERIC, |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_breakloop() -> (), else (), |ring| ring.break_loop();
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_config(priority: u16) {
    // SAFETY: a number, which the kernel checks.
    let is_set = unsafe {
        let parameters = libc::sched_param { sched_priority: priority.into() };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters)
    };
    if is_set != 0 {
        let error = io::Error::last_os_error();
        let _ = writeln!(io::stderr(), "libpfring: no real-time priority: {error}");
    }
}
