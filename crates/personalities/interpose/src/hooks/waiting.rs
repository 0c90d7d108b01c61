//! `poll`, `select` and their relatives.

use std::{
    ffi::{c_int, c_ulong},
    time::Duration,
};

use libc::{
    POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDBAND, POLLRDNORM, POLLWRBAND,
    POLLWRNORM, c_short, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval,
};
use rustix::fs::{Mode, OFlags};

use crate::{
    real_libc::{fail, keep_errno, real},
    uaccess,
    wait::{Deadline, Entries, Entry, wait},
};

/// The list of a `poll` that is ours to answer, because descriptors of ours are in it. The
/// kernel is left to refuse what is no list, or too long.
///
/// It stays in the program's memory, where other threads of the program may change it during the call, as
/// they may while the kernel waits: an entry is copied before it is used, and only its `revents` is written.
struct List {
    fds: *mut pollfd,
    count: usize,
}

impl List {
    /// # Safety
    /// What `fds` points to, if anything, is the program's to be read and written by the call.
    #[inline(never)]
    unsafe fn ours(fds: *mut pollfd, count: nfds_t) -> Option<List> {
        let bytes = usize::try_from(count).ok()?.checked_mul(size_of::<pollfd>())?;
        if bytes == 0 || !fds.is_aligned() || too_many(count) || !uaccess::writable(fds, bytes) {
            return None;
        }
        let list = List { fds, count: count as usize };
        let ours = list.asked().any(|asked| Entry::is_ours(asked.fd));
        ours.then_some(list)
    }

    /// What the program asks for, as it is now.
    fn asked(&self) -> impl Iterator<Item = pollfd> {
        // SAFETY: not null, aligned, and `count` of them can be read and written; a thread of the program
        // that unmaps them meanwhile ends the program.
        (0..self.count).map(|at| unsafe { self.fds.add(at).read_volatile() })
    }

    #[inline(never)]
    fn wait(self, deadline: Deadline, mask: Option<*const sigset_t>) -> c_int {
        // They have room for many: they are made here, and stay.
        let mut entries = Entries::new();
        entries.extend(self.asked().map(|asked| Entry::new(asked.fd, asked.events)));
        match keep_errno(|| wait(&mut entries, deadline, mask)) {
            Ok(ready) => {
                for (at, entry) in entries.iter().enumerate() {
                    // SAFETY: as in `asked`, and there are as many.
                    unsafe { (&raw mut (*self.fds.add(at)).revents).write_volatile(entry.revents) };
                }
                ready as c_int
            }
            Err(errno) => fail(errno),
        }
    }
}

/// More than the process may have open.
fn too_many(count: nfds_t) -> bool {
    const USUAL: nfds_t = 1024;
    let limit = || rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    count > USUAL && limit().is_some_and(|limit| count > limit)
}

/// When a wait with this timeout ends.
pub fn deadline(timeout: *const timespec) -> Result<Deadline, c_int> {
    if timeout.is_null() {
        return Ok(Deadline::never());
    }
    if !uaccess::readable(timeout, size_of::<timespec>()) {
        return Err(libc::EFAULT);
    }
    // SAFETY: it can be read.
    let t = unsafe { timeout.read_unaligned() };
    if t.tv_sec < 0 || !(0..1_000_000_000).contains(&t.tv_nsec) {
        return Err(libc::EINVAL);
    }
    Ok(Deadline::after(Duration::new(t.tv_sec as u64, t.tv_nsec as u32)))
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    if let Some(list) = unsafe { List::ours(fds, count) } {
        return list.wait(Deadline::after_millis(timeout), None);
    }
    real!(unwinding poll: fn(fds => *mut pollfd, count => nfds_t, timeout => c_int) -> c_int)
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn __poll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    _size: usize,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { poll(fds, count, timeout) }
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's own arguments.
    if let Some(list) = unsafe { List::ours(fds, count) } {
        return match deadline(timeout) {
            Ok(deadline) => list.wait(deadline, Some(mask)),
            Err(errno) => fail(errno),
        };
    }
    real!(
        unwinding ppoll: fn(
            fds => *mut pollfd,
            count => nfds_t,
            timeout => *const timespec,
            mask => *const sigset_t,
        ) -> c_int
    )
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    _size: usize,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { ppoll(fds, count, timeout, mask) }
}

