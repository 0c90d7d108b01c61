//! An activated handle: its port, and how packets are read from it.
//!
//! ```text
//!   read: deliver what the rings hold --> something? --> back to the program
//!            ^                            nothing
//!            |                               |
//!            +---- news, before `timeout` -- sleep on the port's descriptor
//! ```
//!
//! A packet is handed on where it lies, in the ring's buffer. It goes back to the ring's other side with the
//! sync after it: with a callback, when the callback has seen it; else with the next read.

use std::{
    collections::VecDeque,
    ffi::c_int,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use ringway::{
    BoundRing, Error, Interest, PollablePort, Port, PortKind, Reopening, Sleeper, Sources, prepare,
};
use ringway_abi::{Dir, NS_MOREFRAG, NS_TXMON};
use ringway_filter::Insn;
use ringway_region::{Buf, RingView};
use rustix::{
    event::{PollFlags, Timespec},
    fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
    io::Errno,
};

use crate::{
    abi::*,
    clock::Clock,
    filtering::{Filtering, Packet, push_down},
    lent::{Borrowed, Lent},
    losses::Losses,
    metadata::Metadata,
    promiscuous::Promiscuous,
    send::Sending,
    settings::Settings,
    signals::Signals,
    sys::poll,
};

mod daemon_loss;
mod failure;
mod reopening;
mod run;
mod watched;

pub(crate) use daemon_loss::Awaited;
pub use daemon_loss::HandingOut;
use failure::Failure;
use reopening::Early;
use run::{Run, is_wanted};

/// Slots that are taken from a ring before it is synced again: then its other side has room once more.
const BURST: u32 = 128;
/// How many slots ahead of the present one packets are prefetched.
const AHEAD: u32 = 4;

/// What a descriptor says of which nothing comes any more.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);
/// Reads of a program that does not wait, which find nothing, between two looks at the daemon.
const LOOKS: u32 = 64;
/// How long the first packet of an interface waits for others, unless the program wants each at once. A thousand
/// have room.
const NAP: Duration = Duration::from_micros(200);
/// How often counters are asked for while another thread has the port, each time for no longer than a sync.
const ASKS: u32 = 64;

/// Why a read ends without a number of packets.
pub enum End {
    /// `pcap_breakloop`.
    Broken,
    Failed(String),
}

impl End {
    /// The reader is somewhere else already.
    pub fn nested() -> End {
        let text =
            "another read of this handle is under way: read by one thread, and not in a callback";
        End::Failed(text.into())
    }
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Failed(error.to_string())
    }
}

/// How a read goes about it.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    pub signals: &'a Signals,
    /// Packets that are wanted; `None` for what there is.
    pub most: Option<u32>,
    pub nonblocking: bool,
    /// The program looks at the last packet until the next read.
    pub keeps: bool,
}

/// An open port.
pub struct Live {
    /// Written by the one thread that reads, to get ready for a sleep, and for no longer than that.
    port: RwLock<PollablePort>,
    fd: RawFd,
    /// What ends a sleep: descriptors of the port's. Only the one thread that reads takes it.
    sources: Mutex<SleepSources>,
    /// What ends the sleep of a thread that sends.
    tx_sources: Mutex<SleepSources>,
    /// How long packets may wait for others after the first has woken the reader.
    nap: Option<Duration>,
    reader: Lent<Reader>,
    /// A read waits, and has nothing locked: a handler of a signal may jump out of it (`siglongjmp`), and the next read
    /// goes on. To all but reads the port is in use meanwhile.
    asleep: AtomicBool,
    /// What the reader is to take over.
    next_filter: Mutex<Option<Filtering>>,
    next_port: Mutex<Option<Port>>,
    pub(crate) sending: Mutex<Sending>,
    /// What the filter was that the kernel was asked to apply.
    pushed_down: Mutex<Option<Vec<Insn>>>,
    direction: AtomicI32,
    /// The program watches the descriptor: it is to be exact.
    watched: AtomicBool,
    passed: AtomicU64,
    losses: Mutex<Losses>,
    /// What these were when the program last asked, `ps_drop` in the upper half.
    told: AtomicU64,
    snaplen: u32,
    nanoseconds: bool,
    timeout: Option<Duration>,
    buffer_size: c_int,
    /// There are packets of a port that has been closed.
    has_early: AtomicBool,
    /// The process that has opened it: after a fork, another may have the port as well.
    opened_by: u32,
    /// Its daemon has ended, and it is not open again.
    is_left: AtomicBool,
    /// Packets that daemons which have ended have not taken.
    unsent: AtomicU64,
    /// Why there is no port any more.
    failed: Failure,
    _promiscuous: Option<Promiscuous>,
}

