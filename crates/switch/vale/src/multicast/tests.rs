use proptest::{collection::vec, prelude::*};
use ringway_vnet::checksum::{finish, sum};

use super::{
    message::{
        Change, Kind, Message, PREFIX, Query, Report, ethernet_of, icmpv6_checksum, is_for_all,
        kind, parse,
    },
    query::Asker,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ASKER: Asker = Asker([2, 1, 2, 3, 4, 5]);

fn v4(last: [u8; 4]) -> IpAddr {
    IpAddr::from(last)
}

/// The frame with a tag.
fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0x60, 10], &frame[12..]].concat()
}

/// What a switch asks is what it believes of others, with a tag or without.
#[test]
fn own_queries_are_such_as_are_believed() {
    let expected = Query { response: 10_000, present: 255_000 };
    for is_v6 in [false, true] {
        let frame = ASKER.general(is_v6);
        for frame in [frame.clone(), tagged(&frame)] {
            assert_eq!(parse(&frame), Some(Message::Query(expected)), "{frame:02x?}");
        }
        // What is summed, and the option for routers, but not its padding.
        let end = if is_v6 { frame.len() } else { 14 + 36 };
        let header = if is_v6 { 22 } else { 14 };
        for at in (header..end).filter(|at| !(is_v6 && [60, 61].contains(at))) {
            let mut wrong = frame.clone();
            wrong[at] ^= 1;
            assert_eq!(parse(&wrong), None, "{at}");
        }
        for len in 0..end {
            assert_eq!(parse(&frame[..len]), None, "{len}");
        }
    }
    for group in [v4([239, 1, 2, 3]), "ff05::1:3".parse().unwrap()] {
        assert_eq!(parse(&ASKER.specific(group)), None, "for one group it tells nothing new");
    }
}

