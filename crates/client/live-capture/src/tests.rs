//! A port that is read as slow programs read.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ringway_abi::Dir;
use ringway_doc::fairness::BusyPipe;
use ringway_filter::Insn;

use rustix::event::{PollFlags, Timespec};

use crate::{End, Live, Reading, Settings, Signals, abi::pcap_pkthdr, poll};

/// A handle of a port.
fn opened(name: &str) -> Live {
    let port = ringway_doc::open(name).unwrap();
    Live::new(port, &Settings::default(), None).ok().unwrap()
}

/// Whatever a program asks for at once, and whether it keeps what it has read last, it gets its
/// share of each ring.
#[test]
fn a_slow_reader_gets_its_share_of_every_ring() {
    for (n, (most, keeps)) in
        [(Some(1), true), (Some(1), false), (Some(7), false), (Some(300), false), (None, false)]
            .into_iter()
            .enumerate()
    {
        let (mut pipe, live) = BusyPipe::new(&format!("fair{n}"), 3, opened);
        let signals = Signals::default();
        let reading = Reading { signals: &signals, most, nonblocking: true, keeps };
        while !pipe.is_over() {
            let read = live.read(reading, |header, _, _| pipe.count(header.len as usize));
            assert!(read.is_ok_and(|packets| packets > 0));
            pipe.fill();
        }
        pipe.assert_fair(&format!("{most:?}"));
    }
}

/// So has a program that reads a monitor, whose rings get copies of as many rings, which another
/// program empties.
#[test]
fn a_slow_reader_of_a_monitor_gets_its_share_of_every_ring() {
    for (n, most) in [Some(1), Some(7), Some(300), None].into_iter().enumerate() {
        let name = format!("fairm{n}");
        let (mut pipe, mut watched) =
            BusyPipe::new(&name, 3, |name| ringway_doc::open(name).unwrap());
        let live = opened(&format!("{name}}}1/r"));
        let signals = Signals::default();
        let reading = Reading { signals: &signals, most, nonblocking: true, keeps: false };
        while !pipe.is_over() {
            for ring in 0..3 {
                let mut rx = watched.rx(ring);
                rx.sync();
                rx.batch(usize::MAX).for_each(drop);
                rx.sync();
            }
            let read = live.read(reading, |header, _, _| pipe.count(header.len as usize));
            // Nothing, where the last read took the rest, and nothing had come since.
            assert!(read.is_ok());
            pipe.fill();
        }
        pipe.assert_fair(&format!("{most:?}"));
    }
}

/// What is sent by a port that has gone is refused, though there is room for it.
#[test]
fn a_port_that_has_gone_takes_nothing() {
    let live = opened("netmap:gone{1");
    let send = || live.inject(&[0xff; 60], true);
    assert!((0..10).all(|_| send().is_ok()), "they wait for the other end");
    live.port().binding().rings(Dir::Tx)[0].kring().stop();
    let refused = send().expect_err("nothing will take it");
    assert!(refused.text.contains("has gone"), "{}", refused.text);
}

/// A packet of several slots waits for room for all of them, no longer than others do, and keeps no other thread from
/// the port.
#[test]
fn a_packet_of_several_slots_waits_no_longer_than_others() {
    let live = opened("netmap:long{1");
    let packet = vec![0xff; live.port().max_frame() + 1];
    let signals = Signals::default();
    let reading = Reading { signals: &signals, most: None, nonblocking: true, keeps: false };
    let (done, has_ended) = mpsc::channel();
    thread::scope(|scope| {
        let send = || {
            let refused = (0..).find_map(|_| live.inject(&packet, false).err()).unwrap();
            done.send(refused.errno).unwrap();
        };
        scope.spawn(send);
        let errno = loop {
            assert!(live.read(reading, |_, _, _| {}).is_ok());
            match has_ended.recv_timeout(Duration::from_millis(100)) {
                Ok(errno) => break errno,
                Err(RecvTimeoutError::Timeout) => {}
                Err(gone) => panic!("{gone}"),
            }
        };
        assert_eq!(errno, libc::ETIMEDOUT);
    });
}

/// Others may look at a handle while it is read.
#[test]
fn a_look_at_a_handle_stops_no_read() {
    let mut sender = ringway_doc::open("netmap:looked{1").unwrap();
    let live = opened("netmap:looked}1");
    let signals = Signals::default();
    let reading = Reading { signals: &signals, most: Some(1), nonblocking: true, keeps: false };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    live.queued();
                }
            });
        }
        let _over = OnDrop(&is_over);
        for _ in 0..2000 {
            assert!(sender.tx(0).push(&[0xff; 60]));
            sender.tx(0).sync();
            let mut packets = 0;
            while packets == 0 {
                packets = live.read(reading, |_, _, _| {}).ok().expect("it is read");
            }
        }
    });
}

struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Packets that are read one by one are all there and in order, whether they are of a run or not. A filter counts from
/// the next packet on, and what another process has taken is gone.
#[test]
fn packets_of_a_run_are_those_of_single_reads() {
    let mut sender = ringway_doc::open("netmap:run{1").unwrap();
    let live = opened("netmap:run}1");
    let signals = Signals::default();
    let reading = Reading { signals: &signals, most: Some(1), nonblocking: true, keeps: true };
    let mut runs = 0;
    let mut next = || {
        let mut length = None;
        if live.read_run(&signals, |header, _, _| length = Some(header.len)) {
            runs += 1;
        } else {
            assert!(live.read(reading, |header, _, _| length = Some(header.len)).is_ok());
        }
        length
    };
    for length in 60..260u16 {
        assert!(sender.tx(0).push(&vec![0; length.into()]));
    }
    sender.tx(0).sync();
    for length in 60..100 {
        assert_eq!(next(), Some(length));
    }
    // Another process has read five of them.
    let skip = |slots| {
        let port = live.port();
        let ring = port.binding().rings(Dir::Rx)[0].kring().ring().clone();
        let head = ring.advance(ring.head(), slots);
        ring.set_head(head);
        ring.set_cur(head);
    };
    skip(5);
    for length in 105..120 {
        assert_eq!(next(), Some(length));
    }
    // Only even lengths from now on.
    let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
    let even = [insn(0x80, 0, 0, 0), insn(0x45, 1, 0, 1), insn(0x6, 0, 0, 64), insn(0x6, 0, 0, 0)];
    live.set_filter(&even, &signals).unwrap();
    for length in (120..260).step_by(2) {
        assert_eq!(next(), Some(length));
    }
    assert_eq!(next(), None);
    assert!(runs > 100, "{runs} of them were of a run");
    assert_eq!(live.stats().ps_recv, 40 + 15 + 70);
}

/// A break that comes while a packet is handed on ends the next read: the packet, which is kept, is not lost.
#[test]
fn a_break_does_not_lose_a_packet_that_is_kept() {
    let mut sender = ringway_doc::open("netmap:broken{1").unwrap();
    let live = opened("netmap:broken}1");
    let signals = Signals::default();
    let reading = Reading { signals: &signals, most: Some(1), nonblocking: true, keeps: true };
    for watched in [false, true] {
        if watched {
            live.watch();
        }
        for length in [60, 61] {
            assert!(sender.tx(0).push(&vec![0; length]));
        }
        sender.tx(0).sync();
        for length in [60, 61] {
            let mut got = None;
            let read = live.read(reading, |header, _, _| {
                got = Some(header.len);
                signals.break_loop();
            });
            assert!(read.is_ok_and(|packets| packets == 1) && got == Some(length));
            let next = live.read(reading, |_, _, _| panic!("it is broken"));
            assert!(matches!(next, Err(End::Broken)));
        }
    }
}