/// Descriptors that end a sleep, and by what.
pub(crate) type SleepSources = Arc<Vec<(OwnedFd, PollFlags)>>;

/// What belongs to the thread that reads.
struct Reader {
    filter: Option<Filtering>,
    clock: Clock,
    /// A header with the time of the last sync, when what the rings hold now was found; `None` if there was
    /// another one since.
    found: Option<pcap_pkthdr>,
    /// The ring whose turn it is, and slots that were taken of it in this turn. A read that has
    /// enough ends within a turn, and the next goes on there: so a slow program gets its share of
    /// every ring.
    ring: usize,
    turn: u32,
    /// Slots that were taken of that ring since its last sync.
    taken: u32,
    run: Run,
    /// A packet that lies in several buffers, in one piece.
    whole: Vec<u8>,
    /// The last packet of a ring whose descriptor is watched, which the program keeps: its slot has been given back.
    copy: Vec<u8>,
    /// Whether anything was read, or tried to be.
    began: bool,
    /// What came by a port that has been closed, to be read first.
    early: VecDeque<Early>,
    /// Reads that have found nothing, and did not wait.
    in_vain: u32,
    /// Opens a port again that its daemon has left, since then.
    reopening: Option<Reopening>,
    left_at: Option<Instant>,
    /// Such ports: what was read last may lie in their memory.
    former: Vec<Port>,
}

/// What came of a burst.
#[derive(Default)]
struct Burst {
    slots: u32,
    packets: u32,
}

impl Live {
    pub fn new(
        port: Port,
        settings: &Settings,
        promiscuous: Option<Promiscuous>,
    ) -> Result<Live, Error> {
        let mut port = port.into_pollable()?;
        let losses = Losses::of(&port);
        let stamps = port.binding().rings(Dir::Rx).iter().any(BoundRing::has_timestamps);
        let naps = port.kind() == PortKind::Nic && !settings.immediate && settings.timeout > 0;
        Ok(Live {
            fd: port.as_raw_fd(),
            sources: Mutex::new(Arc::new(sources(&mut port, Interest::Rx)?)),
            tx_sources: Mutex::new(Arc::new(sources(&mut port, Interest::Tx)?)),
            nap: naps.then_some(NAP),
            reader: Lent::new(Reader {
                run: Run::of(&port),
                filter: None,
                clock: Clock::new(settings.nanoseconds, stamps),
                found: None,
                ring: 0,
                turn: 0,
                taken: 0,
                whole: Vec::new(),
                copy: Vec::new(),
                began: false,
                early: VecDeque::new(),
                in_vain: 0,
                reopening: None,
                left_at: None,
                former: Vec::new(),
            }),
            asleep: AtomicBool::new(false),
            port: RwLock::new(port),
            next_filter: Mutex::default(),
            next_port: Mutex::default(),
            sending: Mutex::default(),
            pushed_down: Mutex::default(),
            direction: AtomicI32::new(PCAP_D_INOUT),
            watched: AtomicBool::new(false),
            passed: AtomicU64::new(0),
            losses: Mutex::new(losses),
            told: AtomicU64::new(0),
            snaplen: settings.snaplen(),
            nanoseconds: settings.nanoseconds,
            timeout: match settings.timeout {
                milliseconds @ 1.. => {
                    Some(Duration::from_millis(milliseconds.unsigned_abs().into()))
                }
                _ => None,
            },
            buffer_size: if settings.buffer_size > 0 { settings.buffer_size } else { 2 << 20 },
            has_early: AtomicBool::new(false),
            opened_by: std::process::id(),
            is_left: AtomicBool::new(false),
            unsent: AtomicU64::new(0),
            failed: Failure::default(),
            _promiscuous: promiscuous,
        })
    }

    /// The port, for what needs no more than a look. Callbacks may be under way: they have it too.
    pub fn port(&self) -> RwLockReadGuard<'_, PollablePort> {
        self.port.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn snaplen(&self) -> u32 {
        self.snaplen
    }

    pub fn nanoseconds(&self) -> bool {
        self.nanoseconds
    }

