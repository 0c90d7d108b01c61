//! An interface: a port, and what the program has set.

use std::{
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::JoinHandle,
};

use ringway::{Error, Interest, Port, Reopening, patience};
use ringway_qbman::Notifier;

use super::{
    distribute::Distributor,
    receive::{Receiver, World},
    transmit::Transmitter,
    worker::{self, Sleep},
};
use crate::{memory, ports::Place};

/// The buffer pools of each interface: id, and bytes of a buffer; smaller ones first.
pub const POOLS: [(u8, u32); 3] = [(7, 320), (8, 704), (9, 1728)];

/// What an interface has counted.
#[derive(Debug, Default)]
pub struct Counters {
    pub received: AtomicU64,
    pub transmitted: AtomicU64,
    /// No pool that fits had a buffer.
    pub no_buffer: AtomicU64,
    /// Longer than the buffers of any pool.
    pub too_long: AtomicU64,
    /// No frame queue took it.
    pub rejected: AtomicU64,
    /// Frames for transmission that are none: outside of DMA memory, of a form that no interface sends, or too long.
    pub unsendable: AtomicU64,
    /// Frames in the rings of ports whose daemon has ended: transmitted, and not taken; received, while the interface did
    /// not receive.
    pub lost: AtomicU64,
}

impl Counters {
    #[inline]
    pub fn add(counter: &AtomicU64, more: u64) {
        if more > 0 {
            counter.fetch_add(more, Relaxed);
        }
    }
}

/// The numbers of an interface's Frame Manager, own frame queues and channel.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub fman: u8,
    pub channel: u16,
    pub rx_error: u32,
    pub tx_error: u32,
    pub tx_confirm: u32,
}

impl Numbers {
    /// Those of the `index`th interface, of that Frame Manager.
    pub fn of(fman: u8, index: u8) -> Numbers {
        // Dynamic ones, and those of policies, lie elsewhere.
        let first = 0x100 + 8 * u32::from(index);
        let channel = *ringway_qbman::DIRECT_CHANNELS.start() + u16::from(index);
        Numbers { fman, channel, rx_error: first, tx_error: first + 1, tx_confirm: first + 2 }
    }
}

/// What moves the packets, by one thread at a time.
pub(super) struct Io {
    /// None for an interface without a wire.
    pub port: Option<Port>,
    receiver: Receiver,
    transmitter: Transmitter,
}

impl Io {
    /// Whether frames for transmission have found no room.
    pub fn waits(&self) -> bool {
        self.transmitter.waits()
    }

    /// Lets go of a port whose daemon has ended: what opens it again, and how many frames are lost.
    pub fn shut(&mut self) -> Option<(Reopening, u64)> {
        let port = self.port.as_mut()?;
        let reopening = port.reopening(patience());
        Some((reopening, port.unread() + port.shut()))
    }
}

pub(super) fn system(source: std::io::Error) -> Error {
    Error::System { what: "cannot start an interface", source }
}

