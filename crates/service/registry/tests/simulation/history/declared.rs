//! The operator declares switches, each time other ones.

use ringway_proto::{
    FloodLimit, Forwarding, Multicast, MulticastRouter, RateLimit, SourceAddresses, Vlan,
};
use ringway_registry::{
    DeclaredInterface, DeclaredPort, DeclaredSwitch, LastingAddress, LastingMirror,
    LastingSettings, Outcome,
};

use super::{History, USERS};
use crate::{
    random::Random,
    requests::{INTERFACES, SWITCHES, address, direction, mirrored, mode},
};

impl History {
    /// What is declared is so at once, or on its way: there is nothing left to change.
    pub(super) fn declare(&mut self) {
        let wanted = switches(&mut self.random);
        let now = self.now;
        if self.unkind.panics > 0 && self.random.one_in(self.unkind.panics) {
            let steps = 1 + self.random.below(8) as u32;
            self.note(format!("declared, with a panic after {steps} steps: {wanted:?}"));
            self.panicking(steps, |registry| registry.declare(&wanted, now));
            return;
        }
        let Outcome { changes, failed, .. } =
            self.in_the_loop(|registry| registry.declare(&wanted, now));
        self.note(format!("declared: {changes:?}, but {failed:?}"));
        let left = self.in_the_loop(|registry| registry.declare(&wanted, now)).changes;
        assert!(left.is_empty() || !failed.is_empty(), "{left:?} are left after\n{}", self.tail());
    }
}

fn switches(random: &mut Random) -> Vec<DeclaredSwitch> {
    let mut interfaces = INTERFACES.to_vec();
    let mut all = Vec::new();
    for name in SWITCHES {
        if random.one_in(3) {
            continue;
        }
        let owner = random.of(&USERS);
        let learns = !random.one_in(4);
        let mut ports = Vec::new();
        for port in ["a", "b"] {
            if random.one_in(2) {
                let settings = settings(random, format!("{name}:{port}"), owner);
                ports.push(of_program(random, settings));
            }
        }
        interfaces.retain(|interface| {
            if random.one_in(2) {
                return true;
            }
            let full = format!("{name}:{interface}");
            let stack = random.one_in(2);
            if stack && random.one_in(2) {
                let settings = settings(random, format!("{full}^"), 0);
                ports.push(DeclaredPort {
                    settings,
                    interface: None,
                    for_user_alone: false,
                    place: String::new(),
                });
            }
            let interface = Some(DeclaredInterface { stack, mode: mode(random) });
            let settings = settings(random, full, 0);
            ports.push(DeclaredPort {
                settings,
                interface,
                for_user_alone: false,
                place: String::new(),
            });
            false
        });
        let addresses = match ports.first() {
            Some(port) if learns && random.one_in(2) => {
                let vlan = match port.settings.vlan {
                    Vlan::Access(vlan) => vlan,
                    _ => 0,
                };
                let port = port.settings.name.clone();
                vec![LastingAddress { mac: address(random), vlan, port }]
            }
            _ => Vec::new(),
        };
        let forwarding = if learns { Forwarding::default() } else { Forwarding::Flood };
        let some = [Multicast::Flood, Multicast::Snooping, Multicast::Querier];
        let multicast = if learns { random.of(&some) } else { Multicast::Flood };
        let full = |port: &str| format!("{name}:{port}");
        let mirror = |random: &mut Random| LastingMirror {
            name: "m0".into(),
            uid: 0,
            from: mirrored(random).map(|ports| ports.into_iter().map(full).collect()),
            direction: direction(random),
            to: full("c"),
            to_uid: random.of(&USERS),
            filter: None,
        };
        let mirrors = if random.one_in(2) { vec![mirror(random)] } else { Vec::new() };
        let (name, one_address, place) = (name.into(), random.one_in(3), String::new());
        let switch = DeclaredSwitch {
            name,
            owner,
            one_address,
            forwarding,
            multicast,
            ports,
            addresses,
            mirrors,
            place,
        };
        switch.check().expect("there can be such a switch");
        all.push(switch);
    }
    all
}

fn of_program(random: &mut Random, settings: LastingSettings) -> DeclaredPort {
    DeclaredPort {
        settings,
        interface: None,
        for_user_alone: random.one_in(4),
        place: String::new(),
    }
}

fn settings(random: &mut Random, name: String, uid: u32) -> LastingSettings {
    LastingSettings {
        name,
        uid,
        isolated: random.one_in(4),
        swap_buffers: random.one_in(4),
        rate: random.one_in(4).then(|| RateLimit::new(1_000_000)),
        multicast_router: if random.one_in(4) {
            MulticastRouter::Always
        } else {
            MulticastRouter::Auto
        },
        storm_multicast: random.one_in(4).then(|| FloodLimit::new(100)),
        vlan: if random.one_in(3) { Vlan::Access(7) } else { Vlan::Unaware },
        sources: if random.one_in(4) { SourceAddresses::One } else { SourceAddresses::Any },
        ..LastingSettings::unset(false)
    }
}
