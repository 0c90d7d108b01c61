//! An interface as a port of a bridge, with a kernel's side for each of its queues.

use ringway_switch_port::{
    Configure, Drops, PacketIo,
    under_test::{self, deliver},
};
use ringway_testkit::frame;
use ringway_xdp::{
    Desc, FrameQueue, MAX_FRAGS, NicPort, NicPortConfig, RX_HEADROOM, RingSizes, Umem, XskSocket,
};

use crate::kernel::{BUFFER, CHUNK, Kernel, TX};

const SIZES: RingSizes = RingSizes { fill: 256, completion: 64, rx: 256, tx: 32 };
const FOR_RX: u32 = 256;
const MTU: u32 = 1514;

/// A port with so many queues; all frames that the kernel receives are the same, for the memory is the port's.
fn world(queues: usize, in_parts: bool) -> (NicPort<()>, Vec<Kernel>) {
    uneven([queues; 2], if in_parts { MAX_FRAGS } else { 1 })
}

/// The same; the kernel takes so many parts of a packet that is sent.
fn world_of(queues: usize, max_segs: u32) -> (NicPort<()>, Vec<Kernel>) {
    uneven([queues; 2], max_segs)
}

/// The same with so many queues that send, and so many that receive.
fn uneven(queue_counts: [usize; 2], max_segs: u32) -> (NicPort<()>, Vec<Kernel>) {
    let in_parts = max_segs > 1;
    let queues = queue_counts[0].max(queue_counts[1]);
    let kernels: Vec<_> = (0..queues).map(|_| Kernel::new(SIZES, u32::MAX - 50)).collect();
    let queue = |kernel: &Kernel| {
        let umem = Umem::anonymous(2 * FOR_RX, CHUNK as u32).unwrap();
        let mut rings = kernel.fake.rings().unwrap();
        for chunk in 0..FOR_RX {
            rings.fill.write(chunk, u64::from(chunk) * CHUNK);
            let (_, data) =
                umem.locate(u64::from(chunk) * CHUNK + u64::from(RX_HEADROOM), BUFFER).unwrap();
            data.write(0, &frame(chunk, BUFFER as usize));
        }
        rings.fill.submit(FOR_RX);
        FrameQueue::over(
            XskSocket {
                fd: kernel.socket(),
                sizes: SIZES,
                frags: in_parts,
                max_segs,
                is_pair: true,
            },
            rings,
            umem,
        )
    };
    let max_frame = if in_parts { 9014 } else { MTU };
    let config =
        NicPortConfig { max_frame, in_parts, partial_csum: false, time_flag: None, queue_counts };
    (NicPort::new((), kernels.iter().map(queue).collect(), config).unwrap(), kernels)
}

/// Frames of one look, which are released.
fn look(port: &mut NicPort<()>, ring: usize, limit: u32) -> Vec<Vec<u8>> {
    under_test::look(port, ring, limit, &mut Drops::default()).0
}

/// Receives into so many chunks, each a frame or, but for each `parts`th, a part of one.
fn receive(kernel: &Kernel, count: u32, length: u32, parts: u32) -> Vec<u64> {
    let chunks = kernel.take_posted(count);
    assert_eq!(chunks.len() as u32, count);
    for (i, chunk) in (1..).zip(&chunks) {
        let desc = Desc { address: chunk + u64::from(RX_HEADROOM), length, options: 0 };
        kernel.receive(&[if i % parts == 0 { desc } else { desc.going_on() }]);
    }
    chunks.iter().map(|chunk| chunk / CHUNK).collect()
}

/// So many chunks at most as the limit has, but no more than 128, and those of one frame at the least.
#[test]
fn a_look_is_bounded() {
    let chunk = CHUNK as u32;
    for in_parts in [false, true] {
        let least = if in_parts { 32 } else { 1 };
        for (limit, most) in [
            (u32::MAX, 128),
            (129 * chunk, 128),
            (100 * chunk, 100),
            (100 * chunk - 1, 99),
            (33 * chunk, 33),
            (5 * chunk, 5.max(least)),
            (chunk, least),
            (0, least),
        ] {
            let (mut port, kernels) = world(1, in_parts);
            let numbers = receive(&kernels[0], 200, 60, 1);
            let (mut found, mut looks) = (0, 0);
            while found < 200 {
                let frames = look(&mut port, 0, limit);
                assert_eq!(frames.len(), (200 - found).min(most as usize), "limit {limit}");
                for (number, bytes) in numbers[found..].iter().zip(&frames) {
                    assert_eq!(*bytes, frame(*number as u32, BUFFER as usize)[..60]);
                }
                found += frames.len();
                looks += 1;
            }
            assert_eq!(looks, 200u32.div_ceil(most));
            assert!(look(&mut port, 0, limit).is_empty());
            // The kernel has all chunks again.
            assert_eq!(receive(&kernels[0], FOR_RX, 60, 1).len(), FOR_RX as usize);
        }
    }
}

