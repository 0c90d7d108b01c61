//! A member of a cluster on a port: its ring reads from the pipe that the [distributor](super::distributor) has for it,
//! and its thread sees to it that there is one.
//!
//! The thread sleeps until the distributor has gone. Then it is the distributor, or finds the next.

use std::{
    ffi::c_int,
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use ringway::{Control, Error, Port, SocketPath, explain, patience};
use ringway_helper_thread::helper_thread;
use ringway_live_capture::{Live, Settings, Signals, name};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno,
};

use super::{
    distributor::{Distributor, Ended},
    file::Shared,
    outlet::{Outlet, other_end},
    rendezvous::{self, Found, Said},
};
use crate::source::{Refused, sends};

/// From one try to open the port to the next: the daemon may not have seen yet that the one before has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// How long members have at least to settle which of them distributes next.
const SUCCESSION: Duration = Duration::from_secs(1);

/// What the thread needs to know.
pub struct Context {
    pub file: File,
    /// Where the member that distributes is found.
    socket: PathBuf,
    pub shared: Shared,
    pub queue: u32,
    pub quit: OwnedFd,
    /// The ring goes on alone, and wants the port then.
    keeps: AtomicBool,
    /// The port, as it was opened.
    port: String,
    settings: Settings,
    /// At the system daemon, and so at no private one.
    of_system: bool,
    live: Arc<Live>,
    signals: Arc<Signals>,
}

/// A member, until it is dropped.
pub struct PortMember {
    context: Arc<Context>,
    /// Has the port in the end, if it distributed.
    thread: Option<JoinHandle<Option<Port>>>,
}

/// What the thread does.
enum Role {
    Distributes(Box<Distributor>),
    Receives(Pipe),
}

/// The member's end of a pipe.
struct Pipe {
    distributor: OwnedFd,
    name: String,
}

impl Pipe {
    /// Asks for it, and opens it if it is another than `before`. EAGAIN if the distributor goes meanwhile, ENOMEM if
    /// there is no room for one more.
    fn open(
        distributor: OwnedFd,
        context: &Context,
        before: Option<&str>,
    ) -> Result<(Pipe, Option<Port>), c_int> {
        let quit = context.quit.as_fd();
        let name = rendezvous::ask(&distributor, context.queue, before, quit);
        let name = name.ok_or(libc::EAGAIN)?;
        if name == rendezvous::NO_PIPE {
            return Err(libc::ENOMEM);
        }
        let port = match before == Some(&name) {
            true => None,
            false => Some(open_pipe(&name)?),
        };
        Ok((Pipe { distributor, name }, port))
    }

    /// Whether the daemon has seen that the distributor has gone: then the port is free, too.
    fn is_gone(&self) -> Result<bool, Error> {
        let ports = Control::connect()?.ports()?;
        let other = other_end(&self.name);
        let is_other = |name: &str| other.strip_prefix("netmap:") == Some(name);
        Ok(!ports.iter().any(|port| is_other(&port.name) && port.users > 0))
    }
}

impl PortMember {
    /// Begins to read from a pipe instead of the port.
    pub fn begin(
        (file, socket): (&File, PathBuf),
        shared: Shared,
        queue: u32,
        (port, settings): (&str, Settings),
        (live, signals): (&Arc<Live>, &Arc<Signals>),
    ) -> Result<PortMember, c_int> {
        let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        if live.has_lost_daemon() {
            return Err(libc::EAGAIN);
        }
        let quit = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let of_system = live.port().is_of_system_daemon();
        let context = Arc::new(Context {
            file: file.try_clone().map_err(number)?,
            socket,
            shared,
            queue,
            quit: quit.map_err(Errno::raw_os_error)?,
            keeps: AtomicBool::new(false),
            port: port.into(),
            settings,
            of_system,
            live: live.clone(),
            signals: signals.clone(),
        });
        let role = first_role(&context)?;
        let serving = context.clone();
        let run = move || serve(&serving, role);
        let thread = helper_thread("pf_ring-cluster", run);
        Ok(PortMember { context, thread: Some(thread.map_err(number)?) })
    }

    /// The ring goes on alone, with the port: from its next read on, where a read is under way.
    pub fn leave(mut self) -> Result<(), c_int> {
        let Context { port, settings, live, signals, .. } = &*self.context.clone();
        self.context.keeps.store(true, Relaxed);
        let own = match self.end() {
            Some(port) => port,
            None => open(port, settings)?,
        };
        live.replace_soon(own, signals).then_some(()).ok_or(libc::EMFILE)
    }

    fn end(&mut self) -> Option<Port> {
        // There is room for the number 1.
        let _ = rustix::io::write(&self.context.quit, &1u64.to_ne_bytes());
        self.thread.take()?.join().ok()?
    }
}

impl Drop for PortMember {
    fn drop(&mut self) {
        self.end();
    }
}

