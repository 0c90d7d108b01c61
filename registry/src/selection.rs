//! Which rings of a port a registration is for.

use ringway_abi::*;
use ringway_proto::{Error, Result};

/// Indices of the chosen rings of a port, tx before rx.
pub(crate) type Selection = [Vec<u16>; 2];

/// Ring selection (S-REG-4): indices of tx and of rx rings; those of the host follow the NIC's.
pub(crate) fn select(
    name: &str,
    reg: &nmreq_register,
    nic: [u32; 2],
    host: [u16; 2],
) -> Result<Selection> {
    let host_range = |side: usize| nic[side] as u16..nic[side] as u16 + host[side];
    let all = |side: usize| (0..nic[side] as u16).collect::<Vec<_>>();
    let both = |of: &dyn Fn(usize) -> Vec<u16>| [of(0), of(1)];
    // The ring of that number; where the direction has fewer, its first.
    let one = |rings: std::ops::Range<u16>| {
        let wanted = rings.start.saturating_add(reg.nr_ringid);
        if rings.is_empty() {
            vec![]
        } else if rings.contains(&wanted) {
            vec![wanted]
        } else {
            vec![rings.start]
        }
    };
    let id = u32::from(reg.nr_ringid);
    let there = |[tx, rx]: [u32; 2]| id < tx || id < rx;
    if [NR_REG_SW, NR_REG_NIC_SW, NR_REG_ONE_SW].contains(&reg.nr_mode) && host == [0, 0] {
        return Err(Error::invalid(format!("{name}: no host rings here; open it without ^ and *")));
    }
    let mut rings = match reg.nr_mode {
        NR_REG_ALL_NIC | NR_REG_NULL => both(&all),
        NR_REG_SW => both(&|side| host_range(side).collect()),
        NR_REG_NIC_SW => both(&|side| all(side).into_iter().chain(host_range(side)).collect()),
        NR_REG_ONE_NIC if there(nic) => both(&|side| one(0..nic[side] as u16)),
        NR_REG_ONE_SW if there(host.map(u32::from)) => both(&|side| one(host_range(side))),
        NR_REG_ONE_NIC | NR_REG_ONE_SW => {
            let [tx, rx] = if reg.nr_mode == NR_REG_ONE_NIC { nic } else { host.map(u32::from) };
            let which = if reg.nr_mode == NR_REG_ONE_NIC { "" } else { "host " };
            return Err(Error::invalid(format!(
                "{name}: there is no {which}ring {id}; it has {tx} tx and {rx} rx, counted from 0"
            )));
        }
        mode => return Err(Error::invalid(format!("{name}: {mode} is no nr_mode"))),
    };
    if reg.nr_flags & NR_RX_RINGS_ONLY != 0 {
        rings[0].clear();
    }
    if reg.nr_flags & NR_TX_RINGS_ONLY != 0 {
        rings[1].clear();
    }
    Ok(rings)
}