    pub fn buffer_size(&self) -> c_int {
        self.buffer_size
    }

    /// The descriptor that is readable while there are packets.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// What ends the sleep of a thread that sends.
    pub(crate) fn tx_sources(&self) -> SleepSources {
        lock(&self.tx_sources).clone()
    }

    /// Which packets are wanted: all, those that the port has received, or those that it has sent.
    pub fn set_direction(&self, direction: c_int) {
        self.direction.store(direction, Relaxed);
    }

    /// From the next packet on, what this valid program says.
    ///
    /// # Errors
    /// Before the first read, where the port is opened anew for it: the port was closed, and cannot be opened.
    pub fn set_filter(&self, insns: &[Insn], signals: &Signals) -> Result<(), Error> {
        let filter = Filtering::new(insns);
        *lock(&self.next_filter) = Some(filter);
        signals.filter_changed();
        *lock(&self.pushed_down) = Some(insns.to_vec());
        if !self.reopen(insns)? {
            push_down(&self.port(), insns);
        }
        Ok(())
    }

    /// Has another port in the place of this one, which is returned; the descriptor stays. `None`, and the other is
    /// closed, while another thread reads, and where there are no descriptors left.
    pub fn replace(&self, port: Port) -> Option<Port> {
        let mut reader = self.try_reader()?;
        // The port that was to follow is closed.
        drop(lock(&self.next_port).take());
        self.replace_at(&mut reader, port)
    }

    /// The same; while another thread reads, its next read does it. False, and the port is closed, where there are no
    /// descriptors left.
    pub fn replace_soon(&self, port: Port, signals: &Signals) -> bool {
        let Some(mut reader) = self.try_reader() else {
            self.replace_later(port, signals);
            return true;
        };
        drop(lock(&self.next_port).take());
        self.replace_at(&mut reader, port).is_some()
    }

    /// The next read has another port in the place of this one, for any thread. What was read last stays where it is
    /// until then.
    pub fn replace_later(&self, port: Port, signals: &Signals) {
        *lock(&self.next_port) = Some(port);
        signals.port_changed();
        self.port().interrupt();
    }

    /// Goes on with the port that is to follow, if there is one. False while another thread reads.
    pub fn take_next(&self) -> bool {
        let Some(mut reader) = self.try_reader() else { return false };
        self.take_port(&mut reader);
        true
    }

    /// There will be no port any more: the next read that finds nothing fails.
    pub fn fail_later(&self, why: String, signals: &Signals) {
        self.failed.set(why);
        signals.port_changed();
        self.port().interrupt();
    }

    fn replace_at(&self, reader: &mut Reader, mut port: Port) -> Option<Port> {
        let rx_sources = sources(&mut port, Interest::Rx).ok()?;
        let tx_sources = sources(&mut port, Interest::Tx).ok()?;
        let (mut losses, mut open) =
            (lock(&self.losses), self.port.write().unwrap_or_else(PoisonError::into_inner));
        *losses = Losses::after(losses.so_far(&open), &port);
        *lock(&self.sources) = Arc::new(rx_sources);
        *lock(&self.tx_sources) = Arc::new(tx_sources);
        reader.reopening = None;
        self.is_left.store(false, Relaxed);
        self.failed.clear();
        reader.run = Run::of(&port);
        (reader.found, reader.ring, reader.turn, reader.taken) = (None, 0, 0, 0);
        Some(open.replace(port))
    }

    /// Goes on with the port that is to follow. True: what this one had received is to be read first.
    #[cold]
    fn take_port(&self, reader: &mut Reader) -> bool {
        let next = lock(&self.next_port).take();
        if let Some(port) = next {
            self.keep(reader);
            self.has_early.store(!reader.early.is_empty(), Relaxed);
            // Either of them closes here.
            let _ = self.replace_at(reader, port);
        }
        self.has_early()
    }

    /// Packets that passed the filter, those that found no room, and those that the port refused. Signal handlers may
    /// ask: where a read has the port, which they may have interrupted, losses are those of the last time.
    pub fn stats(&self) -> pcap_stat {
        for _ in 0..ASKS {
            if let Some(stats) = self.try_stats() {
                return stats;
            }
            thread::yield_now();
        }
        let told = self.told.load(Relaxed);
        self.count([(told >> 32) as u32, told as u32])
    }

