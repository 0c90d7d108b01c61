//! Packets in and out of rings, whole.

use std::time::Duration;

use ringway::{Interest, OpenOptions, Port};
use ringway_doc as doc;

/// Two ends of a pipe whose rings have `slots` slots.
fn pipe(name: &str, slots: u32) -> [Port; 2] {
    ['{', '}'].map(|end| doc::open(&format!("{name}{end}1@conf:slots={slots}")).unwrap())
}

fn numbered(number: u8, length: usize) -> Vec<u8> {
    (0..length).map(|i| number.wrapping_add(i as u8)).collect()
}

/// What is longer than a buffer takes several slots, and is one packet at the other end.
#[test]
fn long_frames_take_several_slots() {
    let [mut a, mut b] = pipe("long", 16);
    let lengths = [60, 2048, 2049, 4096, 4097, 9000, 14];
    for (number, length) in (0..).zip(lengths) {
        assert!(a.tx(0).push(&numbered(number, length)), "{length} bytes");
    }
    assert_eq!(a.tx(0).pending(), 1 + 1 + 2 + 2 + 3 + 5 + 1);
    a.tx(0).sync();
    b.rx(0).sync();
    let mut packet = Vec::new();
    for (number, length) in (0..).zip(lengths) {
        assert!(b.rx(0).pop(&mut packet), "{length} bytes");
        assert_eq!(packet, numbered(number, length));
    }
    assert!(!b.rx(0).pop(&mut packet));
}

/// A frame has room for all of it, or nothing is sent.
#[test]
fn no_frame_is_sent_in_part() {
    let [mut a, mut b] = pipe("part", 8);
    let mut tx = a.tx(0);
    assert!(!tx.push(&[1; 8 * 2048]), "it has more slots than the ring");
    assert!((0..5).all(|_| tx.push(&[1; 60])));
    assert!(!tx.push(&[2; 3 * 2048]));
    assert!(tx.push(&[3; 2 * 2048]));
    tx.sync();
    b.rx(0).sync();
    let (mut packet, mut lengths) = (Vec::new(), Vec::new());
    while b.rx(0).pop(&mut packet) {
        lengths.push(packet.len());
    }
    assert_eq!(lengths, [60, 60, 60, 60, 60, 4096]);
}

/// The end of a packet may come later than its beginning.
#[test]
fn a_packet_is_taken_with_its_end() {
    let [mut a, mut b] = pipe("end", 8);
    let mut packet = vec![9];
    for (more, end) in [(true, false), (true, false), (false, true)] {
        assert!(a.tx(0).batch(1).all(|mut slot| slot.write_part(&[5; 100], more)));
        a.tx(0).sync();
        b.rx(0).sync();
        assert_eq!(b.rx(0).pop(&mut packet), end);
    }
    assert_eq!(packet, [5; 300]);
}

/// A monitor has each slot at once: what there is of a packet ends one wait, and the next one ends with the rest.
#[test]
fn the_rest_of_a_packet_is_waited_for() {
    let mut sender = doc::open("rest{1").unwrap();
    let mut monitor = doc::open("rest{1/t").unwrap();
    let mut packet = Vec::new();
    for (more, end) in [(true, false), (true, false), (false, true)] {
        assert!(sender.tx(0).batch(1).all(|mut slot| slot.write_part(&[5; 100], more)));
        sender.tx(0).sync();
        assert!(monitor.wait_rx(None).unwrap());
        assert_eq!(monitor.rx(0).pop(&mut packet), end);
        assert!(!monitor.poll(Interest::Rx), "there is no more");
    }
    assert_eq!(packet, [5; 300]);
}

/// A port without rings would wait for ever, and say that its daemon has ended.
#[test]
fn a_port_has_rings() {
    for (options, name, part) in [
        (doc::options().rx_only(), "none{1/T", "leave /T out"),
        (doc::options().tx_only(), "none{1/R", "leave /R out"),
        (doc::options().rx_only().tx_only(), "none{1", "leave one out"),
        (doc::options(), "none{1/RT", "leave one of them out"),
        (doc::options().tx_only(), "none{1/r", "a monitor cannot send"),
    ] {
        let said = options.open(name).expect_err(name).to_string();
        assert!(said.starts_with(name) && said.contains(part), "{said}");
    }
}

