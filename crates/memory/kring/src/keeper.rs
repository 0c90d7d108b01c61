//! A thread for doorbells that take long to signal, or to close.
//!
//! To signal an eventfd is to call each that listens to it. Its other holders can have it in as many epoll
//! sets as the kernel allows a user (`fs.epoll.max_user_watches`), and each entry costs the one who
//! signals: 64 000 of them 10 ms, in which the worker of a switch serves no other port. So a doorbell whose
//! signals have taken long is signalled by the keeper from then on, until it is quick again; and the keeper
//! rests for longer than it has worked. To close the last descriptor takes as long, so the keeper closes
//! all doorbells.
//!
//! A user may have thousands of doorbells, each just quicker than that. So the keeper signals those of a user,
//! too, whose [`SignalAllowance`] is used up.
//!
//! A panic of the keeper loses no signal: what it had in hand is signalled after it, and the keeper goes on.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering::*},
        mpsc::{Receiver, SendError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    time::{ClockId, clock_gettime},
};

use crate::{allowance::SignalAllowance, doorbell::start_timer, sys::Completions};

/// A signal that takes longer is the keeper's: some thousand listeners.
const SLOW: Duration = Duration::from_micros(500);
/// As many slow signals in a row, and it is slow. One alone may be the machine's affair, which had the thread
/// wait meanwhile.
const SLOW_ONES: u32 = 3;
/// As many quick signals in a row, and it is not slow any more.
const QUICK_ONES: u32 = 1000;
/// How much longer the keeper rests than signals have taken.
const REST: u32 = 4;
/// After a signal that took longer than is usual, so many are measured by what the thread has worked: it may
/// have waited for a processor, for which those that it woke may be the reason.
const MEASURED: u32 = 1000;
/// Of a signal that was measured by the clock alone no more is charged.
const MOST_BY_CLOCK: Duration = Duration::from_millis(1);

enum Task {
    Signal(Arc<Bell>),
    Close(Arc<Bell>),
}

/// What a doorbell of this process's making holds.
#[derive(Debug)]
pub(crate) struct Bell {
    pub fd: OwnedFd,
    pub ringer: Ringer,
    is_slow: AtomicBool,
    /// The keeper has been asked to signal it, and has not begun to.
    is_pending: AtomicBool,
    /// Signals in a row that were not as `is_slow` has it.
    unlike: AtomicU32,
    /// So many signals are to be measured by what the thread works.
    measured: AtomicU32,
    /// What its signals are charged to.
    allowance: Option<Arc<SignalAllowance>>,
    /// Signals that are to panic.
    #[cfg(test)]
    faults: AtomicU32,
    /// Microseconds that a signal counts for, in place of what it takes; 0: it is measured.
    #[cfg(test)]
    reckoned: AtomicU32,
}

/// By what a doorbell of this process's making is signalled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ringer {
    /// An eventfd.
    Completions(&'static Completions),
    /// A timerfd.
    Timer,
}

impl Ringer {
    /// What a signal takes that few listen to, on a machine that is busy: it is not charged.
    fn usual(self) -> Duration {
        match self {
            Ringer::Completions(_) => Duration::from_micros(5),
            Ringer::Timer => Duration::from_micros(30),
        }
    }
}

/// Where the keeper's tasks go. What has no keeper has none of its code either: a preload library is small.
trait Keeper: Send + Sync {
    fn ask(&self, task: Task);
}

impl Keeper for Sender<Task> {
    fn ask(&self, task: Task) {
        if let Err(SendError(task)) = self.send(task) {
            // There is no keeper any more. What is dropped here is closed here.
            task.signal_again();
        }
    }
}

static KEEPER: OnceLock<Box<dyn Keeper>> = OnceLock::new();

