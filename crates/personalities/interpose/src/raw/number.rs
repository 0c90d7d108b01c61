//! Numbers of system calls.

use libc::*;

/// A system call's number.
#[derive(Clone, Copy)]
pub struct Number(pub(super) c_long);

impl Number {
    pub const READ: Number = Number(SYS_read);
    pub const WRITE: Number = Number(SYS_write);
    pub const CLOSE: Number = Number(SYS_close);
    pub const DUP: Number = Number(SYS_dup);
    pub const DUP3: Number = Number(SYS_dup3);
    pub const IOCTL: Number = Number(SYS_ioctl);
    pub const FCNTL: Number = Number(SYS_fcntl);
    pub const MMAP: Number = Number(SYS_mmap);
    pub const MSYNC: Number = Number(SYS_msync);
    pub const NEWFSTATAT: Number = Number(SYS_newfstatat);
    pub const STATX: Number = Number(SYS_statx);
    pub const FACCESSAT2: Number = Number(SYS_faccessat2);
    pub const FUTEX: Number = Number(SYS_futex);
    pub const PROCESS_VM_READV: Number = Number(SYS_process_vm_readv);
    pub const PROCESS_VM_WRITEV: Number = Number(SYS_process_vm_writev);
    pub const RT_SIGPROCMASK: Number = Number(SYS_rt_sigprocmask);
    pub const SCHED_GETATTR: Number = Number(SYS_sched_getattr);
    pub const SCHED_SETATTR: Number = Number(SYS_sched_setattr);
}
