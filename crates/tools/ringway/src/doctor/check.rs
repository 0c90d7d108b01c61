//! The checks: pure functions from what was found to a verdict and a remedy.

use serde::Serialize;
use std::fmt;
use std::io;
use std::path::Path;

use ringway::{NameConflict, SocketPath, connect_remedy};

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Works, with a drawback.
    Warning,
    Missing,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Missing => "missing",
        })
    }
}

/// What breaks when it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// Pipes and VALE switches, and so all the rest.
    Everything,
    /// NIC ports.
    Nics,
    /// Nothing of its own.
    Information,
}

/// The result of looking at one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Check {
    pub name: String,
    pub level: Level,
    pub need: Need,
    pub detail: String,
    /// One sentence. None if and only if the level is ok.
    pub remedy: Option<String>,
}

impl Check {
    pub fn ok(need: Need, name: &str, detail: impl Into<String>) -> Check {
        Check { name: name.into(), level: Level::Ok, need, detail: detail.into(), remedy: None }
    }

    pub fn warning(need: Need, name: &str, detail: impl Into<String>, remedy: &str) -> Check {
        let remedy = Some(remedy.into());
        Check { level: Level::Warning, remedy, ..Check::ok(need, name, detail) }
    }

    pub fn missing(need: Need, name: &str, detail: impl Into<String>, remedy: &str) -> Check {
        let remedy = Some(remedy.into());
        Check { level: Level::Missing, remedy, ..Check::ok(need, name, detail) }
    }

    pub fn breaks_everything(&self) -> bool {
        self.level == Level::Missing && self.need == Need::Everything
    }

    /// Cause and remedy in one piece.
    pub fn sentence(&self) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}: {}: {remedy}", self.name, self.detail),
            None => format!("{}: {}", self.name, self.detail),
        }
    }
}

/// Major and minor version of a kernel release such as `6.1.0-18-amd64`.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// XDP links, without which an XDP program would outlive its owner.
const XDP_LINKS: (u32, u32) = (5, 9);
/// The rings of a bound AF_XDP socket can be mapped, which a program that is given one needs.
const XDP_FOR_PROGRAMS: (u32, u32) = (6, 4);

pub fn kernel(release: &str) -> Check {
    let name = "kernel";
    match version(release) {
        None => Check::warning(
            Need::Nics,
            name,
            format!("unknown release `{release}`"),
            "use a Linux kernel of 5.9 or later",
        ),
        Some(version) if version < XDP_LINKS => Check::missing(
            Need::Nics,
            name,
            format!("{release} has no XDP links, so no NIC ports"),
            "use a kernel of 5.9 or later for NIC ports",
        ),
        Some(version) if version < XDP_FOR_PROGRAMS => Check::warning(
            Need::Nics,
            name,
            format!(
                "{release} passes no AF_XDP socket to a program, so ports of interfaces are in packet mode"
            ),
            "use a kernel of 6.4 or later for AF_XDP",
        ),
        Some(_) => Check::ok(Need::Nics, name, release),
    }
}

/// SO_PEERPIDFD, by which a system daemon knows which process has connected.
const ROOT_IS_KNOWN: (u32, u32) = (6, 5);

/// What root has of a system daemon; nothing where that is all.
pub fn root(release: &str) -> Option<Check> {
    version(release).filter(|version| *version < ROOT_IS_KNOWN)?;
    Some(Check::warning(
        Need::Nics,
        "root",
        format!(
            "with {release} a system daemon takes no user for root, so root has no interfaces there"
        ),
        "list `root` in nic_users of its configuration, which gives them to root of containers too; or use a \
         kernel of 6.5 or later",
    ))
}

/// A system call that every kernel in use has, unless a sandbox forbids it.
pub fn call(need: Need, name: &str, what: &str, result: &io::Result<()>) -> Check {
    match result {
        Ok(()) => Check::ok(need, name, what),
        Err(error) => Check::missing(
            need,
            name,
            format!("{what}: {error}"),
            "allow it in the container's or service's seccomp profile and limits",
        ),
    }
}

pub fn daemon_program(found: Option<&Path>) -> Check {
    let name = "ringwayd";
    match found {
        Some(path) => Check::ok(Need::Everything, name, path.display().to_string()),
        None => Check::missing(
            Need::Everything,
            name,
            "not found beside ringway nor in PATH",
            "run `make build`, or put ringwayd beside the ringway executable",
        ),
    }
}

