//! Which outputs have a program at the other end.

use crate::error::{Error, Result};
use crate::sys;
use ringway::{BridgeInfo, Control, Port, PortInfo, PortKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two questions to the daemon.
const INTERVAL: Duration = Duration::from_millis(100);

/// Asks the daemon and the kernel, in a thread of its own, which outputs have a consumer: a program at the other end of a
/// pipe, another port on the switch, a link of the interface. Other kinds of ports always count as having one.
pub struct Presence {
    shared: Arc<Shared>,
    /// Which change has been told.
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
    /// Of these outputs.
    pub fn watch<'p>(outputs: impl Iterator<Item = &'p Port>) -> Result<Presence> {
        let mut others: Vec<Other> =
            outputs.map(|port| Other::of(port.name(), port.kind())).collect();
        let mut control = Control::connect()?;
        let absent = others.iter().map(|_| AtomicBool::new(false)).collect();
        let shared = Arc::new(Shared { absent, changes: AtomicU32::new(0) });
        shared.look(&control, &others)?;
        let (end, ended) = channel();
        let watched = shared.clone();
        let watch = move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if watched.look(&control, &others).is_ok() {
                    continue;
                }
                // The daemon has ended, and the next one does not know pipes that have gone on.
                if let Ok(next) = Control::connect_running() {
                    control = next;
                    others.iter_mut().for_each(Other::survives);
                }
            }
        };
        let thread = std::thread::Builder::new().name("presence".into()).spawn(watch);
        let thread =
            thread.map_err(|source| Error::System { what: "starting a thread", source })?;
        Ok(Presence { shared, known: 0, end: Some(end), thread: Some(thread) })
    }

    /// Which outputs have no consumer, if that has changed.
    #[inline]
    pub fn news(&mut self) -> Option<Vec<bool>> {
        let changes = self.shared.changes.load(Ordering::Acquire);
        if changes == self.known {
            return None;
        }
        self.known = changes;
        Some(self.shared.absent.iter().map(|absent| absent.load(Ordering::Relaxed)).collect())
    }
}

/// Who gets what an output sends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Other {
    /// The program that has this port open.
    Pipe(String),
    /// The other ports of the switch that this port is on.
    Switch(String),
    /// What is at the other end of this interface's wire.
    Interface(String),
    /// One that is always there.
    Always,
}

impl Other {
    fn of(name: &str, kind: PortKind) -> Other {
        if let Some(other) = other_end(name) {
            return Other::Pipe(other);
        }
        match kind {
            PortKind::Vale => Other::Switch(name.into()),
            // Its stack's rings are always there.
            PortKind::Nic if !name.contains('^') => Other::Interface(name.into()),
            _ => Other::Always,
        }
    }

    /// Of a daemon that has ended.
    fn survives(&mut self) {
        if let Other::Pipe(_) = self {
            *self = Other::Always;
        }
    }

    fn is_there(&self, ports: &[PortInfo], switches: &[BridgeInfo]) -> bool {
        let is_open = |name: &str| ports.iter().any(|port| port.name == name && port.users > 0);
        match self {
            Other::Pipe(other) => is_open(other),
            Other::Switch(own) => {
                let ours = |bridge: &&BridgeInfo| bridge.ports.iter().any(|port| port.name == *own);
                // A persistent port may have no program. An interface has none.
                let is_left = |name: &str| {
                    ports.iter().any(|port| {
                        port.name == name && port.kind == PortKind::Vale && port.users == 0
                    })
                };
                let others = switches.iter().find(ours).map(|bridge| &bridge.ports);
                others.into_iter().flatten().any(|port| port.name != *own && !is_left(&port.name))
            }
            // One of another network namespace is not to be seen from here.
            Other::Interface(name) => sys::has_link(name).unwrap_or(true),
            Other::Always => true,
        }
    }
}

impl Shared {
    fn look(&self, control: &Control, others: &[Other]) -> Result<()> {
        let ports = control.ports()?;
        let has_switches = others.iter().any(|other| matches!(other, Other::Switch(_)));
        let switches = if has_switches { control.switches()? } else { Vec::new() };
        let mut changed = false;
        for (absent, other) in self.absent.iter().zip(others) {
            let is_there = other.is_there(&ports, &switches);
            changed |= absent.swap(!is_there, Ordering::Relaxed) == is_there;
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
    fn each_kind_of_port_has_others() {
        let of = |name: &str, kind| Other::of(name, kind);
        assert_eq!(of("vale0:a}1", PortKind::Pipe), Other::Pipe("vale0:a{1".into()));
        assert_eq!(of("vale0:a", PortKind::Vale), Other::Switch("vale0:a".into()));
        assert_eq!(of("eth0", PortKind::Nic), Other::Interface("eth0".into()));
        assert_eq!(of("eth0^", PortKind::Nic), Other::Always);
        assert_eq!(of("file:x", PortKind::Null), Other::Always);
        assert!(of("no such one", PortKind::Nic).is_there(&[], &[]));
    }

    #[test]
    fn pipes_have_another_end() {
        for (name, other) in
            [("a{0", Some("a}0")), ("vale0:x}12", Some("vale0:x{12")), ("eth0", None)]
        {
            assert_eq!(other_end(name).as_deref(), other);
        }
    }
}
