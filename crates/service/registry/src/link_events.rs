//! Interfaces that change, go down, or away, while they are in use (S-LIFE-9).
//!
//! Each port that has one watches it. When it has gone, its name is free at once; a port that
//! programs have stays until they close it, and all their syncs fail. One that was moved to another
//! network namespace has gone, and takes nothing of ours along: it is any user's there. No worker
//! polls one that is down. One that was renamed is found by its new name, and another may have the old one.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    mem::MaybeUninit,
};

use ringway_nic_setup::{Interface, Link, LinkState, LinkWatch};
use ringway_proto::{Error, EventKind, Level, Result};
use rustix::{
    event::{Timespec, epoll},
    fd::{AsFd, BorrowedFd, OwnedFd},
};

use crate::{
    added_queues, clock,
    kinds::{attached::Attached, monitor::Monitor, nic::Nic},
    lost_ports,
    notices::{Notice, Notices},
    port::PortId,
    ports::Ports,
    registry::Registry,
    setup_error::nic_error,
};

/// Interfaces looked at together.
const EVENTS: usize = 16;

/// What has become of a port's interface, and what it was and is called, where that is new.
struct LinkEvent {
    id: PortId,
    was: LinkState,
    link: Option<Link>,
    names: Option<[String; 2]>,
    /// How many of its queues receive by now, where that was told.
    rx_queues: Option<u32>,
    /// What watched it, if it has gone.
    watch: Option<LinkWatch>,
}

/// The watches of all ports.
#[derive(Default)]
pub(crate) struct Watches {
    /// Listens to all of them. Made with the first.
    epoll: Option<OwnedFd>,
    by_port: BTreeMap<PortId, LinkWatch>,
    /// What has been heard, and not been dealt with.
    heard: VecDeque<LinkEvent>,
}

impl Watches {
    fn epoll(&mut self) -> io::Result<&OwnedFd> {
        let epoll = match self.epoll.take() {
            Some(epoll) => epoll,
            None => epoll::create(epoll::CreateFlags::CLOEXEC)?,
        };
        Ok(self.epoll.insert(epoll))
    }

    /// From now on the port of that name goes with the interface that `watch` watches.
    pub fn add(&mut self, id: PortId, name: &str, watch: LinkWatch) -> Result<()> {
        let data = epoll::EventData::new_u64(id);
        let add = |epoll: &OwnedFd| {
            let mut fds = watch.descriptors();
            Ok(fds.try_for_each(|fd| epoll::add(epoll, fd, data, epoll::EventFlags::IN))?)
        };
        let added = self.epoll().and_then(add);
        let failed = |e| Error::io(&format!("{name}: too many interfaces are in use"), e);
        added.map_err(failed)?;
        self.by_port.insert(id, watch);
        Ok(())
    }

    /// A port has no interface any more. Closing the watch takes it off the epoll's list.
    pub fn remove(&mut self, id: PortId) {
        self.by_port.remove(&id);
        self.heard.retain(|event| event.id != id);
    }

    /// Whether there are any.
    pub fn are_any(&self) -> bool {
        !self.by_port.is_empty()
    }

    /// The ports whose interfaces are watched.
    pub fn ports(&self) -> impl Iterator<Item = PortId> {
        self.by_port.keys().copied()
    }

    /// Whether the interface of a port is watched. False: the watch has reported that the interface has gone.
    pub fn has(&self, id: PortId) -> bool {
        self.by_port.contains_key(&id) || self.heard.iter().any(|event| event.id == id)
    }

    /// Keeps those of some ports alone.
    pub fn retain(&mut self, is_there: impl Fn(PortId) -> bool) {
        self.by_port.retain(|id, _| is_there(*id));
        self.heard.retain(|event| is_there(event.id));
    }

    /// Ports whose interfaces have become something else since the last look.
    fn news(&mut self) -> Vec<LinkEvent> {
        let mut all = Vec::new();
        let Some(epoll) = self.epoll.as_ref().filter(|_| !self.by_port.is_empty()) else {
            return all;
        };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
            let Ok((events, _)) = epoll::wait(epoll, &mut events, Some(&now)) else { return all };
            let before = all.len();
            for event in events.iter() {
                let id = event.data.u64();
                let Some(watch) = self.by_port.get_mut(&id) else { continue };
                let was = watch.state();
                let (link, names, rx_queues) = (watch.news(), watch.renamed(), watch.rx_queues());
                let is_gone = link.is_some_and(|link| link.state == LinkState::Gone);
                let watch = is_gone.then(|| self.by_port.remove(&id)).flatten();
                // Others may keep it open.
                for fd in watch.iter().flat_map(LinkWatch::descriptors) {
                    let _ = epoll::delete(epoll, fd);
                }
                if link.is_some() || names.is_some() || rx_queues.is_some() {
                    all.push(LinkEvent { id, was, link, names, rx_queues, watch });
                }
            }
            // Others may be behind those that have something to tell.
            if events.len() < EVENTS || all.len() == before {
                return all;
            }
        }
    }
}

/// Begins to watch an interface, from its network namespace.
pub(crate) fn watch(interface: &Interface) -> Result<LinkWatch> {
    LinkWatch::open(interface).map_err(nic_error)
}

