//! An activated handle of a monitor on an interface that no program has open: it listens beside the stack.
//!
//! ```text
//!   kernel: direction, filter --> | block | block | ... | <-- callback, in place
//! ```
//!
//! The kernel copies a packet that passes the filter into a ring of blocks that the callback
//! reads. It wakes the program for a block, not for a packet.
//!
//! VLAN tags are beside the packet where the kernel's filter runs, and within it where programs
//! expect them. So packets with tags pass the kernel's filter, and are filtered here: by what the
//! system's libpcap would let pass, for which a tag is there where the filter says `vlan`, and
//! nowhere else.

use std::{
    ffi::c_int,
    io,
    ops::ControlFlow,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ringway_filter::Insn;
use ringway_packet::{
    Geometry, Heard, LinkWatch, Listen, Listener, has_lost_interface, socket::set_filter,
    take_drops,
};
use ringway_region::Buf;
use rustix::{
    event::{PollFlags, Timespec},
    fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    io::Errno,
    time::{ClockId, clock_gettime},
};

use crate::{
    abi::*,
    clock,
    filtering::{Filtering, Packet, asks_about_tags},
    lent::Lent,
    live::{End, Reading},
    metadata::{Checksum, Metadata},
    send::SendError,
    settings::Settings,
    signals::Signals,
    sys::{poll, replace_fd},
};

/// Of a block: it holds the longest packet that the kernel makes of what it sends in one piece, and so many short
/// ones that it costs little to be woken for them.
const BLOCK: u32 = 256 << 10;
/// Of a block at the least, where packets are wanted at once: the kernel hands over a block each millisecond then,
/// however few packets have come. So there are many, for a program that looks away.
const SMALL_BLOCK: u32 = 32 << 10;
/// Beside a packet in its block.
const HEADERS: u32 = 512;
/// A ring, unless the program asks for another: that of the system's library.
const RING: u32 = 2 << 20;
/// Blocks of a ring, at the least and at the most.
const BLOCKS: std::ops::RangeInclusive<u32> = 2..=2048;
/// Milliseconds that the first packet of a block waits for others, where the program sets no time.
const PATIENCE_MS: u32 = 10;

/// How long a reader looks away where small blocks become full: to be woken for each of them would cost the sender's
/// side, which fills them, more than the packets do. It is less than a block's time.
const REST: Duration = Duration::from_micros(200);

/// Listening to an interface.
pub struct Tap {
    interface: String,
    socket: OwnedFd,
    reader: Lent<Reader>,
    /// What the reader is to take over.
    next_filter: Mutex<Option<Next>>,
    /// How the socket listens.
    listen: Listen,
    /// It is to be another one.
    is_to_change: AtomicBool,
    /// Which packets the name asks for, and which the program.
    of_name: c_int,
    direction: AtomicI32,
    passed: AtomicU64,
    dropped: AtomicU32,
    link: LinkWatch,
    snaplen: u32,
    nanoseconds: bool,
    filters_with_tags: bool,
    timeout: Option<Duration>,
    /// Blocks are small.
    immediate: bool,
    /// Of the ring.
    blocks: u64,
    buffer_size: c_int,
}

/// What belongs to the thread that reads.
struct Reader {
    listener: Listener,
    filter: TapFilter,
    /// What passed before this time, seconds and nanoseconds, is not wanted, of blocks before that one.
    begin: Option<([u32; 2], u64)>,
}

/// The filter of a tap, which the kernel has as well.
#[derive(Default)]
struct TapFilter {
    steps: Option<Filtering>,
    asks_about_tags: bool,
    /// It is run here for packets of blocks before this one, counted as they are given back: the kernel has put
    /// them there without it. [`ALWAYS`] if the kernel has refused it.
    needed_before: u64,
    /// What the kernel is to have from then on: it cuts packets short, as the program wants them.
    cutting: Option<Vec<libc::sock_filter>>,
}

const ALWAYS: u64 = u64::MAX;

impl TapFilter {
    /// Bytes that are wanted of a packet, 0 for none.
    #[inline]
    fn wanted(&self, heard: &Heard<'_>) -> u32 {
        match &self.steps {
            Some(steps) if heard.tagged && !self.asks_about_tags => {
                steps.run_untagged(&Packet(heard.data), heard.length)
            }
            Some(steps) => steps.run(&Packet(heard.data), heard.length),
            None => u32::MAX,
        }
    }
}

/// A filter that the program has set, and whether the kernel has it.
struct Next {
    steps: Filtering,
    asks_about_tags: bool,
    is_in_kernel: bool,
    cutting: Vec<libc::sock_filter>,
}

impl Tap {
    /// Begins to listen to what the direction says.
    pub fn new(interface: &str, of_name: c_int, settings: &Settings) -> io::Result<Tap> {
        let longest = settings.snaplen().saturating_add(HEADERS).min(BLOCK).next_power_of_two();
        let size = settings.buffer_size.max(0).unsigned_abs();
        // A ring that is large has larger blocks.
        let least = size.div_ceil(*BLOCKS.end()).next_power_of_two().clamp(SMALL_BLOCK, BLOCK);
        let block_size = if settings.immediate { longest.max(least) } else { BLOCK };
        let blocks = match size {
            0 => RING / block_size,
            _ => size.div_ceil(block_size).clamp(*BLOCKS.start(), *BLOCKS.end()),
        };
        let timeout = u32::try_from(settings.timeout).ok().filter(|timeout| *timeout > 0);
        let patience_ms = if settings.immediate { 1 } else { timeout.unwrap_or(PATIENCE_MS) };
        let ifindex = {
            let socket = ringway_packet::socket::new()?;
            rustix::net::netdevice::name_to_index(&socket, interface)?
        };
        let listen = Listen {
            ifindex,
            geometry: Geometry { block_size, blocks },
            patience_ms,
            outgoing: of_name != PCAP_D_IN,
            promiscuous: settings.promiscuous,
        };
        let (socket, listener) = listen.begin()?;
        Ok(Tap {
            interface: interface.into(),
            socket,
            reader: Lent::new(Reader { listener, filter: TapFilter::default(), begin: None }),
            next_filter: Mutex::default(),
            listen,
            is_to_change: AtomicBool::new(false),
            of_name,
            direction: AtomicI32::new(of_name),
            passed: AtomicU64::new(0),
            dropped: AtomicU32::new(0),
            link: LinkWatch::default(),
            snaplen: settings.snaplen(),
            nanoseconds: settings.nanoseconds,
            filters_with_tags: settings.filters_with_tags,
            timeout: timeout.map(|milliseconds| Duration::from_millis(milliseconds.into())),
            immediate: settings.immediate,
            blocks: blocks.into(),
            buffer_size: (blocks * block_size) as c_int,
        })
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

    /// As [`fd`](Self::fd).
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The socket, readable while there are packets.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Which packets are wanted, of those that the name asks for.
    pub fn set_direction(&self, direction: c_int) {
        let both = |one, other| if one == PCAP_D_INOUT { other } else { one };
        self.direction.store(both(self.of_name, direction), Relaxed);
    }

    /// From the next packet on, what this valid program says.
    pub fn set_filter(&self, insns: &[Insn], signals: &Signals) {
        let mut next_filter = self.next_filter.lock().unwrap_or_else(PoisonError::into_inner);
        // It cuts nothing as long as it is run here as well: it is to see whole packets. The kernel
        // may refuse it: it has limits that programs here have not. Then it may not go on with
        // another.
        let cutting = for_kernel(insns);
        let is_in_kernel = set_filter(self.socket.as_fd(), &mut without_cuts(&cutting)).is_ok();
        if !is_in_kernel {
            let _ = set_filter(self.socket.as_fd(), &mut [step(libc::BPF_RET, 0, 0, u32::MAX)]);
        }
        let (steps, asks_about_tags) =
            (Filtering::new(insns), self.filters_with_tags || asks_about_tags(insns));
        *next_filter = Some(Next { steps, asks_about_tags, is_in_kernel, cutting });
        drop(next_filter);
        signals.filter_changed();
    }

    /// From now on the reads give nothing that has passed before. Not while another thread reads.
    pub fn forget_earlier(&self) {
        let Some(mut reader) = self.reader.borrow() else { return };
        let now = clock_gettime(ClockId::Realtime);
        let now = [now.tv_sec as u32, now.tv_nsec as u32];
        // As in `replace_filter`: should the clock go back, no later block is short of packets.
        reader.begin = Some((now, reader.listener.filled() + 2));
    }

    /// Goes on with a new socket behind the same descriptor, without what was done to the one before: at once, or with
    /// the read that is under way. What the one before holds is lost; a program that watches the descriptor by
    /// `epoll(7)` has to add it again.
    pub fn listen_anew(&self, signals: &Signals) -> io::Result<()> {
        self.is_to_change.store(true, Relaxed);
        match self.reader.borrow() {
            Some(mut reader) => self.change(&mut reader),
            None => {
                signals.wake();
                Ok(())
            }
        }
    }

    #[cold]
    fn change(&self, reader: &mut Reader) -> io::Result<()> {
        if !self.is_to_change.swap(false, Relaxed) {
            return Ok(());
        }
        let mut next_filter = self.next_filter.lock().unwrap_or_else(PoisonError::into_inner);
        let (socket, listener) = self.listen.begin()?;
        let drops = take_drops(self.socket.as_fd()).unwrap_or(0);
        self.dropped.fetch_add(drops, Relaxed);
        replace_fd(self.socket.as_fd(), socket)?;
        // The kernel has no filter for this one.
        if let Some(next) = next_filter.as_mut() {
            next.is_in_kernel = false;
        }
        let filter = &mut reader.filter;
        (filter.needed_before, filter.cutting) = (ALWAYS, None);
        (reader.listener, reader.begin) = (listener, None);
        Ok(())
    }

    /// Packets that passed the filter, and those that found no room.
    pub fn stats(&self) -> pcap_stat {
        let drops = take_drops(self.socket.as_fd()).unwrap_or(0);
        let ps_drop = self.dropped.fetch_add(drops, Relaxed).wrapping_add(drops);
        let ps_recv = (self.passed.load(Relaxed) as u32).wrapping_add(ps_drop);
        pcap_stat { ps_recv, ps_drop, ps_ifdrop: 0 }
    }

    /// Nothing: a monitor does not send.
    pub fn inject(&self, _: &[u8], _: bool) -> Result<(), SendError> {
        let interface = &self.interface;
        let text =
            format!("{interface}: a monitor cannot send; send by a handle of {interface} itself");
        Err(SendError::new(Errno::OPNOTSUPP, text))
    }

    /// Hands on copies of what has come, `most` packets at the most, and does not wait. `copy` is
    /// where each is copied to.
    pub fn read_copies(
        &self,
        signals: &Signals,
        most: u32,
        copy: &mut Vec<u8>,
        mut sink: impl FnMut(&pcap_pkthdr, &[u8], Metadata),
    ) -> Result<u32, End> {
        if most == 0 {
            return Ok(0);
        }
        let reading = Reading { signals, most: Some(most), nonblocking: true, keeps: false };
        let packets = self.read_bufs(reading, |header, data, metadata| {
            copy.resize(header.caplen as usize, 0);
            let copied = data.copy_to(copy.len(), copy);
            sink(header, copy.get(..copied).unwrap_or_default(), metadata);
        })?;
        if packets == 0 {
            // An error makes the socket readable, until it is taken.
            self.explain()?;
        }
        Ok(packets)
    }

    /// Reads once: see `Live::read`.
    pub fn read(
        &self,
        reading: Reading<'_>,
        mut sink: impl FnMut(&pcap_pkthdr, *const u8, Metadata),
    ) -> Result<u32, End> {
        self.read_bufs(reading, |header, data, metadata| sink(header, data.as_ptr(), metadata))
    }

    fn read_bufs(
        &self,
        reading: Reading<'_>,
        mut sink: impl FnMut(&pcap_pkthdr, Buf<'_>, Metadata),
    ) -> Result<u32, End> {
        let mut reader = self.reader.take().ok_or_else(End::nested)?;
        let mut deadline = None;
        loop {
            if reading.signals.take_break() {
                return Err(End::Broken);
            }
            if self.is_to_change.load(Relaxed) {
                let failed = |error| End::Failed(format!("{}: {error}", self.interface));
                self.change(&mut reader).map_err(failed)?;
            }
            let packets = self.deliver(&mut reader, &reading, &mut sink)?;
            if packets > 0 {
                self.link.heard();
            }
            if packets > 0 || reading.nonblocking {
                return Ok(packets);
            }
            let now = Instant::now();
            match deadline {
                None => deadline = self.timeout.map(|timeout| now + timeout),
                Some(deadline) if deadline <= now => return Ok(0),
                Some(_) => {}
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
            let rests = self.immediate && reader.listener.take_crowded();
            // With nothing locked: a handler of a signal may jump out of it, and the next read goes on.
            drop(reader);
            self.sleep(reading.signals, left, rests)?;
            reader = self.reader.take().ok_or_else(End::nested)?;
        }
    }

    /// Hands on what the blocks hold, and no more than a ring's worth.
    fn deliver(
        &self,
        reader: &mut Reader,
        reading: &Reading<'_>,
        sink: &mut impl FnMut(&pcap_pkthdr, Buf<'_>, Metadata),
    ) -> Result<u32, End> {
        let Reader { listener, filter, begin } = reader;
        *begin = begin.filter(|(_, before)| listener.returned() < *before);
        if reading.signals.take_filter() {
            self.replace_filter(filter, listener.filled());
        }
        if filter.cutting.is_some() && listener.returned() >= filter.needed_before {
            self.cut(filter);
        }
        let most = reading.most.unwrap_or(u32::MAX);
        let last = listener.returned() + self.blocks;
        let (direction, snaplen) = (self.direction.load(Relaxed), self.snaplen);
        let nanoseconds = self.nanoseconds;
        let mut header = pcap_pkthdr::default();
        let (mut packets, mut end) = (0, Ok(()));
        // The program's function may ask for it. No other thread reads.
        let mut passed = self.passed.load(Relaxed);
        loop {
            let returned = listener.returned();
            let walked = listener.walk(|heard| {
                if begin.is_some_and(|(time, before)| returned < before && heard.time() < time) {
                    return ControlFlow::Continue(());
                }
                let is_outgoing = heard.is_outgoing();
                if direction != PCAP_D_INOUT && is_outgoing != (direction == PCAP_D_OUT) {
                    return ControlFlow::Continue(());
                }
                let wanted = match heard.tagged || returned < filter.needed_before {
                    true => filter.wanted(&heard),
                    false => u32::MAX,
                };
                if wanted != 0 {
                    header.len = heard.length;
                    header.caplen = heard.data.size().min(wanted).min(snaplen);
                    clock::put(&mut header, heard.time(), nanoseconds);
                    packets += 1;
                    passed += 1;
                    self.passed.store(passed, Relaxed);
                    sink(&header, heard.data, metadata(&heard, is_outgoing));
                }
                if reading.signals.any() {
                    // A packet that is kept is the program's: the break is for the next read.
                    let is_over = reading.keeps && packets >= most;
                    if !is_over && reading.signals.take_break() {
                        end = Err(End::Broken);
                        return ControlFlow::Break(());
                    }
                    if reading.signals.take_filter() {
                        self.replace_filter(filter, returned + self.blocks);
                    }
                }
                if packets < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            match walked {
                Some(ControlFlow::Continue(())) if returned < last => {}
                _ => break,
            }
        }
        if !reading.keeps {
            listener.give_back();
        }
        end.map(|()| packets)
    }

    /// Takes over a filter that was set meanwhile. The kernel has filled so many blocks at the most by the one before,
    /// fills another, and is about to put into the next what has passed that filter.
    #[cold]
    fn replace_filter(&self, filter: &mut TapFilter, filled: u64) {
        let next = self.next_filter.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Next { steps, asks_about_tags, is_in_kernel, cutting }) = next {
            let needed_before = if is_in_kernel { filled + 2 } else { ALWAYS };
            let cutting = is_in_kernel.then_some(cutting);
            *filter = TapFilter { steps: Some(steps), asks_about_tags, needed_before, cutting };
        }
    }

    /// Has the kernel cut packets, now that it alone runs the filter. If it refuses, longer packets
    /// take more room.
    #[cold]
    fn cut(&self, filter: &mut TapFilter) {
        let next = self.next_filter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut cutting) = filter.cutting.take()
            && next.is_none()
        {
            let _ = set_filter(self.socket.as_fd(), &mut cutting);
        }
    }

    /// Sleeps until there are packets, or while it rests.
    fn sleep(&self, signals: &Signals, left: Option<Duration>, rests: bool) -> Result<(), End> {
        let longest = self.link.longest_wait();
        let left = left.into_iter().chain(longest).chain(rests.then_some(REST)).min();
        let left = left.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        });
        let events = if rests { PollFlags::empty() } else { PollFlags::IN };
        let socket = [(self.socket.as_fd(), events)];
        let wake = signals.wake_fd().map(|fd| (fd, PollFlags::IN));
        let fds: Vec<_> = socket.into_iter().chain(wake).collect();
        match poll(&fds, left).inspect(|seen| signals.slept(seen)) {
            Ok(seen) if longest.is_some() || seen[0].contains(PollFlags::ERR) => self.explain(),
            // A signal's handler may have said that the read is to end.
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(End::Failed(format!("cannot wait for packets: {error}"))),
        }
    }

    /// Why the socket has an error. That its interface is down is none: it may come up again.
    #[cold]
    fn explain(&self) -> Result<(), End> {
        let error = self.link.take_error(self.socket.as_fd());
        if has_lost_interface(self.socket.as_fd()) {
            return Err(End::Failed(format!("{}: the interface has gone", self.interface)));
        }
        error.map_err(|error| End::Failed(format!("{}: {error}", self.interface)))
    }
}

/// The filter for the kernel, which lets pass what it would see without its tag.
fn for_kernel(insns: &[Insn]) -> Vec<libc::sock_filter> {
    let is_tagged = (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT) as u32;
    let mut program = vec![
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, is_tagged),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        // As at the beginning.
        step(libc::BPF_LD | libc::BPF_IMM, 0, 0, 0),
    ];
    let same = |insn: &Insn| step(insn.code.into(), insn.jt, insn.jf, insn.k);
    program.extend(insns.iter().map(same));
    program
}

/// The same, which leaves whole what it lets pass.
fn without_cuts(program: &[libc::sock_filter]) -> Vec<libc::sock_filter> {
    let constant = libc::BPF_RET | libc::BPF_K;
    let whole = |insn: &libc::sock_filter| match u32::from(insn.code) == constant && insn.k != 0 {
        true => libc::sock_filter { k: u32::MAX, ..*insn },
        false => *insn,
    };
    program.iter().map(whole).collect()
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// The metadata of a frame of the kernel's ring.
#[inline]
fn metadata(heard: &Heard<'_>, is_outgoing: bool) -> Metadata {
    let checksum = match (heard.is_without_checksum(), heard.has_good_checksum()) {
        (true, _) => Checksum::NotComputed,
        (_, true) => Checksum::Verified,
        _ => Checksum::Unknown,
    };
    Metadata { tag_was_stripped: heard.tagged, checksum, ..Metadata::of(is_outgoing) }
}
