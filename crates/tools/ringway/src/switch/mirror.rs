//! `ringway switch mirror`: shows another port what passes ports of a switch.
//!
//! Each port has a [monitor](Source), which comes and goes with it.

use crate::drops::{DropBook, Losses, PortDrops};
use crate::error::{Error, Result};
use crate::flush::left;
use crate::fragments::Fragments;
use crate::lasting::{Lasting, outlive};
use crate::opened::Opened;
use crate::opening;
use crate::output::{Output, note};
use crate::port_notes;
use crate::report::{Counters, Reporter};
use crate::run_loop::{self, RunLoop};
use crate::switch::{
    choose::switch_name,
    mirrors::{self, Direction},
};
use crate::units::number;
use ringway::{
    BridgeInfo, Cause, Control, FileSpec, Forwarding, Interest, Port, PortSpec, Turns, TxRing,
};
use ringway_filter::{Interpreter, Program, compile};
use rustix::process::geteuid;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
With `add`, the switch itself has a mirror, to another of its ports: see `ringway switch mirror add --help`. Without,
the command sends copies to a port that is not of the switch, or to a file.

Runs until it is interrupted, and nothing is mirrored after that: for a mirror that is always there, systemd runs it as
ringway-mirror@NAME, with the arguments in /etc/ringway/mirror/NAME.conf (MIRROR=vale0 eth1 --to ...). Copies that the other port has no room for are lost, and counted; the
ports that are mirrored never wait. A port that is not there yet, or goes, is mirrored as soon as it is
there.

Examples (quote the braces of a pipe's name):
  ringway switch mirror vale0 eth1 --to 'capture{1'        and receive at 'capture}1'
  ringway switch mirror vale0 veth-a veth-b --direction sent --to 'capture{1'
  ringway switch mirror vale0 a --filter 'udp port 53' --sample 10 --to netmap:eth2
  ringway switch mirror vale0 a b --to file:seen.pcapng@rotate=1h@files=24
  ringway switch mirror add vale0 span --from veth-a,veth-b --to probe
  ringway switch mirror show vale0
  ringway switch mirror del vale0 span"
)]
pub struct Args {
    /// The switch: vale<id>
    #[arg(required = true)]
    switch: Option<String>,

    /// Its ports: programs', or interfaces that are attached
    #[arg(required = true)]
    ports: Vec<String>,

    /// The port that sends the copies: of another switch, a pipe's end, an interface, or a capture file
    #[arg(long, value_name = "PORT", required = true)]
    to: Option<String>,

    /// What the ports send into the switch, what they receive from it, or both
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    direction: Direction,

    /// Only frames that match, as `man pcap-filter` describes it
    #[arg(short, long, value_name = "EXPRESSION")]
    filter: Option<String>,

    /// One in so many of the frames that match
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    #[arg(value_parser = number(1..=u32::MAX, 10))]
    sample: u32,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,

    #[command(subcommand)]
    action: Option<mirrors::Action>,
}

impl Args {
    fn switch(&self) -> &str {
        self.switch.as_deref().unwrap_or_default()
    }

    fn to(&self) -> &str {
        self.to.as_deref().unwrap_or_default()
    }

    fn sources(&self) -> impl Iterator<Item = Source> {
        self.ports.iter().map(|port| Source::new(self.switch(), port, self.direction))
    }
}

impl Direction {
    /// The flags of a monitor.
    fn flags(self) -> &'static str {
        match self {
            Direction::Sent => "t",
            Direction::Received => "r",
            Direction::Both => "rt",
        }
    }
}

/// From one look for a port that is not there to the next.
const RETRY: Duration = Duration::from_millis(250);

/// Slots taken from a monitor before others have their turn.
const BATCH: usize = 256;

