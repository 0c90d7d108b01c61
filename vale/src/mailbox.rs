//! What the registry asks of a worker, one command after another.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering::*},
        mpsc,
    },
};

use ringway_abi::Dir;
use ringway_kring::{Doorbell, Offsets};
use rustix::fd::{AsFd, BorrowedFd};

use crate::{config::PortConfig, counters::PortCounters, function::Function};
use ringway_bridge_port::{Port, PortIndex, PortMirrors};

/// A command, most with where to send the answer.
pub enum Command {
    Attach(Box<dyn Port>, PortConfig, Arc<PortCounters>, mpsc::Sender<Option<PortIndex>>),
    Configure(PortIndex, PortConfig, mpsc::Sender<bool>),
    SetOffsets(PortIndex, Dir, usize, Option<Offsets>, mpsc::Sender<()>),
    Replace(PortIndex, Box<dyn Port>, mpsc::Sender<bool>),
    Detach(PortIndex, mpsc::Sender<()>),
    Use(Box<Function>, mpsc::Sender<()>),
    SetMirrors(PortIndex, PortMirrors, mpsc::Sender<()>),
    Count(mpsc::Sender<()>),
    Poll(Vec<usize>, mpsc::Sender<()>),
    Stop,
}

/// Commands that wait for the worker, which sleeps on the doorbell.
pub struct Mailbox {
    /// `None`: the worker has ended.
    commands: Mutex<Option<Vec<Command>>>,
    waiting: AtomicBool,
    doorbell: Doorbell,
}

impl Mailbox {
    pub fn new() -> io::Result<Mailbox> {
        let (commands, waiting) = (Mutex::new(Some(Vec::new())), AtomicBool::new(false));
        Ok(Mailbox { commands, waiting, doorbell: Doorbell::new()? })
    }

    /// Hands a command to the worker. If that has gone, the sender of the answer goes with the
    /// command, and its caller learns.
    pub fn post(&self, command: Command) {
        match &mut *self.lock() {
            Some(commands) => commands.push(command),
            None => return,
        }
        self.waiting.store(true, Release);
        self.doorbell.notify();
    }

    /// Whether commands wait; as cheap as a load.
    pub fn has_mail(&self) -> bool {
        self.waiting.load(Acquire)
    }

    /// All that wait, in their order.
    pub fn take(&self) -> Vec<Command> {
        self.waiting.store(false, Relaxed);
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on commands are not carried out.
    pub fn close(&self) {
        self.lock().take();
    }

    /// Makes the doorbell quiet before a look at what there is.
    pub fn drain(&self) {
        self.doorbell.drain();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Command>>> {
        self.commands.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// To wait for a command with epoll.
impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }
}
