//! Samples of what the daemon tells of ports, switches and rings, taken by a thread of its own: a daemon that
//! does not answer holds up no key.

use super::entity::{Entity, entities};
use super::rates::{Row, rows_of};
use super::sample::{Sample, Taken};
use crate::error::{Error, Result};
use ringway::Control;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

pub struct Sampler {
    samples: Receiver<Taken>,
    /// Readable when there is another.
    news: Arc<OwnedFd>,
    /// The thread ends with it.
    _running: Sender<()>,
}

impl Sampler {
    /// Starts to take samples, now and after each interval.
    pub fn start(interval: Duration) -> Result<Sampler> {
        let fail = |what| move |source: std::io::Error| Error::System { what, source };
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| fail("eventfd")(error.into()))?;
        let news = Arc::new(news);
        let ((sender, samples), (_running, ended)) = (channel(), channel());
        let notify = news.clone();
        let run = move || {
            let mut control = None;
            loop {
                let taken = sample(&mut control);
                if sender.send(taken).is_err() {
                    return;
                }
                // It fails when it is readable already.
                let _ = rustix::io::write(&notify, &1u64.to_ne_bytes());
                if ended.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("ringway-sampler".into());
        thread.spawn(run).map_err(fail("starting a thread"))?;
        Ok(Sampler { samples, news, _running })
    }

    /// The next sample, if there is one.
    pub fn next(&self) -> Option<Taken> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.news, &mut count);
        self.samples.try_recv().ok()
    }
}

impl AsFd for Sampler {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

/// Takes a sample, over the connection that there is, or another.
fn sample(control: &mut Option<Control>) -> Taken {
    let connected = match control.take() {
        Some(connected) => connected,
        None => Control::connect_running()?,
    };
    let sample = Sample::take(&connected)?;
    *control = Some(connected);
    Ok(sample)
}

/// What was there at some time, and what it has counted.
struct Seen {
    at: Instant,
    entities: Vec<Entity>,
}

impl Seen {
    fn of(sample: &Sample) -> Seen {
        Seen { at: sample.at, entities: entities(sample) }
    }
}

/// The samples that rates and totals come from.
#[derive(Default)]
pub struct Latest {
    now: Option<Arc<Seen>>,
    before: Option<Arc<Seen>>,
    base: Option<Arc<Seen>>,
    error: Option<String>,
}

impl Latest {
    pub fn take(&mut self, taken: Taken) {
        match taken {
            Ok(sample) => {
                let seen = Arc::new(Seen::of(&sample));
                self.before = self.now.replace(seen.clone());
                self.base.get_or_insert(seen);
                self.error = None;
            }
            Err(error) => {
                let cause = error.to_string();
                // Another daemon counts anew.
                *self = Latest { error: Some(cause), ..Latest::default() };
            }
        }
    }

    /// Totals begin now.
    pub fn reset(&mut self) {
        self.base = self.now.clone();
    }

    pub fn rows(&self) -> Vec<Row> {
        let (Some(now), Some(base)) = (&self.now, &self.base) else { return Vec::new() };
        let before = self.before.as_ref().unwrap_or(now);
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        rows_of(&now.entities, &before.entities, &base.entities, seconds)
    }

    /// Why there is nothing, if the daemon cannot be asked.
    pub fn problem(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// What the user is told besides: how old it is, or since when totals count.
    pub fn state(&self, interval: Duration) -> String {
        if self.error.is_some() {
            return "waiting for a daemon".into();
        }
        let (Some(now), Some(base)) = (&self.now, &self.base) else {
            return "asking the daemon".into();
        };
        let age = now.at.elapsed();
        if age > 2 * interval + Duration::from_secs(1) {
            return format!("the daemon has not answered for {} s", age.as_secs());
        }
        format!("totals of {} s", now.at.duration_since(base.at).as_secs())
    }
}
