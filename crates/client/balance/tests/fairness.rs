//! Where several want more than there is room for, each has its share.

use std::time::Duration;

use ringway::{Interest, Port};
use ringway_balance::{Balancer, Choice, Choose, Output, Share};
use ringway_doc::{open, options};

/// Where a packet has its number.
const NUMBER: usize = 14;

/// The input's Ethernet address, and a sender's.
const ADDRESSES: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// A frame to the input with a number.
fn numbered(number: u8) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..12].copy_from_slice(ADDRESSES.as_flattened());
    frame[NUMBER] = number;
    frame
}

/// A packet's output is its number.
struct Numbered;

impl Choose for Numbered {
    fn choose(&mut self, bytes: &[u8], _now: Duration) -> Choice {
        let output = Some(bytes[NUMBER].into());
        Choice { output, also: None, spills: false, hash: 0, is_ip: false }
    }
}

/// The balancer of `input` to so many pipes, and the consumers' ends of these.
fn balancer(name: &str, input: Port, outputs: u32) -> (Balancer<Numbered>, Vec<Port>) {
    let pipe = |end: char, id: u32| {
        options().region(input.mem_id()).open(&format!("netmap:{name}{end}{id}")).unwrap()
    };
    let output = |id: u32| Output::new(pipe('{', id), id.to_string(), id, &input);
    let group = (0..outputs).map(output).collect();
    let consumers = (0..outputs).map(|id| pipe('}', id)).collect();
    (Balancer::new(input, Vec::new(), vec![group], Share::One(Numbered)), consumers)
}

/// Takes up to `count` packets; returns their numbers.
fn take(port: &mut Port, count: usize) -> Vec<u8> {
    let mut rx = port.rx(0);
    rx.sync();
    let count = count.min(rx.available());
    let numbers = rx.batch(count).map(|frame| frame.read::<1>(NUMBER).unwrap()[0]).collect();
    rx.sync();
    numbers
}

/// Consumers send all the time, some of them, and what they send is taken `room` packets at a time:
/// each member that sends has sent as many as the others.
fn senders_share(name: &str, senders: &[u8], room: usize) {
    const CONSUMERS: u32 = 4;
    /// Packets of one turn.
    const TURN: usize = 256;
    let mut far = open(&format!("netmap:{name}_far{{0")).unwrap();
    let input = open(&format!("netmap:{name}_far}}0")).unwrap();
    let (mut balancer, mut consumers) = balancer(name, input, CONSUMERS);
    let mut sent = [0usize; CONSUMERS as usize];
    let mut total = 0;
    while total < 20 * TURN * senders.len() {
        for &number in senders {
            let mut tx = consumers[usize::from(number)].tx(0);
            while tx.push(&numbered(number)) {}
            tx.sync();
        }
        balancer.send();
        for number in take(&mut far, room) {
            sent[usize::from(number)] += 1;
            total += 1;
        }
    }
    let of_senders = || senders.iter().map(|number| sent[usize::from(*number)]);
    let (least, most) = (of_senders().min().unwrap(), of_senders().max().unwrap());
    // One may have had its turn, and the next not yet.
    assert!(most - least <= TURN, "{senders:?}, room for {room}: {sent:?}");
    assert_eq!(of_senders().sum::<usize>(), total);
}

#[test]
fn those_who_send_share_the_room_that_there_is() {
    let all: [&[u8]; 4] = [&[0, 1, 2, 3], &[0, 1], &[1, 3], &[2]];
    for (n, senders) in all.into_iter().enumerate() {
        for room in [10, 255, 256, 300, 1000] {
            senders_share(&format!("s{n}_{room}"), senders, room);
        }
    }
}

/// While there is no room, what is waited for is room.
#[test]
fn room_is_waited_for() {
    let mut far = open("netmap:w_far{0").unwrap();
    let (mut balancer, mut consumers) = balancer("w", open("netmap:w_far}0").unwrap(), 2);
    let fill = |consumers: &mut Vec<Port>| {
        for consumer in consumers {
            while consumer.tx(0).push(&numbered(0)) {}
            consumer.tx(0).sync();
        }
    };
    while {
        fill(&mut consumers);
        balancer.send() > 0
    } {}
    let interests = |balancer: &mut Balancer<Numbered>| -> Vec<Interest> {
        balancer.awaited_both_ways().into_iter().map(|(_, interest)| interest).collect()
    };
    assert_eq!(interests(&mut balancer), [Interest::Both]);
    assert!(!balancer.input.poll(Interest::Both), "nothing is ready");
    let taken = take(&mut far, 100).len();
    assert!(balancer.input.poll(Interest::Both), "there is room again");
    assert_eq!(balancer.send(), taken);
    while !take(&mut far, usize::MAX).is_empty() {
        balancer.send();
    }
    assert_eq!(interests(&mut balancer), [Interest::Rx; 3]);
}

/// The input's rings are all full: each has the same share of the batches.
#[test]
fn rings_share_the_batches() {
    const RINGS: u16 = 3;
    const BATCH: u32 = 64;
    let open = |name: &str| {
        let open = options().rx_rings(RINGS).tx_rings(RINGS);
        open.tx_slots(1024).rx_slots(1024).open(name).unwrap()
    };
    let (mut sender, mut input) = (open("vale9:s"), open("vale9:i"));
    let mut announcement = [0xff; 60];
    announcement[6..12].copy_from_slice(&ADDRESSES[0]);
    assert!(input.tx(0).push(&announcement));
    input.tx(0).sync();
    while take(&mut sender, 1).is_empty() {
        std::thread::yield_now();
    }
    let (balancer, _consumers) = balancer("r", input, RINGS.into());
    let mut balancer = balancer.with_batch(BATCH, false);
    let in_rings = |balancer: &mut Balancer<Numbered>| -> Vec<usize> {
        balancer.input.poll(Interest::Rx);
        (0..RINGS.into()).map(|ring| balancer.input.rx(ring).available()).collect()
    };
    // The worker puts what comes by a ring into the port's ring of this number, where it knows the
    // port.
    for ring in 0..RINGS {
        let mut tx = sender.tx(ring.into());
        (0..1000).for_each(|_| assert!(tx.push(&numbered(ring as u8))));
        tx.sync();
    }
    while in_rings(&mut balancer).iter().any(|held| *held < 1000) {
        std::thread::yield_now();
    }
    for turns in 1..=4 {
        (0..RINGS).for_each(|_| assert_eq!(balancer.receive(Duration::ZERO), BATCH));
        balancer.hand_over();
        let forwarded: Vec<u64> = balancer.outputs().map(|out| out.counters.forwarded).collect();
        assert_eq!(forwarded, [turns * u64::from(BATCH); RINGS as usize]);
    }
}