pub fn check(args: &Args) -> Result<()> {
    if let Some(action) = &args.action {
        return mirrors::check(action);
    }
    switch_name(args.switch())?;
    let mut specs: Vec<String> = args.sources().map(|source| source.spec).collect();
    specs.sort_unstable();
    if let Some(twice) = specs.windows(2).find(|pair| pair[0] == pair[1]) {
        let port = twice[0].rsplit_once('/').map_or(&*twice[0], |(port, _)| port);
        let problem = "the port is named twice, and would be mirrored twice; name it once";
        return Err(Error::Value(format!("{port}: {problem}")));
    }
    if FileSpec::is_file(args.to()) {
        return Ok(());
    }
    // What is sent into the switch goes to its ports, and what they get is mirrored again.
    match PortSpec::parse(args.to())?.name.split_once(':') {
        Some((switch, _)) if switch == args.switch() => Err(Error::Value(format!(
            "{}: copies that are sent into the switch would be forwarded, and mirrored again; for a port of \
             the switch, set a mirror of the switch: `ringway switch mirror add {} NAME --from {} --to {}`",
            args.to(),
            args.switch(),
            args.ports.join(","),
            args.to()
        ))),
        _ => Ok(()),
    }
}

pub fn run(control: &Control, args: &Args) -> Result<()> {
    if let Some(action) = &args.action {
        return mirrors::run(control, action);
    }
    let selection = Selection::new(args)?;
    let to = opening::open(&Port::options().tx_only(), args.to(), args.opening)?;
    port_notes::sending(&to, args.to());
    let run_loop = RunLoop::begin(&args.run_loop)?;
    run_loop.output.write(&Opened::new(&to))?;
    if let Some((switch, _)) = to.name().split_once(':') {
        warn_of_learning(switch)?;
    }
    let label = format!("{} -> {}", args.switch(), to.name());
    let lasting = Lasting::begin(&to)?;
    let mut mirror = Mirror {
        sources: args.sources().collect(),
        reporter: Reporter::new(label, run_loop.start),
        counted: Counters::default(),
        no_room: 0,
        last: run_loop.start,
        frame: Vec::new(),
        turns: Turns::default(),
        selection,
        to,
        lasting,
        run_loop,
    };
    let mirrored = mirror.mirror();
    mirror.finish(mirrored)
}

/// A switch that learns from the copies where addresses are sends none of them on.
fn warn_of_learning(switch: &str) -> Result<()> {
    let learns = |info: &BridgeInfo| {
        info.name == switch && matches!(info.forwarding, Forwarding::Learning { .. })
    };
    if Control::connect()?.switches()?.iter().any(learns) {
        note(format_args!(
            "{switch} learns from the copies that all addresses are at this port, and then drops what is for \
             them; run `ringway switch forward {switch} flood`, or send the copies into a pipe"
        ));
    }
    Ok(())
}

/// Which frames are shown.
struct Selection {
    filter: Option<Interpreter>,
    one_in: u32,
    /// Frames that have matched since the last that was taken.
    matched: u32,
}

impl Selection {
    fn new(args: &Args) -> Result<Selection> {
        let program = args.filter.as_deref().map(compile).transpose();
        let program: Option<Program> = program.map_err(ringway::Error::from)?;
        let filter = program.as_ref().map(Interpreter::new);
        Ok(Selection { filter, one_in: args.sample, matched: 0 })
    }

    fn takes(&mut self, frame: &[u8]) -> bool {
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        if self.filter.as_ref().is_some_and(|filter| filter.run(&frame, len) == 0) {
            return false;
        }
        self.matched += 1;
        if self.matched < self.one_in {
            return false;
        }
        self.matched = 0;
        true
    }
}

/// A port that is mirrored.
struct Source {
    /// Its monitor.
    spec: String,
    port: Option<Port>,
    /// What its monitors have lost, as copies came faster than they were taken; `None`: there was none yet.
    book: Option<DropBook>,
    /// When to look for it again.
    retry: Instant,
    /// Whether the user knows that it is not there.
    told: bool,
    /// Ring by ring.
    fragments: Vec<Fragments>,
}

impl Source {
    fn new(switch: &str, port: &str, direction: Direction) -> Source {
        let name = port.strip_prefix(switch).and_then(|rest| rest.strip_prefix(':'));
        let spec = format!("{switch}:{}/{}", name.unwrap_or(port), direction.flags());
        let (retry, fragments) = (Instant::now(), Vec::new());
        Source { spec, port: None, book: None, retry, told: false, fragments }
    }

