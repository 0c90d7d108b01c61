//! Ports that are open: their rings, their interfaces, and what filters and action programs have decided.

use super::family::{Family, Labels};
use super::labels::PortLabels;
use super::mode::mode_and_path;
use super::reasons;
use super::scrape::{Port, Scrape};
use crate::opened::kind_of;
use ringway::{ActionInfo, FilterInfo, KernelCounters, RingInfo};

pub fn families(scrape: &Scrape) -> Vec<Family> {
    let labels = PortLabels::new(&scrape.ports);
    let (mut ports, mut rings) = (Ports::new(), Rings::new());
    for port in &scrape.ports {
        let of = labels.of(port);
        ports.put(&of, port);
        for group in RingGroup::all(&port.rings) {
            rings.put(&of, &group);
        }
    }
    ports.families().chain(rings.families()).collect()
}

/// The metrics of a port as a whole.
struct Ports {
    info: Family,
    handles: Family,
    mtu: Family,
    gets_nothing: Family,
    sockets: Family,
    device: Family,
    filters: Family,
    actions: Family,
}

impl Ports {
    fn new() -> Ports {
        Ports {
            info: Family::gauge(
                "ringway_port_info",
                "The kind of a port, its region, and the mode of an interface",
            ),
            handles: Family::gauge("ringway_port_handles", "Handles that have a port open"),
            mtu: Family::gauge("ringway_port_mtu_bytes", "The MTU that an interface has now"),
            gets_nothing: Family::gauge(
                "ringway_port_gets_nothing",
                "1 while an interface receives frames of which its port gets none, else 0",
            ),
            sockets: Family::counter(
                "ringway_port_socket_events_total",
                "What the AF_XDP sockets of a port have counted, under the kernel's names",
            ),
            device: Family::counter(
                "ringway_port_device_losses_total",
                "What counters of losses of an interface and its driver have grown by since the port was opened: a frame may be \
                 in several",
            ),
            filters: Family::counter(
                "ringway_port_filter_frames_total",
                "Frames that the filters of a port have matched, and of these led to the program, and frames left to the stack",
            ),
            actions: Family::counter(
                "ringway_port_action_frames_total",
                "Frames by what the action programs of a port have decided",
            ),
        }
    }

    fn put(&mut self, of: &Labels, port: &Port) {
        let Port { info, rings, device } = port;
        let (mode, _) = mode_and_path(info.mode.as_deref().unwrap_or_default());
        let (kind, region) = (kind_of(&info.name, info.kind), info.mem_id.to_string());
        self.info.put(of, &[("kind", &kind), ("region", &region), ("mode", mode)], 1_u64);
        self.handles.put(of, &[], info.users);
        if let Some(mtu) = info.mtu {
            self.mtu.put(of, &[], mtu);
            self.gets_nothing.put(of, &[], u64::from(info.gets_nothing));
        }
        let sockets: Vec<_> = rings.iter().filter_map(|ring| ring.kernel).collect();
        if !sockets.is_empty() {
            for (event, of_one) in SOCKET_EVENTS {
                let count: u64 = sockets.iter().map(of_one).sum();
                self.sockets.put(of, &[("event", event)], count);
            }
        }
        for counter in device {
            let source = if counter.driver { "driver" } else { "interface" };
            self.device.put(of, &[("source", source), ("counter", &counter.name)], counter.count);
        }
        if !info.filters.is_empty() {
            let sum = |of_one: fn(&FilterInfo) -> u64| info.filters.iter().map(of_one).sum::<u64>();
            for (fate, frames) in [
                ("matched", sum(|filter| filter.matched)),
                ("taken", sum(|filter| filter.taken)),
                ("passed", sum(|filter| filter.passed)),
            ] {
                self.filters.put(of, &[("fate", fate)], frames);
            }
        }
        if !info.actions.is_empty() {
            let sum = |of_one: fn(&ActionInfo) -> u64| info.actions.iter().map(of_one).sum::<u64>();
            for (verdict, frames) in [
                ("passed", sum(|action| action.passed)),
                ("dropped", sum(|action| action.dropped)),
                ("sent", sum(|action| action.sent)),
                ("to_stack", sum(|action| action.to_stack)),
                ("redirected", sum(|action| action.redirected)),
            ] {
                self.actions.put(of, &[("verdict", verdict)], frames);
            }
        }
    }

    fn families(self) -> impl Iterator<Item = Family> {
        let Ports { info, handles, mtu, gets_nothing, sockets, device, filters, actions } = self;
        [info, handles, mtu, gets_nothing, sockets, device, filters, actions].into_iter()
    }
}

