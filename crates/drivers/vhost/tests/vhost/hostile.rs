//! A guest, or its monitor, that does what none may. It harms nothing but its own card.

use std::{io::Write, os::unix::net::UnixStream, sync::OnceLock};

use crate::common::{Port, machine, obey, setups};
use ringway_region::LostPages;
use ringway_vhost::{
    Connection, End, Fault,
    guest::{GUEST_BASE, Guest, MEMORY, Setup},
};
use rustix::event::{EventfdFlags, eventfd};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

/// What ends this process, if nobody looks after it.
fn watch_pages() {
    static WATCH: OnceLock<LostPages> = OnceLock::new();
    WATCH.get_or_init(|| LostPages::watch().unwrap());
}

/// A descriptor of a split queue.
pub fn descriptor(address: u64, len: u32, flags: u16, next: u16) -> Vec<u8> {
    let words = [flags, next].map(u16::to_le_bytes).concat();
    [address.to_le_bytes().to_vec(), len.to_le_bytes().to_vec(), words].concat()
}

/// The same of a packed one, which is the device's.
pub fn packed(address: u64, len: u32, flags: u16, id: u16) -> Vec<u8> {
    let words = [id, flags | 1 << 7].map(u16::to_le_bytes).concat();
    [address.to_le_bytes().to_vec(), len.to_le_bytes().to_vec(), words].concat()
}

/// Somewhere in the guest's memory that is no ring.
const PLACE: u64 = MEMORY - (1 << 20);

