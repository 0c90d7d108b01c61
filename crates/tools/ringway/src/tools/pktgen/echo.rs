//! Round trips: `ping` sends one packet at a time and `pong` sends it back.

use super::options::Options;
use super::packet::Packet;
use super::report::Counters;
use crate::error::Result;
use crate::forward::has_packets;
use crate::fragmenter::publish;
use crate::reflect::reflect;
use crate::run_loop::RunLoop;
use crate::tools::log::log;
use ringway::{Interest, Port, Turns};
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);
const INTERVAL: Duration = Duration::from_secs(1);
/// Where a ping's sequence number is in its frame; its time, in seconds and nanoseconds, follows.
const SEQUENCE_AT: usize = 42;

/// Round-trip times in nanoseconds.
struct Trips {
    count: u64,
    total: u64,
    min: u64,
    /// By their binary logarithm.
    buckets: [u64; 64],
}

impl Trips {
    fn new() -> Trips {
        Trips { count: 0, total: 0, min: u64::MAX, buckets: [0; 64] }
    }

    fn add(&mut self, time: u64) {
        self.count += 1;
        self.total += time;
        self.min = self.min.min(time);
        self.buckets[time.max(1).ilog2() as usize] += 1;
    }

    fn join(&mut self, other: &Trips) {
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.min(other.min);
    }

    fn average(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }

    fn least(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    fn report(&self) {
        log!(
            "ping_body",
            "count {} RTT: min {} av {} ns",
            self.count,
            self.least(),
            self.average()
        );
        let taken = |n: &u64| *n > 0;
        let (Some(first), Some(last)) =
            (self.buckets.iter().position(taken), self.buckets.iter().rposition(taken))
        else {
            return;
        };
        let counts: Vec<_> =
            self.buckets[first..=last].iter().map(|count| format!(" {count:5}")).collect();
        let [from, to] = [first, last].map(|log| 1u64 << log);
        log!("ping_body", "k: {from} .. {to}\n\t{}", counts.concat());
    }
}

/// Sends, and waits for the answer, `share` times, or until the user has had enough.
pub fn ping(port: &mut Port, run_loop: &RunLoop, packet: &mut Packet, share: u64) -> Result<()> {
    let start = Instant::now();
    let header = packet.bytes().len() - packet.frame_len();
    let (mut all, mut recent) = (Trips::new(), Trips::new());
    let mut sequence = 0u32;
    let mut due = start + INTERVAL;
    while !run_loop.is_interrupted() && (share == 0 || all.count + recent.count < share) {
        let now = start.elapsed();
        let mut mark = [0; 12];
        mark[..4].copy_from_slice(&sequence.to_ne_bytes());
        mark[4..8].copy_from_slice(&(now.as_secs() as u32).to_ne_bytes());
        mark[8..].copy_from_slice(&now.subsec_nanos().to_ne_bytes());
        packet.begin_with(&mark);
        let mut tx = port.tx(0);
        let sent = tx.push(packet.bytes());
        publish(&mut tx, !sent);
        if !sent {
            run_loop.await_port(port, Interest::Tx, PATIENCE)?;
            continue;
        }
        sequence = sequence.wrapping_add(1);
        if run_loop.await_port(port, Interest::Rx, PATIENCE)? {
            take(port, header + SEQUENCE_AT, start, &mut recent);
        } else if !run_loop.is_interrupted() {
            log!("ping_body", "poll timeout: no answer");
        }
        if Instant::now() >= due {
            recent.report();
            all.join(&recent);
            recent = Trips::new();
            due += INTERVAL;
        }
    }
    all.join(&recent);
    let (count, min, average) = (all.count, all.least(), all.average());
    log!("ping_body", "RTT over {count} packets: min {min} av {average} ns");
    Ok(())
}

/// Takes what has come back.
fn take(port: &mut Port, at: usize, start: Instant, trips: &mut Trips) {
    let now = start.elapsed().as_nanos() as u64;
    for ring in 0..port.rx_rings() {
        let mut rx = port.rx(ring);
        for frame in rx.batch(usize::MAX) {
            let Some(mark) = frame.read::<12>(at) else { continue };
            let word = |at: usize| {
                u64::from(u32::from_ne_bytes([mark[at], mark[at + 1], mark[at + 2], mark[at + 3]]))
            };
            let sent = 1_000_000_000 * word(4) + word(8);
            // What was sent later than now is no answer to us.
            if let Some(time) = now.checked_sub(sent) {
                trips.add(time);
            }
        }
        rx.sync();
    }
}

/// Sends everything back to where it came from.
pub fn pong(
    port: &mut Port,
    options: &Options,
    run_loop: &RunLoop,
    counters: &Counters,
    header: usize,
) -> Result<()> {
    if options.count > 0 {
        log!("pong_body", "-n is not supported: only ping ends by itself");
    }
    let start = Instant::now();
    let mut turns = Turns::default();
    while !run_loop.is_interrupted() {
        if !run_loop.await_port(port, Interest::Rx, INTERVAL)? {
            continue;
        }
        let turn = |head: &mut [u8]| {
            if let Some(frame) = head.get_mut(header..) {
                turn_around(frame);
            }
            true
        };
        let reflected = reflect(port, &mut turns, turn);
        if reflected.packets > 0 {
            counters.add(reflected.packets, reflected.bytes);
        } else if reflected.of_stack == 0 && has_packets(port) {
            run_loop.await_port(port, Interest::Tx, INTERVAL)?;
        }
    }
    counters.ran(start, Instant::now());
    Ok(())
}

/// Exchanges the Ethernet addresses, and the IPv4 addresses if there are any.
fn turn_around(frame: &mut [u8]) {
    if let Some(macs) = frame.get_mut(..12) {
        let (to, from) = macs.split_at_mut(6);
        to.swap_with_slice(from);
    }
    if frame.get(12..14) == Some(&[8, 0])
        && let Some(addresses) = frame.get_mut(26..34)
    {
        let (from, to) = addresses.split_at_mut(4);
        from.swap_with_slice(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_go_where_questions_came_from() {
        let mut frame: Vec<u8> = (0..40).collect();
        frame[12..14].copy_from_slice(&[8, 0]);
        turn_around(&mut frame);
        assert_eq!(frame[..12], [6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5]);
        assert_eq!(frame[26..34], [30, 31, 32, 33, 26, 27, 28, 29]);
        let mut arp: Vec<u8> = (0..40).collect();
        turn_around(&mut arp);
        assert_eq!(arp[26..34], [26, 27, 28, 29, 30, 31, 32, 33]);
        turn_around(&mut [0; 5]);
    }

    #[test]
    fn trips_are_sorted_by_their_logarithm() {
        let mut trips = Trips::new();
        assert_eq!((trips.least(), trips.average()), (0, 0));
        [0, 1, 1000, 1023, 1024].into_iter().for_each(|time| trips.add(time));
        assert_eq!((trips.buckets[0], trips.buckets[9], trips.buckets[10]), (2, 2, 1));
        assert_eq!((trips.count, trips.least(), trips.average()), (5, 0, 609));
    }
}
