//! `ringwayd --check`: what is wrong with a configuration, and what a daemon that runs would change to have it.
#![allow(clippy::print_stdout, reason = "it is asked for, and not told by a daemon")]

use std::path::Path;

use ringway_proto::printable;
use ringway_registry::changes;

use crate::{
    config::{Config, Error},
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
    match StateFile::beside(Path::new(&config.socket)).look() {
        Ok(now) => {
            let changes = changes(&now, &declared);
            changes.iter().for_each(|change| say(&format!("would change: {change}")));
            if changes.is_empty() {
                say("switches are as declared");
            }
        }
        Err(error) => say(&format!("what would change is not known: {error}")),
    }
    Ok(())
}

fn say(text: &str) {
    println!("{}", printable(text, &[]));
}