    /// The same without a wait: `None` where a read has the port.
    pub fn try_stats(&self) -> Option<pcap_stat> {
        let (losses, port) = (self.losses.try_lock().ok()?, self.port.try_read().ok()?);
        let [dropped, refused] = losses.so_far(&port);
        self.told.store(u64::from(dropped) << 32 | u64::from(refused), Relaxed);
        Some(self.count([dropped, refused]))
    }

    fn count(&self, [ps_drop, ps_ifdrop]: [u32; 2]) -> pcap_stat {
        let ps_recv = (self.passed.load(Relaxed) as u32).wrapping_add(ps_drop);
        pcap_stat { ps_recv, ps_drop, ps_ifdrop }
    }

    /// Slots with packets for the next reads. What reads have kept stays kept.
    pub fn queued(&self) -> u32 {
        let Some(reader) = self.try_reader() else { return 0 };
        let port = self.port();
        let rings = (0..).zip(port.binding().rings(Dir::Rx)).map(|(place, ring)| {
            let kept = if place == reader.ring { reader.taken } else { 0 };
            look_behind(ring, kept);
            held(ring.kring().ring())
        });
        let queued = rings.sum::<u32>();
        drop(port);
        if queued > 0 {
            // What has come to the rings is no more where the descriptor would tell of it.
            self.hold();
        }
        queued.saturating_add(reader.early.len() as u32)
    }

    /// Whether [`read_early`](Self::read_early) has packets, which come before all others.
    #[inline]
    pub(crate) fn has_early(&self) -> bool {
        self.has_early.load(Relaxed)
    }

