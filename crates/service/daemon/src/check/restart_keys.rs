//! Keys that are read at the start alone: those of which a running daemon tells what it has.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use ringway_ipc::{call, connect_to};
use ringway_proto::{DaemonInfo, Parameters, Request};

use crate::config::Config;

/// What the daemon at a socket runs with.
struct Running {
    mode: u32,
    gid: u32,
    parameters: Parameters,
    memory_per_user: u64,
}

/// Those of them that the configuration has otherwise than the daemon at `socket`.
///
/// # Errors
/// The daemon does not tell, in words.
pub(super) fn otherwise(config: &Config, socket: &Path) -> Result<Vec<&'static str>, String> {
    Ok(differing(config, &ask(socket)?))
}

fn ask(socket: &Path) -> Result<Running, String> {
    let file = fs::metadata(socket).map_err(|error| error.to_string())?;
    let connection = connect_to(socket).map_err(|error| error.to_string())?;
    let (parameters, _) =
        call::<Parameters>(&connection, &Request::Parameters).map_err(|e| e.to_string())?;
    let (daemon, _) =
        call::<DaemonInfo>(&connection, &Request::Daemon).map_err(|e| e.to_string())?;
    Ok(Running {
        mode: file.permissions().mode() & 0o777,
        gid: file.gid(),
        parameters,
        memory_per_user: daemon.memory_per_user,
    })
}

fn differing(config: &Config, running: &Running) -> Vec<&'static str> {
    let Running { mode, gid, parameters, memory_per_user } = running;
    let Parameters { max_bridges, nic_slots, timestamps } = *parameters;
    // Without a group it is the daemon's own.
    let group = config.gid().ok().flatten();
    let keys = [
        ("group", group.is_some_and(|group| group != *gid)),
        ("mode", config.mode().is_ok_and(|its| its != *mode)),
        ("max_bridges", config.max_bridges as u64 != u64::from(max_bridges)),
        ("nic_slots", config.nic_slots() != nic_slots),
        ("timestamps", config.timestamps != timestamps),
        ("memory_per_user", config.settings(false).memory_per_user != *memory_per_user),
    ];
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_are_named() {
        let mut config = Config::default();
        let settings = config.settings(false);
        let mut running = Running {
            mode: 0o660,
            gid: 7,
            parameters: Parameters {
                max_bridges: settings.max_bridges as u32,
                nic_slots: settings.nic_slots,
                timestamps: settings.timestamps,
            },
            memory_per_user: settings.memory_per_user,
        };
        assert_eq!(differing(&config, &running), [""; 0]);
        (running.mode, running.memory_per_user) = (0o600, 1 << 20);
        running.parameters.max_bridges += 1;
        assert_eq!(differing(&config, &running), ["mode", "max_bridges", "memory_per_user"]);
        config.group = Some("8".into());
        assert_eq!(differing(&config, &running)[0], "group");
    }
}
