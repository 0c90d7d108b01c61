//! Regions of which the kernel had no page when it was touched: all that is in them goes.

use crate::{handles::Handle, lost_ports, registry::Registry};

/// A region that has lost pages.
#[derive(Debug)]
pub struct LostRegion {
    pub mem_id: u16,
    pub uid: u32,
    /// The handles that were bound to its ports.
    pub handles: Vec<Handle>,
}

impl Registry {
    /// Gives up the regions that have [lost pages](ringway_region::LostPages): their ports go, whatever has
    /// them open. The handles stay, and are bound to nothing; their clients are to be told.
    pub fn give_up_lost_regions(&mut self) -> Vec<LostRegion> {
        let mut given_up = Vec::new();
        for key in self.regions.lost() {
            let Some((mem_id, uid)) = self.regions.owner(key) else { continue };
            let handles = self.handles.bound_in(key);
            handles.iter().for_each(|handle| self.unregister(*handle));
            // What stays without programs goes as if its interface had gone; a port that is being opened does not
            // take along what other users have of its interface.
            let in_region =
                |(&id, port): (&_, &crate::port::Port)| (port.region == key).then_some(id);
            for id in self.ports.iter().filter_map(in_region).collect::<Vec<_>>() {
                if self.ports.get(id).is_some() {
                    lost_ports::lose(self, id);
                }
            }
            given_up.push(LostRegion { mem_id, uid, handles });
        }
        given_up
    }
}