    /// Reads once: gives `sink` packets, each with which way it went, and returns how many; 0 after the timeout,
    /// or at once where the program does not want to wait.
    pub fn read(
        &self,
        reading: Reading<'_>,
        mut sink: impl FnMut(&pcap_pkthdr, *const u8, Metadata),
    ) -> Result<u32, End> {
        let mut reader = self.reader.take().ok_or_else(End::nested)?;
        self.asleep.store(false, Relaxed);
        reader.began = true;
        reader.turn -= reader.run.end();
        let mut deadline = None;
        let mut looked = false;
        loop {
            if reading.signals.take_break() {
                return Err(End::Broken);
            }
            if reading.signals.take_port() && self.take_port(&mut reader) {
                // What the port before has received comes first: the next read has it.
                return Ok(0);
            }
            let packets = self.deliver(&mut reader, &reading, &mut sink)?;
            if packets > 0 {
                if self.watched.load(Relaxed) {
                    self.settle_watched(&mut reader);
                }
                return Ok(packets);
            }
            if reading.nonblocking && looked {
                return Ok(0);
            }
            looked = true;
            if let Some(why) = self.failed.get() {
                return Err(End::Failed(why));
            }
            if deadline.is_none() {
                deadline = self.timeout.map(|timeout| Instant::now() + timeout);
            } else if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(0);
            }
            reader.found = None;
            reader.former.clear();
            match self.wait(reader, reading.signals, reading.nonblocking, deadline)? {
                Some(again) => reader = again,
                None => return Ok(0),
            }
        }
    }

    /// What belongs to the reader, for others: `None` while a read is under way.
    fn try_reader(&self) -> Option<Borrowed<'_, Reader>> {
        self.reader.borrow().filter(|_| !self.asleep.load(Relaxed))
    }

    /// Sleeps, with nothing locked.
    fn without_lock<'a, T>(
        &'a self,
        reader: MutexGuard<'a, Reader>,
        sleep: impl FnOnce() -> T,
    ) -> Result<(T, MutexGuard<'a, Reader>), End> {
        self.asleep.store(true, Relaxed);
        drop(reader);
        let handing_out = HandingOut::nothing();
        let slept = sleep();
        drop(handing_out);
        let reader = self.reader.take().ok_or_else(End::nested)?;
        self.asleep.store(false, Relaxed);
        Ok((slept, reader))
    }

    /// Waits for packets, once. `None` if the program does not want to wait.
    ///
    /// It is apart from [`read`](Self::read), which would take more instructions for each packet with it.
    #[cold]
    #[inline(never)]
    fn wait<'a>(
        &'a self,
        mut reader: MutexGuard<'a, Reader>,
        signals: &Signals,
        nonblocking: bool,
        deadline: Option<Instant>,
    ) -> Result<Option<MutexGuard<'a, Reader>>, End> {
        if reader.reopening.is_none() {
            let prepared = match self.prepare(!nonblocking) {
                Ok(false) if nonblocking => self.look_at_daemon(&mut reader).map(|()| false),
                Ok(false) => {
                    let slept;
                    (slept, reader) =
                        self.without_lock(reader, || self.sleep(signals, deadline))?;
                    slept.map(|()| true)
                }
                prepared => prepared,
            };
            match prepared {
                Err(error) if error.is_gone() => self.leave(&mut reader),
                result => return Ok(result?.then_some(reader)),
            }
        }
        self.await_port(reader, signals, nonblocking, deadline)
    }

    /// For a program that does not wait, and so does not hear that its daemon has ended: looks from time to time.
    fn look_at_daemon(&self, reader: &mut Reader) -> Result<(), Error> {
        reader.in_vain = reader.in_vain.wrapping_add(1);
        if reader.in_vain.is_multiple_of(LOOKS) {
            self.port().check(Interest::Rx)?;
        }
        Ok(())
    }

    /// Syncs; whether there is something. If not, a sleep ends as soon as there is.
    fn prepare(&self, waits: bool) -> Result<bool, Error> {
        if self.watched.load(Relaxed) {
            return self.prepare_watched();
        }
        let mut port = self.port.write().unwrap_or_else(PoisonError::into_inner);
        let waiter = port.waiter(Interest::Rx);
        let ready = prepare(&mut if waits { waiter } else { waiter.at_once() }).is_ready();
        let rings = port.binding().rings(Dir::Rx);
        // The beginning of a packet, whose rest is waited for, is nothing either.
        let is_empty = |ring: &BoundRing| {
            let kring = ring.kring();
            held(kring.ring()) == 0 || !kring.ready() || kring.is_ended()
        };
        if ready && rings.iter().all(is_empty) {
            // Unless nothing can come any more, another process has been faster.
            return port.poll_or_check(Interest::Rx);
        }
        Ok(ready)
    }

    fn sleep(&self, signals: &Signals, deadline: Option<Instant>) -> Result<(), Error> {
        if self.sleeps(signals, deadline)? {
            let mut port = self.port.write().unwrap_or_else(PoisonError::into_inner);
            // Packets that are in the ring are read before the error is reported.
            port.poll_or_check(Interest::Rx)?;
        }
        Ok(())
    }

    /// The same; true if a descriptor says that nothing comes any more.
    fn sleeps(&self, signals: &Signals, deadline: Option<Instant>) -> Result<bool, Error> {
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        let watched = self.watched.load(Relaxed).then_some((self.fd, PollFlags::IN));
        let sources = lock(&self.sources).clone();
        let sources = if watched.is_some() { &[][..] } else { &sources };
        let sources = sources.iter().map(|(fd, events)| (fd.as_raw_fd(), *events));
        let wake = signals.wake_fd().map(|fd| (fd.as_raw_fd(), PollFlags::IN));
        let fds: Vec<_> = sources.chain(watched).chain(wake).collect();
        match poll(&fds, timeout).inspect(|seen| signals.slept(seen)) {
            Ok(seen) if seen.iter().any(|events| events.intersects(GONE)) => {
                return Ok(true);
            }
            Ok(seen) => {
                if let Some(nap) = self.nap.filter(|_| seen.iter().any(|events| !events.is_empty()))
                {
                    thread::sleep(nap);
                }
            }
            // A signal's handler may have said that the read is to end.
            Err(Errno::INTR) => {}
            Err(error) => {
                let what = "cannot wait for packets";
                return Err(Error::System { what, source: error.into() });
            }
        }
        Ok(false)
    }

    /// Hands on what the rings hold, in turns, and no more than a ring's worth of each.
    fn deliver(
        &self,
        reader: &mut Reader,
        reading: &Reading<'_>,
        sink: &mut impl FnMut(&pcap_pkthdr, *const u8, Metadata),
    ) -> Result<u32, End> {
        let port = self.port();
        let rings = port.binding().rings(Dir::Rx);
        let copies = reading.keeps && self.watched.load(Relaxed);
        let (mut packets, mut slots, mut empty) = (0, 0, 0);
        while let Some(ring) = rings.get(reader.ring)
            && empty < rings.len()
            && slots < ring.kring().ring().num_slots().saturating_mul(rings.len() as u32)
        {
            let room = reading.most.map_or(u32::MAX, |most| most - packets);
            if room == 0 {
                break;
            }
            if reader.turn >= BURST {
                reader.end_turn(rings);
                continue;
            }
            let burst = self.burst(ring, reader, reading, (room, copies), sink);
            packets += burst.packets;
            slots += burst.slots;
            empty += 1;
            if burst.slots > 0 {
                empty = 0;
            } else {
                reader.end_turn(rings);
            }
            if reading.signals.any() {
                // A packet that is kept is the program's: the break is for the next read.
                let is_over = reading.keeps && packets > 0;
                if !is_over && reading.signals.take_break() {
                    return Err(End::Broken);
                }
                self.take_filter(reader, reading.signals);
                if is_over {
                    break;
                }
            }
        }
        Ok(packets)
    }

    fn take_filter(&self, reader: &mut Reader, signals: &Signals) {
        if signals.take_filter() {
            let next = lock(&self.next_filter).take();
            reader.filter = next.or(reader.filter.take());
        }
    }

    /// Hands on the next packets of a ring: at most a burst, and `room`.
    ///
    /// `copies`: the last packet of the ring, which is kept, is handed on as a copy, and its slot is given back. So what
    /// the ring holds is for the next reads, and the descriptor can say whether there is any.
    #[inline]
    fn burst(
        &self,
        ring: &BoundRing,
        reader: &mut Reader,
        reading: &Reading<'_>,
        (room, copies): (u32, bool),
        sink: &mut impl FnMut(&pcap_pkthdr, *const u8, Metadata),
    ) -> Burst {
        let view = ring.kring().ring();
        let mut held = held(view);
        if held == 0 {
            reader.sync(ring);
            held = self::held(view);
        }
        self.take_filter(reader, reading.signals);
        let Reader { filter, clock, found, whole, copy, .. } = reader;
        let now = *found.get_or_insert_with(|| clock.now());
        let mut header = now;
        let mut burst = Burst::default();
        let (direction, snaplen) = (self.direction.load(Relaxed), self.snaplen);
        let has_timestamps = ring.has_timestamps();
        // The program's function may ask for it. No other thread reads.
        let mut passed = self.passed.load(Relaxed);
        let mut at = view.head();
        let all = held;
        held = held.min(BURST);
        let mut is_begun = false;
        // No burst has as many slots else. What it has then is copied, or passed no filter.
        let copied_at = if copies { held } else { u32::MAX };
        while burst.slots < held && burst.packets < room {
            let slot = view.plain_slot(at);
            if held - burst.slots > AHEAD
                && let Some(buf) = view.buf(view.plain_slot(view.advance(at, AHEAD)).buf_idx)
            {
                buf.prefetch();
            }
            let first = at;
            let packet = if slot.flags & NS_MOREFRAG == 0 {
                burst.slots += 1;
                at = view.next(at);
                view.buf(slot.buf_idx).and_then(|buf| buf.part(0, buf.size().min(slot.len.into())))
            } else {
                let Some(slots) = gather(view, at, held - burst.slots, whole) else {
                    // Its end may be behind what one burst takes.
                    is_begun = all == held;
                    break;
                };
                burst.slots += slots;
                at = view.advance(at, slots);
                Some(Buf::of(whole))
            };
            let Some(packet) = packet else { continue };
            if !is_wanted(direction, slot.flags) {
                continue;
            }
            let packet = Packet(packet);
            let wanted =
                filter.as_ref().map_or(u32::MAX, |filter| filter.run(&packet, packet.0.size()));
            if wanted == 0 {
                continue;
            }
            header.len = packet.0.size();
            header.caplen = header.len.min(wanted).min(snaplen);
            if has_timestamps {
                match ring.timestamp(first) {
                    Some(time) => clock.stamp(&mut header, time.get()),
                    None => (header.seconds, header.fraction) = (now.seconds, now.fraction),
                }
            }
            burst.packets += 1;
            passed += 1;
            self.passed.store(passed, Relaxed);
            let place = if burst.slots == copied_at {
                copied(&packet.0, header.caplen, copy)
            } else {
                packet.0.as_ptr().cast_const()
            };
            // Computed here, so that it is optimised away for a sink that does not use it.
            sink(&header, place, Metadata::of(slot.flags & NS_TXMON != 0));
            if reading.signals.any() {
                break;
            }
        }
        // A wait for the rest of a packet ends when there is more of it.
        view.set_cur(if is_begun { view.advance(at, all - burst.slots) } else { at });
        view.set_head(at);
        reader.turn += burst.slots;
        reader.taken += burst.slots;
        if burst.slots > 0 && (!reading.keeps || burst.slots == copied_at) {
            reader.sync(ring);
        } else if reading.most == Some(1) && !has_timestamps {
            // The last one is to be copied.
            let held = if copies { held.saturating_sub(1) } else { held };
            let left = held.saturating_sub(burst.slots).min(BURST.saturating_sub(reader.turn));
            reader.run.begin(at, left, now, reader.filter.is_some());
            reader.turn += left;
        }
        burst
    }
}

