//! Sends each frame when it is due.

use crate::error::Result;
use crate::fragmenter::{Fragmenter, publish};
use crate::lateness::Lateness;
use crate::metered::Metered;
use crate::output::note;
use crate::report::Counters;
use crate::run_loop::RunLoop;
use ringway::{Interest, Port, Recorded};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// What a timeline has next.
pub enum Next<'t> {
    /// A frame, due at a time, in nanoseconds since there was a first one; `None`: as soon as there is room.
    /// `recorded`: what a capture file is to have of it, if the port is one.
    Frame { bytes: &'t [u8], due: Option<u64>, recorded: Option<Recorded> },
    /// Nothing, as yet.
    Nothing,
    /// Nothing comes any more.
    End,
}

/// Frames, each with its time.
pub trait Timeline {
    /// What comes next. It is `now`. Frames come in the order of their times.
    fn next(&mut self, now: u64) -> Result<Next<'_>>;
    /// The frame that was next has gone.
    fn advance(&mut self);
    /// Waits until there may be something next, or until then.
    fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()>;
    /// How much later than planned everything is by now, because the port took nothing.
    fn slipped(&self) -> u64;
    /// The name of what the next frame comes from, told to the user during a long wait.
    fn source(&self) -> Option<&str> {
        None
    }
}

/// A pause that the user is told of.
const LONG: Duration = Duration::from_secs(3);

/// Frames handed over in one piece, at most.
const BATCH: usize = 256;

/// Hands frames of a timeline to a port.
pub struct Pump<T> {
    pub timeline: T,
    pub lateness: Lateness,
    pub counted: Counters,
    fragmenter: Fragmenter,
    batch: usize,
    /// Times of the batch's frames.
    dues: Vec<u64>,
}

pub struct Sender<T> {
    run: Metered,
    pub pump: Pump<T>,
    /// When there was a first frame: what their times are counted from.
    origin: Option<Instant>,
    to_send: u64,
    /// When the pause ends that the user was told of, and since when nothing comes.
    told: Option<u64>,
    nothing_since: Option<Instant>,
}

/// Why no more frames were handed over.
pub enum Stop {
    /// Enough for one batch.
    Batch,
    /// The next is due then.
    Due(u64),
    Full,
    Nothing,
    End,
}

impl<T: Timeline> Pump<T> {
    /// `batch`: frames handed over in one piece, at most.
    pub fn new(port: &mut Port, timeline: T, batch: Option<usize>) -> Pump<T> {
        // What the kernel may add to a sleep. It always takes the least there is.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let batch = batch.unwrap_or(BATCH);
        Pump {
            timeline,
            lateness: Lateness::new(),
            counted: Counters::default(),
            fragmenter: Fragmenter::of(port),
            batch,
            dues: Vec::with_capacity(batch),
        }
    }

    /// Hands over frames that are due now, up to a batch of them, and `most`. Times are counted from
    /// `origin`. What no ring can hold is dropped.
    pub fn send_due(
        &mut self,
        port: &mut Port,
        origin: Instant,
        now: Instant,
        most: u64,
    ) -> Result<Stop> {
        let since = |time: Instant| time.saturating_duration_since(origin).as_nanos() as u64;
        let now = since(now);
        if port.is_shut() {
            return Ok(Stop::Full);
        }
        let mut tx = port.tx(0);
        let most = most.min(self.batch as u64);
        let (mut packets, mut bytes) = (0, 0);
        let mut slots = tx.batch(usize::MAX);
        let mut failure = None;
        let stop = loop {
            if packets == most {
                break Stop::Batch;
            }
            let (frame, due, recorded) = match self.timeline.next(now) {
                Ok(Next::Frame { due: Some(due), .. }) if due > now => break Stop::Due(due),
                Ok(Next::Frame { bytes, due, recorded }) => (bytes, due, recorded),
                Ok(Next::Nothing) => break Stop::Nothing,
                Ok(Next::End) => break Stop::End,
                Err(error) => {
                    failure = Some(error);
                    break Stop::End;
                }
            };
            if frame.len() > self.fragmenter.longest() {
                self.counted.drops += 1;
                self.timeline.advance();
                continue;
            }
            if !self.fragmenter.put_recorded(&mut slots, frame, recorded) {
                break Stop::Full;
            }
            packets += 1;
            bytes += frame.len() as u64;
            self.dues.extend(due);
            self.timeline.advance();
        };
        drop(slots);
        publish(&mut tx, matches!(stop, Stop::Full));
        self.counted.packets += packets;
        self.counted.bytes += bytes;
        if !self.dues.is_empty() {
            let sent = since(Instant::now());
            self.dues.drain(..).for_each(|due| self.lateness.record(due, sent));
        }
        failure.map_or(Ok(stop), Err)
    }
}

