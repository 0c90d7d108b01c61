//! The broker's side: a connection to each helper, and to the next one when that has ended.

use std::{
    io::{
        self,
        ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof},
    },
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use ringway_ipc::{receive, send};
use ringway_nic_setup::{Helper, Parcel};
use ringway_proto::EventKind;
use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{RecvFlags, SendFlags},
};

use super::{
    launcher::{Launcher, Part},
    messages::{OF_REQUEST, pair, receive_parcel, send_parcel},
};
use crate::log::{Entry, log};
use crate::service_manager;

/// See above: a process for what takes long, and one for what is quick.
pub struct Client {
    work: Line,
    quick: Line,
}

/// A way to a helper, or the next one. Copies have the same helper.
#[derive(Clone)]
struct Line(Arc<Shared>);

struct Shared {
    launcher: Arc<Launcher>,
    part: Part,
    connection: Mutex<Arc<OwnedFd>>,
}

/// Waits until a helper has ended.
fn await_end(connection: &OwnedFd) {
    let mut fds = [PollFd::new(connection, PollFlags::empty())];
    while poll(&mut fds, None) == Err(rustix::io::Errno::INTR) {}
}

impl Client {
    /// Starts the helpers.
    pub fn new(launcher: &Arc<Launcher>) -> io::Result<Client> {
        let line = |part| Line::new(launcher.clone(), part);
        Ok(Client { work: line(Part::Helper)?, quick: line(Part::Quick)? })
    }

    /// Starts threads that have another helper at hand as soon as one has ended.
    pub fn watch(&self) -> io::Result<()> {
        self.work.watch()?;
        self.quick.watch()
    }
}

impl Line {
    fn new(launcher: Arc<Launcher>, part: Part) -> io::Result<Line> {
        let connection = Mutex::new(Arc::new(launcher.launch(part)?));
        Ok(Line(Arc::new(Shared { launcher, part, connection })))
    }

    fn current(&self) -> MutexGuard<'_, Arc<OwnedFd>> {
        self.0.connection.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Another helper in the place of one that has ended, unless there is another by now.
    fn replace(&self, ended: &Arc<OwnedFd>) -> io::Result<Arc<OwnedFd>> {
        let mut current = self.current();
        if Arc::ptr_eq(&current, ended) {
            *current = Arc::new(self.0.launcher.launch(self.0.part)?);
            let name = self.0.part.name();
            let text = format!(
                "its helper {name} has ended; what it has set up stays, and there is another one"
            );
            log(Entry::warn(EventKind::Process, text));
        }
        Ok(current.clone())
    }

    fn watch(&self) -> io::Result<()> {
        let this = self.clone();
        let watch = move || {
            loop {
                let connection = this.current().clone();
                await_end(&connection);
                if let Err(error) = this.replace(&connection) {
                    // Requests ask for another again, and say what has come of that.
                    let told = format!(
                        "its helper {} has ended, and there is no other: {error}; what it has set up stays; to \
                         set up more, restart the daemon",
                        this.0.part.name()
                    );
                    log(Entry::error(EventKind::Process, &told));
                    service_manager::tell_status(&told);
                    return;
                }
            }
        };
        thread::Builder::new().name("helper".into()).spawn(watch).map(drop)
    }
}

impl Helper for Client {
    fn call(&self, request: Parcel, quick: bool) -> io::Result<Parcel> {
        let (ours, theirs) = pair()?;
        let begin = |connection: &OwnedFd| {
            send(connection.as_fd(), &[], &[theirs.as_fd()], SendFlags::empty())
        };
        let line = if quick { &self.quick } else { &self.work };
        let connection = line.current().clone();
        match begin(&connection) {
            // It has not begun: the next one does.
            Err(e) if matches!(e.kind(), BrokenPipe | ConnectionReset) => {
                begin(&*line.replace(&connection)?)?;
            }
            begun => begun?,
        }
        drop(theirs);
        let exchange = || -> io::Result<Parcel> {
            send_parcel(&ours, &request)?;
            // What it keeps of the request is the helper's by now.
            drop(request);
            let answer = receive_parcel(&ours, OF_REQUEST)?;
            // When that closes, links and sockets are the broker's alone: what it lets go of has gone.
            let _ = receive(ours.as_fd(), RecvFlags::empty());
            Ok(answer)
        };
        exchange().map_err(|error| match error.kind() {
            UnexpectedEof | BrokenPipe | ConnectionReset => {
                io::Error::new(error.kind(), "it ended while it worked on this")
            }
            _ => error,
        })
    }
}
