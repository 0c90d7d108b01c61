//! Mappings of regions, which keep their ports alive until they go (S-LIFE-5).

use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::table::InUse;

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
pub fn add(fd: InUse, raw: i32, start: usize, len: usize) {
    fd.hold(raw);
    let end = start + len.next_multiple_of(4096);
    let mut all = mappings();
    all.push(Mapping { start, end, fd });
    LIVE.store(all.len(), Relaxed);
}

/// `[start, start + len)` is not mapped any more.
pub fn remove(start: usize, len: usize) {
    if LIVE.load(Relaxed) == 0 {
        return;
    }
    let end = start.saturating_add(len.next_multiple_of(4096));
    let mut gone = Vec::new();
    let mut all = mappings();
    let mut i = 0;
    while i < all.len() {
        let m = &mut all[i];
        let (before, after) = (start > m.start, end < m.end);
        if end <= m.start || start >= m.end {
            i += 1;
        } else if before {
            // What lies behind a hole goes on counting with what lies before it.
            if !after {
                m.end = start;
            }
            i += 1;
        } else if after {
            m.start = end;
            i += 1;
        } else {
            gone.push(all.swap_remove(i));
        }
    }
    LIVE.store(all.len(), Relaxed);
    drop(all);
    // The port may go now: not under the lock, since that closes descriptors.
    for mapping in gone {
        mapping.fd.release();
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
    add(fd, raw, at as usize, args.len);
    Ok(at)
}
