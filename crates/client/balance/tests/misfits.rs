//! What no buffer of the input holds.

use std::time::Duration;

use ringway::Port;
use ringway_balance::{Balancer, Choice, Choose, Output, Share};
use ringway_doc::open;
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
