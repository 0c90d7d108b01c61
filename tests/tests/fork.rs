//! A program that forks while it has ports open: what its children do in the middle of a sync, the
//! last thing they do included, costs the parent nothing.

use std::time::{Duration, Instant};

use ringway::{Control, Port};
use ringway_tests::{Random, isolated};

/// Children killed on each kind of port.
const ROUNDS: u32 = 150;

/// Longer than a frame takes to arrive.
const LIMIT: Duration = Duration::from_secs(20);

/// After this it is sent again.
const TURN: Duration = Duration::from_millis(20);

/// More slots than a ring has.
const MANY: usize = 1 << 16;

/// The longest that a child lives after it has begun: several thousand syncs.
const MOMENT: u64 = 2_000_000;

/// A child that moves packets from `a` to `b`, through every step of a sync, until it is killed.
fn child(a: &mut Port, b: &mut Port) -> libc::pid_t {
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the only other thread of this process is the test harness's, which waits; libc sees to
    // its own locks.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        exchange(a, b);
        // SAFETY: the parent reads from the other end.
        unsafe { libc::write(ends[1], [1u8].as_ptr().cast(), 1) };
        loop {
            exchange(a, b);
        }
    }
    let mut byte = 0u8;
    // SAFETY: descriptors of this function's own, and one byte to write to.
    let read = unsafe {
        libc::close(ends[1]);
        let read = libc::read(ends[0], (&raw mut byte).cast(), 1);
        libc::close(ends[0]);
        read
    };
    assert_eq!(read, 1, "the child has failed");
    child
}

fn exchange(a: &mut Port, b: &mut Port) {
    let (mut tx, mut rx) = (a.tx(0), b.rx(0));
    for mut slot in tx.batch(3) {
        slot.write(&[0xff; 60]);
    }
    tx.sync();
    rx.sync();
    rx.batch(3).for_each(drop);
}

/// Sends a frame that no child has sent until it is received: a switch drops frames while what the
/// children have left fills the receiver's ring.
fn assert_works(a: &mut Port, b: &mut Port, number: u32) {
    let mut frame = [0xff; 60];
    frame[20..24].copy_from_slice(&number.to_be_bytes());
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        a.tx(0).push(&frame);
        a.tx(0).sync();
        if b.wait_rx(Some(TURN)).unwrap() && b.rx(0).batch(MANY).any(|got| got.to_vec() == frame) {
            return;
        }
    }
    panic!("frame {number} does not arrive: {:?}, {:?}", a.stats(), b.stats());
}

fn children_die(names: [&str; 2]) {
    let mut random = Random::seeded();
    let [mut a, mut b] = names.map(|name| Port::open(name).unwrap());
    assert_works(&mut a, &mut b, 0);
    for round in 1..=ROUNDS {
        let child = child(&mut a, &mut b);
        std::thread::sleep(Duration::from_nanos(random.below(MOMENT)));
        // SAFETY: a child of this process, which has not been waited for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            assert_eq!(libc::waitpid(child, std::ptr::null_mut(), 0), child);
        }
        assert_works(&mut a, &mut b, round);
    }
    let counted = [a.stats(), b.stats()];
    assert!(counted.iter().all(|s| s.bad_index == 0 && s.bad_slot == 0), "{counted:?}");
}

#[test]
fn a_child_that_dies_in_a_sync_of_a_pipe() {
    isolated("a_child_that_dies_in_a_sync_of_a_pipe", |_| children_die(["fork{1", "fork}1"]));
}

#[test]
fn a_child_that_dies_in_a_sync_of_a_switch_port() {
    isolated("a_child_that_dies_in_a_sync_of_a_switch_port", |_| {
        children_die(["vale0:fa", "vale0:fb"]);
    });
}

/// A child that ends by itself closes nothing that is the parent's.
#[test]
fn a_child_that_ends_leaves_the_ports() {
    isolated("a_child_that_ends_leaves_the_ports", |_| {
        let [mut a, mut b] = ["fork{2", "fork}2"].map(|name| Port::open(name).unwrap());
        // SAFETY: as above.
        let child = unsafe { libc::fork() };
        if child == 0 {
            exchange(&mut a, &mut b);
            drop((a, b));
            // SAFETY: ends the child, which is not the test's process.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waits for a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_eq!(Control::connect().unwrap().ports().unwrap().len(), 2);
        assert_works(&mut a, &mut b, 1);
    });
}
