//! How the loop and the program wake each other: the options of NETMAP_REQ_SYNC_KLOOP_START
//! (S-KLOOP-3, S-KLOOP-4, S-KLOOP-5).

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    time::Duration,
};

use ringway::Binding;
use ringway_abi::*;
use ringway_interpose::out_of_the_way;
use ringway_kring::Doorbell;
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    io::Errno,
};

use crate::{request::Options, sys};

const DIRECT_TX: u32 = 1;
const DIRECT_RX: u32 = 2;

/// The longest sleep between two events.
const LONGEST_WAIT: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// What the options ask for.
pub struct Kicks {
    pub pace: Pace,
    /// For each ring, what tells the program of news.
    pub program: Vec<Option<Eventfd>>,
}

/// What the loop waits for between rounds without work.
pub enum Pace {
    /// For time to pass.
    Timed(Duration),
    Events(Events),
}

impl Kicks {
    /// Reads the options of a loop over the rings of `binding`.
    pub fn new(options: &mut Options, binding: &Binding, pause: Duration) -> Result<Kicks, i32> {
        let rings = binding.all_rings().count();
        // S-KLOOP-5.
        let direct = match options.get::<nmreq_opt_sync_kloop_mode>() {
            None => false,
            Some(option) => {
                let known = option.mode & !(DIRECT_TX | DIRECT_RX) == 0;
                let mode = if known { Ok(option.mode) } else { Err(libc::EINVAL) };
                options.settle(NETMAP_REQ_OPT_SYNC_KLOOP_MODE, mode)? != 0
            }
        };
        let Some((size, bytes)) = options.raw(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS) else {
            let mode = if direct { Err(libc::EINVAL) } else { Ok(()) };
            options.settle(NETMAP_REQ_OPT_SYNC_KLOOP_MODE, mode)?;
            return Ok(Kicks { pace: Pace::Timed(pause), program: none(rings) });
        };
        let kicks = Kicks::read(size, &bytes, binding, direct, pause);
        options.settle(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, kicks)
    }

    fn read(
        size: u64,
        bytes: &[u8],
        binding: &Binding,
        direct: bool,
        pause: Duration,
    ) -> Result<Kicks, i32> {
        let rings = binding.all_rings().count();
        if size != (size_of::<nmreq_option>() + 8 * rings) as u64 {
            return Err(libc::EINVAL);
        }
        let (numbers, _) = bytes.as_chunks::<4>();
        let number = |i: usize| numbers.get(i).map_or(-1, |n| i32::from_ne_bytes(*n));
        let numbers: Vec<_> = (0..rings).map(|i| (number(2 * i), number(2 * i + 1))).collect();
        let all = numbers.iter().all(|(io, _)| *io >= 0);
        if direct && !all {
            return Err(libc::EINVAL);
        }
        let io = numbers.iter().map(|(io, _)| Eventfd::of(*io)).collect::<Result<Vec<_>, _>>()?;
        let program = numbers.iter().map(|(_, irq)| Eventfd::of(*irq)).collect::<Result<_, _>>()?;
        let pace = match all {
            true => Pace::Events(Events::new(binding, io.into_iter().flatten())?),
            false => Pace::Timed(pause),
        };
        Ok(Kicks { pace, program })
    }
}

fn none(rings: usize) -> Vec<Option<Eventfd>> {
    (0..rings).map(|_| None).collect()
}

/// A copy of an eventfd of the program's: it may close its own.
pub struct Eventfd(OwnedFd);

impl Eventfd {
    /// `None` for negative numbers; EBADF and EINVAL for what is not open, or no eventfd.
    fn of(number: RawFd) -> Result<Option<Eventfd>, i32> {
        if number < 0 {
            return Ok(None);
        }
        // What is asked is the copy: another thread of the program may have given the number to something
        // else by then.
        let copy = sys::copy_of(number).map_err(|_| libc::EBADF)?;
        let kind = std::fs::read_link(format!("/proc/self/fd/{}", copy.as_raw_fd()));
        match kind.is_ok_and(|kind| kind.as_os_str() == "anon_inode:[eventfd]") {
            true => Ok(Some(Eventfd(out_of_the_way(copy)))),
            false => Err(libc::EINVAL),
        }
    }

    /// Wakes its waiter.
    pub fn signal(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

/// Everything that may have news for the loop.
pub struct Events {
    epoll: OwnedFd,
    /// Registered with it: it forgets a descriptor that is closed.
    _io: Vec<Eventfd>,
}

impl Events {
    fn new(binding: &Binding, io: impl Iterator<Item = Eventfd>) -> Result<Events, i32> {
        let errno = |e: Errno| e.raw_os_error();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(errno)?;
        let epoll = out_of_the_way(epoll);
        let io: Vec<_> = io.collect();
        let data = epoll::EventData::new_u64(0);
        for eventfd in &io {
            // By the edge: every write wakes us, and the count, which nobody reads, may stand.
            let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, &eventfd.0, data, edge).map_err(errno)?;
        }
        for ring in binding.all_rings() {
            let doorbell = (ring.doorbell().as_fd(), PollFlags::IN);
            for (source, events) in ring.wait_sources().chain([doorbell]) {
                let events = epoll::EventFlags::from_bits_truncate(events.bits().into());
                match epoll::add(&epoll, source, data, events) {
                    // Most rings sleep on their doorbell anyway.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(e) => return Err(errno(e)),
                }
            }
        }
        Ok(Events { epoll, _io: io })
    }

    /// Sleeps until there may be news. A signal is as good as any.
    pub fn wait(&self) {
        let nothing =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let _ = epoll::wait(&self.epoll, &mut [nothing; 16], Some(&LONGEST_WAIT));
    }
}

/// Lets time pass, unless `doorbell` is rung.
pub fn pause(doorbell: &Doorbell, time: Duration) {
    if time.is_zero() {
        std::thread::yield_now();
        return;
    }
    let Ok(time) = Timespec::try_from(time) else { return };
    if poll(&mut [PollFd::new(doorbell, PollFlags::IN)], Some(&time)).is_ok_and(|rung| rung > 0) {
        doorbell.drain();
    }
}
