//! `ringway ping`: measures round-trip times to a `ringway pong`.

mod ledger;
mod rtt;

use crate::drops::Losses;
use crate::endpoint::{Endpoints, Mac};
use crate::error::{Error, Result};
use crate::frame::{Builder, Sizes, Spec, shortest_marked};
use crate::frame_check::{FrameCheck, read};
use crate::lasting::{Lasting, outlive};
use crate::opened::Opened;
use crate::opening;
use crate::payload::Pattern;
use crate::port_notes;
use crate::rate::Pacer;
use crate::report::INTERVAL;
use crate::run_loop::{self, RunLoop};
use crate::traffic::mac_of;
use crate::units::{Rate, human, human_time, parse_count, parse_duration};
use ledger::{Counts, Ledger};
use ringway::{Interest, Port};
use rtt::{Distribution, RoundTrips};
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// The UDP port that pings go to: that of the echo service (RFC 862).
pub const ECHO: u16 = 7;

#[derive(clap::Args)]
#[command(after_help = "\
Pings are UDP datagrams to port 7. Without --rate the next ping goes out when the last is answered or
lost; with it, by the clock, however many are under way. Times are measured in this program, from
before the frame is written to after the answer was found in the ring; without --poll they contain
the time that it takes to wake this program. Fails if no ping is answered.

Examples (quote the braces of a pipe's name):
  ringway pong 'p}0' & ringway ping 'p{0' --count 10k
  ringway ping vale0:a --poll --duration 10s
  ringway ping netmap:eth0 --rate 1k --size 1514 --json")]
pub struct Args {
    /// Port to ping through: a pipe's end, vale<switch>:<port> or netmap:<interface>
    port: String,

    /// End after so many pings: 1000, 10k, 1.5M
    #[arg(short = 'n', long, value_name = "PINGS", value_parser = parse_count)]
    count: Option<u64>,

    /// Send so many a second, answered or not: 1k, 10Mbps
    #[arg(short, long, value_name = "RATE")]
    rate: Option<Rate>,

    /// Frame size in bytes without CRC, or a range that is stepped through [default: 60, or 78 with
    /// IPv6]
    #[arg(short, long, value_name = "BYTES[-BYTES]")]
    size: Option<Sizes>,

    /// A ping that is not answered in this time is lost: 1s, 200ms
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    timeout: Duration,

    /// Look at the port all the time instead of sleeping
    #[arg(long)]
    poll: bool,

    /// Source address
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)))]
    src: IpAddr,

    /// Destination address [default: 10.1.0.1, or fd01::1 with IPv6]
    #[arg(long, value_name = "ADDRESS")]
    dst: Option<IpAddr>,

    /// Source MAC address [default: made from the process id]
    #[arg(long, value_name = "MAC")]
    src_mac: Option<Mac>,

    /// Destination MAC address [default: broadcast, and then that of the first answer]
    #[arg(long, value_name = "MAC")]
    dst_mac: Option<Mac>,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

impl Args {
    fn spec(&self, stream: u32) -> Result<Spec> {
        let endpoint = |address, port| SocketAddr::new(address, port).to_string().parse();
        let src: Endpoints = endpoint(self.src, 1024 + (stream % 60_000) as u16)?;
        let dst = self.dst.unwrap_or(match self.src {
            IpAddr::V4(_) => Ipv4Addr::new(10, 1, 0, 1).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1).into(),
        });
        let shortest = shortest_marked(src.family);
        let sizes = match self.size {
            Some(sizes) if sizes.shortest() < shortest => {
                return Err(Error::Value(format!(
                    "frames shorter than {shortest} bytes have no room for a sequence number; give \
                     a larger --size"
                )));
            }
            Some(sizes) => sizes,
            None => Sizes::new(shortest.max(60) as u32, shortest.max(60) as u32)?,
        };
        Ok(Spec {
            src_mac: self.src_mac.unwrap_or(mac_of(stream)),
            dst_mac: self.dst_mac.unwrap_or(Mac::BROADCAST),
            src,
            dst: endpoint(dst, ECHO)?,
            sizes,
            stream,
        })
    }
}

