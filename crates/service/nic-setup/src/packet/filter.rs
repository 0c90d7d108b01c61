//! Which frames a socket listens to, as a classic BPF program (`Documentation/networking/filter.rst`).

use libc::{BPF_ABS, BPF_ALU, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_MOD, BPF_RET, BPF_SUB, BPF_W};

/// All of the frame, and nothing of it.
const KEEP: u32 = u32::MAX;
const LEAVE: u32 = 0;

/// Every frame without the mark `ignored` that came in by queue `queue` of `queues`.
///
/// The kernel notes the queue, counted from 1, where a driver tells it; 0 stands for the first, and a
/// number beyond the queues that were there for one of those.
pub fn program(queue: u32, queues: u32, ignored: u32) -> Vec<libc::sock_filter> {
    let mut program = vec![
        step(BPF_LD | BPF_W | BPF_ABS, (libc::SKF_AD_OFF + libc::SKF_AD_MARK) as u32),
        jump_if(ignored, 0, 1),
        step(BPF_RET | BPF_K, LEAVE),
    ];
    if queues > 1 {
        program.extend([
            step(BPF_LD | BPF_W | BPF_ABS, (libc::SKF_AD_OFF + libc::SKF_AD_QUEUE) as u32),
            jump_if(0, 2, 0),
            step(BPF_ALU | BPF_SUB | BPF_K, 1),
            step(BPF_ALU | BPF_MOD | BPF_K, queues),
            jump_if(queue, 1, 0),
            step(BPF_RET | BPF_K, LEAVE),
        ]);
    }
    program.push(step(BPF_RET | BPF_K, KEEP));
    program
}

fn step(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Goes on `yes` instructions further if the accumulator is `k`, else `no`.
fn jump_if(k: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: yes, jf: no, k }
}
