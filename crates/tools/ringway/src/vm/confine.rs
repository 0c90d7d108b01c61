//! What this process gives up before it maps a guest's memory and reads what its monitor says.
//!
//! Both may be hostile. An attacker in this process has the rings of one port, one guest's memory, and the sockets that are
//! open: it opens no file, makes no socket that leads anywhere, starts nothing and reaches no other process. What takes more
//! than that, [others](super::outside) do.

use crate::error::{Error, Result};
use crate::output::note;
use caps::CapSet;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};
use std::collections::BTreeMap;
use std::io;

/// Whether the daemon's process has ended is read there.
const PROCESSES: &str = "/proc";

/// What it may call, with any arguments.
const ALLOWED: [c_long; 75] = [
    // The monitor, the daemon, the processes beside it, and doorbells.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_io_setup,
    libc::SYS_io_destroy,
    libc::SYS_io_submit,
    libc::SYS_io_getevents,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_lseek,
    // What a descriptor or a path is.
    libc::SYS_fstat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    // Its own memory, and files of others in it.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Locks, threads, time, and its user.
    libc::SYS_futex,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    libc::SYS_getrlimit,
    // Its end.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_sysinfo,
];

/// Of `fcntl(2)`: nothing by which a descriptor sends signals.
const FCNTL: [libc::c_int; 8] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GET_SEALS,
    libc::F_ADD_SEALS,
];

/// Of `ioctl(2)`: whether standard output is a terminal, and how sockets wait.
const IOCTL: [u64; 4] = [libc::TCGETS, libc::TIOCGWINSZ, libc::FIONBIO, libc::FIONREAD];

/// Of `prctl(2)`: names of threads and of memory, and what the kernel told the process at its start.
const PRCTL: [u64; 3] = [libc::PR_SET_NAME as u64, libc::PR_SET_VMA as u64, 0x4155_5856];

/// Flags of `open` with which a file can be written, or comes into being.
const WRITES: u64 =
    (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;

/// The kind in the second argument of `socketpair(2)`; the rest are flags.
const KIND: u64 = 0xf;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Confines the process, for good.
///
/// # Errors
/// Those of `capset(2)`, `landlock(7)` and `seccomp(2)`. A kernel without landlock is none: the user is told.
pub fn confine() -> Result<()> {
    let confined = confine_all().map_err(|source| Error::System { what: "confining", source })?;
    if !confined {
        note(
            "the kernel has no landlock: a guest that takes this process over could read files that its user can read \
             (CONFIG_SECURITY_LANDLOCK, and landlock in lsm=)",
        );
    }
    Ok(())
}

/// False: without landlock.
fn confine_all() -> io::Result<bool> {
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        // Where there is none, a service manager may have refused the call.
        if !caps::read(None, set).map_err(io::Error::other)?.is_empty() {
            caps::clear(None, set).map_err(io::Error::other)?;
        }
    }
    let has_landlock = restrict_files().map_err(io::Error::other)?;
    filter_calls()?;
    Ok(has_landlock)
}

