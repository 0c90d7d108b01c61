//! A port whose daemon has ended: a read, a wait or a send opens it again at the next daemon, behind the same descriptor.
//!
//! ```text
//!   read:  the rings are empty ----------------+
//!   send:  what they hold is kept, to be read --+--> the port is shut --> an attempt, a pause, an attempt --> another port
//! ```
//!
//! The reader that has the lock does it, and a send where nothing reads. Filter, snaplen and direction are of this side;
//! the counters of the old port are counted on. Attempts follow each other with a pause, in which a read that may wait
//! sleeps, and another finds nothing. The descriptor that a program watches is not readable in a pause, and after it is.

use std::{
    cell::Cell,
    ptr,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use ringway::{Error, Interest, Port, explain, patience};
use rustix::{
    event::{PollFlags, Timespec},
    fd::AsRawFd,
    io::Errno,
};

use super::{End, Live, Reader, lock};
use crate::{filtering::push_down, losses::Losses, send::SendError, signals::Signals, sys::poll};

thread_local! {
    /// The port whose packets this thread is handing to a function of the program's.
    static HANDING_OUT: Cell<*const Live> = const { Cell::new(ptr::null()) };
}

/// While this is there, the thread hands packets of a port to a function of the program's, which may send.
pub struct HandingOut(*const Live);

impl HandingOut {
    pub(crate) fn of(live: &Live) -> HandingOut {
        HandingOut(HANDING_OUT.replace(live))
    }

    /// For a sleep: a handler of a signal that jumps out of it leaves the function that has begun it, too.
    pub(super) fn nothing() -> HandingOut {
        HandingOut(HANDING_OUT.replace(ptr::null()))
    }
}

impl Drop for HandingOut {
    fn drop(&mut self) {
        HANDING_OUT.set(self.0);
    }
}

impl Live {
    /// Shuts the port, which the daemon has left behind: its rings have been read.
    #[cold]
    pub(super) fn leave(&self, reader: &mut Reader) {
        let mut losses = lock(&self.losses);
        let mut port = self.port.write().unwrap_or_else(PoisonError::into_inner);
        let so_far = losses.so_far(&port);
        reader.reopening = Some(port.reopening(patience()));
        reader.left_at = Some(Instant::now());
        *lock(&self.sources) = Arc::default();
        *lock(&self.tx_sources) = Arc::default();
        self.unsent.fetch_add(port.shut(), Relaxed);
        reader.run.end();
        *losses = Losses::after(so_far, &port);
        (reader.found, reader.ring, reader.turn, reader.taken) = (None, 0, 0, 0);
        self.is_left.store(true, Relaxed);
        let (name, unsent) = (port.name(), self.unsent());
        explain(&format_args!(
            "{name}: ringwayd has ended; the port is opened again when the next is there; of what it was to \
             send, {unsent} packets have been lost so far"
        ));
    }

    /// For a read that has found nothing: goes on with another port, or waits for it. `None` if the program does not
    /// want to wait.
    #[cold]
    pub(super) fn await_port<'a>(
        &'a self,
        mut reader: MutexGuard<'a, Reader>,
        signals: &Signals,
        nonblocking: bool,
        deadline: Option<Instant>,
    ) -> Result<Option<MutexGuard<'a, Reader>>, End> {
        if self.try_again(&mut reader)? {
            return Ok(Some(reader));
        }
        if nonblocking {
            return Ok(None);
        }
        if let Some(due) = reader.reopening.as_ref().map(|reopening| reopening.due()) {
            let due = deadline.map_or(due, |deadline| deadline.min(due));
            let (paused, again) = self.without_lock(reader, || pause(signals, due))?;
            paused?;
            reader = again;
        }
        Ok(Some(reader))
    }

    /// Whether there is a port again.
    fn try_again(&self, reader: &mut Reader) -> Result<bool, End> {
        let Some(reopening) = &mut reader.reopening else { return Ok(true) };
        let port = match reopening.attempt() {
            Ok(Some(port)) => port,
            Ok(None) => {
                let left = reopening.due().saturating_duration_since(Instant::now());
                let mut port = self.port.write().unwrap_or_else(PoisonError::into_inner);
                // Without a timer the descriptor stays readable.
                let _ = port.rest(left);
                return Ok(false);
            }
            Err(error) => return Err(self.give_up(reader, &error)),
        };
        if let Some(insns) = lock(&self.pushed_down).as_deref() {
            push_down(&port, insns);
        }
        // Without descriptors it is closed, and the next attempt follows.
        let Some(former) = self.replace_at(reader, port) else { return Ok(false) };
        // What was read last lies in its memory.
        reader.former.push(former);
        explain(&format_args!("{}: opened again", self.port().name()));
        Ok(true)
    }

    fn give_up(&self, reader: &mut Reader, error: &Error) -> End {
        let patience = reader.reopening.as_ref().map_or(Duration::ZERO, |it| it.patience());
        let has_passed = reader.left_at.is_none_or(|then| then.elapsed() >= patience);
        let name = self.port().name().to_owned();
        let text = explanation(&name, &error.to_string(), has_passed.then_some(patience));
        explain(&text);
        let mut port = self.port.write().unwrap_or_else(PoisonError::into_inner);
        // The descriptor is readable from now on: the program reads, and is told.
        port.shut();
        End::Failed(self.failed.set(text))
    }

    /// For a send whose port the daemon has left: goes on with the port that this, or a reader, has opened.
    ///
    /// In a function of the program's to which packets of the port are handed there is none: the rings are being read.
    /// What that sends is lost, as what the old ring holds, and it does not wait.
    #[cold]
    pub(crate) fn await_port_to_send(&self, nonblocking: bool) -> Result<Awaited, SendError> {
        let not_yet = || {
            let text = format!("{}: there is no ringwayd; try again", self.port().name());
            SendError::new(Errno::AGAIN, text)
        };
        if ptr::eq(HANDING_OUT.get(), self) {
            self.unsent.fetch_add(1, Relaxed);
            return Ok(Awaited::Nothing);
        }
        let end = Instant::now().checked_add(patience());
        loop {
            if let Some(why) = self.failed.get() {
                return Err(SendError::new(Errno::NXIO, why));
            }
            // A thread that reads notices by itself.
            if let Some(mut reader) = self.try_reader() {
                if reader.reopening.is_none() {
                    if !self.has_lost_daemon() {
                        return Ok(Awaited::Port);
                    }
                    self.keep(&mut reader);
                    self.has_early.store(!reader.early.is_empty(), Relaxed);
                    self.leave(&mut reader);
                }
                match self.try_again(&mut reader) {
                    Ok(true) => return Ok(Awaited::Port),
                    Ok(false) => {}
                    Err(_) => continue,
                }
            } else if !self.has_lost_daemon() {
                return Ok(Awaited::Port);
            } else if end.is_some_and(|end| end <= Instant::now()) {
                let text =
                    format!("{}: ringwayd has ended, and nothing is read", self.port().name());
                return Err(SendError::new(Errno::TIMEDOUT, text));
            }
            if nonblocking {
                return Err(not_yet());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether the port is shut, and not open again.
    #[inline]
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Relaxed)
    }

    /// Whether the daemon has ended that has served the port, which has not been opened again.
    pub fn has_lost_daemon(&self) -> bool {
        self.has_lost(&self.port())
    }

    /// The same for a thread that has the port: asking for it again, it would wait for a thread that waits for it.
    pub(crate) fn has_lost(&self, port: &Port) -> bool {
        self.is_left.load(Relaxed) || port.check(Interest::Both).is_err_and(|error| error.is_gone())
    }

    /// Packets that were to be sent, and that no daemon has taken.
    pub fn unsent(&self) -> u64 {
        self.unsent.load(Relaxed)
    }
}

