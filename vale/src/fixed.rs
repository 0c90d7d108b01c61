//! The static forwarding function: addresses are where the configuration says.

use std::collections::HashMap;

use crate::{
    frame::is_group,
    function::{Forward, Mac, Packet, Way, number_of},
    port::PortIndex,
};

pub(crate) struct Fixed {
    ports: HashMap<u64, PortIndex>,
    unknown: Way,
}

impl Fixed {
    pub fn new(addresses: &[(Mac, PortIndex)], flood_unknown: bool) -> Fixed {
        let ports = addresses.iter().map(|&(mac, port)| (number_of(mac), port)).collect();
        Fixed { ports, unknown: if flood_unknown { Way::Flood } else { Way::Drop } }
    }
}

impl Forward for Fixed {
    fn decide(&mut self, packet: &Packet<'_>) -> Way {
        let dst = packet.frame.dst();
        match self.ports.get(&dst) {
            Some(&port) => Way::Port(port),
            None if is_group(dst) => Way::Flood,
            None => self.unknown,
        }
    }
}
