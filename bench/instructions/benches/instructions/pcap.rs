//! A program of libpcap that counts packets behind a filter. One thread sends and reads; a switch's worker, which
//! is not counted, has one of its own.

use std::thread;

use ringway_abi::Dir;
use ringway_doc::open;
use ringway_filter::Insn;
use ringway_live_capture::{Live, Reading, Settings, Signals};

use crate::{cases::PACKETS, counted};

/// Packets that are sent and counted at once.
const BATCH: u32 = 64;
/// Turns that are not counted: all slots were used then.
const WARM_UP: u32 = 32;

/// `udp port 9`, as libpcap compiles it.
const FILTER: [(u16, u8, u8, u32); 20] = [
    (0x28, 0, 0, 12),
    (0x15, 0, 6, 0x86dd),
    (0x30, 0, 0, 20),
    (0x15, 0, 15, 17),
    (0x28, 0, 0, 54),
    (0x15, 12, 0, 9),
    (0x28, 0, 0, 56),
    (0x15, 10, 11, 9),
    (0x15, 0, 10, 0x800),
    (0x30, 0, 0, 23),
    (0x15, 0, 8, 17),
    (0x28, 0, 0, 20),
    (0x45, 6, 0, 0x1fff),
    (0xb1, 0, 0, 14),
    (0x48, 0, 0, 14),
    (0x15, 2, 0, 9),
    (0x48, 0, 0, 16),
    (0x15, 0, 1, 9),
    (0x6, 0, 0, 262144),
    (0x6, 0, 0, 0),
];

/// What is sent: UDP to port 9, of 64 bytes, to all.
pub fn frame() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x10, 0, 0, 9, 0, 30, 0, 0]);
    frame.resize(64, 0);
    frame
}

/// From one end of a pipe to the other.
pub fn pipe() {
    run("netmap:c{1", "netmap:c}1");
}

/// From one port of a switch to another.
pub fn switch() {
    run("valec:1", "valec:2");
}

fn run(from: &str, to: &str) {
    let mut sender = open(from).unwrap();
    let settings = Settings { timeout: 1, ..Settings::default() };
    let live = Live::new(open(to).unwrap(), &settings, None).unwrap();
    let signals = Signals::default();
    let filter = FILTER.map(|(code, jt, jf, k)| Insn { code, jt, jf, k });
    live.set_filter(&filter, &signals).unwrap();
    let frame = frame();
    let reading = Reading { signals: &signals, most: None, nonblocking: true, keeps: false };
    for turn in 0..WARM_UP + PACKETS / BATCH {
        for _ in 0..BATCH {
            assert!(sender.tx(0).push(&frame));
        }
        sender.tx(0).sync();
        if from.starts_with("vale") {
            while arrived(&live) < BATCH {
                thread::yield_now();
            }
        }
        let read = || {
            let mut packets = 0;
            let done = live.read(reading, |_, _, _| packets += 1);
            assert!(done.is_ok_and(|done| done == BATCH) && packets == BATCH);
        };
        if turn < WARM_UP { read() } else { counted(read) }
    }
}

/// Packets that the switch has put into the ring.
fn arrived(live: &Live) -> u32 {
    let port = live.port();
    let kring = port.binding().rings(Dir::Rx)[0].kring();
    kring.ring().distance(kring.last_tail(), kring.hwtail())
}
