//! A machine's card on its port, from one connection of its monitor to the next.

use super::header::Header;
use super::idle::{Away, Idle};
use super::limited::Limited;
use super::link::{ALL, Awaited, End, Link, Remainder, is_readable};
use super::socket::Socket;
use crate::drops::{Losses, occurred};
use crate::error::{Error, Result};
use crate::flush::left;
use crate::lasting::{Lasting, outlive};
use crate::opened::Opened;
use crate::output::note;
use crate::report::{Counters, Reporter};
use crate::run_loop::{RunLoop, interest};
use ringway::{Interest, Port};
use ringway_abi::Dir;
use ringway_vhost::{HEADER_LEN, LostPages, Moved};
use serde::Serialize;
use std::fmt;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Messages that are obeyed before frames have their turn.
const MESSAGES: usize = 64;

/// Frames that go one way before the other has its turn.
const BATCH: u32 = 256;

/// Turns from one look for messages to the next, while frames keep coming.
const TURNS: u32 = 64;

/// The same in time: a machine can make much work of a turn.
const LOOK: Duration = Duration::from_millis(10);

/// How long the frames of a monitor that has gone wait for room at the port.
const LINGER: Duration = Duration::from_secs(1);

/// Monitors that come and go at once before only some of them are told.
const AT_ONCE: u32 = 32;

/// From one attempt to connect to the next.
const RETRY: Duration = Duration::from_millis(200);

/// What has become of the machine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "machine")]
pub struct Event<'a> {
    port: &'a str,
    state: State,
    /// What its driver makes use of.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Of the machine and its monitor.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum State {
    /// The monitor is there.
    Connected,
    /// The machine's driver is there: frames pass.
    Up,
    /// It is not there any more.
    Down,
    /// Nor is the monitor.
    Disconnected,
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Connected => "the machine's monitor has connected",
            State::Up => "the machine's driver is up",
            State::Down => "the machine's driver is down",
            State::Disconnected => "the machine's monitor is not connected any more",
        };
        write!(f, "{}: {state}", self.port)?;
        self.features.iter().chain(&self.reason).try_for_each(|more| write!(f, ": {more}"))
    }
}

/// What was dropped between the port and the machine in the whole run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "machine_drops")]
pub struct MachineLosses<'a> {
    port: &'a str,
    /// Longer than IP's longest packet, or than all buffers that the machine has offered.
    too_long: u64,
    /// Without an Ethernet header, or without the header in front of it.
    too_short: u64,
    /// Its header asks for what cannot be done.
    bad_offload: u64,
    /// The machine had no buffers left.
    no_buffers: u64,
    /// Of a queue that the machine has disabled.
    disabled: u64,
    /// They came while the machine's driver was down, or waited for the machine, or for room at its port, at the end.
    not_taken: u64,
}

impl MachineLosses<'_> {
    fn of<'a>(port: &'a str, moved: &Moved) -> MachineLosses<'a> {
        let &Moved { too_long, too_short, bad_offload, no_buffers, disabled, not_taken, .. } =
            moved;
        MachineLosses { port, too_long, too_short, bad_offload, no_buffers, disabled, not_taken }
    }
}

impl fmt::Display for MachineLosses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drops = occurred(&[
            ("too long", self.too_long),
            ("too short", self.too_short),
            ("bad offload", self.bad_offload),
            ("no buffers", self.no_buffers),
            ("queue disabled", self.disabled),
            ("not taken", self.not_taken),
        ]);
        write!(f, "  drops at the machine: {drops}")
    }
}

/// One way.
struct Flow {
    reporter: Reporter,
    /// Of the port's rings, those that its frames pass.
    rings: Dir,
    moved: Moved,
    last: Instant,
}

impl Flow {
    fn new(label: String, rings: Dir, start: Instant) -> Flow {
        let reporter = Reporter::new(label, start);
        Flow { reporter, rings, moved: Moved::default(), last: start }
    }

    fn count(&mut self, moved: Moved, port: &Port) {
        self.add(moved, port);
        self.last = Instant::now();
    }

