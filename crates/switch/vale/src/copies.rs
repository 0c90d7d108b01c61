//! The copies of a burst that mirrors show: how they get to the mirrors' ports.

use ringway_switch_port::{Burst, Drops};

use crate::{
    bridge_port::Members,
    budget::Budget,
    forward::hand_to,
    switch_mirror::{MirrorTotals, Mirroring},
    vlan::vlan_of,
    vnet::Converter,
};

/// Hands the copies of a burst over, whose first `done` frames are done with. Returns how many could go round and come
/// back, and in which VLAN.
pub(crate) fn hand_over_copies(
    mirroring: &mut Mirroring,
    burst: &Burst<'_>,
    done: usize,
    others: &mut Members,
    converter: &mut Converter,
    budget: &mut Budget,
) -> (u64, u16) {
    let (mut may_loop, mut vlan) = (0, 0);
    for (mirror, copies) in mirroring.copies(burst, done, budget) {
        let Some(last) = copies.last() else { continue };
        let last_in = vlan_of(last);
        let to = others.get_mut(usize::from(mirror.to)).and_then(Option::as_deref_mut);
        let Some(to) = to.filter(|to| to.is_open()) else {
            let no_destination = copies.len() as u64;
            mirror.counters.add(&MirrorTotals { no_destination, ..<_>::default() });
            continue;
        };
        let before = to.totals.drops;
        if let Some(filter) = &to.filter_out {
            filter.retain(copies, burst, &mut to.totals.drops, budget);
        }
        let mut not_made = Drops::default();
        let delivered = hand_to(to, (0, true), copies, burst, converter, &mut not_made, budget);
        if to.config.may_loop() {
            (may_loop, vlan) = (may_loop + delivered.packets, last_in);
        }
        let after = &to.totals.drops;
        mirror.counters.add(&MirrorTotals::of(delivered, &before, after, &not_made));
    }
    (may_loop, vlan)
}
