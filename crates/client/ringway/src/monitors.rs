//! Feeding the monitors of a ring whose packets this process moves (S-MON-4, S-MON-5).
//!
//! A number in the ring says when its monitors have changed; then the daemon is asked for them, and
//! their rings are mapped. A ring without monitors costs a look at the number.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ringway_abi::Dir;
use ringway_kring::{Accepted, Driver, Kring};
use ringway_mirror::{Mirror, Mirrors, TimeSource};
use ringway_proto::{MirrorGrant, Request};
use ringway_region::{Region, RingView};
use rustix::fd::OwnedFd;

use crate::{
    driver::{GrantFds, RingDriver},
    verbose::explain,
};

/// Asks the daemon on the connection that a binding stands for; `None` if there is no answer.
/// It must not keep the binding alive longer than the binding itself.
pub trait Ask: Send + Sync {
    /// A request that is answered with monitors.
    fn mirrors(&self, request: Request) -> Option<(Vec<MirrorGrant>, Vec<OwnedFd>)>;

    /// A request that is answered with a socket and nothing else.
    fn socket(&self, request: Request) -> Option<OwnedFd>;
}

/// From one attempt to have the rings of monitors to the next.
const PAUSE: Duration = Duration::from_millis(100);

/// The monitors of one ring, as far as this process knows of them.
pub(crate) struct Monitors {
    dir: Dir,
    index: u16,
    times: TimeSource,
    /// The last generation that is known to have no monitors.
    unmonitored: AtomicU32,
    known: Mutex<Known>,
    pub ask: Option<Arc<dyn Ask>>,
}

#[derive(Default)]
struct Known {
    generation: u32,
    mirrors: Mirrors,
    /// When to ask again, where those of the present generation could not be had.
    again: Option<Instant>,
    /// That generation, and the slots that have passed by since: that would have been copied, or swapped.
    awaited: u32,
    missed: [u64; 2],
}

impl Known {
    /// The program has no descriptors, or no memory, for the rings of its monitors: it may have them later. Those of
    /// the generation before may have gone.
    fn fail(&mut self, generation: u32) {
        if self.again.is_none() {
            explain(
                &"the monitors of a port of this program get no packets, because their rings cannot be had; close some \
                  of the program's descriptors, or raise its limits (ulimit -n, ulimit -v)",
            );
        }
        if self.awaited != generation {
            // Others have come, which have missed nothing yet.
            (self.awaited, self.missed) = (generation, [0; 2]);
        }
        self.mirrors = Mirrors::default();
        self.again = Some(Instant::now() + PAUSE);
    }

    /// As [`Mirrors::copy`].
    fn copy(&mut self, ring: &RingView, from: u32, to: u32) {
        match self.again {
            None => self.mirrors.copy(ring, from, to),
            Some(_) => self.missed[0] += u64::from(ring.distance(from, to)),
        }
    }

    /// As [`Mirrors::swap`].
    fn swap(&mut self, ring: &RingView, from: u32, to: u32) {
        match self.again {
            None => self.mirrors.swap(ring, from, to),
            Some(_) => self.missed[1] += u64::from(ring.distance(from, to)),
        }
    }
}

impl std::fmt::Debug for Monitors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Monitors")
    }
}

impl Monitors {
    /// Of a ring whose packets have their times there.
    pub fn new(dir: Dir, index: u16, times: TimeSource) -> Monitors {
        let unmonitored = AtomicU32::new(0);
        Monitors { dir, index, times, unmonitored, known: Mutex::default(), ask: None }
    }

    /// Whether a generation has no monitors.
    #[inline]
    pub fn is_unmonitored(&self, generation: u32) -> bool {
        generation == self.unmonitored.load(Relaxed)
    }

    /// The mirrors of this generation. `None` where they are in use, which is for ever in a child
    /// that was forked meanwhile: it feeds none.
    fn mirrors(&self, kring: &Kring) -> Option<MutexGuard<'_, Known>> {
        let mut known = self.known.try_lock().ok()?;
        let generation = kring.monitors();
        if known.generation != generation && known.again.is_none_or(|at| at <= Instant::now()) {
            match (&self.ask, self.find(kring)) {
                (Some(_), None) => known.fail(generation),
                (_, found) => {
                    let mirrors = found.unwrap_or_default();
                    // A ring that was stopped is to be looked at in every sync.
                    if mirrors.is_empty() && !kring.is_ended() {
                        self.unmonitored.store(generation, Relaxed);
                    }
                    let mut mirrors: Mirrors = mirrors.into_iter().collect();
                    if known.awaited == generation {
                        mirrors.miss(known.missed);
                    }
                    *known = Known { generation, mirrors, ..Known::default() };
                }
            }
        }
        Some(known)
    }

    fn find(&self, kring: &Kring) -> Option<Vec<Mirror>> {
        let ask = self.ask.as_ref()?;
        let (grants, fds) = ask.mirrors(Request::Mirrors { dir: self.dir, index: self.index })?;
        let mut fds = GrantFds::new(fds);
        let mirror = |grant| mirror(grant, kring.ring().region(), &mut fds);
        grants.iter().map(mirror).map(|mirror| Some(mirror?.with_times(self.times))).collect()
    }
}

