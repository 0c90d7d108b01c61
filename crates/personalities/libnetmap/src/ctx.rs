//! Contexts: how the library reports errors, allocates, and locks its list of mappings.

use std::{
    arch::naked_asm,
    cell::UnsafeCell,
    ffi::{c_char, c_int, c_void},
    fmt::{self, Write},
    ptr::{null_mut, write_bytes},
    sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire},
};

use crate::{
    errno::Errno,
    types::{nmctx, nmem_d},
};

/// A context in use, and what its messages are about. Whoever makes one answers for its staying
/// valid.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    ptr: *mut nmctx,
    about: &'a [u8],
}

impl<'a> Ctx<'a> {
    /// # Safety
    /// `ctx` is null, for the default one, or a context that outlives the value, and whose
    /// callbacks do what `libnetmap.h` says.
    pub unsafe fn new(ctx: *mut nmctx) -> Ctx<'a> {
        if ctx.is_null() { Ctx::current() } else { Ctx { ptr: ctx, about: b"" } }
    }

    pub fn current() -> Ctx<'a> {
        Ctx { ptr: CURRENT.load(Acquire), about: b"" }
    }

    /// For messages about a port, unless it is known already what they are about.
    pub fn about(self, about: &'a [u8]) -> Ctx<'a> {
        if self.about.is_empty() { Ctx { about, ..self } } else { self }
    }

    pub fn as_ptr(self) -> *mut nmctx {
        self.ptr
    }

    /// Reports a failure, and returns it.
    pub fn fail<T>(self, errno: Errno, message: fmt::Arguments) -> Result<T, Errno> {
        let mut text = Text { bytes: [0; _], used: 0 };
        // More than fits is cut, still too long, and then reported as such.
        let _ = match self.about {
            b"" => text.write_fmt(message),
            about => write!(text, "{}: {message}", about.escape_ascii()),
        };
        // SAFETY: a valid context; the text is nul-terminated, by its last byte at the latest.
        unsafe { libnetmap_ferror(self.ptr, c"%s".as_ptr(), text.bytes.as_ptr()) };
        Err(errno)
    }

    /// Memory of the context's, or null.
    pub fn malloc(self, size: usize) -> *mut c_void {
        // SAFETY: a valid context, and its own callback.
        unsafe { (*self.ptr).malloc.map_or(null_mut(), |malloc| malloc(self.ptr, size)) }
    }

    /// Room for a `T`, all bytes zero; `what` is for the message.
    pub fn zeroed<T>(self, what: &str) -> Result<*mut T, Errno> {
        let memory: *mut T = self.malloc(size_of::<T>()).cast();
        if memory.is_null() {
            return self.fail(libc::ENOMEM, format_args!("no memory for {what}"));
        }
        // SAFETY: the allocator has just given that many bytes.
        unsafe { write_bytes(memory, 0, 1) };
        Ok(memory)
    }

    /// # Safety
    /// `memory` is null or the context's own, and not used any more.
    pub unsafe fn free<T>(self, memory: *mut T) {
        // SAFETY: by the contract above; a valid context and its own callback.
        unsafe {
            if let Some(free) = (*self.ptr).free {
                free(self.ptr, memory.cast());
            }
        }
    }

    /// Does something with the list of mappings, which nobody else changes meanwhile.
    pub fn with_mappings<T>(self, work: impl FnOnce(&mut *mut nmem_d) -> T) -> T {
        self.lock(1);
        // SAFETY: a valid context, whose list is ours while we hold its lock; without a lock
        // there is one thread only.
        let done = work(unsafe { &mut (*self.ptr).mem_descs });
        self.lock(0);
        done
    }

    fn lock(self, lock: c_int) {
        // SAFETY: a valid context, and its own callback.
        unsafe {
            if let Some(callback) = (*self.ptr).lock {
                callback(self.ptr, lock);
            }
        }
    }
}