/// The length of a query says its version, and with it what its code means (RFC 3376, 7.1).
#[test]
fn queries_of_all_versions_are_understood() {
    let igmp = |message: &[u8]| {
        let frame = ASKER.general(false);
        let mut bytes = frame[..38].to_vec();
        bytes[17] = 24 + message.len() as u8;
        bytes.extend(message);
        for (from, at) in [(14, 24), (38, 40)] {
            bytes[at..at + 2].fill(0);
            let end = if from == 14 { 38 } else { bytes.len() };
            let checksum = finish(sum(&bytes[from..end]));
            bytes[at..at + 2].copy_from_slice(&checksum);
        }
        match parse(&bytes) {
            Some(Message::Query(Query { response, present })) => Some((response, present)),
            None => None,
            other => panic!("{other:?}"),
        }
    };
    let cases: [(&[u8], _); 14] = [
        (&[0x11, 0, 0, 0, 0, 0, 0, 0], Some((10_000, 255_000))),
        (&[0x11, 100, 0, 0, 0, 0, 0, 0], Some((10_000, 255_000))),
        (&[0x11, 255, 0, 0, 0, 0, 0, 0], Some((25_500, 255_000))),
        (&[0x11, 10, 0, 0, 0, 0, 0, 0, 3, 20, 0, 0], Some((1000, 60_500))),
        (&[0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Some((0, 250_000))),
        // Numbers of eight bits with an exponent: 16 << 3 tenths, 31 << 3 seconds.
        (&[0x11, 0x80, 0, 0, 0, 0, 0, 0, 1, 0x8f, 0, 0], Some((12_800, 254_400))),
        // However long it says that it is there.
        (&[0x11, 0x80, 0, 0, 0, 0, 0, 0, 2, 0x8f, 0, 0], Some((12_800, 255_000))),
        (&[0x11, 100, 0, 0, 0, 0, 0, 0, 7, 0xff, 0, 0], Some((10_000, 255_000))),
        // Of no version, and for some sources.
        (&[0x11, 100, 0, 0, 0, 0, 0, 0, 2], None),
        (&[0x11, 100, 0, 0, 0, 0, 0, 0, 2, 125, 0], None),
        (&[0x11, 100, 0, 0, 0, 0, 0, 0, 2, 125, 0, 1, 10, 0, 0, 1], None),
        // For longer than a switch waits.
        (&[0x11, 0xff, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0], None),
        (&[0x11, 100, 0, 0, 239, 1, 2, 3], None),
        (&[0x13, 100, 0, 0, 0, 0, 0, 0], None),
    ];
    for (message, expected) in cases {
        assert_eq!(igmp(message), expected, "{message:02x?}");
    }
}

/// The frame with bytes put in place of others, and right sums.
fn with(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    with_right_sums(&mut frame);
    frame
}

/// Stacks drop what comes from where no host can be: a switch that believed it would wait for answers.
#[test]
fn messages_come_from_hosts() {
    let frame = ASKER.general(false);
    for (from, is_believed) in [
        ([0, 0, 0, 0], true),
        ([10, 0, 0, 1], true),
        ([223, 255, 255, 255], true),
        ([0, 0, 0, 1], false),
        ([127, 0, 0, 1], false),
        ([224, 0, 0, 1], false),
        ([239, 1, 2, 3], false),
        ([240, 0, 0, 1], false),
        ([255; 4], false),
    ] {
        assert_eq!(parse(&with(&frame, 26, &from)).is_some(), is_believed, "{from:?}");
    }
    let frame = ASKER.general(true);
    // A report, too, but not without an address.
    let report = with(&frame, 62, &[131]);
    let none = [0; 16];
    for (from, asks, says) in [
        ("fe80::1", true, true),
        ("febf::1", true, true),
        ("::1", false, false),
        ("2001:db8::1", false, false),
        ("ff02::1", false, false),
    ] {
        let from: Ipv6Addr = from.parse().unwrap();
        for (frame, is_believed) in [(&frame, asks), (&report, says)] {
            let frame = with(frame, 22, &from.octets());
            assert_eq!(parse(&frame).is_some(), is_believed, "{from}");
        }
    }
    assert_eq!(parse(&with(&frame, 22, &none)), None);
    assert!(parse(&with(&report, 22, &none)).is_some());
}

/// By another address of Ethernet it is for other hosts.
#[test]
fn messages_have_their_groups_addresses() {
    for is_v6 in [false, true] {
        let frame = ASKER.general(is_v6);
        for at in 0..6 {
            assert_eq!(parse(&with(&frame, at, &[frame[at] ^ 4])), None, "{at}");
        }
    }
    for group in [v4([239, 0x81, 2, 3]), "ff05::102:304".parse().unwrap()] {
        assert_eq!(&ASKER.specific(group)[..6], ethernet_of(group), "{group}");
    }
}

/// Hosts drop packets with options that they do not know, or that make no sense.
#[test]
fn messages_have_no_other_options() {
    let frame = ASKER.general(true);
    for (options, is_believed) in [
        ([5, 2, 0, 0, 1, 0], true),
        ([1, 0, 5, 2, 0, 0], true),
        ([0, 0, 5, 2, 0, 0], true),
        // Unknown, and to be dropped with or without a word.
        ([5, 2, 0, 0, 0x41, 0], false),
        ([5, 2, 0, 0, 0x81, 0], false),
        ([0x1e, 0, 5, 2, 0, 0], false),
        ([5, 2, 0, 1, 1, 0], false),
        ([5, 1, 0, 1, 1, 0], false),
        ([5, 2, 0, 0, 1, 1], false),
        ([5, 2, 0, 0, 5, 0], false),
        ([1, 4, 0, 0, 0, 0], false),
    ] {
        assert_eq!(parse(&with(&frame, 56, &options)).is_some(), is_believed, "{options:?}");
    }
    let frame = ASKER.general(false);
    for (options, is_believed) in [
        ([0x94, 4, 0, 0], true),
        ([1, 1, 1, 0], true),
        ([0, 7, 7, 7], true),
        ([0x94, 4, 0, 1], false),
        // A route that the sender has chosen, and what is cut off.
        ([0x83, 3, 4, 0], false),
        ([1, 1, 1, 0x94], false),
    ] {
        assert_eq!(parse(&with(&frame, 34, &options)).is_some(), is_believed, "{options:?}");
    }
}

#[test]
fn records_say_who_joins_and_who_leaves() {
    let record = |kind, sources: u8, words, last| {
        let mut bytes = vec![kind, words, 0, sources, 239, 0, 0, last];
        bytes.extend(vec![9; 4 * (usize::from(sources) + usize::from(words))]);
        bytes
    };
    let records = [
        record(1, 1, 0, 1),
        record(1, 0, 0, 2),
        record(2, 0, 3, 3),
        record(3, 0, 0, 4),
        record(3, 2, 1, 5),
        record(4, 2, 0, 6),
        record(5, 1, 0, 7),
        record(6, 1, 0, 8),
        record(9, 1, 0, 9),
    ]
    .concat();
    let said = |count, most, records: &[u8]| {
        let mut said = Vec::new();
        let report = Report::Many { is_v6: false, count, records };
        let all = report.each(most, |group, change| {
            let IpAddr::V4(group) = group else { panic!("{group}") };
            said.push((group.octets()[3], change));
        });
        (said, all)
    };
    use Change::{Joins, Leaves};
    let expected = [(1, Joins), (3, Joins), (4, Leaves), (5, Joins), (6, Joins), (7, Joins)];
    assert_eq!(said(9, 100, &records), (expected.to_vec(), true));
    assert_eq!(said(u16::MAX, usize::MAX, &records), (expected.to_vec(), true));
    assert_eq!(said(3, 3, &records), (expected[..2].to_vec(), true));
    assert_eq!(said(9, 3, &records), (expected[..2].to_vec(), false));
    // A record that is cut off tells nothing.
    assert_eq!(said(9, 100, &records[..11]), (Vec::new(), true));
}

#[test]
fn some_groups_are_for_all() {
    for (group, expected) in [
        ("224.0.0.1", true),
        ("224.0.0.251", true),
        ("224.0.1.0", false),
        ("239.255.255.250", false),
        ("ff02::1", true),
        ("ff01::5", true),
        ("ff12::1", false),
        ("ff02::2", false),
        ("ff02::1:ff00:1", false),
        ("ff05::1", false),
    ] {
        assert_eq!(is_for_all(group.parse().unwrap()), expected, "{group}");
    }
}

#[test]
fn data_is_told_from_what_may_be_a_message() {
    let data = |group, may_be_message| Kind::Data { group, may_be_message };
    let (igmp, mld) = (ASKER.general(false), ASKER.general(true));
    let all = (Ipv4Addr::new(224, 0, 0, 1), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
    assert_eq!(kind(&igmp[..PREFIX]), data(all.0.into(), true));
    assert_eq!(kind(&mld[..PREFIX]), data(all.1.into(), true));
    assert_eq!(kind(&tagged(&mld)[..PREFIX]), data(all.1.into(), true));
    let mut udp = igmp.clone();
    udp[23] = 17;
    assert_eq!(kind(&udp), data(all.0.into(), false));
    udp[30] = 10;
    assert_eq!(kind(&udp), Kind::ForAll, "it names no group");
    assert_eq!(kind(&tagged(&tagged(&igmp))), Kind::ForAll, "what is behind two tags is not known");
    for len in 0..34 {
        assert_eq!(kind(&igmp[..len]), Kind::ForAll, "{len}");
    }
}

/// Makes the sums of a frame right, where they have their places.
fn with_right_sums(frame: &mut [u8]) {
    let at = if frame.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 };
    let Some(&first) = frame.get(at) else { return };
    let word = |frame: &[u8], at: usize| {
        frame.get(at..at + 2).map_or(0, |it| usize::from(u16::from_be_bytes([it[0], it[1]])))
    };
    let put = |frame: &mut [u8], at: usize, checksum: [u8; 2]| {
        if let Some(place) = frame.get_mut(at..at + 2) {
            place.copy_from_slice(&checksum);
        }
    };
    if first >> 4 == 4 {
        let end = (at + word(frame, at + 2)).min(frame.len());
        let begin = (at + usize::from(first & 0xf) * 4).min(end);
        for (range, place) in [(at..begin, at + 10), (begin..end, begin + 2)] {
            put(frame, place, [0; 2]);
            let right = finish(sum(frame.get(range).unwrap_or_default()));
            put(frame, place, right);
        }
    } else {
        let begin = at + 40 + 8 * (1 + frame.get(at + 41).map_or(0, |it| usize::from(*it)));
        let end = (at + 40 + word(frame, at + 4)).min(frame.len());
        let address = |frame: &[u8], at: usize| {
            let bytes = frame.get(at..at + 16).and_then(|it| it.first_chunk::<16>());
            bytes.map_or(Ipv6Addr::UNSPECIFIED, |it| Ipv6Addr::from(*it))
        };
        let (from, to) = (address(frame, at + 8), address(frame, at + 24));
        put(frame, begin + 2, [0; 2]);
        let right = icmpv6_checksum(from, to, frame.get(begin..end).unwrap_or_default());
        put(frame, begin + 2, right);
    }
}

/// A frame that is nearly a message.
fn almost_a_message() -> impl Strategy<Value = Vec<u8>> {
    let base = prop_oneof![
        Just(ASKER.general(false)),
        Just(ASKER.general(true)),
        Just(tagged(&ASKER.general(false))),
        Just(tagged(&ASKER.general(true))),
    ];
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (base, changes, vec(any::<u8>(), 0..200), any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut frame, changes, more, cut, fix)| {
            frame.extend(more);
            for (at, byte) in changes {
                let at = at.index(frame.len());
                frame[at] = byte;
            }
            frame.truncate(cut.index(frame.len() + 1));
            if fix {
                with_right_sums(&mut frame);
            }
            frame
        },
    )
}

proptest! {
    /// All that a hostile port can send is looked at to an end, and no more groups come of it than it has bytes.
    #[test]
    fn any_frame_is_looked_at(frame in almost_a_message()) {
        kind(&frame[..frame.len().min(PREFIX)]);
        match parse(&frame) {
            Some(Message::Query(query)) => {
                prop_assert!(query.response <= 60_000 && query.present <= 255_000);
            }
            Some(Message::Report(report)) => {
                let mut groups = 0;
                report.each(usize::MAX, |_, _| groups += 1);
                prop_assert!(groups * 4 <= frame.len());
            }
            None => {}
        }
    }
}
