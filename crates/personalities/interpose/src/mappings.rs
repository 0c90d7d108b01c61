//! Mappings of personalities' descriptors, which keep what these stand for until they go (S-LIFE-5).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use smallvec::SmallVec;

use crate::{
    descriptors::{Held, InUse},
    hooks::MmapArgs,
    signals::{Lock, Locked},
    uaccess,
};

pub const PAGE: usize = 4096;

/// One mapping, or what is left of it.
pub struct Mapping {
    start: usize,
    end: usize,
    kept: Arc<Kept>,
}

/// The descriptor, which does not end before its mappings.
struct Kept(Held);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Few of them take no memory that is allocated: an allocator of the program's may unmap some of its own while it has
/// a lock.
pub type Mappings = SmallVec<[Mapping; 4]>;

static MAPPINGS: Lock<Mappings> = Lock::new(SmallVec::new_const());
/// Whether to look at all: most programs that unmap have never mapped such a descriptor.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The list, as it is.
pub fn lock() -> Locked<Mappings> {
    MAPPINGS.lock()
}

/// Notes that `[start, start + len)` maps the descriptor.
fn add(fd: Held, start: usize, len: usize) {
    fd.keep();
    let kept = Arc::new(Kept(fd));
    let end = start + len.next_multiple_of(PAGE);
    let mut all = lock();
    all.push(Mapping { start, end, kept });
    LIVE.store(all.len(), Relaxed);
}

/// `[start, start + len)` is not mapped any more, or maps something else.
pub fn remove(start: usize, len: usize) {
    uaccess::changed();
    if LIVE.load(Relaxed) == 0 {
        return;
    }
    // The descriptor may end now: not under the lock.
    drop(take(start, len));
}

/// Nothing is mapped any more, as far as the descriptors are concerned.
pub fn remove_all() {
    remove(0, usize::MAX / PAGE * PAGE);
}

/// `[from, from + old)` is at `[to, to + new)` now.
pub fn moved(from: usize, old: usize, to: usize, new: usize) {
    uaccess::changed();
    if LIVE.load(Relaxed) == 0 {
        return;
    }
    let mut gone = if from == to { Mappings::new() } else { take(to, new) };
    let moving = take(from, old);
    let len = new.next_multiple_of(PAGE);
    let mut all = lock();
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
    drop(gone);
}

/// Takes what there is of `[start, start + len)` out of the list.
fn take(start: usize, len: usize) -> Mappings {
    let end = start.saturating_add(len.next_multiple_of(PAGE));
    let mut taken = Mappings::new();
    let mut all = lock();
    let mut at = 0;
    while let Some(mapping) = all.get(at) {
        if end <= mapping.start || start >= mapping.end {
            at += 1;
            continue;
        }
        let m = all.swap_remove(at);
        if m.start < start {
            all.push(m.part(m.start, start));
        }
        if end < m.end {
            all.push(m.part(end, m.end));
        }
        // Of what it keeps there is a part left: it does not end here.
        taken.push(m.part(m.start.max(start), m.end.min(end)));
    }
    LIVE.store(all.len(), Relaxed);
    taken
}

impl Mapping {
    fn part(&self, start: usize, end: usize) -> Mapping {
        Mapping { start, end, kept: self.kept.clone() }
    }
}

/// Maps a descriptor, as `mmap` does (S-LIFE-3).
pub fn map(fd: InUse, raw: i32, args: MmapArgs) -> Result<*mut libc::c_void, i32> {
    let at = args.map(fd.mapped_file(raw, args.offset, args.len)?)?;
    if args.flags & libc::MAP_FIXED != 0 {
        remove(at as usize, args.len);
    }
    add(fd.hold(), at as usize, args.len);
    Ok(at)
}
