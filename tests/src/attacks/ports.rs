//! Attacks by ports of switches, and by pipes.

use std::thread;

use ringway::{Control, Error, Lossless, Port, PortSettings};

use super::{Attacker, as_many};
use crate::{frame::BROADCAST, scribbler::scribble};

/// Receivers of all that is flooded.
const RECEIVERS: usize = 40;
const RINGS: u16 = 16;
/// Milliseconds that a lossless port would have others wait: the most that can be said.
const FOR_EVER: u32 = u32::MAX;
/// Addresses claimed in a round.
const ADDRESSES: u32 = 20_000;
/// More than a switch has places, and more switches than there may be.
const PLACES: usize = 300;
const SWITCHES: usize = 100;
/// More pipes than a list of one message holds.
const PIPES: usize = 4000;

pub(super) fn scribble_tx(attacker: &Attacker) -> Result<String, Error> {
    scribble(&attacker.port(""), false).map(|()| String::new())
}

pub(super) fn scribble_rx(attacker: &Attacker) -> Result<String, Error> {
    scribble(&attacker.port(""), true).map(|()| String::new())
}

/// Closes a port with all its rings full, of the longest frames, for many that take nothing.
pub(super) fn full_rings(attacker: &Attacker) -> Result<String, Error> {
    let receivers = (0..RECEIVERS).map(|n| attacker.port(n));
    let (_receivers, got) = as_many(&Port::options().rx_only(), receivers);
    let mut port = Port::options().tx_rings(RINGS).rx_rings(1).open(&attacker.port(""))?;
    let frame = vec![0xff; port.max_frame()];
    for ring in 0..port.tx_rings() {
        while port.tx(ring).push(&frame) {}
    }
    for ring in 0..port.tx_rings() {
        port.tx(ring).sync();
    }
    Ok(got)
}

/// Floods itself, and asks that all wait until it takes anything, which it does not.
pub(super) fn stuck_lossless(attacker: &Attacker) -> Result<String, Error> {
    let name = attacker.port("stuck");
    let _stuck = Port::options().rx_only().open(&name)?;
    let lossless = Some(Some(Lossless { patience_ms: FOR_EVER }));
    let settings = PortSettings { lossless, ..PortSettings::default() };
    let got = match Control::connect()?.switch_port(&name, settings) {
        Ok(()) => "it is lossless".into(),
        Err(error) => error.to_string(),
    };
    let mut port = Port::open(&attacker.port(""))?;
    for _ in 0..ADDRESSES {
        port.tx(0).push(&[0xff; 60]);
        port.tx(0).sync();
    }
    Ok(got)
}

/// Frames from and to addresses that nobody has: all of them are learned, and all are flooded.
pub(super) fn addresses(attacker: &Attacker) -> Result<String, Error> {
    let mut port = Port::open(&attacker.port(""))?;
    let mut bytes = [0; 60];
    for n in 0..ADDRESSES {
        attacker.random.borrow_mut().fill(&mut bytes);
        // Unicast from here; now and then to everybody.
        bytes[6] = bytes[6] & !1 | 2;
        if n % 64 == 0 {
            bytes[..6].copy_from_slice(&BROADCAST);
        }
        while !port.tx(0).push(&bytes) {
            port.tx(0).sync();
            thread::yield_now();
        }
    }
    port.tx(0).sync();
    Ok(format!("{ADDRESSES} frames"))
}

/// As many ports of the neighbours' switch, and as many switches, as the daemon has for it.
pub(super) fn places(attacker: &Attacker) -> Result<String, Error> {
    let few = Port::options().tx_slots(16).rx_slots(16);
    let (_ports, places) = as_many(&few, (0..PLACES).map(|n| attacker.port(n)));
    let (_switches, switches) = as_many(&few, (0..SWITCHES).map(|n| format!("valeat{n}:p")));
    Ok(format!("of a switch, {places}; of switches, {switches}"))
}

/// As many pipes as the daemon has for it.
pub(super) fn pipes(attacker: &Attacker) -> Result<String, Error> {
    // With a region for every few of them.
    let names = (0..PIPES).map(|n| format!("attacked{}{{{}", n / 4, n % 4));
    let (ports, got) = as_many(&Port::options().tx_slots(16).rx_slots(16), names);
    for _ in 0..3 {
        attacker.settle()?;
    }
    drop(ports);
    Ok(got)
}
