//! `ringway capture`: records what ports receive into capture files, and prints it.

use crate::capture_file;
use crate::drops::{Drops, Losses};
use crate::error::{Error, Result};
use crate::filter::Chosen;
use crate::frame_uses::FrameUses;
use crate::intake::Intake;
use crate::lasting::{Lasting, outlive, until};
use crate::listening::Listening;
use crate::opened::{Opened, shown_name};
use crate::opening;
use crate::output::note;
use crate::plain_file;
use crate::port_notes;
use crate::print::{self, Printer};
use crate::recording;
use crate::report::{Counters, Reporter};
use crate::run_loop::{self, RunLoop};
use crate::same_rings::check_distinct;
use crate::stdout;
use crate::units::{number, parse_count, parse_duration};
use ringway::{Interest, Port};
use ringway_file::{Interface, Recorder, Recording, Rotation};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
The command takes the frames that ports receive. To record beside the program that has a port, name
the port's monitor (vale0:b/rt: frames that it receives and sends). A pcapng file has the names of
the ports, the direction of monitored frames, and the number of dropped frames. A file named .pcap
is in that format; the endings .gz and .zst compress it. Files that rotate have numbers, or the time
of their beginning if the name has conversions for it, and pass over names in use; existing files
are replaced only with --overwrite. A disk that is too slow blocks no port: frames that it has no
room for are dropped and counted. What the device of an interface has lost meanwhile is in a line of
its own below the summary: see `ringway ports --help` for its counters. A file that ends, and an interface that goes, ends the capture of
that port alone.

Examples:
  ringway capture vale0:b/rt -w session.pcapng
  ringway capture netmap:eth0 netmap:eth1 -w both.pcapng.zst --snaplen 128 --duration 60s
  ringway capture netmap:eth0 -w ring.pcapng --rotate-size 100M --files 10
  ringway capture netmap:eth0 -w 'day-%Y-%m-%d.pcap.zst' --rotate-time 24h
  ringway capture netmap:eth0 --filter 'udp port 53' -w - | wireshark -k -i -
  ringway capture vale0:a/rt vale0:b/rt --print      a line for each packet, and no file
  ringway capture netmap:eth0/rt --print             beside the stack, if no program has eth0 open")]
#[command(group = clap::ArgGroup::new("use").args(["write", "print"]).required(true).multiple(true))]
pub struct Args {
    /// Ports to record
    #[arg(required = true)]
    ports: Vec<String>,

    /// File to write; - for standard output. With rotation it may have the time in its name, as strftime(3)
    /// writes it: x-%Y%m%d-%H%M%S.pcap
    #[arg(short, long, value_name = "FILE", value_parser = plain_file::written())]
    write: Option<PathBuf>,

    #[command(flatten)]
    print: print::Args,

    /// End after so many frames: 1000, 10k, 1.5M
    #[arg(short = 'n', long, value_name = "FRAMES", value_parser = parse_count)]
    count: Option<u64>,

    #[command(flatten)]
    chosen: Chosen,

    /// Bytes that are kept of a frame [default: all]
    #[arg(short, long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = number(0..=u32::MAX, 128), requires = "write")]
    snaplen: u32,

    /// Begin another file, with the next number, after so many bytes: 100M
    #[arg(long, value_name = "BYTES", value_parser = parse_size, requires = "write")]
    rotate_size: Option<u64>,

    /// Begin another file after this time: 60s, 5m, 24h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "write")]
    rotate_time: Option<Duration>,

    /// Replace a file that is there already, which is refused otherwise
    #[arg(long, requires = "write")]
    overwrite: bool,

