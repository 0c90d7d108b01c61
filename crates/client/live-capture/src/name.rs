//! Which devices are Ringway's, and what a program gets by such a name.
//!
//! Listening takes nothing away from other programs: what one has open is monitored. Only where the name says
//! more (rings, flags, options) it is opened as it says.

use std::ffi::c_int;

use ringway::{
    Cause, Control, Error, OpenOptions, Port, PortSpec, Registration, RingSelection, Timestamps,
};

use crate::{abi::*, namespace::is_named_here, settings::Settings};

/// Bytes of a buffer: what slots are counted by where a program asks for a buffer size.
const BUFFER: u32 = 2048;
/// Slots of a ring, at the least and at the most.
const SLOTS: std::ops::RangeInclusive<u32> = 64..=16384;

/// How often a port is tried that others open and close meanwhile.
const TRIES: u32 = 100;

/// Whether a device is a port: `netmap:NAME`, or `vale<switch>:<port>`.
pub fn is_port(name: &str) -> bool {
    let is_port_of = |switch: &str| {
        switch.split_once(':').is_some_and(|(id, port)| {
            id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !port.is_empty()
        })
    };
    name.strip_prefix("netmap:").is_some_and(|rest| !rest.is_empty())
        || name.strip_prefix("vale").is_some_and(is_port_of)
}

/// How to write what is neither a device nor a port, and like a port's name: a switch, or a pipe's end without
/// `netmap:`. No interface has a brace in its name that a user would give it, and one may be called vale0.
pub fn no_device(name: &str) -> Option<String> {
    let end = name.find('@').unwrap_or(name.len());
    let is_there = || std::path::Path::new("/sys/class/net").join(name).exists();
    if is_port(name) || name.contains('/') || is_there() {
        return None;
    }
    let id = name[..end].strip_prefix("vale").map(|rest| rest.trim_end_matches(':'));
    match id {
        Some(id) if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(format!("{name}: a switch is no device; name a port of it, as vale{id}:PORT"))
        }
        _ if name.contains(['{', '}']) => {
            Some(format!("{name}: not a device's name; for a pipe's end, write netmap:{name}"))
        }
        _ => None,
    }
}

/// Whether a port is a network interface's.
pub fn is_interface(name: &str) -> bool {
    let end = name.find('@').unwrap_or(name.len());
    name.strip_prefix("netmap:").is_some() && !name[..end].contains(['{', '}'])
}

/// The network interface that a port is of.
pub fn interface_of(name: &str) -> Option<String> {
    let spec = PortSpec::parse(name).ok().filter(|_| is_interface(name));
    spec.map(|spec| spec.name)
}

/// What a name stands for.
pub enum Found {
    Port(Box<Port>),
    /// A monitor of an interface that no program has open.
    Unused {
        interface: String,
        direction: c_int,
    },
}

/// Opens what `name` stands for.
pub fn open(name: &str, settings: &Settings) -> Result<Found, Error> {
    let spec = PortSpec::parse(name)?;
    let port = open_port(name, &spec, settings);
    match (port, listens_to(name, &spec)) {
        (Err(error), Some(direction))
            if error.cause() == Cause::Invalid && !is_open(&Control::connect()?, &spec.name)? =>
        {
            Ok(Found::Unused { interface: spec.name, direction })
        }
        (port, _) => port.map(|port| Found::Port(Box::new(port))),
    }
}

/// Which packets a name asks for that asks for a look at an interface, and for nothing else.
fn listens_to(name: &str, spec: &PortSpec) -> Option<c_int> {
    let registration = &spec.registration;
    let monitor = registration.monitor;
    let plain = Registration { monitor, ..Registration::default() };
    let is_plain = *registration == plain && !name.contains('@') && is_interface(name);
    match (monitor.rx, monitor.tx) {
        _ if !is_plain || monitor.zero_copy => None,
        (true, true) => Some(PCAP_D_INOUT),
        (true, false) => Some(PCAP_D_IN),
        (false, true) => Some(PCAP_D_OUT),
        (false, false) => None,
    }
}

