//! The header in front of a port's frames, which its machine makes use of, or not.
//!
//! The daemon changes it. It may be stopped, or busy: it is asked by a thread, and the machine's monitor is answered
//! meanwhile. No frame moves then, as each would have the one header or the other.

use crate::error::{Error, Result};
use crate::run_loop::Waker;
use ringway::{Control, Port};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

/// Asks a daemon for a port's frames to have a header of so many bytes.
type Ask = fn(&str, usize) -> std::result::Result<(), ringway::Error>;

pub struct Header {
    /// Bytes of it. `None`: that is not known.
    len: Option<usize>,
    change: Option<Change>,
    ask: Ask,
    /// Ends the run's sleep when the daemon has answered.
    waker: Waker,
}

/// A change that the daemon was asked for.
struct Change {
    len: usize,
    answer: Receiver<std::result::Result<(), ringway::Error>>,
    /// The daemon that was asked may be the one before, or the one after.
    is_stale: bool,
}

fn ask(port: &str, len: usize) -> std::result::Result<(), ringway::Error> {
    Control::connect()?.set_header_len(port, len as u32)
}

impl Header {
    /// Of a port that is open, whose frames have none.
    pub fn new(waker: Waker) -> Header {
        Header { len: Some(0), change: None, ask, waker }
    }

    /// Bytes of it; `None` while frames are to wait.
    pub fn len(&self) -> Option<usize> {
        self.len.filter(|_| self.change.is_none())
    }

    /// The port was opened again: its frames have none.
    pub fn port_is_new(&mut self) {
        self.len = Some(0);
        if let Some(change) = &mut self.change {
            change.is_stale = true;
        }
    }

    /// Has the port's frames get a header of `wanted` bytes, if that is asked for and they have another. True: they have
    /// got another since this was last asked.
    ///
    /// # Errors
    /// The daemon has refused it.
    pub fn turn_to(&mut self, wanted: Option<usize>, port: &Port) -> Result<bool> {
        let had = self.len;
        self.look()?;
        let wanted = wanted.filter(|wanted| self.change.is_none() && self.len != Some(*wanted));
        if let Some(len) = wanted {
            self.begin(len, port)?;
        }
        Ok(self.len != had)
    }

    fn begin(&mut self, len: usize, port: &Port) -> Result<()> {
        let (sender, answer) = channel();
        let (ask, name, waker) = (self.ask, port.name().to_owned(), self.waker.clone());
        let asking = thread::Builder::new().name("header".into()).spawn(move || {
            // It fails where the run is over.
            let _ = sender.send(ask(&name, len));
            waker.wake();
        });
        asking.map_err(|source| Error::System { what: "a thread", source })?;
        self.change = Some(Change { len, answer, is_stale: false });
        Ok(())
    }

    /// Looks for the daemon's answer.
    fn look(&mut self) -> Result<()> {
        let Some(change) = &self.change else { return Ok(()) };
        let answer = match change.answer.try_recv() {
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => None,
            Ok(answer) => Some(answer),
        };
        let Change { len, is_stale, .. } = *change;
        self.change = None;
        match answer {
            Some(Ok(())) if !is_stale => self.len = Some(len),
            // It is asked for once more.
            _ if is_stale => self.len = None,
            Some(Err(error)) => return Err(error.into()),
            _ => self.len = None,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_loop::{Args, RunLoop};
    use ringway_doc as doc;
    use std::sync::Mutex;

    static DAEMON: Mutex<()> = Mutex::new(());

    fn ask_when_it_goes_on(_: &str, _: usize) -> std::result::Result<(), ringway::Error> {
        drop(DAEMON.lock());
        Ok(())
    }

    /// An answer of which it is not known whether it is about the port of before leaves the header unknown: it is asked for
    /// once more, even if there is none in front of the new port's frames.
    #[test]
    fn an_answer_for_the_port_of_before_is_none() {
        let port = doc::open("vmheader{1").unwrap();
        let waker = RunLoop::begin(&Args::default()).unwrap().waker().unwrap();
        let mut header = Header { ask: ask_when_it_goes_on, ..Header::new(waker) };
        let answered = |header: &mut Header| {
            while header.change.is_some() {
                header.turn_to(None, &port).unwrap();
                thread::yield_now();
            }
        };
        assert!(!header.turn_to(Some(0), &port).unwrap() && header.len() == Some(0));
        let stopped = DAEMON.lock().unwrap();
        assert!(!header.turn_to(Some(12), &port).unwrap() && header.len().is_none());
        header.port_is_new();
        drop(stopped);
        answered(&mut header);
        assert_eq!(header.len(), None);
        header.turn_to(Some(0), &port).unwrap();
        answered(&mut header);
        assert_eq!(header.len(), Some(0));
    }
}