    /// Keep only the last files
    #[arg(long, value_name = "COUNT", value_parser = number(1..=u32::MAX, 10))]
    files: Option<u32>,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

/// Bytes of a file; with none each frame would have a file of its own.
fn parse_size(text: &str) -> Result<u64> {
    match parse_count(text)? {
        0 => Err(Error::Value("`0` is no size of a file; write 100M".into())),
        size => Ok(size),
    }
}

/// Records until the count, the time or the user says that it is enough.
pub fn run(args: &Args) -> Result<()> {
    let rotation = Rotation { size: args.rotate_size, time: args.rotate_time, files: args.files };
    if rotation.files.is_some() && !rotation.is_on() {
        let wrong =
            "--files counts files that --rotate-size or --rotate-time begins: give one of them";
        return Err(Error::Value(wrong.into()));
    }
    if let Some(file) = args.write.as_deref().filter(|file| rotation.is_on() && stdout::is(file)) {
        return Err(Error::Value(format!(
            "{}: standard output is one file; name a file for --rotate-size and --rotate-time",
            file.display()
        )));
    }
    check_distinct(&args.ports, "recorded")?;
    args.print.choose_stdout(args.write.as_deref())?;
    let mut options = Port::options().rx_only();
    if let Some(filter) = args.chosen.filter()? {
        options = options.filter(filter);
    }
    let (mut sources, mut listening) = (Vec::new(), Vec::new());
    for (interface, name) in (0..).zip(&args.ports) {
        let port = match opening::open(&options, name, args.opening) {
            Ok(port) => port,
            Err(error) => {
                listening.push(Listening::instead(name, interface, &args.chosen, error)?);
                continue;
            }
        };
        port_notes::receiving(&port, name);
        let (intake, lasting) = (Intake::of(interface, &port), Lasting::begin(&port)?);
        sources.push(Source { port, lasting, intake, is_over: false });
    }
    let interface = |name: &String| Interface { name: name.clone(), filter: args.chosen.text() };
    let recorder = args.write.as_ref().map(|file| {
        Recorder::new(&Recording {
            file: file.clone(),
            interfaces: args.ports.iter().map(interface).collect(),
            snaplen: args.snaplen,
            rotation,
            overwrite: args.overwrite,
        })
    });
    let mut printer = args.print.printer();
    if args.ports.len() > 1 {
        printer = printer.map(Printer::with_names);
    }
    let uses = FrameUses { recorder: recorder.transpose()?, printer, ..FrameUses::default() };
    let run_loop = RunLoop::begin(&args.run_loop)?;
    let file = args.write.as_ref().map(|file| file.display().to_string());
    let reporter = Reporter::new(file.unwrap_or_else(|| args.ports.join(", ")), run_loop.start);
    let mut capture = Capture {
        sources,
        listening,
        uses,
        file: args.write.clone(),
        wanted: args.count.unwrap_or(u64::MAX),
        counted: Counters::default(),
        reporter,
        run_loop,
        failed: None,
    };
    for source in &capture.sources {
        capture.run_loop.tell(&Opened::new(&source.port))?;
    }
    for listening in &capture.listening {
        capture.run_loop.tell(&Opened::listening(&listening.name))?;
    }
    let captured = capture.capture();
    capture.finish(captured)
}

/// A port that is recorded.
struct Source {
    port: Port,
    lasting: Lasting,
    intake: Intake,
    /// Nothing comes any more: a file has ended, or an interface has gone.
    is_over: bool,
}

struct Capture {
    sources: Vec<Source>,
    listening: Vec<Listening>,
    uses: FrameUses,
    /// What the recorder writes.
    file: Option<PathBuf>,
    wanted: u64,
    counted: Counters,
    reporter: Reporter,
    run_loop: RunLoop,
    /// Why a port was over before the run, except at the end of a file.
    failed: Option<Error>,
}

impl Capture {
    fn capture(&mut self) -> Result<()> {
        loop {
            let mut taken = 0;
            for source in live(&mut self.sources) {
                let Source { port, intake, .. } = source;
                taken += intake.take(port, &mut self.uses, &mut self.counted, self.wanted);
            }
            taken += self.listen();
            self.uses.flush()?;
            let now = Instant::now();
            self.report(now)?;
            if self.counted.packets >= self.wanted {
                return Ok(());
            }
            if self.run_loop.is_over(now) {
                self.take_rest();
                self.listen();
                return self.uses.flush();
            }
            if taken == 0 {
                self.wait()?;
                self.check();
            }
            if !self.goes_on() {
                return Ok(());
            }
        }
    }

    /// Whether there is a port that something may come from.
    fn goes_on(&self) -> bool {
        self.sources.iter().any(|source| !source.is_over)
            || self.listening.iter().any(|listening| !listening.is_over)
    }

    /// Finds the ports that are over, of those that had nothing: the others go on.
    fn check(&mut self) {
        let run_loop = &self.run_loop;
        let ended = live(&mut self.sources).filter_map(|source| source.check(run_loop).err());
        ended.collect::<Vec<_>>().into_iter().for_each(|why| self.tell_end(why));
    }

    /// Tells why a port is over, but for the first reason if it is the end of the run, which fails with that. The end of a
    /// file is no failure.
    fn tell_end(&mut self, why: Error) {
        let Err(error) = capture_file::ended(Err(why)) else { return };
        if self.goes_on() {
            note(format_args!("{error}; the capture of the other ports goes on"));
        } else if self.failed.is_some() {
            note(format_args!("{error}"));
        }
        self.failed.get_or_insert(error);
    }

