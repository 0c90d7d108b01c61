//! The interface of a binding, in its region: the map that its program has of the rings.

use ringway_abi::{Dir, NI_PRIV_MEM};
use ringway_proto::{Error, Result};
use ringway_region::{NetifView, RingOffsets};

use crate::{
    port::{Port, Ring, Shape},
    regions::{RegionKey, Regions},
    selection::Selection,
};

/// The interface of a new binding of these rings of a port, and what its program sees there (S-NIFP).
pub(crate) fn make_netif(
    port: &Port,
    shape: &Shape,
    rings: &Selection,
    regions: &mut Regions,
) -> Result<NetifView> {
    let visible = |dir, count: u32, chosen: &[u16]| {
        let object = |(i, ring): (usize, &Ring)| {
            // S-NIFP-2.
            chosen.contains(&(i as u16)).then(|| ring.kring.object())
        };
        let mut nic: Vec<_> = port.rings(dir).iter().enumerate().map(object).collect();
        let mut host = nic.split_off(port.nic_rings(dir).len());
        // Those that have not been made, or will never be: of the host at least one (S-NIFP-1).
        nic.resize(count as usize, None);
        host.resize(port.host.count(dir).max(1), None);
        (nic, host)
    };
    let [tx_rings, rx_rings] = rings;
    let (tx, host_tx) = visible(Dir::Tx, shape.rings[0], tx_rings);
    let (rx, host_rx) = visible(Dir::Rx, shape.rings[1], rx_rings);
    let offsets = RingOffsets { tx, rx, host_tx, host_rx };
    let (name, key) = (&port.name, port.region);
    let book = regions.get(key);
    let RingOffsets { tx, rx, host_tx, host_rx } = &offsets;
    let count = tx.len() + rx.len() + host_tx.len() + host_rx.len();
    if !NetifView::fits(&book.region, count) {
        let problem = format!(
            "{count} rings are too many for an interface object of region {}",
            book.region.mem_id()
        );
        return Err(Error::no_memory(problem).at(name).remedy(format!(
            "ask for fewer rings or host rings, and for no region or size of buffers, or have the interface use \
             fewer queues: `ethtool -L {name} combined 32`"
        )));
    }
    let object = book.take_if()?;
    #[expect(clippy::expect_used, reason = "the object is one of the pool's")]
    let netif = NetifView::new(&book.region, object).expect("the pool has this object");
    let private = matches!(key, RegionKey::Private { .. });
    netif.init(name, if private { NI_PRIV_MEM } else { 0 }, &offsets);
    Ok(netif)
}
