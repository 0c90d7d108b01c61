//! The unsafe code of this crate: what it asks of libc and of the loader, and the start of a process
//! that has nothing to do with this one. It may run in a library that takes the place of libc's
//! functions, in any program.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_char, c_void},
    io,
    mem::zeroed,
    ptr::{null, null_mut},
};

use libc::{
    F_DUPFD, KEY_SPEC_USER_KEYRING, KEYCTL_UNLINK, SYS_add_key, SYS_chdir, SYS_clone,
    SYS_close_range, SYS_dup3, SYS_execve, SYS_exit_group, SYS_fcntl, SYS_keyctl, SYS_prlimit64,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sched_getscheduler, SYS_sched_setscheduler,
    SYS_setsid, SYS_wait4, syscall,
};
use rustix::fd::{AsRawFd, BorrowedFd};

/// Bytes of memory that messages take which were sent into a Unix socket, and are not read at its other end yet.
pub fn unread_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes a number to `bytes`, which is alive during the call, and nothing refers to it.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } {
        0 => Ok(bytes.unsigned_abs() as usize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The process at the other end of a connection, when that began; of a listener's connection, the process that has begun
/// to listen. ESRCH: it is in no pid namespace that this process sees.
pub fn peer_pid(socket: BorrowedFd<'_>) -> io::Result<u32> {
    // rustix has this call, for which a pid of 0 is undefined behaviour.
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of_val(&peer) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let (to, length_at) = ((&raw mut peer).cast(), &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `peer`, any of which are numbers, and how many to `length`;
    // both are alive during the call, and nothing refers to them.
    match unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, to, length_at) } {
        0 if peer.pid > 0 => Ok(peer.pid.unsigned_abs()),
        0 => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The serial number of a key that the kernel keeps for this user, and has made if there was none.
pub fn folder_key() -> io::Result<u32> {
    let (kind, name, content) = (c"user".as_ptr(), c"ringway".as_ptr(), [0u8; 1]);
    // What is there already under that name keeps its number, and gets the content anew.
    // SAFETY: two C strings, and one byte, which the kernel reads during the call.
    let key = unsafe {
        syscall(SYS_add_key, kind, name, content.as_ptr(), content.len(), KEY_SPEC_USER_KEYRING)
    };
    u32::try_from(key).map_err(|_| io::Error::last_os_error())
}

/// Has the kernel forget such a key, unless another process has had it do so already.
pub fn remove_folder_key(key: u32) {
    // SAFETY: it takes numbers.
    unsafe { syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING) };
}

/// The name of the library that this code was loaded from. `None` where it is part of the program:
/// the loader has no other name for that than the word that its caller has called it by.
pub fn own_library() -> Option<CString> {
    // SAFETY: it reads a table that the kernel has written before the program's first instruction.
    let program = unsafe { libc::getauxval(libc::AT_PHDR) } as *const c_void;
    let program = object_of(program);
    let own = object_of(own_library as fn() -> Option<CString> as *const c_void)?;
    if own.dli_fname.is_null() || program.is_some_and(|other| other.dli_fbase == own.dli_fbase) {
        return None;
    }
    // SAFETY: the loader's string ends with a zero and stays as long as the object is loaded, which
    // it is while its code runs.
    Some(unsafe { CStr::from_ptr(own.dli_fname) }.to_owned())
}

/// What the loader knows of the program or library at an address.
fn object_of(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: all zeros are a valid Dl_info: numbers, and null pointers.
    let mut info: libc::Dl_info = unsafe { zeroed() };
    // SAFETY: any address will do; `info` is alive during the call.
    let found = unsafe { libc::dladdr(address, &mut info) };
    (found != 0).then_some(info)
}

/// What a program is started with.
pub struct Start<'a> {
    /// Its file, and its arguments from the first.
    pub arguments: &'a [CString],
    pub environment: &'a [CString],
    /// What it finds as descriptors 0, 1 and so on. It has no others.
    pub descriptors: &'a [BorrowedFd<'a>],
}

