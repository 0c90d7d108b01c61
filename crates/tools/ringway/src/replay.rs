//! `ringway replay`: sends capture files, each frame at its time.

mod file;
mod playlist;
mod schedule;
pub mod sender;

use crate::error::{Error, Result};
use crate::metered::Metered;
use crate::opening;
use crate::port_notes;
use crate::run_loop::{self, RunLoop};
use crate::units::{Rate, number, parse_count, parse_duration};
use file::FileArg;
use playlist::{Order, Playlist, Upcoming};
use ringway::{Port, Recorded};
use rustix::event::PollFlags;
use schedule::{Schedule, Timing};
use sender::{Next, Sender, Timeline};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
Files are pcap or pcapng, plain or compressed by gzip or Zstandard; - is standard input. They are read while
they are sent. Options may follow a file's name: with @offset=TIME it begins later, @dst-mac=MAC and @src-mac=MAC
give its frames other addresses.

Frames go out on the port's first transmit ring. At the end the summary says how late they were: from the time when they were due to the time when
the port had them. After a port has taken no frames for a while, it gets the frames that were due
meanwhile; with --rate, only those of 10 ms.

Examples:
  ringway replay vale0:a session.pcap
  ringway replay netmap:eth1 session.pcapng.zst --speed 2 --loop 10
  ringway replay netmap:eth1 night.pcapng --max-gap 1s
  ringway replay netmap:eth1 small.pcap --rate 1Gbps --loop 0 --duration 60s
  ringway replay vale0:a north.pcap south.pcap@offset=20ms --order start
  ringway replay file:merged.pcapng@write north.pcap south.pcap --order time --speed 0")]
pub struct Args {
    /// Port to send on: a pipe's end, vale<switch>:<port>, netmap:<interface> or a file
    port: String,

    /// Files to send
    #[arg(required = true, value_name = "FILE")]
    files: Vec<FileArg>,

    /// How several files follow each other
    #[arg(long, value_enum, default_value_t)]
    order: Order,

    /// So many times as fast as recorded; 0: as fast as the port takes it [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = parse_speed, conflicts_with = "rate")]
    speed: Option<f64>,

    /// The longest pause between two frames; what is longer in the file is cut to it: 1s, 200ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "rate")]
    max_gap: Option<Duration>,

    /// Send at a rate instead: 1M or 1Mpps for packets, 10Gbps for bits a second
    #[arg(short, long, value_name = "RATE")]
    rate: Option<Rate>,

    /// Play everything so many times; 0: for ever
    #[arg(short, long, value_name = "TIMES", default_value_t = 1, value_parser = number(0..=u64::MAX, 3))]
    r#loop: u64,

    /// End after so many frames: 1000, 10k, 1.5M
    #[arg(short = 'n', long, value_name = "FRAMES", value_parser = parse_count)]
    count: Option<u64>,

    /// Frames handed over in one piece, at most [default: 256]
    #[arg(short, long, value_name = "FRAMES", value_parser = number(1..=u32::MAX, 64))]
    burst: Option<u32>,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

fn parse_speed(text: &str) -> Result<f64> {
    let speed = text.parse::<f64>().ok().filter(|speed| speed.is_finite() && *speed >= 0.0);
    speed.ok_or_else(|| {
        Error::Value(format!("`{text}` is not a speed; write 1, 0.5, or 0 for no pauses"))
    })
}

impl Args {
    fn timing(&self) -> Timing {
        match (self.rate, self.speed.unwrap_or(1.0)) {
            (Some(rate), _) => Timing::Rate(rate),
            (None, 0.0) => Timing::Unpaced,
            (None, speed) => Timing::Recorded { speed },
        }
    }
}

/// Sends until the files, the count or the time are through.
pub fn run(args: &Args) -> Result<()> {
    if args.max_gap.is_some() && args.timing() == Timing::Unpaced {
        let wrong = "--max-gap cuts pauses, and --speed 0 makes none: leave one of them out";
        return Err(Error::Value(wrong.into()));
    }
    let playlist = Playlist::open(&args.files, args.order, args.r#loop)?;
    let port = opening::open(&Port::options().tx_only(), &args.port, args.opening)?;
    port_notes::sending(&port, &args.port);
    let run = Metered::begin(port, &args.run_loop)?;
    let files = Files {
        playlist,
        schedule: Schedule::new(args.timing(), args.max_gap),
        length: 0,
        time: 0,
        slipped: 0,
        first_due: None,
    };
    let batch = args.burst.map(|frames| frames as usize);
    let mut sender = Sender::new(run, files, args.count, batch);
    let sent = sender.send();
    sender.pump.timeline.playlist.tell_of_files();
    sender.finish(sent)
}

/// Files, played by a schedule.
struct Files {
    playlist: Playlist,
    schedule: Schedule,
    /// Of the frame that is next.
    length: usize,
    time: u64,
    slipped: u64,
    /// When the first frame of all was due.
    first_due: Option<u64>,
}

impl Timeline for Files {
    #[inline]
    fn next(&mut self, now: u64) -> Result<Next<'_>> {
        let (bytes, time, recorded, began) = match self.playlist.peek()? {
            Upcoming::Frame { bytes, time, recorded, began } => (bytes, time, recorded, began),
            Upcoming::Nothing => return Ok(Next::Nothing),
            Upcoming::End => return Ok(Next::End),
        };
        (self.length, self.time) = (bytes.len(), time);
        self.slipped += self.schedule.slip(now);
        let due = self.schedule.due(time);
        // Not when it is written, which is late by as much as the machine is.
        let on_time = |due: u64| {
            let since = due.saturating_sub(*self.first_due.get_or_insert(due));
            Recorded { time: began.saturating_add(since), ..recorded }
        };
        Ok(Next::Frame { bytes, due, recorded: Some(due.map_or(recorded, on_time)) })
    }

    #[inline]
    fn advance(&mut self) {
        self.playlist.advance();
        self.schedule.advance(self.length, self.time);
    }

    fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()> {
        run_loop.sleep_on(self.playlist.doorbell(), PollFlags::IN, until)?;
        self.playlist.heard();
        Ok(())
    }

    fn slipped(&self) -> u64 {
        self.slipped
    }

    fn source(&self) -> Option<&str> {
        self.playlist.source()
    }
}
