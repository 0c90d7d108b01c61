//! How much of a ring is looked at before other ports have their turn.

mod common;

use common::{BROADCAST, Client, header, mac};
use ringway_abi::NS_MOREFRAG;
use ringway_region::Sizes;
use ringway_switch_port::{Burst, Drops, PacketIo};

const MOST_SLOTS: u32 = 128;
const MOST_BYTES: u32 = 1 << 20;

fn burst() -> Burst<'static> {
    Burst { limit: MOST_BYTES, ..Burst::default() }
}

/// What a port collects at first of 500 packets of `slots` slots of `len` bytes.
fn collected(slots: u32, len: u16) -> u32 {
    let shape = ([1, 1], [2048, 16]);
    let sizes = Sizes { buf_size: 65536, ..Sizes::private(shape.0, shape.1, 0, 0) };
    let client = Client::with_sizes(shape.0, shape.1, sizes, 0);
    for i in 0..500 / slots * slots {
        let more = if (i + 1) % slots == 0 { 0 } else { NS_MOREFRAG };
        client.fill(0, &header(BROADCAST, mac(1)), len, more, None);
    }
    client.tx_sync(0);
    let (mut port, mut drops) = (client.port(), Drops::default());
    let found = port.collect(0, &mut burst(), &mut drops);
    assert_eq!(drops, Drops::default());
    // What was left comes with the next.
    port.release(0);
    assert!(port.collect(0, &mut burst(), &mut drops) > 0);
    found
}

#[test]
fn a_burst_is_so_many_slots_or_bytes() {
    assert_eq!(collected(1, 60), MOST_SLOTS);
    assert_eq!(collected(1, 2048), MOST_SLOTS);
    assert_eq!(collected(1, 32768), MOST_BYTES / 32768);
    assert_eq!(collected(1, 65535), 17);
    // A packet is looked at to its end.
    assert_eq!(collected(5, 65535), 20);
    assert_eq!(collected(64, 65535), 64);
}
