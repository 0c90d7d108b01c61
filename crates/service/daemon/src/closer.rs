//! Closing what clients have sent, where nobody waits for it.
//!
//! The maker of a descriptor determines how long closing takes: a TCP socket lingers, a file
//! system in user space answers when it likes, and all that is queued in a socket is closed with it.
//! So the daemon's loop closes nothing of the kind. Each user has threads of his own for it, which
//! come when there is something to close and go when there is no more: what one user has made is not
//! in the way of what others have.
//!
//! What piles up behind such a thread costs the daemon descriptors, so there is an end to it:
//! - The daemon reads no requests of an account that is [behind](Closer::is_behind) until the account's
//!   threads have caught up.
//! - A connection is closed by the loop itself unless descriptors are queued in it
//!   ([`hang_up`](crate::hang_up)). What a client sends into a refused connection counts for the client's user,
//!   by the kernel's limit of descriptors in flight.
//! - The daemon accepts no connections while half of the descriptors that it may have wait to be closed
//!   ([`fullest`](Closer::fullest)): the last resort, which holds up all users.
//!
//! A thread can be held up for ever. The kernel lingers until a signal comes, and each thread gets one every few
//! milliseconds, which counts for all that is closed with one call. But no signal ends the wait for a file system in
//! user space (FUSE) that does not answer: when a descriptor of its files is closed, and, if it caches writes, when the
//! last one goes with a socket's queue. Only the end of the file system does: when root aborts its connection
//! (`/sys/fs/fuse/connections`), or its process ends, which needs that, too, if it has files of its own open.

use std::{
    collections::HashMap,
    io,
    mem::take,
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use ringway_ipc::{MAX_FDS, send};
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair},
    process::{Resource, getrlimit},
};

use crate::sys::Interrupts;

/// Descriptors of a user that may wait to be closed: what two messages hold.
const PER_USER: usize = 2 * MAX_FDS;
/// Descriptors that may wait, of all users: this many, or half of what the process may have open.
const IN_ALL: usize = 4 * PER_USER;

/// As long as a lingering socket may hold up others of its user.
const PATIENCE: Duration = Duration::from_millis(10);

/// What is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A Unix socket, a namespace or a memfd: what takes long is what may be queued in it.
    Known,
    /// Anything.
    Unknown,
}

/// Whose it is, and of what kind: one thread.
type Lane = (u32, Kind);

/// Descriptors on their way.
#[derive(Default)]
struct Pile {
    waiting: Vec<OwnedFd>,
    /// How many are being closed now.
    closing: usize,
    /// Whether there is a thread for it.
    served: bool,
}

impl Pile {
    /// How many descriptors are still open. A pile without a thread, because the system has none
    /// left, counts as empty: no client waits for it, and the next descriptor tries again.
    fn len(&self) -> usize {
        if self.served { self.waiting.len() + self.closing } else { 0 }
    }
}

#[derive(Default)]
struct Piles {
    by_lane: HashMap<Lane, Pile>,
    /// Whether the loop wants to know of progress.
    awaited: bool,
}

struct Shared {
    piles: Mutex<Piles>,
    progress: OwnedFd,
}

/// See above. Its [`AsFd`] is readable when there is progress that somebody waits for. Copies are the same closer.
#[derive(Clone)]
pub struct Closer {
    shared: Arc<Shared>,
    patience: Duration,
    /// Descriptors that may wait, of all users.
    most: usize,
}

