//! What the libraries say on standard error: only with `RINGWAY_VERBOSE` set, for they live in programs
//! that have something else to say there.

use std::{ffi::OsStr, fmt::Display, io::stderr};

use rustix::io::{retry_on_intr, write};

use crate::binding::Binding;

/// Says why a call of the program's fails.
pub fn explain(error: &dyn Display) {
    if is_verbose() {
        say(error);
    }
}

/// Whether the user wants to know. A program that tells by itself need not do so then.
pub fn is_verbose() -> bool {
    ringway_environment::variable("RINGWAY_VERBOSE").is_some_and(|value| is_on(&value))
}

/// Empty and 0 are off.
fn is_on(value: &OsStr) -> bool {
    !value.is_empty() && value != "0"
}

/// Says that another user decides over the switch that a port has joined. For all that opens a port by
/// [`OpenOptions`](crate::OpenOptions) this has been said.
pub fn tell_switch_owner(binding: &Binding) {
    let Some(owner) = binding.switch_owner() else { return };
    let name = binding.name();
    explain(&format_args!("{name}: the switch is user {owner}'s, who decides where its frames go"));
}

/// In one piece: other threads, and the program itself, say things too. A program may have closed its standard error.
/// The standard library's lock is not taken: a child of `fork` would wait for ever for a thread of its parent's that had
/// it.
fn say(what: &dyn Display) {
    let text = format!("ringway: {what}\n");
    let _ = retry_on_intr(|| write(stderr(), text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lock_is_waited_for() {
        let _held = stderr().lock();
        std::thread::spawn(|| say(&"said beside a lock")).join().unwrap();
    }

    #[test]
    fn a_variable_of_0_is_off() {
        assert_eq!(
            ["1", "yes", "0", ""].map(|text| is_on(text.as_ref())),
            [true, true, false, false]
        );
    }
}
