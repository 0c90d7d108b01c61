//! The table against a plain map, and what ports can do to one another.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Learn(u64, PortIndex),
    /// Many addresses of one port.
    Flood(PortIndex, u64),
    Pass(u32),
    Purge(PortIndex),
    Flush(Option<u64>, Option<PortIndex>),
    /// These are static, and no others.
    Fix(Vec<(u64, PortIndex)>),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => (0u64..5000, 0u8..254).prop_map(|(n, port)| Op::Learn(n, port)),
        2 => (0u8..254, 1000u64..3000).prop_map(|(port, count)| Op::Flood(port, count)),
        2 => (0u32..8).prop_map(Op::Pass),
        1 => (0u8..254).prop_map(Op::Purge),
        1 => (any::<bool>(), 0u64..5000, proptest::option::of(0u8..254))
            .prop_map(|(one, n, port)| Op::Flush(one.then_some(n), port)),
        2 => proptest::collection::vec((0u64..5000, prop_oneof![0u8..254, Just(ABSENT)]), 0..40)
            .prop_map(Op::Fix),
        1 => proptest::collection::vec((0u64..5000, 0u8..254), 500..2000).prop_map(Op::Fix),
    ]
}

/// Times by address, and what the table says that it lost.
struct Model {
    table: Table,
    known: HashMap<u64, (PortIndex, u32)>,
    fixed: HashMap<u64, PortIndex>,
    now: u32,
}