/// A message. Longer than what `nmctx_ferror` lets pass, so that it can tell.
struct Text {
    bytes: [u8; 1002],
    used: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.used;
        let taken = text.len().min(room);
        self.bytes[self.used..][..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.used += taken;
        if taken == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

unsafe extern "C" {
    fn libnetmap_ferror(ctx: *mut nmctx, format: *const c_char, ...);
    fn libnetmap_print(ctx: *mut nmctx, message: *const c_char);
}

/// What C sees as a global variable.
#[repr(transparent)]
struct Global<T>(UnsafeCell<T>);

// SAFETY: only shared with C, by address; each use says which thread writes when.
unsafe impl<T> Sync for Global<T> {}

impl<T> Global<T> {
    const fn new(value: T) -> Global<T> {
        Global(UnsafeCell::new(value))
    }
}

/// The context at start. It has a lock already, which costs nothing where there is one thread.
static BUILT_IN: Global<nmctx> = Global::new(nmctx {
    verbose: 1,
    error: Some(libnetmap_print),
    malloc: Some(libc_malloc),
    free: Some(libc_free),
    lock: Some(mutex),
    mem_descs: null_mut(),
});

/// What `nmctx_set_threadsafe` makes of another context.
static THREADSAFE: Global<nmctx> = Global::new(nmctx {
    verbose: 1,
    error: None,
    malloc: None,
    free: None,
    lock: Some(mutex),
    mem_descs: null_mut(),
});

static CURRENT: AtomicPtr<nmctx> = AtomicPtr::new(BUILT_IN.0.get());

static MUTEX: Global<libc::pthread_mutex_t> = Global::new(libc::PTHREAD_MUTEX_INITIALIZER);

extern "C" fn libc_malloc(_ctx: *mut nmctx, size: usize) -> *mut c_void {
    // SAFETY: any size is right.
    unsafe { libc::malloc(size) }
}

/// # Safety
/// `memory` is of [`libc_malloc`], not freed yet, or null.
unsafe extern "C" fn libc_free(_ctx: *mut nmctx, memory: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory) }
}

/// # Safety
/// A thread unlocks (0) what it has locked (not 0), and locks it once.
unsafe extern "C" fn mutex(_ctx: *mut nmctx, lock: c_int) {
    let mutex = MUTEX.0.get();
    match lock {
        // SAFETY: an initialised mutex, that is never moved; the caller has locked it, as it promises.
        0 => unsafe { libc::pthread_mutex_unlock(mutex) },
        // SAFETY: an initialised mutex, that is never moved; the caller has not locked it yet.
        _ => unsafe { libc::pthread_mutex_lock(mutex) },
    };
}

#[unsafe(no_mangle)]
pub extern "C" fn nmctx_get() -> *mut nmctx {
    Ctx::current().as_ptr()
}

/// Returns the one before.
///
/// # Safety
/// A context that stays valid while it is the default, or a port has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmctx_set_default(ctx: *mut nmctx) -> *mut nmctx {
    CURRENT.swap(ctx, AcqRel)
}

/// To be called before there are threads, and not while ports have what an earlier call made.
#[unsafe(no_mangle)]
pub extern "C" fn nmctx_set_threadsafe() {
    let (old, new) = (Ctx::current().as_ptr(), THREADSAFE.0.get());
    if old == BUILT_IN.0.get() || old == new {
        return;
    }
    // SAFETY: both are contexts, and not one; the old one is the program's default, and no
    // port has the new one yet. Mappings stay with the ports that have them.
    unsafe { *new = nmctx { lock: Some(mutex), mem_descs: null_mut(), ..*old } };
    CURRENT.store(new, std::sync::atomic::Ordering::Release);
}

/// `void nmctx_ferror(struct nmctx *, const char *format, ...)`.
///
/// C defines it, under another name: rustc does not export what C defines. A jump leaves
/// registers and stack, and so all arguments, as the caller put them.
///
/// # Safety
/// As `printf`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmctx_ferror(ctx: *mut nmctx, format: *const c_char) {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("jmp {}", sym libnetmap_ferror);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("b {}", sym libnetmap_ferror);
}

/// # Safety
/// A valid context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmctx_malloc(ctx: *mut nmctx, size: usize) -> *mut c_void {
    // SAFETY: by the contract above.
    unsafe { Ctx::new(ctx) }.malloc(size)
}

/// # Safety
/// A valid context, and memory of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmctx_free(ctx: *mut nmctx, memory: *mut c_void) {
    // SAFETY: by the contract above.
    unsafe { Ctx::new(ctx).free(memory) }
}

/// # Safety
/// A valid context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmctx_lock(ctx: *mut nmctx) {
    // SAFETY: by the contract above.
    unsafe { Ctx::new(ctx) }.lock(1);
}

/// # Safety
/// A valid context, locked by this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmctx_unlock(ctx: *mut nmctx) {
    // SAFETY: by the contract above.
    unsafe { Ctx::new(ctx) }.lock(0);
}