/// Whether the daemon that programs look for answers. Only one of their own is started for them, where that
/// `private` directory is good for it.
pub fn daemon_running(
    place: &SocketPath,
    answer: &io::Result<()>,
    private: &Result<(), String>,
) -> Check {
    let name = "daemon";
    let whose = match place {
        SocketPath::Named(_) => "the one that RINGWAY_SOCKET names",
        SocketPath::System(_) => "the system's",
        SocketPath::Private { .. } => "your own",
    };
    let at = format!("{whose}, at {}", place.socket().display());
    if let Err(problem) = private {
        let (problem, remedy) = problem.split_once("; ").unwrap_or((problem, "remove it"));
        return Check::missing(Need::Everything, name, problem, remedy);
    }
    match (answer, place) {
        (Ok(()), _) => Check::ok(Need::Information, name, at),
        (Err(_), SocketPath::Private { .. }) => {
            let detail = "none runs; the first port opened, or a command that asks for ports, starts a private one";
            Check::ok(Need::Information, name, detail)
        }
        (Err(error), _) => Check::missing(
            Need::Everything,
            name,
            format!("{at}, cannot be reached: {error}"),
            connect_remedy(error),
        ),
    }
}

/// That the daemon runs, and cannot do all that it could.
pub fn degraded(how: &str) -> Check {
    Check::warning(
        Need::Nics,
        "daemon",
        how,
        "restart it, when it suits the programs that have ports open",
    )
}

/// Whether the daemon, which is not this user's own, opens interfaces for this user.
pub fn granted(granted: bool) -> Check {
    let name = "interfaces";
    if granted {
        return Check::ok(Need::Nics, name, "the daemon opens them for you");
    }
    Check::missing(
        Need::Nics,
        name,
        "the daemon opens for you at most those that a [[grant]] names",
        "ask its operator to add you to nic_users in its configuration, or to a [[grant]] of an \
         interface",
    )
}

pub fn af_xdp(result: &io::Result<()>) -> Check {
    let name = "AF_XDP";
    let errno = result.as_ref().err().and_then(io::Error::raw_os_error);
    match (result, errno) {
        (Ok(()), _) => Check::ok(Need::Nics, name, "sockets can be made"),
        (Err(_), Some(libc::EPERM)) => Check::missing(
            Need::Nics,
            name,
            "sockets need CAP_NET_RAW",
            "run as root, or join the group of a system daemon",
        ),
        (Err(_), Some(libc::EAFNOSUPPORT)) => Check::missing(
            Need::Nics,
            name,
            "not in this kernel",
            "use a kernel built with CONFIG_XDP_SOCKETS=y",
        ),
        (Err(error), _) => Check::missing(
            Need::Nics,
            name,
            error.to_string(),
            "allow AF_XDP sockets in the container's or service's seccomp profile",
        ),
    }
}

/// Bit and name of the capabilities that a daemon with NICs uses.
const NIC_CAPABILITIES: [(u32, &str); 3] =
    [(13, "CAP_NET_RAW"), (12, "CAP_NET_ADMIN"), (39, "CAP_BPF")];
const CAP_SYS_ADMIN: u32 = 21;
const CAP_IPC_LOCK: u32 = 14;

/// The effective capabilities in the text of `/proc/self/status`.
fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn holds(status: &str, capability: u32) -> bool {
    effective(status).is_some_and(|held| held >> capability & 1 == 1)
}

pub fn capabilities(status: &str) -> Check {
    let name = "capabilities";
    // CAP_SYS_ADMIN includes CAP_BPF (capabilities(7)).
    let lacking: Vec<_> = NIC_CAPABILITIES
        .iter()
        .filter(|(bit, name)| {
            !(holds(status, *bit) || *name == "CAP_BPF" && holds(status, CAP_SYS_ADMIN))
        })
        .map(|(_, name)| *name)
        .collect();
    if lacking.is_empty() {
        return Check::ok(Need::Nics, name, "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF are held");
    }
    Check::missing(
        Need::Nics,
        name,
        format!("a private daemon could not open NICs without {}", lacking.join(", ")),
        "run as root, run `setcap cap_net_raw,cap_net_admin,cap_bpf+ep` on ringwayd, or join the \
         group of a system daemon",
    )
}

