//! Names put together from parts are taken apart into the same parts; anything else is split
//! without loss, or refused.

use proptest::prelude::*;
use ringway_abi::*;
use ringway_portspec::{Body, header, option, register};

const FLAGS: [(char, u64); 6] = [
    ('x', NR_EXCLUSIVE),
    ('z', NR_ZCOPY_MON),
    ('t', NR_MONITOR_TX),
    ('r', NR_MONITOR_RX),
    ('R', NR_RX_RINGS_ONLY),
    ('T', NR_TX_RINGS_ONLY),
];

/// How it is written, and what requests carry.
fn name() -> impl Strategy<Value = (String, String)> {
    let base = prop_oneof![
        "[A-Za-z0-9_.]{1,15}".prop_map(|name| (format!("netmap:{name}"), name)),
        "vale[A-Za-z0-9_]{0,11}:[A-Za-z0-9_.]{0,15}".prop_map(|name| (name.clone(), name)),
    ];
    (base, prop::option::of("[{}][A-Za-z0-9_]{1,10}")).prop_map(|((spec, name), pipe)| {
        let pipe = pipe.unwrap_or_default();
        (spec + &pipe, name + &pipe)
    })
}

/// Text, mode, ring and flags.
fn mode() -> impl Strategy<Value = (String, u32, u16, u64)> {
    prop_oneof![
        Just((String::new(), NR_REG_ALL_NIC, 0, 0)),
        Just(("^".into(), NR_REG_SW, 0, 0)),
        Just(("*".into(), NR_REG_NIC_SW, 0, 0)),
        (0..4095u16).prop_map(|n| (format!("-{n}"), NR_REG_ONE_NIC, n, 0)),
        (0..4095u16).prop_map(|n| (format!("~{n}"), NR_REG_ONE_NIC, n, NR_RX_RINGS_ONLY)),
        (0..4095u16).prop_map(|n| (format!("^{n}"), NR_REG_ONE_SW, n, 0)),
    ]
}

/// `/FLAGS` and `@REGION`, in the order in which they were drawn, one region for all.
fn suffixes() -> impl Strategy<Value = (String, u64, u16)> {
    let suffix = prop_oneof![
        prop::collection::vec(0..FLAGS.len(), 1..5).prop_map(Some),
        Just(None), // the region
    ];
    (1u16.., prop::collection::vec(suffix, 0..4)).prop_map(|(region, suffixes)| {
        let (mut text, mut flags, mut mem_id) = (String::new(), 0, 0);
        let mut after_flags = false;
        for suffix in suffixes {
            match suffix {
                // Between two groups of flags goes the region.
                Some(_) if after_flags => {}
                Some(group) => {
                    text.push('/');
                    for flag in group {
                        text.push(FLAGS[flag].0);
                        flags |= FLAGS[flag].1;
                    }
                    after_flags = true;
                }
                None => {
                    text += &format!("@{region}");
                    mem_id = region;
                    after_flags = false;
                }
            }
        }
        (text, flags, mem_id)
    })
}

type Written = (String, Option<Vec<(String, String)>>);

fn options() -> impl Strategy<Value = Vec<Written>> {
    let keys = prop::collection::vec(("[a-z_-]{1,8}", "[^,@]{0,8}"), 1..4);
    prop::collection::vec(("[a-z][a-z-]{0,7}", prop::option::of(keys)), 0..4)
}

proptest! {
    #[test]
    fn parts(
        (spec, name) in name(), (text, mode, ring, implied) in mode(),
        (suffixes, flags, mem_id) in suffixes(), options in options(),
    ) {
        let mut list = String::new();
        for (option, keys) in &options {
            list += &format!("@{option}");
            for (n, (key, value)) in keys.iter().flatten().enumerate() {
                list += &format!("{}{key}={value}", if n == 0 { ':' } else { ',' });
            }
        }
        let all = format!("{spec}{text}{suffixes}{list}");
        let (read, rest) = header(all.as_bytes()).unwrap();
        prop_assert_eq!(read, name.as_bytes());
        let (how, mut rest) = register(rest, 0).unwrap();
        let flags = flags | implied;
        prop_assert_eq!((how.mode, how.ringid, how.flags, how.mem_id), (mode, ring, flags, mem_id));
        prop_assert_eq!(rest, list.as_bytes());
        for (name, keys) in &options {
            let (read, left) = option(rest).unwrap();
            prop_assert_eq!(read.name, name.as_bytes());
            let read: Vec<_> = match read.body {
                Body::Keys(keys) => keys.map(Result::unwrap).collect(),
                _ => vec![],
            };
            let written = keys.iter().flatten();
            prop_assert_eq!(read.len(), written.clone().count());
            for (read, (key, value)) in read.iter().zip(written) {
                prop_assert!(read.is(key.replace('-', "_").as_bytes()));
                prop_assert_eq!(read.value, Some(value.as_bytes()));
            }
            rest = left;
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn anything(spec in "(netmap:|vale[0a]?:|)[a-cA-Z0-9{}^*~/@:=,.+-]{0,24}") {
        let spec = spec.as_bytes();
        if let Ok((name, rest)) = header(spec) {
            prop_assert!(!name.is_empty() && name.len() < NETMAP_REQ_IFNAMSIZ);
            prop_assert!(spec.strip_prefix(b"netmap:").unwrap_or(spec) == [name, rest].concat());
            if let Ok((how, list)) = register(rest, 0) {
                prop_assert!(rest.ends_with(list));
                prop_assert!(how.ringid < NETMAP_RING_MASK);
                prop_assert!(list.is_empty() || list[0] == b'@');
            }
        }
    }
}
