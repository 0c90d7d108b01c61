//! One thread of `pkt-gen`: a port or what takes its place, and what to do with it.

use super::options::{Mode, Options};
use super::packet::Packet;
use super::raw::Raw;
use super::report::Counters;
use super::{echo, raw, rx, tx};
use crate::error::Result;
use crate::run_loop::RunLoop;
use crate::tools::log::log;
use ringway::Port;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Where packets go to or come from.
pub enum Packets {
    Null,
    Raw(Raw),
    Port(Box<Port>),
}

pub struct Worker<'a> {
    pub options: &'a Options,
    pub run_loop: &'a RunLoop,
    pub counters: &'a Counters,
    pub packets: Packets,
    pub packet: Packet,
    /// Packets that are this thread's; 0: any number.
    pub share: u64,
    /// Bytes of the port's virtio-net header.
    pub header: usize,
}

impl Worker<'_> {
    pub fn run(&mut self) -> Result<()> {
        let Worker { options, run_loop, counters, packets, packet, share, header } = self;
        let port = match packets {
            Packets::Null => return tx::to_nowhere(options, run_loop, counters, packet, *share),
            Packets::Raw(device) if options.mode == Mode::Tx => {
                return raw::send(device, options, run_loop, counters, packet, *share);
            }
            Packets::Raw(device) => {
                return raw::receive(device, options, run_loop, counters, *share);
            }
            Packets::Port(port) => port,
        };
        match options.mode {
            Mode::Tx | Mode::TxSeq => {
                tx::Sender::new(port, options, run_loop, counters, packet).send(*share)
            }
            Mode::Rx | Mode::RxSeq => {
                rx::Receiver::new(port, options, run_loop, counters, *header).receive(*share)
            }
            Mode::Ping => echo::ping(port, run_loop, packet, *share),
            Mode::Pong => echo::pong(port, options, run_loop, counters, *header),
        }
    }
}

/// Puts thread `id` on its CPU, if there is to be one.
pub fn pin(options: &Options, id: usize) {
    let Some(first) = options.cpu else { return };
    let present = std::thread::available_parallelism().map_or(1, usize::from);
    let modulo = if options.cpus == 0 { present } else { options.cpus.min(present) };
    let mut set = CpuSet::new();
    set.set(first + id % modulo);
    if let Err(error) = sched_setaffinity(None, &set) {
        log!("setaffinity", "Unable to set affinity: {error}");
    }
}
