//! Answers that clients have not read yet.
//!
//! Descriptors in an answer are in flight until the client takes them. The kernel counts those of all that this
//! process's user sends, and refuses more than the process may have open (`unix(7)`, ETOOMANYREFS): then no client
//! could be granted anything. The memory of an answer that is not read is this process's, too. So an account may have
//! so much unread and no more: its clients are not listened to until some of it was read. Requests that have begun by
//! then are answered; where those are many, with errors.
//!
//! No event tells that a client has read. So the sockets of such answers stay open here, and are looked at: when the
//! account is to have more, and from time to time.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use ringway_ipc::{MAX_FDS, MAX_MESSAGE, unread_bytes};
use rustix::fd::{AsFd, OwnedFd};

/// Descriptors that an account may leave unread. With more than about two thousand of a user's in flight the kernel
/// has its calls wait for a look at all sockets that are in flight, for which other users can make work.
const MOST: usize = 1000;
/// Bytes of answers that an account may leave unread.
const MOST_BYTES: usize = 64 * MAX_MESSAGE;
/// How many times as much requests may get that have begun before.
const BEGUN: usize = 4;
/// What is not larger is the client's affair: it costs not much more than the client's own end of the pair.
const SMALL: usize = 1024;
/// As many are looked at whenever the daemon has something to do.
const FEW: usize = 16;
/// Between two looks: a client that waits for its answer reads it at once.
const FIRST: Duration = Duration::from_millis(5);
const LATER: Duration = Duration::from_millis(100);

struct Answer {
    socket: OwnedFd,
    /// With the socket's own.
    descriptors: usize,
    bytes: usize,
}

/// See above.
pub struct Unread {
    by_account: HashMap<u32, Vec<Answer>>,
    most_descriptors: usize,
    /// Sockets of answers that were read, to be closed.
    read: Vec<(u32, OwnedFd)>,
    pause: Duration,
    due: Option<Instant>,
}

impl Unread {
    /// `descriptors_per_user`: as many as a user may have of this process.
    pub fn new(descriptors_per_user: usize) -> Unread {
        Unread {
            by_account: HashMap::new(),
            // Two full messages are no harm.
            most_descriptors: (descriptors_per_user / 4).clamp(2 * MAX_FDS, MOST),
            read: Vec::new(),
            pause: FIRST,
            due: None,
        }
    }

    /// An answer was sent. What is returned is to be closed: it is none that counts.
    pub fn add(
        &mut self,
        account: u32,
        socket: OwnedFd,
        descriptors: usize,
        bytes: usize,
        now: Instant,
    ) -> Option<OwnedFd> {
        if descriptors == 0 && bytes <= SMALL || is_read(&socket) {
            return Some(socket);
        }
        let answer = Answer { socket, descriptors: descriptors + 1, bytes };
        self.by_account.entry(account).or_default().push(answer);
        (self.pause, self.due) = (FIRST, Some(now + FIRST));
        None
    }

    /// Whether an account has so much unread that its clients are not to be listened to. There will be
    /// [sockets of answers that were read](Self::read) when they are.
    pub fn is_behind(&mut self, account: u32) -> bool {
        self.exceeds(account, 1)
    }

    /// Whether it has so much unread that it is to have no more.
    pub fn is_full(&mut self, account: u32) -> bool {
        self.exceeds(account, BEGUN)
    }

    fn exceeds(&mut self, account: u32, times: usize) -> bool {
        let most = (times * self.most_descriptors, times * MOST_BYTES);
        let Some(answers) = self.by_account.get_mut(&account).filter(|it| exceed(it, most)) else {
            return false;
        };
        let read = answers.extract_if(.., |it| is_read(&it.socket));
        self.read.extend(read.map(|it| (account, it.socket)));
        exceed(answers, most)
    }

