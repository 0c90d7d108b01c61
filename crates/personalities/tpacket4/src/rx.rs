//! Receiving: from what the socket is bound to into the program's frames.

mod kicks;
mod mover;
mod pace;
mod placement;
mod queue;

use std::{
    os::fd::{AsRawFd, OwnedFd, RawFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::*, fence},
    },
};

use ringway_abi::Dir;
use rustix::event::{EventfdFlags, eventfd};

pub use self::queue::RxQueue;
use self::{kicks::Kicks, placement::Placement};
use crate::{area::Area, desc::DescRing, device::Device, pause::Pausable};

/// The program's receive ring, and what its packets come from.
pub struct Receiver {
    queue: Pausable<RxQueue>,
    device: Device,
    /// Wakes the mover.
    wake: OwnedFd,
    /// Wakes the program's polls.
    news: OwnedFd,
    /// A poll of the program's sleeps, or is about to.
    awaited: AtomicBool,
    kicks: Kicks,
    /// The mover leaves the looking to the program's kicks.
    rests: AtomicBool,
    stopping: AtomicBool,
    gone: AtomicBool,
    mover: Arc<Mover>,
}

/// Whether the mover runs.
#[derive(Default)]
struct Mover {
    runs: Mutex<bool>,
    ended: Condvar,
}

/// What a look at the port has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// Packets have been moved.
    Packets,
    /// There are packets, and no descriptors for them.
    NoRoom,
}

impl Receiver {
    /// Receives from `device` into `ring`. A thread moves the packets while the program makes no call.
    pub fn start(ring: DescRing, area: Area, device: Device) -> Result<Arc<Receiver>, i32> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (wake, news) = match (event(), event()) {
            (Ok(wake), Ok(news)) => (wake, news),
            (Err(error), _) | (_, Err(error)) => return Err(error.raw_os_error()),
        };
        let receiver = Arc::new(Receiver {
            queue: Pausable::new(RxQueue::new(ring, area, device.lost())),
            device,
            wake,
            news,
            awaited: AtomicBool::new(false),
            kicks: Kicks::default(),
            rests: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            mover: Arc::new(Mover { runs: Mutex::new(true), ended: Condvar::new() }),
        });
        let (moving, placement) = (receiver.clone(), Placement::beside_caller());
        ringway_interpose::helper_thread(move || {
            moving.run(placement);
            let mover = moving.mover.clone();
            drop(moving);
            *lock(&mover.runs) = false;
            mover.ended.notify_all();
        })?;
        Ok(receiver)
    }

    /// Ends the mover and waits for that. After this nothing writes to the program's memory, not even a call of another
    /// thread that is in progress.
    pub fn stop(&self) {
        self.stopping.store(true, SeqCst);
        ring_bell(&self.wake);
        let mut runs = lock(&self.mover.runs);
        while *runs {
            runs = self.mover.ended.wait(runs).unwrap_or_else(PoisonError::into_inner);
        }
        self.queue.lock().closed = true;
    }

    /// When this returns, nothing looks at the program's memory before [`resume`](Self::resume).
    pub fn pause(&self) {
        self.queue.pause();
    }

    /// Goes on; or if the memory is `gone`, nothing looks at it any more.
    pub fn resume(&self, gone: bool) {
        self.queue.resume(|queue| queue.closed |= gone);
        // What was passed over meanwhile.
        ring_bell(&self.wake);
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether the interface has gone, or the daemon.
    pub fn has_ended(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// Moves what there is, and says whether the program has something to receive. `None`: nothing will come.
    pub fn look(&self) -> Option<bool> {
        let mut queue = self.queue.lock();
        let found = self.pump(&mut queue);
        let ready = queue.ring.has_received();
        drop(queue);
        if found == Found::Packets {
            self.announce();
        }
        if ready || !self.gone.load(Relaxed) { Some(ready) } else { None }
    }

    /// Moves what there is, in a kick of the program's. What the mover does already is left to it.
    pub fn help(&self) {
        if self.kicks.count() {
            ring_bell(&self.wake);
        }
        let Some(mut queue) = self.queue.try_lock() else { return };
        let found = self.pump(&mut queue);
        drop(queue);
        if found == Found::Packets {
            self.announce();
        }
    }

    pub fn position(&self) -> u32 {
        self.queue.lock().ring.position()
    }

    /// Packets delivered, and lost, since the last time.
    pub fn take_statistics(&self) -> [u64; 2] {
        let lost = self.device.lost();
        self.queue.lock().take_statistics(lost)
    }

    /// A poll is about to sleep on the [news](Self::news). True if there were some.
    pub fn arm(&self) -> bool {
        let drained = drain(&self.news);
        self.awaited.store(true, SeqCst);
        fence(SeqCst);
        // It is to wait for packets, and not for kicks.
        if self.rests.load(Relaxed) {
            ring_bell(&self.wake);
        }
        drained
    }

    /// A poll does not sleep after all.
    pub fn disarm(&self) {
        ring_bell(&self.news);
    }

    pub fn news(&self) -> RawFd {
        self.news.as_raw_fd()
    }

    fn announce(&self) {
        fence(SeqCst);
        if self.awaited.load(Relaxed) && self.awaited.swap(false, SeqCst) {
            ring_bell(&self.news);
        }
    }

    fn pump(&self, queue: &mut RxQueue) -> Found {
        if queue.closed {
            return Found::Nothing;
        }
        let binding = match &self.device {
            Device::Port(port) => port.binding(),
            Device::Stack(stack) => {
                let found = stack.with_listener(|listener| queue.take_heard(listener));
                if found == Some(Found::Packets) {
                    stack.link().heard();
                }
                return found.unwrap_or(Found::Nothing);
            }
        };
        binding.sync(Dir::Rx);
        queue.take_all(binding.rings(Dir::Rx))
    }
}

fn ring_bell(eventfd: &OwnedFd) {
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

fn drain(eventfd: &OwnedFd) -> bool {
    rustix::io::read(eventfd, &mut [0; 8]).is_ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
