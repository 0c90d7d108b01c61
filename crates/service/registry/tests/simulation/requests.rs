//! Random requests, most of which could be answered.

use ringway_abi::Dir;
use ringway_proto::{
    Action, Ebpf, Filter, FloodLimit, Forwarding, Lossless, MirrorDirection, Monitor, Multicast,
    MulticastRouter, NicMode, Options, Polling, PortSettings, PortShape, RateLimit, Registration,
    Request, RingSelection, RxSelector, SwitchMirror, SwitchPosition, Vlan,
};

use crate::random::Random;

pub const INTERFACES: [&str; 3] = ["n0", "n1", "n2"];
pub const SWITCHES: [&str; 2] = ["vale0", "vale1"];
pub const PERSISTENT: [&str; 2] = ["v0", "v1"];

fn name_of_switch_port(random: &mut Random) -> String {
    let switch = random.of(&SWITCHES);
    match random.below(8) {
        0..5 => format!("{switch}:{}", random.of(&["a", "b", "c"])),
        5 => format!("{switch}:{}", random.of(&PERSISTENT)),
        _ => format!("{switch}:{}", random.of(&INTERFACES)),
    }
}

fn name(random: &mut Random) -> String {
    match random.below(12) {
        0..4 => random.of(&INTERFACES).into(),
        4..7 => name_of_switch_port(random),
        7 => random.of(&PERSISTENT).into(),
        8 => "none".into(),
        _ => {
            let parent = match random.below(3) {
                0 => name_of_switch_port(random),
                1 => random.of(&INTERFACES).into(),
                _ => "p".into(),
            };
            let end = random.of(&["{1", "}1", "{2", "}2"]);
            format!("{parent}{end}")
        }
    }
}

fn rings(random: &mut Random) -> RingSelection {
    match random.below(10) {
        0..4 => RingSelection::All,
        4..7 => RingSelection::One(random.below(3) as u16),
        7 => RingSelection::Host,
        8 => RingSelection::AllAndHost,
        _ => RingSelection::OneHost(0),
    }
}

fn registration(random: &mut Random) -> Registration {
    if !random.one_in(3) {
        let extra_bufs = random.of(&[0, 0, 5]);
        return Registration { rings: rings(random), extra_bufs, ..Registration::default() };
    }
    let monitor = match random.below(10) {
        0 => Monitor { tx: true, rx: true, zero_copy: false },
        1 => Monitor { tx: false, rx: true, zero_copy: random.one_in(2) },
        _ => Monitor::default(),
    };
    Registration {
        rings: rings(random),
        monitor,
        without_tx: random.one_in(6),
        without_rx: random.one_in(6),
        exclusive: random.one_in(8),
        tx_slots: random.of(&[0, 0, 16]),
        rx_slots: random.of(&[0, 0, 16]),
        tx_rings: random.of(&[0, 0, 2]),
        extra_bufs: random.of(&[0, 0, 5, 300]),
        host_rx_rings: random.of(&[0, 0, 2]),
        mem_id: random.of(&[0, 0, 0, 1, 2, 3]),
        ..Registration::default()
    }
}

fn filter(random: &mut Random) -> Option<Filter> {
    let insns = ringway_filter::Program::everything().insns().to_vec();
    (!random.one_in(3)).then(|| Filter { text: "everything".into(), insns, one_in: 1 })
}

fn selector(random: &mut Random) -> RxSelector {
    match random.below(3) {
        0 => RxSelector::Queues,
        1 => RxSelector::Queue(random.below(3) as u16),
        _ => RxSelector::Host,
    }
}

pub fn mode(random: &mut Random) -> Option<NicMode> {
    random.one_in(2).then(|| random.of(&NicMode::ALL))
}

fn open(random: &mut Random) -> Request {
    let filter = if random.one_in(4) { filter(random) } else { None };
    let options = Options { mode: mode(random), filter, ..Options::default() };
    let registration = registration(random);
    Request::Register { name: name(random), registration, options: Box::new(options) }
}

