//! What the configuration declares is made true, when the daemon starts and when it reads it again.

use std::time::Instant;

use super::Server;
use crate::{guard::guarded_in, log::log, workers::Waiter};

impl Server {
    /// Changes what is otherwise than declared, and nothing else.
    pub(super) fn declare(&mut self) {
        let declared = &self.rules.declared;
        let outcome = guarded_in(&mut self.registry, "what is declared", |registry| {
            registry.declare(declared, Instant::now())
        });
        if let Ok((changes, failed)) = outcome {
            changes.iter().for_each(|change| log(format_args!("as declared: {change}")));
            failed.iter().for_each(|error| log(format_args!("not as declared: {error}")));
        }
        self.start_closings(Waiter::Nobody);
        self.restore_due();
    }
}