    /// What is lost here is among the drops of the port's ring, too, where others see it while the machine runs: a switch
    /// counts its own drops elsewhere, and a [`DropBook`](crate::drops::DropBook) leaves these out.
    fn add(&mut self, moved: Moved, port: &Port) {
        self.moved += moved;
        let Moved { too_long, too_short, bad_offload, no_buffers, disabled, not_taken, .. } = moved;
        // None where its daemon has ended.
        let ring = port.binding().rings(self.rings).first();
        if let Some(ring) = ring.filter(|_| moved.dropped() > 0) {
            ring.kring().note(|c| &c.too_long, too_long);
            ring.kring().note(|c| &c.too_short, too_short);
            ring.kring().note_bad_offload(bad_offload);
            ring.kring().note(|c| &c.ring_full, no_buffers + disabled + not_taken);
        }
    }

    fn add_not_taken(&mut self, not_taken: u64, port: &Port) {
        self.add(Moved { not_taken, ..Moved::default() }, port);
    }
}

/// Takes all frames that wait for the machine at its port, and says how many.
fn empty(port: &mut Port) -> u64 {
    if port.is_shut() {
        return 0;
    }
    let mut rx = port.rx(0);
    let mut frames = 0;
    while rx.sync() > 0 {
        frames += rx.batch(usize::MAX).filter(|slot| !slot.more_fragments()).count() as u64;
    }
    frames
}

/// What a turn has moved.
#[derive(Default)]
struct Turn {
    out: Moved,
    into: Moved,
}

/// A machine's card: what it is beside its port.
pub struct Card {
    run_loop: RunLoop,
    link: Option<Box<dyn Link>>,
    /// What has connected, and said nothing yet.
    silent: Option<UnixStream>,
    /// The user has been told of other monitors that try to connect while there is this one.
    has_told_of_others: bool,
    /// Why the monitor could not be connected to, which the user has been told.
    unreachable: String,
    /// What was last told of the machine, and of what it has spoiled.
    state: State,
    fault: Option<String>,
    faults: Limited,
    /// What is told of monitors that come and go. Of this one nothing is, unless its machine is up.
    monitors: Limited,
    is_untold: bool,
    /// The header in front of the port's frames.
    header: Header,
    out: Flow,
    into: Flow,
}

impl Card {
    /// For a port that is open.
    pub fn new(port: &Port, mut run_loop: RunLoop) -> Result<Card> {
        run_loop.output.write(&Opened::new(port))?;
        let (switch, machine) = port.name().split_once(':').unwrap_or((port.name(), "machine"));
        let start = run_loop.start;
        Ok(Card {
            out: Flow::new(format!("{machine} -> {switch}"), Dir::Tx, start),
            into: Flow::new(format!("{switch} -> {machine}"), Dir::Rx, start),
            header: Header::new(run_loop.waker()?),
            run_loop,
            link: None,
            silent: None,
            has_told_of_others: false,
            unreachable: String::new(),
            state: State::Disconnected,
            fault: None,
            faults: Limited::default(),
            monitors: Limited::at_once(AT_ONCE),
            is_untold: false,
        })
    }

    /// Serves one monitor after another, until the run is over. A port whose daemon has ended is opened again; its
    /// monitor stays connected meanwhile, and is answered.
    pub fn serve(mut self, mut port: Port, socket: &Socket, lost_pages: &LostPages) -> Result<()> {
        let mut lasting = Lasting::begin(&port)?;
        let served = loop {
            match self.serve_port(&mut port, socket, lost_pages) {
                Err(_) if lasting.has_ended(&mut port) => {
                    if !self.reopen(&mut port, &mut lasting, socket, lost_pages)? {
                        break Ok(());
                    }
                    self.header.port_is_new();
                }
                served => break served,
            }
        };
        self.summarize(&mut port, &mut lasting)?;
        served
    }

