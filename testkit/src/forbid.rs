//! Programs that the kernel ends as soon as they ask it for a certain thing.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW,
    SECCOMP_RET_KILL_PROCESS, SYS_ioctl, sock_filter, sock_fprog,
};

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
    let install = move || {
        let (len, filter) = (program.len() as u16, program.as_ptr().cast_mut());
        let program = sock_fprog { len, filter };
        // SAFETY: the kernel reads `program` and the steps that it names, alive during the call.
        let result = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec it makes two system calls on memory that was made before.
    unsafe { command.pre_exec(install) };
}
