//! Faults that other back ends had, by their CVE numbers: what a guest or its monitor did there, done here. What a number
//! stands for is what its record (CVE list, October 2026, all of DPDK) says.

use std::{
    io::Read,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use crate::{
    common::{Port, machine, obey, setups},
    hostile::{INDIRECT, descriptor, packed, say},
};
use ringway_vhost::{
    End, Fault,
    guest::{GUEST_BASE, MEMORY, Setup},
};

/// Tells a thread to end, also where the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// CVE-2026-93683: the length of an indirect table is read more than once, and a guest changes it between two reads; or an
/// entry's next is behind the end of a small table.
///
/// The table is at the end of the memory: a length that was not checked leads out of it.
#[test]
fn a_tables_length_changes_while_it_is_read() {
    const TABLE: u64 = MEMORY - 16;
    const FRAME: u64 = MEMORY - (1 << 20);
    for is_packed in [false, true] {
        let (guest, mut connection) = machine(Setup { packed: is_packed, ..Setup::default() });
        let (rings, _) = guest.rings(1);
        let (available, base) = (rings + 16 * 64, if is_packed { 0x8000_8000 } else { 0 });
        let used = (available + 6 + 2 * 64).next_multiple_of(16);
        guest.write(FRAME, &[7; 72]);
        let to_frame = descriptor(GUEST_BASE + FRAME, 72, 0, 0);
        let of_table = |len| match is_packed {
            true => packed(GUEST_BASE + TABLE, len, INDIRECT, 0),
            false => descriptor(GUEST_BASE + TABLE, len, INDIRECT, 0),
        };
        let mut port = Port::new();
        let (end, guest) = (AtomicBool::new(false), &guest);
        let (mut frames, mut faults) = (0, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(5);
                while !end.load(Relaxed) {
                    let len = [16, 0, 24, 32, 1 << 20, u32::MAX - 15][random.usize(0..6)];
                    guest.write(rings + 8, &len.to_le_bytes());
                    // The entry of a split queue's table goes on behind it, or ends there; that of a packed one just ends.
                    if !is_packed {
                        guest.write(TABLE + 12, &[random.u8(0..2), 0, random.u8(..), 0]);
                    }
                }
            });
            let _end = Ends(&end);
            for _ in 0..2000 {
                guest.write(available, &[0; 4]);
                guest.write(used, &[0; 4]);
                guest.write(TABLE, &to_frame);
                guest.write(rings, &of_table(16));
                guest.stop(1).unwrap();
                guest.set_up(1, base).unwrap();
                obey(&mut connection).unwrap();
                guest.stopped_at().unwrap();
                guest.write(available + 2, &1u16.to_le_bytes());
                let moved = connection.send((&port.tx, 0), 8);
                let sent = port.sent();
                match connection.fault() {
                    None => assert!(sent.iter().all(|frame| frame[..] == [7; 60])),
                    Some((1, Fault::Table | Fault::Address | Fault::Endless)) => faults += 1,
                    other => panic!("{other:?}"),
                }
                assert_eq!(sent.len() as u64, moved.frames);
                frames += moved.frames;
            }
        });
        assert!(frames > 0 && faults > 0, "{frames} frames, {faults} faults");
    }
}

/// CVE-2026-86566: buffers for receiving that are shorter than the header make the length of a copy negative, with split
/// queues and with packed ones.
#[test]
fn buffers_shorter_than_a_header_get_no_more_than_they_hold() {
    for setup in setups() {
        for len in 0..=13 {
            for buffers in [1, 2, 5, 40] {
                let (mut guest, mut connection) = machine(setup);
                let mut port = Port::new();
                let ((rings, size), (behind, _)) = (guest.rings(0), guest.rings(1));
                let place = rings + size;
                let room = (behind - place).min(1 << 18) as usize;
                guest.write(place, &vec![0xee; room]);
                (0..buffers).for_each(|_| assert!(guest.offer_buffer(0, len)));
                assert!(port.give(&[1; 60], 2048));
                let moved = connection.receive((&port.rx, 0), 8);
                let changed = guest.read(place, room).iter().filter(|byte| **byte != 0xee).count();
                assert!(changed <= (buffers * len) as usize, "{setup:?}, {buffers} of {len}");
                let fits = setup.mergeable && buffers * len >= 72;
                assert!(moved.frames == 0 || fits, "{setup:?}, {buffers} of {len}: {moved:?}");
                assert_eq!(connection.fault(), None);
            }
        }
    }
}

/// CVE-2026-86565: a queue is made larger than the table of its descriptors in flight, which is written beyond its end.
///
/// There is no such table here: its messages are refused, and its feature is not offered. What has the size of the queue when
/// it was set up keeps it; where a larger one is set up, its rings are looked for anew.
#[test]
fn a_queue_is_made_larger_than_its_rings() {
    const INFLIGHT: u64 = 1 << 12;
    for is_packed in [false, true] {
        let (guest, mut connection) = machine(Setup { packed: is_packed, ..Setup::default() });
        let (rings, size) = guest.rings(1);
        let port = Port::new();
        // Behind the rings there is nothing.
        guest.say_memory(rings + size).unwrap();
        obey(&mut connection).unwrap();
        let larger = |to: u64| say(guest.socket(), 8, &[1 | to << 32]);
        larger(32_768);
        obey(&mut connection).unwrap();
        guest.write(rings + 16 * 64 + 2, &65u16.to_le_bytes());
        let moved = connection.send((&port.tx, 0), 8);
        let fault = (!is_packed).then_some((1, Fault::Index));
        assert_eq!((moved.frames, connection.fault()), (0, fault));
        // Now it is looked for with its new size.
        guest.say_memory(rings + size).unwrap();
        let refused = obey(&mut connection);
        assert!(matches!(refused, Err(End::Refused(why)) if why.contains("not in the memory")));
    }
    for message in [31, 32] {
        let (guest, mut connection) = machine(Setup::default());
        say(guest.socket(), message, &[4096, 0, 64 << 16 | 2]);
        let refused = obey(&mut connection);
        assert!(matches!(refused, Err(End::Refused(why)) if why.contains("is unknown")));
    }
    let (guest, mut connection) = machine(Setup::default());
    say(guest.socket(), 15, &[]);
    obey(&mut connection).unwrap();
    let mut answer = [0; 20];
    guest.socket().read_exact(&mut answer).unwrap();
    let offered = u64::from_ne_bytes(answer[12..].try_into().unwrap());
    assert!(offered != 0 && offered & INFLIGHT == 0, "{offered:#x}");
}