/// Descriptors, what is at `PLACE`, the first of the chain, the index; what is wrong.
type Case = (&'static str, Vec<u8>, Vec<u8>, u16, u16, Fault);

/// Each is found out, the queue is not touched any more, and the card goes on once it is set up anew.
#[test]
fn queues_that_no_guest_may_have() {
    let data = GUEST_BASE + PLACE;
    let table = |entries: &[Vec<u8>]| entries.concat();
    let d = descriptor;
    let cases: Vec<Case> = vec![
        ("more than the queue has", d(data, 64, 0, 0), vec![], 0, 65, Fault::Index),
        ("far more", d(data, 64, 0, 0), vec![], 0, u16::MAX, Fault::Index),
        ("a head behind the table", d(data, 64, 0, 0), vec![], 64, 1, Fault::Descriptor),
        ("a next behind it", d(data, 64, NEXT, 64), vec![], 0, 1, Fault::Descriptor),
        (
            "a loop",
            table(&[d(data, 1, NEXT, 1), d(data, 1, NEXT, 0)]),
            vec![],
            0,
            1,
            Fault::Endless,
        ),
        ("a loop of its own", d(data, 1, NEXT, 0), vec![], 0, 1, Fault::Endless),
        ("no such memory", d(GUEST_BASE + MEMORY, 64, 0, 0), vec![], 0, 1, Fault::Address),
        ("memory before the first", d(0, 64, 0, 0), vec![], 0, 1, Fault::Address),
        ("an end behind it", d(GUEST_BASE + MEMORY - 8, 64, 0, 0), vec![], 0, 1, Fault::Address),
        ("a length that overflows", d(data, u32::MAX, 0, 0), vec![], 0, 1, Fault::Address),
        ("an address that overflows", d(u64::MAX - 7, 64, 0, 0), vec![], 0, 1, Fault::Address),
        ("memory for receiving", d(data, 64, WRITE, 0), vec![], 0, 1, Fault::Direction),
        ("a table of half an entry", d(data, 24, INDIRECT, 0), vec![], 0, 1, Fault::Table),
        ("an empty table", d(data, 0, INDIRECT, 0), vec![], 0, 1, Fault::Table),
        ("a huge table", d(data, 1 << 24, INDIRECT, 0), vec![], 0, 1, Fault::Table),
        ("a table that goes on", d(data, 16, INDIRECT | NEXT, 0), vec![], 0, 1, Fault::Table),
        (
            "a table in a table",
            d(data, 16, INDIRECT, 0),
            d(data, 16, INDIRECT, 0),
            0,
            1,
            Fault::Table,
        ),
        (
            "a loop in a table",
            d(data, 32, INDIRECT, 0),
            table(&[d(data, 1, NEXT, 1), d(data, 1, NEXT, 0)]),
            0,
            1,
            Fault::Endless,
        ),
        (
            "a next behind a table's end",
            d(data, 16, INDIRECT, 0),
            d(data, 1, NEXT, 1),
            0,
            1,
            Fault::Endless,
        ),
        (
            "a table outside",
            d(GUEST_BASE + MEMORY - 8, 16, INDIRECT, 0),
            vec![],
            0,
            1,
            Fault::Address,
        ),
    ];
    for (what, descriptors, there, head, index, fault) in cases {
        let (mut guest, mut connection) = machine(Setup::default());
        let mut port = Port::new();
        let (rings, _) = guest.rings(1);
        guest.write(rings, &descriptors);
        guest.write(PLACE, &there);
        let available = rings + 16 * 64;
        guest.write(available + 4, &head.to_le_bytes());
        guest.write(available + 2, &index.to_le_bytes());
        let moved = connection.send((&port.tx, 0), 8);
        assert_eq!((moved.frames, connection.fault()), (0, Some((1, fault))), "{what}");
        assert!(port.sent().is_empty());
        // The other queue goes on; and this one, set up anew.
        assert!(guest.offer_buffer(0, 2048) && port.give(&[7; 60], 2048));
        assert_eq!(connection.receive((&port.rx, 0), 8).frames, 1, "{what}");
        guest.write(available, &[0; 4]);
        guest.stop(1).unwrap();
        guest.set_up(1, 0).unwrap();
        obey(&mut connection).unwrap();
        assert_eq!(connection.fault(), None);
        assert!(guest.send(0, &[0; 72], 2048));
        assert_eq!(connection.send((&port.tx, 0), 8).frames, 1, "{what}");
    }
}

/// What a guest makes of work in one turn has an end, so that its monitor is heard: also where it is of no bytes at all.
#[test]
fn descriptors_of_no_length_have_an_end() {
    const SIZE: u16 = 1024;
    const TABLE: u64 = 12 << 20;
    for queue in [0, 1] {
        let (guest, mut connection) = machine(Setup { size: SIZE, ..Setup::default() });
        let flags = if queue == 0 { WRITE } else { 0 };
        // Each chain is this table, but for the last, which is a buffer.
        let entries = 1u16 << 15;
        let table = (1..=entries).flat_map(|next| {
            let more = if next < entries { NEXT } else { 0 };
            descriptor(GUEST_BASE, 0, flags | more, next)
        });
        guest.write(TABLE, &table.collect::<Vec<_>>());
        let len = u32::from(entries) * 16;
        let (rings, _) = guest.rings(queue);
        guest.write(rings, &descriptor(GUEST_BASE + TABLE, len, INDIRECT | flags, 0));
        guest.write(rings + 16, &descriptor(GUEST_BASE + TABLE, 2048, flags, 0));
        let available = rings + 16 * u64::from(SIZE);
        guest.write(available + 4 + 2 * u64::from(SIZE - 1), &1u16.to_le_bytes());
        guest.write(available + 2, &SIZE.to_le_bytes());
        let mut port = Port::new();
        let moved = if queue == 1 {
            connection.send((&port.tx, 0), 256)
        } else {
            assert!(port.give(&[1; 60], 2048));
            connection.receive((&port.rx, 0), 256)
        };
        assert_eq!(connection.fault(), None);
        if queue == 1 {
            assert!((1..=2).contains(&moved.too_short), "{moved:?}");
        } else {
            assert_eq!((moved.too_long, moved.frames), (1, 0), "{moved:?}");
        }
    }
}

#[test]
fn packed_queues_that_no_guest_may_have() {
    let data = GUEST_BASE + PLACE;
    let all: Vec<_> = (0..64).map(|_| packed(data, 1, NEXT, 0)).collect();
    for (what, descriptors, fault) in [
        ("a chain round the ring", all.concat(), Fault::Endless),
        ("no such memory", packed(GUEST_BASE + MEMORY, 64, 0, 0), Fault::Address),
        ("memory for receiving", packed(data, 64, WRITE, 0), Fault::Direction),
        ("half a table", packed(data, 8, INDIRECT, 0), Fault::Table),
        ("a table that goes on", packed(data, 16, INDIRECT | NEXT, 0), Fault::Table),
    ] {
        let (guest, mut connection) = machine(Setup { packed: true, ..Setup::default() });
        let port = Port::new();
        guest.write(guest.rings(1).0, &descriptors);
        let moved = connection.send((&port.tx, 0), 8);
        assert_eq!((moved.frames, connection.fault()), (0, Some((1, fault))), "{what}");
    }
}

/// Frames that are none are counted, and their buffers come back.
#[test]
fn runts_and_giants() {
    for setup in setups() {
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        for (len, short, long) in [(1, 1, 0), (11, 1, 0), (12, 1, 0), (25, 1, 0), (26, 0, 0)] {
            assert!(guest.send(0, &vec![0; len], 2048));
            let moved = connection.send((&port.tx, 12), 8);
            assert_eq!((moved.too_short, moved.too_long), (short, long), "{len} bytes");
            assert_eq!(moved.frames, 1 - short);
            assert_eq!((guest.reap(0), port.sent().len() as u64), (1, 1 - short));
        }
        assert!(guest.send(0, &vec![0; 70_000], 2048));
        let moved = connection.send((&port.tx, 12), 8);
        assert_eq!((moved.frames, moved.too_long, guest.reap(0)), (0, 1, 1));
        // Longer than all that it ever offers for one.
        assert!(guest.offer_buffer(0, 100) && port.give(&[1; 1000], 2048));
        let moved = connection.receive((&port.rx, 0), 8);
        match setup.mergeable {
            true => assert!(moved.no_room && moved.dropped() == 0),
            false => assert_eq!((moved.too_long, moved.no_room), (1, false)),
        }
        while guest.offer_buffer(0, 10) {}
        assert_eq!(connection.receive((&port.rx, 0), 8).frames, 0);
        // Longer than any: nothing of it is offered to the guest.
        let mut port = Port::new();
        assert!(port.give(&vec![1; ringway_vnet::MAX_FRAME + 1], 2048));
        let moved = connection.receive((&port.rx, 0), 8);
        assert_eq!((moved.frames, moved.too_long, moved.no_room), (0, 1, false));
    }
}

/// A program of the same user that writes over the port's cursors: nothing moves until they are right again.
#[test]
fn cursors_that_others_have_spoiled() {
    let (mut guest, mut connection) = machine(Setup::default());
    let mut port = Port::new();
    assert!(guest.send(0, &[0; 72], 2048) && guest.offer_buffer(0, 2048));
    assert!(port.give(&[1; 60], 2048));
    for spoiled in [64, 65, u32::MAX] {
        let rings = [(&port.tx, port.tx.head()), (&port.rx, port.rx.head())];
        rings.iter().for_each(|(ring, _)| ring.set_head(spoiled));
        let moved = connection.send((&port.tx, 0), 8);
        assert_eq!((moved.frames, moved.no_room), (0, true));
        assert_eq!(connection.receive((&port.rx, 0), 8).frames, 0);
        rings.iter().for_each(|(ring, head)| ring.set_head(*head));
    }
    assert_eq!(connection.send((&port.tx, 0), 8).frames, 1);
    assert_eq!(connection.receive((&port.rx, 0), 8).frames, 1);
    assert_eq!(port.sent(), [[0; 60]]);
}

/// Any bytes in the rings, at any time, while frames go both ways: each turn has an end, and nothing that a port
/// gets is longer than a frame may be.
#[test]
fn any_bytes_in_the_rings() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..400u32 {
        let setup = setups().nth(round as usize % 16).unwrap();
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        for _ in 0..20 {
            guest.send(0, &[0; 100], 50);
            guest.offer_buffer(0, 2048);
            port.give(&[1; 600], 2048);
            for index in 0..2 {
                let (at, len) = guest.rings(index);
                for _ in 0..random.usize(0..6) {
                    let bytes: Vec<u8> = (0..random.usize(1..9)).map(|_| random.u8(..)).collect();
                    // Small numbers get further.
                    let bytes = if random.bool() { vec![random.u8(0..4)] } else { bytes };
                    guest.write(at + random.u64(0..len - 8), &bytes);
                }
            }
            connection.send((&port.tx, 12), 16);
            assert!(port.sent().iter().all(|frame| frame.len() <= 12 + ringway_vnet::MAX_FRAME));
            connection.receive((&port.rx, 12), 16);
            if connection.fault().is_some() {
                break;
            }
        }
    }
}

