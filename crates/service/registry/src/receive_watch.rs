//! Interfaces that receive frames of which their ports get none: told when it begins and when it is over.
//!
//! Such frames are lost where nothing counts them: the card has queues that the driver does not serve, the driver has a
//! bug, another program is in front. A port rightly gets nothing in many ways:
//!
//! | what | how it is told apart |
//! | --- | --- |
//! | a filter, an action program, some of the queues | [`Intake`](crate::kinds::nic_intake::Intake) |
//! | no link, frames that fit no buffer | the same |
//! | the program is stopped, or does not read | frames wait in the kernel's ring, or are counted as dropped |
//! | stray frames; a burst between two looks | [`Arrivals`](crate::arrivals::Arrivals) wants some at several looks in a row |

use std::{
    sync::mpsc::{Receiver, TryRecvError, channel},
    time::{Duration, Instant},
};

use ringway_nic_setup::received;
use ringway_proto::{EventKind, Level, NicMode};

use crate::{
    arrivals::{Look, News, remedy},
    deferred::Work,
    kinds::nic::Nic,
    notices::Notice,
    port::{Port, PortId},
    registry::Registry,
    setup_error::nic_error,
    subject::Subject,
};

/// From one look to the next.
const INTERVAL: Duration = Duration::from_secs(5);

/// What interfaces have received, by their ports.
type Readings = Vec<(PortId, u64)>;

/// Reads what interfaces have received, on another thread: a driver may take its time for that. What was found of a
/// port is kept with its sockets, and goes with them.
#[derive(Default)]
pub struct ReceiveWatch {
    last: Option<Instant>,
    /// What is being read.
    reading: Option<Receiver<Readings>>,
}

/// What comes of a look.
#[derive(Default)]
pub struct Looked {
    /// What the operator should know.
    pub notices: Vec<Notice>,
    /// What is to be done, and discarded; then it is time for the next look.
    pub work: Option<Work>,
    /// When it is that otherwise; `None`: no interface is open.
    pub again: Option<Duration>,
}

impl ReceiveWatch {
    /// Looks at the ports of interfaces, if it is time for that.
    pub fn look(&mut self, registry: &mut Registry, now: Instant) -> Looked {
        let mut looked = Looked::default();
        match self.reading.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return looked,
            Some(Ok(readings)) => {
                let notices = readings
                    .into_iter()
                    .filter_map(|(id, count)| compare(registry, id, count, now));
                looked.notices.extend(notices);
            }
            // None was made, or it could not be.
            None | Some(Err(TryRecvError::Disconnected)) => {}
        }
        self.reading = None;
        let next = self.last.and_then(|last| (last + INTERVAL).checked_duration_since(now));
        if let Some(left) = next.filter(|left| !left.is_zero()) {
            // Which of them are ports' is looked at then.
            looked.again = registry.watches.are_any().then_some(left);
            return looked;
        }
        self.last = Some(now);
        let open: Vec<_> = registry.watches.ports().filter(|id| receives(registry, *id)).collect();
        if open.is_empty() {
            return looked;
        }
        looked.again = Some(INTERVAL);
        looked.notices.extend(open.iter().filter_map(|id| forget_selecting(registry, *id)));
        looked.work = self.read(registry, open);
        looked
    }

    /// Has the counts of those read that take all frames.
    fn read(&mut self, registry: &mut Registry, open: Vec<PortId>) -> Option<Work> {
        let subject = |id: PortId| {
            let port = registry.ports.get(id).filter(|port| takes_all(registry, port))?;
            let nic = port.get::<Nic>()?;
            Some((id, nic.netns.clone(), nic.interface.clone()))
        };
        let ports: Vec<_> = open.into_iter().filter_map(subject).collect();
        if ports.is_empty() {
            return None;
        }
        let (to, reading) = channel();
        self.reading = Some(reading);
        let read = move || {
            let of_one = |(id, netns, interface): (PortId, crate::netns::OpenNetns, _)| {
                let count = netns.inside(|| received(&interface).map_err(nic_error)).flatten();
                Some((id, count.ok()?))
            };
            // The daemon may have ended.
            let _ = to.send(ports.into_iter().filter_map(of_one).collect());
        };
        Some(registry.deferred.unasked(Subject::Received, read))
    }
}

/// Whether programs receive by a port.
fn receives(registry: &Registry, id: PortId) -> bool {
    let nic = registry.ports.get(id).and_then(|port| port.get::<Nic>());
    nic.and_then(|nic| nic.sockets.as_ref()).is_some_and(|sockets| sockets.is_any_redirected())
}

fn takes_all(registry: &Registry, port: &Port) -> bool {
    Nic::intake(registry, port).is_some_and(|intake| intake.is_all())
}

/// A port that does not take all frames any more.
fn forget_selecting(registry: &mut Registry, id: PortId) -> Option<Notice> {
    let is_all = registry.ports.get(id).is_some_and(|port| takes_all(registry, port));
    let port = registry.ports.get_mut(id).filter(|_| !is_all)?;
    let was_missing = port.get_mut::<Nic>()?.sockets.as_mut()?.arrivals.forget();
    let text = "it is not known any more whether its port gets what the interface receives: it takes a part alone, \
                or there is no link";
    was_missing.then(|| notice(registry, id, Level::Info, text.into())).flatten()
}

/// The interface of a port has received so many frames.
fn compare(registry: &mut Registry, id: PortId, received: u64, now: Instant) -> Option<Notice> {
    let port = registry.ports.get(id).filter(|port| takes_all(registry, port))?;
    let look = Look { received, got: Nic::got(port) };
    let port = registry.ports.get_mut(id)?;
    let name = port.name.clone();
    let Nic { interface, sockets: Some(sockets), .. } = port.get_mut::<Nic>()? else { return None };
    let mut arrivals = std::mem::take(&mut sockets.arrivals);
    let news = arrivals.look(look, now, || sockets.are_frames_waiting());
    sockets.arrivals = arrivals;
    let (level, text) = match news? {
        News::Misses(frames, time) => {
            let mode = sockets.mode().unwrap_or(NicMode::Packet);
            let queues = match interface.rx_queues {
                0 | 1 => "queue 0".into(),
                count => format!("queues 0-{}", count - 1),
            };
            let text = format!(
                "its interface has received {frames} frames in {:.0} s, and the port, which takes all, has got none \
                 ({mode} mode, {queues}); {}",
                time.as_secs_f64(),
                remedy(&name, mode),
            );
            (Level::Warn, text)
        }
        News::Gets(frames, time) => {
            let text = format!(
                "its port gets frames again; its interface has received {frames} in {:.0} s",
                time.as_secs_f64()
            );
            (Level::Info, text)
        }
    };
    notice(registry, id, level, text)
}

fn notice(registry: &Registry, id: PortId, level: Level, text: String) -> Option<Notice> {
    let port = registry.ports.get(id)?;
    let text = format!("{}: {text}", port.name);
    let notice = Notice::new(level, EventKind::NotReceived, text).at(&port.name);
    Some(notice.of_user(port.uid).of_netns(port.backend.netns(registry)))
}
