//! What the configuration says, in the terms of the server: permissions, limits, and what is declared.

use std::path::Path;

use ringway_proto::Level;
use ringway_registry::{DeclaredSwitch, Settings};
use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::{
    config::{Config, Error},
    reservations::Reservation,
};

/// To be read before the daemon cannot reach the machine's list of users any more.
pub struct Policy {
    pub rules: Rules,
    pub settings: Settings,
}

/// The part of it that another reading of the configuration may change while the daemon runs.
#[derive(Serialize, Deserialize)]
pub struct Rules {
    pub log_level: Level,
    /// Users that may open NICs, besides root.
    pub nic_uids: Vec<u32>,
    /// Interfaces, each with the users that may open it by name.
    pub grants: Vec<(String, Vec<u32>)>,
    pub reservations: Vec<Reservation>,
    /// What users may have of switches; see [`Settings`].
    pub switches_per_user: usize,
    pub switch_ports_per_user: usize,
    pub lossless_users: Option<Vec<u32>>,
    pub declared: Vec<DeclaredSwitch>,
    /// All other keys, with what they are set to.
    fixed: Vec<(String, String)>,
}

impl Policy {
    /// In a private daemon its user may open NICs: the kernel asks for the privileges.
    pub fn read(config: &Config, is_private: bool) -> Result<Policy, Error> {
        let settings = config.settings(is_private);
        let mut nic_uids = config.nic_uids()?;
        if is_private {
            nic_uids.push(getuid().as_raw());
        }
        let rules = Rules {
            log_level: config.log_level,
            nic_uids,
            grants: config.grants()?,
            reservations: config.reservations()?,
            switches_per_user: settings.switches_per_user,
            switch_ports_per_user: settings.switch_ports_per_user,
            lossless_users: settings.lossless_users.clone(),
            declared: config.declared()?,
            fixed: config.fixed(),
        };
        Ok(Policy { rules, settings })
    }
}

impl Rules {
    /// The system daemon's, from the file at `path` and those beside it as they are now.
    pub fn read(path: &Path) -> Result<Rules, Error> {
        Policy::read(&Config::read_again(path)?, false).map(|policy| policy.rules)
    }

    /// What the daemon reads when it starts alone stays as in these rules, by which it runs.
    pub fn with_fixed_of(self, running: &mut Rules) -> Rules {
        Rules { fixed: std::mem::take(&mut running.fixed), ..self }
    }

    /// The keys that other rules have otherwise, and that a daemon reads when it starts alone.
    pub fn fixed_otherwise<'a>(&'a self, other: &'a Rules) -> impl Iterator<Item = &'a str> {
        let differs = |(key, value): &&(String, String)| {
            !other.fixed.iter().any(|(its, other)| its == key && other == value)
        };
        self.fixed.iter().filter(differs).map(|(key, _)| &**key)
    }
}
