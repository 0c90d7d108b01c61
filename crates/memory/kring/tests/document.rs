//! The tables of `docs/shared-memory.md` say where the fields of a region are.
#![cfg(not(any(loom, miri)))]

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use ringway_abi::Dir;
use ringway_kring::Kring;
use ringway_region::{Layout, Region, RingInit, Sizes};

/// The line, offset, bytes and name of each field of a control block.
fn fields() -> Vec<(String, u64, usize, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/shared-memory.md");
    let text = fs::read_to_string(path).expect("the document");
    let (_, rest) = text.split_once("## A control block").expect("a chapter");
    let lines = rest.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    let field = |row: &str| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let number = |at: usize| cells[at].parse::<u64>().expect("a number");
        (cells[1].to_string(), number(2), number(3) as usize, cells[4].to_string())
    };
    rows.map(field).collect()
}

struct Memory(Arc<Region>);

impl Memory {
    fn read(&self, at: u64, bytes: usize) -> u64 {
        let mut word = [0; 8];
        let read = rustix::io::pread(self.0.memfd(), &mut word[..bytes], at).expect("a memfd");
        assert_eq!(read, bytes);
        u64::from_le_bytes(word)
    }
}

#[test]
fn fields_are_where_the_document_says() {
    let layout = Layout::new(&Sizes::PRIVATE, 0).expect("a layout");
    let region = Arc::new(Region::create(2, layout).expect("a region"));
    let memory = Memory(region.clone());
    let (object, slots) = (1, 64);
    let init = RingInit { dir: Dir::Tx, ringid: 0, num_slots: slots };
    let bufs: Vec<_> = (2..2 + slots).collect();
    let kring = Kring::create(&region, object, &init, &bufs).expect("a ring");

    let start = layout.memsize() + u64::from(object) * 512;
    let fields = fields();
    let value = |line: &str, name: &str| {
        let found = fields.iter().find(|(l, _, _, n)| l == line && n == name);
        let (_, offset, bytes, _) = found.unwrap_or_else(|| panic!("no {line} {name}"));
        memory.read(start + offset, *bytes)
    };
    assert_eq!(value("service", "hwtail"), u64::from(slots) - 1);
    assert_eq!(value("owner", "rtail"), u64::from(slots) - 1);

    let csb = kring.csb();
    csb.app.publish(3, 4);
    csb.service.publish(5, 6);
    (0..7).for_each(|_| csb.app.arm());
    (0..8).for_each(|_| csb.service.arm());
    assert!(csb.app.kick(&csb.service, || ()) && csb.service.kick(&csb.app, || ()));
    csb.service.hold_back(true);
    csb.service.set_takes_back(true);
    csb.service.count_lost([9, 10]);
    (0..11).for_each(|_| csb.service.ask_to_yield());
    assert!(csb.app.is_asked_to_yield(&csb.service));
    csb.service.ask_to_yield();
    for (line, name, expected) in [
        ("app", "head", 3),
        ("app", "cur", 4),
        ("app", "need_kick", 7),
        ("app", "kicked", 8),
        ("app", "yielded", 11),
        ("service", "hwcur", 5),
        ("service", "hwtail", 6),
        ("service", "need_kick", 8),
        ("service", "kicked", 7),
        ("service", "held", 1),
        ("service", "takes_back", 1),
        ("service", "no_room", 9),
        ("service", "too_long", 10),
        ("service", "yield_wanted", 12),
    ] {
        assert_eq!(value(line, name), expected, "{line} {name}");
    }

    let owner = kring.owner();
    owner.backoff.store(11, Relaxed);
    owner.driver_cursor.store(12, Relaxed);
    owner.offset_mask.store(13 << 32, Relaxed);
    owner.offset_max.store(14, Relaxed);
    owner.offset_gap.store(15, Relaxed);
    kring.set_monitors(16);
    kring.set_feed_id(17);
    kring.end();
    kring.enter_csb(kring.ring());
    let running = kring.csb_mode().run();
    assert_ne!(value("csb", "looping"), 0);
    drop(running);
    for (line, name, expected) in [
        ("owner", "lock", 0),
        ("owner", "backoff", 11),
        ("owner", "driver_cursor", 12),
        ("owner", "offset_mask", 13 << 32),
        ("owner", "offset_max", 14),
        ("owner", "offset_gap", 15),
        ("owner", "monitors", 16),
        ("feed", "id", 17),
        ("feed", "ended", 1),
        ("csb", "looping", 0),
        ("csb", "on", 1),
        ("csb", "stop", 0),
        ("csb", "ended", 1),
    ] {
        assert_eq!(value(line, name), expected, "{line} {name}");
    }
    let guards = (kring.try_lock().expect("it is free"), kring.try_feed(17));
    assert!(guards.1.is_mine());
    assert_ne!(value("owner", "lock"), 0);
    assert_ne!(value("feed", "lock"), 0);
    drop(guards);

    let counters = kring.counters();
    for (name, counter, number) in [
        ("packets", &counters.packets, 21),
        ("bytes", &counters.bytes, 22),
        ("bad_index", &counters.bad_index, 23),
        ("bad_slot", &counters.bad_slot, 24),
        ("too_long", &counters.too_long, 25),
        ("ring_full", &counters.ring_full, 26),
        ("kicks", &counters.kicks, 27),
        ("too_short", &counters.too_short, 28),
    ] {
        counter.store(number << 32, Relaxed);
        assert_eq!(value("counters", name), number << 32, "{name}");
    }
    kring.note_bad_offload(29 << 32);
    assert_eq!(value("more counters", "bad_offload"), 29 << 32);
}