    /// Tells how it went, and what was dropped at the port and at the machine.
    fn summarize(&mut self, port: &mut Port, lasting: &mut Lasting) -> Result<()> {
        self.finish_link(port);
        self.tell_untold(port);
        self.into.add_not_taken(empty(port), port);
        let at_the_port = lasting.drops(port);
        let output = self.run_loop.output;
        let mut at_machine = Moved::default();
        let ways = [(&mut self.out, at_the_port.sending), (&mut self.into, at_the_port.receiving)];
        for (flow, at_port) in ways {
            let Moved { frames, bytes, .. } = flow.moved;
            let drops = flow.moved.dropped() + at_port;
            let drops_either_way = at_the_port.either;
            let counters = Counters { packets: frames, bytes, drops, drops_either_way };
            output.write(&flow.reporter.finish(flow.last, counters))?;
            at_machine += flow.moved;
        }
        let left = left(port);
        output.write(&Losses { port: port.name().into(), drops: at_the_port.all, left })?;
        output.write(&MachineLosses::of(port.name(), &at_machine))?;
        lasting.tell_device(port, output)
    }

    /// Waits until the port is open again. No frame moves meanwhile, but a monitor is answered: a machine whose monitor
    /// waits for an answer stands still. False: the run is over before that.
    fn reopen(
        &mut self,
        port: &mut Port,
        lasting: &mut Lasting,
        socket: &Socket,
        lost_pages: &LostPages,
    ) -> Result<bool> {
        while port.is_shut() && !self.run_loop.is_over(Instant::now()) {
            let since = Instant::now();
            if self.link.is_none() {
                self.admit(port, socket)?;
            }
            self.refuse_others(port, socket);
            let end = match self.obey(port, lost_pages) {
                Ok(()) => self
                    .link
                    .as_deref()
                    .is_some_and(|link| link.has_hung_up())
                    .then_some(End::Closed),
                Err(end) => Some(end),
            };
            if let Some(end) = end {
                self.part(port, socket, &end, since)?;
            }
            let silent = self.silent.as_ref().map(AsFd::as_fd);
            let link = self.link.as_deref();
            let until = lasting.until(Instant::now() + RETRY);
            let lost_pages = Some(lost_pages);
            let mut away = Away { socket, silent, port: None, link, lost_pages };
            let slept = self.run_loop.wait_for(&mut away, until);
            outlive(slept, [(&mut *lasting, &mut *port)], &self.run_loop)?;
        }
        Ok(!port.is_shut())
    }

    fn tell(
        &mut self,
        port: &Port,
        state: State,
        features: Option<String>,
        reason: Option<String>,
    ) -> Result<()> {
        self.state = state;
        self.run_loop.output.write(&Event { port: port.name(), state, features, reason })
    }

    /// Until the run is over, or the daemon has ended.
    fn serve_port(
        &mut self,
        port: &mut Port,
        socket: &Socket,
        lost_pages: &LostPages,
    ) -> Result<()> {
        while !self.run_loop.is_over(Instant::now()) {
            if self.link.is_none() {
                self.connect(port, socket)?;
                continue;
            }
            let since = Instant::now();
            if let Err(end) = self.serve_link(port, socket, lost_pages)? {
                self.part(port, socket, &end, since)?;
            }
        }
        Ok(())
    }

    /// The link has ended, which there was `since` then.
    fn part(&mut self, port: &mut Port, socket: &Socket, end: &End, since: Instant) -> Result<()> {
        self.finish_link(port);
        if socket.listener().is_none() {
            // A monitor that listens, and cannot use this card, would be connected to again and again.
            let pause = RETRY.saturating_sub(since.elapsed());
            self.run_loop.sleep(Instant::now() + pause)?;
        }
        let reason = (!matches!(end, End::Closed)).then(|| end.to_string());
        if std::mem::take(&mut self.is_untold) {
            self.state = State::Disconnected;
            return Ok(());
        }
        self.tell(port, State::Disconnected, None, reason)
    }

