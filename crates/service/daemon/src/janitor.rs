//! The janitor: a process that undoes what the daemon has changed at network interfaces, when the
//! daemon has ended without doing so.
//!
//! It is told before each change, on a socket. When that hangs up the daemon has gone, whatever
//! ended it, and the kernel still has what was told last. It is started with the first change, and
//! leaves with the daemon; signals that are sent to both do not end it.
//!
//! Where the kernel has no tcx, it also removes the filters by which programs are attached, each when its last
//! holder has gone: a client may be that, after the daemon.

use std::{
    collections::BTreeMap,
    io::{
        self,
        ErrorKind::{BrokenPipe, ConnectionReset},
    },
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use ringway_ipc::{receive, send};
use ringway_nic_setup::{Guard, TcFilter, steer::Plan};
use ringway_proto::EventKind;
use ringway_registry::Janitor;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use serde::{Deserialize, Serialize};

use crate::{
    helper::{BrokerEnd, Launcher, Part},
    log::{Entry, log},
    sys,
};

/// The argument that makes a janitor of this program.
pub const ARGUMENT: &str = "--janitor";

#[derive(Serialize, Deserialize)]
enum Note {
    /// With the network namespace, if it is not the daemon's.
    Remember(u64, Plan),
    Forget(u64),
    /// With a socket that hangs up when the filter's last holder has gone; then as above.
    Keep(TcFilter),
}

/// A filter that is to be removed.
struct Kept {
    filter: TcFilter,
    holders: OwnedFd,
    netns: Option<OwnedFd>,
}

impl Kept {
    fn is_held(&self) -> bool {
        let mut fds = [PollFd::new(&self.holders, PollFlags::empty())];
        poll(&mut fds, Some(&rustix::time::Timespec::default())) == Ok(0)
    }
}

/// The daemon's side.
pub struct Notes(Mutex<Told>);

struct Told {
    /// What starts one, where this process has not the privileges.
    launcher: Option<Arc<Launcher>>,
    socket: Option<OwnedFd>,
    /// What a janitor has to know: the next one, too, if this one ends before the daemon.
    plans: BTreeMap<u64, (Plan, Option<OwnedFd>)>,
    filters: Vec<Kept>,
}

impl Told {
    /// Tells the janitor, or, if it has gone, another one, which is told of all else first.
    fn tell(&mut self, note: &Note, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        if let Some(socket) = &self.socket {
            match send_note(socket, note, fds) {
                Err(e) if matches!(e.kind(), BrokenPipe | ConnectionReset) => {
                    log(Entry::warn(
                        EventKind::Process,
                        "the janitor has ended; there is another one",
                    ));
                }
                result => return result,
            }
        }
        let started = match &self.launcher {
            Some(launcher) => launcher.launch(Part::Janitor),
            None => start(),
        };
        let socket = self.socket.insert(started?);
        for (number, (plan, netns)) in &self.plans {
            let note = Note::Remember(*number, plan.clone());
            send_note(socket, &note, netns.as_ref().map(|ns| ns.as_fd()).as_slice())?;
        }
        for Kept { filter, holders, netns } in &self.filters {
            let fds: Vec<_> = [holders].into_iter().chain(netns).map(|fd| fd.as_fd()).collect();
            send_note(socket, &Note::Keep(filter.clone()), &fds)?;
        }
        send_note(socket, note, fds)
    }
}

fn send_note(socket: &OwnedFd, note: &Note, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = postcard::to_allocvec(note).map_err(io::Error::other)?;
    send(socket.as_fd(), &bytes, fds, SendFlags::empty())
}

impl Notes {
    pub fn new(launcher: Option<Arc<Launcher>>) -> Notes {
        let (plans, filters) = (BTreeMap::new(), Vec::new());
        Notes(Mutex::new(Told { launcher, socket: None, plans, filters }))
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Janitor for Notes {
    fn remember(&self, number: u64, plan: &Plan, netns: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut told = self.told();
        let kept = netns.map(|ns| ns.try_clone_to_owned()).transpose()?;
        told.tell(&Note::Remember(number, plan.clone()), netns.as_slice())?;
        told.plans.insert(number, (plan.clone(), kept));
        Ok(())
    }

    fn forget(&self, number: u64) {
        let mut told = self.told();
        if told.plans.remove(&number).is_some() {
            // If there is no janitor to be had, nothing undoes it twice.
            let _ = told.tell(&Note::Forget(number), &[]);
        }
    }
}

impl Guard for Notes {
    fn keep(
        &self,
        filter: TcFilter,
        holders: OwnedFd,
        netns: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let mut told = self.told();
        told.filters.retain(Kept::is_held);
        let fds: Vec<_> = [holders.as_fd()].into_iter().chain(netns).collect();
        told.tell(&Note::Keep(filter.clone()), &fds)?;
        let netns = netns.map(|ns| ns.try_clone_to_owned()).transpose()?;
        told.filters.push(Kept { filter, holders, netns });
        Ok(())
    }
}

fn start() -> io::Result<OwnedFd> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
    // By what runs, not by a path that may have another program by now.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("ringwayd").arg(ARGUMENT).stdin(theirs).stdout(Stdio::null()).spawn()?;
    Ok(ours)
}

/// The life of a janitor that a program became.
pub fn main() -> io::Result<()> {
    sys::ignore(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT]);
    let _ = rustix::process::setsid();
    run(rustix::stdio::stdin().try_clone_to_owned()?, None)
}

/// The janitor's own life. `end`: what tells of the daemon's besides the socket.
pub fn run(socket: OwnedFd, end: Option<BrokerEnd>) -> io::Result<()> {
    end.map(|end| end.hang_up(&socket)).transpose()?;
    let mut plans: BTreeMap<u64, (Plan, Option<OwnedFd>)> = BTreeMap::new();
    let mut filters: Vec<Kept> = Vec::new();
    loop {
        let spoken = wait(Some(&socket), &mut filters)?;
        if !spoken {
            continue;
        }
        let Ok(Some((bytes, mut fds))) = receive(socket.as_fd(), RecvFlags::empty()) else { break };
        match postcard::from_bytes(&bytes).map_err(io::Error::other)? {
            Note::Remember(number, plan) => drop(plans.insert(number, (plan, fds.pop()))),
            Note::Forget(number) => drop(plans.remove(&number)),
            Note::Keep(filter) => {
                let mut fds = fds.into_iter();
                let holders = fds.next().ok_or_else(|| io::Error::other("a filter's socket"))?;
                filters.push(Kept { filter, holders, netns: fds.next() });
            }
        }
    }
    drop(socket);
    for (plan, netns) in plans.into_values() {
        if let Err(e) = within(netns, || plan.undo().map_err(io::Error::other)) {
            let text = format!("cannot undo what was steered: {e}");
            log(Entry::error(EventKind::Process, text).at(plan.interface()).caused_by(&e));
        }
    }
    while !filters.is_empty() {
        wait(None, &mut filters)?;
    }
    Ok(())
}

/// Waits for a note, or for filters to lose their last holder, and removes these. Whether there is a note, or
/// will be no more.
fn wait(socket: Option<&OwnedFd>, filters: &mut Vec<Kept>) -> io::Result<bool> {
    let mut fds: Vec<_> = filters
        .iter()
        .map(|kept| PollFd::new(&kept.holders, PollFlags::empty()))
        .chain(socket.map(|socket| PollFd::new(socket, PollFlags::IN)))
        .collect();
    match poll(&mut fds, None) {
        Err(rustix::io::Errno::INTR) => return Ok(false),
        result => result?,
    };
    let happened: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    let spoken = socket.is_some() && happened.last() == Some(&true);
    let mut happened = happened.into_iter();
    for kept in filters.extract_if(.., |_| happened.next() == Some(true)) {
        let Kept { filter, netns, .. } = kept;
        // The interface may have gone with all that was there.
        if let Err(e) = within(netns, || filter.remove())
            && e.raw_os_error() != Some(libc::ENODEV)
        {
            let text = format!("cannot remove a filter of a qdisc: {e}");
            log(Entry::error(EventKind::Process, text).caused_by(&e));
        }
    }
    Ok(spoken)
}

/// Runs `f` in a network namespace (`None`: this process's): in a thread of its own, which enters it.
fn within(netns: Option<OwnedFd>, f: impl FnOnce() -> io::Result<()> + Send) -> io::Result<()> {
    let Some(netns) = netns else { return f() };
    let enter = || {
        move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network))?;
        f()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, enter)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("it met a bug")))
    })
}