fn mirror(grant: &MirrorGrant, own: &Arc<Region>, fds: &mut GrantFds) -> Option<Mirror> {
    let region = match &grant.memory {
        None => own.clone(),
        Some(memory) => {
            let memfd = fds.take(memory.memfd)?;
            Arc::new(Region::open(memfd, memory.mem_id, memory.layout).ok()?)
        }
    };
    let kring = Kring::open(&region, grant.object, Dir::Rx, grant.num_slots)?;
    Some(
        Mirror::new(kring, fds.doorbell(grant.doorbell)?, grant.mode)
            .with_offsets(grant.offsets)
            .shared(grant.id),
    )
}

/// A driver, with the monitors of its ring.
pub(crate) struct Monitored<'a> {
    driver: &'a RingDriver,
    monitors: &'a Monitors,
    /// How far the slots have come back that those who swap have had.
    returned: Cell<Option<u32>>,
}

impl<'a> Monitored<'a> {
    pub fn new(driver: &'a RingDriver, monitors: &'a Monitors) -> Monitored<'a> {
        Monitored { driver, monitors, returned: Cell::new(None) }
    }
}

impl Driver for Monitored<'_> {
    fn sync(&self, kring: &Kring, accepted: Accepted) {
        let Some(mut known) = self.monitors.mirrors(kring) else {
            return self.driver.sync(kring, accepted);
        };
        let (mirrors, ring) = (&mut *known, kring.ring());
        let (hwcur, hwtail) = (kring.hwcur(), kring.hwtail());
        let published = kring.bounded(kring.csb().app.head());
        let is_published = matches!(self.driver, RingDriver::PipeTx(_) | RingDriver::Monitor(_));
        let start = if is_published { published } else { hwcur };
        // As the driver does: what the program does not hold is not its to hand on.
        let head = kring.within_from(start, accepted.head);
        match self.driver {
            RingDriver::PipeTx(_) => {
                mirrors.copy(ring, published, head);
                mirrors.swap(ring, come_back(kring, published, hwtail), ring.next(hwtail));
                // More may come back by now: the program is told after the monitors.
                self.returned.set(Some(hwtail));
                self.driver.sync(kring, accepted);
            }
            RingDriver::PipeRx(_) => {
                mirrors.swap(ring, hwcur, head);
                self.driver.sync(kring, accepted);
            }
            RingDriver::Monitor(_) => {
                mirrors.swap(ring, published, head);
                self.driver.sync(kring, accepted);
            }
            RingDriver::XdpTx(_) | RingDriver::PacketTx(_) => {
                self.driver.sync(kring, accepted);
                mirrors.copy(ring, hwcur, kring.hwcur());
                mirrors.swap(ring, ring.next(hwtail), ring.next(kring.hwtail()));
            }
            RingDriver::XdpRx(_) | RingDriver::PacketRx(_) => {
                mirrors.swap(ring, hwcur, head);
                self.driver.sync(kring, accepted);
                mirrors.copy(ring, hwtail, kring.hwtail());
            }
            RingDriver::Local(_) | RingDriver::WorkerServed(_) => self.driver.sync(kring, accepted),
        }
    }

    fn fails(&self, kring: &Kring) -> bool {
        self.driver.fails(kring) || kring.is_ended()
    }

    fn tail(&self, kring: &Kring) -> u32 {
        self.returned.get().unwrap_or_else(|| kring.hwtail())
    }
}

/// The first of the slots up to `hwtail` that the program has not been told of yet: nothing but
/// slots that are free, whatever the program has made of its cursors.
fn come_back(kring: &Kring, published: u32, hwtail: u32) -> u32 {
    let ring = kring.ring();
    let free = ring.distance(published, hwtail) + 1;
    let news = ring.distance(kring.last_tail(), hwtail).min(free);
    ring.advance(ring.next(hwtail), ring.num_slots() - news)
}