const READ: c_short = POLLIN | POLLRDNORM;
const WRITE: c_short = POLLOUT | POLLWRNORM;
/// What makes a descriptor of each set ready, by the kernel's rules.
const READABLE: c_short = READ | POLLRDBAND | POLLHUP | POLLERR;
const WRITABLE: c_short = WRITE | POLLWRBAND | POLLERR;

/// What each of the three sets asks for, and what answers it.
const ASKED: [c_short; 3] = [READ, WRITE, POLLPRI];
const ANSWERED: [c_short; 3] = [READABLE, WRITABLE, POLLPRI];

const WORD_BITS: usize = c_ulong::BITS as usize;

/// The three sets of a `select`: bits in words, for as many descriptors as the program says.
struct Sets {
    words: [*mut c_ulong; 3],
    count: usize,
}

impl Sets {
    /// `None`: the kernel is to refuse them.
    fn new(count: c_int, sets: [*mut fd_set; 3]) -> Option<Sets> {
        let count = usize::try_from(count).ok()?;
        let count = if count > libc::FD_SETSIZE { count.min(table_size()) } else { count };
        let bytes = count.div_ceil(WORD_BITS) * size_of::<c_ulong>();
        let there = |set: &*mut fd_set| {
            set.is_null() || bytes == 0 || (set.is_aligned() && uaccess::writable(*set, bytes))
        };
        sets.iter().all(there).then(|| Sets { words: sets.map(|set| set.cast()), count })
    }

    fn word(&self, set: usize, index: usize) -> c_ulong {
        let words = self.words[set];
        if words.is_null() {
            return 0;
        }
        // SAFETY: `new` found all words of `count` bits to be there.
        unsafe { words.add(index).read() }
    }

    fn clear(&mut self, set: usize, fd: usize) {
        let bit = 1 << (fd % WORD_BITS);
        let word = self.word(set, fd / WORD_BITS);
        // SAFETY: as above; the set is not null, since `fd` was in it.
        unsafe { self.words[set].add(fd / WORD_BITS).write(word & !bit) };
    }

    /// Descriptors that are in any of the sets, with the events that this asks for.
    fn asked(&self) -> impl Iterator<Item = (c_int, c_short)> {
        (0..self.count).step_by(WORD_BITS).flat_map(move |start| {
            let words = [0, 1, 2].map(|set| self.word(set, start / WORD_BITS));
            let bits = (0..WORD_BITS.min(self.count - start))
                .filter(move |bit| (words[0] | words[1] | words[2]) >> bit & 1 != 0);
            bits.map(move |bit| {
                let events = words.iter().zip(ASKED).filter(|(word, _)| *word >> bit & 1 != 0);
                ((start + bit) as c_int, events.fold(0, |all, (_, events)| all | events))
            })
        })
    }

    /// Writes the result; returns how many bits are set.
    fn store<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>) -> c_int {
        let mut bits = 0;
        for entry in entries {
            for (set, (asked, answer)) in ASKED.into_iter().zip(ANSWERED).enumerate() {
                if entry.events & asked == 0 {
                    continue;
                }
                match entry.revents & answer {
                    0 => self.clear(set, entry.fd as usize),
                    _ => bits += 1,
                }
            }
        }
        bits
    }
}

/// Whether a set that the descriptor is in reports what there is. `ppoll` tells of more: of the other end
/// that has hung up, and of errors, where neither is asked for.
fn is_answer(entry: &Entry) -> bool {
    let answers = ASKED.into_iter().zip(ANSWERED).filter(|(asked, _)| entry.events & asked != 0);
    entry.revents & answers.fold(0, |all, (_, answer)| all | answer) != 0
}

/// So long the wait goes on without descriptors that have nothing but what no set reports. That may
/// end, as when another program opens the other end.
const ASIDE: Duration = Duration::from_millis(100);

