//! `epoll`: descriptors of ours are kept beside the kernel's set, not in it.
//!
//! `epoll_wait` waits for the kernel's set as a whole, which is itself a descriptor that can
//! be polled, and for ours.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use libc::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLET, EPOLLEXCLUSIVE, EPOLLHUP,
    EPOLLIN, EPOLLONESHOT, EPOLLOUT, EPOLLWAKEUP, POLLIN, epoll_event, sigset_t, timespec,
};

use crate::{
    descriptors,
    epoll_sets::{self, Asleep, Member, Sets},
    hooks::waiting::deadline,
    real_libc::{errno, fail, keep_errno, real},
    uaccess,
    wait::{Deadline, Edge, Entry, wait_for_these},
};

/// What may be asked for with `EPOLLEXCLUSIVE`.
const EXCLUSIVE: u32 =
    (EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE) as u32;

/// Events that one call may ask for.
const MAX_EVENTS: c_int = c_int::MAX / size_of::<epoll_event>() as c_int;

macro_rules! create_functions {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name(argument: c_int) -> c_int {
            let set = real!($name: fn(argument => c_int) -> c_int);
            if set >= 0 {
                descriptors::mark_set(set);
                epoll_sets::closed(set);
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
            let _ = keep_errno(|| unsafe { change(epfd, operation, (fd, None), event) });
        }
        return done;
    }
    let Some(own) = descriptors::get(fd) else {
        return kernel_ctl(epfd, operation, fd, event);
    };
    if operation != EPOLL_CTL_DEL && !uaccess::readable(event, size_of::<epoll_event>()) {
        return fail(libc::EFAULT);
    }
    let done = keep_errno(|| {
        // The descriptor is never in the kernel's set, which says so, or what is wrong with `epfd`.
        kernel_ctl(epfd, EPOLL_CTL_DEL, fd, event);
        match errno() {
            libc::ENOENT => {}
            errno => return Err(errno),
        }
        // It may have been inherited.
        descriptors::mark_set(epfd);
        // SAFETY: the event can be read.
        unsafe { change(epfd, operation, (fd, Some(own.life())), event) }
    });
    done.map_or_else(fail, |()| 0)
}

/// `life` is that of a descriptor of ours, and `None` for a set.
///
/// # Safety
/// `event` can be read, unless the operation is EPOLL_CTL_DEL.
unsafe fn change(
    epfd: c_int,
    operation: c_int,
    (fd, life): (c_int, Option<u64>),
    event: *const epoll_event,
) -> Result<(), c_int> {
    static IDS: AtomicU64 = AtomicU64::new(1);
    let member = || {
        // SAFETY: by the caller's contract; it is used for the other operations only.
        let event = unsafe { event.read_unaligned() };
        let edge = (event.events & EPOLLET as u32 != 0).then(Edge::default);
        let (events, data) = (event.events, event.u64);
        let id = IDS.fetch_add(1, Relaxed);
        Member { fd, added_as: fd, life, id, events, data, edge, armed: true }
    };
    // SAFETY: by the caller's contract.
    let events = || unsafe { event.read_unaligned() }.events;
    let is_refused = match operation {
        EPOLL_CTL_ADD => is_exclusive(events()) && events() & !EXCLUSIVE != 0,
        EPOLL_CTL_MOD => is_exclusive(events()),
        _ => false,
    };
    if is_refused {
        return Err(libc::EINVAL);
    }
    let mut sets = Sets::lock();
    let set = sets.get_or_new(epfd);
    let known = set.members.iter().position(|m| m.added_as == fd && m.life == life);
    match (operation, known) {
        (EPOLL_CTL_ADD, None) => set.add(member()),
        (EPOLL_CTL_ADD, Some(_)) => return Err(libc::EEXIST),
        // Such a member stays as it was added.
        (EPOLL_CTL_MOD, Some(at)) if is_exclusive(set.members[at].events) => {
            return Err(libc::EINVAL);
        }
        (EPOLL_CTL_MOD, Some(at)) => set.members[at] = member(),
        (EPOLL_CTL_DEL, Some(at)) => {
            set.members.remove(at);
        }
        (EPOLL_CTL_MOD | EPOLL_CTL_DEL, None) => return Err(libc::ENOENT),
        _ => return Err(libc::EINVAL),
    }
    if operation != EPOLL_CTL_DEL {
        sets.changed(epfd);
    }
    Ok(())
}

