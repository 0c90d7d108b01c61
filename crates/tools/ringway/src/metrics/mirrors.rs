//! Mirrors of switches.

use super::family::Family;
use super::scrape::Scrape;

pub fn families(scrape: &Scrape) -> Vec<Family> {
    let mut packets = Family::counter(
        "ringway_switch_mirror_packets_total",
        "Copies that the port of a switch's mirror was given",
    );
    let mut bytes = Family::counter("ringway_switch_mirror_bytes_total", "Bytes of these copies");
    let mut drops = Family::counter(
        "ringway_switch_mirror_drops_total",
        "Copies that the port of a switch's mirror was not given",
    );
    let mut active = Family::gauge(
        "ringway_switch_mirror_active",
        "0 if a switch's mirror waits for the port that gets the copies",
    );
    for switch in &scrape.switches {
        for mirror in &switch.mirrors {
            let of = vec![("switch", switch.name.clone()), ("mirror", mirror.name.clone())];
            packets.put(&of, &[], mirror.totals.copied_packets);
            bytes.put(&of, &[], mirror.totals.copied_bytes);
            for (reason, dropped) in mirror.totals.drops() {
                drops.put(&of, &[("reason", reason)], dropped);
            }
            let mut missing = mirror.absent.iter().chain(&mirror.foreign);
            active.put(&of, &[], missing.all(|port| *port != mirror.to));
        }
    }
    vec![packets, bytes, drops, active]
}
