//! Regions of which the kernel had no page when it was touched: all that is in them goes.

use ringway_nic_setup::{Link, LinkState};

use crate::{handles::Handle, registry::Registry};

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
            // What stays without programs is tied to an interface: it goes as if that had gone.
            let in_region =
                |(&id, port): (&_, &crate::port::Port)| (port.region == key).then_some(id);
            for id in self.ports.iter().filter_map(in_region).collect::<Vec<_>>() {
                self.watches.remove(id);
                if self.ports.get(id).is_some() {
                    let gone = Link { state: LinkState::Gone, mtu: 0 };
                    (self.actions(id).link_changed)(self, id, gone);
                }
            }
            given_up.push(LostRegion { mem_id, uid, handles });
        }
        given_up
    }
}
