//! `poll`, `select` and their relatives.

use std::{ffi::c_int, time::Duration};

use libc::{
    POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDBAND, POLLRDNORM, POLLWRBAND,
    POLLWRNORM, c_short, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval,
};

use crate::{
    next::{fail, next},
    table,
    wait::{Deadline, Entry, wait},
};

/// Whether any of the descriptors is netmap's.
///
/// # Safety
/// `fds` points to `count` entries, as `poll` requires.
unsafe fn any_netmap(fds: *const pollfd, count: nfds_t) -> bool {
    if fds.is_null() {
        return false;
    }
    // SAFETY: by the caller's contract.
    (0..count as usize).any(|i| unsafe { table::netmap((*fds.add(i)).fd).is_some() })
}

/// # Safety
/// `fds` points to `count` entries, as `poll` requires.
unsafe fn poll_with(
    fds: *mut pollfd,
    count: nfds_t,
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> c_int {
    // SAFETY: by the caller's contract; the list is the program's own during the call.
    let fds = unsafe { std::slice::from_raw_parts_mut(fds, count as usize) };
    let entry = |fd: &pollfd| Entry {
        fd: fd.fd,
        events: fd.events,
        revents: 0,
        netmap: table::netmap(fd.fd),
    };
    let mut entries: Vec<Entry> = fds.iter().map(entry).collect();
    match wait(&mut entries, deadline, mask) {
        Ok(ready) => {
            for (fd, entry) in fds.iter_mut().zip(&entries) {
                fd.revents = entry.revents;
            }
            ready as c_int
        }
        Err(errno) => fail(errno),
    }
}

/// # Safety
/// `timeout` is null or a timespec.
unsafe fn deadline(timeout: *const timespec) -> Result<Deadline, c_int> {
    if timeout.is_null() {
        return Ok(Deadline::never());
    }
    // SAFETY: by the caller's contract.
    let t = unsafe { *timeout };
    if t.tv_sec < 0 || !(0..1_000_000_000).contains(&t.tv_nsec) {
        return Err(libc::EINVAL);
    }
    Ok(Deadline::after(Duration::new(t.tv_sec as u64, t.tv_nsec as u32)))
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        if any_netmap(fds, count) {
            return poll_with(fds, count, Deadline::after_millis(timeout), None);
        }
    }
    next!(poll: fn(fds => *mut pollfd, count => nfds_t, timeout => c_int) -> c_int)
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        if any_netmap(fds, count) {
            return match deadline(timeout) {
                Ok(deadline) => poll_with(fds, count, deadline, Some(mask)),
                Err(errno) => fail(errno),
            };
        }
    }
    next!(
        ppoll: fn(
            fds => *mut pollfd,
            count => nfds_t,
            timeout => *const timespec,
            mask => *const sigset_t,
        ) -> c_int
    )
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
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

/// The three sets of a `select`.
struct Sets([*mut fd_set; 3]);

impl Sets {
    /// # Safety
    /// The sets are null or hold `fd`.
    unsafe fn events(&self, fd: c_int) -> c_short {
        let mut events = 0;
        for (set, flag) in self.0.iter().zip([READ, WRITE, POLLPRI]) {
            // SAFETY: by the caller's contract.
            if !set.is_null() && unsafe { libc::FD_ISSET(fd, *set) } {
                events |= flag;
            }
        }
        events
    }

    /// # Safety
    /// The sets are null or hold `count` descriptors.
    unsafe fn entries(&self, count: c_int) -> Vec<Entry> {
        let entry = |fd| {
            // SAFETY: by the caller's contract.
            let events = unsafe { self.events(fd) };
            (events != 0).then(|| Entry { fd, events, revents: 0, netmap: table::netmap(fd) })
        };
        (0..count).filter_map(entry).collect()
    }

    /// Writes the result; returns how many bits are set.
    ///
    /// # Safety
    /// As for `entries`.
    unsafe fn store(&self, entries: &[Entry]) -> c_int {
        let mut bits = 0;
        for entry in entries {
            let ready = [READABLE, WRITABLE, POLLPRI];
            for ((set, ready), asked) in self.0.iter().zip(ready).zip([READ, WRITE, POLLPRI]) {
                if entry.events & asked == 0 {
                    continue;
                }
                // SAFETY: the descriptor was in this set.
                unsafe {
                    if entry.revents & ready != 0 {
                        bits += 1;
                    } else {
                        libc::FD_CLR(entry.fd, *set);
                    }
                }
            }
        }
        bits
    }
}

/// `None`: nothing in the sets is netmap's.
///
/// # Safety
/// As `select`.
unsafe fn select_with(
    count: c_int,
    sets: &Sets,
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> Option<c_int> {
    // Programs give more than their sets hold, and count on the kernel to know better.
    let count = count.min(libc::FD_SETSIZE as c_int);
    // SAFETY: the program's own arguments.
    let asked = |fd: &c_int| unsafe { sets.events(*fd) } != 0;
    (0..count).filter(asked).find(|fd| table::netmap(*fd).is_some())?;
    // SAFETY: the program's own arguments.
    let mut entries = unsafe { sets.entries(count) };
    Some(match wait(&mut entries, deadline, mask) {
        Ok(_) if entries.iter().any(|e| e.revents & POLLNVAL != 0) => fail(libc::EBADF),
        // SAFETY: the program's own arguments.
        Ok(_) => unsafe { sets.store(&entries) },
        Err(errno) => fail(errno),
    })
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let mut until = Deadline::never();
    if !timeout.is_null() {
        // SAFETY: the program's own argument.
        let t = unsafe { *timeout };
        if t.tv_sec < 0 || t.tv_usec < 0 {
            return fail(libc::EINVAL);
        }
        let seconds = Duration::from_secs(t.tv_sec as u64);
        until = Deadline::after(seconds + Duration::from_micros(t.tv_usec as u64));
    }
    // SAFETY: the program's own arguments.
    let ours = unsafe { select_with(count, &Sets([read, write, except]), until, None) };
    let Some(done) = ours else {
        return next!(
            select: fn(
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
        // SAFETY: not null, and the program's own: Linux leaves the time that is left there.
        unsafe { *timeout = left };
    }
    done
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's own arguments.
    let ours = unsafe {
        match deadline(timeout) {
            Ok(until) => select_with(count, &Sets([read, write, except]), until, Some(mask)),
            Err(errno) => return fail(errno),
        }
    };
    match ours {
        Some(done) => done,
        None => next!(
            pselect: fn(
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
