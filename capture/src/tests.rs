//! A port that is read as slow programs read.

use ringway_doc::fairness::BusyPipe;

use crate::{Live, Reading, Settings, Signals};

/// Whatever a program asks for at once, and whether it keeps what it has read last, it gets its
/// share of each ring.
#[test]
fn a_slow_reader_gets_its_share_of_every_ring() {
    for (n, (most, keeps)) in
        [(Some(1), true), (Some(1), false), (Some(7), false), (Some(300), false), (None, false)]
            .into_iter()
            .enumerate()
    {
        let (mut pipe, live) = BusyPipe::new(&format!("fair{n}"), 3, |name| {
            let port = ringway_doc::open(name).unwrap();
            Live::new(port, &Settings::default(), None).ok().unwrap()
        });
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
