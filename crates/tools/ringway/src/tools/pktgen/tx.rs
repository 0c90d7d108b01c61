//! Sending: into rings, or to nowhere.

use super::dump::dump;
use super::options::{Mode, Options, how};
use super::paced::paced;
use super::packet::Packet;
use super::report::Counters;
use crate::error::Result;
use crate::flush::{Flush, pending};
use crate::fragmenter::publish;
use crate::run_loop::RunLoop;
use crate::tools::log::log;
use ringway::{Interest, NS_BUF_CHANGED, NS_INDIRECT, NS_MOREFRAG, NS_REPORT, Port};
use std::time::{Duration, Instant};

/// How long there may be no room before that is said.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes packets and sends none.
pub fn to_nowhere(
    options: &Options,
    run_loop: &RunLoop,
    counters: &Counters,
    packet: &mut Packet,
    share: u64,
) -> Result<()> {
    let start = Instant::now();
    paced(options, run_loop, share, |left| {
        let burst = left.min(options.burst as u64);
        let mut bytes = 0;
        for _ in 0..burst {
            bytes += packet.bytes().len() as u64;
            if packet.changes() {
                packet.step();
            }
        }
        counters.add(burst, bytes);
        Ok((burst, bytes))
    })?;
    counters.ran(start, Instant::now());
    Ok(())
}

/// Fills the transmit rings of a port.
pub struct Sender<'a> {
    port: &'a mut Port,
    options: &'a Options,
    run_loop: &'a RunLoop,
    counters: &'a Counters,
    packet: &'a mut Packet,
    /// Which slots' buffers hold the packet already, ring by ring.
    written: Vec<Vec<bool>>,
    /// Every packet is to be written, since it differs from the last or since that is asked for.
    anew: bool,
    /// Slots name the packet itself, which is read at the sync.
    indirect: bool,
    /// Of txseq: the number of the next packet.
    sequence: Option<u32>,
    /// Bytes a slot, at most.
    piece: usize,
    rings: usize,
}

impl<'a> Sender<'a> {
    pub fn new(
        port: &'a mut Port,
        options: &'a Options,
        run_loop: &'a RunLoop,
        counters: &'a Counters,
        packet: &'a mut Packet,
    ) -> Sender<'a> {
        let room = port.max_frame();
        let sequence = (options.mode == Mode::TxSeq).then_some(0);
        let rings = if sequence.is_some() { 1 } else { port.tx_rings() };
        let written =
            (0..rings).map(|ring| vec![false; port.tx(ring).slots().num_slots() as usize]);
        let differ = packet.changes() || sequence.is_some();
        Sender {
            written: written.collect(),
            anew: differ || options.fragments > 1 || options.how & how::COPY != 0,
            indirect: !differ && port.binding().fetches_indirect(),
            sequence,
            piece: options.fragment_size.unwrap_or(room).min(room),
            rings,
            port,
            options,
            run_loop,
            counters,
            packet,
        }
    }

    /// Sends the share, and waits until it was taken. Sequences have no end.
    pub fn send(&mut self, share: u64) -> Result<()> {
        let start = Instant::now();
        let share = if self.sequence.is_some() { 0 } else { share };
        paced(self.options, self.run_loop, share, |left| self.round(left))?;
        self.flush()?;
        self.counters.ran(start, Instant::now());
        Ok(())
    }

    /// A burst for each ring, of `left` packets at most; returns packets and bytes. Waits where there
    /// is room for none.
    fn round(&mut self, left: u64) -> Result<(u64, u64)> {
        let (mut packets, mut bytes) = (0, 0);
        if self.options.rate.is_some() {
            // There may be room for long after the port has gone.
            self.port.check(Interest::Tx)?;
        }
        for ring in 0..self.rings {
            let burst = (self.options.burst as u64).min(left - packets);
            let sent = self.burst(ring, burst);
            packets += sent.0;
            bytes += sent.1;
        }
        if packets == 0
            && !self.run_loop.await_port(self.port, Interest::Tx, PATIENCE)?
            && !self.run_loop.is_interrupted()
        {
            log!("sender_body", "poll timeout: the port takes no packets");
        }
        Ok((packets, bytes))
    }

    /// Hands over as much of a burst as there is room for; returns packets and bytes.
    fn burst(&mut self, ring: usize, burst: u64) -> (u64, u64) {
        let Sender { options, packet, .. } = self;
        let rubbish = options.how & how::RUBBISH != 0;
        let shown = (options.how & how::DUMP != 0).then(|| format!("{:p}", &self.written[ring]));
        let mut tx = self.port.tx(ring);
        let mut slots = tx.slots();
        let room = slots.held();
        let (mut used, mut packets, mut sent) = (0, 0, 0);
        while packets < burst {
            if let Some(sequence) = self.sequence {
                packet.begin_with(&sequence.to_be_bytes());
            }
            let bytes = packet.bytes();
            let piece = bytes.len().div_ceil(options.fragments).clamp(1, self.piece);
            let pieces = bytes.chunks(piece);
            if used + pieces.len() as u32 > room {
                break;
            }
            let mut at = 0;
            for part in pieces {
                let mut slot = slots.get(used);
                let written = &mut self.written[ring][slots.place(used) as usize];
                let stale = !*written || slot.flags & NS_BUF_CHANGED != 0;
                if self.indirect {
                    slot.ptr = part.as_ptr().addr() as u64;
                } else if !rubbish && (self.anew || stale) {
                    slots.write(used, 0, part);
                    *written = true;
                }
                at += part.len();
                slot.len = part.len() as u16;
                slot.flags = if at < bytes.len() { NS_MOREFRAG } else { 0 };
                if self.indirect {
                    slot.flags |= NS_INDIRECT;
                }
                slots.set(used, slot);
                if let Some(name) = &shown {
                    dump(name, slots.place(used), &slot, part);
                }
                used += 1;
            }
            packets += 1;
            sent += bytes.len() as u64;
            if packet.changes() {
                packet.step();
            }
            self.sequence = self.sequence.map(|now| now.wrapping_add(1));
        }
        if packets > 0 {
            let mut last = slots.get(used - 1);
            last.flags |= NS_REPORT;
            slots.set(used - 1, last);
            slots.advance(used);
            self.counters.add(packets, sent);
        }
        publish(&mut tx, packets < burst);
        (packets, sent)
    }

    /// Waits until the other side has taken everything, or the user has had enough.
    fn flush(&mut self) -> Result<()> {
        while !self.run_loop.is_interrupted() {
            self.port.poll(Interest::Tx);
            let pending = pending(self.port, self.rings);
            if pending == 0 {
                break;
            }
            let mut flush = Flush::new(self.port, self.rings, pending);
            self.run_loop.wait_for(&mut flush, Instant::now() + PATIENCE)?;
            self.port.check(Interest::Tx)?;
        }
        Ok(())
    }
}