    /// Opens its monitor, if it is time to try.
    fn look(&mut self, now: Instant, output: Output) -> Result<()> {
        if self.port.is_some() || now < self.retry {
            return Ok(());
        }
        match self.open() {
            Ok(port) => {
                self.fragments = Fragments::of(&port);
                match &mut self.book {
                    Some(book) => book.reopened(&port),
                    None => self.book = Some(DropBook::open(&port)?),
                }
                output.write(&Opened::new(&port))?;
                (self.port, self.told) = (Some(port), false);
            }
            Err(error) => {
                if !std::mem::replace(&mut self.told, true) {
                    self.tell_why_not(&error);
                }
                self.retry = now + RETRY;
            }
        }
        Ok(())
    }

    /// Its monitor. Root shows what any user's port has, and the copies are read as what a user may write to.
    fn open(&self) -> std::result::Result<Port, ringway::Error> {
        let open = |spec: &str| Port::options().rx_only().open(spec);
        open(&self.spec).or_else(|error| match self.user() {
            Some(user) if error.cause() == Cause::Busy => {
                open(&format!("{}@user={user}", self.spec))
            }
            _ => Err(error),
        })
    }

    /// The user whose the port is, if root asks, and the port was not named with a user.
    fn user(&self) -> Option<u32> {
        if !geteuid().is_root() || self.spec.contains("@user=") {
            return None;
        }
        let ports = Control::connect().and_then(|control| control.ports()).ok()?;
        ports.iter().find(|port| port.name == self.name()).map(|port| port.uid)
    }

    fn tell_why_not(&self, error: &ringway::Error) {
        match error.cause() {
            // A monitor of what is not there is invalid, as netmap has it.
            Cause::Invalid | Cause::NoPort | Cause::NotFound if !self.is_there() => {
                note(format_args!(
                    "{}: there is no such port yet; it is mirrored as soon as there is (`ringway switch list` \
                 shows those there are)",
                    self.name()
                ))
            }
            _ => note(format_args!("{error} (it is tried again)")),
        }
    }

    /// Whether the switch has the port.
    fn is_there(&self) -> bool {
        let switches = Control::connect().and_then(|control| control.switches());
        let mut ports = switches.iter().flatten().flat_map(|switch| &switch.ports);
        ports.any(|port| port.name == self.name())
    }

    /// The port's full name.
    fn name(&self) -> &str {
        self.spec.split('/').next().unwrap_or(&self.spec)
    }

    /// Closes a monitor whose port has been closed, once all its packets have been taken.
    fn let_go(&mut self, now: Instant) {
        let gone = |port: &mut Port| port.poll_or_check(Interest::Rx).is_err();
        if let Some(port) = &mut self.port
            && gone(port)
        {
            if let Some(book) = &mut self.book {
                book.ended(port);
            }
            (self.port, self.retry, self.told) = (None, now, true);
            note(format_args!(
                "{} has gone; it is mirrored again as soon as it is back",
                self.spec
            ));
        }
    }

    /// What its monitors have lost so far.
    fn drops(&mut self) -> PortDrops {
        match (&mut self.book, &self.port) {
            (Some(book), Some(port)) => book.read(port),
            (Some(book), None) => book.kept(),
            (None, _) => PortDrops::default(),
        }
    }
}

struct Mirror {
    sources: Vec<Source>,
    selection: Selection,
    to: Port,
    lasting: Lasting,
    run_loop: RunLoop,
    reporter: Reporter,
    counted: Counters,
    /// Copies for which the ring of `to` had no room.
    no_room: u64,
    last: Instant,
    /// A frame that is looked at.
    frame: Vec<u8>,
    /// Which source is the first to have room.
    turns: Turns,
}

impl Mirror {
    fn mirror(&mut self) -> Result<()> {
        loop {
            let now = Instant::now();
            let output = self.run_loop.output;
            self.sources.iter_mut().try_for_each(|source| source.look(now, output))?;
            let taken = self.take();
            let now = Instant::now();
            if taken > 0 {
                self.last = now;
            }
            let is_due = self.reporter.is_due(now);
            if is_due {
                self.count_drops();
                let line = self.reporter.tick(now, self.counted);
                self.run_loop.output.write(&line)?;
            }
            if self.run_loop.is_over(now) {
                return Ok(());
            }
            if taken == 0 || is_due {
                self.check()?;
            }
            if taken == 0 {
                self.wait()?;
            }
        }
    }