impl Start<'_> {
    /// Starts the program in a session of its own, twice removed from this process: whose children,
    /// signals and descriptors stay untouched.
    pub fn detached(&self) -> io::Result<()> {
        let pointers = |list: &[CString]| -> Vec<*const c_char> {
            list.iter().map(|text| text.as_ptr()).chain([null()]).collect()
        };
        let (argv, envp) = (pointers(self.arguments), pointers(self.environment));
        let mut numbers: Vec<_> = self.descriptors.iter().map(|fd| fd.as_raw_fd()).collect();
        let mut kept = numbers.clone();
        kept.sort_unstable();

        // A debugger takes a child that sends no signal for a thread of the program, and loses
        // both; and the daemon would be under the control of a tracer of the program's.
        const FORK: libc::c_int = libc::CLONE_UNTRACED;
        // SAFETY: with this flag it is a fork that sends no signal when the child ends, so that no
        // handler and no `wait` of the program's hears of it. The child goes on below, with a copy of
        // all memory: it makes system calls on what was made above, allocates nothing and takes no
        // lock, which another thread might have held.
        let child = unsafe { syscall(SYS_clone, FORK, 0, 0, 0, 0) };
        if child < 0 {
            return Err(io::Error::last_os_error());
        }
        if child == 0 {
            // SAFETY: in the child, with the arrays made above. The second fork is as the first.
            unsafe {
                syscall(SYS_setsid);
                if syscall(SYS_clone, FORK, 0, 0, 0, 0) == 0 {
                    begin_anew(&kept);
                    become_program(&argv, &envp, &mut numbers);
                }
                exit(0)
            }
        }
        let (no_status, no_usage) = (null_mut::<c_void>(), null_mut::<c_void>());
        // SAFETY: it waits for the child made above, and is asked for nothing but its end.
        while unsafe { syscall(SYS_wait4, child, no_status, libc::__WALL, no_usage) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        Ok(())
    }
}

/// Takes the daemon's process back to the usual settings: each limit is raised
/// to its hard limit, a real-time priority is given up, and all descriptors but those in `kept`, which is sorted, are
/// closed.
///
/// # Safety
/// For the child of a fork only, for it closes descriptors that others own.
unsafe fn begin_anew(kept: &[i32]) {
    /// What a daemon has in greater number or for longer than the program: a limit of the program's would end the
    /// daemon of all programs of the user, or refuse them memory.
    const LIMITS: [u32; 7] = [
        libc::RLIMIT_AS,
        libc::RLIMIT_CPU,
        libc::RLIMIT_DATA,
        libc::RLIMIT_FSIZE,
        libc::RLIMIT_MEMLOCK,
        libc::RLIMIT_NOFILE,
        libc::RLIMIT_NPROC,
    ];
    const ABOVE_ALL: [i32; 2] = [libc::SCHED_FIFO, libc::SCHED_RR];
    let usual = libc::sched_param { sched_priority: 0 };
    let (this, none) = (0, null_mut::<libc::rlimit64>());
    // SAFETY: system calls on numbers, and on locals of the kernel's layout that outlive them.
    unsafe {
        for limit in LIMITS {
            let mut found = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
            if syscall(SYS_prlimit64, this, limit, none, &mut found) == 0 {
                found.rlim_cur = found.rlim_max;
                syscall(SYS_prlimit64, this, limit, &found, none);
            }
        }
        if ABOVE_ALL.contains(&(syscall(SYS_sched_getscheduler, this) as i32)) {
            syscall(SYS_sched_setscheduler, this, libc::SCHED_OTHER, &usual);
        }
        // First of all, for the program may have all descriptors that the limit allows.
        let mut from = 0;
        for fd in kept {
            if from < *fd {
                syscall(SYS_close_range, from, *fd - 1, 0);
            }
            from = *fd + 1;
        }
        syscall(SYS_close_range, from, u32::MAX, 0);
    }
}

/// Executes a program with the signals of a new process, in the root directory.
///
/// # Safety
/// For the child of a fork only, for it closes descriptors that others own. `argv` and `envp` hold C
/// strings and end with null.
unsafe fn become_program(
    argv: &[*const c_char],
    envp: &[*const c_char],
    descriptors: &mut [i32],
) -> ! {
    // The kernel's signal set, and its `struct sigaction` of the default action.
    let (none, default) = (0u64, [0u64; 4]);
    let (no_old, set_size) = (null_mut::<u64>(), size_of_val(&none));
    let program = argv.first().copied().unwrap_or(null());
    let count = descriptors.len();
    // SAFETY: system calls on numbers, on locals of the kernel's layout that outlive them, and on the
    // caller's arrays. libc's own functions would not do: the program may export some of that name.
    unsafe {
        for fd in descriptors.iter_mut() {
            *fd = syscall(SYS_fcntl, *fd, F_DUPFD, count) as i32;
        }
        for (to, from) in (0..).zip(&*descriptors) {
            syscall(SYS_dup3, *from, to, 0);
        }
        syscall(SYS_close_range, count, u32::MAX, 0);
        syscall(SYS_rt_sigprocmask, libc::SIG_SETMASK, &none, no_old, set_size);
        for signal in 1..32 {
            syscall(SYS_rt_sigaction, signal, &default, no_old, set_size);
        }
        syscall(SYS_chdir, c"/".as_ptr());
        syscall(SYS_execve, program, argv.as_ptr(), envp.as_ptr());
        exit(127)
    }
}

/// # Safety
/// For the child of a fork only, which leaves everything as it is.
unsafe fn exit(status: i32) -> ! {
    loop {
        // SAFETY: it does not return.
        unsafe { syscall(SYS_exit_group, status) };
    }
}
