//! What is shown a line each, and what it has counted.

use super::sample::Sample;
use crate::drops::Drops;
use crate::opened::kind_of;
use ringway::{BridgePortInfo, PortInfo, RingInfo};
use serde::Serialize;

/// Of what something is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Of {
    #[default]
    Port,
    SwitchPort,
    Ring,
}

/// What has been counted in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub packets: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Entity {
    pub of: Of,
    /// Of all that there ever were.
    pub id: u64,
    pub name: String,
    /// Of an interface: the inode number of its network namespace.
    pub netns: Option<u64>,
    pub kind: String,
    pub uid: Option<u32>,
    pub users: Option<u32>,
    pub rx: Count,
    pub tx: Count,
    pub drops: Drops,
    /// How much of the fullest ring has packets, in percent.
    pub fill: Option<f64>,
    /// How an interface is driven, and what else is to be known.
    pub note: String,
}

/// Ports, then ports of switches, then rings.
pub fn entities(sample: &Sample) -> Vec<Entity> {
    let on_switches =
        || sample.switches.iter().flat_map(|switch| switch.ports.iter().map(move |p| (switch, p)));
    let ports = sample.ports.iter().map(|(info, rings)| {
        let on_switch = on_switches().map(|(_, port)| port).find(|port| port.name == info.name);
        port(info, rings, on_switch)
    });
    let switch_ports = on_switches().map(|(switch, port)| {
        let owner = sample.ports.iter().find(|(p, _)| p.name == port.name);
        let rings = owner.map(|(_, rings)| &rings[..]).unwrap_or_default();
        let [rx, tx] = counts(port);
        Entity {
            of: Of::SwitchPort,
            id: port.index.into(),
            name: port.name.clone(),
            netns: owner.and_then(|(port, _)| port.netns),
            kind: switch.name.clone(),
            uid: owner.map(|(port, _)| port.uid),
            users: owner.map(|(port, _)| port.users),
            rx,
            tx,
            drops: Drops::at(port),
            fill: fill(rings),
            note: port.mode.clone().unwrap_or_default(),
        }
    });
    let rings = sample.ports.iter().flat_map(|(port, rings)| rings.iter().map(|r| ring(port, r)));
    ports.chain(switch_ports).chain(rings).collect()
}

/// What a port of a switch has received and sent.
fn counts(port: &BridgePortInfo) -> [Count; 2] {
    let totals = port.totals;
    [
        Count { packets: totals.received_packets, bytes: totals.received_bytes },
        Count { packets: totals.sent_packets, bytes: totals.sent_bytes },
    ]
}

/// Of the fullest, in percent. One slot of each stays empty.
fn fill(rings: &[RingInfo]) -> Option<f64> {
    let of = |ring: &RingInfo| 100.0 * f64::from(ring.fill) / f64::from(ring.slots.max(2) - 1);
    rings.iter().map(of).reduce(f64::max)
}

fn port(info: &PortInfo, rings: &[RingInfo], on_switch: Option<&BridgePortInfo>) -> Entity {
    let count = |receives: bool| {
        // What host rings have seen is the stack's traffic, not the interface's.
        let rings = rings.iter().filter(|ring| ring.receives == receives && !ring.host);
        rings.fold(Count::default(), |sum, ring| Count {
            packets: sum.packets.wrapping_add(ring.packets),
            bytes: sum.bytes.wrapping_add(ring.bytes),
        })
    };
    // Rings of switch ports count slots, and attached interfaces have none: the switch counts.
    let [rx, tx] = on_switch.map_or_else(|| [count(true), count(false)], counts);
    let drops = rings.iter().map(Drops::of_ring).chain(on_switch.map(Drops::at));
    Entity {
        of: Of::Port,
        id: info.id,
        name: info.name.clone(),
        netns: info.netns,
        kind: kind_of(&info.name, info.kind),
        uid: Some(info.uid),
        users: Some(info.users),
        rx,
        tx,
        drops: drops.fold(Drops::default(), |a, b| a.merge(b, u64::wrapping_add)),
        fill: fill(rings),
        note: info.mode.clone().unwrap_or_default(),
    }
}

fn ring(port: &PortInfo, ring: &RingInfo) -> Entity {
    let (host, way) =
        (if ring.host { "host " } else { "" }, if ring.receives { "rx" } else { "tx" });
    let count = Count { packets: ring.packets, bytes: ring.bytes };
    let [rx, tx] =
        if ring.receives { [count, Count::default()] } else { [Count::default(), count] };
    Entity {
        of: Of::Ring,
        id: port.id,
        name: format!("{} {host}{way} {}", port.name, ring.index),
        netns: port.netns,
        kind: kind_of(&port.name, port.kind),
        uid: Some(port.uid),
        users: Some(ring.users),
        rx,
        tx,
        drops: Drops::of_ring(ring),
        fill: fill(std::slice::from_ref(ring)),
        note: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway::{BridgeInfo, PortKind, PortTotals};
    use serde_json::json;
    use std::time::Instant;

    /// Its line among the ports has what the switch has counted, as among the ports of switches.
    #[test]
    fn an_attached_interface_has_its_traffic() {
        let name = "vale0:eth1";
        let port = PortInfo {
            id: 1,
            name: name.into(),
            kind: PortKind::Nic,
            mem_id: 1,
            buf_size: 2048,
            uid: 0,
            rings: [1, 1],
            slots: [1024, 1024],
            users: 0,
            mtu: Some(1500),
            mode: Some("kernel".into()),
            queues: Vec::new(),
            filters: Vec::new(),
            actions: Vec::new(),
            switch_owner: Some(0),
            added_queues: Vec::new(),
            gets_nothing: false,
            netns: None,
        };
        let totals = PortTotals {
            sent_packets: 3,
            sent_bytes: 180,
            received_packets: 5,
            received_bytes: 300,
            ..PortTotals::default()
        };
        let switch: BridgeInfo = serde_json::from_value(json!({
            "name": "vale0",
            "forwarding": "flood",
            "multicast": "flood",
            "ports": [{
                "name": name,
                "index": 0,
                "totals": totals,
                "vlan": "unaware",
                "sources": "any",
                "group_forward": 0,
                "isolated": false,
                "swap_buffers": false,
                "absent": false,
                "uid": 0,
                "declared": "no",
            }],
            "rounds": {"counts": [], "micros": 0},
            "declared": "no",
            "one_address": false,
        }))
        .unwrap();
        let sample =
            Sample { at: Instant::now(), switches: vec![switch], ports: vec![(port, Vec::new())] };
        let all = entities(&sample);
        assert_eq!(all.len(), 2);
        for entity in all {
            let counted = [entity.tx.packets, entity.tx.bytes, entity.rx.packets, entity.rx.bytes];
            assert_eq!(counted, [3, 180, 5, 300], "{entity:?}");
        }
    }
}
