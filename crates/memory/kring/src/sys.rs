//! What this crate asks of the kernel beneath any library: the thread's list of robust futexes, and
//! a page that a forked child finds wiped.
//!
//! The calls are made without libc, which a program may have replaced by functions of its own. What only the
//! daemon does is in [`completion`].
#![allow(unsafe_code)]

mod completion;

use std::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*, compiler_fence},
};

pub(crate) use completion::Completions;

/// `struct robust_list_head` of `linux/futex.h`: where the kernel looks, when a thread dies, for the
/// futexes that it held. libc has registered one for each thread, for robust mutexes.
#[repr(C)]
struct ListHead {
    /// The first futex of the list: none of ours is ever in it.
    first: AtomicUsize,
    /// From an entry of the list to its futex, in bytes.
    futex_offset: isize,
    /// The entry of a futex that is being taken or given back.
    pending: AtomicUsize,
}

/// The calling thread's robust futexes.
#[derive(Clone, Copy, Debug)]
pub struct RobustList {
    /// Never freed before the thread has ended; null where the kernel has no such list.
    head: *const ListHead,
    futex_offset: isize,
}

impl RobustList {
    /// No list: the kernel marks nothing.
    pub const NONE: RobustList = RobustList { head: ptr::null(), futex_offset: 0 };

    /// The list that libc has registered for the calling thread; after a `fork` that libc knows
    /// nothing of, one of our own.
    #[cold]
    pub fn of_this_thread() -> RobustList {
        let Some(registered) = call::robust_list() else { return RobustList::NONE };
        let head: *const ListHead = if registered.is_null() {
            // Not from the heap, whose locks a fork behind libc's back may have left taken.
            let Some(head) = new_page() else { return RobustList::NONE };
            let head: *mut ListHead = head.cast();
            // SAFETY: a new page, all zero, which nothing else refers to. An empty list is one whose
            // first entry is the head.
            unsafe { (*head).first.store(head.addr(), Relaxed) };
            if !call::set_robust_list(head.cast(), size_of::<ListHead>()) {
                return RobustList::NONE;
            }
            head.cast_const()
        } else {
            registered.cast()
        };
        // SAFETY: the kernel has just named it as this thread's list head, which whoever registered
        // it keeps until the thread has ended; the offset is constant.
        let futex_offset = unsafe { (*head).futex_offset };
        RobustList { head, futex_offset }
    }

    fn pending(&self) -> Option<&AtomicUsize> {
        // SAFETY: null, or the head of the list of this very thread (the type is not `Send`), which
        // outlives it. Only this thread writes to `pending`.
        unsafe { self.head.as_ref() }.map(|head| &head.pending)
    }

    /// If the thread dies from now on while `futex` holds its thread id, the kernel marks the futex.
    /// Returns what was there before, for [`restore`](Self::restore).
    #[inline]
    pub fn announce(&self, futex: *const AtomicU32) -> usize {
        let Some(pending) = self.pending() else { return 0 };
        let before = pending.load(Relaxed);
        pending.store(futex.addr().wrapping_add_signed(-self.futex_offset), Relaxed);
        // The processor keeps the order as far as this thread, and its death, can see.
        compiler_fence(SeqCst);
        before
    }

    /// The futex is held no longer.
    #[inline]
    pub fn restore(&self, before: usize) {
        compiler_fence(SeqCst);
        if let Some(pending) = self.pending() {
            pending.store(before, Relaxed);
        }
    }
}

/// A number that is this process's alone among those that share its past: a child of `fork` gets
/// another one, whatever has forked it. 0 is no process's.
///
/// It costs two loads. Needs Linux 4.14; before that a child keeps its parent's number. A child of
/// `vfork` runs in its parent's memory, and has its number.
#[inline]
pub fn epoch() -> u32 {
    // SAFETY: null, or a page that is never unmapped, of zeros or what is stored here: any value is
    // an AtomicU32's.
    match unsafe { PAGE.load(Acquire).as_ref() } {
        Some(page) => match page.load(Relaxed) {
            0 => new_epoch(page),
            epoch => epoch,
        },
        None => first_epoch(),
    }
}

