//! What the broker and the helper may not call, beside what the worker of a switch may not.
//!
//! The two have more to do than a worker. So their filters name what is refused: whatever could give back
//! privileges, start a program, reach into another process or the kernel, and, in the broker, all that the
//! helper is there for.

use std::{collections::BTreeMap, io};

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

/// Refused to both.
const REFUSED: [c_long; 68] = [
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_uselib,
    libc::SYS_personality,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
    // Users.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_chroot,
    // File systems.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // The kernel.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_memfd_secret,
    // Memory that others made, in which code may run.
    libc::SYS_shmget,
    libc::SYS_shmat,
];

/// Requests of `ioctl(2)` that put input into a terminal: into the one that the daemon was started from.
const TERMINAL_INPUT: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Of the number of a call: it is one of the x32 ABI (`asm/unistd.h`), which rules by number do not know.
const X32: u32 = 0x4000_0000;

/// What changes files or directories by name, refused to the helper.
const CHANGES_FILES: [c_long; 35] = [
    libc::SYS_creat,
    libc::SYS_truncate,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_rmdir,
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_chown,
    libc::SYS_fchown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_utimensat,
    libc::SYS_futimesat,
    463, // setxattrat
    466, // removexattrat
    469, // file_setattr
];

/// Flags of `open` with which a file can be written, or comes into being.
const WRITES: [u64; 5] = [
    libc::O_WRONLY as u64,
    libc::O_RDWR as u64,
    libc::O_ACCMODE as u64,
    libc::O_CREAT as u64,
    libc::O_TRUNC as u64,
];

/// Of `union bpf_attr`: what a process may do with the maps and links that it has.
const OWN_BPF: [u64; 7] = [
    1,  // BPF_MAP_LOOKUP_ELEM
    2,  // BPF_MAP_UPDATE_ELEM
    3,  // BPF_MAP_DELETE_ELEM
    15, // BPF_OBJ_GET_INFO_BY_FD
    29, // BPF_LINK_UPDATE
    34, // BPF_LINK_DETACH
    4,  // BPF_MAP_GET_NEXT_KEY
];

/// Sockets of the broker: its clients' and the helper's, by one of which the kernel is asked for the features of
/// interfaces, and one that hears of these. By none of them can a packet be sent.
const BROKER_FAMILIES: [u64; 2] = [libc::AF_UNIX as u64, libc::AF_NETLINK as u64];

/// Those of the helper, and the ones that it hands over.
const HELPER_FAMILIES: [u64; 4] =
    [libc::AF_UNIX as u64, libc::AF_NETLINK as u64, libc::AF_XDP as u64, libc::AF_PACKET as u64];

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

/// Refuses a call whose `argument` is none of these.
fn all_but(argument: u8, allowed: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let is_other = |value: &u64| condition(argument, SeccompCmpOp::Ne, *value);
    let conditions = allowed.iter().map(is_other).collect::<Result<_, _>>()?;
    Ok(vec![SeccompRule::new(conditions)?])
}

/// Refuses a call whose `argument` has all of `bits`, or, where these are to be there, has none.
fn by_bits(argument: u8, bits: u64, value: u64) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let condition = condition(argument, SeccompCmpOp::MaskedEq(bits), value)?;
    Ok(vec![SeccompRule::new(vec![condition])?])
}

/// Refuses `open` with any of [`WRITES`], whose flags are `argument`.
fn to_write(argument: u8) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let rules = WRITES.map(|bits| by_bits(argument, bits, bits));
    Ok(rules.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn common() -> Result<Rules, seccompiler::Error> {
    let mut rules: Rules = REFUSED.map(|call| (call, Vec::new())).into();
    let run = libc::PROT_EXEC as u64;
    for call in [libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_pkey_mprotect] {
        rules.insert(call, by_bits(2, run, run)?);
    }
    // Threads alone: a process would be out of the broker's hands.
    rules.insert(libc::SYS_clone, by_bits(0, libc::CLONE_THREAD as u64, 0)?);
    // Whether a process is there may be asked, and threads of this one interrupted.
    rules.insert(libc::SYS_kill, all_but(1, &[0])?);
    let own = rustix::process::getpid().as_raw_nonzero().get() as u64;
    rules.insert(libc::SYS_tgkill, all_but(0, &[own])?);
    let input = |request| -> Result<_, seccompiler::Error> {
        SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, request)?]).map_err(Into::into)
    };
    let input = TERMINAL_INPUT.into_iter().map(input).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, input);
    rules.insert(libc::SYS_fork, Vec::new());
    rules.insert(libc::SYS_vfork, Vec::new());
    Ok(rules)
}

/// What the launcher may not, and so none of those that it starts, each of which gives up more.
/// They are processes; what is theirs of the rest, setting up interfaces, it could do, too.
pub fn launcher() -> io::Result<()> {
    let rules = || -> Result<Rules, seccompiler::Error> {
        let mut rules = common()?;
        for call in [libc::SYS_clone, libc::SYS_fork, libc::SYS_vfork] {
            rules.remove(&call);
        }
        // By the number of a process that is another one in those it starts.
        rules.insert(libc::SYS_tgkill, Vec::new());
        refuse_service(&mut rules)?;
        Ok(rules)
    };
    refuse(rules().map_err(io::Error::other)?)
}

