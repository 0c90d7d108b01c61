//! Programs that the kernel ends as soon as they ask it for a certain thing, or to which it seems to be an older one.

use std::process::Command;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SECCOMP_RET_KILL_PROCESS, SYS_bpf, SYS_ioctl, sock_filter,
};

use crate::sys;

/// Offsets in `struct seccomp_data`: the call, and the low words of its first arguments.
const CALL: u32 = 0;
const LOW: u32 = if cfg!(target_endian = "big") { 4 } else { 0 };
const COMMAND: u32 = 16 + LOW;
const REQUEST: u32 = 24 + LOW;

fn step(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Goes on where the value is `k`, else behind the next `skip` steps.
fn unless(k: u32, skip: u8) -> sock_filter {
    sock_filter { jf: skip, ..step(BPF_JMP | BPF_JEQ | BPF_K, k) }
}

/// `BPF_PROG_QUERY`: what kernels before 6.6 refuse for the hooks of tcx. The test's own look at those hooks finds
/// them empty.
const PROG_QUERY: u32 = 16;

fn without_tcx() -> Vec<sock_filter> {
    vec![
        step(BPF_LD | BPF_W | BPF_ABS, CALL),
        unless(SYS_bpf as u32, 3),
        step(BPF_LD | BPF_W | BPF_ABS, COMMAND),
        unless(PROG_QUERY, 1),
        step(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | libc::EINVAL as u32),
        step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    ]
}

/// Lets `command` run a program to which the kernel has no tcx, as before 6.6; so have its children.
pub fn forbid_tcx(command: &mut Command) {
    sys::confine(command, without_tcx());
}

/// The same of the calling thread, and of those that it starts.
pub fn forbid_tcx_here() {
    sys::confine_thread(&without_tcx()).expect("a filter of system calls is installed");
}

/// Lets `command` run a program that dies by SIGSYS, with all its threads and children, when it gives
/// `ioctl` one of these requests.
pub fn forbid_ioctls(command: &mut Command, requests: &[libc::Ioctl]) {
    let mut program = vec![
        step(BPF_LD | BPF_W | BPF_ABS, CALL),
        unless(SYS_ioctl as u32, 1 + 2 * requests.len() as u8),
        step(BPF_LD | BPF_W | BPF_ABS, REQUEST),
    ];
    for &request in requests {
        program
            .extend([unless(request as u32, 1), step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)]);
    }
    program.push(step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sys::confine(command, program);
}