/// Each queue is a ring; there is nothing on another.
#[test]
fn a_queue_is_a_ring() {
    let (mut port, kernels) = world(3, false);
    assert_eq!((port.tx_rings(), port.receives()), (3, true));
    receive(&kernels[1], 5, 60, 1);
    assert_eq!([0, 1, 2, 3].map(|ring| look(&mut port, ring, u32::MAX).len()), [0, 5, 0, 0]);
    let mut drops = Drops::default();
    for (ring, queue) in [(0, 0), (1, 1), (2, 2), (3, 0), (7, 1), (5, 2)] {
        assert_eq!(deliver(&mut port, ring, &[frame(9, 60)], &mut drops), (1, 60));
        port.flush(false);
        let sent: Vec<_> = kernels.iter().map(|kernel| kernel.take_sent(9).len()).collect();
        assert_eq!(sent, [0, 1, 2].map(|at| usize::from(at == queue)), "ring {ring}");
    }
    assert_eq!(drops, Drops::default());
}

/// Nothing is sent by a queue that receives only, and nothing is looked for in a queue that sends only.
#[test]
fn each_direction_has_its_own_queues() {
    for (counts, sends_by) in [([1, 4], [0, 0, 0, 0, 0]), ([3, 2], [0, 1, 2, 0, 1])] {
        let (mut port, kernels) = uneven(counts, 1);
        assert_eq!(port.tx_rings(), counts[1], "{counts:?}");
        receive(&kernels[counts[1] - 1], 5, 60, 1);
        assert_eq!(look(&mut port, counts[1] - 1, u32::MAX).len(), 5);
        let mut drops = Drops::default();
        for (ring, queue) in sends_by.into_iter().enumerate() {
            assert_eq!(deliver(&mut port, ring, &[frame(9, 60)], &mut drops), (1, 60));
            port.flush(false);
            let sent: Vec<_> = kernels.iter().map(|kernel| kernel.take_sent(9).len()).collect();
            let expected: Vec<_> = (0..kernels.len()).map(|at| usize::from(at == queue)).collect();
            assert_eq!(sent, expected, "{counts:?}, ring {ring}");
        }
        assert_eq!(drops, Drops::default());
    }
}

/// A packet of several chunks is one frame.
#[test]
fn a_frame_of_parts_is_one() {
    let (mut port, kernels) = world(1, true);
    let numbers = receive(&kernels[0], 9, BUFFER, 3);
    let frames = look(&mut port, 0, u32::MAX);
    let whole = |numbers: &[u64]| -> Vec<u8> {
        numbers.iter().flat_map(|number| frame(*number as u32, BUFFER as usize)).collect()
    };
    assert_eq!(frames.len(), 3);
    assert!(frames.iter().zip(numbers.chunks(3)).all(|(frame, numbers)| *frame == whole(numbers)));
}

