//! Whether a daemon runs at a socket, found without a connection: systemd would start one for that.
//!
//! The kernel lists the sockets of a network namespace, each at the path that its program gave. A daemon may be in
//! another namespace, and have spelled the path by another symbolic link, so each daemon's own list is read, and files
//! are compared. Of another user's processes only texts are: stat(2) may never return from a path of theirs.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use crate::config::DEFAULT_PATH;

/// The name of the daemon's process.
const NAME: &str = "ringwayd";

/// The sockets of this process's network namespace.
const SOCKETS: &str = "/proc/net/unix";

/// A process that listens at sockets.
struct Listening {
    pid: u32,
    /// Its file system, as this process reaches it, if it is this user's process.
    root: Option<PathBuf>,
    sockets: Vec<String>,
}

/// The daemon that listens at a socket, by its process's number; also after it was killed, as long as a thread of it
/// keeps the socket open. Of processes that may not be looked at it is not known: then none does.
pub fn running_at(socket: &Path) -> Option<u32> {
    listener(socket, NAME)
}

/// The daemon that was started with the configuration at that path: its process's number, and where it listens.
pub fn running_with(config: &Path) -> Option<(u32, PathBuf)> {
    let has_it = |daemon: &Listening| {
        let line = fs::read(format!("/proc/{}/cmdline", daemon.pid)).unwrap_or_default();
        is_started_with(&line, config)
    };
    let daemon = processes(NAME).find(has_it)?;
    Some((daemon.pid, daemon.sockets.first()?.into()))
}

/// Whether a command line, with a zero behind each argument, is that of a daemon with the configuration at that path.
fn is_started_with(line: &[u8], config: &Path) -> bool {
    let mut arguments = line.split(|byte| *byte == 0).map(OsStr::from_bytes).skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_bytes() {
            b"--private" => return false,
            b"--config" => return arguments.next() == Some(config.as_os_str()),
            other => {
                if let Some(path) = other.strip_prefix(b"--config=") {
                    return OsStr::from_bytes(path) == config;
                }
            }
        }
    }
    config == Path::new(DEFAULT_PATH)
}

/// Whether a program listens at that path for connections that are none of the daemon's kind.
pub fn is_of_another_program(socket: &Path) -> bool {
    /// `SOCK_SEQPACKET`.
    const DAEMONS: u32 = 5;
    let canonical = socket.canonicalize().ok();
    let is_it = |path: &str| [Some(socket), canonical.as_deref()].contains(&Some(Path::new(path)));
    let sockets = fs::read_to_string(SOCKETS).unwrap_or_default();
    let mut sockets = sockets.lines().filter_map(Socket::parse);
    sockets.any(|socket| socket.listens && socket.kind != DAEMONS && is_it(socket.path))
}

/// The process of that name that listens at a socket. The service manager listens at some, too.
fn listener(socket: &Path, name: &str) -> Option<u32> {
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let there = file(socket)?;
    let is_there = |process: &Listening| {
        process.sockets.iter().any(|path| match &process.root {
            Some(root) => file(&root.join(path.trim_start_matches('/'))) == Some(there),
            None => Path::new(path) == socket,
        })
    };
    processes(name).find(is_there).map(|process| process.pid)
}

/// The processes of that name that listen somewhere.
fn processes(name: &str) -> impl Iterator<Item = Listening> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    // Beside other files, such as `self`.
    let processes = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    processes.filter_map(move |pid: u32| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let its_name = fs::read_to_string(process.join("comm")).ok()?;
        if its_name.trim_end() != name {
            return None;
        }
        let is_own = fs::metadata(&process).is_ok_and(|it| it.uid() == geteuid().as_raw());
        // They share what they have open, except that the first thread of a killed process has nothing more.
        let tasks = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        let (task, open) = tasks
            .map(|task| (task.path(), sockets_of(&task.path())))
            .find(|it| !it.1.is_empty())?;
        let lists = [Path::new(SOCKETS), &task.join("net/unix")].map(fs::read_to_string);
        let sockets =
            lists.iter().flatten().flat_map(|list| list.lines()).filter_map(Socket::parse);
        let sockets = sockets.filter(|socket| socket.listens && open.contains(&socket.inode));
        let sockets: Vec<_> = sockets.map(|socket| socket.path.to_owned()).collect();
        let root = is_own.then(|| task.join("root"));
        (!sockets.is_empty()).then_some(Listening { pid, root, sockets })
    })
}

/// The inodes of the sockets that a thread has open.
fn sockets_of(task: &Path) -> Vec<u64> {
    let fds = fs::read_dir(task.join("fd")).into_iter().flatten().flatten();
    let targets = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
    let inode = |target: PathBuf| {
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    targets.filter_map(inode).collect()
}

/// A line of [`SOCKETS`], of a socket that has a path.
struct Socket<'a> {
    listens: bool,
    kind: u32,
    inode: u64,
    path: &'a str,
}

impl Socket<'_> {
    fn parse(line: &str) -> Option<Socket<'_>> {
        /// `__SO_ACCEPTCON` of the kernel.
        const LISTENS: u32 = 1 << 16;
        // Num RefCount Protocol Flags Type St Inode Path
        let (numbers, path) = line.split_once(" /")?;
        let path = line.get(line.len() - path.len() - 1..)?;
        let fields: Vec<&str> = numbers.split_whitespace().collect();
        let [_, _, _, flags, kind, _, inode] = fields[..] else { return None };
        let number = |text| u32::from_str_radix(text, 16).ok();
        let (listens, kind) = (number(flags)? & LISTENS != 0, number(kind)?);
        Some(Socket { listens, kind, inode: inode.parse().ok()?, path })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use ringway_testkit::Folder;

    use super::*;

    #[test]
    fn a_daemon_is_found_without_a_connection() {
        let folder = Folder::new();
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        let (real, link) = (folder.path().join("a folder"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("a folder", &link).unwrap();
        let runs_at = |socket: &Path| listener(socket, own.trim_end()) == Some(std::process::id());
        let [socket, linked] = [&real, &link].map(|folder| folder.join("a socket"));
        for (its, asked) in [(&socket, &socket), (&socket, &linked), (&linked, &socket)] {
            assert!(!runs_at(asked));
            let listener = UnixListener::bind(its).unwrap();
            assert!(runs_at(asked), "{its:?}, {asked:?}");
            assert!(running_at(asked).is_none(), "another program has it");
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "nothing has connected");
            drop(listener);
            assert!(!runs_at(asked), "its file is left");
            fs::remove_file(its).unwrap();
        }
    }

    #[test]
    fn sockets_of_another_kind_are_of_other_programs() {
        let folder = Folder::new();
        let socket = folder.path().join("a socket");
        assert!(!is_of_another_program(&socket));
        let listener = UnixListener::bind(&socket).unwrap();
        assert!(is_of_another_program(&socket));
        drop(listener);
        assert!(!is_of_another_program(&socket));
    }

    #[test]
    fn a_daemon_is_known_by_its_configuration() {
        let config = Path::new("/x.toml");
        let cases: [(&[u8], [bool; 2]); 5] = [
            (b"ringwayd\0", [false, true]),
            (b"ringwayd\0--log-level\0debug\0", [false, true]),
            (b"ringwayd\0--config\0/x.toml\0", [true, false]),
            (b"ringwayd\0--log-level\0debug\0--config=/x.toml\0", [true, false]),
            (b"ringwayd\0--private\0/x\0", [false, false]),
        ];
        for (line, expected) in cases {
            let found = [config, Path::new(DEFAULT_PATH)].map(|path| is_started_with(line, path));
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
