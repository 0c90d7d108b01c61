//! Switches and their ports.

use super::family::{Family, Labels};
use super::mode::mode_and_path;
use super::scrape::Scrape;
use ringway::{BridgePortInfo, Forwarding};

pub fn families(scrape: &Scrape) -> Vec<Family> {
    let mut info = Family::gauge("ringway_switch_info", "How a switch forwards");
    let mut count = Family::gauge("ringway_switch_ports", "Ports that a switch has");
    let mut expected = Family::gauge(
        "ringway_switch_ports_expected",
        "Ports that are to come back to a switch and are not back",
    );
    let mut rounds = Family::histogram(
        "ringway_switch_round_duration_seconds",
        "Time of a round of a switch's worker over all ports, of one in 64 rounds in which there was work",
    );
    let mut ports = Ports::new();
    for switch in &scrape.switches {
        let of = vec![("switch", switch.name.clone())];
        info.put(&of, &[("forwarding", forwarding(&switch.forwarding))], 1_u64);
        count.put(&of, &[], switch.ports.iter().filter(|port| !port.absent).count());
        expected.put(&of, &[], switch.ports.iter().filter(|port| is_to_come_back(port)).count());
        rounds.put(&of, &[], switch.rounds.clone());
        switch.ports.iter().for_each(|port| ports.put(&of, port));
    }
    [info, count, expected, rounds].into_iter().chain(ports.families()).collect()
}

/// An interface that is not there. A program opens its port when it likes.
fn is_to_come_back(port: &BridgePortInfo) -> bool {
    port.absent && port.attachment.is_some()
}

fn forwarding(forwarding: &Forwarding) -> &'static str {
    match forwarding {
        Forwarding::Learning { .. } => "learning",
        Forwarding::Static { .. } => "static",
        Forwarding::Hash { .. } => "hash",
        Forwarding::Flood => "flood",
    }
}

/// The metrics of ports.
struct Ports {
    info: Family,
    packets: Family,
    bytes: Family,
    drops: Family,
    addresses: Family,
    moved: Family,
    unlearned: Family,
    reordered: Family,
    blocked: Family,
    waits: Family,
    absent: Family,
}

impl Ports {
    fn new() -> Ports {
        Ports {
            info: Family::gauge(
                "ringway_switch_port_info",
                "The mode of an interface on a switch, and what forwards for it",
            ),
            packets: Family::counter(
                "ringway_switch_port_packets_total",
                "Packets from a port into the switch (sent) and from the switch to the port (received)",
            ),
            bytes: Family::counter("ringway_switch_port_bytes_total", "Bytes of these packets"),
            drops: Family::counter(
                "ringway_switch_port_drops_total",
                "Packets that the switch has dropped at a port",
            ),
            addresses: Family::gauge(
                "ringway_switch_port_addresses",
                "Addresses that the switch has learned behind a port",
            ),
            moved: Family::counter(
                "ringway_switch_port_addresses_moved_total",
                "Addresses that were behind another port until this one sent with them",
            ),
            unlearned: Family::counter(
                "ringway_switch_port_unlearned_packets_total",
                "Packets whose source was not learned, for a limit or a static address",
            ),
            reordered: Family::counter(
                "ringway_switch_port_reordered_packets_total",
                "Packets from a port that may have overtaken earlier ones, past a worker that did not keep up",
            ),
            blocked: Family::gauge(
                "ringway_switch_port_blocked",
                "1 if a port is blocked because frames came back by it",
            ),
            waits: Family::gauge(
                "ringway_switch_port_waiting",
                "1 if what a port has sent waits for a lossless port",
            ),
            absent: Family::gauge(
                "ringway_switch_port_absent",
                "1 for a port that is to be on its switch and is not there",
            ),
        }
    }

    fn put(&mut self, switch: &Labels, port: &BridgePortInfo) {
        let mut of = switch.clone();
        of.push(("port", port.name.clone()));
        if is_to_come_back(port) {
            self.absent.put(&of, &[], 1_u64);
        }
        if port.absent {
            return;
        }
        let BridgePortInfo { totals, mode, waits_for, loops_with, .. } = port;
        if let Some(mode) = mode {
            let (mode, path) = mode_and_path(mode);
            self.info.put(&of, &[("mode", mode), ("path", path)], 1_u64);
        }
        for (direction, packets, bytes) in [
            ("sent", totals.sent_packets, totals.sent_bytes),
            ("received", totals.received_packets, totals.received_bytes),
        ] {
            self.packets.put(&of, &[("direction", direction)], packets);
            self.bytes.put(&of, &[("direction", direction)], bytes);
        }
        for (reason, dropped) in totals.drops.reasons() {
            self.drops.put(&of, &[("reason", reason)], dropped);
        }
        self.addresses.put(&of, &[], totals.known);
        self.moved.put(&of, &[], totals.moved);
        self.unlearned.put(&of, &[], totals.unlearned);
        self.reordered.put(&of, &[], totals.reordered);
        self.blocked.put(&of, &[], loops_with.is_some());
        self.waits.put(&of, &[], waits_for.is_some());
    }