/// What `/proc/self/uid_map` says in the first user namespace: all users are themselves.
fn is_first_user_namespace(uid_map: &str) -> bool {
    uid_map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

/// BPF maps, which the programs that fetch an interface's frames need.
pub fn bpf(result: &io::Result<()>, uid_map: &str) -> Check {
    let name = "BPF";
    let Err(error) = result else { return Check::ok(Need::Nics, name, "maps can be made") };
    if error.raw_os_error() != Some(libc::EPERM) {
        return Check::missing(
            Need::Nics,
            name,
            format!("maps cannot be made: {error}"),
            "use a kernel built with CONFIG_BPF_SYSCALL=y and CONFIG_XDP_SOCKETS=y, and allow bpf() \
             in the container's or service's seccomp profile",
        );
    }
    if !is_first_user_namespace(uid_map) {
        return Check::missing(
            Need::Nics,
            name,
            "capabilities of a user namespace do not reach it",
            "start ringwayd outside of the user namespace, and pass its socket in: RINGWAY_SOCKET",
        );
    }
    Check::missing(
        Need::Nics,
        name,
        "maps need CAP_BPF and CAP_NET_ADMIN",
        "run as root, or join the group of a system daemon",
    )
}

/// Locked memory that one region of ordinary size takes, in bytes.
const REGION: u64 = 64 << 20;

/// `limit` is RLIMIT_MEMLOCK in bytes; None: no limit.
pub fn memlock(limit: Option<u64>, status: &str) -> Check {
    let name = "memlock";
    match limit {
        None => Check::ok(Need::Nics, name, "no limit"),
        Some(bytes) if holds(status, CAP_IPC_LOCK) => {
            Check::ok(Need::Nics, name, format!("{} KiB, which CAP_IPC_LOCK lifts", bytes >> 10))
        }
        Some(bytes) if bytes >= REGION => {
            Check::ok(Need::Nics, name, format!("{} MiB", bytes >> 20))
        }
        Some(bytes) => Check::warning(
            Need::Nics,
            name,
            format!("{} KiB may be too little for NIC buffers", bytes >> 10),
            "run `ulimit -l unlimited` as root, or set LimitMEMLOCK=infinity for the service",
        ),
    }
}

/// One number of `/proc/meminfo`.
fn meminfo_value(meminfo: &str, key: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Hugepages are good to know about, and needed for nothing.
pub fn hugepages(meminfo: &str) -> Check {
    let value = |key| meminfo_value(meminfo, key);
    let detail = match (value("HugePages_Total"), value("HugePages_Free"), value("Hugepagesize")) {
        (Some(total @ 1..), Some(free), Some(kib)) => {
            format!("{free} of {total} pages of {kib} KiB are free")
        }
        _ => "none reserved, none needed".into(),
    };
    Check::ok(Need::Information, "hugepages", detail)
}

pub fn tun(result: &io::Result<()>) -> Check {
    let name = "tun/tap";
    match result {
        Ok(()) => Check::ok(Need::Information, name, "/dev/net/tun can be opened"),
        Err(error) => Check::warning(
            Need::Information,
            name,
            format!("/dev/net/tun: {error}"),
            "run `modprobe tun`, or pass the device into the container, to use tap interfaces",
        ),
    }
}

/// Whether users asked for names that others have, or that are reserved for others; nothing if none
/// did.
pub fn names(conflicts: &[NameConflict]) -> Option<Check> {
    let sentence = |conflict: &NameConflict| {
        let NameConflict { name, asked_by, count, seconds_ago, .. } = conflict;
        let why = match (&conflict.reserved, conflict.owner) {
            (Some(pattern), _) => format!("is reserved by `{pattern}`, and not for all"),
            (None, Some(owner)) => format!("is user {owner}'s"),
            (None, None) => "is for others".into(),
        };
        format!(
            "{name} {why}; user {asked_by} asked for it {count} times, last {seconds_ago} s ago"
        )
    };
    let sentences: Vec<_> = conflicts.iter().map(sentence).collect();
    let remedy = "agree on names, or have the operator reserve them for their users: [[reserve]] in ringwayd(8)";
    let detail = sentences.join(". ");
    (!conflicts.is_empty()).then(|| Check::warning(Need::Information, "names", detail, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "\
MemTotal:       16303360 kB
HugePages_Total:      64
HugePages_Free:       60
HugePages_Rsvd:        0
Hugepagesize:       2048 kB
";

    fn status(capabilities: u64) -> String {
        format!(
            "Name:\tcat\nCapPrm:\t0000000000000000\nCapEff:\t{capabilities:016x}\nSeccomp:\t0\n"
        )
    }

    fn error(errno: i32) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn kernel_versions() {
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("5.15.0"), Some((5, 15)));
        assert_eq!(version("6.18-rc1"), Some((6, 18)));
        assert_eq!(version("six"), None);
        assert_eq!(kernel("5.4.0").level, Level::Missing);
        assert_eq!(kernel("6.1.0-18-amd64").level, Level::Warning);
        assert_eq!(kernel("6.4.0").level, Level::Ok);
        assert_eq!(kernel("?").level, Level::Warning);
        assert_eq!(root("6.1.0-18-amd64").map(|check| check.level), Some(Level::Warning));
        assert!(root("6.5.0").is_none() && root("?").is_none());
    }

    #[test]
    fn only_what_pipes_need_breaks_everything() {
        assert!(
            call(Need::Everything, "events", "eventfd", &error(libc::EPERM)).breaks_everything()
        );
        assert!(daemon_program(None).breaks_everything());
        assert!(!kernel("4.0.0").breaks_everything());
        assert!(!af_xdp(&error(libc::EPERM)).breaks_everything());
        assert!(!capabilities(&status(0)).breaks_everything());
    }

    #[test]
    fn a_refused_af_xdp_socket_is_told_from_a_kernel_without() {
        let remedy = |errno| af_xdp(&error(errno)).remedy.unwrap();
        assert!(remedy(libc::EPERM).contains("root"));
        assert!(remedy(libc::EAFNOSUPPORT).contains("CONFIG_XDP_SOCKETS"));
        assert!(remedy(libc::EACCES).contains("seccomp"));
        assert_eq!(af_xdp(&Ok(())).level, Level::Ok);
    }

    #[test]
    fn capabilities_are_named_when_they_lack() {
        let all = 1 << 12 | 1 << 13 | 1 << 39;
        assert_eq!(capabilities(&status(all)).level, Level::Ok);
        assert_eq!(capabilities(&status(1 << 12 | 1 << 13 | 1 << 21)).level, Level::Ok);
        let lacking = capabilities(&status(1 << 12));
        assert_eq!(lacking.level, Level::Missing);
        assert!(lacking.detail.ends_with("without CAP_NET_RAW, CAP_BPF"), "{}", lacking.detail);
        assert_eq!(capabilities("no such line").level, Level::Missing);
    }

    #[test]
    fn bpf_without_privileges_is_told_from_bpf_in_a_user_namespace() {
        let first = "         0          0 4294967295\n";
        let own = "         0       1000          1\n";
        assert_eq!(bpf(&Ok(()), own).level, Level::Ok);
        let remedy = |errno, map| bpf(&error(errno), map).remedy.unwrap();
        assert!(remedy(libc::EPERM, first).contains("join the group"));
        assert!(remedy(libc::EPERM, own).contains("outside of the user namespace"));
        assert!(remedy(libc::ENOSYS, own).contains("CONFIG_BPF_SYSCALL"));
    }

    #[test]
    fn who_has_a_daemon_is_told_what_that_does() {
        assert_eq!(granted(true).level, Level::Ok);
        let refused = granted(false);
        assert!(refused.level == Level::Missing && !refused.breaks_everything());
        assert!(refused.remedy.unwrap().contains("nic_users"));
    }

    #[test]
    fn memlock_counts_only_without_ipc_lock() {
        assert_eq!(memlock(None, &status(0)).level, Level::Ok);
        assert_eq!(memlock(Some(8 << 20), &status(0)).level, Level::Warning);
        assert_eq!(memlock(Some(8 << 20), &status(1 << 14)).level, Level::Ok);
        assert_eq!(memlock(Some(REGION), &status(0)).level, Level::Ok);
    }

    #[test]
    fn hugepages_from_meminfo() {
        assert_eq!(meminfo_value(MEMINFO, "HugePages_Total"), Some(64));
        assert_eq!(meminfo_value(MEMINFO, "HugePages"), None);
        assert_eq!(hugepages(MEMINFO).detail, "60 of 64 pages of 2048 KiB are free");
        assert_eq!(hugepages("HugePages_Total: 0\n").detail, "none reserved, none needed");
        assert_eq!(hugepages("").level, Level::Ok);
    }

    #[test]
    fn only_a_daemon_of_ones_own_may_be_missing() {
        let there = SocketPath::Named("/b".into());
        let found = daemon_running(&there, &Ok(()), &Ok(()));
        assert_eq!(found.detail, "the one that RINGWAY_SOCKET names, at /b");
        let own = SocketPath::Private { dir: "/c".into() };
        let found = daemon_running(&own, &error(libc::ENOENT), &Ok(()));
        assert!(found.level == Level::Ok && found.detail.contains("starts a private one"));
        for (errno, remedy) in [
            (libc::EACCES, "join the group"),
            (libc::ECONNREFUSED, "start it again"),
            (libc::ENOENT, "RINGWAY_SOCKET"),
        ] {
            let found = daemon_running(&SocketPath::System("/a".into()), &error(errno), &Ok(()));
            assert!(found.breaks_everything() && found.detail.contains("the system's, at /a"));
            assert!(found.remedy.unwrap().contains(remedy));
        }
    }
}