/// A copy of the first `len` bytes of a packet, in `copy`.
#[cold]
#[inline(never)]
fn copied(packet: &Buf<'_>, len: u32, copy: &mut Vec<u8>) -> *const u8 {
    copy.resize(len as usize, 0);
    packet.copy_to(copy.len(), copy);
    copy.as_ptr()
}

impl Drop for Live {
    /// Gives back what was read last: the sender at the other end of a pipe sees that it was taken.
    fn drop(&mut self) {
        let reader = self.reader.get_mut();
        if reader.taken > 0 {
            let port = self.port.get_mut().unwrap_or_else(PoisonError::into_inner);
            reader.end_turn(port.binding().rings(Dir::Rx));
        }
    }
}

impl Reader {
    /// Gives back what was taken, and finds what has come.
    fn sync(&mut self, ring: &BoundRing) {
        ring.sync();
        (self.found, self.taken) = (None, 0);
    }

    /// Gives back what was taken of the ring, and goes on with the next.
    fn end_turn(&mut self, rings: &[BoundRing]) {
        if self.taken > 0
            && let Some(ring) = rings.get(self.ring)
        {
            self.sync(ring);
        }
        self.turn = 0;
        self.ring = if self.ring + 1 < rings.len() { self.ring + 1 } else { 0 };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What there is to poll for a port's packets, or for room.
fn sources(port: &mut Port, interest: Interest) -> Result<Vec<(OwnedFd, PollFlags)>, Error> {
    let waiter = port.waiter(interest);
    let mut sources = Sources::default();
    waiter.sources(&mut sources);
    let own = |(fd, events): &(BorrowedFd<'_>, PollFlags)| {
        let fd = fd.try_clone_to_owned();
        let what = "cannot make a descriptor for the port";
        Ok((fd.map_err(|source| Error::System { what, source })?, *events))
    };
    sources.as_slice().iter().map(own).collect()
}

/// Slots that the program holds; none if the cursors were spoiled.
fn held(view: &RingView) -> u32 {
    let (head, tail, slots) = (view.head(), view.tail(), view.num_slots());
    if head < slots && tail < slots { view.distance(head, tail) } else { 0 }
}

/// Finds what has come, and gives none of the last `kept` slots back: they are taken again behind the sync.
fn look_behind(ring: &BoundRing, kept: u32) {
    let view = ring.kring().ring();
    let (head, slots) = (view.head(), view.num_slots());
    if head >= slots || kept >= slots {
        return;
    }
    let take_up_to = |place| {
        view.set_cur(place);
        view.set_head(place);
    };
    take_up_to(view.advance(head, slots - kept));
    ring.sync();
    take_up_to(head);
}

/// Puts a packet of several slots together; returns how many. `None` if its end is not there yet.
#[cold]
fn gather(view: &RingView, first: u32, held: u32, whole: &mut Vec<u8>) -> Option<u32> {
    let more = |n: &u32| view.slot(view.advance(first, *n)).flags & NS_MOREFRAG != 0;
    let slots = match (0..held).find(|n| !more(n)) {
        Some(last) => last + 1,
        // A packet that fills the ring will not become any longer.
        None if held + 1 >= view.num_slots() || held >= BURST => held,
        None => return None,
    };
    whole.clear();
    for slot in (0..slots).map(|n| view.slot(view.advance(first, n))) {
        if let Some(buf) = view.buf(slot.buf_idx) {
            let (from, len) = (whole.len(), usize::from(slot.len).min(buf.size() as usize));
            whole.resize(from + len, 0);
            buf.copy_to(len, &mut whole[from..]);
        }
    }
    Some(slots)
}