    fn families(self) -> impl Iterator<Item = Family> {
        let Ports {
            info,
            packets,
            bytes,
            drops,
            addresses,
            moved,
            unlearned,
            reordered,
            blocked,
            waits,
            absent,
        } = self;
        [
            info, packets, bytes, drops, addresses, moved, unlearned, reordered, blocked, waits,
            absent,
        ]
        .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::text::{Format, encode};
    use ringway::{BridgeInfo, BridgePortInfo, PortDrops};
    use serde_json::json;

    fn port(name: &str, index: u32, mode: &str, absent: bool) -> BridgePortInfo {
        let counts = [
            "sent_packets",
            "sent_bytes",
            "received_packets",
            "received_bytes",
            "known",
            "moved",
            "unlearned",
            "reordered",
        ];
        let mut totals: serde_json::Map<_, _> =
            counts.into_iter().map(|name| (name.to_owned(), json!(0))).collect();
        let drops = PortDrops::default().reasons();
        let drops: serde_json::Map<_, _> =
            drops.into_iter().map(|(reason, _)| (reason.to_owned(), json!(0))).collect();
        totals.insert("drops".into(), drops.into());
        let port = json!({
            "name": name,
            "index": index,
            "totals": totals,
            "vlan": "unaware",
            "sources": "any",
            "group_forward": 0,
            "isolated": false,
            "swap_buffers": false,
            "loops_with": (index == 1).then_some("vale0:b"),
            "mode": mode,
            "absent": absent,
            "uid": 0,
            "attachment": (index != 3).then_some(json!({"stack": false})),
            "declared": "no",
        });
        serde_json::from_value(port).unwrap()
    }

    /// A port that is not there counts nothing: zeros would look like a port without traffic.
    #[test]
    fn a_port_that_is_not_back_is_absent_and_nothing_else() {
        let ports = vec![
            port("vale0:a", 0, "kernel, by the worker: it has monitors", false),
            port("vale0:b", 1, "copy; not zerocopy: no hook", false),
            port("vale0:gone", 2, "not back yet: there is no such interface", true),
            port("vale0:closed", 3, "no program has it open", true),
        ];
        let mut switch: BridgeInfo = serde_json::from_value(json!({
            "name": "vale0",
            "forwarding": "flood",
            "multicast": "flood",
            "ports": [],
            "rounds": {"counts": [], "micros": 0},
            "declared": "no",
            "one_address": false,
        }))
        .unwrap();
        switch.ports = ports;
        let scrape = Scrape { switches: vec![switch], ..Scrape::default() };
        let text = encode(families(&scrape), Format::Prometheus).unwrap();
        let lines = |part: &str| {
            text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect::<Vec<_>>()
        };
        let absent = r#"ringway_switch_port_absent{switch="vale0",port="vale0:gone"} 1"#;
        assert_eq!(lines("vale0:gone"), [absent]);
        assert!(lines("vale0:closed").is_empty());
        let info = |port, mode, path| {
            format!(
                "ringway_switch_port_info{{switch=\"vale0\",port=\"vale0:{port}\",mode=\"{mode}\",path=\"{path}\"}} 1"
            )
        };
        let shown = [info("a", "kernel", "worker"), info("b", "copy", "worker")];
        assert_eq!(lines("ringway_switch_port_info{"), shown);
        let blocked = |port, is| {
            format!("ringway_switch_port_blocked{{switch=\"vale0\",port=\"vale0:{port}\"}} {is}")
        };
        assert_eq!(lines("ringway_switch_port_blocked{"), [blocked("a", 0), blocked("b", 1)]);
        for expected in [
            "ringway_switch_ports{switch=\"vale0\"} 2",
            "ringway_switch_ports_expected{switch=\"vale0\"} 1",
            "ringway_switch_info{switch=\"vale0\",forwarding=\"flood\"} 1",
            "ringway_switch_round_duration_seconds_count{switch=\"vale0\"} 0",
        ] {
            assert_eq!(lines(expected), [expected]);
        }
    }
}
