//! The static forwarding function: addresses are where the configuration says.

use std::collections::HashMap;

use crate::function::{Forward, Mac, Packet, Verdict, number_of};
use ringway_switch_port::{PortIndex, is_group};

pub(crate) struct Fixed {
    ports: HashMap<u64, PortIndex>,
    unknown: Verdict,
}

impl Fixed {
    pub fn new(addresses: &[(Mac, PortIndex)], flood_unknown: bool) -> Fixed {
        let ports = addresses.iter().map(|&(mac, port)| (number_of(mac), port)).collect();
        Fixed { ports, unknown: if flood_unknown { Verdict::Flood } else { Verdict::Drop } }
    }
}

impl Forward for Fixed {
    fn decide(&mut self, packet: &Packet<'_>) -> Verdict {
        let dst = packet.frame.dst();
        match self.ports.get(&dst) {
            Some(&port) => Verdict::Port(port),
            None if is_group(dst) => Verdict::Flood,
            None => self.unknown,
        }
    }
}
