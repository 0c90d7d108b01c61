//! AF_XDP sockets that a program keeps after its port has gone.
//!
//! A client has a copy of the socket of each of its queues, and the queue stays bound, and can send, until
//! the last copy and the last mapping of its rings are closed. So the registry remembers each socket that it
//! closes while the kernel still has it: the queue is on its user's account, and shown, and another open of
//! it is refused with the name of who holds it.
//!
//! Whether the kernel still has a socket, an epoll instance tells without privileges and on every kernel:
//! what was added to it stays in its list, which `/proc/self/fdinfo` shows, exactly until the last holder of
//! the socket has gone. Nothing is ever waited for on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    sync::Arc,
    time::Duration,
};

use ringway_proto::{Error, PortInfo, PortKind, Result};
use rustix::{
    event::epoll,
    fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use crate::{clock, port::PortId, subject::NicKey};

/// How long a program may take that closes its copy a moment after its port.
const GRACE: Duration = Duration::from_millis(200);

/// Ids of entries, apart from those of ports.
const FIRST: PortId = 1 << 63;

/// A socket that was closed here, and may be kept elsewhere.
#[derive(Clone)]
struct Kept {
    key: NicKey,
    interface: String,
    /// The inode number of its network namespace.
    netns: Option<u64>,
    queue: u32,
    uid: u32,
    /// Its number, by which a process's descriptors name it.
    inode: u64,
}

/// All of them.
#[derive(Default)]
pub(crate) struct KeptSockets {
    epoll: Option<Arc<OwnedFd>>,
    all: BTreeMap<u64, Kept>,
    last: u64,
}

/// A queue that is to be opened although a program kept its socket a moment ago.
pub(crate) struct KeptQueue {
    epoll: Arc<OwnedFd>,
    id: u64,
    kept: Kept,
}

impl KeptSockets {
    /// The socket of a queue is about to be closed here. `interface`: its name, and the inode number of its namespace.
    pub fn add(
        &mut self,
        socket: BorrowedFd<'_>,
        queue: u32,
        key: NicKey,
        interface: (&str, Option<u64>),
        uid: u32,
    ) {
        // Where there is no memory or no descriptor for it, the next bind of the queue is what tells.
        let _ = self.try_add(socket, queue, key, interface, uid);
    }

    fn try_add(
        &mut self,
        socket: BorrowedFd<'_>,
        queue: u32,
        key: NicKey,
        (name, netns): (&str, Option<u64>),
        uid: u32,
    ) -> io::Result<()> {
        let epoll = match self.epoll.take() {
            Some(epoll) => epoll,
            None => Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?),
        };
        let epoll = self.epoll.insert(epoll);
        let inode = rustix::fs::fstat(socket)?.st_ino;
        self.last += 1;
        // Edge-triggered, and for nothing: it is about the list alone.
        let (data, flags) = (epoll::EventData::new_u64(self.last), epoll::EventFlags::ET);
        epoll::add(epoll.as_fd(), socket, data, flags)?;
        let interface = name.to_string();
        self.all.insert(self.last, Kept { key, interface, netns, queue, uid, inode });
        Ok(())
    }

    /// Forgets those that the kernel has no more.
    pub fn refresh(&mut self) {
        if let Some(epoll) = &self.epoll
            && !self.all.is_empty()
            && let Ok(listed) = listed(epoll)
        {
            self.all.retain(|id, _| listed.contains(id));
        }
        if self.all.is_empty() {
            self.epoll = None;
        }
    }

    /// An interface has gone: the kernel has unbound all its sockets.
    pub fn forget(&mut self, key: NicKey) {
        self.all.retain(|_, kept| kept.key != key);
    }

    /// Those of these queues that programs keep bound.
    pub fn of_queues(&mut self, key: NicKey, queues: &[u32]) -> Vec<KeptQueue> {
        self.refresh();
        let Some(epoll) = &self.epoll else { return Vec::new() };
        let here = self.all.iter().filter(|(_, kept)| kept.key == key);
        here.filter(|(_, kept)| queues.contains(&kept.queue))
            .map(|(&id, kept)| KeptQueue { epoll: epoll.clone(), id, kept: kept.clone() })
            .collect()
    }

    /// How many are on the account of some users.
    pub fn of(&self, whose: impl Fn(u32) -> bool) -> usize {
        self.all.values().filter(|kept| whose(kept.uid)).count()
    }

    /// For display, behind the ports, by their ids.
    pub fn info(&self) -> impl Iterator<Item = (PortId, PortInfo)> {
        let info = |(id, kept): (&u64, &Kept)| PortInfo {
            id: FIRST + id,
            name: kept.interface.clone(),
            kind: PortKind::Nic,
            mem_id: 0,
            buf_size: 0,
            uid: kept.uid,
            rings: [0; 2],
            slots: [0; 2],
            users: 0,
            mtu: None,
            mode: Some(format!(
                "closed, but a program keeps the socket of queue {} bound",
                kept.queue
            )),
            queues: Vec::new(),
            filters: Vec::new(),
            actions: Vec::new(),
            switch_owner: None,
            added_queues: Vec::new(),
            gets_nothing: false,
            netns: kept.netns,
        };
        self.all.iter().map(info).map(|info| (info.id, info))
    }
}

impl KeptQueue {
    /// Waits a moment for a program that is about to close its copy.
    ///
    /// EBUSY, with the name of who holds it, if it does not.
    pub fn await_closed(&self) -> Result<()> {
        let deadline = clock::now() + GRACE;
        while listed(&self.epoll).is_ok_and(|listed| listed.contains(&self.id)) {
            if clock::now() >= deadline {
                return Err(self.refusal());
            }
            // The kernel does not tell when it goes.
            clock::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn refusal(&self) -> Error {
        let Kept { interface, queue, uid, inode, .. } = &self.kept;
        let problem = format!(
            "a program of user {uid} keeps the socket of queue {queue} although its port is closed"
        );
        let remedy = match holder(*inode) {
            Some((pid, name)) => format!("end process {pid} ({name})"),
            None => format!(
                "end it: `sudo grep -ls 'socket:.{inode}.' /proc/[0-9]*/maps; sudo find /proc/[0-9]*/fd \
                 -lname 'socket:.{inode}.'` names it"
            ),
        };
        Error::busy(problem).at(interface).remedy(remedy)
    }
}

/// The entries that an epoll instance still has.
fn listed(epoll: &OwnedFd) -> io::Result<BTreeSet<u64>> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", epoll.as_raw_fd()))?;
    let data = |line: &str| {
        let (_, rest) = line.strip_prefix("tfd:")?.split_once("data:")?;
        u64::from_str_radix(rest.split_whitespace().next()?, 16).ok()
    };
    Ok(text.lines().filter_map(data).collect())
}

/// A process that has the socket among its descriptors or its mappings. Those of other users, and those
/// with more privileges, do not show what they hold.
fn holder(inode: u64) -> Option<(u32, String)> {
    let socket = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find_map(|pid| {
        let folder = Path::new("/proc").join(pid.to_string());
        let fds = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        let is_it = |path: &Path| fs::read_link(path).is_ok_and(|to| to.as_os_str() == &*socket);
        let mut fds = fds.map(|fd| fd.path());
        let holds = fds.any(|fd| is_it(&fd))
            || fs::read_to_string(folder.join("maps")).is_ok_and(|maps| maps.contains(&socket));
        holds.then(|| {
            let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            (pid, name.trim_end().escape_default().to_string())
        })
    })
}