/// What is too long, or too short, or finds no room is counted by why; the rest is sent, in parts where a chunk is too short.
#[test]
fn what_is_delivered_is_sent_or_counted() {
    for in_parts in [false, true] {
        let (mut port, kernels) = world(1, in_parts);
        let kernel = &kernels[0];
        let mut drops = Drops::default();
        let limit = if in_parts { 9018 } else { 1518 };
        let frames: Vec<_> =
            [limit, limit + 1, 0, 13, 60].into_iter().map(|length| frame(3, length)).collect();
        let sent = deliver(&mut port, 0, &frames, &mut drops);
        assert_eq!(sent, (2, limit as u64 + 60));
        assert_eq!(drops, Drops { too_short: 2, too_long: 1, ..Drops::default() });
        assert_eq!(kernel.pending(TX), 0, "not before the flush");
        port.flush(false);
        let descs = kernel.take_sent(99);
        let lengths: Vec<_> =
            descs.iter().map(|desc| (desc.length as usize, desc.goes_on())).collect();
        let parts: Vec<_> = frames[0].chunks(CHUNK as usize).map(<[u8]>::len).collect();
        let mut expected: Vec<_> =
            (1..).zip(&parts).map(|(i, length)| (*length, i < parts.len())).collect();
        expected.push((60, false));
        assert_eq!(lengths, expected);

        // As many as the ring holds, and those behind them are lost.
        let many = vec![frame(1, 60); 40];
        assert_eq!(deliver(&mut port, 0, &many, &mut drops), (32, 32 * 60));
        assert_eq!(drops.ring_full, 8);

        let (mut port, kernels) = world(1, in_parts);
        for (longest, fits) in [(100, 104), (3000, if in_parts { 3004 } else { 2048 })] {
            port.set_max_frame(longest);
            let mut drops = Drops::default();
            let odd = [frame(1, fits), frame(2, fits + 1)];
            assert_eq!(deliver(&mut port, 0, &odd, &mut drops), (1, fits as u64));
            assert_eq!(drops, Drops { too_long: 1, ..Drops::default() }, "{longest}");
            port.flush(false);
            let sent: u32 = kernels[0].take_sent(9).iter().map(|desc| desc.length).sum();
            assert_eq!(sent as usize, fits);
        }
    }
}

/// What the kernel hands over that is none of the port's chunks is counted.
#[test]
fn what_is_no_chunk_is_counted() {
    let (mut port, kernels) = world(2, false);
    let mut drops = Drops::default();
    for (queue, expected) in [(0, 1), (1, 2), (1, 3)] {
        kernels[queue].receive(&[Desc { address: 1 << 40, length: 60, options: 0 }]);
        receive(&kernels[queue], 1, 60, 1);
        assert_eq!(look(&mut port, queue, u32::MAX).len(), 1);
        for _ in 0..2 {
            port.count_lost(&mut drops);
            assert_eq!(drops, Drops { bad_slot: expected, ..Drops::default() });
        }
    }
}

/// A frame of more parts than the driver takes would stand in the way of all behind it: it is too long for any MTU.
#[test]
fn a_frame_has_no_more_parts_than_the_driver_takes() {
    for (max_segs, most) in [(2, 4096), (3, 6144), (5, 9018), (MAX_FRAGS, 9018)] {
        let (mut port, kernels) = world_of(1, max_segs);
        let mut drops = Drops::default();
        let frames = [frame(1, most), frame(2, most + 1), frame(3, 60)];
        assert_eq!(deliver(&mut port, 0, &frames, &mut drops), (2, most as u64 + 60));
        assert_eq!(drops, Drops { too_long: 1, ..Drops::default() }, "{max_segs}");
        port.flush(false);
        let parts = kernels[0].take_sent(99);
        assert_eq!(parts.len() as u32, most.div_ceil(2048) as u32 + 1);
        port.set_max_frame(65535);
        assert_eq!(deliver(&mut port, 0, &[frame(4, 40_000)], &mut drops), (0, 0));
        assert_eq!(drops, Drops { too_long: 2, ..Drops::default() }, "{max_segs}");
    }
}

/// What the kernel did not take goes out when the bridge has nothing else to do.
#[test]
fn what_waits_is_flushed_again() {
    let (mut port, kernels) = world(1, false);
    let kernel = &kernels[0];
    kernel.set_wakeup(TX, true);
    let mut drops = Drops::default();
    deliver(&mut port, 0, &vec![frame(1, 60); 32], &mut drops);
    port.flush(false);
    assert_eq!((kernel.pending(TX), drops), (32, Drops::default()), "it takes none");
    let addresses: Vec<_> = kernel.take_sent(32).iter().map(|desc| desc.address).collect();
    kernel.complete(&addresses);
    kernel.set_wakeup(TX, false);
    // The port takes back what is done, if not before, when it has more to send.
    port.flush(true);
    assert_eq!(kernel.pending(crate::kernel::COMPLETION), 0);
    deliver(&mut port, 0, &[frame(2, 60)], &mut drops);
    port.flush(false);
    let [desc]: [Desc; 1] = kernel.take_sent(9).try_into().unwrap();
    kernel.complete(&[desc.address]);
    port.flush(true);
    assert_eq!(kernel.pending(crate::kernel::COMPLETION), 1, "nothing waits: it is not looked at");
}
