//! A ring: what a program has opened, and what it has asked for since.

use std::{
    ffi::c_int,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use ringway_live_capture::{Lent, Signals};
use rustix::fd::OwnedFd;

use crate::{
    abi::*,
    admission::{Admission, Reader},
    bpf::Filter,
    cluster::{self, Member},
    describe, device,
    errno::keep_errno,
    files::Files,
    rule_thread::RuleThread,
    rules::Outlet,
    source::{self, Refused, Source},
    state::{self, State},
};

/// One ring.
pub struct Ring {
    pub id: u32,
    /// As the program has named its devices.
    pub device: String,
    pub flags: u32,
    pub caplen: u32,
    pub sources: Vec<Source>,
    /// What ends a wait for several devices at once, and for none.
    pub wake: Signals,
    pub state: State,
    pub mode: AtomicI32,
    pub direction: AtomicI32,
    /// Milliseconds of one wait.
    pub poll_duration: AtomicU32,
    pub watermark: AtomicU32,
    pub watermark_timeout: AtomicU32,
    /// Calls of `pfring_poll`.
    pub polls: AtomicU64,
    pub rehashes: AtomicBool,
    /// Packets that the program has got, counted by the thread that has the reader.
    received: AtomicU64,
    last_lost: AtomicU64,
    pub sent: AtomicU64,
    pub send_errors: AtomicU64,
    pub filter: Mutex<Option<Filter>>,
    pub admission: Admission,
    pub rule_thread: RuleThread,
    /// The program has asked for its counters.
    pub wants_text: AtomicBool,
    pub reader: Lent<Reader>,
    pub texts: Mutex<Texts>,
    pub files: Files,
    pub reflector: Mutex<Option<Outlet>>,
    /// The program has asked for a descriptor to poll.
    pub is_selectable: AtomicBool,
    /// What programs poll, of several devices.
    pub set: OnceLock<Option<OwnedFd>>,
}

/// What is shown of a ring.
#[derive(Default)]
pub struct Texts {
    pub application: String,
    pub bound_to: Option<String>,
}

/// Locks; a thread that has panicked has left nothing half done here. A wait for another thread sets errno, which is the
/// program's (PF-STATE-1).
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let wait = || mutex.lock().unwrap_or_else(PoisonError::into_inner);
    try_lock(mutex).unwrap_or_else(|| keep_errno(wait))
}

