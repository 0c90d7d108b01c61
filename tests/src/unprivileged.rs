//! An ordinary user: the account that owns nothing, in the group that may use a system daemon.

use std::{os::unix::fs::chown, process::Command};

use crate::{Home, launch::with_rest_of};

/// The account.
pub const NOBODY: u32 = 65534;

/// A group that the account gets for the test.
pub const GROUP: u32 = 54321;

/// A command line that runs a program as that user. Takes root.
pub fn as_nobody(command: Command) -> Command {
    let mut setpriv = Command::new("setpriv");
    setpriv
        .arg(format!("--reuid={NOBODY}"))
        .arg(format!("--regid={GROUP}"))
        .args(["--clear-groups", "--inh-caps=-all", "--"])
        .arg(command.get_program());
    with_rest_of(setpriv, &command)
}

impl Home {
    /// Lets that user start a private daemon here. Takes root.
    pub fn give_to_nobody(&self) {
        chown(self.run(), Some(NOBODY), Some(GROUP)).expect("root may");
    }
}
