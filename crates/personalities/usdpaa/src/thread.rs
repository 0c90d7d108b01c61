//! What a thread has of the managers: a portal of each, that belongs to it from `*_thread_init` to `*_thread_finish`, or to
//! its end.

use std::{
    cell::{Cell, RefCell},
    ffi::c_int,
    io,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicU64, Ordering::Relaxed},
    },
};

use ringway_qbman::{Notifier, PORTALS, Portal, RING, manager};

use crate::{
    abi::{bman_portal_config, portal_config, qm_dqrr_entry, qman_cb_dc_ern},
    argument::{Cgr, Fq},
    buffers::PoolRef,
};

/// The entries of a portal where the program sees them: `QMAN_ENQUEUE_FLAG_DCA_PTR` takes an entry's number from bits 6 to
/// 9 of its address.
#[repr(C, align(1024))]
pub struct Dqrr(pub [Cell<qm_dqrr_entry>; RING]);

/// The queue manager's side.
pub struct Qman {
    pub portal: RefCell<Portal<'static>>,
    pub dqrr: Box<Dqrr>,
    pub config: Box<portal_config>,
    pub notifier: Arc<Notifier>,
    /// `QM_PIRQ_*`.
    pub sources: Cell<u32>,
    /// A callback runs, or is about to.
    pub is_polling: Cell<bool>,
    /// Calls of `qman_poll` since it looked for messages.
    pub calls: Cell<u32>,
    /// The queue that a volatile dequeue is under way for.
    pub volatile: Cell<Option<Fq>>,
    /// Groups that were created here, and what they were told last.
    pub groups: RefCell<Vec<(Cgr, bool)>>,
    pub dc_ern: Cell<Option<qman_cb_dc_ern>>,
}

/// The buffer manager's side.
pub struct Bman {
    pub config: Box<bman_portal_config>,
    pub notifier: Arc<Notifier>,
    /// `BM_PIRQ_*`.
    pub sources: Cell<u32>,
    /// Pools that were made here and want to know of depletion, and what they were told last.
    pub pools: RefCell<Vec<(PoolRef, bool)>>,
    pub is_polling: Cell<bool>,
    index: u32,
}

thread_local! {
    static QMAN: RefCell<Option<std::rc::Rc<Qman>>> = const { RefCell::new(None) };
    static BMAN: RefCell<Option<std::rc::Rc<Bman>>> = const { RefCell::new(None) };
}

/// CPUs that have portals: `cpu_set_t`.
pub static CPUS: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
/// The channel of a CPU's portal, and 1; 0: it has none.
static CHANNELS: [AtomicU16; 1024] = [const { AtomicU16::new(0) }; 1024];
/// Portals of the buffer manager that are in use: a bit for each.
static BMAN_PORTALS: AtomicU64 = AtomicU64::new(0);

/// Lifts the rule that a thread with a portal is bound to one CPU.
const ANY_CPU: &str = "USDPAA_ANY_CPU";

/// The one CPU that the calling thread is bound to.
fn cpu() -> Result<usize, c_int> {
    // SAFETY: a mask of zeroes is one.
    let mut mask: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: room for a mask; the calling thread.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), &mut mask) };
    if result != 0 {
        return Err(-io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
    }
    // SAFETY: each is below the mask's size.
    let is_set = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &mask) };
    let mut cpus = (0..libc::CPU_SETSIZE as usize).filter(is_set);
    match (cpus.next(), cpus.next()) {
        (Some(cpu), None) => Ok(cpu),
        (Some(cpu), Some(_)) if ringway_environment::variable(ANY_CPU).is_some() => Ok(cpu),
        _ => Err(-libc::EINVAL),
    }
}

fn notifier() -> Result<Arc<Notifier>, c_int> {
    Notifier::pipe().map(Arc::new).map_err(|_| -libc::EBUSY)
}

/// The channel of the portal of a CPU.
pub fn channel_of(cpu: usize) -> Option<u16> {
    CHANNELS.get(cpu).and_then(|place| place.load(Relaxed).checked_sub(1))
}

/// Runs with the calling thread's portal, if it has one.
#[inline]
pub fn qman<T>(none: T, run: impl FnOnce(&Qman) -> T) -> T {
    let qman = QMAN.try_with(|qman| qman.try_borrow().ok().and_then(|qman| qman.clone()));
    match qman {
        Ok(Some(qman)) => run(&qman),
        _ => none,
    }
}

/// The same, for the buffer manager.
pub fn bman<T>(none: T, run: impl FnOnce(&Bman) -> T) -> T {
    let bman = BMAN.try_with(|bman| bman.try_borrow().ok().and_then(|bman| bman.clone()));
    match bman {
        Ok(Some(bman)) => run(&bman),
        _ => none,
    }
}

