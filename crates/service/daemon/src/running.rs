//! Whether a daemon runs at a socket, found without a connection: systemd would start one for that.

use std::{fs, path::Path};

/// The name of the daemon's process.
const NAME: &str = "ringwayd";

/// The process that does, by its number. Of processes that may not be looked at it is not known: then none does.
pub fn running_at(socket: &Path) -> Option<u32> {
    listener(socket, NAME)
}

/// The process of that name that listens at a socket. The service manager listens at some, too.
fn listener(socket: &Path, name: &str) -> Option<u32> {
    let path = socket.to_str()?;
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let inodes: Vec<_> = sockets.lines().filter_map(|line| listening(line, path)).collect();
    let links: Vec<_> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    // Beside other files, such as `self`.
    let processes = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let file = |pid: &u32, name| Path::new("/proc").join(pid.to_string()).join(name);
    let mut named = processes.filter(|pid| {
        fs::read_to_string(file(pid, "comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    let listens = |pid: &u32| {
        let fds = fs::read_dir(file(pid, "fd")).into_iter().flatten().flatten();
        let mut targets = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        targets.any(|target| links.iter().any(|link| target.as_os_str() == &**link))
    };
    named.find(listens)
}

/// The inode of a line of `/proc/net/unix` that is of a socket which listens at that path.
fn listening<'a>(line: &'a str, path: &str) -> Option<&'a str> {
    /// `__SO_ACCEPTCON` of the kernel.
    const LISTENS: u32 = 1 << 16;
    // Num RefCount Protocol Flags Type St Inode Path
    let fields: Vec<&str> = line.split_whitespace().take(7).collect();
    let [_, _, _, flags, _, _, inode] = fields[..] else { return None };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    let is_there = line.strip_suffix(path).is_some_and(|before| before.ends_with(' '));
    (flags & LISTENS != 0 && is_there).then_some(inode)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_daemon_is_found_without_a_connection() {
        let folder = std::env::temp_dir().join(format!("ringwayd-running-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        let socket = folder.join("a socket");
        let runs = || listener(&socket, own.trim_end()) == Some(std::process::id());
        assert!(!runs());
        let listener = UnixListener::bind(&socket).unwrap();
        assert!(runs() && running_at(&socket).is_none(), "another program has it");
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nothing has connected");
        drop(listener);
        assert!(!runs(), "its file is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