/// Of a member that has just come, and has the port open, or a monitor of it.
fn first_role(context: &Arc<Context>) -> Result<Role, c_int> {
    // The one from a cluster that it has left, perhaps.
    context.live.take_next().then_some(()).ok_or(libc::EBUSY)?;
    loop {
        match rendezvous::find(&context.file, &context.socket)? {
            Found::Distributor(connection) => match Pipe::open(connection, context, None) {
                Ok((pipe, port)) => {
                    let port = port.ok_or(libc::EIO)?;
                    context.live.replace(port).ok_or(libc::EBUSY)?;
                    return Ok(Role::Receives(pipe));
                }
                Err(libc::EAGAIN) => {}
                Err(error) => return Err(error),
            },
            Found::Vacant(listener) => {
                let (mem_id, sends) = {
                    let port = context.live.port();
                    (port.mem_id(), sends(&port))
                };
                let outlet = Outlet::open(context.queue, None, mem_id).map_err(refused)?;
                let own = open_pipe(&outlet.other(sends))?;
                let input = context.live.replace(own).ok_or(libc::EBUSY)?;
                let distributor = Distributor::new(context.clone(), listener, input, outlet);
                return Ok(Role::Distributes(Box::new(distributor)));
            }
        }
    }
}

/// Until the member leaves; returns the port if it has it.
fn serve(context: &Arc<Context>, mut role: Role) -> Option<Port> {
    loop {
        let mut former = None;
        match role {
            Role::Distributes(mut distributor) => match distributor.run() {
                Ended::Quit if context.keeps.load(Relaxed) => {
                    return Some(distributor.into_input());
                }
                Ended::Quit => return None,
                Ended::Failed => explain(&format_args!(
                    "{}: the port has ended; it is opened again when that is possible",
                    context.port
                )),
            },
            Role::Receives(pipe) => {
                if !follow(context, &pipe.distributor) {
                    return None;
                }
                former = Some(pipe);
            }
        }
        // The daemon is another now, which may have a pipe of the same name.
        let former = former.filter(|_| !context.live.port().has_outlived_daemon());
        let (begin, patience) = (Instant::now(), patience().max(SUCCESSION));
        role = loop {
            match next_role(context, former.as_ref()) {
                Ok(next) => break next,
                Err(_) if is_to_quit(context, PAUSE) => return None,
                Err(error) if begin.elapsed() >= patience => {
                    fail(context, error, patience);
                    return None;
                }
                Err(_) => {}
            }
        };
    }
}

/// Ends the ring: no member distributes, and this one cannot.
fn fail(context: &Context, error: c_int, patience: Duration) {
    let (port, error) = (&context.port, io::Error::from_raw_os_error(error));
    let text = format!(
        "{port}: for {} s no member of the cluster could open it: {error}; start ringwayd, and then this \
         program again",
        patience.as_secs()
    );
    explain(&text);
    context.live.fail_later(text, &context.signals);
}

/// Of a member whose distributor has gone.
fn next_role(context: &Arc<Context>, former: Option<&Pipe>) -> Result<Role, c_int> {
    if context.of_system && matches!(SocketPath::find(), SocketPath::Private { .. }) {
        return Err(libc::ENODEV);
    }
    match rendezvous::find(&context.file, &context.socket)? {
        Found::Distributor(connection) => {
            let before = former.map(|former| former.name.as_str());
            let (pipe, port) = Pipe::open(connection, context, before)?;
            if let Some(port) = port {
                context.live.replace_later(port, &context.signals);
            }
            Ok(Role::Receives(pipe))
        }
        Found::Vacant(listener) => {
            while let Some(former) = former
                && !former.is_gone().map_err(refused)?
            {
                if is_to_quit(context, PAUSE) {
                    return Err(libc::EINTR);
                }
            }
            let input = open(&context.port, &context.settings)?;
            let before = former.map(|former| former.name.as_str());
            let outlet = Outlet::open(context.queue, before, input.mem_id()).map_err(refused)?;
            let own = outlet.other(sends(&input));
            if before != Some(&own) {
                context.live.replace_later(open_pipe(&own)?, &context.signals);
            }
            let distributor = Distributor::new(context.clone(), listener, input, outlet);
            Ok(Role::Distributes(Box::new(distributor)))
        }
    }
}

fn refused(error: Error) -> c_int {
    Refused::from(error).0
}

/// Waits until the distributor has gone; whether it is that, and not the member that leaves.
fn follow(context: &Context, connection: &OwnedFd) -> bool {
    loop {
        let fds = [connection.as_fd(), context.quit.as_fd()];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return false,
            Ok(_) => {}
        }
        if !fds[1].revents().is_empty() {
            return false;
        }
        if matches!(rendezvous::pipe_of(connection), Said::Gone) {
            return true;
        }
    }
}

fn is_to_quit(context: &Context, wait: Duration) -> bool {
    let mut fds = [PollFd::new(&context.quit, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
    poll(&mut fds, Some(&wait)).is_ok_and(|ready| ready > 0)
}

fn open_pipe(name: &str) -> Result<Port, c_int> {
    Port::open(name).map_err(refused)
}

/// The port, as a ring alone would have it.
fn open(port: &str, settings: &Settings) -> Result<Port, c_int> {
    match name::open(port, settings).map_err(refused)? {
        name::Found::Port(port) => Ok(*port),
        name::Found::Unused { .. } => Err(libc::EBUSY),
    }
}
