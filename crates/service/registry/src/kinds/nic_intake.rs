//! What a NIC's port takes of what its interface receives, and what it has got of that.

use ringway_abi::Dir;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
};

use crate::{
    kinds::{PortBackend, nic::Nic, nic_sockets::Sockets},
    port::Port,
    queues::Socket,
    registry::Registry,
};

/// Which frames come to a port.
#[derive(Clone, Copy)]
pub(crate) struct Intake {
    /// Queues by which the interface receives, and those of them that are redirected to the port's programs.
    queues: usize,
    redirected: usize,
    /// A filter, or an action program, decides.
    is_selected: bool,
    /// The interface has a link.
    has_link: bool,
    /// Frames may be lost that are longer than buffers.
    loses_by_length: bool,
}

impl Intake {
    /// Whether a port without a frame is to be wondered at while its interface receives some.
    pub fn is_all(&self) -> bool {
        let &Intake { queues, redirected, is_selected, has_link, loses_by_length } = self;
        redirected > 0 && redirected >= queues && !is_selected && has_link && !loses_by_length
    }
}

impl Nic {
    /// `None`: its programs receive nothing.
    pub(crate) fn intake(registry: &Registry, port: &Port) -> Option<Intake> {
        let nic = port.get::<Nic>().filter(|_| !port.gone)?;
        let sockets = nic.sockets.as_ref().filter(|sockets| sockets.is_any_redirected())?;
        let added = nic.added_queues(port).len();
        Some(Intake {
            queues: nic.interface.rx_queues as usize + added,
            redirected: sockets.redirected_queues().len(),
            is_selected: sockets.rx_rules.iter().any(|rule| rule.selects()),
            has_link: nic.has_link(),
            loses_by_length: Nic::lost_by_mtu(registry, port).is_some(),
        })
    }

    /// Whether its interface receives frames, and the port gets none.
    pub(crate) fn gets_nothing(&self) -> bool {
        self.sockets.as_ref().is_some_and(|sockets| sockets.arrivals.are_missing())
    }

    /// Frames that its receive rings were given, or that were dropped at them, as the rings and the kernel's sockets
    /// count them.
    pub(crate) fn got(port: &Port) -> u64 {
        let all = port.rings_of(Dir::Rx).filter(|ring| !ring.host);
        all.fold(0, |sum: u64, ring| {
            let kernel = ring.kernel.unwrap_or_default();
            let counts = [
                ring.packets,
                ring.bad_slot,
                ring.too_long,
                ring.ring_full,
                ring.too_short,
                ring.bad_offload,
                kernel.rx_dropped,
                kernel.rx_invalid_descs,
                kernel.rx_ring_full,
                kernel.rx_fill_ring_empty_descs,
            ];
            // A program may have written anything there.
            counts.into_iter().fold(sum, u64::wrapping_add)
        })
    }
}

impl Sockets {
    /// Whether received frames wait in a socket's ring: the program does not read them.
    pub(crate) fn are_frames_waiting(&self) -> bool {
        self.all().any(|(_, socket)| {
            let fd = match socket {
                Socket::Xdp(xsk) => xsk.socket.fd.as_fd(),
                Socket::Packet { rx, .. } => rx.fd.as_fd(),
            };
            let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            // What cannot be told is not held against the interface.
            poll(&mut polled, Some(&at_once)).is_err()
                || polled[0].revents().contains(PollFlags::IN)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_takes_all_or_is_not_watched() {
        let all = Intake {
            queues: 2,
            redirected: 2,
            is_selected: false,
            has_link: true,
            loses_by_length: false,
        };
        for (what, intake, expected) in [
            ("all", all, true),
            ("the interface has fewer queues by now", Intake { queues: 1, ..all }, true),
            ("nothing is redirected", Intake { redirected: 0, queues: 0, ..all }, false),
            ("one queue of two", Intake { redirected: 1, ..all }, false),
            ("queues were added", Intake { queues: 4, ..all }, false),
            ("a filter or an action program", Intake { is_selected: true, ..all }, false),
            ("no link", Intake { has_link: false, ..all }, false),
            ("frames that fit no buffer", Intake { loses_by_length: true, ..all }, false),
        ] {
            assert_eq!(intake.is_all(), expected, "{what}");
        }
    }
}