/// What a client asks that has the port of that name.
pub fn of_a_port(random: &mut Random, its: &str) -> Request {
    let name = || its.to_owned();
    match random.below(12) {
        0..3 => Request::Unregister,
        3 => Request::Describe,
        4 => Request::Mirrors { dir: random.of(&[Dir::Tx, Dir::Rx]), index: 0 },
        5 => Request::Stack,
        6 | 7 => {
            let rings = selector(random);
            Request::SetFilter { name: name(), rings, filter: filter(random) }
        }
        8 => {
            let (queues, to_program) = (vec![random.below(2) as u16], random.one_in(2));
            Request::RedirectQueues { name: name(), queues, to_program }
        }
        9 => {
            let action = action(random);
            Request::SetAction { name: name(), rings: RxSelector::Queues, action }
        }
        10 => Request::SetHeaderLen { name: name(), len: random.of(&[0, 10, 12]) },
        _ => request(random),
    }
}

/// A program that decides the same about each frame.
fn action(random: &mut Random) -> Option<Action> {
    let verdict = random.of(&[0, 1, 2]);
    let insn = |code, immediate| Ebpf { code, registers: 0, offset: 0, immediate };
    let insns = vec![insn(0xb7, verdict), insn(0x95, 0)];
    (!random.one_in(3)).then(|| Action { text: "all".into(), insns, redirects: Vec::new() })
}

/// Ports that a mirror shows; `None`: all.
pub fn mirrored(random: &mut Random) -> Option<Vec<&'static str>> {
    let some: [&[&str]; 4] = [&["a"], &["a", "b"], &["a", "n0"], &["n0", "n1", "v0"]];
    (!random.one_in(3)).then(|| random.of(&some).to_vec())
}

pub fn direction(random: &mut Random) -> MirrorDirection {
    random.of(&[MirrorDirection::Sent, MirrorDirection::Received, MirrorDirection::Both])
}

pub fn address(random: &mut Random) -> [u8; 6] {
    [2, 0, 0, 0, 0, random.below(4) as u8]
}

