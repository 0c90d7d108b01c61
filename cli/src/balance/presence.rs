//! Which outputs have a program at the other end.

use super::chooser::Chooser;
use crate::error::{Error, Result};
use ringway::Control;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two questions to the daemon.
const INTERVAL: Duration = Duration::from_millis(100);

/// Asks the daemon, in a thread of its own, which pipes are open at their other end. Other ports always
/// count as open.
pub struct Presence {
    shared: Arc<Shared>,
    /// Which change the chooser knows of.
    known: u32,
    /// Ends the thread when it is dropped.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    absent: Vec<AtomicBool>,
    /// Counts the changes.
    changes: AtomicU32,
}

impl Presence {
    /// Of the outputs with these names, as the registry knows them.
    pub fn watch(outputs: &[&str]) -> Result<Presence> {
        let others: Vec<Option<String>> = outputs.iter().map(|name| other_end(name)).collect();
        let control = Control::connect()?;
        let absent = others.iter().map(|_| AtomicBool::new(false)).collect();
        let shared = Arc::new(Shared { absent, changes: AtomicU32::new(0) });
        shared.look(&control, &others)?;
        let (end, ended) = channel();
        let watched = shared.clone();
        let watch = move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // The daemon has gone: the ports that need it say so.
                if watched.look(&control, &others).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("presence".into()).spawn(watch);
        let thread =
            thread.map_err(|source| Error::System { what: "starting a thread", source })?;
        Ok(Presence { shared, known: 0, end: Some(end), thread: Some(thread) })
    }

    /// Tells the chooser if anything has changed.
    #[inline]
    pub fn update(&mut self, chooser: &mut Chooser) {
        let changes = self.shared.changes.load(Ordering::Acquire);
        if changes != self.known {
            self.known = changes;
            chooser.set_absent(self.shared.absent.iter().map(|a| a.load(Ordering::Relaxed)));
        }
    }
}

impl Shared {
    fn look(&self, control: &Control, others: &[Option<String>]) -> Result<()> {
        let ports = control.ports()?;
        let mut changed = false;
        for (absent, other) in self.absent.iter().zip(others) {
            let Some(other) = other else { continue };
            let open = ports.iter().any(|port| port.name == *other && port.users > 0);
            changed |= absent.swap(!open, Ordering::Relaxed) == open;
        }
        if changed {
            self.changes.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The other end of a pipe.
fn other_end(name: &str) -> Option<String> {
    let at = name.rfind(['{', '}'])?;
    let brace = if name[at..].starts_with('{') { "}" } else { "{" };
    Some(format!("{}{brace}{}", &name[..at], &name[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_have_another_end() {
        for (name, other) in
            [("a{0", Some("a}0")), ("vale0:x}12", Some("vale0:x{12")), ("eth0", None)]
        {
            assert_eq!(other_end(name).as_deref(), other);
        }
    }
}
