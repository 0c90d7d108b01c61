//! What a switch's worker can do: move packets between memory and sockets that it has, wait, and
//! close.
//!
//! It looks at more of what clients write than any other part. So its thread has no capability, and a
//! filter of system calls that lets it open nothing, make no socket, run nothing and end nothing. It
//! shares memory and descriptors with the broker: a process of its own would not, and would have to
//! be handed each region and each socket.

use std::{collections::BTreeMap, io};

use caps::CapSet;
use libc::{PROT_EXEC, SIGBUS, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// What it may call, with whatever arguments.
const ALLOWED: [c_long; 38] = [
    // Doorbells, and sockets of interfaces.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_preadv2,
    libc::SYS_io_submit,
    libc::SYS_io_getevents,
    libc::SYS_timerfd_settime,
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_getsockopt,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_poll,
    libc::SYS_ppoll,
    // A port that has gone.
    libc::SYS_close,
    libc::SYS_munmap,
    // Locks, time, and the processor that it is to run on.
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getaffinity,
    libc::SYS_gettid,
    libc::SYS_restart_syscall,
    // Its own memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_getrandom,
    // Its end.
    libc::SYS_exit,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_rseq,
];

/// What it may call for memory in which nothing runs: the third argument is the protection.
const NOT_EXECUTABLE: [c_long; 2] = [libc::SYS_mmap, libc::SYS_mprotect];

/// Of `linux/prctl.h`.
const PR_GET_AUXV: u64 = 0x4155_5856;

fn program() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<_, _> = ALLOWED.map(|call| (call, Vec::new())).into();
    for call in NOT_EXECUTABLE {
        let mask = SeccompCmpOp::MaskedEq(PROT_EXEC as u64);
        let runs_nothing = SeccompCondition::new(2, SeccompCmpArgLen::Dword, mask, 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![runs_nothing])?]);
    }
    // rustix asks the kernel once where the clock is (PR_GET_AUXV).
    let auxv = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PR_GET_AUXV)?;
    rules.insert(libc::SYS_prctl, vec![SeccompRule::new(vec![auxv])?]);
    // When frames of interfaces came, for monitors (SO_TIMESTAMPNS).
    let of = |at, value: i32| {
        SeccompCondition::new(at, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value as u64)
    };
    let times = vec![of(1, libc::SOL_SOCKET)?, of(2, libc::SO_TIMESTAMPNS)?];
    rules.insert(libc::SYS_setsockopt, vec![SeccompRule::new(times)?]);
    // Signal 0, which goes to no thread, tells whether the holder of a lock is there.
    let none = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 0)?;
    rules.insert(libc::SYS_kill, vec![SeccompRule::new(vec![none])?]);
    // A SIGBUS that is not of a region ends the process as if it had no handler: with the signal left as
    // it is, the instruction would fault for ever.
    let bus = SIGBUS as u64;
    let bus = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, bus)?;
    rules.insert(libc::SYS_rt_sigaction, vec![SeccompRule::new(vec![bus])?]);
    // A call that is refused is a bug, or an attack: neither is to end what serves others.
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let target = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, refused, SeccompAction::Allow, target)?.try_into()?)
}

/// Confines the calling thread, for good.
pub fn worker() -> io::Result<()> {
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    apply_filter(&program().map_err(io::Error::other)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, net::UdpSocket, process::Command, sync::mpsc, thread};

    use rustix::{
        io::Errno,
        process::{Pid, Signal, getpid, kill_process},
    };

    use super::*;

    /// Runs `what` on a thread that is confined as a worker is.
    fn confined<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
        let run = move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            worker().unwrap();
            what()
        };
        thread::spawn(run).join().unwrap()
    }

    #[test]
    fn a_worker_works() {
        let (answer, answered) = mpsc::channel();
        let sum = confined(move || {
            // Locks, memory, threads that are woken, a panic that is caught.
            let many: Vec<u64> = (0..1 << 20).collect();
            let caught = std::panic::catch_unwind(|| panic!("to be caught"));
            answer.send(caught.is_err()).unwrap();
            many.iter().sum::<u64>()
        });
        assert!(answered.recv().unwrap());
        assert_eq!(sum, (1 << 19) * ((1 << 20) - 1));
    }

    #[test]
    fn a_worker_reaches_nothing_else() {
        let refused = |e: io::Error| e.raw_os_error() == Some(libc::EPERM);
        let own = getpid();
        let done = confined(move || {
            [
                ("open", File::open("/dev/null").is_err_and(refused)),
                ("socket", UdpSocket::bind("127.0.0.1:0").is_err_and(refused)),
                ("execute", Command::new("true").status().is_err_and(refused)),
                ("thread", thread::Builder::new().spawn(|| ()).is_err_and(refused)),
                ("signal", kill_process(own, Signal::CONT) == Err(Errno::PERM)),
                ("others", kill_process(Pid::INIT, Signal::CONT) == Err(Errno::PERM)),
                ("code", crate::sys::map_code() == Err(Errno::PERM)),
            ]
        });
        for (what, is_refused) in done {
            assert!(is_refused, "{what}");
        }
    }
}
