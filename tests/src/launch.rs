//! Commands that other commands run.

use std::process::Command;

use ringway_testkit::Netns;

/// `launcher` with the arguments and the environment of `command`.
pub(crate) fn with_rest_of(mut launcher: Command, command: &Command) -> Command {
    launcher.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => launcher.env(name, value),
            None => launcher.env_remove(name),
        };
    }
    launcher
}

/// `command`, in a namespace.
pub fn inside(netns: &Netns, command: Command) -> Command {
    let program = command.get_program().to_str().expect("a plain name");
    with_rest_of(netns.command(program), &command)
}

/// `command`, started by another with these arguments before it: `setpriv`, `unshare`.
pub fn started_by(command: &Command, by: &[&str]) -> Command {
    let mut launcher = Command::new(by[0]);
    launcher.args(&by[1..]).arg(command.get_program());
    with_rest_of(launcher, command)
}