/// Starts the keeper of this process: for one that serves clients which do not trust each other. Without,
/// the thread that signals a doorbell, or closes it, takes the time that this takes. The first call counts.
///
/// # Errors
/// There is no thread to be had.
pub fn keep_doorbells() -> io::Result<()> {
    if KEEPER.get().is_none() {
        let (to, tasks) = channel();
        thread::Builder::new().name("doorbells".into()).spawn(move || serve(&tasks))?;
        let _ = KEEPER.set(Box::new(to));
    }
    Ok(())
}

fn serve(tasks: &Receiver<Task>) {
    let mut worked = Duration::ZERO;
    while let Ok(task) = tasks.recv() {
        if catch_unwind(AssertUnwindSafe(|| worked += task.run())).is_err() {
            // A second panic over the same doorbell is the end of it, and of no other.
            let _ = catch_unwind(AssertUnwindSafe(|| task.signal_again()));
        }
        if worked >= SLOW {
            thread::sleep(std::mem::take(&mut worked) * REST);
        }
    }
}

impl Task {
    /// Returns what the keeper is to rest for.
    fn run(&self) -> Duration {
        match self {
            Task::Signal(bell) => {
                bell.is_pending.store(false, SeqCst);
                let begin = worked();
                bell.signal();
                let taken = worked().saturating_sub(begin);
                bell.note(taken >= SLOW);
                if taken >= bell.ringer.usual() { taken } else { Duration::ZERO }
            }
            // The one who has asked for it is about to let go.
            Task::Close(bell) => {
                while Arc::strong_count(bell) > 1 {
                    thread::yield_now();
                }
                Duration::ZERO
            }
        }
    }

    /// It may not have been signalled: one signal too many does no harm.
    fn signal_again(&self) {
        if let Task::Signal(bell) = self {
            bell.is_pending.store(false, SeqCst);
            bell.signal();
        }
    }
}

/// What this thread has worked: that it waited for a processor does not count.
fn worked() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

impl Bell {
    pub fn new(fd: OwnedFd, ringer: Ringer, allowance: Option<Arc<SignalAllowance>>) -> Arc<Bell> {
        Arc::new(Bell {
            fd,
            ringer,
            is_slow: AtomicBool::new(false),
            is_pending: AtomicBool::new(false),
            unlike: AtomicU32::new(0),
            measured: AtomicU32::new(0),
            allowance,
            #[cfg(test)]
            faults: AtomicU32::new(0),
            #[cfg(test)]
            reckoned: AtomicU32::new(0),
        })
    }

    pub fn signal(&self) {
        #[cfg(test)]
        if self.faults.load(SeqCst) > 0 {
            self.faults.fetch_sub(1, SeqCst);
            panic!("as the test asks for");
        }
        match self.ringer {
            Ringer::Completions(completions) => completions.signal(self.fd.as_fd()),
            // It is refused for what is no timer alone.
            Ringer::Timer => drop(start_timer(self.fd.as_fd())),
        }
    }

    /// A signal has been slow, or quick.
    fn note(&self, slow: bool) {
        if self.is_slow.load(Relaxed) == slow {
            // The line is written to only where there is something to tell.
            if self.unlike.load(Relaxed) != 0 {
                self.unlike.store(0, Relaxed);
            }
            return;
        }
        let enough = if slow { SLOW_ONES } else { QUICK_ONES };
        if self.unlike.fetch_add(1, Relaxed) + 1 >= enough {
            self.unlike.store(0, Relaxed);
            self.is_slow.store(slow, Relaxed);
        }
    }

    /// Signals it, or has it signalled soon.
    pub fn notify(self: &Arc<Bell>) {
        match KEEPER.get() {
            None => self.signal(),
            Some(keeper) => self.notify_by(keeper.as_ref(), Instant::now()),
        }
    }

