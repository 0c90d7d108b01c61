//! A panic ends the request that met it, and nothing else.
//!
//! No request is meant to be able to panic; one that does has met a bug. The registry answers one
//! request at a time, so a panic can leave only what that request was changing half done: a port
//! without some of its rings, say. The registry [finds that, and lets go of it](Registry::recover). To
//! go on is thus better for everybody else than to end all switches and ports of the machine.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ringway_proto::{Cause, Error, EventKind};
use ringway_registry::Registry;

use crate::log::{Entry, log};

/// Runs `work`. EFAULT if it panics; where it did is in the log, by the hook that prints panics.
pub fn guarded<T>(what: &str, work: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        let text = format!("BUG: the panic above ended {what}; please report it");
        log(Entry::error(EventKind::Bug, text));
        Error::new(Cause::System(libc::EFAULT), "the daemon met a bug while it answered this")
            .remedy("close the port and open it again; the daemon's log says where it was")
    })
}

/// As [`guarded`], of work on the registry, which is in order again after a panic.
pub fn guarded_in<T>(
    registry: &mut Registry,
    what: &str,
    work: impl FnOnce(&mut Registry) -> T,
) -> Result<T, Error> {
    guarded(what, || work(registry)).inspect_err(|_| {
        let _ = guarded("putting the books in order", || registry.recover());
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_request_alone() {
        let mut count = 0;
        let mut ask = |fails: bool| {
            guarded("a test", || {
                count += 1;
                assert!(!fails, "as asked for");
                count
            })
        };
        assert_eq!(ask(false), Ok(1));
        assert_eq!(ask(true).unwrap_err().cause, Cause::System(libc::EFAULT));
        assert_eq!(ask(false), Ok(3));
    }
}