/// Refuses what takes a client, or a service: what has the privileges hears the broker alone.
fn refuse_service(rules: &mut Rules) -> Result<(), seccompiler::Error> {
    for call in [libc::SYS_connect, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4] {
        rules.insert(call, Vec::new());
    }
    rules.extend(CHANGES_FILES.map(|call| (call, Vec::new())));
    rules.insert(libc::SYS_open, to_write(1)?);
    rules.insert(libc::SYS_openat, to_write(2)?);
    rules.insert(libc::SYS_socket, all_but(0, &HELPER_FAMILIES)?);
    Ok(())
}

/// Applies a filter that refuses these with EPERM, and `clone3` and `openat2`, whose flags cannot be seen, as a
/// kernel does that has none: then libc calls `clone` and `openat`.
fn refuse(rules: Rules) -> io::Result<()> {
    let target = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let apply = |rules: Rules, errno: i32| -> io::Result<()> {
        let action = SeccompAction::Errno(errno as u32);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, target);
        let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)
    };
    apply(rules, libc::EPERM)?;
    let unseen = [libc::SYS_clone3, libc::SYS_openat2].map(|call| (call, Vec::new()));
    apply(unseen.into(), libc::ENOSYS)?;
    apply_filter(&x32_refused()).map_err(io::Error::other)
}

