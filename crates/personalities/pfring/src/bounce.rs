//! Packets that a ring passes on: the last one that was received to an interface of the program's choice, and all of
//! them to a reflector.

use std::{ffi::c_int, sync::atomic::Ordering::Relaxed};

use crate::{
    abi::*,
    admission::{Place, Reader},
    name::device_of,
    ring::{Ring, lock},
    rules::Outlet,
    state::{BOUNCES, REFLECTS},
};

/// The packet that is sent when the next is asked for, and where to.
pub struct Bounced {
    packet: Vec<u8>,
    interface: c_int,
}

impl Ring {
    /// Marks the last packet that was received.
    pub fn bounce(&self, interface: c_int) -> c_int {
        let Some(mut reader) = self.reader.take() else { return ERROR_GENERIC };
        let Some(last) = reader.last else { return ERROR_NO_PKT_AVAILABLE };
        // Never to where it came from.
        if interface != { reader.header.if_index } {
            let packet = last.bytes(reader.captured);
            reader.bounced = Some(Bounced { packet, interface });
        }
        0
    }

    /// Sends what was marked.
    pub fn send_bounced(&self) {
        if !self.state.has(BOUNCES) {
            return;
        }
        let Some(mut reader) = self.reader.take() else { return };
        if let Some(Bounced { packet, interface }) = reader.bounced.take() {
            let outlet = outlet(&mut reader, interface);
            let sent = outlet.is_some_and(|outlet| outlet.send(&packet).is_ok());
            let counter = if sent { &self.sent } else { &self.send_errors };
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Sends a packet to the reflector too, if there is one; the last one may be bounced from now on.
    pub fn reflect(&self, reader: &mut Reader, place: Place) {
        if self.state.has(BOUNCES) {
            reader.last = Some(place);
        }
        if self.state.has(REFLECTS)
            && let Some(reflector) = lock(&self.reflector).as_ref()
        {
            let sent = reflector.send(&place.bytes(reader.header.caplen)).is_ok();
            self.admission.count_forwarded(sent);
        }
    }
}

/// The device of that number, opened when it is first needed.
fn outlet(reader: &mut Reader, interface: c_int) -> Option<&Outlet> {
    if reader.outlets.iter().all(|(known, _)| *known != interface) {
        reader.outlets.push((interface, Outlet::open(&device_of(interface)?)?));
    }
    reader.outlets.iter().find(|(known, _)| *known == interface).map(|(_, outlet)| outlet)
}
