//! Ports that sockets have rings of.

use ringway::{Port, explain};
use ringway_abi::Dir;
use ringway_errno::errno;

use crate::device::Device;

/// Slots of each ring of a port that is made for a socket. A mover that shares a CPU with the program and others waits
/// for it now and then, and more comes in that time than 1024 slots hold.
const SLOTS: u32 = 4096;

/// Opens the rings of one direction of a port for this socket alone: all, or those of one queue pair.
pub fn open(name: &str, queue: Option<u16>, dir: Dir) -> Result<Device, i32> {
    let options = Port::options().exclusive().tx_slots(SLOTS).rx_slots(SLOTS).or_default_slots();
    let options = match dir {
        Dir::Rx => options.rx_only(),
        Dir::Tx => options.tx_only(),
    };
    let options = match queue {
        Some(queue) => options.ring(queue),
        None => options,
    };
    let opened = options.open_registered(name);
    if opened.as_ref().is_ok_and(|port| port.binding().keeps_traffic()) {
        ringway_interpose::close_at_exit();
    }
    opened.map(|port| Device::Port(Box::new(port))).map_err(|error| {
        explain(&error);
        match (errno(error.cause()), queue) {
            // There is no such queue.
            (libc::EINVAL, Some(_)) => libc::EOPNOTSUPP,
            (libc::ENXIO | libc::ENOENT, _) => libc::ENODEV,
            (errno, _) => errno,
        }
    })
}
