//! The program that asks, as the registry sees it.

use std::sync::Arc;

use crate::{lookups::Lookups, netns::Netns, reserved::Reserved};

/// The client that sends a request. The daemon knows all of it from the client's socket and from policy, and
/// takes nothing of it from the request.
#[derive(Debug)]
pub struct Caller {
    pub uid: u32,
    /// The network namespace in which interface names are meant.
    pub netns: Netns,
    /// Whether policy grants the caller network interfaces.
    pub may_use_nics: bool,
    /// Interfaces of this process's network namespace that policy grants the caller by name,
    /// wherever the caller is.
    pub granted: Vec<String>,
    /// The one interface that it may use, where it may use that by a grant of its name alone.
    pub(crate) by_grant: Option<String>,
    /// Names of switches and ports that policy reserves; the first that stands for a name decides.
    pub reservations: Arc<[Reserved]>,
    /// Of the request that is being answered.
    pub(crate) lookups: Arc<Lookups>,
}

impl Caller {
    /// A user who may have no interfaces yet.
    pub fn new(uid: u32, netns: Netns) -> Caller {
        let (granted, lookups) = (Vec::new(), Arc::default());
        let reservations = Arc::new([]);
        let (may_use_nics, by_grant) = (false, None);
        Caller { uid, netns, may_use_nics, granted, by_grant, reservations, lookups }
    }

    /// The registry's own process.
    pub fn myself() -> Caller {
        let mut caller = Caller::new(rustix::process::getuid().as_raw(), Netns::Own);
        caller.may_use_nics = true;
        caller
    }

    /// What tells the namespace from others; `None`: it is this process's.
    pub(crate) fn netns_id(&self) -> Option<u64> {
        self.netns.id()
    }
}