/// Pings until the count, the time or the user's patience is through, and waits for the last answers.
pub fn run(args: &Args) -> Result<()> {
    let stream = std::process::id();
    let spec = args.spec(stream)?;
    let (longest, mac) = (spec.sizes.longest(), spec.src_mac);
    let builder = Builder::new(spec)?;
    let port = opening::open_both_ways(&Port::options(), &args.port, args.opening)?;
    port_notes::receiving(&port, &args.port);
    check_room(&port, longest)?;
    let room = port.max_frame();
    let lasting = Lasting::begin(&port)?;
    let run_loop = RunLoop::begin(&args.run_loop)?;
    run_loop.output.write(&Opened::new(&port))?;
    let start = run_loop.start;
    let mut pinger = Pinger {
        port,
        lasting,
        run_loop,
        poll: args.poll,
        pacer: args.rate.map(|rate| Pacer::new(rate, start)),
        left: args.count.unwrap_or(u64::MAX),
        builder,
        longest,
        stream,
        mac,
        peer: None,
        learn: args.dst_mac.is_none(),
        pattern: Pattern::new(),
        bytes: vec![0; room],
        ledger: Ledger::new(args.timeout),
        corrupt: 0,
        recent: RoundTrips::new(),
        all: RoundTrips::new(),
        reported: (start, Counts::default()),
    };
    let pinged = pinger.ping();
    pinger.finish(pinged)
}

/// Whether each ping fits a buffer of the port's.
fn check_room(port: &Port, longest: usize) -> Result<()> {
    let (name, room) = (port.name(), port.max_frame());
    if longest <= room {
        return Ok(());
    }
    Err(Error::Value(format!(
        "{name}: frames of {longest} bytes do not fit its buffers of {room}; send shorter ones"
    )))
}

struct Pinger {
    port: Port,
    lasting: Lasting,
    run_loop: RunLoop,
    poll: bool,
    pacer: Option<Pacer>,
    left: u64,
    builder: Builder,
    /// Bytes of the longest ping.
    longest: usize,
    stream: u32,
    mac: Mac,
    /// Where pings go, once that is known, if it is to be learned.
    peer: Option<[u8; 6]>,
    learn: bool,
    pattern: Pattern,
    bytes: Vec<u8>,
    ledger: Ledger,
    /// Answers that are not what was sent.
    corrupt: u64,
    recent: RoundTrips,
    all: RoundTrips,
    /// When the last line was written, and what it has told.
    reported: (Instant, Counts),
}

impl Pinger {
    fn ping(&mut self) -> Result<()> {
        loop {
            self.port.poll(Interest::Rx);
            let now = Instant::now();
            let taken = self.take(now);
            self.ledger.expire(now - self.run_loop.start);
            self.report(now)?;
            let ends = self.left == 0 || self.run_loop.is_over(now);
            if ends && (self.ledger.waiting() == 0 || self.run_loop.is_interrupted()) {
                return Ok(());
            }
            let pause = if ends { None } else { self.pause(now) };
            if pause == Some(Duration::ZERO) {
                if self.send() || self.poll {
                    continue;
                }
                self.wait(Interest::Both, self.due())?;
            } else if !self.poll && !taken {
                let timeout = self.ledger.next_timeout().map(|at| self.run_loop.start + at);
                let next = pause.and_then(|pause| now.checked_add(pause));
                let until = [timeout, next].into_iter().flatten().fold(self.due(), Instant::min);
                self.wait(Interest::Rx, until)?;
            }
        }
    }

    /// How long until the next ping goes out; `None`: when something has been answered, or lost.
    fn pause(&mut self, now: Instant) -> Option<Duration> {
        match &mut self.pacer {
            Some(pacer) => Some(pacer.wait(now)),
            None => (self.ledger.waiting() == 0).then_some(Duration::ZERO),
        }
    }

    fn wait(&mut self, interest: Interest, until: Instant) -> Result<()> {
        let Pinger { port, lasting, run_loop, .. } = self;
        let waited = run_loop.wait(&mut [(port, interest)], lasting.until(until));
        let opened = outlive(waited, [(lasting, port)], run_loop)?;
        if opened.is_empty() { Ok(()) } else { self.reopened() }
    }

    /// The port is another one, whose buffers may be of another size.
    fn reopened(&mut self) -> Result<()> {
        let room = self.port.max_frame();
        self.bytes.resize(room.max(self.longest), 0);
        check_room(&self.port, self.longest)
    }

    /// Sends the next ping, if there is room.
    fn send(&mut self) -> bool {
        if self.port.is_shut() {
            return false;
        }
        let mut tx = self.port.tx(0);
        let now = Instant::now();
        let mut batch = tx.batch(1);
        let Some(mut slot) = batch.next() else {
            drop(batch);
            tx.sync();
            return false;
        };
        let frame = self.builder.build();
        let len = frame.bytes.len() as u64;
        slot.write(frame.bytes);
        if let Some(number) = frame.number {
            slot.write_at(number.checksum_at, &number.checksum);
            slot.write_at(number.sequence_at, &number.sequence);
        }
        if let Some(peer) = &self.peer {
            slot.write_at(0, peer);
        }
        drop(batch);
        tx.sync();
        self.ledger.send(now - self.run_loop.start);
        self.left -= 1;
        if let Some(pacer) = &mut self.pacer {
            pacer.spend(1, len);
        }
        true
    }