pub struct Interface {
    pub place: Place,
    pub numbers: Numbers,
    pub counters: Counters,
    pub receives: AtomicBool,
    pub loops_back: AtomicBool,
    distributor: RwLock<Option<Arc<Distributor>>>,
    io: Mutex<Io>,
    pub(super) notifier: Arc<Notifier>,
    pub(super) ends: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Interface {
    /// Opens the port, and starts the thread that moves packets while no other does.
    ///
    /// # Errors
    /// The port's, or the system's.
    pub fn start(place: Place, index: u8, port: &str) -> Result<Arc<Interface>, Error> {
        let port = if port.is_empty() { None } else { Some(Port::open(port)?) };
        Interface::over(place, index, port)
    }

    /// The same over an open port.
    ///
    /// # Errors
    /// The system's.
    pub fn over(place: Place, index: u8, mut port: Option<Port>) -> Result<Arc<Interface>, Error> {
        let sleep = Sleep::new(port.as_mut()).map_err(system)?;
        let interface = Interface::without_worker(place, index, port)?;
        let worker = worker::start(interface.clone(), sleep).map_err(system)?;
        *interface.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
        Ok(interface)
    }

    /// The same, without a thread: packets are moved by those that poll.
    ///
    /// # Errors
    /// The system's.
    pub fn without_worker(
        place: Place,
        index: u8,
        port: Option<Port>,
    ) -> Result<Arc<Interface>, Error> {
        let numbers = Numbers::of(place.fman, index);
        Ok(Arc::new(Interface {
            place,
            numbers,
            counters: Counters::default(),
            receives: AtomicBool::new(false),
            loops_back: AtomicBool::new(port.is_none()),
            distributor: RwLock::default(),
            io: Mutex::new(Io {
                port,
                receiver: Receiver::new(numbers),
                transmitter: Transmitter::new(numbers),
            }),
            notifier: Arc::new(Notifier::new().map_err(system)?),
            ends: AtomicBool::new(false),
            worker: Mutex::default(),
        }))
    }

    /// Ends the thread, and closes the port when the last user has gone.
    pub fn stop(&self) {
        self.ends.store(true, Relaxed);
        self.notifier.raise();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            // It has said what there was to say if it has panicked.
            let _ = worker.join();
        }
    }

    pub fn wake(&self) {
        self.notifier.raise();
    }

    /// How received frames are distributed from now on.
    pub fn set_distributor(&self, distributor: Distributor) {
        let mut place = self.distributor.write().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Arc::new(distributor));
    }

    /// Receives from now on, or no longer.
    pub fn set_receives(&self, receives: bool) {
        self.receives.store(receives, Relaxed);
        self.wake();
    }

    /// Moves packets, unless another thread does. Returns whether there were any.
    #[inline]
    pub fn try_turn(&self) -> bool {
        self.io.try_lock().is_ok_and(|mut io| self.turn(&mut io))
    }

    pub(super) fn with_io<T>(&self, work: impl FnOnce(&mut Io) -> T) -> T {
        work(&mut self.io.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves what there is in one burst of each direction.
    pub(super) fn turn(&self, io: &mut Io) -> bool {
        let distributor = self.distributor.read().unwrap_or_else(PoisonError::into_inner);
        let distributor = distributor.as_deref().filter(|_| self.receives.load(Relaxed));
        let Io { port, receiver, transmitter } = io;
        let (maps, counters) = (&memory::maps(), &self.counters);
        let wire = port.as_mut().filter(|_| !self.loops_back.load(Relaxed));
        let sent = match wire {
            Some(port) => transmitter.send(port, maps, counters),
            None => transmitter.loop_back(receiver, maps, distributor, counters),
        };
        let received = match (port, distributor) {
            (Some(port), Some(distributor)) => {
                receiver.take(port, &World { maps, distributor, counters })
            }
            _ => 0,
        };
        sent + received > 0
    }

    /// Fails if the port has ended, and what it has received was taken.
    pub(super) fn check(&self, io: &mut Io) -> Result<(), Error> {
        let interest = self.interest(io);
        let Some(port) = io.port.as_mut() else { return Ok(()) };
        match interest {
            Some(Interest::Rx | Interest::Both) => port.poll_or_check(Interest::Rx).map(drop),
            _ if port.daemon_fd().is_some() && port.has_outlived_daemon() => {
                port.check(Interest::Rx)
            }
            _ => Ok(()),
        }
    }

    /// What a sleep is to end for: packets that can be taken, or room for those that wait.
    pub(super) fn interest(&self, io: &Io) -> Option<Interest> {
        let receives = self.receives.load(Relaxed)
            && self.distributor.read().unwrap_or_else(PoisonError::into_inner).is_some();
        match (receives, io.waits()) {
            (true, true) => Some(Interest::Both),
            (true, false) => Some(Interest::Rx),
            (false, true) => Some(Interest::Tx),
            (false, false) => None,
        }
    }
}