    /// Lets the link go that has ended, and counts what it still had.
    fn finish_link(&mut self, port: &mut Port) {
        let Some(mut link) = self.link.take() else { return };
        let (run_loop, until) = (&self.run_loop, Instant::now() + LINGER);
        let mut await_room = |port: &mut Port| {
            let now = Instant::now();
            let time = until.saturating_duration_since(now);
            // It fails where the daemon has ended.
            !port.is_shut()
                && !run_loop.is_over(now)
                && run_loop.await_port(port, Interest::Tx, time).unwrap_or(false)
                && !time.is_zero()
        };
        let Remainder { out, into: [frames, bytes] } =
            link.finish(port, self.header.len(), &mut await_room);
        self.out.add(out, port);
        let into = &mut self.into.moved;
        into.frames = into.frames.saturating_sub(frames);
        into.bytes = into.bytes.saturating_sub(bytes);
        self.into.add_not_taken(frames, port);
    }

    /// Waits for a monitor, as long as the daemon is there.
    fn connect(&mut self, port: &mut Port, socket: &Socket) -> Result<()> {
        self.admit(port, socket)?;
        if self.link.is_some() {
            return Ok(());
        }
        port.check(Interest::Rx)?;
        let pause = if socket.listener().is_some() { Duration::from_secs(3600) } else { RETRY };
        let silent = self.silent.as_ref().map(AsFd::as_fd);
        let mut away = Away { socket, silent, port: Some(port), link: None, lost_pages: None };
        self.run_loop.wait_for(&mut away, Instant::now() + pause)
    }

    /// Has the link of a monitor that has come meanwhile, if there is one.
    fn admit(&mut self, port: &Port, socket: &Socket) -> Result<()> {
        match socket.accept(&mut self.silent) {
            Ok(Some(stream)) => {
                let system = |source| Error::System { what: "the monitor's socket", source };
                self.link = Some(socket.link(stream).map_err(system)?);
                self.unreachable.clear();
                self.has_told_of_others = false;
                self.is_untold = !self.monitors.may_tell(Instant::now());
                self.state = State::Connected;
                if self.is_untold {
                    return Ok(());
                }
                self.tell_untold(port);
                return self.tell(port, State::Connected, None, None);
            }
            Ok(None) => {}
            Err(problem) => {
                if self.unreachable != problem {
                    note(format_args!(
                        "{problem}; it is tried again until the monitor listens there"
                    ));
                    self.unreachable = problem;
                }
            }
        }
        Ok(())
    }

    /// Tells how many monitors have come and gone of which nothing was told.
    fn tell_untold(&mut self, port: &Port) {
        match self.monitors.take_untold() {
            0 => {}
            untold => note(format_args!(
                "{}: monitors have connected and gone {untold} times more",
                port.name()
            )),
        }
    }

    /// Until the connection ends, or the run is over.
    fn serve_link(
        &mut self,
        port: &mut Port,
        socket: &Socket,
        lost_pages: &LostPages,
    ) -> Result<std::result::Result<(), End>> {
        let (mut turns, mut looked) = (0, Instant::now());
        loop {
            let now = Instant::now();
            if turns == 0 || now - looked >= LOOK {
                looked = now;
                self.refuse_others(port, socket);
                if let Err(end) = self.obey(port, lost_pages) {
                    return Ok(Err(end));
                }
                self.notice(port)?;
                if self.run_loop.is_over(now) {
                    return Ok(Ok(()));
                }
                turns = TURNS;
            }
            turns -= 1;
            let Some(turn) = self.turn(port) else { return Ok(Ok(())) };
            if !turn.out.is_something() && !turn.into.is_something() {
                self.notice(port)?;
                self.idle(port, &turn, socket, lost_pages)?;
                turns = 0;
            }
        }
    }

    /// A port has one monitor at a time.
    fn refuse_others(&mut self, port: &Port, socket: &Socket) {
        let Some(link) = &self.link else { return };
        if socket.refuse_others(&**link) && !std::mem::replace(&mut self.has_told_of_others, true) {
            note(format_args!(
                "{}: another monitor has tried to connect, and was refused: this port has one",
                port.name()
            ));
        }
    }