/// Refuses every call by a number of x32, whatever it is, where the kernel has such.
fn x32_refused() -> [sock_filter; 4] {
    let step = |code: u32, jf, k| sock_filter { code: code as u16, jt: 0, jf, k };
    [
        // The first word of `struct seccomp_data`.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Confines the calling thread, and those that it starts, to what the broker does.
pub fn broker() -> io::Result<()> {
    let rules = || -> Result<Rules, seccompiler::Error> {
        let mut rules = common()?;
        for call in [libc::SYS_setns, libc::SYS_unshare] {
            rules.insert(call, Vec::new());
        }
        rules.insert(libc::SYS_bpf, all_but(0, &OWN_BPF)?);
        let mut sockets = all_but(0, &BROKER_FAMILIES)?;
        // Of netlink the routes and links alone.
        let netlink = condition(0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64)?;
        let other = condition(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)?;
        sockets.push(SeccompRule::new(vec![netlink, other])?);
        rules.insert(libc::SYS_socket, sockets);
        // Other services would take its user id for root.
        rules.insert(libc::SYS_connect, Vec::new());
        Ok(rules)
    };
    refuse(rules().map_err(io::Error::other)?)
}

/// The same for the helper, which serves no client: it accepts no connection, and makes none. It writes no
/// file. (Landlock would see to that, too, but keep it from seeing who holds a program on an interface.)
pub fn helper() -> io::Result<()> {
    let rules = || -> Result<Rules, seccompiler::Error> {
        let mut rules = common()?;
        refuse_service(&mut rules)?;
        Ok(rules)
    };
    refuse(rules().map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::{fd::AsFd, unix::fs::PermissionsExt},
        process::{Command, id},
        thread,
    };

    use ringway_testkit::{Folder, is_root};
    use rustix::{
        io::{Errno, Result},
        net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with},
        process::{Pid, Signal, getpid, kill_process, test_kill_process},
        thread::{LinkNameSpaceType, move_into_link_name_space},
    };

    use super::*;
    use crate::sys;

    /// Runs `what` on a thread that is confined.
    fn confined<T: Send + 'static>(
        confine: fn() -> io::Result<()>,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let run = move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            confine().unwrap();
            what()
        };
        thread::spawn(run).join().unwrap()
    }

    fn socket_of(family: AddressFamily, kind: SocketType) -> Result<()> {
        socket_with(family, kind, SocketFlags::CLOEXEC, None).map(drop)
    }

    fn is_refused<T>(result: io::Result<T>) -> bool {
        result.is_err_and(|e| e.raw_os_error() == Some(libc::EPERM))
    }

    /// What neither may do, and whether it was refused.
    fn forbidden() -> Vec<(&'static str, bool)> {
        vec![
            ("execute", is_refused(Command::new("true").status())),
            ("process", is_refused(sys::fork_anyway())),
            ("signal", kill_process(getpid(), Signal::CONT) == Err(Errno::PERM)),
            ("others", kill_process(Pid::INIT, Signal::CONT) == Err(Errno::PERM)),
            ("code", sys::map_code() == Err(Errno::PERM)),
            ("mount", is_refused(sys::call(libc::SYS_mount))),
            ("trace", is_refused(sys::call(libc::SYS_ptrace))),
            ("module", is_refused(sys::call(libc::SYS_finit_module))),
            ("memory of others", is_refused(sys::call(libc::SYS_process_vm_readv))),
            ("user", is_refused(sys::call(libc::SYS_setresuid))),
            ("io_uring", is_refused(sys::call(libc::SYS_io_uring_setup))),
            ("code of others", is_refused(sys::call(libc::SYS_shmat))),
            ("x32", is_refused(sys::call(libc::SYS_getpid | c_long::from(X32)))),
            ("terminal", is_refused(sys::ioctl_of_nothing(libc::TIOCSTI))),
            ("console", is_refused(sys::ioctl_of_nothing(libc::TIOCLINUX))),
            // No such file: the kernel was asked.
            ("other requests", !is_refused(sys::ioctl_of_nothing(libc::FIONREAD))),
            ("UDP", socket_of(AddressFamily::INET, SocketType::DGRAM) == Err(Errno::PERM)),
        ]
    }

    #[test]
    fn the_broker_reaches_nothing_that_the_helper_is_for() {
        let done = confined(broker, || {
            let netns = File::open("/proc/self/ns/net").unwrap();
            let enter =
                || move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network));
            let mut done = forbidden();
            done.extend([
                ("enter", enter() == Err(Errno::PERM)),
                ("leave", sys::leave_netns() == Err(Errno::PERM)),
                ("AF_XDP", socket_of(AddressFamily::XDP, SocketType::RAW) == Err(Errno::PERM)),
                (
                    "AF_PACKET",
                    socket_of(AddressFamily::PACKET, SocketType::RAW) == Err(Errno::PERM),
                ),
                (
                    "AF_INET6",
                    socket_of(AddressFamily::INET6, SocketType::DGRAM) == Err(Errno::PERM),
                ),
            ]);
            let netfilter = Protocol::from_raw(12.try_into().unwrap());
            let (raw, cloexec) = (SocketType::RAW, SocketFlags::CLOEXEC);
            done.extend([
                ("services", is_refused(sys::call(libc::SYS_connect))),
                ("TCP", socket_of(AddressFamily::INET, SocketType::STREAM) == Err(Errno::PERM)),
                (
                    "netfilter",
                    socket_with(AddressFamily::NETLINK, raw, cloexec, Some(netfilter)).err()
                        == Some(Errno::PERM),
                ),
            ]);
            for (name, command) in [("map", 0), ("program", 5), ("link", 28), ("by id", 13)] {
                done.push((name, is_refused(sys::bpf_without_more(command))));
            }
            // What it goes on doing.
            let own = getpid();
            done.extend([
                ("thread", thread::spawn(id).join().is_ok()),
                ("alive", test_kill_process(own) == Ok(())),
                ("clients", socket_of(AddressFamily::UNIX, SocketType::SEQPACKET) == Ok(())),
                ("ethtool", socket_of(AddressFamily::UNIX, SocketType::DGRAM) == Ok(())),
                ("news", socket_of(AddressFamily::NETLINK, SocketType::RAW) == Ok(())),
                // No such map: the kernel was asked.
                ("own map", !is_refused(sys::bpf_without_more(2))),
            ]);
            done
        });
        for (what, is_so) in done {
            assert!(is_so, "{what}");
        }
    }

    #[test]
    fn the_launcher_starts_processes_and_nothing_else() {
        let folder = Folder::new();
        let file = folder.path().join("file");
        let done = confined(launcher, move || {
            let mut done = forbidden();
            done.retain(|(what, _)| *what != "process");
            done.extend([
                ("no process", sys::fork_anyway().is_ok()),
                ("signals to threads", is_refused(sys::call(libc::SYS_tgkill))),
                ("create", is_refused(File::create(&file))),
                ("connect", is_refused(sys::call(libc::SYS_connect))),
                ("listen", is_refused(sys::call(libc::SYS_listen))),
                ("AF_XDP", socket_of(AddressFamily::XDP, SocketType::RAW).is_ok() || !is_root()),
            ]);
            done
        });
        for (what, is_so) in done {
            assert!(is_so, "{what}");
        }
    }

    #[test]
    fn the_helper_serves_no_client() {
        let folder = Folder::new();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let done = confined(helper, move || {
            let mut done = forbidden();
            done.extend([
                ("write", is_refused(fs::write(&file, "y"))),
                ("append", is_refused(File::options().append(true).open(&file))),
                ("both", is_refused(File::options().read(true).write(true).open(&file))),
                ("create", is_refused(File::create(file.with_extension("new")))),
                ("remove", is_refused(fs::remove_file(&file))),
                ("rename", is_refused(fs::rename(&file, file.with_extension("new")))),
                ("mode", is_refused(fs::set_permissions(&file, PermissionsExt::from_mode(0o777)))),
                ("read", fs::read_to_string(&file).is_ok_and(|text| text == "x")),
            ]);
            done.extend([
                ("connect", is_refused(sys::call(libc::SYS_connect))),
                ("listen", is_refused(sys::call(libc::SYS_listen))),
                ("accept", is_refused(sys::call(libc::SYS_accept4))),
                (
                    "AF_INET6",
                    socket_of(AddressFamily::INET6, SocketType::DGRAM) == Err(Errno::PERM),
                ),
                ("thread", thread::spawn(id).join().is_ok()),
            ]);
            done
        });
        for (what, is_so) in done {
            assert!(is_so, "{what}");
        }
    }
}
