//! Names put together from parts are taken apart into the same parts; anything else is split
//! without loss, or refused.

use proptest::prelude::*;
use ringway_portspec::{Body, Flags, NAME_MAX, RINGS_MAX, Rings, header, option, register};

/// A letter, and what it says.
type Letter = (char, fn(&mut Flags));

const LETTERS: [Letter; 6] = [
    ('x', |flags| flags.exclusive = true),
    ('z', |flags| flags.zero_copy_monitor = true),
    ('t', |flags| flags.monitor_tx = true),
    ('r', |flags| flags.monitor_rx = true),
    ('R', |flags| flags.rx_only = true),
    ('T', |flags| flags.tx_only = true),
];

/// How it is written, and what requests carry.
fn name() -> impl Strategy<Value = (String, String)> {
    let base = prop_oneof![
        "[A-Za-z0-9_.]{1,9}(-[0-9]{0,3}[A-Za-z_][A-Za-z0-9_]{0,3})?"
            .prop_map(|name| (format!("netmap:{name}"), name)),
        "vale[A-Za-z0-9_]{0,11}:[A-Za-z0-9_.]{0,9}(-[A-Za-z_][A-Za-z0-9_]{0,3})?"
            .prop_map(|name| (name.clone(), name)),
    ];
    (base, prop::option::of("[{}][A-Za-z0-9_]{1,10}")).prop_map(|((spec, name), pipe)| {
        let pipe = pipe.unwrap_or_default();
        (spec + &pipe, name + &pipe)
    })
}

/// Text, rings, and whether these are the rx rings only.
fn mode() -> impl Strategy<Value = (String, Rings, bool)> {
    prop_oneof![
        Just((String::new(), Rings::All, false)),
        Just(("^".into(), Rings::Host, false)),
        Just(("*".into(), Rings::AllAndHost, false)),
        (0..4095u16).prop_map(|n| (format!("-{n}"), Rings::One(n), false)),
        (0..4095u16).prop_map(|n| (format!("~{n}"), Rings::One(n), true)),
        (0..4095u16).prop_map(|n| (format!("^{n}"), Rings::OneHost(n), false)),
    ]
}

/// `/FLAGS` and `@REGION`, in the order in which they were drawn, one region for all.
fn suffixes() -> impl Strategy<Value = (String, Flags, u16)> {
    let suffix = prop_oneof![
        prop::collection::vec(0..LETTERS.len(), 1..5).prop_map(Some),
        Just(None), // the region
    ];
    (1u16.., prop::collection::vec(suffix, 0..4)).prop_map(|(region, suffixes)| {
        let (mut text, mut flags, mut mem_id) = (String::new(), Flags::default(), 0);
        let mut after_flags = false;
        for suffix in suffixes {
            match suffix {
                // Between two groups of flags goes the region.
                Some(_) if after_flags => {}
                Some(group) => {
                    text.push('/');
                    for flag in group {
                        let (letter, says) = LETTERS[flag];
                        text.push(letter);
                        says(&mut flags);
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
        (spec, name) in name(), (text, rings, rx_only) in mode(),
        (suffixes, mut flags, mem_id) in suffixes(), options in options(),
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
        flags.rx_only |= rx_only;
        prop_assert_eq!((how.rings, how.flags, how.mem_id), (rings, flags, mem_id));
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
            prop_assert!(!name.is_empty() && name.len() <= NAME_MAX);
            prop_assert!(spec.strip_prefix(b"netmap:").unwrap_or(spec) == [name, rest].concat());
            if let Ok((how, list)) = register(rest, 0) {
                prop_assert!(rest.ends_with(list));
                if let Rings::One(ring) | Rings::OneHost(ring) = how.rings {
                    prop_assert!(ring < RINGS_MAX);
                }
                prop_assert!(list.is_empty() || list[0] == b'@');
            }
        }
    }
}
