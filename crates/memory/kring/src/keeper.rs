//! A thread for doorbells that take long to signal, or to close.
//!
//! To signal an eventfd is to call each that listens to it. Its other holders can have it in as many epoll
//! sets as the kernel allows a user (`fs.epoll.max_user_watches`), and each entry costs the one who
//! signals: 64 000 of them 10 ms, in which the worker of a switch serves no other port. So a doorbell whose
//! signals have taken long is signalled by the keeper from then on, until it is quick again; and the keeper
//! rests for longer than it has worked. To close the last descriptor takes as long, so the keeper closes
//! all doorbells.
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

use crate::{doorbell::start_timer, sys::Completions};

/// A signal that takes longer is the keeper's: some thousand listeners.
const SLOW: Duration = Duration::from_micros(500);
/// As many slow signals in a row, and it is slow. One alone may be the machine's affair, which had the thread
/// wait meanwhile.
const SLOW_ONES: u32 = 3;
/// As many quick signals in a row, and it is not slow any more.
const QUICK_ONES: u32 = 1000;
/// How much longer the keeper rests than a slow signal has taken.
const REST: u32 = 4;

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
    /// Signals that are to panic.
    #[cfg(test)]
    faults: AtomicU32,
}

/// By what a doorbell of this process's making is signalled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ringer {
    /// An eventfd.
    Completions(&'static Completions),
    /// A timerfd.
    Timer,
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
    while let Ok(task) = tasks.recv() {
        if catch_unwind(AssertUnwindSafe(|| task.run())).is_err() {
            // A second panic over the same doorbell is the end of it, and of no other.
            let _ = catch_unwind(AssertUnwindSafe(|| task.signal_again()));
        }
    }
}

impl Task {
    fn run(&self) {
        match self {
            Task::Signal(bell) => {
                bell.is_pending.store(false, SeqCst);
                let begin = worked();
                bell.signal();
                let taken = worked().saturating_sub(begin);
                bell.note(taken >= SLOW);
                if taken >= SLOW {
                    thread::sleep(taken * REST);
                }
            }
            // The one who has asked for it is about to let go.
            Task::Close(bell) => {
                while Arc::strong_count(bell) > 1 {
                    thread::yield_now();
                }
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
    pub fn new(fd: OwnedFd, ringer: Ringer) -> Arc<Bell> {
        Arc::new(Bell {
            fd,
            ringer,
            is_slow: AtomicBool::new(false),
            is_pending: AtomicBool::new(false),
            unlike: AtomicU32::new(0),
            #[cfg(test)]
            faults: AtomicU32::new(0),
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
        let Some(keeper) = KEEPER.get() else { return self.signal() };
        if self.is_slow.load(Relaxed) {
            if !self.is_pending.swap(true, SeqCst) {
                keeper.ask(Task::Signal(self.clone()));
            }
            return;
        }
        let begin = Instant::now();
        self.signal();
        self.note(begin.elapsed() >= SLOW);
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
    use rustix::event::epoll;

    use super::*;
    use crate::Doorbell;

    const SETS: usize = 150;
    const COPIES: usize = 100;

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
        assert!(bell.is_slow.load(Relaxed), "15 000 listeners");
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
