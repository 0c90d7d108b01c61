//! Frames there and back between two sockets, with every buffer accounted for.

mod common;

use std::collections::HashSet;
use std::os::fd::AsFd;

use common::{
    CHUNKS, SIZES, Wire, copy, endpoint, frame_queue, recv, send, set_send_buffer, wait_readable,
};
use ringway_nic_setup::{Mode, Xsk};
use ringway_testkit::{frame, skip_without_root};
use ringway_xdp::{Desc, KickOutcome, RX_HEADROOM, Rings, Umem, kick_tx, statistics};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

const FRAMES: u32 = 20_000;
/// In flight at once: below the 256 entries of veth's own ring, so that nothing is dropped.
const WINDOW: u32 = 64;
const LENGTH: u32 = 200;

/// One end as a program without privileges has it: the socket's rings and the memory.
struct End {
    rings: Rings,
    xsk: Xsk,
    umem: Umem,
    /// Chunks on none of the rings.
    free: Vec<u64>,
}

impl End {
    fn new((xsk, umem): (Xsk, Umem)) -> End {
        let mut rings = Rings::map(xsk.socket.fd.as_fd(), &xsk.socket.sizes).unwrap();
        let mut free: Vec<u64> = (0..u64::from(CHUNKS)).map(|chunk| chunk * 2048).collect();
        assert_eq!(rings.fill.free(u32::MAX), SIZES.fill);
        for i in 0..CHUNKS / 2 {
            rings.fill.write(i, free.pop().unwrap());
        }
        rings.fill.submit(CHUNKS / 2);
        End { rings, xsk, umem, free }
    }

    fn submit(&mut self, descs: &[Desc]) {
        let n = descs.len() as u32;
        assert_eq!(self.rings.tx.free(n), n);
        for (i, &desc) in descs.iter().enumerate() {
            self.rings.tx.write(i as u32, desc);
        }
        self.rings.tx.submit(n);
    }

    /// Sends `descs`, none of which may be lost, and takes back what has completed.
    fn transmit(&mut self, descs: &[Desc]) {
        self.submit(descs);
        while self.rings.tx.pending() > 0 {
            assert!(self.rings.tx.needs_wakeup());
            let outcome = kick_tx(&self.xsk.socket.fd).unwrap();
            assert!(matches!(outcome, KickOutcome::Sent | KickOutcome::Again), "{outcome:?}");
        }
        let done = self.completed();
        self.free.extend(done);
    }

    /// Takes the chunks that have completed; they are the caller's.
    fn completed(&mut self) -> Vec<u64> {
        let n = self.rings.completion.available(u32::MAX);
        let chunks = (0..n).map(|i| self.rings.completion.read(i) & !2047).collect();
        self.rings.completion.release(n);
        chunks
    }

    /// Takes what has arrived; the chunks are the caller's.
    fn receive(&mut self) -> Vec<Desc> {
        let n = self.rings.rx.available(u32::MAX);
        let descs = (0..n).map(|i| self.rings.rx.read(i)).collect();
        self.rings.rx.release(n);
        descs
    }

    /// Puts free chunks on the FILL ring, as many as were received.
    fn refill(&mut self, n: u32) {
        let n = self.rings.fill.free(n.min(self.free.len() as u32));
        for i in 0..n {
            self.rings.fill.write(i, self.free.pop().unwrap());
        }
        self.rings.fill.submit(n);
    }

    fn bytes(&self, desc: Desc) -> Vec<u8> {
        let (_, data) = self.umem.locate(desc.address, desc.length).unwrap();
        copy(data)
    }

    fn compose(&mut self, number: u32) -> Desc {
        let address = self.free.pop().unwrap();
        let (_, data) = self.umem.locate(address, LENGTH).unwrap();
        let bytes = frame(number, LENGTH as usize);
        assert_eq!(data.write(0, &bytes), bytes.len());
        Desc { address, length: LENGTH, options: 0 }
    }

    /// Every chunk, wherever it is, exactly once.
    fn account(mut self) {
        let mut chunks = self.free;
        chunks.extend((0..self.rings.fill.pending()).map(|i| self.rings.fill.peek_pending(i)));
        chunks.extend((0..self.rings.tx.pending()).map(|i| self.rings.tx.peek_pending(i).address));
        let n = self.rings.rx.available(u32::MAX);
        chunks.extend((0..n).map(|i| self.rings.rx.read(i).address));
        let n = self.rings.completion.available(u32::MAX);
        chunks.extend((0..n).map(|i| self.rings.completion.read(i)));
        let distinct: HashSet<u64> = chunks.iter().map(|address| address / 2048).collect();
        assert_eq!((chunks.len(), distinct.len()), (CHUNKS as usize, CHUNKS as usize));
        let statistics = statistics(&self.xsk.socket.fd).unwrap();
        assert_eq!((statistics.rx_dropped, statistics.tx_invalid_descs), (0, 0));
    }
}

fn drop_capabilities() {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).unwrap();
}

