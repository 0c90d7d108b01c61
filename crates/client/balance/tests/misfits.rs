//! What no buffer holds of the port that it is to go by, and what goes with a port that is opened again.

use std::time::Duration;

use ringway::Port;
use ringway_balance::{Balancer, Choice, Choose, Output, Share};
use ringway_doc::{open, options};
use ringway_region::Sizes;
use ringway_registry::{LocalRegistry, Settings};

struct First;

impl Choose for First {
    fn choose(&mut self, _bytes: &[u8], _now: Duration) -> Choice {
        Choice { output: Some(0), also: None, spills: false, hash: 0, is_ip: false }
    }
}

/// A consumer sends what its own buffers hold, and the input's do not: it is lost whole, and counted
/// where the consumer looks.
#[test]
fn what_does_not_fit_is_counted() {
    let global_region = Sizes { buf_size: 1024, ..Sizes::GLOBAL };
    let registry = LocalRegistry::new(Settings { global_region, ..Settings::default() });
    let small = |name: &str| Port::options().over(registry.clone()).open(name).unwrap();
    let (mut far, input) = (small("far{0@1"), small("far}0@1"));
    let (near, mut consumer) = (open("near{0").unwrap(), open("near}0").unwrap());
    let output = Output::new(near, "near".into(), 0, &input);
    let longest = input.max_frame();
    let mut balancer = Balancer::new(input, Vec::new(), vec![vec![output]], Share::One(First));

    let lengths = [60, longest + 1, longest, 1514, 61];
    for length in lengths {
        assert!(consumer.tx(0).push(&vec![0; length]));
    }
    consumer.tx(0).sync();
    assert_eq!(balancer.send(), lengths.len(), "all slots are taken");
    far.rx(0).sync();
    let came: Vec<usize> = far.rx(0).batch(usize::MAX).map(|frame| frame.len()).collect();
    assert_eq!(came, [60, longest, 61]);
    let counters = balancer.outputs().next().unwrap().counters;
    assert_eq!((counters.forwarded, counters.dropped), (0, 2));
}

/// Packets that an output's ring had, and its consumer had not been handed, are lost with the ring: each counts once.
#[test]
fn what_goes_with_a_ring_is_dropped_and_not_forwarded() {
    let (mut far, input) = (open("lost{1").unwrap(), open("lost}1").unwrap());
    let near = options().region(input.mem_id()).open("lostout{1").unwrap();
    let output = Output::new(near, "near".into(), 0, &input);
    let mut balancer = Balancer::new(input, Vec::new(), vec![vec![output]], Share::One(First));
    let send = |far: &mut Port, lengths: [usize; 2]| {
        lengths.iter().for_each(|length| assert!(far.tx(0).push(&vec![0; *length])));
        far.tx(0).sync();
    };
    send(&mut far, [60, 5000]);
    assert_eq!(balancer.receive(Duration::ZERO), 4);
    balancer.hand_over();
    // Of these the consumer is told nothing.
    send(&mut far, [100, 5001]);
    assert_eq!(balancer.receive(Duration::ZERO), 4);
    balancer.outputs_mut().next().unwrap().port.shut();
    balancer.output_reopened(0);
    let total = balancer.total();
    assert_eq!((total.forwarded, total.forwarded_bytes), (2, 5060));
    assert_eq!((total.dropped, total.dropped_bytes), (2, 5101));
    // What is taken and counted anew in between is not counted again.
    let output = balancer.outputs_mut().next().unwrap();
    let taken = output.take_counters();
    assert_eq!((taken.forwarded, taken.dropped), (2, 2));
    assert_eq!((output.counters.forwarded, output.counters.dropped), (0, 0));
}

/// What waits for a port that is opened again with smaller buffers is dropped as a whole, and not sent as an empty packet.
#[test]
fn what_waits_and_fits_no_more_is_dropped() {
    let small = {
        let global_region = Sizes { buf_size: 1024, ..Sizes::GLOBAL };
        LocalRegistry::new(Settings { global_region, ..Settings::default() })
    };
    let mut input = options().extra_bufs(64).open("wait}1").unwrap();
    let mut far = open("wait{1").unwrap();
    let stock = input.take_extra_bufs();
    let near = open("valewait:a@conf:tx-slots=16").unwrap();
    let output = Output::new(near, "near".into(), 0, &input);
    let mut balancer = Balancer::new(input, stock, vec![vec![output]], Share::One(First));
    for n in 0..20 {
        assert!(far.tx(0).push(&vec![0; if n == 16 { 1500 } else { 60 }]));
    }
    far.tx(0).sync();
    while balancer.receive(Duration::ZERO) > 0 {}
    let queued = balancer.outputs().map(Output::queued_packets).sum::<u64>();
    assert_eq!(queued, 5, "behind those that are in the ring");
    let smaller = Port::options().over(small).open("small{0@1").unwrap();
    balancer.outputs_mut().next().unwrap().port = smaller;
    balancer.output_reopened(0);
    balancer.hand_over();
    let total = balancer.total();
    assert_eq!((total.forwarded, total.dropped), (4, 16));
}