impl Registry {
    /// Becomes readable when an interface that is in use may have gone, gone down, or got another
    /// MTU or name, or when a switch has done with a port that has gone, or has lost one: then call
    /// [`handle_events`](Registry::handle_events).
    ///
    /// Errors: those of `epoll_create(2)` and of making a doorbell, the first time.
    pub fn events(&mut self) -> io::Result<BorrowedFd<'_>> {
        let epoll = self.watches.epoll()?;
        if let Some(doorbell) = self.leftovers.listen(epoll)? {
            self.bridges.report_to(doorbell);
        }
        Ok(epoll.as_fd())
    }

    /// Takes note of the interfaces that have gone: their ports' rings are stopped, and the
    /// programs that wait for one are woken; NICs and persistent ports are taken off their bridges. Those that are
    /// down are not polled until they are up again, and frames are as long as the MTU allows by now. Frees
    /// the rings of ports that have gone and that switches have done with.
    /// Every [`call`](Registry::call) begins with this.
    pub fn handle_events(&mut self) {
        if self.leftovers.heard() {
            lost_ports::give_up(self);
        }
        let drained = self.leftovers.free_done(&mut self.regions);
        self.drained(drained);
        let news = self.watches.news();
        rename(&mut self.ports, &news);
        self.bridges.lasting_changed |= news.iter().any(|event| event.names.is_some());
        self.watches.heard.extend(news);
        // What is dealt with when it panics is not heard again; all that is behind it is.
        while let Some(event) = self.watches.heard.pop_front() {
            let netns = self.netns_of(event.id);
            self.notices.tell_link(&event, &self.ports, netns);
            let LinkEvent { id, link, watch, rx_queues, .. } = event;
            if let Some(rx_queues) = rx_queues {
                self.queues_changed(id, rx_queues);
            }
            if let Some(watch) = watch {
                let Registry { ports, bridges, expected, .. } = self;
                expected.await_interface(id, watch, clock::now(), ports, bridges);
            }
            if let (Some(port), Some(link)) = (self.ports.get(id), link) {
                (port.backend.actions().link_changed)(self, id, link);
            }
        }
    }

    /// So many queues of a port's interface receive by now.
    fn queues_changed(&mut self, id: PortId, receiving: u32) {
        let Some(port) = self.ports.get_mut(id) else { return };
        let before = port.backend.added_queues(port);
        if let Some(count) = port.backend.queue_count() {
            count.set_receiving(receiving);
        }
        let now = port.backend.added_queues(port);
        if now == before || port.gone {
            return;
        }
        let (level, text) = match added_queues::describe(&now, port.backend.how_to_reopen()) {
            Some(text) => (Level::Warn, text),
            None => (Level::Info, "no queue is without a ring any more".into()),
        };
        let text = format!("{}: {text}", port.name);
        let notice = Notice::new(level, EventKind::Filter, text).at(&port.name).of_user(port.uid);
        let netns = self.netns_of(id);
        self.notices.add(notice.of_netns(netns));
    }

    /// The inode number of the network namespace of a port's interface.
    fn netns_of(&self, id: PortId) -> Option<u64> {
        self.ports.get(id)?.backend.netns(self)
    }

    /// Nothing moves through the rings of a port any more, and no name finds it.
    pub(crate) fn stop(&mut self, id: PortId) {
        self.ports.hide(id);
        Monitor::end_all(self, id);
        let port = self.port_mut(id);
        port.gone = true;
        port.all_rings().for_each(|ring| ring.kring.stop());
        port.all_rings().for_each(|ring| ring.doorbell.notify());
    }
}

impl Notices {
    /// That an interface in use carries nothing any more, or does again.
    fn tell_link(&mut self, event: &LinkEvent, ports: &Ports, netns: Option<u64>) {
        let (Some(link), Some(port)) = (event.link, ports.get(event.id)) else { return };
        if link.state == event.was || port.gone {
            return;
        }
        let (level, kind, what) = match link.state {
            LinkState::Up => (Level::Info, EventKind::LinkBack, "is up again"),
            LinkState::NoCarrier => (Level::Info, EventKind::LinkLost, "has no carrier"),
            LinkState::Down => (Level::Info, EventKind::LinkLost, "is down"),
            LinkState::Gone => (Level::Warn, EventKind::LinkLost, "has gone"),
        };
        let text = format!("{}: its interface {what}", port.name);
        let notice = Notice::new(level, kind, text).at(&port.name).of_user(port.uid);
        self.add(notice.of_netns(netns));
    }
}

/// Ports of interfaces, and the pipes that these are parents of, are found by the names that the
/// interfaces have now. What is on a bridge keeps the name that it has there, and its interface is told beside it.
fn rename(ports: &mut Ports, news: &[LinkEvent]) {
    let mut keys = Vec::new();
    for LinkEvent { id, names, .. } in news {
        let Some([old, new]) = names else { continue };
        let renamed = |text: &str| {
            let rest = text.strip_prefix(old.as_str())?;
            let is_it = rest.is_empty() || rest.starts_with(['\0', '{', '}']);
            is_it.then(|| format!("{new}{rest}"))
        };
        let its =
            ports.iter_mut().filter(|(at, port)| *at == id || port.backend.parent() == Some(*id));
        let mut ids = Vec::new();
        for (&at, port) in its {
            if let Some(nic) = port.get_mut::<Nic>() {
                nic.rename(new);
            }
            if let Some(nic) = port.get_mut::<Attached>() {
                nic.losses.rename(new);
            }
            if let Some(name) = renamed(&port.name) {
                port.name = name;
            }
            ids.push(at);
        }
        keys.extend(ports.keys_of(&ids, renamed));
    }
    // All at once: what one has given up another may have.
    for (_, old, _) in &keys {
        ports.forget(old);
    }
    for (id, _, new) in &keys {
        ports.name(new, *id);
    }
}