    /// Takes the answers that have come; whether there were any.
    fn take(&mut self, now: Instant) -> bool {
        let now = now - self.run_loop.start;
        let mut taken = false;
        for ring in 0..self.port.rx_rings() {
            let mut rx = self.port.rx(ring);
            for frame in rx.batch(usize::MAX) {
                let read_bytes = frame.copy_to(&mut self.bytes);
                let bytes = &self.bytes[..read_bytes];
                // What is not for us is a ping of somebody's, perhaps one of ours that was flooded.
                let Some((to, rest)) = bytes.split_first_chunk() else { continue };
                if *to != self.mac.0 {
                    continue;
                }
                match read(bytes, &self.pattern) {
                    FrameCheck::Good(mark) if mark.stream == self.stream => {
                        taken = true;
                        if self.learn && self.peer.is_none() {
                            self.peer = rest.first_chunk().copied();
                        }
                        if let Some(time) = self.ledger.answer(mark.sequence, now) {
                            let time = time.as_nanos() as u64;
                            self.recent.add(time);
                            self.all.add(time);
                        }
                    }
                    FrameCheck::Corrupt => self.corrupt += 1,
                    _ => (),
                }
            }
            rx.sync();
        }
        taken
    }

    /// When the next line is.
    fn due(&self) -> Instant {
        self.reported.0 + INTERVAL
    }

    fn report(&mut self, now: Instant) -> Result<()> {
        if now < self.due() {
            return Ok(());
        }
        let (last, before) = self.reported;
        let counts = self.ledger.counts;
        let seconds = (now - last).as_secs_f64();
        self.run_loop.output.write(&Line {
            label: self.port.name().into(),
            time: (now - self.run_loop.start).as_secs_f64(),
            pps: (counts.answered - before.answered) as f64 / seconds,
            lost: counts.lost - before.lost,
            rtt_ns: self.recent.distribution(),
        })?;
        self.recent.clear();
        self.reported = (now, counts);
        Ok(())
    }

    /// The summary is told even if the run has failed.
    fn finish(self, pinged: Result<()>) -> Result<()> {
        let Pinger { port, mut lasting, run_loop, ledger, corrupt, all, .. } = self;
        let label = port.name().to_string();
        let (counts, waiting) = (ledger.counts, ledger.waiting() as u64);
        let seconds = run_loop.start.elapsed().as_secs_f64();
        let rtt_ns = all.distribution();
        let summary = Summary { label: label.clone(), seconds, counts, waiting, corrupt, rtt_ns };
        run_loop.output.write(&summary)?;
        let drops = lasting.drops(&port).all;
        run_loop.output.write(&Losses { port: label.clone(), drops, left: 0 })?;
        lasting.tell_device(&port, run_loop.output)?;
        pinged?;
        if counts.answered == 0 && counts.sent > 0 {
            return Err(Error::NoAnswer { port: label, sent: counts.sent });
        }
        Ok(())
    }
}

/// One interval.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "round_trips")]
pub struct Line {
    label: String,
    /// Seconds since the start.
    time: f64,
    /// Answers a second.
    pps: f64,
    /// Given up in this interval.
    lost: u64,
    /// `None`: none was answered.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::described::Distribution>"))]
    rtt_ns: Option<Distribution>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { label, pps, lost, rtt_ns, .. } = self;
        let times = rtt_ns.map(|it| [it.min, it.median(), it.p99(), it.max].map(human_time));
        let [min, median, p99, max] = times.unwrap_or(["-"; 4].map(String::from));
        write!(
            f,
            "{label}  {}pps  min {min}, median {median}, 99% {p99}, max {max}  {lost} lost",
            human(*pps)
        )
    }
}

/// The whole run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "summary")]
pub struct Summary {
    label: String,
    seconds: f64,
    #[serde(flatten)]
    counts: Counts,
    /// Pings that were under way when it ended.
    waiting: u64,
    corrupt: u64,
    /// `None`: none was answered.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::described::Distribution>"))]
    rtt_ns: Option<Distribution>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { sent, answered, lost, late, duplicated, reordered } = self.counts;
        write!(
            f,
            "{}: {sent} pings sent in {:.3} s, {answered} answered, {lost} lost, {duplicated} \
             duplicated, {reordered} reordered, {late} late, {} corrupt, {} under way",
            self.label, self.seconds, self.corrupt, self.waiting
        )?;
        match self.rtt_ns {
            None => Ok(()),
            Some(times) => write!(f, "\n{times}"),
        }
    }
}