impl Qman {
    /// Gives the calling thread a portal: any, or this one.
    pub fn begin(index: Option<u32>) -> Result<(), c_int> {
        let begun = QMAN.try_with(|place| {
            let mut place = place.borrow_mut();
            if place.is_some() {
                return Err(-libc::EBUSY);
            }
            let cpu = cpu()?;
            let index = match index {
                Some(index) => Some(u8::try_from(index).map_err(|_| -libc::EINVAL)?),
                None => None,
            };
            let notifier = notifier()?;
            let none =
                if index.is_some_and(|index| index < PORTALS) { libc::EBUSY } else { libc::ENODEV };
            let portal = manager().portal(index).map_err(|_| -none)?;
            let channel = u16::from(portal.number());
            let config = portal_config {
                cpu: cpu as c_int,
                irq: notifier.fd().as_raw_fd(),
                index: channel.into(),
                is_shared: 0,
                channel,
                pools: crate::POOL_MASK,
            };
            if let Some(word) = CPUS.get(cpu / 64) {
                word.fetch_or(1 << (cpu % 64), Relaxed);
            }
            if let Some(place) = CHANNELS.get(cpu) {
                place.store(channel + 1, Relaxed);
            }
            *place = Some(std::rc::Rc::new(Qman {
                portal: RefCell::new(portal),
                dqrr: Box::new(Dqrr([const { Cell::new(EMPTY) }; RING])),
                config: Box::new(config),
                notifier,
                sources: Cell::new(0),
                is_polling: Cell::new(false),
                calls: Cell::new(0),
                volatile: Cell::new(None),
                groups: RefCell::default(),
                dc_ern: Cell::new(None),
            }));
            Ok(())
        });
        // A thread that ends gets none.
        begun.unwrap_or(Err(-libc::ENODEV))
    }

    pub fn finish() -> Result<(), c_int> {
        if qman(false, |qman| qman.is_polling.get()) {
            return Err(-libc::EBUSY);
        }
        // In a destructor of the thread's it may be given back already.
        let gone = QMAN.try_with(|place| place.borrow_mut().take());
        gone.ok().flatten().map(drop).ok_or(-libc::ENODEV)
    }
}

const EMPTY: qm_dqrr_entry = qm_dqrr_entry {
    verb: 0,
    stat: 0,
    seqnum: 0,
    tok: 0,
    reserved2: [0; 3],
    fqid: 0,
    context_b: 0,
    fd: crate::abi::qm_fd { opaque_addr: 0, opaque: 0, cmd: 0 },
    reserved4: [0; 32],
};

impl Drop for Qman {
    fn drop(&mut self) {
        self.leave_rejected();
        self.portal.borrow().disarm(&self.notifier);
        if let Some(place) = CHANNELS.get(self.config.cpu as usize) {
            let own = self.config.channel + 1;
            let _ = place.compare_exchange(own, 0, Relaxed, Relaxed);
        }
    }
}

impl Bman {
    /// Gives the calling thread a portal: any, or this one.
    pub fn begin(index: Option<u32>) -> Result<(), c_int> {
        let begun = BMAN.try_with(|place| {
            let mut place = place.borrow_mut();
            if place.is_some() {
                return Err(-libc::EBUSY);
            }
            let cpu = cpu()?;
            let notifier = notifier()?;
            let is_wanted = |other: &u32| index.is_none_or(|index| index == *other);
            let free = (0..PORTALS.into()).filter(is_wanted).find(|index| {
                let bit = 1 << index;
                BMAN_PORTALS.fetch_or(bit, Relaxed) & bit == 0
            });
            let none = if index.is_some() { libc::EBUSY } else { libc::ENODEV };
            let index = free.ok_or(-none)?;
            let config = bman_portal_config {
                cpu: cpu as c_int,
                irq: notifier.fd().as_raw_fd(),
                index,
                is_shared: 0,
                mask: [u32::MAX; 2],
            };
            *place = Some(std::rc::Rc::new(Bman {
                config: Box::new(config),
                notifier,
                sources: Cell::new(0),
                pools: RefCell::default(),
                is_polling: Cell::new(false),
                index,
            }));
            Ok(())
        });
        // A thread that ends gets none.
        begun.unwrap_or(Err(-libc::ENODEV))
    }

    pub fn finish() -> Result<(), c_int> {
        if bman(false, |bman| bman.is_polling.get()) {
            return Err(-libc::EBUSY);
        }
        // In a destructor of the thread's it may be given back already.
        let gone = BMAN.try_with(|place| place.borrow_mut().take());
        gone.ok().flatten().map(drop).ok_or(-libc::ENODEV)
    }
}

impl Drop for Bman {
    fn drop(&mut self) {
        manager().pools.disarm(&self.notifier);
        BMAN_PORTALS.fetch_and(!(1 << self.index), Relaxed);
    }
}
