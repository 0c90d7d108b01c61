//! How many system calls a thread makes, by the kernel's own count: a tracepoint that is counted, and records nothing. See
//! `perf_event_open(2)`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// Where the kernel says which number the tracepoint has.
const NUMBERS: [&str; 2] = [
    "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
    "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
];

/// The first 64 bytes of `struct perf_event_attr`, which all kernels know.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

const TRACEPOINT: u32 = 2;

fn number() -> Option<u64> {
    NUMBERS.iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// The calls of a thread since it is counted.
pub struct Calls(File);

impl Calls {
    /// Whether the kernel has the tracepoint, and shows it.
    pub fn are_countable() -> bool {
        number().is_some()
    }

    /// Counts those of a process's first thread from now on.
    pub fn of(pid: u32) -> io::Result<Calls> {
        let missing =
            || io::Error::other("no tracefs: mount -t tracefs tracefs /sys/kernel/tracing");
        let attributes = Attributes {
            kind: TRACEPOINT,
            size: size_of::<Attributes>() as u32,
            config: number().ok_or_else(missing)?,
            ..Attributes::default()
        };
        let (any_cpu, no_group, close_on_exec) = (-1, -1, 8);
        // SAFETY: the kernel reads the attributes, alive during the call; the rest are numbers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                pid as libc::pid_t,
                any_cpu as libc::c_int,
                no_group as libc::c_int,
                close_on_exec as libc::c_ulong,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has made the descriptor, and nothing else has it.
        Ok(Calls(unsafe { File::from_raw_fd(fd as libc::c_int) }))
    }

    pub fn made(&mut self) -> io::Result<u64> {
        let mut number = [0; 8];
        self.0.read_exact(&mut number)?;
        Ok(u64::from_ne_bytes(number))
    }
}
