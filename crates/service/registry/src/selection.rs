//! Which rings of a port a registration is for.

use ringway_proto::{Error, Registration, Result, RingSelection};

/// Indices of the chosen rings of a port, tx before rx.
pub(crate) type Selection = [Vec<u16>; 2];

/// Ring selection (S-REG-4): indices of tx and of rx rings; those of the host follow the NIC's.
pub(crate) fn select(
    name: &str,
    reg: &Registration,
    nic: [u32; 2],
    host: [u16; 2],
) -> Result<Selection> {
    let nic_range = nic.map(|rings| 0..rings as u16);
    let [of_tx, of_rx] = nic;
    let [host_tx, host_rx] = host;
    let host_range = [
        of_tx as u16..(of_tx as u16).saturating_add(host_tx),
        of_rx as u16..(of_rx as u16).saturating_add(host_rx),
    ];
    // The ring of that number; where the direction has fewer, its first.
    let one = |id: u16, rings: std::ops::Range<u16>| {
        let wanted = rings.start.saturating_add(id);
        if rings.is_empty() {
            vec![]
        } else if rings.contains(&wanted) {
            vec![wanted]
        } else {
            vec![rings.start]
        }
    };
    let there = |id: u16, [tx, rx]: [u32; 2]| u32::from(id) < tx || u32::from(id) < rx;
    let absent = |which: &str, id: u16, [tx, rx]: [u32; 2]| {
        Err(Error::invalid(format!("there is no {which}ring {id}"))
            .at(name)
            .remedy(format!("it has {tx} tx and {rx} rx, counted from 0")))
    };
    let of_host = matches!(
        reg.rings,
        RingSelection::Host | RingSelection::AllAndHost | RingSelection::OneHost(_)
    );
    if of_host && host == [0, 0] {
        return Err(Error::invalid("no host rings here")
            .at(name)
            .remedy("open it without ^ and *"));
    }
    let hosts = host.map(u32::from);
    let mut rings = match reg.rings {
        RingSelection::All | RingSelection::Null { .. } => nic_range.map(|rings| rings.collect()),
        RingSelection::Host => host_range.map(|rings| rings.collect()),
        RingSelection::AllAndHost => {
            let [tx, rx] = nic_range;
            let [host_tx, host_rx] = host_range;
            [tx.chain(host_tx).collect(), rx.chain(host_rx).collect()]
        }
        RingSelection::One(id) if there(id, nic) => nic_range.map(|rings| one(id, rings)),
        RingSelection::One(id) => return absent("", id, nic),
        RingSelection::OneHost(id) if there(id, hosts) => host_range.map(|rings| one(id, rings)),
        RingSelection::OneHost(id) => return absent("host ", id, hosts),
        RingSelection::PipeEnd => return Err(pipe_by_number(name)),
        RingSelection::Other(mode) => {
            return Err(Error::invalid(format!("{mode} is no nr_mode")).at(name));
        }
    };
    if reg.without_tx {
        rings[0].clear();
    }
    if reg.without_rx {
        rings[1].clear();
    }
    Ok(rings)
}

/// Why a pipe is not found by a selection.
pub(crate) fn pipe_by_number(name: &str) -> Error {
    Error::invalid("name a pipe by PARENT{ID or PARENT}ID").at(name)
}
