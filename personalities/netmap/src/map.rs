//! Mappings of regions, which keep their ports alive until they go (S-LIFE-5).

use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::{probe, table::InUse};

const PAGE: usize = 4096;

/// One mapping, or what is left of it.
pub struct Mapping {
    start: usize,
    end: usize,
    /// Keeps the object: its reference is counted there.
    fd: InUse,
}

static MAPPINGS: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());
/// Whether to look at all: most programs that unmap have never mapped a region.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Keeps the list as it is.
pub type Still = MutexGuard<'static, Vec<Mapping>>;

fn mappings() -> MutexGuard<'static, Vec<Mapping>> {
    MAPPINGS.lock().unwrap_or_else(|e| e.into_inner())
}

/// Notes that `[start, start + len)` maps the region of `fd`, whose number is `raw`.
fn add(fd: InUse, raw: i32, start: usize, len: usize) {
    fd.hold(raw);
    let end = start + len.next_multiple_of(PAGE);
    let mut all = mappings();
    all.push(Mapping { start, end, fd });
    LIVE.store(all.len(), Relaxed);
}

/// `[start, start + len)` is not mapped any more, or maps something else.
pub fn remove(start: usize, len: usize) {
    probe::changed();
    if LIVE.load(Relaxed) == 0 {
        return;
    }
    // The port may go now: not under the lock, since that closes descriptors.
    for mapping in take(start, len) {
        mapping.fd.release();
    }
}

/// Nothing is mapped any more, as far as the ports are concerned.
pub fn remove_all() {
    remove(0, usize::MAX / PAGE * PAGE);
}

/// `[from, from + old)` is at `[to, to + new)` now.
pub fn moved(from: usize, old: usize, to: usize, new: usize) {
    probe::changed();
    if LIVE.load(Relaxed) == 0 {
        return;
    }
    let mut gone = if from == to { Vec::new() } else { take(to, new) };
    let moving = take(from, old);
    let len = new.next_multiple_of(PAGE);
    let mut all = mappings();
    for mut mapping in moving {
        // What was the end of it may be longer now, or gone.
        let last = mapping.end == from + old.next_multiple_of(PAGE);
        mapping.start = mapping.start - from + to;
        mapping.end = if last { to + len } else { (mapping.end - from + to).min(to + len) };
        match mapping.start < mapping.end {
            true => all.push(mapping),
            false => gone.push(mapping),
        }
    }
    LIVE.store(all.len(), Relaxed);
    drop(all);
    for mapping in gone {
        mapping.fd.release();
    }
}

/// Takes what there is of `[start, start + len)` out of the list.
fn take(start: usize, len: usize) -> Vec<Mapping> {
    let end = start.saturating_add(len.next_multiple_of(PAGE));
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    let mut all = mappings();
    for m in all.drain(..) {
        if end <= m.start || start >= m.end {
            left.push(m);
            continue;
        }
        // Each part refers to the port by itself.
        if m.start < start {
            left.push(m.part(m.start, start));
        }
        if end < m.end {
            left.push(m.part(end, m.end));
        }
        taken.push(m.part(m.start.max(start), m.end.min(end)));
        m.fd.release();
    }
    *all = left;
    LIVE.store(all.len(), Relaxed);
    taken
}

impl Mapping {
    fn part(&self, start: usize, end: usize) -> Mapping {
        self.fd.hold_again();
        Mapping { start, end, fd: self.fd.again() }
    }
}

/// For `fork`: while the result lives, nobody is in the middle of a change.
pub fn still() -> Still {
    mappings()
}

/// Maps the region of a netmap descriptor, as `mmap` does (S-LIFE-3).
pub fn map(fd: InUse, raw: i32, args: crate::calls::MmapArgs) -> Result<*mut libc::c_void, i32> {
    use std::os::fd::AsRawFd;
    let binding = fd.binding(raw).ok_or(libc::EINVAL)?;
    let end = u64::try_from(args.offset).ok().and_then(|at| at.checked_add(args.len as u64));
    if args.len == 0 || end.is_none_or(|end| end > binding.region().layout().memsize()) {
        return Err(libc::EINVAL);
    }
    let memfd = binding.region().memfd().as_raw_fd();
    let at = args.call(memfd);
    if at == libc::MAP_FAILED {
        return Err(crate::next::errno());
    }
    if args.flags & libc::MAP_FIXED != 0 {
        remove(at as usize, args.len);
    }
    add(fd, raw, at as usize, args.len);
    Ok(at)
}
