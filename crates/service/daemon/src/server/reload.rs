//! SIGHUP: the system daemon reads its configuration again, and changes what differs.
//!
//! It cannot read it itself, nor the machine's lists of users: a process of the launcher's does, and sends what it
//! has read. A configuration with an error changes nothing.

use ringway_proto::EventKind;
use rustix::{event::epoll, fd::OwnedFd};

use super::{RELOADED, Server};
use crate::{
    config::MOST_BYTES,
    helper::{Part, receive_parcel},
    log::{self, Entry, log},
    policy::Rules,
    reservations,
    service_manager::{LISTEN_ELSEWHERE, ServiceManager},
};

/// Bytes of that at most: what the configuration is checked for, and what has a fixed length, the keys that a daemon
/// reads when it starts, and errors.
const MOST_READ: usize = MOST_BYTES + (1 << 20);

/// What the process sends: the rules, or what is wrong with the files.
pub type Reading = Result<Rules, String>;

/// A reading that is going on.
#[derive(Default)]
pub(super) struct Reload {
    reader: Option<OwnedFd>,
    /// It was asked for once more meanwhile.
    again: bool,
}

impl Server {
    /// Has the configuration read again.
    pub(super) fn begin_reload(&mut self, manager: &ServiceManager) {
        let mut signal = [0u8; size_of::<libc::signalfd_siginfo>()];
        let hangup = self.signals.hangup.as_ref();
        if hangup.is_some_and(|fd| rustix::io::read(fd, &mut signal).is_ok()) {
            self.start_reading(manager);
        }
    }

    fn start_reading(&mut self, manager: &ServiceManager) {
        let Some(launcher) = &self.launcher else {
            let text = "SIGHUP is ignored: a private daemon reads its configuration when it starts";
            log(Entry::warn(EventKind::Config, text));
            return;
        };
        if self.reload.reader.is_some() {
            self.reload.again = true;
            return;
        }
        manager.reloading();
        let begun = launcher.launch(Part::Configuration).and_then(|reader| {
            let data = epoll::EventData::new_u64(RELOADED);
            epoll::add(&self.epoll, &reader, data, epoll::EventFlags::IN)?;
            Ok(reader)
        });
        match begun {
            Ok(reader) => self.reload.reader = Some(reader),
            Err(error) => {
                let text = format!("the configuration cannot be read again: {error}");
                log(Entry::error(EventKind::Config, text));
                manager.ready();
            }
        }
    }

    /// Has what was read, unless something is wrong with it.
    pub(super) fn finish_reload(&mut self, manager: &ServiceManager) {
        let Some(reader) = self.reload.reader.take() else { return };
        let _ = epoll::delete(&self.epoll, &reader);
        let read = receive_parcel(&reader, MOST_READ).map_err(|error| error.to_string());
        let reading = read.and_then(|parcel| {
            serde_json::from_slice::<Reading>(&parcel.bytes).map_err(|error| error.to_string())?
        });
        match reading {
            Ok(rules) => self.apply(rules),
            Err(problem) => {
                let text = format!("the configuration stays as it was: {problem}");
                log(Entry::error(EventKind::Config, text));
            }
        }
        match std::mem::take(&mut self.reload.again) {
            true => self.start_reading(manager),
            false => manager.ready(),
        }
    }

    fn apply(&mut self, rules: Rules) {
        for key in rules.fixed_otherwise(&self.rules) {
            let text = match key {
                "socket" if self.listener.is_activated() => {
                    let path = self.listener.path().display();
                    format!(
                        "`socket` is another, and the daemon listens at {path} as before: {LISTEN_ELSEWHERE}"
                    )
                }
                _ => format!("`{key}` is as it was before: restart the daemon to have the change"),
            };
            log(Entry::warn(EventKind::Config, text));
        }
        if rules.log_level != self.rules.log_level {
            log::set_level(rules.log_level);
        }
        self.registry.change_limits(
            rules.switches_per_user,
            rules.switch_ports_per_user,
            rules.lossless_users.clone(),
        );
        self.rules = rules.with_fixed_of(&mut self.rules);
        for client in self.clients.values_mut() {
            let (all, uid) = (&self.rules.reservations, client.user.uid());
            client.reservations = reservations::of_connected(all, uid, &client.groups);
        }
        self.declare();
        log(Entry::info(EventKind::Config, "the configuration is read again"));
    }
}
