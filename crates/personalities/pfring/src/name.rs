//! Numbers for ports: what PF_RING calls the index of an interface. Those of interfaces are the kernel's; those of
//! ports are this process's own, far beyond them.

use std::{
    ffi::c_int,
    sync::{Mutex, PoisonError},
};

const FIRST: c_int = 1 << 24;

static PORTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The number of a port, the same whenever it is asked for.
pub fn index_of(port: &str) -> c_int {
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = ports.iter().position(|known| known == port).unwrap_or_else(|| {
        ports.push(port.into());
        ports.len() - 1
    });
    FIRST.saturating_add(c_int::try_from(at).unwrap_or(c_int::MAX))
}

/// The device that a program means by a number.
pub fn device_of(index: c_int) -> Option<String> {
    if index >= FIRST {
        let ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
        return ports.get(usize::try_from(index - FIRST).ok()?).cloned();
    }
    let socket = ringway_packet::socket::new().ok()?;
    rustix::net::netdevice::index_to_name_inlined(&socket, u32::try_from(index).ok()?)
        .ok()
        .map(|name| name.as_str().to_owned())
}
