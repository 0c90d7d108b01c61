//! What each ring of a port has counted, by itself and by the kernel.

use std::sync::atomic::Ordering::Relaxed;

use ringway_abi::Dir;
use ringway_nic_setup::Xsk;
use ringway_packet::count_drops;
use ringway_proto::{KernelCounters, RingInfo};
use ringway_xdp::{Lost, statistics};
use rustix::fd::AsFd;

use crate::{
    page::page,
    port::{Port, Ring},
    queues::Socket,
};

/// Bytes of a ring in a list, at most.
const RING_BYTES: usize = 190;

impl Port {
    /// A page of its rings, tx before rx, those of the host last.
    pub fn rings_info(&self, from: u32) -> (Vec<RingInfo>, Option<u32>) {
        let rings = [Dir::Tx, Dir::Rx].into_iter().flat_map(|dir| self.rings_of(dir));
        page((0..).zip(rings).skip(from as usize), |_| RING_BYTES)
    }

    /// Those of one direction, those of the host last.
    pub(crate) fn rings_of(&self, dir: Dir) -> impl Iterator<Item = RingInfo> {
        of_direction(self, dir)
    }
}

fn of_direction(port: &Port, dir: Dir) -> impl Iterator<Item = RingInfo> {
    let nic = port.nic_rings(dir).len();
    port.rings(dir).iter().enumerate().map(move |(i, ring)| {
        let host = i >= nic;
        let index = if host { i - nic } else { i } as u16;
        let socket = port.backend.socket(host, index.into());
        one(ring, dir, socket, RingInfo { host, index, ..RingInfo::default() })
    })
}

fn one(ring: &Ring, dir: Dir, socket: Option<&Socket>, base: RingInfo) -> RingInfo {
    let (lost, kernel) = match socket {
        Some(Socket::Xdp(Xsk { socket, .. })) => {
            // It fails for a broken descriptor alone.
            let all = statistics(&socket.fd).unwrap_or_default();
            let none = KernelCounters::default();
            let (lost, kernel) = match dir {
                Dir::Tx => {
                    let (invalid, empty) = (all.tx_invalid_descs, all.tx_ring_empty);
                    let kernel = KernelCounters {
                        tx_invalid_descs: invalid,
                        tx_ring_empty_descs: empty,
                        ..none
                    };
                    (Lost::sending(&socket.fd), kernel)
                }
                Dir::Rx => {
                    let kernel = KernelCounters {
                        rx_dropped: all.rx_dropped,
                        rx_invalid_descs: all.rx_invalid_descs,
                        rx_ring_full: all.rx_ring_full,
                        rx_fill_ring_empty_descs: all.rx_fill_ring_empty,
                        ..none
                    };
                    (Lost::receiving(&socket.fd, socket.frags), kernel)
                }
            };
            (lost, Some(kernel))
        }
        Some(Socket::Packet { rx, .. }) if dir == Dir::Rx => {
            // Its program may be stopped, or look at its ring no more.
            count_drops(rx.fd.as_fd(), &ring.kring);
            (Lost::default(), None)
        }
        _ => (Lost::default(), None),
    };
    let counted = ring.kring.counters();
    RingInfo {
        receives: dir == Dir::Rx,
        users: ring.users,
        slots: ring.kring.ring().num_slots(),
        fill: ring.kring.fill(),
        packets: counted.packets.load(Relaxed),
        // Those of a switch's port are counted by the worker.
        bytes: counted.bytes.load(Relaxed).wrapping_add(ring.kring.csb().service.bytes()),
        bad_index: counted.bad_index.load(Relaxed),
        bad_slot: counted.bad_slot.load(Relaxed).wrapping_add(lost.bad_slot),
        too_long: counted.too_long.load(Relaxed).wrapping_add(lost.too_long),
        ring_full: counted.ring_full.load(Relaxed).wrapping_add(lost.ring_full),
        too_short: counted.too_short.load(Relaxed),
        bad_offload: ring.kring.more_counters().bad_offload.load(Relaxed),
        kicks: counted.kicks.load(Relaxed),
        kernel,
        ..base
    }
}