fn open_port(name: &str, spec: &PortSpec, settings: &Settings) -> Result<Port, Error> {
    if says_how(name, &spec.registration) {
        return options(name, settings, spec.registration.monitor.is_asked()).open(name);
    }
    // Keeps a private daemon, that is there for this, until the port is open.
    let control = Control::connect()?;
    let monitor = format!("{name}/rt");
    let mut tries = TRIES;
    loop {
        let mut busy = None;
        if !is_open(&control, &spec.name)? {
            match options(name, settings, false).open(name) {
                // Since then another program has opened it; or it is attached to a switch.
                Err(error) if error.cause() == Cause::Busy => busy = Some(error),
                result => return result,
            }
        }
        tries -= 1;
        match options(name, settings, true).open(&monitor) {
            // Since then it has been closed.
            Err(error) if error.cause() == Cause::Invalid && tries > 0 => {}
            Err(error) => return Err(busy.unwrap_or(error)),
            opened => return opened,
        }
    }
}

/// Whether a name says more than which port it is.
fn says_how(name: &str, reg: &Registration) -> bool {
    let plain = Registration { rings: RingSelection::All, ..Registration::default() };
    *reg != plain || name.contains('@')
}

fn is_open(control: &Control, name: &str) -> Result<bool, Error> {
    Ok(control.ports()?.iter().any(|port| port.users > 0 && is_named_here(port, name)))
}

fn options(name: &str, settings: &Settings, is_monitor: bool) -> OpenOptions {
    let mut options = Port::options();
    if settings.buffer_size > 0 && (is_monitor || !is_interface(name)) {
        let slots = settings.buffer_size.unsigned_abs() / BUFFER;
        options = options.rx_slots(slots.clamp(*SLOTS.start(), *SLOTS.end())).or_default_slots();
    }
    if is_interface(name) && !is_monitor {
        options = match settings.tstamp_type {
            PCAP_TSTAMP_HOST_HIPREC => options.timestamps(Timestamps::Software),
            PCAP_TSTAMP_ADAPTER_UNSYNCED => options.timestamps(Timestamps::Hardware),
            _ => options,
        };
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ports() {
        for port in [
            "netmap:eth0",
            "vale0:a",
            "vale:x",
            "netmap:x{1",
            "vale1:a/rt",
            "netmap:eth0@mode=copy",
        ] {
            assert!(is_port(port), "{port}");
        }
        for device in
            ["eth0", "netmap:", "vale0", "vale0:", "vale-0:a", "any", "", "valley", "usbmon1"]
        {
            assert!(!is_port(device), "{device}");
        }
        for (name, word) in [
            ("vale0", "vale0:PORT"),
            ("vale12:", "vale12:PORT"),
            ("p{1", "write netmap:p{1"),
            ("p}1@filter=udp", "write netmap:p}1@filter=udp"),
        ] {
            assert!(no_device(name).is_some_and(|text| text.contains(word)), "{name}");
        }
        for device in ["eth0", "lo", "any", "valley", "vale", "", "vale0:a", "netmap:p{1", "a/b{1"]
        {
            assert_eq!(no_device(device), None, "{device}");
        }
        assert!(is_interface("netmap:eth0/R") && is_interface("netmap:eth0@filter={}"));
        assert!(!is_interface("netmap:x{1") && !is_interface("vale0:eth0"));
    }

    #[test]
    fn ports_of_interfaces() {
        for port in
            ["netmap:br-lan", "netmap:br-lan-0", "netmap:br-lan^", "netmap:br-lan@mode=copy"]
        {
            assert_eq!(interface_of(port).as_deref(), Some("br-lan"), "{port}");
        }
        for port in ["netmap:x{1", "vale0:br-lan"] {
            assert_eq!(interface_of(port), None, "{port}");
        }
    }

    #[test]
    fn what_says_how_is_taken_at_its_word() {
        let says = |name: &str| says_how(name, &PortSpec::parse(name).unwrap().registration);
        for plain in ["netmap:eth0", "vale0:a", "netmap:x{1"] {
            assert!(!says(plain), "{plain}");
        }
        for more in [
            "netmap:eth0-0",
            "netmap:eth0^",
            "vale0:a/x",
            "netmap:eth0/rt",
            "netmap:eth0@mode=copy",
        ] {
            assert!(says(more), "{more}");
        }
    }
}
