//! One ring between two: neither side has more than there is, wherever the indices stand.

use std::collections::VecDeque;

use proptest::prelude::*;
use ringway_xdp::{Desc, RingSizes};

use crate::kernel::{COMPLETION, CONSUMER, FILL, Kernel, PRODUCER, RX, TX};

const SIZES: RingSizes = RingSizes { fill: 8, completion: 16, rx: 4, tx: 8 };

fn desc(n: u64) -> Desc {
    Desc { address: n << 11, length: n as u32 + 1, options: (n % 2) as u32 }
}

/// Where indices begin: everywhere, and where they are soon 0 again.
fn first() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), any::<u32>(), u32::MAX - 20..=u32::MAX]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What we put there the kernel finds, in its order, and there is as much room as it leaves.
    #[test]
    fn what_is_produced_is_consumed(
        first in first(), steps in prop::collection::vec((0u32..12, 0u32..12), 1..40),
    ) {
        let kernel = Kernel::new(SIZES, first);
        let mut rings = kernel.fake.rings().unwrap();
        let (mut next, mut there) = (0, VecDeque::new());
        // As last seen by us: the room that we know of is no more than there is.
        for (put, taken) in steps {
            let room = SIZES.tx - there.len() as u32;
            prop_assert_eq!(rings.tx.free(put), put.min(room));
            let put = put.min(room);
            for i in 0..put {
                rings.tx.write(i, desc(next));
                rings.fill.write(i, next << 11);
                there.push_back(next);
                next += 1;
            }
            let before = kernel.pending(TX);
            prop_assert_eq!(rings.fill.free(put), put);
            prop_assert_eq!((before, kernel.pending(FILL)), (there.len() as u32 - put, before));
            rings.tx.submit(put);
            rings.fill.submit(put);
            for (i, number) in (0..).zip(&there) {
                prop_assert_eq!(rings.tx.peek_pending(i), desc(*number));
                prop_assert_eq!(rings.fill.peek_pending(i), number << 11);
            }
            // What the kernel took last is still in the ring, until newer entries overwrite it.
            for back in 0..(SIZES.tx - there.len() as u32).min((next - there.len() as u64) as u32) {
                let number = next - there.len() as u64 - 1 - u64::from(back);
                prop_assert_eq!(rings.tx.peek_consumed(back), desc(number));
            }
            prop_assert_eq!(rings.tx.pending(), there.len() as u32);
            let taken = taken.min(there.len() as u32);
            let expected: Vec<u64> = there.drain(..taken as usize).collect();
            let sent: Vec<_> = expected.iter().map(|number| desc(*number)).collect();
            prop_assert_eq!(kernel.take_sent(taken), sent);
            let posted: Vec<_> = expected.iter().map(|number| number << 11).collect();
            prop_assert_eq!(kernel.take_posted(taken), posted);
            prop_assert_eq!(rings.fill.pending(), there.len() as u32);
        }
    }

    /// What the kernel puts there we find, and it gets the room back that we give.
    #[test]
    fn what_the_kernel_produces_is_found(
        first in first(), steps in prop::collection::vec((0u32..6, 0u32..6), 1..40),
    ) {
        let kernel = Kernel::new(SIZES, first);
        let mut rings = kernel.fake.rings().unwrap();
        let (mut next, mut there) = (0u64, VecDeque::new());
        for (put, taken) in steps {
            let put = put.min(SIZES.rx - there.len() as u32);
            let numbers: Vec<u64> = (next..next + u64::from(put)).collect();
            kernel.receive(&numbers.iter().map(|n| desc(*n)).collect::<Vec<_>>());
            kernel.complete(&numbers);
            next += u64::from(put);
            there.extend(numbers);
            let found = taken.min(there.len() as u32);
            prop_assert_eq!(rings.rx.available(taken), found);
            prop_assert_eq!(rings.completion.available(taken), found);
            for (i, number) in (0..found).zip(&there) {
                prop_assert_eq!(rings.rx.read(i), desc(*number));
                prop_assert_eq!(rings.completion.read(i), *number);
            }
            rings.rx.release(found);
            rings.completion.release(found);
            there.drain(..found as usize);
            prop_assert_eq!((kernel.pending(RX), kernel.pending(COMPLETION)), (there.len() as u32, there.len() as u32));
        }
    }
}

