//! The statistics of `lb`: one JSON object a line, for standard output and for syslog.

use crate::sys::syslog;
use crate::tools::log::say;
use ringway_balance::{Counters, Output, Received};
use std::ffi::CString;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where lines go.
#[derive(Clone, Copy, Debug)]
pub enum Sink {
    Stdout,
    Syslog,
}

/// Writes statistics from time to time.
pub struct Reporter {
    sink: Sink,
    interval: Duration,
    last: Instant,
    /// Of each pipe, at the last line.
    before: Vec<Counters>,
}

/// One moment.
pub struct Moment<'a> {
    pub input: &'a str,
    pub pipes: Vec<&'a Output>,
    pub received: Received,
    /// Extra buffers that nothing waits in.
    pub free: usize,
}

impl Reporter {
    pub fn new(sink: Sink, interval: Duration, now: Instant) -> Reporter {
        if let Sink::Syslog = sink {
            syslog::open(c"lb");
        }
        Reporter { sink, interval, last: now, before: Vec::new() }
    }

    pub fn due(&self) -> Instant {
        self.last + self.interval
    }

    pub fn report(&mut self, now: Instant, moment: &Moment<'_>) {
        let time = now.saturating_duration_since(self.last).as_secs_f64();
        let ts = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        self.before.resize(moment.pipes.len(), Counters::default());
        let (mut all, mut all_before) = (Counters::default(), Counters::default());
        for (pipe, before) in moment.pipes.iter().zip(&mut self.before) {
            let counted = pipe.counters;
            self.sink.write(&format!(
                "{{\"ts\":{ts:.6},\"interface\":\"{}\",\"output_ring\":{},\
                 \"packets_forwarded\":{},\"packets_dropped\":{},{},\
                 \"overflow_queue_size\":{}}}",
                pipe.name,
                pipe.id,
                counted.forwarded,
                counted.dropped,
                rates(counted, *before, time),
                pipe.queued(),
            ));
            all += counted;
            all_before += *before;
            *before = counted;
        }
        self.sink.write(&format!(
            "{{\"ts\":{ts:.6},\"interface\":\"{}\",\"output_ring\":null,\
             \"packets_received\":{},\"packets_forwarded\":{},\"packets_dropped\":{},\
             \"non_ip_packets\":{},{},\"free_buffer_slots\":{}}}",
            moment.input,
            moment.received.packets,
            all.forwarded,
            all.dropped,
            moment.received.non_ip,
            rates(all, all_before, time),
            moment.free,
        ));
        self.last = now;
    }
}

/// The four rates since the last line.
fn rates(now: Counters, before: Counters, time: f64) -> String {
    let rate = |now: u64, before: u64, scale: f64| {
        if time > 0.0 { (now - before) as f64 * scale / time } else { 0.0 }
    };
    const MBIT: f64 = 8.0 / (1024.0 * 1024.0);
    format!(
        "\"data_forward_rate_Mbps\":{:.4},\"data_drop_rate_Mbps\":{:.4},\
         \"packet_forward_rate_kpps\":{:.4},\"packet_drop_rate_kpps\":{:.4}",
        rate(now.forwarded_bytes, before.forwarded_bytes, MBIT),
        rate(now.dropped_bytes, before.dropped_bytes, MBIT),
        rate(now.forwarded, before.forwarded, 1e-3),
        rate(now.dropped, before.dropped, 1e-3),
    )
}

impl Sink {
    fn write(self, line: &str) {
        match (self, CString::new(line)) {
            (Sink::Stdout, _) => say!("{line}"),
            (Sink::Syslog, Ok(line)) => syslog::write(&line),
            // No name of a port has a zero in it.
            (Sink::Syslog, Err(_)) => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_interval() {
        let before = Counters { forwarded: 1000, forwarded_bytes: 1 << 20, ..Counters::default() };
        let now = Counters {
            forwarded: 5000,
            forwarded_bytes: 3 << 20,
            dropped: 1,
            dropped_bytes: 1 << 17,
        };
        assert_eq!(
            rates(now, before, 2.0),
            "\"data_forward_rate_Mbps\":8.0000,\"data_drop_rate_Mbps\":0.5000,\
             \"packet_forward_rate_kpps\":2.0000,\"packet_drop_rate_kpps\":0.0005"
        );
    }
}
