//! Frames that an interface enqueues and no queue takes: a thread with a handler (`qman_set_dc_ern`) is told, or their
//! buffers go home.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use ringway_qbman::{Frame, Message, Rejection, manager};

use crate::{abi::qman_cb_dc_ern, fman, thread::Qman};

/// For portals that have no handler of their own.
static HANDLER: Mutex<Option<qman_cb_dc_ern>> = Mutex::new(None);
/// Portals that have one: a bit for each.
static OWN: AtomicU32 = AtomicU32::new(0);

fn handler() -> Option<qman_cb_dc_ern> {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the handler of those that have none of their own.
pub fn set_handler(handler: Option<qman_cb_dc_ern>) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = handler;
}

/// Tells a portal with a handler of a frame that the Frame Manager `engine` has enqueued into `queue`: `false` where there
/// is none, or it has too much to hear already, and the frame is still the caller's.
#[cold]
pub fn tell(frame: Frame, queue: u32, engine: u8, why: Rejection) -> bool {
    let portal = match OWN.load(Relaxed) {
        0 if handler().is_none() => return false,
        0 => None,
        own => Some(own.trailing_zeros() as u8),
    };
    manager().post_rejected(portal, Message::PortRejected { frame, queue, engine, why })
}

impl Qman {
    fn own_bit(&self) -> u32 {
        1 << self.config.index
    }

    /// Sets this portal's own handler.
    pub fn set_dc_ern(&self, handler: Option<qman_cb_dc_ern>) {
        self.dc_ern.set(handler);
        match handler {
            Some(_) => OWN.fetch_or(self.own_bit(), Relaxed),
            None => OWN.fetch_and(!self.own_bit(), Relaxed),
        };
    }

    /// The handler of what this portal is told.
    pub fn dc_ern(&self) -> Option<qman_cb_dc_ern> {
        self.dc_ern.get().or_else(handler)
    }

    /// The portal ends: buffers of frames that it has not heard of go home.
    pub fn leave_rejected(&self) {
        self.set_dc_ern(None);
        while let Some(message) = self.portal.borrow().message() {
            if let Message::PortRejected { frame, .. } = message {
                fman::discard(&frame);
            }
        }
    }
}