/// The same without a wait. `None` where it is held: perhaps by what a signal's handler has interrupted.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Ring {
    /// Opens the devices of a text; an error number else.
    pub fn open(device: &str, caplen: u32, flags: u32) -> Result<Ring, c_int> {
        let has_flows = ringway_environment::variable("PF_RING_FT_CONF").is_some();
        if flags & L7_FILTERING != 0 || has_flows {
            return Err(libc::ENOTSUP);
        }
        cluster::sweep();
        let elements = device::parse(device).ok_or(libc::ENODEV)?;
        let caplen = caplen.min(MAX_CAPLEN);
        let sources = source::open(&elements, caplen.max(1), flags).map_err(|Refused(why)| why)?;
        if sources.is_empty() && !elements.is_empty() {
            return Err(libc::ENODEV);
        }
        Ring::over(device, caplen, flags, sources)
    }

    /// Of devices that are open.
    pub fn over(
        device: &str,
        caplen: u32,
        flags: u32,
        sources: Vec<Source>,
    ) -> Result<Ring, c_int> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Relaxed);
        let wake = Signals::default();
        wake.arm().map_err(|error| error.raw_os_error())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let interfaces = sources.iter().filter_map(Source::interface).map(str::to_owned).collect();
        let ring = Ring {
            id,
            files: Files::new(device, id, interfaces),
            device: device.into(),
            flags,
            caplen,
            wake,
            state: State::new(flags, sources.len()),
            mode: AtomicI32::new(0),
            direction: AtomicI32::new(RX_AND_TX),
            poll_duration: AtomicU32::new(500),
            watermark: AtomicU32::new(128),
            watermark_timeout: AtomicU32::new(0),
            polls: AtomicU64::new(0),
            rehashes: AtomicBool::new(false),
            received: AtomicU64::new(0),
            last_lost: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            send_errors: AtomicU64::new(0),
            filter: Mutex::default(),
            admission: Admission::new(&sources, flags & LONG_HEADER != 0),
            rule_thread: RuleThread::default(),
            wants_text: AtomicBool::new(false),
            reader: Lent::new(Reader::new(now.subsec_nanos())),
            texts: Mutex::default(),
            reflector: Mutex::default(),
            is_selectable: AtomicBool::new(false),
            set: OnceLock::new(),
            sources,
        };
        ring.publish();
        Ok(ring)
    }

    /// Shows what the ring is and what it has counted, unless that is changing now.
    pub fn publish(&self) {
        if let Some(text) = describe::ring(self) {
            self.files.publish(&text);
        }
    }

    pub fn is_long(&self) -> bool {
        self.flags & LONG_HEADER != 0
    }

    /// Bytes of a packet's header that programs are given.
    pub fn slot_header_len(&self) -> u16 {
        if self.is_long() { LONG as u16 } else { SHORT as u16 }
    }

    pub fn is_reentrant(&self) -> bool {
        self.state.has(state::SHARED)
    }

    pub fn is_enabled(&self) -> bool {
        !self.state.has(state::DISABLED)
    }

    /// The mode stays as it is meanwhile.
    pub fn set_enabled(&self, enabled: bool) {
        self.state.set(state::SENDS_ONLY, !self.may_receive());
        self.state.set(state::DISABLED, !enabled);
    }

    pub fn is_closing(&self) -> bool {
        self.state.has(state::CLOSING)
    }

    pub fn has_mode(&self, mode: c_int) -> bool {
        self.mode.load(Relaxed) == mode
    }

    /// Whether the mode lets the program receive.
    pub fn may_receive(&self) -> bool {
        !matches!(self.mode.load(Relaxed), SEND_ONLY | MANAGEMENT_ONLY)
    }

    /// Packets that the program has got.
    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Counts packets that the program gets. The caller has the reader, so no other thread counts.
    #[inline]
    pub fn count_received(&self, packets: u64) {
        self.received.store(self.received() + packets, Relaxed);
    }

    /// Begins to collect packets: what came before is none of it.
    pub fn enable(&self) {
        if self.is_enabled() {
            return;
        }
        self.discard();
        if let Some(member) = lock(&self.admission.cluster).as_mut() {
            member.forget_lost();
        }
        self.set_enabled(true);
        self.publish();
        self.start_rule_thread();
    }

    /// Has the current wait end, and the loop. A signal handler may call it.
    pub fn break_loop(&self) {
        self.wake.break_loop();
        self.sources.iter().for_each(|source| source.signals.break_loop());
    }

    /// A break that came before is none.
    pub fn forget_break(&self) {
        self.wake.take_break();
        for source in &self.sources {
            source.signals.take_break();
        }
    }

    pub fn shut_down(&self) {
        self.state.set(state::CLOSING, true);
        self.break_loop();
    }

    /// Packets that were lost since the ring was enabled; as of the last time where that cannot be said now: another
    /// thread is done soon, and what a signal's handler has interrupted is not.
    pub fn lost(&self) -> u64 {
        const TRIES: u32 = 100;
        let lost = (0..TRIES).find_map(|_| {
            self.try_lost().or_else(|| {
                std::thread::yield_now();
                None
            })
        });
        if let Some(lost) = lost {
            self.last_lost.store(lost, Relaxed);
        }
        self.last_lost.load(Relaxed)
    }

    fn try_lost(&self) -> Option<u64> {
        let in_cluster = try_lock(&self.admission.cluster)?.as_ref().map_or(0, Member::lost);
        self.sources.iter().try_fold(in_cluster, |all, source| {
            // Shared memory has what a queue has lost: it may be any number.
            Some(all.saturating_add(source.lost()?))
        })
    }

    /// What the ring has counted. Programs ask in handlers of signals: this allocates nothing, and does not wait for
    /// what a handler may have interrupted.
    pub fn stats(&self) -> pfring_stat {
        if !self.is_enabled() {
            return pfring_stat::default();
        }
        self.request_text();
        pfring_stat { recv: self.received(), drop: self.lost(), shunt: 0 }
    }

    /// Bytes of a packet without Ethernet's header; 0 for several devices, and for none.
    pub fn mtu(&self) -> u32 {
        match &self.sources[..] {
            [source] => source.mtu(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io, thread};

    use super::*;
    use crate::errno::set_errno;

    /// However the wait goes: what two threads want at once is not there when they begin to wait, now and then.
    #[test]
    fn a_wait_for_a_lock_leaves_errno() {
        let count = Mutex::new(0u32);
        let add = || {
            set_errno(libc::EXFULL);
            while *lock(&count) < 1_000_000 {
                *lock(&count) += 1;
                assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EXFULL));
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(add))));
    }
}