/// A wait fails where the port has no ring of that direction.
#[test]
fn a_wait_needs_a_ring() {
    let of = |options: OpenOptions| options.open("halves{1").unwrap();
    for (mut port, without, with, remedy) in [
        (of(doc::options().tx_only()), Interest::Rx, Interest::Tx, "without tx_only() and /T"),
        (of(doc::options().rx_only()), Interest::Tx, Interest::Rx, "without rx_only() and /R"),
    ] {
        for timeout in [None, Some(Duration::ZERO)] {
            let said = port.wait(without, timeout).expect_err(remedy).to_string();
            assert!(said.starts_with("halves{1: ") && said.ends_with(remedy), "{said}");
        }
        for interest in [with, Interest::Both] {
            port.wait(interest, Some(Duration::ZERO)).unwrap();
        }
    }
}

/// Packets for which the other port has no room stay where they are.
#[test]
fn forwarding_leaves_what_finds_no_room() {
    for copy in [false, true] {
        let [mut source, mut from] = pipe("source", 32);
        let [mut to, mut sink] = pipe("sink", 8);
        assert!((0..20).all(|number| source.tx(0).push(&[number; 60])));
        source.tx(0).sync();
        from.rx(0).sync();
        let mut seen = Vec::new();
        let mut packet = Vec::new();
        while seen.len() < 20 {
            from.rx(0).forward(&mut to.tx(0), usize::MAX, copy);
            from.rx(0).sync();
            to.tx(0).sync();
            sink.rx(0).sync();
            while sink.rx(0).pop(&mut packet) {
                seen.push(packet[0]);
            }
            sink.rx(0).sync();
            to.tx(0).sync();
            assert!(!seen.is_empty());
        }
        assert_eq!(seen, (0..20).collect::<Vec<_>>(), "copy: {copy}");
    }
}

/// A packet that has more slots than all room of the other port is dropped whole, and a packet that has more than are free
/// stays whole; those behind them are not mixed up with them.
#[test]
fn forwarding_cuts_no_packet() {
    for copy in [false, true] {
        for by_room in [false, true] {
            let [mut source, mut from] = pipe("long-source", 64);
            let [mut to, mut sink] = pipe("long-sink", 8);
            let lengths = [3u8, 8, 5, 7, 20, 1];
            for &length in &lengths {
                for (n, mut slot) in (1..).zip(source.tx(0).batch(length.into())) {
                    slot.write_part(&[length; 60], n < length);
                }
            }
            source.tx(0).sync();
            from.rx(0).sync();
            let (mut seen, mut misfits) = (Vec::new(), 0);
            while from.rx(0).available() > 0 {
                let before = from.rx(0).available();
                let room = if by_room { to.tx(0).space() } else { usize::MAX };
                misfits += from.rx(0).forward(&mut to.tx(0), room, copy).misfits;
                from.rx(0).sync();
                to.tx(0).sync();
                sink.rx(0).sync();
                let mut packet = Vec::new();
                while sink.rx(0).pop(&mut packet) {
                    assert_eq!(packet, vec![packet[0]; 60 * usize::from(packet[0])]);
                    seen.push(packet[0]);
                }
                sink.rx(0).sync();
                to.tx(0).sync();
                assert_eq!(to.tx(0).pending(), 0, "a packet without its end");
                assert!(from.rx(0).available() < before);
            }
            assert_eq!((seen, misfits), (vec![3, 5, 7, 1], 2), "copy: {copy}, by room: {by_room}");
        }
    }
}

/// A packet that finds too few free slots is waited for: those that are free end no wait.
#[test]
fn too_little_room_ends_no_wait() {
    let [mut source, mut from] = pipe("short-source", 64);
    let [mut to, mut sink] = pipe("short-sink", 8);
    assert!((0..5).all(|_| to.tx(0).push(&[1; 60])));
    to.tx(0).sync();
    assert!(source.tx(0).push(&[2; 5000]));
    source.tx(0).sync();
    from.rx(0).sync();
    assert_eq!(from.rx(0).forward(&mut to.tx(0), usize::MAX, false).packets, 0);
    assert_eq!(from.rx(0).available(), 3, "it stays whole");
    assert!(!to.wait(Interest::Tx, Some(Duration::ZERO)).unwrap(), "two slots are free");
    sink.rx(0).sync();
    assert_eq!(sink.rx(0).batch(1).count(), 1);
    sink.rx(0).sync();
    assert!(to.wait(Interest::Tx, Some(Duration::ZERO)).unwrap());
    assert_eq!(from.rx(0).forward(&mut to.tx(0), usize::MAX, false).packets, 1);
}
