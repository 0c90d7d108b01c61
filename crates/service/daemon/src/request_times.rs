//! What the daemon says of itself: how long it takes for requests, by what they ask, and what it cannot do any more.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ringway_proto::{DaemonInfo, Durations, Request};

/// Of one daemon.
pub struct RequestTimes {
    started: SystemTime,
    memory_per_user: u64,
    by_kind: BTreeMap<&'static str, Durations>,
    degraded: Option<&'static str>,
}

impl RequestTimes {
    /// Begins now.
    pub fn new(memory_per_user: u64) -> RequestTimes {
        let (started, by_kind) = (SystemTime::now(), BTreeMap::new());
        RequestTimes { started, memory_per_user, by_kind, degraded: None }
    }

    /// From now on the daemon cannot do all that it could.
    pub fn degrade(&mut self, how: &'static str) {
        self.degraded = Some(how);
    }

    /// A request of this kind has been answered, so long after it came.
    pub fn add(&mut self, kind: &'static str, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.by_kind.entry(kind).or_default().add(micros);
    }

    /// What users see of it.
    pub fn info(&self) -> DaemonInfo {
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let requests = self.by_kind.iter().map(|(kind, times)| ((*kind).into(), times.clone()));
        DaemonInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            started: started.as_secs(),
            #[cfg(feature = "next")]
            next: ringway_proto::VERSION.into(),
            memory_per_user: self.memory_per_user,
            requests: requests.collect(),
            degraded: self.degraded.map(Into::into),
        }
    }
}

/// What a request asks, as users are told.
pub fn kind(request: &Request) -> &'static str {
    match request {
        Request::Register { .. } => "register",
        Request::Unregister => "unregister",
        Request::Describe => "describe",
        Request::Barrier => "barrier",
        Request::Mirrors { .. } => "mirrors",
        Request::Stack => "stack",
        Request::PortGeometry { .. } => "port_geometry",
        Request::Pools { .. } => "pools",
        Request::NewInterface { .. } => "new_interface",
        Request::DeleteInterface { .. } => "delete_interface",
        Request::SetHeaderLen { .. } => "set_header_len",
        Request::HeaderLen { .. } => "header_len",
        Request::SwitchAttach { .. } => "switch_attach",
        Request::SwitchDetach { .. } => "switch_detach",
        Request::SwitchFind { .. } => "switch_find",
        Request::SwitchPoll { .. } => "switch_poll",
        Request::SwitchNew { .. } => "switch_new",
        Request::SwitchDelete { .. } => "switch_delete",
        Request::SwitchForward { .. } => "switch_forward",
        Request::SwitchPort { .. } => "switch_port",
        Request::Switches { .. } => "switches",
        Request::Ports { .. } => "ports",
        Request::Rings { .. } => "rings",
        Request::Regions { .. } => "regions",
        Request::SetFilter { .. } => "set_filter",
        Request::RedirectQueues { .. } => "redirect_queues",
        Request::Steer { .. } => "steer",
        Request::Parameters => "parameters",
        Request::SwitchDetachAll { .. } => "switch_detach_all",
        Request::SetAction { .. } => "set_action",
        Request::NameConflicts => "name_conflicts",
        Request::SwitchAddresses { .. } => "switch_addresses",
        Request::DeviceCounters { .. } => "device_counters",
        Request::SwitchAddressAdd { .. } => "switch_address_add",
        Request::SwitchAddressDelete { .. } => "switch_address_delete",
        Request::SwitchAddressesFlush { .. } => "switch_addresses_flush",
        Request::SwitchMulticast { .. } => "switch_multicast",
        Request::SwitchGroups { .. } => "switch_groups",
        Request::SwitchMirrorAdd { .. } => "switch_mirror_add",
        Request::SwitchMirrorDelete { .. } => "switch_mirror_delete",
        Request::Daemon => "daemon",
        Request::Events { .. } => "events",
        Request::LogLevel(_) => "log_level",
        #[cfg(feature = "next")]
        Request::Next(_) => "next",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_times() {
        let mut times = RequestTimes::new(4096);
        times.add(kind(&Request::Daemon), Duration::from_micros(3));
        times.add(kind(&Request::Daemon), Duration::from_micros(4));
        times.add(kind(&Request::Ports { from: 0 }), Duration::from_secs(1));
        let info = times.info();
        let kinds: Vec<_> =
            info.requests.iter().map(|(kind, times)| (&kind[..], times.micros)).collect();
        assert_eq!(kinds, [("daemon", 7), ("ports", 1_000_000)]);
        assert_eq!((&info.version[..], info.memory_per_user), (env!("CARGO_PKG_VERSION"), 4096));
    }

    /// All kinds at once, with the largest numbers, leave room in a message of the protocol.
    #[test]
    fn the_answer_fits_a_message() {
        let longest =
            Durations { counts: vec![u64::MAX; Durations::BOUNDS.len() + 1], micros: u64::MAX };
        let requests = vec![("switch_addresses_flush".to_string(), longest); 64];
        let info = DaemonInfo { requests, ..RequestTimes::new(u64::MAX).info() };
        let bytes = postcard::to_allocvec(&info).unwrap().len();
        assert!(bytes < 32 << 10, "{bytes}");
    }
}