/// Others that hold the socket may write any index: no more is believed than the ring holds, and a view that looks
/// again is as good as a new one.
#[test]
fn wrong_indices_are_bounded() {
    let kernel = Kernel::new(SIZES, 5);
    let mut rings = kernel.fake.rings().unwrap();
    assert_eq!((rings.tx.size(), rings.rx.size()), (8, 4));
    assert_eq!((rings.fill.size(), rings.completion.size()), (8, 16));
    kernel.set_word(TX + CONSUMER, 6);
    assert_eq!(rings.tx.free(8), 8, "it was not looked at again");
    assert_eq!(
        (rings.tx.free(9), rings.tx.pending()),
        (0, 8),
        "it has consumed more than there was"
    );
    kernel.set_word(TX + CONSUMER, 5u32.wrapping_sub(9));
    rings.tx.resync();
    assert_eq!((rings.tx.free(100), rings.tx.pending()), (0, 8));
    kernel.set_word(TX + CONSUMER, 5 - 3);
    rings.tx.resync();
    assert_eq!((rings.tx.free(100), rings.tx.pending()), (5, 3));
    for (produced, found) in [(5, 0), (6, 1), (9, 4), (10, 4), (4, 4)] {
        kernel.set_word(RX + PRODUCER, produced);
        rings.rx.resync();
        assert_eq!(rings.rx.available(100), found, "{produced}");
    }
}

/// Another process has moved the indices.
#[test]
fn a_view_goes_on_where_another_has_stopped() {
    let kernel = Kernel::new(SIZES, 1000);
    let [mut one, mut other] = [(); 2].map(|()| kernel.fake.rings().unwrap());
    one.tx.write(0, desc(1));
    one.tx.submit(1);
    one.fill.write(0, 7);
    one.fill.submit(1);
    kernel.receive(&[desc(3), desc(4)]);
    kernel.complete(&[5, 6]);
    assert_eq!((one.rx.available(9), one.completion.available(9)), (2, 2));
    one.rx.release(1);
    one.completion.release(1);
    other.resync();
    assert_eq!((other.tx.pending(), other.fill.pending()), (1, 1));
    assert_eq!((other.rx.available(9), other.rx.read(0)), (1, desc(4)));
    assert_eq!((other.completion.available(9), other.completion.read(0)), (1, 6));
    other.tx.write(0, desc(2));
    other.tx.submit(1);
    assert_eq!(kernel.take_sent(9), [desc(1), desc(2)]);
}

/// The kernel asks for a kick by a flag of each ring.
#[test]
fn a_ring_says_whether_the_kernel_waits() {
    let kernel = Kernel::new(SIZES, 0);
    let rings = kernel.fake.rings().unwrap();
    assert!(!rings.tx.needs_wakeup() && !rings.fill.needs_wakeup());
    kernel.set_wakeup(TX, true);
    assert!(rings.tx.needs_wakeup() && !rings.fill.needs_wakeup());
    kernel.set_wakeup(FILL, true);
    kernel.set_wakeup(TX, false);
    assert!(!rings.tx.needs_wakeup() && rings.fill.needs_wakeup());
}

#[test]
fn a_part_of_a_packet_goes_on() {
    let last = Desc { address: 1, length: 2, options: 0 };
    assert!(!last.goes_on());
    assert_eq!(last.going_on(), Desc { options: 1, ..last });
    assert!(last.going_on().going_on().goes_on());
    assert!(!Desc { options: 2, ..last }.goes_on());
}
