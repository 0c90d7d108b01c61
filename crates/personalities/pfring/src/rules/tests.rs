//! What rules make of packets.

use std::time::{Duration, Instant};

use super::*;
use crate::parse::capture;

/// UDP from 10.0.0.1:1000 to 10.0.0.2:53, or back.
fn frame(back: bool) -> Vec<u8> {
    let (from, to, ports) = match back {
        false => (1, 2, [3, 232, 0, 53]),
        true => (2, 1, [0, 53, 3, 232]),
    };
    let mut frame = vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0];
    frame.extend([0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend(ports);
    frame.extend([0, 12, 0, 0]);
    frame.extend(b"HTTP");
    frame
}

fn judge(rules: &mut Rules, frame: &[u8]) -> Verdict {
    let mut info = Default::default();
    capture(frame, &mut info);
    rules.judge(&Looked { info: &info, if_index: 7, bytes: frame, now: Instant::now() })
}

fn address(last: u8) -> crate::abi::ip_addr {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&u32::from_be_bytes([10, 0, 0, last]).to_ne_bytes());
    address
}

fn key() -> Key {
    Key::new(0, 4, 17, [address(2), address(1)], [53, 1000])
}

fn rule(id: u16, change: impl FnOnce(&mut filtering_rule)) -> filtering_rule {
    let mut rule = filtering_rule { rule_id: id, ..Default::default() };
    change(&mut rule);
    rule
}

#[test]
fn rules_of_the_table_match_both_directions() {
    for (action, takes, decided) in [(0, true, 1), (1, false, 1), (2, false, 0), (3, false, 1)] {
        let mut rules = Rules::default();
        assert!(rules.table.add(key(), Action::of(action).unwrap(), None));
        assert!(!rules.table.add(key(), Action::Drop, None), "there is one");
        for back in [false, true] {
            assert_eq!(judge(&mut rules, &frame(back)).takes, takes, "{action}");
        }
        let stats = rules.table.stats(&key()).unwrap();
        assert_eq!({ stats.matched }, 2);
        assert_eq!({ stats.filtered } + { stats.match_forward }, 2 * decided);
        assert!(rules.table.remove(&key()) && !rules.table.remove(&key()));
        assert!(judge(&mut rules, &frame(false)).takes);
    }
}

#[test]
fn what_the_table_leaves_open_the_list_decides() {
    let mut rules = Rules::default();
    rules.table.add(key(), Action::Continue, None);
    assert!(!judge(&mut rules, &frame(false)).takes, "dropped so far");
    assert!(rules.list.add(rule(5, |_| ()), Action::Forward, None));
    let verdict = judge(&mut rules, &frame(false));
    assert_eq!((verdict.takes, verdict.rule_id), (true, Some(5)));
    assert!(rules.list.add(rule(4, |rule| rule.core.proto = 17), Action::Drop, None));
    assert!(!judge(&mut rules, &frame(false)).takes, "the lower number is first");
}

#[test]
fn each_field_of_a_rule_is_held_against_the_packet() {
    type Change = fn(&mut filtering_rule);
    let changes: [(Change, bool, bool); 14] = [
        (|_| (), true, true),
        (|rule| rule.core.proto = 6, false, false),
        (|rule| rule.core.eth_type = 0x800, true, true),
        (|rule| rule.core.vlan_id = 9, false, false),
        (|rule| rule.core.if_index = 7, true, true),
        (|rule| rule.core.if_index = 8, false, false),
        (|rule| (rule.core.dport_low, rule.core.dport_high) = (50, 60), true, false),
        (
            |rule| {
                (rule.core.dport_low, rule.core.dport_high) = (50, 60);
                rule.bidirectional = 1;
            },
            true,
            true,
        ),
        (|rule| (rule.core.shost, rule.core.shost_mask) = (address(1), [0xff; 16]), true, false),
        (|rule| rule.core.smac = [7, 8, 9, 10, 11, 12], true, true),
        (|rule| rule.core.dmac = [7, 8, 9, 10, 11, 12], false, false),
        (|rule| rule.payload_pattern[..9].copy_from_slice(b"ftp|ttP\0x"), true, true),
        (|rule| rule.payload_pattern[..4].copy_from_slice(b"ftp\0"), false, false),
        (|rule| (rule.optional_fields, rule.tunnel.id) = (1, 7), false, false),
    ];
    for (at, (change, there, back)) in changes.into_iter().enumerate() {
        let mut rules = Rules { accepts: false, ..Rules::default() };
        rules.list.add(rule(1, change), Action::Forward, None);
        assert_eq!(judge(&mut rules, &frame(false)).takes, there, "{at}");
        assert_eq!(judge(&mut rules, &frame(true)).takes, back, "{at}, back");
    }
}

#[test]
fn a_rule_can_add_one_to_the_table() {
    let mut rules = Rules { accepts: false, ..Rules::default() };
    rules.list.add(rule(AUTO_RULE_ID, |_| ()), Action::ForwardAndAdd, None);
    rules.list.add(rule(AUTO_RULE_ID, |_| ()), Action::Drop, None);
    assert!(judge(&mut rules, &frame(false)).takes);
    assert!(rules.list.remove(0) && rules.list.remove(1) && !rules.list.remove(2));
    assert!(judge(&mut rules, &frame(true)).takes, "by the table");
    rules.table.purge(Duration::from_secs(60));
    assert_eq!(rules.table.len(), 1);
}

#[test]
fn some_of_what_is_dropped_may_pass() {
    let mut rules = Rules { sampling: 10, ..Rules::default() };
    rules.table.add(key(), Action::Drop, None);
    let taken = (0..1000).filter(|_| judge(&mut rules, &frame(false)).takes).count();
    assert_eq!(taken, 100);
}

#[test]
fn packets_go_out_by_rules() {
    for (action, takes) in [(5, false), (6, true), (7, false), (8, true)] {
        let mut rules = Rules::default();
        rules.list.add(rule(1, |_| ()), Action::of(action).unwrap(), None);
        let verdict = judge(&mut rules, &frame(false));
        assert_eq!((verdict.takes, verdict.transmissions.len()), (takes, 1));
        assert_eq!(verdict.transmissions[0].bounce, action >= 7);
    }
}
