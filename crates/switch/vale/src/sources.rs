//! Which source addresses a port may send with, and which no machine has.

use ringway_switch_port::{Burst, FrameStatus, is_group, is_no_source};
use serde::{Deserialize, Serialize};

use crate::function::{Mac, number_of};

/// See the module. What a port sends with another address is dropped and counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceAddresses {
    /// Any: an address is learned where it was last seen, as in netmap.
    #[default]
    Any,
    /// The first one that it sends with, as long as a program has it open.
    One,
    /// These.
    Only(Vec<Mac>),
}

/// Marks the frames of a network interface with sources that no machine has, as bridges drop them: what is behind it
/// is not known by such an address, and others are deceived. What programs send is theirs (S-VALE-7).
#[inline(never)]
pub(crate) fn check_interface(burst: &mut Burst<'_>) {
    for frame in &mut burst.frames {
        if is_no_source(frame.src()) && frame.status == FrameStatus::Fine {
            frame.status = FrameStatus::BadSource;
        }
    }
}

/// [`SourceAddresses`], ready for use; there is none for a port that may send with any.
#[derive(Debug)]
pub(crate) struct SourceGuard {
    /// In their order.
    allowed: Vec<u64>,
    /// The first one is yet to come.
    open: bool,
}

impl SourceGuard {
    pub fn new(sources: &SourceAddresses) -> Option<SourceGuard> {
        match sources {
            SourceAddresses::Any => None,
            SourceAddresses::One => Some(SourceGuard { allowed: Vec::new(), open: true }),
            SourceAddresses::Only(macs) => {
                let mut allowed: Vec<u64> = macs.iter().map(|mac| number_of(*mac)).collect();
                allowed.sort_unstable();
                Some(SourceGuard { allowed, open: false })
            }
        }
    }

    /// Marks the frames that the port may not send.
    pub fn check(&mut self, burst: &mut Burst<'_>) {
        for frame in burst.frames.iter_mut().filter(|f| f.status == FrameStatus::Fine) {
            let source = frame.src();
            if self.open && !is_group(source) {
                (self.allowed, self.open) = (vec![source], false);
            }
            if self.allowed.binary_search(&source).is_err() {
                frame.status = FrameStatus::Spoofed;
            }
        }
    }
}
