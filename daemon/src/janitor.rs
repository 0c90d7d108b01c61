//! The janitor: a process that undoes what the daemon has changed at network interfaces, when the
//! daemon has ended without doing so.
//!
//! It is told before each change, on a socket. When that hangs up the daemon has gone, whatever
//! ended it, and the kernel still has what was told last. It is started with the first change, and
//! leaves with the daemon; signals that are sent to both do not end it.

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
use ringway_nic_setup::steer::Plan;
use ringway_registry::Janitor;
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use serde::{Deserialize, Serialize};

use crate::{
    helper::{Launcher, Part},
    log::log,
    sys,
};

/// The argument that makes a janitor of this program.
pub const ARGUMENT: &str = "--janitor";

#[derive(Serialize, Deserialize)]
enum Note {
    /// With the network namespace, if it is not the daemon's.
    Remember(u64, Plan),
    Forget(u64),
}

/// The daemon's side.
pub struct Notes(Mutex<Told>);

struct Told {
    /// What starts one, where this process has not the privileges.
    launcher: Option<Arc<Launcher>>,
    socket: Option<OwnedFd>,
    /// What a janitor has to know: the next one, too, if this one ends before the daemon.
    plans: BTreeMap<u64, (Plan, Option<OwnedFd>)>,
}

impl Told {
    /// Tells the janitor, or, if it has gone, another one, which is told of all else first.
    fn tell(&mut self, note: &Note, netns: Option<BorrowedFd<'_>>) -> io::Result<()> {
        if let Some(socket) = &self.socket {
            match send_note(socket, note, netns) {
                Err(e) if matches!(e.kind(), BrokenPipe | ConnectionReset) => {
                    log(format_args!("the janitor has ended; there is another one"));
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
            send_note(socket, &note, netns.as_ref().map(|ns| ns.as_fd()))?;
        }
        send_note(socket, note, netns)
    }
}

fn send_note(socket: &OwnedFd, note: &Note, netns: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = postcard::to_allocvec(note).map_err(io::Error::other)?;
    let fds: Vec<_> = netns.into_iter().collect();
    send(socket.as_fd(), &bytes, &fds, SendFlags::empty())
}

impl Notes {
    pub fn new(launcher: Option<Arc<Launcher>>) -> Notes {
        Notes(Mutex::new(Told { launcher, socket: None, plans: BTreeMap::new() }))
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Janitor for Notes {
    fn remember(&self, number: u64, plan: &Plan, netns: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut told = self.told();
        let kept = netns.map(|ns| ns.try_clone_to_owned()).transpose()?;
        told.tell(&Note::Remember(number, plan.clone()), netns)?;
        told.plans.insert(number, (plan.clone(), kept));
        Ok(())
    }

    fn forget(&self, number: u64) {
        let mut told = self.told();
        if told.plans.remove(&number).is_some() {
            // If there is no janitor to be had, nothing undoes it twice.
            let _ = told.tell(&Note::Forget(number), None);
        }
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
    run(rustix::stdio::stdin().try_clone_to_owned()?)
}

/// The janitor's own life.
pub fn run(socket: OwnedFd) -> io::Result<()> {
    let mut plans: BTreeMap<u64, (Plan, Option<OwnedFd>)> = BTreeMap::new();
    while let Ok(Some((bytes, mut fds))) = receive(socket.as_fd(), RecvFlags::empty()) {
        match postcard::from_bytes(&bytes).map_err(io::Error::other)? {
            Note::Remember(number, plan) => drop(plans.insert(number, (plan, fds.pop()))),
            Note::Forget(number) => drop(plans.remove(&number)),
        }
    }
    for (plan, netns) in plans.into_values() {
        let Some(netns) = netns else {
            let _ = plan.undo();
            continue;
        };
        // A thread for each: it has a namespace of its own.
        let undo = || {
            move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network))?;
            plan.undo().map_err(io::Error::other)
        };
        let done = thread::scope(|scope| {
            let thread = thread::Builder::new().spawn_scoped(scope, undo)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("it met a bug")))
        });
        if let Err(e) = done {
            log(format_args!("cannot undo what was steered: {e}"));
        }
    }
    Ok(())
}
