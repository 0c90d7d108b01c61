//! What connections have changed at NICs to steer flows, and how it is undone with their end.

use std::{
    io,
    sync::{Arc, atomic::AtomicU64},
};

use ringway_nic_setup::steer::Plan;
use rustix::fd::BorrowedFd;

use crate::{
    handles::Handle,
    netns::OpenNetns,
    subject::{NicKey, Subject},
};

/// Undoes changes when this process ends without having done so: another process, which sees the
/// end whatever it is.
pub trait Janitor: Send + Sync {
    /// Before anything is changed by the plan of that number: from now on it is to be undone, in
    /// that network namespace (`None`: this process's). A number that is known has a new plan.
    fn remember(&self, number: u64, plan: &Plan, netns: Option<BorrowedFd<'_>>) -> io::Result<()>;
    /// It has been undone.
    fn forget(&self, number: u64);
}

/// Changes that stay until this is dropped.
pub(crate) struct Steering {
    pub handle: Handle,
    pub uid: u32,
    pub interface: NicKey,
    pub number: u64,
    pub plan: Plan,
    pub netns: OpenNetns,
    pub janitor: Option<Arc<dyn Janitor>>,
}

impl Steering {
    pub fn subject(&self) -> Subject {
        self.interface.into()
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        // The namespace is there as long as its descriptor.
        let undone = self.netns.inside(|| self.plan.undo());
        if matches!(undone, Ok(Ok(())))
            && let Some(janitor) = &self.janitor
        {
            janitor.forget(self.number);
        }
    }
}

/// All that is steered.
#[derive(Default)]
pub(crate) struct Steerings {
    all: Vec<Steering>,
    /// The last number of any.
    pub last: Arc<AtomicU64>,
    pub janitor: Option<Arc<dyn Janitor>>,
}

impl Steerings {
    /// How many are a user's.
    pub fn of(&self, users: impl Fn(u32) -> bool) -> usize {
        self.all.iter().filter(|steering| users(steering.uid)).count()
    }

    /// Whether flows are steered at that interface.
    pub fn is_steered(&self, interface: NicKey) -> bool {
        self.all.iter().any(|steering| steering.interface == interface)
    }

    pub fn add(&mut self, steering: Steering) {
        self.all.push(steering);
    }

    /// Takes out what a handle has changed: dropping it undoes it.
    pub fn take(&mut self, handle: Handle) -> Vec<Steering> {
        crate::fault::step();
        self.all.extract_if(.., |steering| steering.handle == handle).collect()
    }
}