fn is_exclusive(events: u32) -> bool {
    events & EPOLLEXCLUSIVE as u32 != 0
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

/// So long, and so often, a wait leaves the kernel's set alone while other threads are
/// [called](epoll_sets) out of it.
const MOMENT: Duration = Duration::from_millis(1);
const MOMENTS: u32 = 100;

/// Waits for a set with members of ours.
fn wait_with(
    epfd: c_int,
    out: &mut Out,
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> Result<(), c_int> {
    if !(1..=MAX_EVENTS).contains(&out.max) {
        return Err(libc::EINVAL);
    }
    let mut moments = 0;
    loop {
        let (mut listening, mut entries) = epoll_sets::entries_until(epfd);
        let (kernels, until) = match out.calls {
            false => (epfd, deadline),
            true => (-1, deadline.within(MOMENT)),
        };
        entries.push(Entry::foreign(kernels, POLLIN));
        entries.push(listening.entry());
        let waited = wait_for_these(&mut entries, until, mask);
        listening.heard(entries.pop());
        let kernel_has = entries.pop().is_some_and(|set| set.revents != 0) || out.calls;
        let kernel_has = kernel_has && waited.is_ok();
        let mut sets = Sets::lock();
        listening.end(&mut sets);
        moments = if out.calls { moments + 1 } else { 0 };
        if moments == MOMENTS {
            sets.call_no_longer(epfd);
        }
        let Some(set) = sets.get(epfd) else { return waited.and(Err(libc::EBADF)) };
        set.waits = set.waits.wrapping_add(1);
        // The program's array may be full before the last is asked, so the order changes from wait to wait.
        let kernel_first = set.waits.is_multiple_of(2);
        let first = set.waits / 2 % entries.len().max(1);
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
        if out.count > 0 {
            return Ok(());
        }
        kernel.and(ours)?;
        // Another thread has taken what there was, or the set has changed.
        if deadline.is_over() {
            return Ok(());
        }
    }
}

/// Where events are reported: the program's array.
struct Out {
    events: *mut epoll_event,
    count: c_int,
    max: c_int,
    /// Whether the kernel's set calls threads out of its wait.
    calls: bool,
}

impl Out {
    fn at(&self, index: c_int) -> *mut epoll_event {
        self.events.wrapping_add(index as usize)
    }

    /// Reports what members of ours have, and notes that it is.
    fn take(&mut self, set: &mut epoll_sets::Set, entries: &[Entry]) -> Result<(), c_int> {
        for entry in entries {
            let Some(member) = set.members.iter_mut().find(|m| m.id == entry.member) else {
                continue;
            };
            // Another thread may have changed the member meanwhile, or reported it: then it is looked at anew.
            if let (Some(edge), Some(seen)) = (&mut member.edge, entry.edge) {
                if edge.reports != seen.reports {
                    continue;
                }
                *edge = seen;
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
        self.calls = false;
        if self.count == self.max {
            return Ok(());
        }
        let got = kernels(epfd, self.at(self.count), self.max - self.count, 0);
        if got < 0 {
            return Err(errno());
        }
        // SAFETY: the kernel has just written so many there.
        let kept = unsafe { without_call(self.at(self.count), got) };
        self.calls = kept != got;
        self.count += kept;
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

/// Takes the event of a [call](epoll_sets) out of so many; returns how many are left.
///
/// # Safety
/// The kernel has just written `got` events there for the program.
unsafe fn without_call(events: *mut epoll_event, got: c_int) -> c_int {
    let call = epoll_sets::call_data();
    // SAFETY: by the contract above.
    let at = |i: usize| unsafe { events.wrapping_add(i).read_unaligned() };
    let got = got as usize;
    let Some(found) = (0..got).find(|i| at(*i).u64 == call) else { return got as c_int };
    for i in found + 1..got {
        // SAFETY: as above; the place has been read.
        unsafe { events.wrapping_add(i - 1).write_unaligned(at(i)) };
    }
    got as c_int - 1
}

/// Waits for a set: by the `kernel`'s call, as long as it has no members of ours.
fn wait_for(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    deadline: Result<Deadline, c_int>,
    mask: Option<*const sigset_t>,
    kernel: impl FnOnce() -> c_int,
) -> c_int {
    let asleep = Asleep::begin(epfd);
    let has_none = epoll_sets::entries(epfd).is_empty();
    if has_none {
        let got = kernel();
        drop(asleep);
        if got <= 0 {
            return got;
        }
        // SAFETY: the kernel has just written so many there.
        let kept = unsafe { without_call(events, got) };
        if kept > 0 {
            return kept;
        }
    } else {
        drop(asleep);
    }
    let mut out = Out { events, count: 0, max, calls: false };
    let wait = |until| keep_errno(|| wait_with(epfd, &mut out, until, mask));
    let done = deadline.and_then(wait);
    done.map_or_else(fail, |()| out.count)
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn epoll_wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    let until = Ok(Deadline::after_millis(timeout));
    wait_for(epfd, events, max, until, None, || kernels(epfd, events, max, timeout))
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
    let until = Ok(Deadline::after_millis(timeout));
    wait_for(epfd, events, max, until, Some(mask), || {
        real!(
            unwinding epoll_pwait: fn(
                epfd => c_int,
                events => *mut epoll_event,
                max => c_int,
                timeout => c_int,
                mask => *const sigset_t,
            ) -> c_int
        )
    })
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
    wait_for(epfd, events, max, deadline(timeout), Some(mask), || {
        real!(
            unwinding epoll_pwait2: fn(
                epfd => c_int,
                events => *mut epoll_event,
                max => c_int,
                timeout => *const timespec,
                mask => *const sigset_t,
            ) -> c_int
        )
    })
}
