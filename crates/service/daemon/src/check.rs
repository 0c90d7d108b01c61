//! `ringwayd --check`: what is wrong with a configuration, and what a daemon that runs would change to have it.
#![allow(clippy::print_stdout, reason = "it is asked for, and not told by a daemon")]

use std::path::Path;

use ringway_proto::printable;
use ringway_registry::{Change, LastingAttachment, changes, idle_addresses};

mod restart_keys;

use crate::{
    config::{Config, Error},
    running::runs_at,
    state::StateFile,
};

/// Checks the file at `path`, and those beside it.
///
/// # Errors
/// What is wrong with them.
pub fn run(path: &Path) -> Result<(), Error> {
    let config = Config::read(path)?;
    let declared = config.declared()?;
    say(&format!("{}: the configuration is good", path.display()));
    let socket = Path::new(&config.socket);
    let runs = runs_at(socket);
    if runs {
        match restart_keys::otherwise(&config, socket) {
            Ok(keys) => keys.iter().for_each(|key| say(&format!("would take a restart: `{key}`"))),
            Err(error) => say(&format!("which keys would take a restart is not known: {error}")),
        }
    }
    match StateFile::beside(socket).look() {
        Ok(now) => {
            if !runs {
                say(&format!("no daemon runs at {}: what the last one left", socket.display()));
            }
            let changes = changes(&now, &declared);
            changes.iter().for_each(|change| say(&format!("would change: {change}")));
            idle_addresses(&now, &declared).iter().for_each(|idle| say(&format!("note: {idle}")));
            // What is to be detached is not waited for any more.
            let stays = |it: &&LastingAttachment| {
                let leaves = Change::Detach(it.name.clone());
                declared.iter().any(|switch| switch.attaches(&it.name))
                    && !changes.contains(&leaves)
            };
            let absent = now.attached.iter().filter(|it| it.absent || it.never_there);
            let waiting: Vec<_> = absent.filter(stays).collect();
            let why = if runs { " (`ringway switch list` says why)" } else { "" };
            for LastingAttachment { name, .. } in &waiting {
                say(&format!("not attached: {name}{why}"));
            }
            match (changes.is_empty(), waiting.is_empty()) {
                (true, true) => say("switches are as declared"),
                (true, false) => say("switches are as declared otherwise"),
                (false, _) => {}
            }
        }
        Err(error) => say(&format!("what would change is not known: {error}")),
    }
    Ok(())
}

fn say(text: &str) {
    println!("{}", printable(text, &[]));
}