/// A guest that writes its rings while they are read.
#[test]
fn rings_that_change_meanwhile() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    for setup in setups() {
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        while guest.offer_buffer(0, 512) {}
        while guest.send(0, &[0; 100], 50) {}
        let (end, guest) = (AtomicBool::new(false), &guest);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(3);
                while !end.load(Relaxed) {
                    let (at, len) = guest.rings(random.usize(0..2));
                    guest.write(at + random.u64(0..len - 2), &[random.u8(..), random.u8(0..8)]);
                }
            });
            for _ in 0..2000 {
                port.give(&[1; 600], 2048);
                connection.send((&port.tx, 12), 16);
                port.sent();
                connection.receive((&port.rx, 12), 16);
            }
            end.store(true, Relaxed);
        });
    }
}

/// A monitor that takes the machine's memory away: nothing ends but its connection.
#[test]
fn memory_that_goes() {
    watch_pages();
    let (mut guest, mut connection) = machine(Setup::default());
    let port = Port::new();
    assert!(guest.send(0, &[0; 100], 2048));
    assert!(connection.check_memory().is_ok());
    guest.resize(4096).unwrap();
    connection.send((&port.tx, 0), 8);
    connection.receive((&port.rx, 0), 8);
    assert!(matches!(connection.check_memory(), Err(End::MemoryLost)));
}