    fn wait(&mut self) -> Result<()> {
        let lasting = self.sources.iter().filter(|source| !source.is_over).map(|it| &it.lasting);
        let due = until(self.reporter.due(), lasting);
        let ports = live(&mut self.sources).map(|source| (&mut source.port, Interest::Rx));
        let mut ports = ports.collect::<Vec<_>>();
        let fds = self.listening.iter().filter(|listening| !listening.is_over).map(Listening::fd);
        self.run_loop.wait_beside(&mut ports, fds.collect(), due)
    }

    /// Takes what passed the interfaces that are listened to; how many packets that were.
    fn listen(&mut self) -> usize {
        let (mut taken, mut ended) = (0, Vec::new());
        for listening in self.listening.iter_mut().filter(|listening| !listening.is_over) {
            let left = self.wanted - self.counted.packets;
            match listening.take(&mut self.uses, left) {
                Ok((packets, bytes)) => {
                    self.counted.packets += packets;
                    self.counted.bytes += bytes;
                    taken += packets as usize;
                }
                Err(why) => {
                    listening.is_over = true;
                    ended.push(why);
                }
            }
        }
        ended.into_iter().for_each(|why| self.tell_end(why));
        taken
    }

    /// Takes what has come before the end, and no more than the rings hold.
    fn take_rest(&mut self) {
        for source in live(&mut self.sources) {
            let Source { port, intake, .. } = source;
            intake.take_rest(port, &mut self.uses, &mut self.counted, self.wanted);
        }
    }

    /// Tells how it goes, if it is time for that.
    fn report(&mut self, now: Instant) -> Result<()> {
        if self.reporter.is_due(now) {
            self.count_drops();
            let line = self.reporter.tick(now, self.counted);
            self.run_loop.tell(&line)?;
        }
        Ok(())
    }

    /// Counts what was dropped; returns how much of that was at the ports. The thread that writes may drop more at any
    /// time.
    fn count_drops(&mut self) -> u64 {
        let mut drops = 0;
        for source in &mut self.sources {
            let lost = source.lasting.drops(&source.port).if_it_receives();
            if let Some(recorder) = &self.uses.recorder {
                recorder.set_lost(source.intake.origin.interface, lost);
            }
            drops += lost;
        }
        for listening in &self.listening {
            if let Some(recorder) = &self.uses.recorder {
                recorder.set_lost(listening.origin.interface, listening.lost());
            }
            drops += listening.lost();
        }
        self.counted.drops = drops + self.uses.dropped();
        drops
    }

    /// The summary is told even if the run has failed.
    fn finish(mut self, captured: Result<()>) -> Result<()> {
        let lost = self.count_drops();
        if let Some(recorder) = &mut self.uses.recorder {
            recorder.finish();
        }
        self.counted.drops = lost + self.uses.dropped();
        let summary = self.reporter.finish(Instant::now(), self.counted);
        self.run_loop.tell(&summary)?;
        for source in &mut self.sources {
            let drops = source.lasting.drops(&source.port).all;
            self.run_loop.tell(&Losses { port: shown_name(&source.port), drops, left: 0 })?;
            source.lasting.tell_device(&source.port, self.run_loop.output)?;
        }
        for listening in &self.listening {
            let drops = Drops { ring_full: listening.lost(), ..Drops::default() };
            self.run_loop.tell(&Losses { port: listening.name.clone(), drops, left: 0 })?;
        }
        if let Some(file) = &self.file {
            self.run_loop.tell(&recording::losses(file, self.uses.dropped()))?;
        }
        captured?;
        self.uses.flush()?;
        self.failed.map_or(Ok(()), Err)
    }
}

fn live(sources: &mut [Source]) -> impl Iterator<Item = &mut Source> {
    sources.iter_mut().filter(|source| !source.is_over)
}

impl Source {
    /// With a port that has just been opened, again.
    fn begin(&mut self) {
        self.intake = Intake::of(self.intake.origin.interface, &self.port);
    }

    /// Whether something may still come. A port whose daemon has ended is opened again.
    ///
    /// # Errors
    /// Why the port is over, once.
    fn check(&mut self, run_loop: &RunLoop) -> Result<()> {
        let Source { port, lasting, .. } = self;
        let checked = match port.is_shut() {
            true => Ok(()),
            false => port.poll_or_check(Interest::Rx).map(drop).map_err(Error::from),
        };
        let opened = outlive(checked, [(lasting, port)], run_loop);
        self.is_over = opened.is_err();
        if !opened?.is_empty() {
            self.begin();
        }
        Ok(())
    }
}