impl Closer {
    pub fn new() -> io::Result<Closer> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let half = usize::try_from(limit / 2).unwrap_or(usize::MAX);
        Closer::with(PATIENCE, half.max(IN_ALL))
    }

    fn with(patience: Duration, most: usize) -> io::Result<Closer> {
        let progress = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { piles: Mutex::default(), progress });
        Ok(Closer { shared, patience, most })
    }

    /// Closes descriptors that user `uid` has sent. False: not before the next call, for there is no
    /// thread to be had.
    pub fn close(&self, uid: u32, kind: Kind, fds: impl IntoIterator<Item = OwnedFd>) -> bool {
        let mut fds = fds.into_iter().peekable();
        if fds.peek().is_none() {
            return true;
        }
        let (lane, mut piles) = ((uid, kind), self.shared.piles());
        let pile = piles.by_lane.entry(lane).or_default();
        pile.waiting.extend(fds);
        if !pile.served {
            let (shared, patience) = (self.shared.clone(), self.patience);
            let work = move || shared.work(lane, patience);
            pile.served = thread::Builder::new().name("closer".into()).spawn(work).is_ok();
        }
        pile.served
    }

    /// Whether so much of a user's waits to be closed that no more is to be taken from him. There will
    /// be word of progress then.
    pub fn is_behind(&self, uid: u32) -> bool {
        let mut piles = self.shared.piles();
        let lanes = [Kind::Known, Kind::Unknown].map(|kind| (uid, kind));
        let waiting = lanes.iter().filter_map(|lane| piles.by_lane.get(lane)).map(Pile::len);
        let behind = waiting.sum::<usize>() >= PER_USER;
        piles.awaited |= behind;
        behind
    }

    /// If so much waits to be closed that no client is to be let in: whose most of it is, and how many descriptors
    /// those are. There will be word of progress then.
    pub fn fullest(&self) -> Option<(u32, usize)> {
        let mut piles = self.shared.piles();
        if piles.by_lane.values().map(Pile::len).sum::<usize>() < self.most {
            return None;
        }
        piles.awaited = true;
        let mut by_user = HashMap::<u32, usize>::new();
        for ((uid, _), pile) in &piles.by_lane {
            *by_user.entry(*uid).or_default() += pile.len();
        }
        by_user.into_iter().max_by_key(|(_, count)| *count)
    }

    /// Asks for word of the end of whatever is closed next.
    pub fn await_progress(&self) {
        self.shared.piles().awaited = true;
    }

    /// The word was heard.
    pub fn drain(&self) {
        let _ = rustix::io::read(&self.shared.progress, &mut [0u8; 8]);
    }
}

impl AsFd for Closer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.progress.as_fd()
    }
}

impl Shared {
    fn piles(&self) -> MutexGuard<'_, Piles> {
        self.piles.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The life of a thread.
    fn work(&self, lane: Lane, patience: Duration) {
        // However it ends, the next descriptors of the lane have a thread of their own.
        let _end = End { shared: self, lane };
        let _interrupts = Interrupts::every(patience);
        while let Some(fds) = self.next(lane) {
            match lane.1 {
                Kind::Known => close_at_once(fds),
                Kind::Unknown => drop(fds),
            }
        }
    }

    fn tell_of_progress(&self, piles: &mut Piles) {
        if take(&mut piles.awaited) {
            // It fails where nobody has listened to as many words as a number has values.
            let _ = rustix::io::write(&self.progress, &1u64.to_ne_bytes());
        }
    }

    /// What to close now. `None`: nothing, and the lane has no thread from now on.
    fn next(&self, lane: Lane) -> Option<Vec<OwnedFd>> {
        let mut piles = self.piles();
        self.tell_of_progress(&mut piles);
        let pile = piles.by_lane.get_mut(&lane)?;
        let count = pile.waiting.len().min(MAX_FDS);
        pile.closing = count;
        if count == 0 {
            piles.by_lane.remove(&lane);
            return None;
        }
        Some(pile.waiting.drain(..count).collect())
    }
}

/// The end of a lane's thread. By a panic it comes when the lane still counts on it.
struct End<'s> {
    shared: &'s Shared,
    lane: Lane,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut piles = self.shared.piles();
            if let Some(pile) = piles.by_lane.get_mut(&self.lane) {
                (pile.served, pile.closing) = (false, 0);
            }
            self.shared.tell_of_progress(&mut piles);
        }
    }
}

/// Closes descriptors by one call, which a single signal carries through whatever lingers: they are
/// sent into a socket that is closed with them. At most as many as a message holds.
fn close_at_once(fds: Vec<OwnedFd>) {
    let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
    // Where there is no such socket, or it does not take them, they are closed one by one.
    let Ok((to, from)) = socketpair(AddressFamily::UNIX, kind, flags, None) else { return };
    let all: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let _ = send(to.as_fd(), &[], &all, SendFlags::DONTWAIT);
    drop(all);
    drop(fds);
    drop(from);
}

