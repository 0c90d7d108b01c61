//! Word of a port that goes, from the worker to the port's owner: when it touches the port's rings
//! no more.

use std::sync::{Arc, mpsc};

use ringway_kring::Doorbell;

/// The owner's end.
#[derive(Debug)]
pub struct Draining(mpsc::Receiver<()>);

impl Draining {
    /// Whether the worker still touches the port.
    pub fn is_going_on(&self) -> bool {
        self.0.try_recv() == Err(mpsc::TryRecvError::Empty)
    }

    /// Returns when it does not any more.
    pub fn wait(&self) {
        let _ = self.0.recv();
    }
}

/// The worker's end, dropped with the port.
pub(crate) struct Left {
    end: Option<mpsc::Sender<()>>,
    /// Rung then.
    doorbell: Option<Arc<Doorbell>>,
}

impl Left {
    pub fn new(doorbell: Option<Arc<Doorbell>>) -> (Left, Draining) {
        let (end, draining) = mpsc::channel();
        (Left { end: Some(end), doorbell }, Draining(draining))
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