    /// Whether the copies still have a port, which is opened again when its daemon was restarted.
    fn check(&mut self) -> Result<()> {
        let Mirror { to, lasting, run_loop, .. } = self;
        let checked = if to.is_shut() { Ok(()) } else { to.check(Interest::Tx) };
        outlive(checked.map_err(Error::from), [(lasting, to)], run_loop)?;
        Ok(())
    }

    /// Sends on what the monitors have; how many slots that were.
    fn take(&mut self) -> usize {
        let longest = self.to.max_frame();
        let (mut to, _) = self.to.split();
        let Some(to) = to.first_mut() else { return 0 };
        let mut taken = 0;
        let frame = &mut self.frame;
        let mut rings = Vec::new();
        for Source { port, fragments, .. } in &mut self.sources {
            let Some(port) = port else { continue };
            rings.extend(port.split().1.into_iter().zip(fragments));
        }
        self.turns.each(rings.len(), |at| {
            let ((rx, fragments), before) = (&mut rings[at], taken);
            for slot in rx.batch(BATCH) {
                taken += 1;
                let Some(whole) = fragments.add(slot) else { continue };
                whole.read(frame);
                if !self.selection.takes(frame) {
                    continue;
                }
                match send(to, frame, longest) {
                    true => {
                        self.counted.packets += 1;
                        self.counted.bytes += frame.len() as u64;
                    }
                    false => self.no_room += 1,
                }
            }
            rx.sync();
            taken > before
        });
        to.sync();
        taken
    }

    /// Copies that were lost at the monitors, for want of room, and behind it.
    fn count_drops(&mut self) {
        let monitors =
            self.sources.iter_mut().map(|source| source.drops().if_it_receives()).sum::<u64>();
        let behind = self.lasting.drops(&self.to).if_it_sends();
        self.counted.drops = monitors + self.no_room + behind;
    }

    /// The summary is told even if the run has failed.
    fn finish(mut self, mirrored: Result<()>) -> Result<()> {
        let written = self.to.finish_file();
        self.count_drops();
        let output = self.run_loop.output;
        output.write(&self.reporter.finish(self.last, self.counted))?;
        for source in &mut self.sources {
            let drops = source.drops().all;
            output.write(&Losses { port: source.spec.clone(), drops, left: 0 })?;
        }
        let mut drops = self.lasting.drops(&self.to).all;
        drops.ring_full += self.no_room;
        let left = left(&mut self.to);
        output.write(&Losses { port: self.to.name().into(), drops, left })?;
        self.lasting.tell_device(&self.to, output)?;
        mirrored?;
        Ok(written?)
    }

    fn wait(&mut self) -> Result<()> {
        let mut until = self.lasting.until(self.reporter.due());
        let missing = self.sources.iter().filter(|source| source.port.is_none());
        until = missing.map(|source| source.retry).fold(until, Instant::min);
        let ports = self.sources.iter_mut().filter_map(|source| source.port.as_mut());
        let mut waiters: Vec<_> = ports.map(|port| port.waiter(Interest::Rx)).collect();
        self.run_loop.wait_for(&mut waiters[..], until)?;
        drop(waiters);
        let now = Instant::now();
        self.sources.iter_mut().for_each(|source| source.let_go(now));
        Ok(())
    }
}