    /// Obeys what the monitor has asked for meanwhile. What the machine has sent before that goes to the port first: a
    /// message may stop the queue that it is in.
    fn obey(&mut self, port: &mut Port, lost_pages: &LostPages) -> std::result::Result<(), End> {
        let Some(link) = &mut self.link else { return Ok(()) };
        for _ in 0..MESSAGES {
            if !link.is_asked() {
                break;
            }
            if let Some(header_len) = self.header.len().filter(|_| !port.is_shut()) {
                let moved = link.send(port, header_len, ALL);
                if moved.is_something() {
                    self.out.count(moved, port);
                }
            }
            link.obey()?;
        }
        if is_readable(lost_pages.as_fd()) {
            lost_pages.drain();
            link.check_memory()?;
        }
        Ok(())
    }

    /// Tells what has changed, and gives the port's frames the headers that the machine makes use of.
    fn notice(&mut self, port: &mut Port) -> Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let state = if link.is_up() { State::Up } else { State::Down };
        let (features, header_len, fault) = (link.features(), link.header_len(), link.fault());
        if fault != self.fault {
            if let Some(fault) = &fault {
                let line = self.faults.line(fault, Instant::now());
                line.into_iter().for_each(|line| note(format_args!("{}: {line}", port.name())));
            }
            self.fault = fault;
        }
        let has_changed = self.header.turn_to((state == State::Up).then_some(header_len), port)?;
        let Some(header_len) = self.header.len() else { return Ok(()) };
        if state == State::Up && (self.state != state || has_changed) {
            // What came before is old, or has another header.
            self.into.add_not_taken(empty(port), port);
        }
        if let Some(frame) = link.take_announcement() {
            let mut tx = port.tx(0);
            let is_sent = tx.push(&[&[0; HEADER_LEN][..header_len], &frame].concat());
            tx.sync();
            let bytes = if is_sent { frame.len() as u64 } else { 0 };
            let (frames, not_taken) = (is_sent.into(), (!is_sent).into());
            self.out.count(Moved { frames, bytes, not_taken, ..Moved::default() }, port);
        }
        // A driver that has not come yet is not down.
        if self.state == state || (self.state, state) == (State::Connected, State::Down) {
            return Ok(());
        }
        if std::mem::take(&mut self.is_untold) {
            self.tell(port, State::Connected, None, None)?;
        }
        self.tell(port, state, features.filter(|_| state == State::Up), None)
    }

    /// Moves frames both ways; `None`: there is no monitor.
    fn turn(&mut self, port: &mut Port) -> Option<Turn> {
        let link = self.link.as_mut()?;
        let Some(header_len) = self.header.len() else { return Some(Turn::default()) };
        let out = link.send(port, header_len, BATCH);
        let into = link.receive(port, header_len, BATCH);
        for (flow, moved) in [(&mut self.out, out), (&mut self.into, into)] {
            if moved.is_something() {
                flow.count(moved, port);
            }
        }
        Some(Turn { out, into })
    }

    /// Sleeps until there is something to do.
    fn idle(
        &mut self,
        port: &mut Port,
        turn: &Turn,
        socket: &Socket,
        lost_pages: &LostPages,
    ) -> Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        port.check(Interest::Rx)?;
        let can_move = self.header.len().is_some();
        let takes = can_move && link.can_receive() && !turn.into.no_room;
        let wants_room = can_move && turn.out.no_room;
        let interest = match self.header.is_draining() {
            true => Some(Interest::Tx),
            false => interest(takes, wants_room),
        };
        let patience = link.patience().filter(|_| turn.into.no_room);
        let patience = patience.unwrap_or(Duration::from_secs(3600));
        let awaited = Awaited { frames: can_move && !turn.out.no_room, room: turn.into.no_room };
        let port = match interest {
            Some(interest) => Ok(port.waiter(interest)),
            None => Err(&*port),
        };
        let mut idle = Idle { link: &mut **link, socket, port, awaited, lost_pages };
        self.run_loop.wait_for(&mut idle, Instant::now() + patience)
    }
}