    /// Looks at all of them if it is time, or if they are few. Returns when to look again, if there are any.
    pub fn look(&mut self, now: Instant) -> Option<Duration> {
        let due = self.due?;
        let are_few = || self.by_account.values().map(Vec::len).sum::<usize>() <= FEW;
        if now < due && !are_few() {
            return Some(due - now);
        }
        let before = self.read.len();
        self.by_account.retain(|account, answers| {
            let read = answers.extract_if(.., |it| is_read(&it.socket));
            self.read.extend(read.map(|it| (*account, it.socket)));
            !answers.is_empty()
        });
        if self.by_account.is_empty() {
            self.due = None;
            return None;
        }
        if self.read.len() > before {
            (self.pause, self.due) = (FIRST, Some(now + FIRST));
        } else if now >= due {
            self.pause = LATER.min(2 * self.pause);
            self.due = Some(now + self.pause);
        }
        self.due.map(|due| due - now)
    }

    /// Sockets to be closed, each with the account whose client has sent it.
    pub fn read(&mut self) -> Vec<(u32, OwnedFd)> {
        std::mem::take(&mut self.read)
    }
}

fn exceed(answers: &[Answer], (descriptors, bytes): (usize, usize)) -> bool {
    answers.iter().map(|answer| answer.descriptors).sum::<usize>() > descriptors
        || answers.iter().map(|answer| answer.bytes).sum::<usize>() > bytes
}

/// Whether all that was sent into a socket was read, or is gone with its other end.
fn is_read(socket: &OwnedFd) -> bool {
    unread_bytes(socket.as_fd()).is_ok_and(|bytes| bytes == 0)
}

#[cfg(test)]
mod tests {
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
    };

    use super::*;

    const ACCOUNT: u32 = 7;

    /// The client's end and the daemon's, in which there is an answer.
    fn answered() -> (OwnedFd, OwnedFd) {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (mine, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        send(&theirs, b"answer", SendFlags::empty()).unwrap();
        (mine, theirs)
    }

    #[test]
    fn what_is_not_read_counts() {
        let (mut unread, now) = (Unread::new(4 * 2 * MAX_FDS), Instant::now());
        let mut ends = Vec::new();
        while !unread.is_behind(ACCOUNT) {
            let (mine, theirs) = answered();
            assert!(unread.add(ACCOUNT, theirs, MAX_FDS - 1, 100, now).is_none());
            ends.push(mine);
        }
        assert_eq!(ends.len(), 3, "more than two full messages");
        assert!(!unread.is_full(ACCOUNT), "what has begun is answered");
        assert!(!unread.is_behind(ACCOUNT + 1), "it is no matter of others");
        // One is read, another client has gone.
        recv(&ends[0], &mut [0u8; 10], RecvFlags::empty()).unwrap();
        assert!(!unread.is_behind(ACCOUNT) && unread.read().len() == 1);
        ends.remove(1);
        assert_eq!(unread.look(now), Some(FIRST), "few are looked at always");
        assert_eq!(unread.read().len(), 1);
        assert_eq!(unread.look(now + FIRST), Some(2 * FIRST), "there is no progress");
        assert_eq!(unread.look(now + 2 * FIRST), Some(FIRST), "it is not time yet");
        ends.clear();
        assert_eq!(unread.look(now + 10 * FIRST), None);
        assert_eq!((unread.read().len(), unread.look(now + 20 * FIRST)), (1, None));
    }

    #[test]
    fn long_answers_count_without_descriptors() {
        let (mut unread, now) = (Unread::new(usize::MAX), Instant::now());
        let mut ends = Vec::new();
        while !unread.is_behind(ACCOUNT) {
            let (mine, theirs) = answered();
            assert!(unread.add(ACCOUNT, theirs, 0, MAX_MESSAGE, now).is_none());
            ends.push(mine);
        }
        assert_eq!(ends.len(), 65);
        let (_mine, theirs) = answered();
        assert!(unread.add(ACCOUNT, theirs, 0, SMALL, now).is_some());
        while !unread.is_full(ACCOUNT) {
            let (mine, theirs) = answered();
            assert!(unread.add(ACCOUNT, theirs, 0, MAX_MESSAGE, now).is_none());
            ends.push(mine);
        }
        assert_eq!(ends.len(), 4 * 64 + 1);
    }
}
