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

/// Threads of a process, by number. One that is about to end is none: the kernel lists it for a moment after it has
/// been joined.
fn tasks(pid: u32) -> impl Iterator<Item = String> {
    // `PF_EXITING` of the flags, the seventh field after the name, which is in parentheses.
    const EXITING: u32 = 4;
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let numbers = tasks.filter_map(|task| task.file_name().into_string().ok());
    numbers.filter(move |task| {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{task}/stat")).unwrap_or_default();
        let rest = stat.rsplit(") ").next().unwrap_or_default();
        let flags = rest.split(' ').nth(6).and_then(|flags| flags.parse::<u32>().ok());
        flags.is_some_and(|flags| flags & EXITING == 0)
    })
}

/// How many threads a process has.
pub fn threads(pid: u32) -> usize {
    tasks(pid).count()
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

/// Threads of the daemon that come and go, after what they are for has been answered, too: what carries out a request,
/// closes what clients have sent, gives back memory.
const PASSING: [&str; 4] = ["set-up", "closer", "free", "unmap"];

/// Waits until the daemon sleeps, and no thread is at work that comes and goes.
pub fn wait_asleep(daemon: u32) {
    let file = |thread: &str, file| {
        fs::read_to_string(format!("/proc/{daemon}/task/{thread}/{file}"))
            .map_err(|e| e.to_string())
    };
    let main = daemon.to_string();
    // How often it has gone to sleep, if it sleeps.
    let asleep = || {
        let status = file(&main, "status")?;
        let is_asleep = status.contains("\nState:\tS");
        let times = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        times.filter(|_| is_asleep).map(str::to_owned).ok_or(status)
    };
    until("the daemon sleeps", || {
        let before = asleep()?;
        let own = file(&main, "comm")?;
        let others = tasks(daemon).filter(|thread| *thread != main);
        // One whose name cannot be read has gone meanwhile; one that has just begun has the daemon's.
        let mut names = others.filter_map(|thread| file(&thread, "comm").ok());
        let passing = |name: &String| *name == own || PASSING.contains(&name.trim_end());
        if let Some(name) = names.find(passing) {
            return Err(name);
        }
        // A thread that has ended before it was looked for has woken the daemon first.
        match asleep()? {
            after if after == before => Ok(()),
            after => Err(after),
        }
    });
}

/// All of a daemon's that must be the same again when clients have come and gone.
pub fn resources(daemon: u32, control: &Control) -> String {
    // What clients have left is put away first.
    wait_asleep(daemon);
    let regions = control.regions().expect("the daemon answers");
    let regions: Vec<_> =
        regions.iter().map(|r| (r.mem_id, r.ports, r.bufs, r.free_bufs)).collect();
    let ports = control.ports().expect("the daemon answers");
    let mut ports: Vec<_> = ports.into_iter().map(|port| (port.name, port.users)).collect();
    ports.sort();
    let bridges = control.switches().expect("the daemon answers");
    let bridges: Vec<_> = bridges.iter().map(|b| (b.name.clone(), b.ports.len())).collect();
    // It answers first, and closes the places of answers when it has something to do after they were read.
    control.daemon().expect("the daemon answers");
    wait_asleep(daemon);
    format!(
        "descriptors {:?}, mappings {}, threads {}, regions (id, ports, buffers, free) \
         {regions:?}, ports {ports:?}, bridges {bridges:?}",
        descriptors(daemon),
        mapped_memfds(daemon),
        threads(daemon),
    )
}
