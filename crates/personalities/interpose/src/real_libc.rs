//! The functions that the hooks stand in front of: the next ones in the loader's order.
//!
//! They are for descriptors of the program's own. What this code does for itself goes by
//! [system calls](crate).

use std::{
    ffi::{CStr, c_void},
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

/// A function that is looked up when the library is loaded, or before, where a constructor needs it.
pub struct RealFn {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl RealFn {
    /// By this name.
    pub const fn new(name: &'static CStr) -> RealFn {
        RealFn { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address. A program cannot go on without libc: there is no error to return.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let known = self.address.load(Relaxed);
        if known.is_null() { self.find() } else { known }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        self.look_up();
        let found = self.address.load(Relaxed);
        if found.is_null() {
            std::process::abort();
        }
        found
    }

    fn look_up(&self) {
        // SAFETY: a nul-terminated name; dlsym may be called at any time.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Relaxed);
    }
}

macro_rules! looked_up_at_load {
    ($($name:literal)*) => {
        const NAMES: &[&CStr] = &[$($name),*];
        /// Functions of these names.
        pub static AT_LOAD: [RealFn; NAMES.len()] = [$(RealFn::new($name)),*];
    };
}

// All of them: a handler of a signal may have interrupted the loader, or an allocation, and looking a
// function up waits for the one and makes the other.
looked_up_at_load! {
    c"__fxstatat" c"__fxstatat64" c"__lxstat" c"__lxstat64" c"__open64_2" c"__open_2"
    c"__openat64_2" c"__openat_2" c"__pread64_chk" c"__pread_chk" c"__read_chk" c"__recv_chk"
    c"__recvfrom_chk" c"__send" c"__xstat" c"__xstat64" c"access" c"bind" c"close" c"close_range"
    c"closefrom" c"creat" c"creat64" c"dup" c"dup2" c"dup3" c"eaccess" c"epoll_create"
    c"epoll_create1" c"epoll_ctl" c"epoll_pwait" c"epoll_pwait2" c"epoll_wait" c"euidaccess"
    c"faccessat" c"fclose" c"fcntl" c"fcntl64" c"fdopen" c"fileno" c"fopen" c"fopen64" c"freopen" c"freopen64" c"fstatat" c"fstatat64"
    c"getsockname" c"getsockopt" c"if_indextoname" c"if_nametoindex" c"ioctl" c"lstat" c"lstat64" c"mmap"
    c"mmap64" c"mprotect" c"mremap" c"munmap" c"open" c"open64" c"openat" c"openat64" c"poll"
    c"ppoll" c"pread" c"pread64" c"preadv" c"preadv2" c"preadv64" c"preadv64v2" c"pselect"
    c"pwrite" c"pwrite64" c"pwritev" c"pwritev2" c"pwritev64" c"pwritev64v2" c"read" c"readv"
    c"recv" c"recvfrom" c"recvmmsg" c"recvmsg" c"select" c"send" c"sendmsg" c"sendto"
    c"setsockopt" c"socket" c"stat" c"stat64" c"statx" c"write" c"writev"
}

/// The function of that name, which is among those above: else this does not compile.
pub const fn at_place(name: &CStr) -> &'static RealFn {
    let name = name.to_bytes();
    let mut place = 0;
    while place < NAMES.len() {
        let known = NAMES[place].to_bytes();
        let mut same = 0;
        while same < name.len() && same < known.len() && name[same] == known[same] {
            same += 1;
        }
        if same == name.len() && same == known.len() {
            return &AT_LOAD[place];
        }
        place += 1;
    }
    panic!("a function that is not looked up at load")
}

/// When the library is loaded.
pub fn at_load() {
    AT_LOAD.iter().for_each(RealFn::look_up);
}

/// Calls the next function of the given name and type. After `unwinding`, the call may be where libc ends a cancelled
/// thread (`pthread_cancel`): it unwinds the stack then, as a panic does, and what lies there is dropped.
macro_rules! real {
    (unwinding $name:ident: $($call:tt)*) => { $crate::real_libc::real!("C-unwind", $name: $($call)*) };
    ($name:ident: $($call:tt)*) => { $crate::real_libc::real!("C", $name: $($call)*) };
    ($abi:literal, $name:ident: fn($($arg:expr => $type:ty),* $(,)?) -> $ret:ty) => {{
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without nul"),
            };
        const REAL: &$crate::real_libc::RealFn = $crate::real_libc::at_place(NAME);
        // SAFETY: the symbol has this type by POSIX and libc's headers; where it takes more arguments than
        // are named there (`open`, `fcntl`, `ioctl`), these are passed in the same registers by the ABIs of
        // x86-64 and AArch64, and an argument that the program did not give is not looked at. The arguments
        // are those that the program gave, and what it promised with them is its own affair.
        unsafe {
            let function: unsafe extern $abi fn($($type),*) -> $ret =
                std::mem::transmute(REAL.get());
            function($($arg),*)
        }
    }};
}
pub(crate) use real;

/// Sets `errno` and returns -1, as a failing call does.
pub fn fail(errno: i32) -> i32 {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// The calling thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// Runs `f`, and leaves the calling thread's `errno` as it was.
pub fn keep_errno<R>(f: impl FnOnce() -> R) -> R {
    let before = errno();
    let result = f();
    fail(before);
    result
}