impl Model {
    fn learn(&mut self, mac: u64, port: PortIndex) {
        if let Some(fixed) = self.fixed.get(&mac) {
            let is_its = *fixed == port;
            let expected = if is_its { Learned::There } else { Learned::No };
            return assert_eq!(self.table.learn(mac, port), expected);
        }
        let before = self.known.get(&mac).map(|(port, _)| *port);
        let count = |known: &HashMap<u64, (PortIndex, u32)>, port| {
            known.values().filter(|(behind, _)| *behind == port).count()
        };
        match self.table.learn(mac, port) {
            Learned::There => assert!(before.is_none() || before == Some(port)),
            Learned::Moved(old) => assert!(before == Some(old) && old != port),
            Learned::Instead(lost, old) => {
                assert_eq!(before, None);
                assert_eq!(self.known.remove(&lost).map(|(port, _)| port), Some(old));
                // Only of a port that has more, or its own.
                let has = count(&self.known, old) + 1;
                assert!(old == port || has > count(&self.known, port) + 1, "{has}");
            }
            Learned::No => return assert_eq!(before, None),
        }
        self.known.insert(mac, (port, self.now));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a plain map with times: what the table knows is right, and it forgets an
    /// address only when it has aged, its port has gone, or it says so.
    #[test]
    fn behaves_like_a_forgetful_map(
        ops in proptest::collection::vec(op(), 1..300),
        ageing in 0u32..20, spread in any::<u64>(), shared_from in 0usize..300,
    ) {
        let mac_of = |n: u64| n.wrapping_mul(spread | 1) & 0xffff_ffff_ffff;
        let (table, known, fixed) = (Table::new(ageing), HashMap::new(), HashMap::new());
        let mut model = Model { table, known, fixed, now: 1000 };
        model.table.tick(model.now);
        let fast = Arc::new(FastPath::unshared(random_secret()).unwrap());
        let mut is_shared = false;
        for (number, op) in ops.into_iter().enumerate() {
            // Addresses get other places: where they do not fit there, they are forgotten.
            if number == shared_from {
                model.table.share(fast.clone());
                is_shared = true;
                model.known.retain(|mac, _| model.table.lookup(*mac).is_some());
                prop_assert!(model.fixed.keys().all(|mac| model.table.lookup(*mac).is_some()));
            }
            match op {
                Op::Learn(n, port) => model.learn(mac_of(n), port),
                Op::Flood(port, count) => {
                    (0..count).for_each(|n| model.learn(mac_of(10_000 + n), port));
                }
                Op::Pass(seconds) => {
                    model.now += seconds;
                    model.table.tick(model.now);
                    let fresh = |seen: u32| ageing == 0 || model.now - seen <= ageing;
                    model.known.retain(|_, (_, seen)| fresh(*seen));
                }
                Op::Purge(port) => {
                    model.table.purge(port);
                    model.known.retain(|_, (behind, _)| *behind != port);
                }
                Op::Flush(n, port) => {
                    let mac = n.map(mac_of);
                    let which =
                        AddressFilter { mac: mac.map(|mac| address_of(mac).0), vlan: None, port };
                    let before = model.known.len();
                    model.known.retain(|it, (behind, _)| {
                        mac.is_some_and(|mac| *it != mac)
                            || port.is_some_and(|port| *behind != port)
                    });
                    prop_assert_eq!(model.table.flush(&which), before - model.known.len());
                }
                Op::Fix(list) => {
                    model.fixed = list.iter().map(|(n, port)| (mac_of(*n), *port)).collect();
                    let address = |(mac, port): (&u64, &PortIndex)| StaticAddress {
                        mac: address_of(*mac).0,
                        vlan: 0,
                        port: *port,
                    };
                    model.table.set_statics(model.fixed.iter().map(address).collect());
                    // Of those that were learned, some have lost their places.
                    model.known.retain(|mac, _| {
                        let is_known = model.table.lookup(*mac).is_some();
                        is_known && !model.fixed.contains_key(mac)
                    });
                }
            }
        }
        for (at, set) in model.table.sets.iter().enumerate().filter(|_| is_shared) {
            for (way, entry) in set.0.iter().enumerate() {
                let here = entry.port().map(|port| (entry.key, port));
                prop_assert_eq!(fast.entry(at, way), here);
                prop_assert!(here.is_none() || fast.seen(at, way) == entry.seen);
            }
        }
        for mac in (0..13_000).map(mac_of) {
            let learned = model.known.get(&mac).map(|(port, _)| *port);
            let known = model.fixed.get(&mac).copied().or(learned);
            prop_assert_eq!(model.table.lookup(mac), known);
        }
        let mut listed = HashMap::new();
        let mut next = Some(0);
        while let Some(from) = next {
            let page;
            (page, next) = model.table.list(from, 100);
            prop_assert!(page.len() < 100 + WAYS);
            for LearnedAddress { mac: [a, b, c, d, e, f], vlan, port, age_seconds } in page {
                let key = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
                prop_assert_eq!(vlan, 0);
                prop_assert_eq!(listed.insert(key, (port, model.now - age_seconds)), None);
            }
        }
        prop_assert_eq!(&listed, &model.known);
        for port in 0..=PortIndex::MAX {
            let behind = model.known.values().filter(|(behind, _)| *behind == port).count();
            prop_assert_eq!(usize::from(model.table.known(port)), behind);
        }
    }
}

/// 600 addresses of one port, in each order of their bytes, whatever the secrets are.
#[test]
fn evenly_spaced_addresses_do_not_meet() {
    let mut secret = [1u64, 2];
    for _ in 0..500 {
        secret =
            secret.map(|half: u64| half.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(29) ^ 7);
        for place in [8u32, 16, 24, 32] {
            let mut table = Table { secret, ..Table::new(0) };
            for number in 0..600u16 {
                let vlan = if number % 2 == 1 { 7 } else { 1 };
                table.learn(u64::from(number.swap_bytes()) << place | vlan << 48 | 2, 3);
            }
            let known = table.known(3);
            assert!(known >= 590, "{known} with {secret:x?} at {place}");
        }
    }
}

/// A port has so many addresses and no more, but for those that come to it from others.
#[test]
fn a_port_has_a_quarter_of_the_places() {
    let mut table = Table::new(0);
    let address = |n: u64| n << 8 | 2;
    // It keeps its place, for it is the only one of its port.
    let other = address(1 << 30);
    table.learn(other, 2);
    for n in 0..20_000 {
        table.learn(address(n), 1);
        assert!(table.known(1) <= 1024);
    }
    assert_eq!((table.known(1), table.known(2)), (1024, 1));
    assert_eq!(table.learn(other, 1), Learned::Moved(2));
    assert_eq!((table.known(1), table.known(2)), (1025, 0));
    table.purge(1);
    assert_eq!(table.known(1), 0);
}

/// What of its own a port loses for the next address, when it has no more places: the oldest of that set.
#[test]
fn of_its_own_a_port_loses_the_oldest() {
    let mut table = Table::new(0);
    let mut number = 0;
    let mut next = |table: &Table, set: usize| loop {
        number += 1;
        let key = number << 8 | 2;
        if table.set_of(key) == set {
            return key;
        }
    };
    let keys: Vec<Key> = (0..WAYS).map(|_| next(&table, 5)).collect();
    // Not in the order of their places.
    for (second, way) in [2, 0, 3, 1].into_iter().enumerate() {
        table.tick(second as u32);
        table.learn(keys[way], 1);
    }
    table.tick(9);
    let new = next(&table, 5);
    assert_eq!(table.learn(new, 1), Learned::Instead(keys[2], 1));
    assert_eq!(table.lookup(keys[2]), None);
    assert_eq!(table.lookup(new), Some(1));
}

/// What the program in the kernel has seen does not age, and is not told as older than it is.
#[test]
fn what_was_seen_elsewhere_is_known() {
    let fast = Arc::new(FastPath::unshared(random_secret()).unwrap());
    let mut table = Table::new(10);
    table.tick(100);
    table.share(fast.clone());
    let [here, there] = [0x11_0002, 0x22_0002];
    table.learn(here, 1);
    table.learn(there, 2);
    let set = table.set_of(there);
    let way = (0..WAYS).find(|way| fast.entry(set, *way) == Some((there, 2))).unwrap();
    fast.learn(set, way, there, 2, 107);
    table.now = 109;
    let mut ages: Vec<_> = table.list(0, 10).0.iter().map(|it| (it.port, it.age_seconds)).collect();
    ages.sort_unstable();
    assert_eq!(ages, [(1, 9), (2, 2)]);
    table.tick(111);
    assert_eq!((table.lookup(here), table.lookup(there)), (None, Some(2)));
    table.tick(117);
    assert_eq!(table.lookup(there), Some(2));
    table.tick(118);
    assert_eq!((table.lookup(there), table.known(2)), (None, 0));
}

/// The program takes a static address for a source when the worker has learned that its port may send with it,
/// until the port may send with others.
#[test]
fn a_static_address_is_no_source_until_its_port_has_sent() {
    let fast = Arc::new(FastPath::unshared(random_secret()).unwrap());
    let mut table = Table::new(10);
    let (key, address) =
        (0x11_0002, |port| StaticAddress { mac: [2, 0, 0x11, 0, 0, 0], vlan: 0, port });
    table.set_statics(vec![address(1)]);
    table.share(fast.clone());
    let set = table.set_of(key);
    let is_source = || {
        let way = (0..WAYS).find(|way| fast.entry(set, *way).is_some_and(|it| it.0 == key));
        fast.is_source(set, way.expect("it is there"))
    };
    assert!(!is_source());
    assert_eq!(table.learn(key, 2), Learned::No);
    assert!(!is_source(), "another port");
    assert_eq!(table.learn(key, 1), Learned::There);
    assert!(is_source());
    table.set_statics(vec![address(1), StaticAddress { mac: [4, 0, 0, 0, 0, 0], ..address(3) }]);
    table.purge(3);
    assert!(is_source(), "nothing of it has changed");
    table.purge(1);
    assert!(!is_source());
    table.learn(key, 1);
    table.set_statics(vec![address(2)]);
    assert!(!is_source(), "it is another port's");
    assert_eq!((table.lookup(key), table.known(2), table.fixed(2)), (Some(2), 0, 1));
}

#[test]
fn a_list_has_whole_sets_up_to_so_many() {
    let mut table = Table::new(0);
    for n in 0..200 {
        table.learn(n << 8 | 2, 7);
    }
    let (all, end) = table.list(0, usize::MAX);
    // Of more than a set holds, it has lost some.
    assert_eq!((all.len(), end), (table.known(7).into(), None));
    let (mut seen, mut from) = (Vec::new(), Some(0));
    while let Some(at) = from {
        let (page, next) = table.list(at, 10);
        assert!(next.is_none() || (10..10 + WAYS).contains(&page.len()), "{}", page.len());
        assert!(next.is_none_or(|next| next > at));
        seen.extend(page);
        from = next;
    }
    assert_eq!(seen, all);
    assert_eq!(table.list(0, 0), (Vec::new(), Some(0)));
}

#[test]
fn an_empty_table_knows_no_address() {
    assert_eq!(Table::new(0).lookup(0), None);
    assert_eq!(Table::new(300).lookup(0xffff_ffff_ffff), None);
}

#[test]
fn the_same_address_in_two_vlans_is_two() {
    let mut table = Table::new(0);
    let (one, two) = (0x1234 | 1 << 48, 0x1234 | 2 << 48);
    table.learn(one, 3);
    table.learn(two, 4);
    assert_eq!((table.lookup(one), table.lookup(two)), (Some(3), Some(4)));
    let mut listed = table.list(0, 10).0;
    listed.sort_by_key(|address| address.vlan);
    let told: Vec<_> = listed.iter().map(|a| (a.mac, a.vlan, a.port)).collect();
    let mac = [0x34, 0x12, 0, 0, 0, 0];
    assert_eq!(told, [(mac, 1, 3), (mac, 2, 4)]);
}

/// Whatever addresses some ports make up, and however many, those of ports with fewer stay known.
/// (A port that has none yet may take the place of one with four, which is its right: so those who
/// flood have more from the beginning.)
#[test]
fn nobody_evicts_those_who_have_few() {
    let mut table = Table::new(300);
    let flood = |table: &mut Table, numbers: std::ops::Range<u64>| {
        for n in numbers {
            table.learn(n << 16 | 0x0200, 200 + (n % 50) as u8);
        }
    };
    flood(&mut table, 0..1000);
    let few = |port: u8| (0..4u64).map(move |n| (n << 40 | u64::from(port) << 8 | 2, port));
    for (mac, port) in (0..100).flat_map(few) {
        table.learn(mac, port);
    }
    // More of them than a set has places may have met in one.
    let known = |table: &Table| -> Vec<_> {
        (0..100).flat_map(few).filter(|(mac, port)| table.lookup(*mac) == Some(*port)).collect()
    };
    let before = known(&table);
    assert!(before.len() > 300, "{}", before.len());
    flood(&mut table, 1000..1_000_000);
    assert_eq!(known(&table), before);
    // A port that comes when the table is full finds a place.
    assert_ne!(table.learn(0x77_0002, 100), Learned::No);
    assert_eq!(table.lookup(0x77_0002), Some(100));
}
