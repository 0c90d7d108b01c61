//! Programs that the kernel ends as soon as they ask it for a certain thing.

use std::process::Command;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW,
    SECCOMP_RET_KILL_PROCESS, SYS_ioctl, sock_filter,
};

use crate::sys;

/// Offsets in `struct seccomp_data`: the call, and the low word of its second argument.
const CALL: u32 = 0;
const REQUEST: u32 = if cfg!(target_endian = "big") { 28 } else { 24 };

/// Lets `command` run a program that dies by SIGSYS, with all its threads and children, when it gives
/// `ioctl` one of these requests.
pub fn forbid_ioctls(command: &mut Command, requests: &[libc::Ioctl]) {
    let step = |code: u32, k| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let unless = |k, skip| sock_filter { jf: skip, ..step(BPF_JMP | BPF_JEQ | BPF_K, k) };
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
