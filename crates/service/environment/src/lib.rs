//! What a library of ours believes of the environment of the program that it is in.
//!
//! A program with a set-user-ID bit, a set-group-ID bit or file capabilities has more rights than
//! the user who starts it, and that user chooses the variables, the working directory and the
//! program's name. The kernel marks such a process (`AT_SECURE`, getauxval(3)), and the loader
//! ignores `LD_PRELOAD` in it. The libraries keep the same rule for all that they read: they ask
//! here, and find no variable set. A lint (`clippy.toml`) keeps them from asking elsewhere.
#![deny(unsafe_code)]
#![deny(missing_docs)]
#![allow(clippy::disallowed_methods, reason = "the one place that reads it")]

mod sys;

use std::{env, ffi::OsString};

/// Whether this process has more rights than the user who started it, and chose its environment.
pub fn has_more_rights() -> bool {
    sys::is_secure()
}

/// The value of a variable. `None` where it is not set, or where it is [not
/// believed](has_more_rights).
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|_| !has_more_rights())
}

/// All variables, for a program that this one starts: none where they are [not
/// believed](has_more_rights).
pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    env::vars_os().filter(|_| !has_more_rights())
}