/// By landlock, what the calls that stay are kept from: files, but for reading about processes; TCP; sockets and processes of
/// others. It sets `no_new_privs` as well.
fn restrict_files() -> std::result::Result<bool, RulesetError> {
    let abi = ABI::V10;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?;
    // What is not there cannot be reached either.
    if let Ok(processes) = PathFd::new(PROCESSES) {
        ruleset = ruleset.add_rule(PathBeneath::new(processes, AccessFs::ReadFile))?;
    }
    Ok(ruleset.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Refuses all other calls, of all threads, with EPERM, as the daemon's workers have it: a call that is refused is a bug or an
/// attack, and frames go on. `clone3`, whose flags cannot be seen, does not exist: then libc calls `clone`.
fn filter_calls() -> io::Result<()> {
    let errno = |number: i32| SeccompAction::Errno(number as u32);
    let unseen = [(libc::SYS_clone3, Vec::new())].into();
    // The last one: it refuses any further filter.
    apply(Ok(unseen), SeccompAction::Allow, errno(libc::ENOSYS))?;
    apply(allowed(), errno(libc::EPERM), SeccompAction::Allow)
}

fn apply(
    rules: std::result::Result<Rules, seccompiler::Error>,
    others: SeccompAction,
    these: SeccompAction,
) -> io::Result<()> {
    let program = || -> std::result::Result<BpfProgram, seccompiler::Error> {
        let target = std::env::consts::ARCH.try_into()?;
        Ok(SeccompFilter::new(rules?, others, these, target)?.try_into()?)
    };
    apply_filter_all_threads(&program().map_err(io::Error::other)?).map_err(io::Error::other)
}

fn allowed() -> std::result::Result<Rules, seccompiler::Error> {
    use SeccompCmpOp::{Eq, MaskedEq};
    let is = |argument, operator, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    };
    let mut rules: Rules = ALLOWED.map(|call| (call, Vec::new())).into();
    // A rule is a list of conditions that hold together.
    let mut allow = |call, conditions| -> std::result::Result<(), seccompiler::Error> {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok(())
    };
    // Memory in which nothing runs.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        allow(call, vec![is(2, MaskedEq(libc::PROT_EXEC as u64), 0)?])?;
    }
    allow(libc::SYS_open, vec![is(1, MaskedEq(WRITES), 0)?])?;
    allow(libc::SYS_openat, vec![is(2, MaskedEq(WRITES), 0)?])?;
    // Such a pair cannot send to an address, as one of datagrams could.
    let pair = MaskedEq(KIND);
    let of_unix = is(0, Eq, libc::AF_UNIX as u64)?;
    allow(libc::SYS_socketpair, vec![of_unix, is(1, pair, libc::SOCK_SEQPACKET as u64)?])?;
    let thread = libc::CLONE_THREAD as u64;
    allow(libc::SYS_clone, vec![is(0, MaskedEq(thread), thread)?])?;
    // Whether a process is there; and abort(3), of this process alone.
    allow(libc::SYS_kill, vec![is(1, Eq, 0)?])?;
    allow(libc::SYS_tgkill, vec![is(0, Eq, std::process::id().into())?])?;
    // Where the kernel finds the locks of a thread that has died: of this one.
    allow(libc::SYS_get_robust_list, vec![is(0, Eq, 0)?])?;
    // Limits are read.
    let unset = SeccompCondition::new(2, SeccompCmpArgLen::Qword, Eq, 0)?;
    allow(libc::SYS_prlimit64, vec![unset])?;
    for command in FCNTL {
        allow(libc::SYS_fcntl, vec![is(1, Eq, command as u64)?])?;
    }
    for request in IOCTL {
        allow(libc::SYS_ioctl, vec![is(1, Eq, request)?])?;
    }
    for option in PRCTL {
        allow(libc::SYS_prctl, vec![is(0, Eq, option)?])?;
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{map_code, raw_call, raw_call_of};
    use ringway_testkit::{Folder, skip_unless};
    use rustix::io::Errno;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::{Signal, getpid, getppid, kill_process, test_kill_process};
    use std::fs::{self, File};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::thread;

    /// Set for the process that is to be confined.
    const CONFINED: &str = "RINGWAY_TEST_CONFINED";
    const TEST: &str = "vm::confine::tests::a_confined_process_reaches_nothing";

    fn is<T>(errno: Errno, result: io::Result<T>) -> bool {
        result.is_err_and(|e| e.raw_os_error() == Some(errno.raw_os_error()))
    }

    /// Runs a part of a test in a process that has no other tests, and may be confined.
    fn in_own_process(test: &str, run: impl FnOnce()) {
        if std::env::var_os(CONFINED).is_some() {
            return run();
        }
        let mut own = Command::new(std::env::current_exe().unwrap());
        let output =
            own.args(["--exact", test, "--nocapture"]).env(CONFINED, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}\n{why}");
    }

    #[test]
    fn a_confined_process_reaches_nothing() {
        in_own_process(TEST, probe);
    }

    /// Panics, which ends with another status, where something is not as it should be.
    fn probe() {
        let folder = Folder::new();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let (own, parent) = (getpid(), getppid().unwrap());
        let (perm, access) = (Errno::PERM, Errno::ACCESS);
        let has_landlock = confine_all().unwrap();
        let pair = |kind| socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        let new = path.with_extension("new");
        let mut done = vec![
            ("write", is(perm, fs::write(&path, "x"))),
            ("create", is(perm, File::create(&new))),
            ("remove", is(perm, fs::remove_file(&path))),
            ("rename", is(perm, fs::rename(&path, &new))),
            ("services", is(perm, UnixStream::connect(&path))),
            ("serve", is(perm, UnixListener::bind(&new))),
            ("datagrams", is(perm, UnixDatagram::unbound())),
            ("pair of datagrams", pair(SocketType::DGRAM).err() == Some(perm)),
            ("connect", is(perm, TcpStream::connect("127.0.0.1:9"))),
            ("listen", is(perm, TcpListener::bind("127.0.0.1:0"))),
            ("execute", is(perm, Command::new("true").status())),
            ("signal", kill_process(own, Signal::CONT) == Err(perm)),
            ("others", kill_process(parent, Signal::CONT) == Err(perm)),
            ("code", map_code() == Err(perm)),
        ];
        let calls = [
            ("trace", libc::SYS_ptrace),
            ("memory of others", libc::SYS_process_vm_readv),
            ("programs in the kernel", libc::SYS_bpf),
            ("mount", libc::SYS_mount),
            ("namespaces", libc::SYS_unshare),
            ("faults", libc::SYS_userfaultfd),
            ("io_uring", libc::SYS_io_uring_setup),
            ("keys", libc::SYS_add_key),
            ("more rights", libc::SYS_setresuid),
            ("x32", libc::SYS_getpid | 0x4000_0000),
        ];
        done.extend(calls.map(|(what, call)| (what, is(perm, raw_call(call)))));
        // What it goes on doing.
        let status = thread::spawn(|| fs::read_to_string("/proc/thread-self/status")).join();
        let status = status.unwrap().unwrap();
        let zero = |set| status.contains(&format!("{set}:\t0000000000000000\n"));
        done.extend([
            ("filter", status.contains("Seccomp:\t2\n")),
            ("no new rights", status.contains("NoNewPrivs:\t1\n")),
            ("no rights", zero("CapPrm") && zero("CapEff") && zero("CapInh")),
            ("requests", pair(SocketType::SEQPACKET).is_ok()),
            ("alive", test_kill_process(own) == Ok(())),
            ("room", listener.set_nonblocking(true).is_ok()),
            // No place for the answer: the kernel was asked.
            ("locks", is(Errno::FAULT, raw_call_of(libc::SYS_get_robust_list, 0))),
        ]);
        let tasks = fs::read_dir("/proc/self/task").is_err();
        if !skip_unless(has_landlock, TEST, "the kernel has no landlock") {
            // Calls that the filter lets pass.
            done.extend([
                ("users", is(access, fs::read("/etc/passwd"))),
                ("folders", tasks),
                ("own program", is(access, File::open("/proc/self/exe"))),
            ]);
        }
        for (what, is_so) in done {
            assert!(is_so, "{what}");
        }
    }

    /// All threads, those too that there were before.
    #[test]
    fn the_filter_is_of_all_threads() {
        const TEST: &str = "vm::confine::tests::the_filter_is_of_all_threads";
        in_own_process(TEST, || {
            let (start, started) = channel();
            let before = thread::spawn(move || {
                started.recv().unwrap();
                UnixDatagram::unbound()
            });
            confine_all().unwrap();
            start.send(()).unwrap();
            assert!(is(Errno::PERM, before.join().unwrap()));
        });
    }
}
