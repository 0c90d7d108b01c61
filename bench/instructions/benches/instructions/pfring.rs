//! Programs of PF_RING on a pipe: one that receives packet by packet, and the member of a cluster that distributes.

use std::time::Duration;

use ringway::Port;
use ringway_balance::{Balancer, Output, Share};
use ringway_doc::{open, options};
use ringway_live_capture::{Live, Settings};
use ringway_pfring::stepped::{Header, Ring, by_flow};

use crate::{cases::PACKETS, counted, pcap::frame};

/// Packets that are sent and counted at once.
const BATCH: u32 = 64;
/// Turns that are not counted: all slots were used then.
const WARM_UP: u32 = 32;
/// Members of the cluster.
const QUEUES: u32 = 4;

/// One packet a call, in place; the headers are parsed or not.
pub fn receive(parsed: bool) {
    let mut sender = open("netmap:r{1").unwrap();
    let settings = Settings { immediate: true, nanoseconds: true, ..Settings::default() };
    let live = Live::new(open("netmap:r}1").unwrap(), &settings, None).unwrap();
    let ring = Ring::new(live, parsed);
    let frame = frame();
    let mut header = Header::default();
    for turn in 0..WARM_UP + PACKETS / BATCH {
        send(&mut sender, |_| frame.clone());
        let mut read = || {
            (0..BATCH).for_each(|_| assert_eq!(ring.receive(&mut header), Some(64)));
        };
        if turn < WARM_UP { read() } else { counted(read) }
    }
}

/// From a pipe into the members' pipes, each flow into one of them.
pub fn cluster() {
    let mut sender = open("netmap:s{1").unwrap();
    let input = open("netmap:s}1").unwrap();
    let pipe = |end: char, queue| {
        options().region(input.mem_id()).open(&format!("netmap:m{end}{queue}")).unwrap()
    };
    let outputs: Vec<Output> = (0..QUEUES)
        .map(|queue| Output::new(pipe('{', queue), queue.to_string(), queue, &input))
        .collect();
    let mut members: Vec<Port> = (0..QUEUES).map(|queue| pipe('}', queue)).collect();
    assert!(outputs.iter().all(|output| !output.copies()));
    let share = Share::One(by_flow(QUEUES));
    let mut balancer = Balancer::new(input, Vec::new(), vec![outputs], share);
    for turn in 0..WARM_UP + PACKETS / BATCH {
        send(&mut sender, |number| {
            let mut frame = frame();
            // The destination's address: a flow for each.
            frame[33] = number as u8;
            frame
        });
        let mut distribute = || {
            assert_eq!(balancer.receive(Duration::ZERO), BATCH);
            balancer.hand_over()
        };
        let _ = if turn < WARM_UP { distribute() } else { counted(distribute) };
        for member in &mut members {
            let got = member.rx(0).sync();
            assert_eq!(got as u32, BATCH / QUEUES);
            assert_eq!(member.rx(0).batch(got).count(), got);
            member.rx(0).sync();
        }
    }
}

fn send(sender: &mut Port, frame: impl Fn(u32) -> Vec<u8>) {
    for number in 0..BATCH {
        assert!(sender.tx(0).push(&frame(number)));
    }
    sender.tx(0).sync();
}