/// The set-up is privileged; all that follows runs on a thread without a capability. The far end
/// sends each received buffer back from where it lies.
#[test]
fn frames_echo_and_every_buffer_is_accounted_for() {
    if skip_without_root("frames_echo_and_every_buffer_is_accounted_for") {
        return;
    }
    let wire = Wire::new();
    let (_near_program, near_xsk, near_umem) = endpoint(&wire.a, "a0");
    let (_far_program, far_xsk, far_umem) = endpoint(&wire.b, "b0");
    assert_eq!((near_xsk.mode, far_xsk.mode), (Mode::Copy, Mode::Copy));

    let unprivileged = std::thread::spawn(move || {
        drop_capabilities();
        let mut near = End::new((near_xsk, near_umem));
        let mut far = End::new((far_xsk, far_umem));
        let (mut sent, mut back) = (0, 0);
        while back < FRAMES {
            let batch = (WINDOW - (sent - back)).min(FRAMES - sent);
            let descs: Vec<_> = (sent..sent + batch).map(|n| near.compose(n)).collect();
            near.transmit(&descs);
            sent += batch;

            let arrived = far.receive();
            far.transmit(&arrived);
            far.refill(arrived.len() as u32);

            let returned = near.receive();
            for &desc in &returned {
                assert_eq!(near.bytes(desc), frame(back, LENGTH as usize));
                assert_eq!(desc.address % 2048, u64::from(RX_HEADROOM));
                near.free.push(desc.address & !2047);
                back += 1;
            }
            near.refill(returned.len() as u32);
            if returned.is_empty() && arrived.is_empty() {
                wait_readable(if far.rings.rx.available(1) == 0 {
                    &near.xsk.socket.fd
                } else {
                    &far.xsk.socket.fd
                });
            }
        }
        assert_eq!(near.rings.rx.available(1), 0);
        near.account();
        far.account();
    });
    unprivileged.join().unwrap();
}

/// The far end is made to let frames lie for half a second: its ring of 256 fills, and what finds it
/// full is dropped and completes at once, ahead of what lies there.
#[test]
fn a_dropped_frame_completes_ahead_of_those_on_their_way() {
    if skip_without_root("a_dropped_frame_completes_ahead_of_those_on_their_way") {
        return;
    }
    let wire = Wire::new();
    wire.hold_frames_at_b(500);
    let (_a_program, xsk, umem) = endpoint(&wire.a, "a0");
    set_send_buffer(&xsk.socket.fd, 4 << 20);
    let (_b_program, mut b) = frame_queue(&wire.b, "b0");
    let mut a = End::new((xsk, umem));
    let descs: Vec<_> = (0..400).map(|n| a.compose(n)).collect();
    a.submit(&descs);
    let mut lost = 0;
    while a.rings.tx.pending() > 0 {
        lost += usize::from(kick_tx(&a.xsk.socket.fd) == Ok(KickOutcome::Lost));
    }
    let mut completed = Vec::new();
    let mut arrived = 0;
    while arrived < 400 - lost {
        wait_readable(&b);
        arrived += recv(&mut b).len();
        completed.extend(a.completed());
    }
    completed.extend(a.completed());

    assert!(lost > 0);
    assert!(!completed.is_sorted_by(|x, y| x > y), "chunks are handed out from the last down");
    let sent: HashSet<_> = descs.iter().map(|desc| desc.address).collect();
    assert_eq!((completed.len(), completed.iter().copied().collect()), (400, sent));
    a.free.extend(completed);
    a.account();
}

/// What a daemon does after its client's death, and a child after a fork.
#[test]
fn another_view_of_the_rings_goes_on_after_a_resync() {
    if skip_without_root("another_view_of_the_rings_goes_on_after_a_resync") {
        return;
    }
    let wire = Wire::new();
    let (_program, xsk, umem) = endpoint(&wire.a, "a0");
    let mut daemon = Rings::map(xsk.socket.fd.as_fd(), &xsk.socket.sizes).unwrap();
    let mut client = End::new((xsk, umem));
    let descs: Vec<_> = (0..32).map(|n| client.compose(n)).collect();
    client.submit(&descs);

    assert_eq!((daemon.fill.pending(), daemon.tx.pending()), (0, 0), "stale until the resync");
    daemon.resync();
    assert_eq!((daemon.fill.pending(), daemon.tx.pending()), (CHUNKS / 2, 32));
    assert_eq!(daemon.tx.free(u32::MAX), SIZES.tx - 32);
    let pending: Vec<_> = (0..32).map(|i| daemon.tx.peek_pending(i)).collect();
    assert_eq!(pending, descs);
}

#[test]
fn frame_queues_carry_every_length_that_fits() {
    if skip_without_root("frame_queues_carry_every_length_that_fits") {
        return;
    }
    let wire = Wire::new();
    let (_a_program, mut a) = frame_queue(&wire.a, "a0");
    let (_b_program, mut b) = frame_queue(&wire.b, "b0");
    assert_eq!((a.rx_posted(), b.rx_posted()), (CHUNKS / 2, CHUNKS / 2));

    for length in 14..=1514 {
        assert!(send(&mut a, &frame(length, length as usize)));
        assert_eq!(a.flush(), Ok(KickOutcome::Sent));
        wait_readable(&b);
        assert_eq!(recv(&mut b), [frame(length, length as usize)]);
    }
    assert_eq!(a.counters().tx_packets, 1501);
    assert_eq!(b.counters().rx_packets, 1501);
    assert_eq!(a.counters().tx_bytes, b.counters().rx_bytes);
    assert_eq!(a.flush(), Ok(KickOutcome::Sent));
    assert_eq!((a.tx_in_flight(), b.tx_in_flight()), (0, 0));
    assert_eq!((a.rx_posted(), b.rx_posted()), (CHUNKS / 2, CHUNKS / 2));
    assert_eq!(b.counters().rx_bad_desc + a.counters().tx_bad_completion, 0);
}