type OfSocket = fn(&KernelCounters) -> u64;

const SOCKET_EVENTS: [(&str, OfSocket); 6] = [
    ("rx_dropped", |socket| socket.rx_dropped),
    ("rx_invalid_descs", |socket| socket.rx_invalid_descs),
    ("tx_invalid_descs", |socket| socket.tx_invalid_descs),
    ("rx_ring_full", |socket| socket.rx_ring_full),
    ("rx_fill_ring_empty_descs", |socket| socket.rx_fill_ring_empty_descs),
    ("tx_ring_empty_descs", |socket| socket.tx_ring_empty_descs),
];

/// The rings of a port that have a direction and a kind in common.
struct RingGroup<'a> {
    receives: bool,
    host: bool,
    rings: Vec<&'a RingInfo>,
}

impl<'a> RingGroup<'a> {
    /// Those that a port has.
    fn all(rings: &'a [RingInfo]) -> impl Iterator<Item = RingGroup<'a>> {
        let kinds = [(false, false), (true, false), (false, true), (true, true)];
        let group = move |(receives, host)| {
            let is_one = |ring: &&RingInfo| (ring.receives, ring.host) == (receives, host);
            RingGroup { receives, host, rings: rings.iter().filter(is_one).collect() }
        };
        kinds.into_iter().map(group).filter(|group| !group.rings.is_empty())
    }

    fn sum(&self, of_one: impl Fn(&RingInfo) -> u64) -> u64 {
        self.rings.iter().map(|ring| of_one(ring)).sum()
    }
}

/// The metrics of the rings of a port. What their numbers are, a program may write to.
struct Rings {
    count: Family,
    slots: Family,
    fill: Family,
    fullest: Family,
    packets: Family,
    bytes: Family,
    drops: Family,
    kicks: Family,
}

impl Rings {
    fn new() -> Rings {
        Rings {
            count: Family::gauge("ringway_port_rings", "Rings of a port"),
            slots: Family::gauge("ringway_port_ring_slots", "Slots of these rings"),
            fill: Family::gauge(
                "ringway_port_ring_fill_slots",
                "Slots with packets as of the last sync: sent and not taken yet, or received and not released",
            ),
            fullest: Family::gauge(
                "ringway_port_ring_fullest_ratio",
                "The part of its slots that has packets in the fullest of these rings",
            ),
            packets: Family::counter(
                "ringway_port_packets_total",
                "Packets that went through the rings; slots where they are those of switch ports, pipes and monitors",
            ),
            bytes: Family::counter("ringway_port_bytes_total", "Bytes of these packets"),
            drops: Family::counter(
                "ringway_port_drops_total",
                "Packets that the rings have dropped, with the kernel's part",
            ),
            kicks: Family::counter(
                "ringway_port_kicks_total",
                "System calls that were made to have the rings served",
            ),
        }
    }

    fn put(&mut self, of: &Labels, group: &RingGroup<'_>) {
        let direction = if group.receives { "received" } else { "sent" };
        let side = if group.host { "host" } else { "port" };
        let mut of = of.clone();
        of.extend([("direction", direction.into()), ("rings", side.into())]);
        self.count.put(&of, &[], group.rings.len());
        self.slots.put(&of, &[], group.sum(|ring| ring.slots.into()));
        self.fill.put(&of, &[], group.sum(|ring| ring.fill.into()));
        let ratio = |ring: &&RingInfo| f64::from(ring.fill) / f64::from(ring.slots.max(1));
        self.fullest.put(&of, &[], group.rings.iter().map(ratio).fold(0.0, f64::max));
        self.packets.put(&of, &[], group.sum(|ring| ring.packets));
        self.bytes.put(&of, &[], group.sum(|ring| ring.bytes));
        self.kicks.put(&of, &[], group.sum(|ring| ring.kicks));
        let drops: Vec<_> = group.rings.iter().map(|ring| reasons::of_ring(ring)).collect();
        for at in 0..drops.first().map_or(0, |first| first.len()) {
            let (reason, _) = drops[0][at];
            self.drops.put(
                &of,
                &[("reason", reason)],
                drops.iter().map(|of_one| of_one[at].1).sum::<u64>(),
            );
        }
    }

    fn families(self) -> impl Iterator<Item = Family> {
        let Rings { count, slots, fill, fullest, packets, bytes, drops, kicks } = self;
        [count, slots, fill, fullest, packets, bytes, drops, kicks].into_iter()
    }
}