/// A page that the kernel wipes in a child.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The last number that was given out. A child inherits it, so that its own is greater than all that
/// its parent's threads have noted.
static LAST: AtomicU32 = AtomicU32::new(0);

#[cold]
fn new_epoch(page: &AtomicU32) -> u32 {
    let new = LAST.fetch_add(1, Relaxed) + 1;
    page.compare_exchange(0, new, Relaxed, Relaxed).map_or_else(|other| other, |_| new)
}

#[cold]
fn first_epoch() -> u32 {
    let page = wiped_page();
    let placed = PAGE.compare_exchange(ptr::null_mut(), page, AcqRel, Acquire);
    // A second page, of a thread that was as early, stays: it is a page once.
    let page = placed.map_or_else(|other| other, |_| page);
    // SAFETY: as in `epoch`.
    unsafe { page.as_ref() }.map_or(1, new_epoch)
}

/// A page that a child finds zeroed; without memory for one, a child is not noticed.
fn wiped_page() -> *mut AtomicU32 {
    let Some(page) = new_page() else { return Box::leak(Box::new(AtomicU32::new(0))) };
    #[cfg(not(miri))]
    // SAFETY: advice about this page alone.
    let _ = unsafe { rustix::mm::madvise(page, PAGE_SIZE, rustix::mm::Advice::LinuxWipeOnFork) };
    page.cast()
}

const PAGE_SIZE: usize = 4096;

/// A page of zeros that is never unmapped.
#[cfg(not(miri))]
fn new_page() -> Option<*mut std::ffi::c_void> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: new memory, at a place of the kernel's choice.
    unsafe { mmap_anonymous(ptr::null_mut(), PAGE_SIZE, access, MapFlags::PRIVATE) }.ok()
}

/// Miri has one process.
#[cfg(miri)]
fn new_page() -> Option<*mut std::ffi::c_void> {
    None
}

/// `get_robust_list(2)` and `set_robust_list(2)`, of the calling thread.
#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
mod call {
    use std::{arch::asm, ffi::c_void, ptr};

    #[cfg(target_arch = "x86_64")]
    const SET: usize = 273;
    #[cfg(target_arch = "x86_64")]
    const GET: usize = 274;
    #[cfg(target_arch = "aarch64")]
    const SET: usize = 99;
    #[cfg(target_arch = "aarch64")]
    const GET: usize = 100;

    /// # Safety
    /// The call writes where its arguments say, and nowhere else.
    unsafe fn syscall(number: usize, arguments: [usize; 3]) -> isize {
        let [a, b, c] = arguments;
        let result: isize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the kernel's calling convention: it keeps all registers but these three.
        unsafe {
            asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b,
                in("rdx") c, lateout("rcx") _, lateout("r11") _, options(nostack));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the kernel's calling convention: it keeps all registers but the result's.
        unsafe {
            asm!("svc 0", in("x8") number, inlateout("x0") a as isize => result, in("x1") b,
                in("x2") c, options(nostack));
        }
        result
    }

    /// The registered list; null if there is none. `None`: the kernel does not say.
    pub fn robust_list() -> Option<*const c_void> {
        let (mut head, mut len) = (ptr::null::<c_void>(), 0usize);
        let to = [0, (&raw mut head).expose_provenance(), (&raw mut len).expose_provenance()];
        // SAFETY: it writes a pointer and a length to the two variables.
        let done = unsafe { syscall(GET, to) };
        (done == 0).then_some(head)
    }

    /// Registers a list; false if the kernel has none.
    pub fn set_robust_list(head: *const c_void, len: usize) -> bool {
        // SAFETY: the call itself writes nothing; the kernel follows the list when the thread ends.
        unsafe { syscall(SET, [head.expose_provenance(), len, 0]) == 0 }
    }
}

/// Elsewhere nothing is marked.
#[cfg(not(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod call {
    use std::ffi::c_void;

    pub fn robust_list() -> Option<*const c_void> {
        None
    }

    pub fn set_robust_list(_head: *const c_void, _len: usize) -> bool {
        false
    }
}
