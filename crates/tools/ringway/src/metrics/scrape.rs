//! What the daemon tells, at one time.

use ringway::{
    BridgeInfo, Control, DaemonInfo, DeviceCounter, PortInfo, PortKind, RegionInfo, RingInfo,
};
use std::collections::BTreeMap;

/// Ports of each kind, and users, that are told of at most: a user can make many, and each takes room wherever metrics
/// are kept.
pub const MOST: usize = 4096;

/// Counters of one interface and its driver that are told of at most: a driver may have some for each queue.
const MOST_DEVICE_COUNTERS: usize = 64;

/// A port, with what was asked about it.
pub struct Port {
    pub info: PortInfo,
    pub rings: Vec<RingInfo>,
    pub device: Vec<DeviceCounter>,
}

#[derive(Default)]
pub struct Scrape {
    pub daemon: DaemonInfo,
    pub switches: Vec<BridgeInfo>,
    pub ports: Vec<Port>,
    pub users: Vec<UserMemory>,
    /// How many names users asked for lately that are for others.
    pub name_conflicts: usize,
    pub left_out: LeftOut,
}

/// What a user has of regions, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserMemory {
    pub uid: u32,
    pub regions: u64,
    pub bytes: u64,
    pub bufs: u64,
    pub free_bufs: u64,
    pub asked: u64,
}

/// How much there is that is not told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub switches: usize,
    pub switch_ports: usize,
    pub ports: usize,
    pub device_counters: usize,
    pub users: usize,
}

impl Scrape {
    /// Asks the daemon that there is, over a connection of its own: so a private daemon does not stay for it.
    pub fn take() -> Result<Scrape, ringway::Error> {
        let control = Control::connect_running()?;
        let mut left_out = LeftOut::default();
        let mut ports = control.ports()?;
        left_out.ports = limit(&mut ports, MOST);
        let port = |info: PortInfo| {
            // A port that has gone meanwhile has none.
            let rings = control.rings(&info).unwrap_or_default();
            let mut device = Vec::new();
            if info.kind == PortKind::Nic {
                device = control.device_counters(&info).unwrap_or_default();
                left_out.device_counters += limit(&mut device, MOST_DEVICE_COUNTERS);
            }
            Port { info, rings, device }
        };
        let ports = ports.into_iter().map(port).collect();
        let mut switches = control.switches()?;
        left_out.switches = limit(&mut switches, MOST);
        let mut room = MOST;
        for switch in &mut switches {
            left_out.switch_ports += limit(&mut switch.ports, room);
            room -= switch.ports.len();
        }
        let mut users = by_user(&control.regions()?);
        left_out.users = limit(&mut users, MOST);
        let name_conflicts = control.name_conflicts()?.len();
        let daemon = control.daemon()?;
        Ok(Scrape { daemon, switches, ports, users, name_conflicts, left_out })
    }
}

fn by_user(regions: &[RegionInfo]) -> Vec<UserMemory> {
    let mut users = BTreeMap::new();
    for region in regions {
        let user: &mut UserMemory = users.entry(region.uid).or_default();
        user.uid = region.uid;
        user.regions += 1;
        user.bytes += region.bytes;
        user.bufs += u64::from(region.bufs);
        user.free_bufs += u64::from(region.free_bufs);
        user.asked += region.asked;
    }
    users.into_values().collect()
}

/// Keeps the first `most`; returns how many there were besides.
pub fn limit<T>(list: &mut Vec<T>, most: usize) -> usize {
    let left_out = list.len().saturating_sub(most);
    list.truncate(most);
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let mut list = vec![1, 2, 3];
        assert_eq!((limit(&mut list, 3), list.len()), (0, 3));
        assert_eq!((limit(&mut list, 1), &list[..]), (2, &[1][..]));
        assert_eq!((limit(&mut list, 0), list.len()), (1, 0));
    }

    #[test]
    fn a_users_regions_are_added_up() {
        let region = |uid, bytes, bufs, free_bufs, asked| RegionInfo {
            mem_id: 1,
            uid,
            ports: 1,
            bytes,
            bufs,
            free_bufs,
            asked,
        };
        let users =
            by_user(&[region(7, 10, 20, 5, 3), region(0, 1, 2, 1, 1), region(7, 1, 2, 1, 1)]);
        let user = |uid, regions, bytes, bufs, free_bufs, asked| UserMemory {
            uid,
            regions,
            bytes,
            bufs,
            free_bufs,
            asked,
        };
        assert_eq!(users, [user(0, 1, 1, 2, 1, 1), user(7, 2, 11, 22, 6, 4)]);
    }
}