fn refused(setup: impl FnOnce(&Guest)) -> String {
    let (guest, mut connection) = machine(Setup::default());
    setup(&guest);
    match obey(&mut connection) {
        Err(End::Refused(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

/// A message, with the bytes of its payload.
pub fn say(mut socket: &UnixStream, request: u32, payload: &[u64]) {
    let header = [request, 1, 8 * payload.len() as u32].map(u32::to_ne_bytes).concat();
    let payload: Vec<u8> = payload.iter().flat_map(|word| word.to_ne_bytes()).collect();
    socket.write_all(&[header, payload].concat()).unwrap();
}

/// Messages that cannot be obeyed end the connection, and say why.
#[test]
fn messages_that_are_refused() {
    let word = |index: u32, value: u32| u64::from(index) | u64::from(value) << 32;
    for (request, payload, problem) in [
        (2, vec![1 << 63], "not offered"),
        (8, vec![word(0, 0)], "0 descriptors"),
        (8, vec![word(0, 40_000)], "40000 descriptors"),
        (8, vec![word(99, 64)], "a queue 99"),
        (9, vec![0, 1, 2, 3, 0], "not in the memory"),
        (9, vec![0], "belong to it"),
        (12, vec![0x100], "give it one"),
        (12, vec![0x1ff], "give it one"),
        (5, vec![1], "does not match"),
        (5, vec![1, 0, 4096, 0, 0], "does not match"),
        (37, vec![0, 0, 4096, 0, 0], "without its descriptor"),
        (38, vec![0, 0, 4096, 0, 0], "no such region"),
        (6, vec![1 << 40, 0], "log of dirty pages has"),
        (6, vec![4096, 0], "without its descriptor"),
        (6, vec![4096, 2], "amid a word"),
        (6, vec![4097, 0], "ends amid a word"),
        (20, vec![7], "MTU"),
        (77, vec![], "message 77 is unknown"),
    ] {
        let said = refused(|guest| say(guest.socket(), request, &payload));
        assert!(said.contains(problem), "{request}: {said}");
    }
    let said = refused(|guest| guest.say_memory(MEMORY + 4096).unwrap());
    assert!(said.contains("shorter than that"), "{said}");
    let said = refused(|guest| guest.say_memory(0).unwrap());
    assert!(said.contains("the size of the region at 0x") && said.ends_with("is 0"), "{said}");
    let said = refused(|guest| guest.say_memory(u64::MAX - 8192).unwrap());
    assert!(said.contains("behind the last address"), "{said}");
}

/// A queue is told by an eventfd or a pipe, and by nothing that holds other descriptors, such as the front end's own socket, or
/// is readable for ever.
#[test]
fn descriptors_that_tell_nothing() {
    let file = std::fs::File::from(
        rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap(),
    );
    let zeros = std::fs::File::open("/dev/zero").unwrap();
    for message in [12, 13, 14] {
        let said = refused(|guest| guest.tell_by(message, 1, guest.socket()).unwrap());
        assert!(said.contains("neither an eventfd nor a pipe, but socket:["), "{said}");
        for other in [&file, &zeros] {
            let said = refused(|guest| guest.tell_by(message, 1, other).unwrap());
            assert!(said.contains("neither an eventfd nor a pipe, but /"), "{said}");
        }
    }
    for count in [0, u32::MAX] {
        let flags = EventfdFlags::SEMAPHORE | EventfdFlags::NONBLOCK;
        let semaphore = eventfd(count, flags).unwrap();
        rustix::io::write(&semaphore, &(u64::MAX - 1 - u64::from(count)).to_ne_bytes()).unwrap();
        let said = refused(|guest| guest.tell_by(12, 1, &semaphore).unwrap());
        assert!(said.contains("counts as a semaphore"), "{said}");
    }
    let (guest, mut connection) = machine(Setup::default());
    let (reads, writes) = rustix::pipe::pipe().unwrap();
    let event = eventfd(7, EventfdFlags::empty()).unwrap();
    for (message, by) in [(12, &reads), (13, &writes), (12, &event), (13, &event)] {
        guest.tell_by(message, 1, by).unwrap();
        obey(&mut connection).unwrap();
    }
}

/// Messages of any kind, with any payload, in any order.
#[test]
fn any_messages() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..3000 {
        let (guest, socket) = Guest::start(Setup::default()).unwrap();
        let mut connection = Connection::new(socket).unwrap();
        obey(&mut connection).unwrap();
        let port = Port::new();
        for _ in 0..random.usize(1..8) {
            let request = random.u32(0..44);
            let small = random.bool();
            let word = |random: &mut fastrand::Rng| match small {
                true => random.u64(0..4) | random.u64(0..300) << 32,
                false => random.u64(..),
            };
            let payload: Vec<_> = (0..random.usize(0..6)).map(|_| word(&mut random)).collect();
            say(guest.socket(), request, &payload);
        }
        let _ = obey(&mut connection);
        connection.send((&port.tx, 12), 16);
        connection.receive((&port.rx, 12), 16);
    }
}
