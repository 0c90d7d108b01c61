//! ARP's messages, of Ethernet and IPv4 (RFC 826).

use crate::endpoint::Mac;
use std::net::Ipv4Addr;

pub const ETHERTYPE_ARP: [u8; 2] = [8, 6];

/// Hardware Ethernet, protocol IPv4, and the lengths of their addresses.
const KINDS: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// The shortest Ethernet frame, without its CRC.
const FRAME: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Request,
    Reply,
}

/// A message: each side's hardware address, and its protocol address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    pub operation: Operation,
    pub sender: (Mac, Ipv4Addr),
    pub target: (Mac, Ipv4Addr),
}

impl Arp {
    /// Of a frame. `None`: it is none of Ethernet and IPv4.
    pub fn read(frame: &[u8]) -> Option<Arp> {
        let message = frame.get(14..42)?;
        let (kinds, rest) = message.split_first_chunk::<6>()?;
        let (operation, rest) = rest.split_first_chunk::<2>()?;
        let operation = match operation {
            [0, 1] => Operation::Request,
            [0, 2] => Operation::Reply,
            _ => return None,
        };
        let (sender, target) = rest.split_first_chunk::<10>()?;
        let pair = |bytes: &[u8]| -> Option<(Mac, Ipv4Addr)> {
            let (mac, address) = bytes.split_first_chunk::<6>()?;
            Some((Mac(*mac), <[u8; 4]>::try_from(address).ok()?.into()))
        };
        (*kinds == KINDS).then_some(Arp { operation, sender: pair(sender)?, target: pair(target)? })
    }

    /// The frame of it, to a station.
    pub fn frame(&self, to: Mac) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FRAME);
        frame.extend(to.0);
        frame.extend(self.sender.0.0);
        frame.extend(ETHERTYPE_ARP);
        frame.extend(KINDS);
        frame.extend([0, if self.operation == Operation::Request { 1 } else { 2 }]);
        for (mac, address) in [self.sender, self.target] {
            frame.extend(mac.0);
            frame.extend(address.octets());
        }
        frame.resize(FRAME, 0);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            sender in any::<([u8; 6], [u8; 4])>(), target in any::<([u8; 6], [u8; 4])>(), asks in any::<bool>(),
        ) {
            let pair = |(mac, address): ([u8; 6], [u8; 4])| (Mac(mac), Ipv4Addr::from(address));
            let operation = if asks { Operation::Request } else { Operation::Reply };
            let arp = Arp { operation, sender: pair(sender), target: pair(target) };
            prop_assert_eq!(Arp::read(&arp.frame(Mac::BROADCAST)), Some(arp));
        }

        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Arp::read(&bytes);
        }
    }

    #[test]
    fn other_kinds_are_none() {
        let pair = (Mac([2; 6]), Ipv4Addr::new(10, 0, 0, 1));
        let good =
            Arp { operation: Operation::Reply, sender: pair, target: pair }.frame(Mac([2; 6]));
        assert!(Arp::read(&good).is_some() && Arp::read(&good[..41]).is_none());
        for at in 14..22 {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            assert_eq!(Arp::read(&bad), None, "{at}");
        }
    }
}
