//! `ringway recv`: counts what arrives, verifies it, prints it, and records it.

use crate::capture_file;
use crate::error::{Error, Result};
use crate::filter::Chosen;
use crate::frame_uses::FrameUses;
use crate::intake::Intake;
use crate::metered::Metered;
use crate::opened::shown_name;
use crate::opening;
use crate::plain_file;
use crate::port_notes;
use crate::print;
use crate::recording;
use crate::run_loop::{self, RunLoop};
use crate::units::{parse_count, parse_duration};
use crate::verify::{Tally, Verifier};
use ringway::{Interest, Port};
use ringway_file::{Recorder, Recording};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
Ends after --count frames, after --duration, or when nothing has come for --idle; fails if fewer frames than --count have come, or if --verify finds errors. Foreign frames are no
errors. Of --verify's numbers, good counts all frames with the right content, those that came late
(reordered) or again (duplicate) included. Frames that come twice are an error, and no sign of loss:
two runs of `ringway gen` with one --stream send the same numbers.

With --print and `--write -` standard output has nothing but their output; progress goes to standard
error. Times are UTC; frames of a file have the times of the file. --write is `ringway capture` for
one port, without rotation of files. What the device of an interface has lost meanwhile is in a line
of its own below the summary: see `ringway ports --help` for its counters.

Examples (quote the braces of a pipe's name):
  ringway recv 'p}0' --verify
  ringway recv vale0:b --count 1M --idle 2s
  ringway recv vale0:b/rt --duration 10s      what somebody else's vale0:b receives and sends
  ringway recv netmap:veth0 --duration 10s --json
  ringway recv netmap:eth0 --filter 'udp port 53' --sample 10
  ringway recv vale0:b/rt --print --filter 'udp port 53'
  ringway recv file:session.pcapng.zst -p     what is in a capture file
  ringway recv netmap:eth0 -w session.pcapng.zst --count 10k
  ringway recv netmap:eth0~4                  queue 4; the kernel keeps the others
  ringway recv netmap:eth0@buffers=4096       a slot for each frame of up to 3840 bytes")]
pub struct Args {
    /// Port to receive on: a pipe's end, vale<switch>:<port>, netmap:<interface> or file:<path>
    port: String,

    /// End after so many frames: 1000, 10k, 1.5M
    #[arg(short = 'n', long, value_name = "FRAMES", value_parser = parse_count)]
    count: Option<u64>,

    #[command(flatten)]
    chosen: Chosen,

    /// Check sequence numbers, checksums and payload of frames that `ringway gen` sends
    #[arg(long)]
    verify: bool,

    #[command(flatten)]
    print: print::Args,

    /// Record what comes into this capture file, as `ringway capture` does; - for standard output
    #[arg(short, long, value_name = "FILE", value_parser = plain_file::written())]
    write: Option<PathBuf>,

    /// Replace a file that is there already, which is refused otherwise
    #[arg(long, requires = "write")]
    overwrite: bool,

    /// End when nothing has come for so long: 2s, 200ms
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    idle: Option<Duration>,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

/// Receives until the count, the time, the silence or the user says that it is enough.
pub fn run(args: &Args) -> Result<()> {
    args.print.choose_stdout(args.write.as_deref())?;
    let mut options = Port::options().rx_only();
    if let Some(filter) = args.chosen.filter()? {
        options = options.filter(filter);
    }
    let port = opening::open(&options, &args.port, args.opening)?;
    port_notes::receiving(&port, &args.port);
    let recorder = args.write.as_ref().map(|file| {
        let mut recording = Recording::to(file, &args.port);
        recording.interfaces[0].filter = args.chosen.text();
        recording.overwrite = args.overwrite;
        Recorder::new(&recording)
    });
    let run_loop = RunLoop::begin(&args.run_loop)?;
    let uses = FrameUses {
        recorder: recorder.transpose()?,
        verifier: args.verify.then(Verifier::new),
        printer: args.print.printer(),
        ..FrameUses::default()
    };
    let mut receiver = Receiver {
        wanted: args.count,
        idle: args.idle,
        last: run_loop.start,
        intake: Intake::of(0, &port),
        uses,
        file: args.write.clone(),
        run: Metered::of(run_loop, port)?,
    };
    let received = capture_file::ended(receiver.receive());
    receiver.finish(received)
}

struct Receiver {
    run: Metered,
    wanted: Option<u64>,
    idle: Option<Duration>,
    /// When the last frame came.
    last: Instant,
    intake: Intake,
    uses: FrameUses,
    /// What the recorder writes.
    file: Option<PathBuf>,
}

impl Receiver {
    /// With a port that has just been opened, again.
    fn begin(&mut self) {
        self.intake = Intake::of(0, &self.run.port);
    }

    fn receive(&mut self) -> Result<()> {
        loop {
            let taken = self.take();
            let now = Instant::now();
            self.uses.flush()?;
            self.report(now)?;
            if taken > 0 {
                self.last = now;
            }
            let silence = self.idle.and_then(|idle| self.last.checked_add(idle));
            let enough = self.wanted.is_some_and(|wanted| self.run.counted.packets >= wanted);
            if enough || silence.is_some_and(|end| end <= now) {
                return Ok(());
            }
            if self.run.run_loop.is_over(now) {
                self.take_rest();
                return Ok(());
            }
            if taken == 0 {
                let due = self.run.reporter.due();
                let until = silence.unwrap_or(due).min(due);
                if self.run.wait(Interest::Rx, until)? {
                    self.begin();
                }
            }
        }
    }

    /// Takes a batch from each ring; returns how many slots that were.
    fn take(&mut self) -> usize {
        let Metered { port, counted, .. } = &mut self.run;
        self.intake.take(port, &mut self.uses, counted, self.wanted.unwrap_or(u64::MAX))
    }

    fn take_rest(&mut self) {
        let Metered { port, counted, .. } = &mut self.run;
        self.intake.take_rest(port, &mut self.uses, counted, self.wanted.unwrap_or(u64::MAX));
    }

    /// Tells how it goes, if it is time for that.
    fn report(&mut self, now: Instant) -> Result<()> {
        if self.run.reporter.is_due(now) {
            self.count_drops();
            self.run.report(now)?;
        }
        Ok(())
    }

    fn count_drops(&mut self) {
        self.run.lost = self.uses.dropped();
        if let Some(recorder) = &self.uses.recorder {
            recorder.set_lost(0, self.run.count_drops().if_it_receives());
        }
    }

    /// The summary is told even if the run has failed.
    fn finish(mut self, received: Result<()>) -> Result<()> {
        self.count_drops();
        if let Some(recorder) = &mut self.uses.recorder {
            self.run.lost = recorder.finish().dropped;
        }
        self.run.summarize(self.last, 0)?;
        if let Some(file) = &self.file {
            self.run.run_loop.tell(&recording::losses(file, self.run.lost))?;
        }
        let tally = self.uses.verifier.as_ref().map(Verifier::tally);
        if let Some(tally) = &tally {
            self.run.run_loop.tell(tally)?;
        }
        received?;
        self.uses.flush()?;
        let port = || shown_name(&self.run.port);
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