/// Waits until a set has something to report, or for what [`wait`] ends with. Descriptors may be put
/// `aside` meanwhile.
fn wait_for_answer(
    entries: &mut Entries,
    aside: &mut Entries,
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> Result<(), c_int> {
    loop {
        let until = if aside.is_empty() { deadline } else { deadline.within(ASIDE) };
        let ready = wait(entries, until, mask)?;
        if entries.iter().any(|e| e.revents & POLLNVAL != 0) {
            return Err(libc::EBADF);
        }
        if entries.iter().any(is_answer) || deadline.is_over() {
            return Ok(());
        }
        if ready == 0 {
            entries.extend(aside.drain(..).map(|e| Entry { revents: 0, ..e }));
        } else {
            let all = std::mem::take(entries).into_iter();
            let (ready, others): (Entries, Entries) = all.partition(|e| e.revents != 0);
            *entries = others;
            aside.extend(ready);
        }
    }
}

/// Descriptors that the kernel has room for at the moment: it takes no more of the sets.
/// Programs give more than their sets hold, and count on that.
#[cold]
fn table_size() -> usize {
    const STATUS: &str = "/proc/self/status";
    let size = || {
        let file =
            rustix::fs::open(STATUS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        // The line is among the first.
        let mut status = [0; 1024];
        let len = rustix::io::read(file, &mut status).ok()?;
        let mut lines = status[..len].split(|byte| *byte == b'\n');
        let size = lines.find_map(|line| line.strip_prefix(b"FDSize:"))?;
        str::from_utf8(size).ok()?.trim().parse().ok()
    };
    size().unwrap_or(libc::FD_SETSIZE)
}

/// `None`: nothing in the sets is ours, or they are not sets.
fn select_with(
    count: c_int,
    sets: [*mut fd_set; 3],
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> Option<c_int> {
    let mut sets = Sets::new(count, sets)?;
    sets.asked().find(|(fd, _)| Entry::is_ours(*fd))?;
    let mut entries: Entries = sets.asked().map(|(fd, events)| Entry::new(fd, events)).collect();
    let mut aside = Entries::new();
    let waited = keep_errno(|| wait_for_answer(&mut entries, &mut aside, deadline, mask));
    Some(match waited {
        Ok(()) => sets.store(entries.iter().chain(&aside)),
        Err(errno) => fail(errno),
    })
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let mut until = Deadline::never();
    if !timeout.is_null() {
        if !uaccess::writable(timeout, size_of::<timeval>()) {
            return fail(libc::EFAULT);
        }
        // SAFETY: it can be read.
        let t = unsafe { timeout.read_unaligned() };
        if t.tv_sec < 0 || t.tv_usec < 0 {
            return fail(libc::EINVAL);
        }
        let seconds = Duration::from_secs(t.tv_sec as u64);
        until = Deadline::after(seconds.saturating_add(Duration::from_micros(t.tv_usec as u64)));
    }
    let ours = select_with(count, [read, write, except], until, None);
    let Some(done) = ours else {
        return real!(
            unwinding select: fn(
                count => c_int,
                read => *mut fd_set,
                write => *mut fd_set,
                except => *mut fd_set,
                timeout => *mut timeval,
            ) -> c_int
        );
    };
    if let Some(left) = until.left().filter(|_| !timeout.is_null()) {
        let left = timeval { tv_sec: left.as_secs() as i64, tv_usec: left.subsec_micros().into() };
        // SAFETY: it can be written. Linux leaves the time that is left there.
        unsafe { timeout.write_unaligned(left) };
    }
    done
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let ours = match deadline(timeout) {
        Ok(until) => select_with(count, [read, write, except], until, Some(mask)),
        Err(errno) => return fail(errno),
    };
    match ours {
        Some(done) => done,
        None => real!(
            unwinding pselect: fn(
                count => c_int,
                read => *mut fd_set,
                write => *mut fd_set,
                except => *mut fd_set,
                timeout => *const timespec,
                mask => *const sigset_t,
            ) -> c_int
        ),
    }
}
