//! `epoll`: netmap descriptors are kept beside the kernel's set, not in it.
//!
//! `epoll_wait` waits for the kernel's set as a whole, which is itself a descriptor that can
//! be polled, and for the rings. Netmap descriptors are level-triggered; `EPOLLONESHOT` is
//! honoured, `EPOLLET` is not told apart.

use std::{
    collections::HashMap,
    ffi::c_int,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use libc::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLONESHOT, POLLIN, c_short, epoll_event,
    sigset_t,
};

use crate::{
    next::{errno, fail, next},
    table,
    wait::{Deadline, Entry, wait},
};

/// A netmap descriptor in a set.
#[derive(Clone, Copy)]
struct Member {
    fd: c_int,
    events: u32,
    data: u64,
}

/// Netmap members by epoll descriptor.
static SETS: Mutex<Option<HashMap<c_int, Vec<Member>>>> = Mutex::new(None);
/// Members altogether: with none, there is nothing to look up.
static MEMBERS: AtomicUsize = AtomicUsize::new(0);

/// The sets, locked.
pub struct Sets(MutexGuard<'static, Option<HashMap<c_int, Vec<Member>>>>);

impl Sets {
    pub fn lock() -> Sets {
        Sets(SETS.lock().unwrap_or_else(|e| e.into_inner()))
    }

    fn get(&mut self) -> &mut HashMap<c_int, Vec<Member>> {
        self.0.get_or_insert_default()
    }
}

impl Drop for Sets {
    fn drop(&mut self) {
        let count = self.0.as_ref().map_or(0, |sets| sets.values().map(Vec::len).sum());
        MEMBERS.store(count, Relaxed);
    }
}

/// A descriptor is closed: it leaves all sets, and a set goes with its own.
pub fn closed(fd: c_int) {
    if MEMBERS.load(Relaxed) != 0 {
        let mut sets = Sets::lock();
        sets.get().remove(&fd);
        sets.get().values_mut().for_each(|members| members.retain(|m| m.fd != fd));
    }
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    epfd: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    if table::netmap(fd).is_none() {
        return next!(
            epoll_ctl: fn(
                epfd => c_int,
                operation => c_int,
                fd => c_int,
                event => *mut epoll_event,
            ) -> c_int
        );
    }
    if event.is_null() && operation != EPOLL_CTL_DEL {
        return fail(libc::EFAULT);
    }
    // SAFETY: checked above where it is used; the program's own argument.
    let member = || unsafe {
        let event = event.read_unaligned();
        Member { fd, events: event.events, data: event.u64 }
    };
    let mut sets = Sets::lock();
    let members = sets.get().entry(epfd).or_default();
    let known = members.iter().position(|m| m.fd == fd);
    match (operation, known) {
        (EPOLL_CTL_ADD, None) => members.push(member()),
        (EPOLL_CTL_ADD, Some(_)) => return fail(libc::EEXIST),
        (EPOLL_CTL_MOD, Some(at)) => members[at] = member(),
        (EPOLL_CTL_DEL, Some(at)) => {
            members.remove(at);
        }
        (EPOLL_CTL_MOD | EPOLL_CTL_DEL, None) => return fail(libc::ENOENT),
        _ => return fail(libc::EINVAL),
    }
    0
}

/// The netmap members of a set.
fn members(epfd: c_int) -> Vec<Member> {
    match MEMBERS.load(Relaxed) {
        0 => Vec::new(),
        _ => Sets::lock().get().get(&epfd).cloned().unwrap_or_default(),
    }
}

fn disarm(epfd: c_int, fd: c_int) {
    if let Some(members) = Sets::lock().get().get_mut(&epfd) {
        members.iter_mut().filter(|m| m.fd == fd).for_each(|m| m.events = 0);
    }
}

fn kernels(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int {
    next!(
        epoll_wait: fn(
            epfd => c_int,
            events => *mut epoll_event,
            max => c_int,
            timeout => c_int,
        ) -> c_int
    )
}

/// # Safety
/// `events` has room for `max` events.
unsafe fn wait_with(
    epfd: c_int,
    members: &[Member],
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: Option<*const sigset_t>,
) -> c_int {
    if max <= 0 {
        return fail(libc::EINVAL);
    }
    let set = Entry { fd: epfd, events: POLLIN, revents: 0, netmap: None };
    let netmaps = members.iter().filter(|m| m.events != 0);
    let mut entries: Vec<Entry> = netmaps
        .clone()
        .map(|m| Entry {
            fd: m.fd,
            // The bits of epoll and poll are the same for what netmap reports.
            events: m.events as c_short,
            revents: 0,
            netmap: table::netmap(m.fd),
        })
        .chain([set])
        .collect();
    if let Err(errno) = wait(&mut entries, Deadline::after_millis(timeout), mask) {
        return fail(errno);
    }
    let mut count = 0;
    for (entry, member) in entries.iter().zip(netmaps) {
        if entry.revents != 0 && count < max {
            let event = epoll_event { events: entry.revents as u32, u64: member.data };
            // SAFETY: `count < max`.
            unsafe { events.add(count as usize).write_unaligned(event) };
            count += 1;
            if member.events & EPOLLONESHOT as u32 != 0 {
                disarm(epfd, member.fd);
            }
        }
    }
    let others = entries.last().is_some_and(|set| set.revents != 0);
    if others && count < max {
        // SAFETY: the room behind those written.
        let got = kernels(epfd, unsafe { events.add(count as usize) }, max - count, 0);
        if got < 0 && count == 0 {
            return fail(errno());
        }
        count += got.max(0);
    }
    count
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    let netmaps = members(epfd);
    if netmaps.is_empty() {
        return kernels(epfd, events, max, timeout);
    }
    // SAFETY: the program's own arguments.
    unsafe { wait_with(epfd, &netmaps, events, max, timeout, None) }
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let netmaps = members(epfd);
    if netmaps.is_empty() {
        return next!(
            epoll_pwait: fn(
                epfd => c_int,
                events => *mut epoll_event,
                max => c_int,
                timeout => c_int,
                mask => *const sigset_t,
            ) -> c_int
        );
    }
    // SAFETY: the program's own arguments.
    unsafe { wait_with(epfd, &netmaps, events, max, timeout, Some(mask)) }
}
