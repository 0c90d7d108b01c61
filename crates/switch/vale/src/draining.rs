//! Word of a port that goes, from the worker to the port's owner: when it touches the port's rings
//! no more.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use ringway_kring::Doorbell;
use ringway_switch_port::Port;

use crate::clock::Millis;

/// What happens to what a port has sent, if it is more than can be forwarded at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// It is forwarded in the port's turns.
    Forward,
    /// It is lost: the rings are needed now.
    Drop,
}

/// The owner's end.
pub struct Draining {
    end: mpsc::Receiver<()>,
    port: Handed,
}

/// A port that the worker has done with.
type Handed = Arc<Mutex<Option<Box<dyn Port>>>>;

impl Draining {
    /// Whether the worker still touches the port.
    pub fn is_going_on(&self) -> bool {
        self.end.try_recv() == Err(mpsc::TryRecvError::Empty)
    }

    /// Returns when it does not any more.
    pub fn wait(&self) {
        let _ = self.end.recv();
    }

    /// What the worker had of an interface, if it does not touch that any more. To close it takes the kernel its
    /// time, for which the worker has none.
    pub fn into_port(self) -> Option<Box<dyn Port>> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What is known of a port that goes.
pub(crate) struct Leaving {
    /// When patience ends.
    pub until: Millis,
    /// What has its place then.
    pub successor: Option<Box<dyn Port>>,
    /// Dropped when the worker does not touch the port any more.
    pub left: Vec<Left>,
}

/// The worker's end, dropped with the port.
pub(crate) struct Left {
    end: Option<mpsc::Sender<()>>,
    port: Handed,
    /// Rung then.
    doorbell: Option<Arc<Doorbell>>,
}

impl Left {
    pub fn new(doorbell: Option<Arc<Doorbell>>) -> (Left, Draining) {
        let (end, draining) = mpsc::channel();
        let port = Handed::default();
        let left = Left { end: Some(end), port: port.clone(), doorbell };
        (left, Draining { end: draining, port })
    }

    /// The owner is to close it.
    pub fn hand_over(&self, port: Box<dyn Port>) {
        *self.port.lock().unwrap_or_else(PoisonError::into_inner) = Some(port);
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        self.end = None;
        if let Some(doorbell) = &self.doorbell {
            doorbell.notify();
        }
    }
}
