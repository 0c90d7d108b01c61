//! Reads the system daemon's configuration again, where the machine's files can be reached.

use std::{io, os::fd::OwnedFd, path::Path};

use ringway_nic_setup::Parcel;
use ringway_proto::EventKind;

use super::messages::send_parcel;
use crate::{
    config::Config,
    log::{Entry, log},
    policy::Rules,
    server::Reading,
};

/// Sends what is in the file at `path`, and in those beside it, to the broker; or what is wrong with them.
pub fn run(broker: &OwnedFd, path: &Path) -> io::Result<()> {
    let reading: Reading = Rules::read(path).map_err(|error| error.to_string());
    log_doubts(path);
    let bytes = serde_json::to_vec(&reading)?;
    send_parcel(broker, &Parcel { bytes, fds: Vec::new() })
}

/// Warns of files of the system daemon's configuration that are good, and should not be as they are.
pub fn log_doubts(config: &Path) {
    for doubt in Config::doubts(config) {
        log(Entry::warn(EventKind::Config, doubt));
    }
}
