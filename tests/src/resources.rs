//! What processes hold: to be compared before and after what must not change it.

use std::{collections::BTreeMap, fs};

use ringway::Control;

use crate::until;

/// Descriptors of a process, by what they are.
pub fn descriptors(pid: u32) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    for fd in fds.flatten() {
        let Ok(target) = fs::read_link(fd.path()) else { continue };
        let target = target.to_string_lossy();
        let kind = target.split([':', '[']).next().unwrap_or_default();
        *kinds.entry(kind.to_string()).or_default() += 1;
    }
    kinds
}

/// How many memfds a process has mapped.
pub fn mapped_memfds(pid: u32) -> usize {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    maps.lines().filter(|line| line.contains("/memfd:ringway")).count()
}

/// How many threads a process has.
pub fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").count()
}

/// Kilobytes of a process's own memory that are resident: not what it shares with others.
pub fn own_memory(pid: u32) -> u64 {
    kilobytes(&format!("/proc/{pid}/status"), "RssAnon:")
}

/// A line of a file of `/proc`, in kilobytes.
pub fn kilobytes(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{file} has no {name}"))
}

/// Waits until the daemon sleeps, and nothing is left to be closed: it answers first, and closes the
/// place of the answer then, by a thread that comes and goes.
pub fn wait_asleep(daemon: u32) {
    let file = |thread: &str, file| {
        fs::read_to_string(format!("/proc/{daemon}/task/{thread}/{file}"))
            .map_err(|e| e.to_string())
    };
    until("the daemon sleeps", || {
        let stat = file(&daemon.to_string(), "stat")?;
        // The state follows the name, which is in parentheses.
        let asleep = stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'));
        if !asleep {
            return Err(stat);
        }
        let own = file(&daemon.to_string(), "comm")?;
        let tasks = fs::read_dir(format!("/proc/{daemon}/task")).expect("it runs").flatten();
        let threads = tasks.filter_map(|task| task.file_name().into_string().ok());
        let others = threads.filter(|thread| *thread != daemon.to_string());
        // One whose name cannot be read has gone meanwhile; one that has just begun has the daemon's.
        let mut names = others.filter_map(|thread| file(&thread, "comm").ok());
        match names.find(|name| *name == own || name.trim_end() == "closer") {
            Some(name) => Err(name),
            None => Ok(()),
        }
    });
}

/// All of a daemon's that must be the same again when clients have come and gone.
pub fn resources(daemon: u32, control: &Control) -> String {
    let regions = control.regions().expect("the daemon answers");
    let regions: Vec<_> =
        regions.iter().map(|r| (r.mem_id, r.ports, r.bufs, r.free_bufs)).collect();
    let ports = control.ports().expect("the daemon answers");
    let mut ports: Vec<_> = ports.into_iter().map(|port| (port.name, port.users)).collect();
    ports.sort();
    let bridges = control.switches().expect("the daemon answers");
    let bridges: Vec<_> = bridges.iter().map(|b| (b.name.clone(), b.ports.len())).collect();
    wait_asleep(daemon);
    format!(
        "descriptors {:?}, mappings {}, threads {}, regions (id, ports, buffers, free) \
         {regions:?}, ports {ports:?}, bridges {bridges:?}",
        descriptors(daemon),
        mapped_memfds(daemon),
        threads(daemon),
    )
}