/// Why a port is not open again. libpcap's programs have 255 bytes for it: what is not known by the reason comes last.
/// `waited`: for as long as it was to be tried; `None`: the reason will not pass.
fn explanation(name: &str, why: &str, waited: Option<Duration>) -> String {
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why);
    match waited {
        None => format!("{name}: ringwayd has ended, and the port cannot be opened again: {why}"),
        Some(waited) => format!(
            "{name}: ringwayd has ended, and within {} s the port could not be opened again: {why}; start \
             ringwayd, and then this program again",
            waited.as_secs()
        ),
    }
}

/// What a send has waited for.
pub(crate) enum Awaited {
    Port,
    Nothing,
}

/// Sleeps until then, or until a signal.
fn pause(signals: &Signals, end: Instant) -> Result<(), End> {
    let left = end.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    let wake = signals.wake_fd().map(|fd| (fd.as_raw_fd(), PollFlags::IN));
    match poll(wake.as_slice(), Some(left)).inspect(|seen| signals.slept(seen)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(End::Failed(format!("cannot wait for ringwayd: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_told_where_it_has_passed() {
        let none = "cannot reach ringwayd";
        let text = explanation("vale0:a", none, Some(Duration::from_secs(60)));
        assert!(text.contains("within 60 s") && text.ends_with("and then this program again"));
        let refusal = "netmap:eth1/rt: the program has given up its rights (uid 65534) since it opened the \
                       port; have it keep them (tcpdump: -Z root)";
        let text = explanation("netmap:eth1/rt", refusal, None);
        let whole = "netmap:eth1/rt: ringwayd has ended, and the port cannot be opened again: the program has \
                     given up its rights (uid 65534) since it opened the port; have it keep them (tcpdump: -Z root)";
        assert_eq!(text, whole);
        // PCAP_ERRBUF_SIZE, with the zero at its end.
        assert!(text.len() < 256);
    }
}
