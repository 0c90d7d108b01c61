//! `epoll`: descriptors of ours are kept beside the kernel's set, not in it.
//!
//! `epoll_wait` waits for the kernel's set as a whole, which is itself a descriptor that can
//! be polled, and for ours.

use std::ffi::c_int;

use libc::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLET, EPOLLONESHOT, POLLIN, epoll_event,
    sigset_t, timespec,
};

use crate::{
    descriptors,
    epoll_sets::{self, Member, Sets},
    hooks::waiting::deadline,
    real_libc::{errno, fail, real},
    uaccess,
    wait::{Deadline, Edge, Entries, Entry, What, wait},
};

/// Events that one call may ask for.
const MAX_EVENTS: c_int = c_int::MAX / size_of::<epoll_event>() as c_int;

macro_rules! create_functions {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name(argument: c_int) -> c_int {
            let set = real!($name: fn(argument => c_int) -> c_int);
            if set >= 0 {
                epoll_sets::closed(set);
                descriptors::mark_set(set);
            }
            set
        }
    )*};
}

create_functions!(epoll_create epoll_create1);

fn kernel_ctl(epfd: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    real!(
        epoll_ctl: fn(
            epfd => c_int,
            operation => c_int,
            fd => c_int,
            event => *mut epoll_event,
        ) -> c_int
    )
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn epoll_ctl(
    epfd: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    if descriptors::is_set(fd) {
        let done = kernel_ctl(epfd, operation, fd, event);
        if done == 0 {
            // The kernel has read the event, and knows better what may be done.
            // SAFETY: the program's own arguments.
            let _ = unsafe { change(epfd, operation, fd, event) };
        }
        return done;
    }
    if descriptors::get(fd).is_none() {
        return kernel_ctl(epfd, operation, fd, event);
    }
    if operation != EPOLL_CTL_DEL && !uaccess::readable(event, size_of::<epoll_event>()) {
        return fail(libc::EFAULT);
    }
    // The descriptor is never in the kernel's set, which says so, or what is wrong with `epfd`.
    kernel_ctl(epfd, EPOLL_CTL_DEL, fd, event);
    match errno() {
        libc::ENOENT => {}
        errno => return fail(errno),
    }
    // It may have been inherited.
    descriptors::mark_set(epfd);
    // SAFETY: the event can be read.
    match unsafe { change(epfd, operation, fd, event) } {
        Ok(()) => 0,
        Err(errno) => fail(errno),
    }
}

/// # Safety
/// `event` can be read, unless the operation is EPOLL_CTL_DEL.
unsafe fn change(
    epfd: c_int,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
) -> Result<(), c_int> {
    let member = || {
        // SAFETY: by the caller's contract; it is used for the other operations only.
        let event = unsafe { event.read_unaligned() };
        let edge = (event.events & EPOLLET as u32 != 0).then(Edge::default);
        Member { fd, events: event.events, data: event.u64, edge, armed: true }
    };
    let mut sets = Sets::lock();
    let set = sets.get_or_new(epfd);
    let known = set.members.iter().position(|m| m.fd == fd);
    match (operation, known) {
        (EPOLL_CTL_ADD, None) => set.add(member()),
        (EPOLL_CTL_ADD, Some(_)) => return Err(libc::EEXIST),
        (EPOLL_CTL_MOD, Some(at)) => set.members[at] = member(),
        (EPOLL_CTL_DEL, Some(at)) => {
            set.members.remove(at);
        }
        (EPOLL_CTL_MOD | EPOLL_CTL_DEL, None) => return Err(libc::ENOENT),
        _ => return Err(libc::EINVAL),
    }
    Ok(())
}

fn kernels(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int {
    real!(
        unwinding epoll_wait: fn(
            epfd => c_int,
            events => *mut epoll_event,
            max => c_int,
            timeout => c_int,
        ) -> c_int
    )
}

/// Waits for a set with members of ours, which are `entries`.
fn wait_with(
    epfd: c_int,
    mut entries: Entries,
    out: &mut Out,
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> Result<(), c_int> {
    if !(1..=MAX_EVENTS).contains(&out.max) {
        return Err(libc::EINVAL);
    }
    entries.push(Entry { fd: epfd, events: POLLIN, revents: 0, what: What::Foreign, edge: None });
    let waited = wait(&mut entries, deadline, mask);
    let kernel_has = entries.pop().is_some_and(|set| set.revents != 0) && waited.is_ok();
    let mut sets = Sets::lock();
    let Some(set) = sets.get(epfd) else { return waited.and(Err(libc::EBADF)) };
    set.waits = set.waits.wrapping_add(1);
    // Whoever is asked last may find no room left: each has its turn.
    let kernel_first = set.waits.is_multiple_of(2);
    let first = set.waits / 2 % entries.len();
    entries.rotate_left(first);
    let mut kernel = if kernel_has && kernel_first { out.take_kernels(epfd) } else { Ok(()) };
    let ours = out.take(set, &entries);
    if kernel_has && !kernel_first {
        kernel = out.take_kernels(epfd);
    }
    if set.members.iter().any(|m| descriptors::is_set(m.fd)) {
        out.merge(&set.members);
    }
    drop(sets);
    waited?;
    if out.count == 0 { kernel.and(ours) } else { Ok(()) }
}

/// Where events are reported: the program's array.
struct Out {
    events: *mut epoll_event,
    count: c_int,
    max: c_int,
}

impl Out {
    fn at(&self, index: c_int) -> *mut epoll_event {
        self.events.wrapping_add(index as usize)
    }

    /// Reports what members of ours have, and notes that it is.
    fn take(&mut self, set: &mut epoll_sets::Set, entries: &[Entry]) -> Result<(), c_int> {
        for entry in entries {
            let Some(member) = set.members.iter_mut().find(|m| m.fd == entry.fd) else { continue };
            // Another thread may have changed the member meanwhile: then it begins anew.
            if member.edge.is_some() && entry.edge.is_some() {
                member.edge = entry.edge;
            }
            if entry.revents == 0 || self.count == self.max || !member.armed {
                continue;
            }
            let at = self.at(self.count);
            if !uaccess::writable(at, size_of::<epoll_event>()) {
                return Err(libc::EFAULT);
            }
            let event = epoll_event { events: entry.revents as u16 as u32, u64: member.data };
            // SAFETY: within the program's array of `max` events, and it can be written.
            unsafe { at.write_unaligned(event) };
            self.count += 1;
            member.armed = member.events & EPOLLONESHOT as u32 == 0;
            if let Some(edge) = &mut member.edge {
                edge.reported(entry.revents);
            }
        }
        Ok(())
    }

    /// Reports what the kernel's set has.
    fn take_kernels(&mut self, epfd: c_int) -> Result<(), c_int> {
        if self.count == self.max {
            return Ok(());
        }
        let got = kernels(epfd, self.at(self.count), self.max - self.count, 0);
        if got < 0 {
            return Err(errno());
        }
        self.count += got;
        Ok(())
    }

    /// A set within the set may have been reported for members of both kinds: once is enough.
    fn merge(&mut self, members: &[Member]) {
        // SAFETY: the first `count` events have been written.
        let data = |i: c_int| unsafe { self.at(i).read_unaligned().u64 };
        let nested = |data| members.iter().any(|m| descriptors::is_set(m.fd) && m.data == data);
        let mut kept = 0;
        for i in 0..self.count {
            if (0..kept).any(|k| data(k) == data(i)) && nested(data(i)) {
                continue;
            }
            // SAFETY: as above; `kept` is not above `i`.
            unsafe { self.at(kept).write_unaligned(self.at(i).read_unaligned()) };
            kept += 1;
        }
        self.count = kept;
    }
}

/// Waits for a set, if it has members of ours.
fn wait_for(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    deadline: impl FnOnce() -> Result<Deadline, c_int>,
    mask: Option<*const sigset_t>,
) -> Option<c_int> {
    let entries = epoll_sets::entries(epfd);
    if entries.is_empty() {
        return None;
    }
    let mut out = Out { events, count: 0, max };
    let done = deadline().and_then(|until| wait_with(epfd, entries, &mut out, until, mask));
    Some(done.map_or_else(fail, |()| out.count))
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn epoll_wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    let until = || Ok(Deadline::after_millis(timeout));
    match wait_for(epfd, events, max, until, None) {
        Some(done) => done,
        None => kernels(epfd, events, max, timeout),
    }
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn epoll_pwait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let until = || Ok(Deadline::after_millis(timeout));
    match wait_for(epfd, events, max, until, Some(mask)) {
        Some(done) => done,
        None => real!(
            unwinding epoll_pwait: fn(
                epfd => c_int,
                events => *mut epoll_event,
                max => c_int,
                timeout => c_int,
                mask => *const sigset_t,
            ) -> c_int
        ),
    }
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn epoll_pwait2(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    match wait_for(epfd, events, max, || deadline(timeout), Some(mask)) {
        Some(done) => done,
        None => real!(
            unwinding epoll_pwait2: fn(
                epfd => c_int,
                events => *mut epoll_event,
                max => c_int,
                timeout => *const timespec,
                mask => *const sigset_t,
            ) -> c_int
        ),
    }
}
