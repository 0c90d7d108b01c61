//! The header in front of a port's frames, which its machine makes use of, or not.
//!
//! The daemon changes it. It may be stopped, or busy: it is asked by a thread, and the machine's monitor is answered
//! meanwhile. No frame moves then, as each would have the one header or the other; and those that were sent before are
//! out of the ring first.

use crate::error::{Error, Result};
use crate::run_loop::Waker;
use ringway::{Control, Port};
use ringway_abi::Dir;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

/// Asks a daemon for a port's frames to have a header of so many bytes.
type Ask = fn(&str, usize) -> std::result::Result<(), ringway::Error>;

pub struct Header {
    /// Bytes of it. `None`: that is not known.
    len: Option<usize>,
    /// Bytes that it is to have, once the switch has taken what was sent.
    draining: Option<usize>,
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

/// Whether the switch has taken all that was sent. If not, room at the port tells that it has taken more.
fn is_drained(port: &mut Port) -> bool {
    let mut tx = port.tx(0);
    tx.sync();
    if tx.pending() == 0 {
        return true;
    }
    let ring = port.binding().rings(Dir::Tx)[0].kring().ring();
    ring.set_cur(ring.tail());
    false
}

impl Header {
    /// Of a port that is open, whose frames have none.
    pub fn new(waker: Waker) -> Header {
        Header { len: Some(0), draining: None, change: None, ask, waker }
    }

    /// Bytes of it; `None` while frames are to wait.
    pub fn len(&self) -> Option<usize> {
        self.len.filter(|_| self.change.is_none() && self.draining.is_none())
    }

    /// Whether it waits for the switch to take what was sent.
    pub fn is_draining(&self) -> bool {
        self.draining.is_some()
    }

    /// The port was opened again: its frames have none.
    pub fn port_is_new(&mut self) {
        (self.len, self.draining) = (Some(0), None);
        if let Some(change) = &mut self.change {
            change.is_stale = true;
        }
    }

    /// Has the port's frames get a header of `wanted` bytes, if that is asked for and they have another. True: they have
    /// got another since this was last asked.
    ///
    /// # Errors
    /// The daemon has refused it.
    pub fn turn_to(&mut self, wanted: Option<usize>, port: &mut Port) -> Result<bool> {
        let had = self.len;
        self.look()?;
        let wanted = wanted.filter(|wanted| self.change.is_none() && self.len != Some(*wanted));
        self.draining = wanted;
        if let Some(len) = wanted
            && is_drained(port)
        {
            self.draining = None;
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
        let mut port = doc::open("vmheader{1").unwrap();
        let waker = RunLoop::begin(&Args::default()).unwrap().waker().unwrap();
        let mut header = Header { ask: ask_when_it_goes_on, ..Header::new(waker) };
        let answered = |header: &mut Header, port: &mut Port| {
            while header.change.is_some() {
                header.turn_to(None, port).unwrap();
                thread::yield_now();
            }
        };
        assert!(!header.turn_to(Some(0), &mut port).unwrap() && header.len() == Some(0));
        let stopped = DAEMON.lock().unwrap();
        assert!(!header.turn_to(Some(12), &mut port).unwrap() && header.len().is_none());
        header.port_is_new();
        drop(stopped);
        answered(&mut header, &mut port);
        assert_eq!(header.len(), None);
        header.turn_to(Some(0), &mut port).unwrap();
        answered(&mut header, &mut port);
        assert_eq!(header.len(), Some(0));
    }

    fn ask_at_once(_: &str, _: usize) -> std::result::Result<(), ringway::Error> {
        Ok(())
    }

    /// A frame that was sent with one header would be read with the other: it is taken first, and its taking ends the wait.
    #[test]
    fn what_was_sent_is_taken_first() {
        let mut port = doc::open("vmdrain{1@conf:slots=8").unwrap();
        let mut other = doc::open("vmdrain}1").unwrap();
        let waker = RunLoop::begin(&Args::default()).unwrap().waker().unwrap();
        let mut header = Header { ask: ask_at_once, ..Header::new(waker) };
        (0..3).for_each(|_| assert!(port.tx(0).push(&[0; 60])));
        port.tx(0).sync();
        for _ in 0..2 {
            assert!(!header.turn_to(Some(12), &mut port).unwrap());
            assert!(header.is_draining() && header.change.is_none() && header.len().is_none());
            assert!(!port.poll(ringway::Interest::Tx), "it waits for more room");
        }
        other.rx(0).sync();
        other.rx(0).batch(8).count();
        other.rx(0).sync();
        assert!(port.poll(ringway::Interest::Tx));
        while header.len() != Some(12) {
            header.turn_to(Some(12), &mut port).unwrap();
            thread::yield_now();
        }
    }
}