pub fn request(random: &mut Random) -> Request {
    let from = SwitchPosition::default();
    match random.below(49) {
        0..16 => open(random),
        16 | 17 => Request::SwitchDetach { name: name_of_switch_port(random) },
        18 => Request::Describe,
        19 => Request::Mirrors { dir: random.of(&[Dir::Tx, Dir::Rx]), index: 0 },
        20 => Request::Stack,
        21 => Request::PortGeometry { name: name(random), mem_id: 0 },
        22 => Request::Pools { name: name(random), mem_id: 0 },
        23 => Request::NewInterface {
            name: random.of(&PERSISTENT).into(),
            shape: PortShape { tx_slots: 16, rx_slots: 16, ..PortShape::default() },
        },
        24 => Request::DeleteInterface { name: random.of(&PERSISTENT).into() },
        25..28 => Request::SwitchAttach {
            name: name_of_switch_port(random),
            stack: random.one_in(2),
            all_rings: true,
            mem_id: 0,
            mode: mode(random),
        },
        28 | 29 => Request::SwitchDetach { name: name_of_switch_port(random) },
        30 => Request::SwitchNew {
            bridge: random.of(&SWITCHES).into(),
            one_address: random.one_in(4),
        },
        31 => Request::SwitchDelete { bridge: random.of(&SWITCHES).into() },
        32 => {
            let rings = selector(random);
            Request::SetFilter { name: name(random), rings, filter: filter(random) }
        }
        33 => Request::RedirectQueues {
            name: name(random),
            queues: vec![random.below(2) as u16],
            to_program: random.one_in(2),
        },
        34 => {
            let vlan = random.of(&[None, Some(Vlan::Unaware), Some(Vlan::Access(7))]);
            let isolated = random.of(&[None, Some(true), Some(false)]);
            let swap_buffers = random.of(&[None, Some(true), Some(false)]);
            let rates = [8_000, 7, 1_000_000].map(|bits| Some(Some(RateLimit::new(bits))));
            let rate = random.of(&[[None, Some(None)].as_slice(), &rates].concat());
            let storm = random.of(&[None, Some(None), Some(Some(0)), Some(Some(100))]);
            let lossless = random.of(&[None, Some(None), Some(Some(Lossless::default()))]);
            let kinds =
                [None, Some(None), Some(Some(FloodLimit::new(0))), Some(Some(FloodLimit::new(9)))];
            let (storm_broadcast, storm_unknown) = (random.of(&kinds), random.of(&kinds));
            let filters = [None, Some(None), Some(filter(random))];
            let routers = [None, Some(MulticastRouter::Auto), Some(MulticastRouter::Always)];
            let (filter_in, filter_out) = (random.of(&filters), random.of(&filters));
            let max_addresses = random.of(&[None, Some(None), Some(Some(0)), Some(Some(3))]);
            let settings = PortSettings {
                vlan,
                isolated,
                swap_buffers,
                filter_in,
                filter_out,
                max_addresses,
                rate,
                storm,
                storm_broadcast,
                storm_unknown,
                multicast_router: random.of(&routers),
                lossless,
                ..PortSettings::default()
            };
            Request::SwitchPort { name: name_of_switch_port(random), settings }
        }
        35 => Request::SwitchPoll {
            // Programs' ports are not polled.
            name: match random.one_in(4) {
                true => name_of_switch_port(random),
                false => format!("{}:{}", random.of(&SWITCHES), random.of(&INTERFACES)),
            },
            enable: random.one_in(2),
            polling: Polling::OneCpu { cpu: 0, count: 1 },
        },
        36 => Request::Switches { from },
        37 => Request::Ports { from: 0 },
        39 => Request::HeaderLen { name: name(random) },
        40 => {
            let forwarding = random.of(&[Forwarding::Flood, Forwarding::default()]);
            Request::SwitchForward { bridge: random.of(&SWITCHES).into(), forwarding }
        }
        42 | 43 => Request::SwitchAddressAdd {
            bridge: random.of(&SWITCHES).into(),
            mac: address(random),
            vlan: random.of(&[0, 0, 7]),
            port: random.of(&["a", "b", "n0", "n1", "v0"]).into(),
        },
        44 => {
            let (bridge, mac) = (random.of(&SWITCHES).into(), address(random));
            Request::SwitchAddressDelete { bridge, mac, vlan: random.of(&[0, 0, 7]) }
        }
        45 => Request::SwitchAddressesFlush {
            bridge: random.of(&SWITCHES).into(),
            port: random.of(&[None, Some("a".into()), Some("n0".into())]),
            vlan: random.of(&[None, Some(0), Some(7)]),
            added: random.one_in(3),
        },
        46 => {
            let all = [Multicast::Flood, Multicast::Snooping, Multicast::Querier];
            let bridge = random.of(&SWITCHES).into();
            Request::SwitchMulticast { bridge, multicast: random.of(&all) }
        }
        47 => {
            let (bridge, direction) = (random.of(&SWITCHES).into(), direction(random));
            let mirror = SwitchMirror {
                name: random.of(&["m0", "m1"]).into(),
                from: mirrored(random).map(|ports| ports.into_iter().map(Into::into).collect()),
                direction,
                to: random.of(&["c", "c", "n2", "v0"]).into(),
                user: random.of(&[None, None, Some(1001)]),
                filter: if random.one_in(4) { filter(random) } else { None },
            };
            Request::SwitchMirrorAdd { bridge, mirror: Box::new(mirror) }
        }
        48 => {
            let (bridge, mirror) = (random.of(&SWITCHES).into(), random.of(&["m0", "m1"]).into());
            Request::SwitchMirrorDelete { bridge, mirror }
        }
        38 => Request::DeviceCounters { port: random.below(30) as u64, from: 0 },
        _ => Request::Rings { port: random.below(30) as u64, from: 0 },
    }
}
