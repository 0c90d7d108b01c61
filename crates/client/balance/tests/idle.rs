//! What a balancer does when its consumers have released all: nothing.

use std::time::Duration;

use ringway::{Interest, Port};
use ringway_balance::{Balancer, Choice, Choose, Output, Share};
use ringway_doc::{open, options};

const PACKETS: u32 = 10;

/// All packets are the first output's.
struct First;

impl Choose for First {
    fn choose(&mut self, _bytes: &[u8], _now: Duration) -> Choice {
        Choice { output: Some(0), also: None, spills: false, hash: 0, is_ip: false }
    }
}

/// Takes all that there is, and releases it; returns how many packets there were.
fn consume(consumer: &mut Port) -> usize {
    let count = consumer.rx(0).sync();
    assert_eq!(consumer.rx(0).batch(count).count(), count);
    consumer.rx(0).sync();
    count
}

/// With as many groups of one output each: the last one's slots are counted, those of the others are looked at.
fn idles(groups: u32) {
    let mut sender = open(&format!("netmap:i{{{groups}")).unwrap();
    let input = open(&format!("netmap:i}}{groups}")).unwrap();
    let pipe = |end: char, group: u32| {
        options().region(input.mem_id()).open(&format!("netmap:o{end}{groups}{group}")).unwrap()
    };
    let output = |group: u32| Output::new(pipe('{', group), group.to_string(), group, &input);
    let outputs = (0..groups).map(|group| vec![output(group)]).collect();
    let mut consumers: Vec<Port> = (0..groups).map(|group| pipe('}', group)).collect();
    let mut balancer = Balancer::new(input, Vec::new(), outputs, Share::One(First));
    // More than a ring has slots.
    for _ in 0..2000 / PACKETS {
        (0..PACKETS).for_each(|_| assert!(sender.tx(0).push(&[7; 60])));
        sender.tx(0).sync();
        assert_eq!(balancer.receive(Duration::ZERO), PACKETS);
        balancer.hand_over();
        for consumer in &mut consumers {
            assert_eq!(consume(consumer), PACKETS as usize);
            assert!(balancer.hand_over() > 0, "what was released is counted, or goes on");
        }
        assert_eq!(
            [balancer.receive(Duration::ZERO), balancer.hand_over()],
            [0, 0],
            "nothing is left to do"
        );
        assert!(balancer.outputs().all(|output| !output.is_busy()));
    }
    assert_eq!(balancer.total().dropped, 0);
}

#[test]
fn nothing_is_left_to_do() {
    idles(1);
    idles(3);
}

/// A consumer's packet that finds too few free slots at the input is waited for until there are more.
#[test]
fn too_few_slots_end_no_wait() {
    let small = |name: &str| open(&format!("{name}@conf:slots=16")).unwrap();
    let (mut far, mut input) = (small("few{1"), small("few}1"));
    let pipe = |name: &str| options().region(input.mem_id()).open(name).unwrap();
    let (near, mut consumer) = (pipe("fewout{1"), pipe("fewout}1"));
    (0..14).for_each(|_| assert!(input.tx(0).push(&[1; 60])));
    input.tx(0).sync();
    let long = vec![7; 2 * input.max_frame() + 1];
    let output = Output::new(near, "near".into(), 0, &input);
    let mut balancer = Balancer::new(input, Vec::new(), vec![vec![output]], Share::One(First));
    assert!(consumer.tx(0).push(&long));
    consumer.tx(0).sync();
    for _ in 0..2 {
        assert_eq!(balancer.send(), 0);
        let mut awaited = balancer.awaited_both_ways();
        let [(port, _)] = &mut awaited[..] else { panic!("it waits for room alone") };
        assert!(!port.poll(Interest::Tx), "too few are free");
        far.rx(0).sync();
        assert_eq!(far.rx(0).batch(1).count(), 1);
        far.rx(0).sync();
        assert!(port.poll(Interest::Tx), "there is one more");
    }
    assert_eq!(balancer.send(), 3);
}
