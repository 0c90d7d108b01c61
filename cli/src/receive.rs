//! `ringway recv`: counts what arrives, and verifies it.

use crate::error::{Error, Result};
use crate::filter::Chosen;
use crate::metered::Metered;
use crate::port_notes;
use crate::run_loop;
use crate::units::{parse_count, parse_duration};
use crate::verify::{Tally, Verifier};
use ringway::{Interest, Port, RxFrame};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
Ends after --count frames, after --duration, or when nothing has come for --idle; fails if it was
to wait for a count that did not come, and if --verify finds fault. Foreign frames are no fault.

Examples (quote the braces of a pipe's name):
  ringway recv 'p}0' --verify
  ringway recv vale0:b --count 1M --idle 2s
  ringway recv vale0:b/rt --duration 10s      what somebody else's vale0:b receives and sends
  ringway recv netmap:veth0 --duration 10s --json
  ringway recv netmap:eth0 --filter 'udp port 53' --sample 10
  ringway recv netmap:eth0~4                  queue 4; the kernel keeps the others
  ringway recv netmap:eth0@buffers=4096       a slot for each frame of up to 3840 bytes")]
pub struct Args {
    /// Port to receive on: a pipe's end, vale<switch>:<port> or netmap:<interface>
    port: String,

    /// End after so many frames: 1000, 10k, 1.5M
    #[arg(short = 'n', long, value_name = "FRAMES", value_parser = parse_count)]
    count: Option<u64>,

    #[command(flatten)]
    chosen: Chosen,

    /// Check sequence numbers, checksums and payload of frames that `ringway gen` sends
    #[arg(long)]
    verify: bool,

    /// End when nothing has come for so long: 2s, 200ms
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    idle: Option<Duration>,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

/// Slots taken from a ring before they are given back.
const BATCH: usize = 256;

/// Receives until the count, the time, the silence or the user says that it is enough.
pub fn run(args: &Args) -> Result<()> {
    let mut options = Port::options().rx_only();
    if let Some(filter) = args.chosen.filter()? {
        options = options.filter(filter);
    }
    let port = options.open(&args.port)?;
    port_notes::receiving(&port, &args.port);
    let parts = vec![Vec::new(); port.rx_rings()];
    let run = Metered::begin(port, &args.run_loop)?;
    let mut receiver = Receiver {
        wanted: args.count,
        idle: args.idle,
        last: run.run_loop.start,
        verifier: args.verify.then(Verifier::new),
        parts,
        run,
    };
    let received = receiver.receive();
    receiver.finish(received)
}

struct Receiver {
    run: Metered,
    wanted: Option<u64>,
    idle: Option<Duration>,
    /// When the last frame came.
    last: Instant,
    verifier: Option<Verifier>,
    /// What has come of a frame that takes several slots, ring by ring.
    parts: Vec<Vec<u8>>,
}

impl Receiver {
    fn receive(&mut self) -> Result<()> {
        loop {
            let taken = self.take();
            let now = Instant::now();
            self.run.report(now)?;
            if taken > 0 {
                self.last = now;
            }
            let silence = self.idle.and_then(|idle| self.last.checked_add(idle));
            let enough = self.wanted.is_some_and(|wanted| self.run.counted.packets >= wanted);
            if enough || self.run.run_loop.is_over(now) || silence.is_some_and(|end| end <= now) {
                return Ok(());
            }
            if taken == 0 {
                let due = self.run.reporter.due();
                let until = silence.unwrap_or(due).min(due);
                self.run.run_loop.wait(&mut [(&mut self.run.port, Interest::Rx)], until)?;
            }
        }
    }

    /// Takes a batch from each ring and gives the slots back; returns how many that were.
    fn take(&mut self) -> usize {
        let mut taken = 0;
        for ring in 0..self.run.port.rx_rings() {
            let mut rx = self.run.port.rx(ring);
            let parts = &mut self.parts[ring];
            let left = self.wanted.map_or(u64::MAX, |wanted| wanted - self.run.counted.packets);
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(BATCH);
            for frame in rx.batch(most) {
                taken += 1;
                self.run.counted.bytes += frame.len() as u64;
                self.run.counted.packets += u64::from(!frame.more_fragments());
                if let Some(verifier) = &mut self.verifier {
                    verify(&frame, parts, verifier);
                }
            }
            rx.sync();
        }
        taken
    }

    /// The summary is told even if the run has failed.
    fn finish(mut self, received: Result<()>) -> Result<()> {
        self.run.summarize(self.last, 0)?;
        let tally = self.verifier.as_ref().map(Verifier::tally);
        if let Some(tally) = &tally {
            self.run.run_loop.output.write(tally)?;
        }
        received?;
        let port = || self.run.port.name().to_string();
        if let Some(fault) = tally.as_ref().and_then(Tally::fault) {
            return Err(Error::Unverified { port: port(), fault });
        }
        let received = self.run.counted.packets;
        match self.wanted {
            Some(wanted) if received < wanted && !self.run.run_loop.is_interrupted() => {
                Err(Error::TooFew { port: port(), received, wanted })
            }
            _ => Ok(()),
        }
    }
}

/// Copies the slot behind what has come before of its frame, and looks at the frame when it is
/// whole. The copy is what is looked at: a sender of the same region could still change the slot.
fn verify(slot: &RxFrame<'_>, parts: &mut Vec<u8>, verifier: &mut Verifier) {
    let start = parts.len();
    parts.resize(start + slot.len(), 0);
    let copied = slot.copy_to(&mut parts[start..]);
    parts.truncate(start + copied);
    if !slot.more_fragments() {
        verifier.frame(parts);
        parts.clear();
    }
}