/// Puts a frame into a ring, in as many slots as it takes. False if there is no room for all of them.
fn send(to: &mut TxRing<'_>, frame: &[u8], longest: usize) -> bool {
    let slots = frame.len().div_ceil(longest).max(1);
    if to.space() < slots {
        to.sync();
    }
    if to.space() < slots {
        return false;
    }
    let mut rest = frame;
    for mut slot in to.batch(slots) {
        let (part, behind) = rest.split_at(rest.len().min(longest));
        slot.write_part(part, !behind.is_empty());
        rest = behind;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_doc::{self as doc, fairness::BusyPipe};

    fn selection(filter: Option<&str>, one_in: u32) -> Selection {
        let program = filter.map(|text| compile(text).unwrap());
        Selection { filter: program.as_ref().map(Interpreter::new), one_in, matched: 0 }
    }

    fn mirror(from: Port, to: Port) -> Mirror {
        let mut source = Source::new("vale0", "a", Direction::Both);
        source.fragments = Fragments::of(&from);
        source.book = Some(DropBook::open(&from).unwrap());
        source.port = Some(from);
        let run_loop = RunLoop::begin(&run_loop::Args::default()).unwrap();
        Mirror {
            sources: vec![source],
            selection: selection(None, 1),
            lasting: Lasting::begin(&to).unwrap(),
            to,
            reporter: Reporter::new("", run_loop.start),
            counted: Counters::default(),
            no_room: 0,
            last: run_loop.start,
            frame: Vec::new(),
            turns: Turns::default(),
            run_loop,
        }
    }

    /// Also those that the monitor had no room for, and also when it has gone.
    #[test]
    fn copies_that_are_lost_are_counted() {
        let mut sender = doc::open("mirl{1@conf:slots=64").unwrap();
        let mut receiver = doc::open("mirl}1").unwrap();
        let monitor = doc::options().rx_only().open("mirl}1/r@conf:slots=16").unwrap();
        let room = monitor.binding().registration().rx_slots as u64 - 1;
        let (to, _sink) = (doc::open("mirk{1@conf:slots=8").unwrap(), doc::open("mirk}1").unwrap());
        let mut mirror = mirror(monitor, to);
        for _ in 0..40 {
            assert!(sender.tx(0).push(&[1; 60]));
        }
        sender.tx(0).sync();
        let mut rx = receiver.rx(0);
        rx.sync();
        assert_eq!(rx.batch(64).count(), 40);
        rx.sync();
        // The first turn ends with a look at the monitor.
        assert_eq!(mirror.take(), 0);
        while mirror.take() > 0 {}
        mirror.count_drops();
        let Counters { packets, drops, .. } = mirror.counted;
        assert_eq!((packets, drops, mirror.no_room), (7, 33, room - 7));
        let source = &mut mirror.sources[0];
        source.book.as_mut().unwrap().ended(source.port.as_mut().unwrap());
        source.port = None;
        mirror.count_drops();
        assert_eq!(mirror.counted.drops, 33);
    }

    #[test]
    fn one_in_so_many_of_what_matches() {
        let frame = |length: u8| vec![0u8; length.into()];
        let mut selection = selection(Some("greater 100"), 3);
        let taken = |length| selection.takes(&frame(length));
        let lengths = [100, 60, 101, 60, 102, 103, 60, 104];
        let expected = [false, false, false, false, true, false, false, false];
        assert_eq!(lengths.map(taken), expected);
    }

    /// A frame that is longer than a buffer takes several slots, and none is sent in part.
    #[test]
    fn frames_are_sent_whole_or_not_at_all() {
        let mut a = doc::open("mira{1@conf:slots=8").unwrap();
        let mut b = doc::open("mira}1").unwrap();
        let longest = a.max_frame();
        let frame: Vec<u8> = (0..3 * longest).map(|i| (i % 251) as u8).collect();
        let mut tx = a.tx(0);
        assert!(send(&mut tx, &frame[..2 * longest + 1], longest));
        assert!(send(&mut tx, &frame, longest));
        assert!(!send(&mut tx, &frame, longest), "7 slots, 6 of them taken");
        assert!(send(&mut tx, &frame[..longest], longest));
        tx.sync();
        let mut rx = b.rx(0);
        rx.sync();
        let parts: Vec<_> =
            rx.batch(8).map(|slot| (slot.to_vec(), slot.more_fragments())).collect();
        assert_eq!(parts.len(), 7);
        assert_eq!(
            parts.iter().map(|(_, more)| *more).collect::<Vec<_>>(),
            [true, true, false, true, true, false, false]
        );
        let whole: Vec<u8> = parts[3..6].iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        assert_eq!(whole, frame);
    }

    /// Where there is too little room for all sources, each loses some, and none all.
    #[test]
    fn sources_share_the_room() {
        let (mut busy, from) =
            BusyPipe::new("mirf", 3, |name| doc::options().rx_only().open(name).unwrap());
        let (to, mut sink) =
            (doc::open("mirn{1@conf:slots=16").unwrap(), doc::open("mirn}1").unwrap());
        let mut mirror = mirror(from, to);
        while !busy.is_over() {
            mirror.take();
            let mut rx = sink.rx(0);
            rx.sync();
            rx.batch(10).for_each(|frame| busy.count(frame.len()));
            rx.sync();
            busy.fill();
        }
        busy.assert_fair("switch mirror");
    }
}