#[cfg(test)]
mod tests {
    use ringway_testkit::lingering;
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        process::{Rlimit, setrlimit},
    };

    use super::*;

    /// For ever, as far as a test goes.
    const HOUR: Duration = Duration::from_secs(3600);
    const LIMIT: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

    const HOSTILE: u32 = 1;
    const OTHER: u32 = 2;

    fn pair() -> (OwnedFd, OwnedFd) {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        socketpair(AddressFamily::UNIX, kind, flags, None).unwrap()
    }

    /// A socket with descriptors queued in it.
    fn holding(fds: Vec<OwnedFd>) -> OwnedFd {
        let (to, holder) = pair();
        let all: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        send(to.as_fd(), &[], &all, SendFlags::empty()).unwrap();
        holder
    }

    /// Waits until the other end is closed.
    fn assert_closed(end: &OwnedFd) {
        let heard = poll(&mut [PollFd::new(end, PollFlags::empty())], Some(&LIMIT));
        assert_eq!(heard, Ok(1), "it is not closed");
    }

    fn await_word(closer: &Closer) {
        let heard = poll(&mut [PollFd::new(closer, PollFlags::IN)], Some(&LIMIT));
        assert_eq!(heard, Ok(1), "there is no word of progress");
        closer.drain();
    }

    /// A thread that panics leaves the lane to another one, and its user is listened to again.
    #[test]
    fn a_panic_of_a_thread() {
        let closer = Closer::new().unwrap();
        let lane = (HOSTILE, Kind::Unknown);
        let (waiting, end) = pair();
        let (next, next_end) = pair();
        {
            let mut piles = closer.shared.piles();
            let pile = piles.by_lane.entry(lane).or_default();
            (pile.served, pile.closing) = (true, PER_USER);
            pile.waiting.push(waiting);
        }
        assert!(closer.is_behind(HOSTILE));
        let shared = closer.shared.clone();
        let panics = move || {
            let _end = End { shared: &shared, lane };
            panic!("as the test asks for");
        };
        assert!(thread::spawn(panics).join().is_err());
        await_word(&closer);
        assert!(!closer.is_behind(HOSTILE));
        closer.close(HOSTILE, Kind::Unknown, [next]);
        assert_closed(&end);
        assert_closed(&next_end);
    }

    /// Sockets that linger, one within the other, hold nobody up for long.
    #[test]
    fn what_lingers_is_interrupted() {
        let closer = Closer::new().unwrap();
        let (sockets, _peers): (Vec<_>, Vec<_>) = (0..20).map(|_| lingering()).unzip();
        let (another, _peer) = lingering();
        let nest = holding(vec![holding(sockets), another]);
        let (behind, end) = pair();
        closer.close(HOSTILE, Kind::Known, [nest]);
        closer.close(HOSTILE, Kind::Known, [behind]);
        assert_closed(&end);
    }

    /// While one user's thread is held up, others' go on; and there is an end to what he can pile up.
    #[test]
    fn who_is_held_up_holds_up_nobody_else() {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
        let closer = Closer::with(HOUR, IN_ALL).unwrap();
        let (slow, peer) = lingering();
        closer.close(HOSTILE, Kind::Unknown, [slow]);
        assert!(!closer.is_behind(HOSTILE));
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        closer.close(HOSTILE, Kind::Unknown, (0..PER_USER).map(|_| null()));
        assert!(closer.is_behind(HOSTILE) && !closer.is_behind(OTHER));
        assert_eq!(closer.fullest(), None);

        for kind in [Kind::Known, Kind::Unknown] {
            let (other, end) = pair();
            closer.close(OTHER, kind, [other]);
            assert_closed(&end);
        }
        let (known, end) = pair();
        closer.close(HOSTILE, Kind::Known, [known]);
        assert_closed(&end);

        closer.close(HOSTILE, Kind::Unknown, (PER_USER..IN_ALL).map(|_| null()));
        // The last thread may be about to say that it is done.
        assert!(matches!(closer.fullest(), Some((HOSTILE, count)) if count > IN_ALL));
        // What he has piled up is closed when he lets go.
        drop(peer);
        while closer.is_behind(HOSTILE) || closer.fullest().is_some() {
            await_word(&closer);
        }
    }
}
