//! `ringway gen`: sends test frames, or those of a capture file.

use crate::error::{Error, Result};
use crate::fragmenter::{Fragmenter, publish};
use crate::metered::Metered;
use crate::opening;
use crate::output::note;
use crate::port_notes;
use crate::rate::Pacer;
use crate::run_loop;
use crate::traffic::{self, Source};
use crate::units::{Rate, number, parse_count};
use ringway::{Interest, Port};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
Frames go out on the port's first transmit ring. They carry a sequence number and a pattern, which
`ringway recv --verify` checks. A pipe keeps what is sent until the other end takes it; a switch
drops what a receiver has no room for.

Examples (quote the braces of a pipe's name):
  ringway recv 'p}0' --verify &
  ringway gen 'p{0'
  ringway gen vale0:a --size 64-1514 --rate 1M --count 10M
  ringway gen vale0:a --src 10.0.0.1:1000-10.0.0.9:2000 --duration 10s
  ringway gen netmap:veth0 --pcap session.pcap")]
pub struct Args {
    /// Port to send on: a pipe's end, vale<switch>:<port> or netmap:<interface>
    port: String,

    /// End after so many frames: 1000, 10k, 1.5M
    #[arg(short = 'n', long, value_name = "FRAMES", value_parser = parse_count)]
    count: Option<u64>,

    /// Send no faster: 1M or 1Mpps for packets, 10Gbps for bits a second
    #[arg(short, long, value_name = "RATE")]
    rate: Option<Rate>,

    /// Frames handed over in one piece [default: 256, or what --rate allows in a millisecond]
    #[arg(short, long, value_name = "FRAMES", value_parser = number(1..=u32::MAX, 64))]
    burst: Option<u32>,

    #[command(flatten)]
    frames: traffic::Args,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

const BURST: u32 = 256;

impl Args {
    fn burst(&self, longest: usize) -> usize {
        let a_millisecond = match self.rate {
            None => f64::INFINITY,
            Some(Rate::Packets(pps)) => pps / 1e3,
            Some(Rate::Bits(bps)) => bps / 8e3 / longest as f64,
        };
        self.burst.unwrap_or((a_millisecond as u32).clamp(1, BURST)) as usize
    }

    fn count(&self, source: &Source) -> u64 {
        let natural = source.natural_count().filter(|_| self.run_loop.duration.is_none());
        self.count.or(natural).unwrap_or(u64::MAX)
    }
}

/// Sends until the count, the time or the user's patience is through, and then waits until the
/// last frame was taken.
pub fn run(args: &Args) -> Result<()> {
    let source = args.frames.source()?;
    if let Some(text) = args.frames.note(&source) {
        note(text);
    }
    let mut port = opening::open(&Port::options().tx_only(), &args.port, args.opening)?;
    port_notes::sending(&port, &args.port);
    let (longest, room) = (source.longest(), port.max_frame());
    let fragmenter = Fragmenter::new(&mut port.tx(0), room);
    let (most, shortest) = (fragmenter.longest(), source.shortest());
    if shortest > most {
        return Err(Error::Value(format!(
            "{}: frames of {shortest} bytes do not fit its rings, which take {most}; send shorter ones",
            port.name()
        )));
    }
    let run = Metered::begin(port, &args.run_loop)?;
    let mut generator = Generator {
        fragmenter: (longest > room).then_some(fragmenter),
        longest,
        pending: Vec::new(),
        pacer: args.rate.map(|rate| Pacer::new(rate, run.run_loop.start)),
        burst: args.burst(longest),
        to_send: args.count(&source),
        run,
        source,
    };
    let sent = generator.send().and_then(|()| generator.run.flush());
    if generator.run.lost > 0 {
        note(format_args!(
            "{}: {} frames are too long for its rings, and were left out",
            generator.run.port.name(),
            generator.run.lost
        ));
    }
    generator.run.finish_sending(sent)
}

struct Generator {
    run: Metered,
    source: Source,
    /// For frames of which some take several slots.
    fragmenter: Option<Fragmenter>,
    /// Bytes of the longest frame.
    longest: usize,
    /// The next frame, where there was no room for it.
    pending: Vec<u8>,
    pacer: Option<Pacer>,
    burst: usize,
    to_send: u64,
}

impl Generator {
    fn send(&mut self) -> Result<()> {
        while self.to_send > 0 {
            let now = Instant::now();
            if self.run.report_sending(now)? {
                self.reopened();
            }
            if self.run.run_loop.is_over(now) {
                break;
            }
            let due = self.run.reporter.due();
            let pause = self.pacer.as_mut().map_or(Duration::ZERO, |pacer| pacer.wait(now));
            if !pause.is_zero() {
                self.run.run_loop.sleep(now.checked_add(pause).unwrap_or(due).min(due))?;
            } else if self.send_some() == 0 && self.run.wait(Interest::Tx, due)? {
                self.reopened();
            }
        }
        Ok(())
    }

    /// The port is another one, whose buffers may be of another size.
    fn reopened(&mut self) {
        let port = &mut self.run.port;
        let parts = self.fragmenter.is_some() || self.longest > port.max_frame();
        self.fragmenter = parts.then(|| Fragmenter::of(port));
    }

    /// Hands over what of a burst finds room; returns how many frames are done with.
    fn send_some(&mut self) -> u64 {
        match self.fragmenter {
            _ if self.run.port.is_shut() => 0,
            Some(fragmenter) => self.send_parts(fragmenter),
            None => self.send_burst(),
        }
    }

    /// Hands over as much of a burst as there is room for; returns how many frames that were.
    fn send_burst(&mut self) -> u64 {
        let most = self.burst.min(usize::try_from(self.to_send).unwrap_or(usize::MAX));
        let mut tx = self.run.port.tx(0);
        let (mut packets, mut bytes, mut lost) = (0, 0, 0);
        for mut slot in tx.batch(most) {
            let frame = self.source.next_frame();
            if !slot.write(frame.bytes) {
                // Others have spoiled the slot: it goes out empty.
                lost += 1;
                continue;
            }
            if let Some(number) = frame.number {
                slot.write_at(number.checksum_at, &number.checksum);
                slot.write_at(number.sequence_at, &number.sequence);
            }
            packets += 1;
            bytes += frame.bytes.len() as u64;
        }
        tx.sync();
        self.count(packets, bytes, lost)
    }

    /// The same where frames may take several slots. What no ring can hold is left out, and
    /// counted.
    fn send_parts(&mut self, fragmenter: Fragmenter) -> u64 {
        let most = self.burst.min(usize::try_from(self.to_send).unwrap_or(usize::MAX)) as u64;
        let mut tx = self.run.port.tx(0);
        let mut slots = tx.batch(usize::MAX);
        let (mut packets, mut bytes, mut lost) = (0, 0, 0);
        while packets + lost < most {
            if self.pending.is_empty() {
                self.pending = self.source.next_frame().to_vec();
            }
            if self.pending.len() > fragmenter.longest() {
                lost += 1;
            } else if fragmenter.put(&mut slots, &self.pending) {
                packets += 1;
                bytes += self.pending.len() as u64;
            } else {
                break;
            }
            self.pending.clear();
        }
        drop(slots);
        publish(&mut tx, packets + lost < most);
        self.count(packets, bytes, lost)
    }

    /// Counts what was handed over, and what was lost instead; returns how many frames are done with.
    fn count(&mut self, packets: u64, bytes: u64, lost: u64) -> u64 {
        self.to_send -= packets + lost;
        self.run.counted.packets += packets;
        self.run.counted.bytes += bytes;
        self.run.lost += lost;
        if let Some(pacer) = &mut self.pacer {
            pacer.spend(packets, bytes);
        }
        packets + lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_loop::RunLoop;
    use clap::Parser;
    use ringway_doc as doc;

    #[derive(Parser)]
    struct Frames {
        #[command(flatten)]
        frames: traffic::Args,
    }

    /// The port was opened with buffers that held each frame, and has been opened again with smaller ones.
    #[test]
    fn a_port_with_smaller_buffers_gets_whole_frames() {
        let [port, mut other] = ["gen{1", "gen}1"].map(|name| doc::open(name).unwrap());
        assert!(port.max_frame() < 3000);
        let source = Frames::parse_from(["gen", "--size", "3000"]).frames.source().unwrap();
        let run_loop = RunLoop::begin(&run_loop::Args::default()).unwrap();
        let mut generator = Generator {
            run: Metered::of(run_loop, port).unwrap(),
            fragmenter: None,
            longest: source.longest(),
            source,
            pending: Vec::new(),
            pacer: None,
            burst: 10,
            to_send: 10,
        };
        generator.reopened();
        assert_eq!(generator.send_some(), 10);
        let mut frame = Vec::new();
        other.rx(0).sync();
        for _ in 0..10 {
            assert!(other.rx(0).pop(&mut frame) && frame.len() == 3000);
        }
        let Metered { counted, lost, .. } = &generator.run;
        assert_eq!((counted.packets, counted.bytes, *lost), (10, 30_000, 0));
    }
}
