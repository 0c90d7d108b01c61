//! The port that a socket is bound to: one direction of it.

use ringway::Port;
use ringway_abi::Dir;
use ringway_errno::errno;

/// Opens the rings of one direction of a port for this socket alone: all, or those of one queue pair.
pub fn open(name: &str, queue: Option<u16>, dir: Dir) -> Result<Port, i32> {
    let options = Port::options().exclusive();
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
    opened.map_err(|error| {
        if std::env::var_os("RINGWAY_VERBOSE").is_some() {
            eprintln!("ringway: {error}");
        }
        match (errno(error.cause()), queue) {
            // There is no such queue.
            (libc::EINVAL, Some(_)) => libc::EOPNOTSUPP,
            (libc::ENXIO | libc::ENOENT, _) => libc::ENODEV,
            (errno, _) => errno,
        }
    })
}

/// Whether nothing will move any more: the interface has gone, or the daemon.
pub fn has_gone(port: &Port, dir: Dir) -> bool {
    port.binding().fails(dir)
}
