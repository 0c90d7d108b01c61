//! Ports as the client opens them: a pipe with a monitor beside it, and one whose receiver sleeps.

use ringway::{Interest, Port, Prepared, prepare};
use ringway_doc::open;

use crate::{
    cases::{LENGTH, PACKETS, SLOTS},
    counted,
};

fn take(port: &mut Port) -> usize {
    let mut ring = port.rx(0);
    let there = ring.sync();
    ring.batch(there).count()
}

fn send(port: &mut Port, batch: u32) {
    let mut ring = port.tx(0);
    ring.batch(batch as usize).for_each(|mut slot| slot.set_len(LENGTH));
    ring.sync();
}

/// Both ends of a pipe, and a monitor that copies what is sent and is read as well.
pub fn monitored(batch: u32) {
    let mut sender = open("netmap:m{1").expect("a pipe");
    let mut receiver = open("netmap:m}1").expect("its other end");
    let mut monitor = open("netmap:m{1/t").expect("a monitor");
    let mut turn = |number: u32| {
        send(&mut sender, batch);
        assert_eq!([take(&mut receiver), take(&mut monitor)], [batch as usize; 2], "{number}");
    };
    (0..SLOTS / batch).for_each(&mut turn);
    (0..PACKETS / batch).for_each(|number| counted(|| turn(number)));
}

/// A packet for a receiver that is about to sleep: it is woken, and goes to sleep again.
pub fn woken() {
    let mut sender = open("netmap:w{1").expect("a pipe");
    let mut receiver = open("netmap:w}1").expect("its other end");
    let mut turn = || {
        let mut waiter = receiver.waiter(Interest::Rx);
        match prepare(&mut waiter) {
            Prepared::Armed(armed) => {
                send(&mut sender, 1);
                armed.sleep(None).expect("it is woken");
            }
            Prepared::Ready => panic!("there is nothing to receive"),
        }
        assert_eq!(take(&mut receiver), 1);
    };
    (0..SLOTS).for_each(|_| turn());
    (0..PACKETS).for_each(|_| counted(&mut turn));
}
