//! How many frames an interface has received, by its own count: before any XDP program, filter or socket.

use std::io;

use crate::losses::counter;
use crate::operation::ReadReceived;
use crate::rtnl::link_by_index;
use crate::{Error, Interface, helper};

/// Its place in `struct rtnl_link_stats64`.
const RX_PACKETS: usize = 0;

/// Reads the count (`rx_packets`). A driver may take its time for that: some ask the card. Needs no privilege.
pub fn received(interface: &Interface) -> Result<u64, Error> {
    let (name, index) = (interface.name.clone(), interface.index);
    helper::run_where_needed(ReadReceived { name, index })
}

pub(crate) fn received_here(name: &str, index: u32) -> Result<u64, Error> {
    let ask = || -> io::Result<u64> {
        let link = link_by_index(index)?;
        counter(&link, RX_PACKETS).ok_or_else(|| io::ErrorKind::InvalidData.into())
    };
    ask().map_err(Error::refused(
        name,
        "its counters cannot be read",
        "see `ip -s link show`, and the limit of open files",
    ))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_count_grows_with_what_is_received() {
        let lo = Interface::by_name("lo").unwrap();
        let before = received(&lo).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..3 {
            socket.send_to(b"frame", socket.local_addr().unwrap()).unwrap();
            socket.recv(&mut [0; 8]).unwrap();
        }
        assert!(received(&lo).unwrap() >= before + 3);
    }
}
