//! Innocent users of a daemon, who ask it for ports and exchange frames while somebody attacks: how long
//! each of their requests took, and how long their traffic stopped.

use std::{
    hint::black_box,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use ringway::{Control, Error, Port};

use crate::{Pair, until};

/// Frames one way, then the other: far fewer than a ring has slots.
const WINDOW: u64 = 16;
/// Frames that have not come by then are lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two requests, and between two exchanges: the machine is the others', too.
const PAUSE: Duration = Duration::from_millis(2);
/// What a request may touch of new memory.
const MEMORY: usize = 8 << 20;
/// Rounds of each bystander that a look at them is worth.
const ENOUGH: u64 = 20;

/// What one bystander does again and again: how long it took at worst, and what it lost.
#[derive(Debug)]
struct Meter {
    what: String,
    rounds: AtomicU64,
    lost: AtomicU64,
    /// The longest round, and when the one that is under way began.
    times: Mutex<(Duration, Option<Instant>)>,
}

impl Meter {
    fn new(what: String) -> Meter {
        Meter { what, rounds: 0.into(), lost: 0.into(), times: Mutex::default() }
    }

    fn times(&self) -> std::sync::MutexGuard<'_, (Duration, Option<Instant>)> {
        self.times.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A round, which says what it has lost.
    fn time(&self, round: impl FnOnce() -> Result<u64, Error>) -> Result<(), Error> {
        let begin = Instant::now();
        self.times().1 = Some(begin);
        let lost = round()?;
        let mut times = self.times();
        *times = (times.0.max(begin.elapsed()), None);
        self.lost.fetch_add(lost, Relaxed);
        self.rounds.fetch_add(1, Relaxed);
        Ok(())
    }

    /// The longest, with the one that has not ended yet.
    fn longest(&self) -> Duration {
        let times = self.times();
        times.1.map_or(times.0, |begin| times.0.max(begin.elapsed()))
    }

    fn reset(&self) {
        self.times().0 = Duration::ZERO;
        self.lost.store(0, Relaxed);
    }
}

/// What bystanders have noticed since they were last [reset](Bystanders::reset).
#[derive(Clone, Copy, Debug, Default)]
pub struct Noticed {
    /// The longest request.
    pub request: Duration,
    /// The longest exchange of 32 frames: as long as some port's traffic stood still at most.
    pub traffic: Duration,
    /// Frames that did not arrive.
    pub lost: u64,
    /// The longest round of two threads without Ringway: as long as others keep a thread from the CPU.
    pub machine: Duration,
}

/// What a bystander measures.
#[derive(Clone, Copy)]
enum Kind {
    Requests,
    Traffic,
    Machine,
}

struct Bystander {
    meter: Arc<Meter>,
    kind: Kind,
    thread: JoinHandle<Result<(), Error>>,
}

/// Threads of this process that are users of the daemon, until this is dropped.
#[derive(Default)]
pub struct Bystanders {
    stop: Arc<AtomicBool>,
    all: Vec<Bystander>,
}

impl Bystanders {
    /// One that opens and closes `port`, and asks what it counts, again and again. `settle` is called by
    /// its thread first.
    pub fn ask(&mut self, port: &str, settle: impl FnOnce() + Send + 'static) {
        let name = port.to_owned();
        self.add(Kind::Requests, format!("requests for {port}"), move |meter, stop| {
            settle();
            let control = Control::connect()?;
            while !stop.load(Relaxed) {
                let mut open = None;
                meter.time(|| {
                    open = Some(Port::open(&name)?);
                    Ok(0)
                })?;
                meter.time(|| control.switches().map(|_| 0))?;
                meter.time(|| {
                    open = None;
                    Ok(0)
                })?;
                thread::sleep(PAUSE);
            }
            Ok(())
        });
    }

    /// One that exchanges frames of `flow` between two ports, which `open` opens in its thread.
    pub fn exchange(
        &mut self,
        what: &str,
        flow: u32,
        open: impl FnOnce() -> Result<[Port; 2], Error> + Send + 'static,
    ) {
        self.add(Kind::Traffic, format!("traffic: {what}"), move |meter, stop| {
            let mut pair = Pair::of(open()?, flow).with(WINDOW, PATIENCE);
            while !stop.load(Relaxed) {
                meter.time(|| Ok(2 * WINDOW - pair.exchange()?))?;
                thread::sleep(PAUSE);
            }
            Ok(())
        });
    }

    /// One that does what a request takes, without Ringway: it exchanges a byte with another thread by a socket,
    /// and has memory that is new.
    pub fn exchange_bytes(&mut self) {
        self.add(Kind::Machine, "the machine".into(), |meter, stop| {
            let (mut here, mut there) = UnixStream::pair().expect("there are descriptors");
            let echo = thread::spawn(move || io::copy(&mut there.try_clone()?, &mut there));
            while !stop.load(Relaxed) {
                meter.time(|| {
                    let sent = here.write_all(&[0]).and_then(|()| here.read_exact(&mut [0]));
                    sent.expect("the other thread is there");
                    black_box(vec![1u8; MEMORY]);
                    Ok(0)
                })?;
                thread::sleep(PAUSE * 5);
            }
            drop(here);
            echo.join().expect("it only copies").expect("until this end is closed");
            Ok(())
        });
    }

    fn add(
        &mut self,
        kind: Kind,
        what: String,
        work: impl FnOnce(&Meter, &AtomicBool) -> Result<(), Error> + Send + 'static,
    ) {
        let meter = Arc::new(Meter::new(what));
        let (theirs, stop) = (meter.clone(), self.stop.clone());
        let thread = thread::spawn(move || work(&theirs, &stop));
        self.all.push(Bystander { meter, kind, thread });
    }

    /// Forgets what was noticed so far.
    pub fn reset(&self) {
        self.all.iter().for_each(|one| one.meter.reset());
    }

    /// Waits until each has gone round some more times. Panics if one has ended, or stands still.
    pub fn go_on(&mut self) {
        for one in 0..self.all.len() {
            let before = self.all[one].meter.rounds.load(Relaxed);
            let meter = self.all[one].meter.clone();
            until(&format!("{} go on", meter.what), || {
                if self.all[one].thread.is_finished() {
                    let ended = self.all.swap_remove(one).thread.join();
                    panic!("{}: {ended:?}", meter.what);
                }
                match meter.rounds.load(Relaxed) - before {
                    rounds if rounds >= ENOUGH => Ok(()),
                    rounds => Err(format!("{rounds} rounds")),
                }
            });
        }
    }

    /// What they have noticed.
    pub fn noticed(&self) -> Noticed {
        let mut noticed = Noticed::default();
        for one in &self.all {
            let of_its_kind = match one.kind {
                Kind::Requests => &mut noticed.request,
                Kind::Traffic => &mut noticed.traffic,
                Kind::Machine => &mut noticed.machine,
            };
            *of_its_kind = one.meter.longest().max(*of_its_kind);
            noticed.lost += one.meter.lost.load(Relaxed);
        }
        noticed
    }

    /// The same one by one, for a message.
    pub fn in_detail(&self) -> String {
        let line = |one: &Bystander| {
            let (longest, lost) = (one.meter.longest(), one.meter.lost.load(Relaxed));
            format!("{}: {longest:?}, {lost} lost", one.meter.what)
        };
        self.all.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Bystanders {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for one in self.all.drain(..) {
            let ended = one.thread.join();
            assert!(matches!(ended, Ok(Ok(()))) || thread::panicking(), "{ended:?}");
        }
    }
}