/// It says what is left for the next reads, also of what the program keeps, and whether runs have begun.
#[test]
fn a_watched_descriptor_is_readable_as_long_as_there_are_packets() {
    let mut sender = ringway_doc::open("netmap:watched{1").unwrap();
    let live = opened("netmap:watched}1");
    let fd = live.watch();
    let is_readable = || {
        let seen = poll(&[(fd, PollFlags::IN)], Some(Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        !seen[0].is_empty()
    };
    let signals = Signals::default();
    let reading = Reading { signals: &signals, most: Some(1), nonblocking: true, keeps: true };
    for count in [1, 2, 5, 300] {
        assert!(!is_readable());
        for number in 0..count {
            assert!(sender.tx(0).push(&vec![0; 60 + number as usize]));
        }
        sender.tx(0).sync();
        assert_eq!(live.queued(), count);
        for number in 0..count {
            assert!(is_readable(), "{number} of {count}");
            let mut got = None;
            let mut keep = |header: &pcap_pkthdr, _, _| got = Some(header.len);
            if !live.read_run(&signals, &mut keep) {
                assert!(live.read(reading, keep).is_ok_and(|packets| packets == 1));
            }
            assert_eq!(got, Some(60 + number));
            assert_eq!(live.queued(), count - number - 1);
        }
        assert!(!is_readable(), "after {count}");
    }
    assert_eq!(live.stats().ps_recv, 308);
}

/// A monitor shows each slot as it is sent. The beginning of a packet is nothing to read: the descriptor is not readable
/// by it, and a read sleeps until there is more. What comes before it is read.
#[test]
fn a_packet_without_its_last_slot_is_waited_for() {
    for (n, (most, keeps)) in [(Some(1), true), (None, false)].into_iter().enumerate() {
        let mut sender = ringway_doc::open(&format!("netmap:begun{n}{{1")).unwrap();
        let live = opened(&format!("netmap:begun{n}{{1/t"));
        let fd = live.watch();
        let mut send = |more| {
            for (mut slot, more) in sender.tx(0).batch(1).zip([more]) {
                assert!(slot.write_part(&[0; 60], more));
            }
            sender.tx(0).sync();
        };
        let signals = Signals::default();
        let reading = Reading { signals: &signals, most, nonblocking: true, keeps };
        let read = || {
            let mut lengths = Vec::new();
            assert!(live.read(reading, |header, _, _| lengths.push(header.len)).is_ok());
            lengths
        };
        for round in 0..3 {
            for more in [false, true, true] {
                send(more);
            }
            assert_eq!((read(), read()), (vec![60], vec![]), "{n} {round}");
            let at_once = Some(Timespec { tv_sec: 0, tv_nsec: 0 });
            let seen = poll(&[(fd, PollFlags::IN)], at_once).unwrap();
            assert!(seen[0].is_empty(), "readable by half a packet: {n} {round}");
            assert!(!live.port().binding().rings(Dir::Rx)[0].kring().ready(), "{n} {round}");
            send(false);
            let seen = poll(&[(fd, PollFlags::IN)], None).unwrap();
            assert!(!seen[0].is_empty());
            assert_eq!((read(), read()), (vec![180], vec![]), "{n} {round}");
        }
    }
}

fn since_1970() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

/// Each frame that a monitor shows came when it says, however late the monitor is read: after it
/// was sent, and before its receiver had it.
#[test]
fn frames_of_a_monitor_have_the_times_at_which_they_came() {
    const FRAMES: usize = 200;
    for [watched, other] in [["mtime{1", "mtime}1"], ["valemt:a", "valemt:b"]] {
        let mut ports = [watched, other].map(|name| ringway_doc::open(name).unwrap());
        let monitor = ringway_doc::open(&format!("{watched}/rt")).unwrap();
        let settings = Settings { nanoseconds: true, ..Settings::default() };
        let live = Live::new(monitor, &settings, None).ok().unwrap();
        let mut bounds = Vec::new();
        for n in 0..FRAMES {
            let before = since_1970();
            let mut tx = ports[n % 2].tx(0);
            assert!(tx.push(&[0xff; 60]));
            tx.sync();
            let receiver = &mut ports[1 - n % 2];
            assert!(receiver.wait_rx(Some(Duration::from_secs(60))).unwrap());
            assert_eq!(receiver.rx(0).batch(2).count(), 1);
            bounds.push(before..=since_1970());
        }
        let mut times = Vec::new();
        let signals = Signals::default();
        let reading = Reading { signals: &signals, most: None, nonblocking: false, keeps: false };
        while times.len() < FRAMES {
            let read = live.read(reading, |header, _, _| {
                times.push(header.seconds as u128 * 1_000_000_000 + header.fraction as u128);
            });
            assert!(read.is_ok());
        }
        for (n, (time, bounds)) in times.iter().zip(bounds).enumerate() {
            assert!(bounds.contains(time), "{watched}, frame {n}: {time} is not in {bounds:?}");
        }
    }
}

/// A port that was to follow with the next read does not come after the port that has been put in place since; and why
/// there was none is forgotten.
#[test]
fn the_port_that_is_put_in_place_is_read() {
    let mut sender = ringway_doc::open("netmap:follows{1").unwrap();
    let live = opened("netmap:follows}2");
    let signals = Signals::default();
    live.replace_later(ringway_doc::open("netmap:follows}3").unwrap(), &signals);
    live.fail_later("it has ended".into(), &signals);
    assert!(live.replace(ringway_doc::open("netmap:follows}1").unwrap()).is_some());
    let reading = Reading { signals: &signals, most: None, nonblocking: true, keeps: false };
    for _ in 0..2 {
        assert!(live.read(reading, |_, _, _| {}).is_ok_and(|packets| packets == 0));
    }
    assert!(sender.tx(0).push(&[0xff; 60]));
    sender.tx(0).sync();
    assert!(live.read(reading, |_, _, _| {}).is_ok_and(|packets| packets == 1));
}