    fn notify_by(self: &Arc<Bell>, keeper: &dyn Keeper, now: Instant) {
        let is_used_up = |it: &Arc<SignalAllowance>| it.is_used_up(now);
        if self.is_slow.load(Relaxed) || self.allowance.as_ref().is_some_and(is_used_up) {
            if !self.is_pending.swap(true, SeqCst) {
                keeper.ask(Task::Signal(self.clone()));
            }
            return;
        }
        let measured = self.measured.load(Relaxed);
        let before = (measured > 0).then(worked);
        self.signal();
        let taken = match before {
            None => now.elapsed(),
            Some(before) => worked().saturating_sub(before),
        };
        #[cfg(test)]
        let taken = self.reckoned(taken);
        self.note(taken >= SLOW);
        let more = taken.saturating_sub(self.ringer.usual());
        if measured > 0 || more > Duration::ZERO {
            let again = if more > Duration::ZERO { MEASURED } else { measured - 1 };
            self.measured.store(again, Relaxed);
            let charged = if measured > 0 { more } else { more.min(MOST_BY_CLOCK) };
            self.allowance.iter().for_each(|it| it.take(charged, now));
        }
    }

    #[cfg(test)]
    fn reckoned(&self, taken: Duration) -> Duration {
        match self.reckoned.load(Relaxed) {
            0 => taken,
            micros => Duration::from_micros(micros.into()),
        }
    }