impl<T: Timeline> Sender<T> {
    /// `count`: frames at most. `batch`: frames handed over in one piece, at most.
    pub fn new(
        mut run: Metered,
        timeline: T,
        count: Option<u64>,
        batch: Option<usize>,
    ) -> Sender<T> {
        let pump = Pump::new(&mut run.port, timeline, batch);
        let to_send = count.unwrap_or(u64::MAX);
        Sender { run, pump, origin: None, to_send, told: None, nothing_since: None }
    }

    /// Sends until there is nothing more to send, or the run is over.
    pub fn send(&mut self) -> Result<()> {
        while self.pump.counted.packets < self.to_send {
            if self.origin.is_none() && matches!(self.pump.timeline.next(0)?, Next::Frame { .. }) {
                self.origin = Some(Instant::now());
            }
            let now = Instant::now();
            let origin = self.origin.unwrap_or(now);
            if self.run.report_sending(now)? {
                self.pump.fragmenter = Fragmenter::of(&mut self.run.port);
            }
            if self.run.run_loop.is_over(now) {
                break;
            }
            let until = self.run.reporter.due();
            let left = self.to_send - self.pump.counted.packets;
            let stop = self.pump.send_due(&mut self.run.port, origin, now, left);
            let Counters { packets, bytes, drops, .. } = self.pump.counted;
            (self.run.counted.packets, self.run.counted.bytes, self.run.lost) =
                (packets, bytes, drops);
            let stop = stop?;
            self.tell_of_pause(&stop, origin, now);
            match stop {
                Stop::Batch => (),
                Stop::End => break,
                Stop::Due(due) => {
                    let due = origin.checked_add(Duration::from_nanos(due));
                    self.run.run_loop.sleep_exactly(due.unwrap_or(until), until)?;
                }
                Stop::Full => {
                    if self.run.wait(Interest::Tx, until)? {
                        self.pump.fragmenter = Fragmenter::of(&mut self.run.port);
                    }
                }
                Stop::Nothing => self.pump.timeline.wait(&self.run.run_loop, until)?,
            }
        }
        Ok(())
    }

    /// Says what is waited for, once a pause, if that is long.
    fn tell_of_pause(&mut self, stop: &Stop, origin: Instant, now: Instant) {
        let source = self.pump.timeline.source();
        let since = match stop {
            Stop::Nothing => *self.nothing_since.get_or_insert(now),
            _ => {
                self.nothing_since = None;
                now
            }
        };
        match (stop, source) {
            (Stop::Due(due), Some(source)) if self.told != Some(*due) => {
                let left = Duration::from_nanos(*due).saturating_sub(now - origin);
                if left >= LONG {
                    self.told = Some(*due);
                    note(format_args!(
                        "{source}: its next frame is due in {} s, as it was recorded; --max-gap 1s cuts \
                         such pauses short",
                        left.as_secs()
                    ));
                }
            }
            (Stop::Nothing, Some(source)) if self.told.is_none() && now - since >= LONG => {
                self.told = Some(0);
                note(format_args!("{source}: waiting for what is written to it"));
            }
            _ => {}
        }
    }

    /// Waits until everything was taken, and tells how it went, also if sending has failed.
    pub fn finish(mut self, sent: Result<()>) -> Result<()> {
        let flushed = self.run.flush();
        let name = self.run.port.name();
        if let Some(pacing) = self.pump.lateness.pacing(name, self.pump.timeline.slipped()) {
            self.run.run_loop.tell(&pacing)?;
        }
        if self.run.lost > 0 {
            let lost = self.run.lost;
            note(format_args!(
                "{name}: {lost} frames are too long for its rings, and were left out"
            ));
        }
        self.run.finish_sending(sent.and(flushed))
    }
}
