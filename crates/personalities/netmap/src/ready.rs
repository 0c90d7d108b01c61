//! What `poll` reports of a netmap descriptor, and the syncs that it makes (S-POLL).

use std::os::fd::RawFd;

use libc::{POLLERR, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM, c_short};
use ringway::Binding;
use ringway_abi::{Dir, NR_NO_TX_POLL};

use crate::{netmap_fd::NetmapFd, request, stream};

// S-POLL-1.
const TX: c_short = POLLOUT | POLLWRNORM;
const RX: c_short = POLLIN | POLLRDNORM;

/// The directions that `events` asks for.
pub fn wanted(events: c_short) -> impl Iterator<Item = Dir> {
    let tx = (events & TX != 0).then_some(Dir::Tx);
    let rx = (events & RX != 0).then_some(Dir::Rx);
    tx.into_iter().chain(rx)
}

/// Syncs as `poll` does, and tells what is ready of `events`.
pub fn look(netmap: &NetmapFd, fd: RawFd, events: c_short) -> c_short {
    match netmap.binding(fd) {
        Some(binding) if !binding.in_csb_mode() => {
            let is_gone = netmap.is_gone();
            // What had come is received before the end is told.
            let events = if is_gone { events & RX } else { events };
            match transmit(binding, events) | receive(binding, events) {
                0 if is_gone => POLLERR,
                ready => ready,
            }
        }
        // S-LIFE-4, S-CSB-4: unbound, gone, or in CSB mode.
        _ => POLLERR,
    }
}

/// Where the rings stand that `events` are about: another number when they have moved.
pub fn position(binding: &Binding, events: c_short) -> u64 {
    /// Odd and large: tails that move by small steps do not make up for each other.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let rings = wanted(events).flat_map(|dir| binding.rings(dir));
    let tails = rings.map(|ring| u64::from(ring.kring().reconciled()[1]));
    tails.fold(1, |position, tail| (position ^ tail).wrapping_mul(STEP))
}

/// S-POLL-2, S-POLL-3. A sync that is an error ends neither those of other rings nor the rx part.
fn transmit(binding: &Binding, events: c_short) -> c_short {
    let mut wanted = events & TX != 0;
    if !wanted && request::flags(binding) & NR_NO_TX_POLL != 0 {
        return 0;
    }
    let mut found = 0;
    for ring in binding.rings(Dir::Tx) {
        if !wanted && !ring.kring().pending() {
            continue;
        }
        if ring.sync().is_error() {
            found |= POLLERR;
        } else if wanted && ring.kring().ready() {
            found |= events & TX;
            wanted = false;
        }
    }
    found
}

/// S-POLL-4.
fn receive(binding: &Binding, events: c_short) -> c_short {
    if events & RX == 0 {
        return 0;
    }
    stream::note_receiver(binding);
    let mut good = binding.sync(Dir::Rx);
    // What went from the host's rings to the interface's is on its way at once (S-FWD-3).
    if binding.forwards() {
        good &= send_pending(binding);
    }
    let ready = if binding.ready(Dir::Rx) { events & RX } else { 0 };
    ready | if good { 0 } else { POLLERR }
}

/// Syncs the tx rings that have something to send. False: a sync was an error.
#[cold]
fn send_pending(binding: &Binding) -> bool {
    let pending = binding.rings(Dir::Tx).iter().filter(|ring| ring.kring().pending());
    pending.fold(true, |good, ring| good & !ring.sync().is_error())
}