    /// It is about to be dropped.
    pub fn close(self: &Arc<Bell>) {
        if let Some(keeper) = KEEPER.get() {
            keeper.ask(Task::Close(self.clone()));
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::sync::Mutex;

    use rustix::event::epoll;

    use super::*;
    use crate::Doorbell;

    const SETS: usize = 150;
    const COPIES: usize = 300;

    /// A doorbell with thousands of listeners is signalled by the keeper; without them, it is as others
    /// again.
    #[test]
    fn many_listeners_cost_the_keeper() {
        keep_doorbells().unwrap();
        let doorbell = Doorbell::new().unwrap();
        let bell = doorbell.bell().unwrap().clone();
        let copies: Vec<_> = (0..COPIES).map(|_| bell.fd.try_clone().unwrap()).collect();
        let sets: Vec<_> = (0..SETS)
            .map(|_| {
                let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
                let data = epoll::EventData::new_u64(0);
                let add = |copy| epoll::add(&set, copy, data, epoll::EventFlags::IN).unwrap();
                copies.iter().for_each(add);
                set
            })
            .collect();
        (0..SLOW_ONES).for_each(|_| doorbell.notify());
        assert!(bell.is_slow.load(Relaxed), "45 000 listeners");
        assert!(doorbell.drain());
        let is_signalled = || loop {
            if doorbell.drain() {
                break;
            }
            thread::yield_now();
        };
        doorbell.notify();
        is_signalled();
        assert!(bell.is_slow.load(Relaxed));
        drop((sets, copies));
        while bell.is_slow.load(Relaxed) {
            doorbell.notify();
            is_signalled();
        }
        doorbell.notify();
        assert!(doorbell.drain(), "it is signalled at once");
    }

    /// What the keeper panics over is signalled all the same, and so are others after it.
    #[test]
    fn a_panic_of_the_keeper_loses_no_signal() {
        keep_doorbells().unwrap();
        let slow = || {
            let doorbell = Doorbell::new().unwrap();
            doorbell.bell().unwrap().is_slow.store(true, Relaxed);
            doorbell
        };
        let is_signalled = |doorbell: &Doorbell| {
            doorbell.notify();
            while !doorbell.drain() {
                thread::yield_now();
            }
        };
        let (once, twice, other) = (slow(), slow(), slow());
        once.bell().unwrap().faults.store(1, SeqCst);
        twice.bell().unwrap().faults.store(2, SeqCst);
        is_signalled(&once);
        twice.notify();
        is_signalled(&other);
        // It is not pending for ever.
        is_signalled(&twice);
        let weak = Arc::downgrade(once.bell().unwrap());
        drop(once);
        while weak.strong_count() > 0 {
            thread::yield_now();
        }
    }

    /// A keeper that takes its time.
    #[derive(Default)]
    struct Asked(Mutex<Vec<Task>>);

    impl Keeper for Asked {
        fn ask(&self, task: Task) {
            self.0.lock().unwrap().push(task);
        }
    }

    /// However many doorbells a user has, each just quicker than the keeper's: a thread signals those that the
    /// allowance is enough for, the keeper the others, and other users notice nothing.
    #[test]
    fn the_time_for_a_users_doorbells_is_bounded() {
        let (keeper, allowance) = (Asked::default(), Arc::default());
        let now = Instant::now();
        let new = |allowance: &Arc<SignalAllowance>, micros| {
            let doorbell = Doorbell::charged_to(allowance).unwrap();
            doorbell.bell().unwrap().reckoned.store(micros, Relaxed);
            doorbell
        };
        let notify = |doorbell: &Doorbell, millis| {
            doorbell.bell().unwrap().notify_by(&keeper, now + Duration::from_millis(millis));
        };
        let doorbells: Vec<_> = (0..50).map(|_| new(&allowance, 400)).collect();
        let cases = [
            // 4 ms, and the signal that begins before they are over.
            (0, 11),
            // A quarter of the time.
            (8, 5),
            (1000, 11),
        ];
        for (millis, by_thread) in cases {
            doorbells.iter().for_each(|doorbell| notify(doorbell, millis));
            let signalled = doorbells.iter().filter(|doorbell| doorbell.drain()).count();
            let asked = std::mem::take(&mut *keeper.0.lock().unwrap());
            assert_eq!(signalled, by_thread, "after {millis} ms");
            assert_eq!(asked.len(), 50 - by_thread, "after {millis} ms");
            asked.iter().for_each(|task| {
                task.run();
            });
            assert!(doorbells.iter().filter(|doorbell| doorbell.drain()).count() == asked.len());
            let (mine, nobodys) = (new(&Arc::default(), 400), Doorbell::new().unwrap());
            for other in [mine, nobodys] {
                notify(&other, millis);
                assert!(other.drain(), "other users' are signalled at once");
            }
        }
        // What takes as long as is usual is not charged.
        let allowance = Arc::default();
        let usual = new(&allowance, 1);
        for _ in 0..10_000 {
            notify(&usual, 0);
            assert!(usual.drain());
        }
    }

    /// One long signal may be the machine's affair.
    #[test]
    fn what_the_clock_says_is_charged_in_part() {
        let (keeper, allowance) = (Asked::default(), Arc::default());
        let now = Instant::now();
        let doorbells: Vec<_> = (0..3).map(|_| Doorbell::charged_to(&allowance).unwrap()).collect();
        let notify = |doorbell: &Doorbell| {
            let bell = doorbell.bell().unwrap();
            bell.reckoned.store(100_000, Relaxed);
            bell.notify_by(&keeper, now);
            doorbell.drain()
        };
        assert!(doorbells.iter().all(notify), "1 ms each");
        assert!(notify(&doorbells[0]) && !notify(&doorbells[1]), "100 ms");
    }

    /// Without a keeper, the thread that notifies does it.
    #[test]
    fn the_end_of_the_keeper_loses_no_signal() {
        let doorbell = Doorbell::new().unwrap();
        let bell = doorbell.bell().unwrap().clone();
        bell.is_pending.store(true, SeqCst);
        let (to, tasks) = channel();
        drop(tasks);
        to.ask(Task::Signal(bell.clone()));
        assert!(doorbell.drain() && !bell.is_pending.load(SeqCst));
    }

    #[test]
    fn closes_them() {
        keep_doorbells().unwrap();
        let doorbell = Doorbell::new().unwrap();
        let weak = Arc::downgrade(doorbell.bell().unwrap());
        drop(doorbell);
        while weak.strong_count() > 0 {
            thread::yield_now();
        }
    }
}
