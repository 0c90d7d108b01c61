//! What the configuration declares is made true, when the daemon starts and when it reads it again.

use std::time::Instant;

use ringway_proto::EventKind;
use ringway_registry::Outcome;

use super::Server;
use crate::{
    guard::guarded_in,
    log::{Entry, log},
    workers::Waiter,
};

impl Server {
    /// Changes what is otherwise than declared, and nothing else.
    pub(super) fn declare(&mut self) {
        let declared = &self.rules.declared;
        let outcome = guarded_in(&mut self.registry, "what is declared", |registry| {
            registry.declare(declared, Instant::now())
        });
        if let Ok(Outcome { changes, failed, notes }) = outcome {
            for change in changes {
                let text = format!("as declared: {change}");
                log(Entry::info(EventKind::Config, text).at(change.of()).audit());
            }
            for error in failed {
                log(Entry::error(EventKind::Config, format!("not as declared: {error}")));
            }
            for error in notes {
                log(Entry::warn(EventKind::Config, error.to_string()).at(&error.port));
            }
        }
        self.start_closings(Waiter::Nobody);
        self.restore_due();
    }
}
