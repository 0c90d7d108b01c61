//! What a slot says, and what a NIC's ring makes of it: flags, lengths and offsets.

mod common;

use common::Wire;
use common::nic::{Nic, Rings, first_buffer, nics, region, wait};
use ringway_abi::{Dir, NS_BUF_CHANGED, NS_INDIRECT, NS_MOREFRAG, NS_REPORT};
use ringway_kring::{Kring, Offsets};
use ringway_testkit::{dropped, frame, skip_without_root};

/// S-FLAGS: a sync takes NS_BUF_CHANGED off every slot released, the last included, although that
/// one is given to the kernel a sync later.
#[test]
fn every_released_slot_loses_the_flag() {
    if skip_without_root("every_released_slot_loses_the_flag") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    let ring = b.rings.rx.ring();
    for count in [1, 3] {
        for number in 0..count {
            a.rings.send(number..number + 1, 60);
        }
        let first = ring.head();
        while ring.distance(first, ring.tail()) < count {
            wait([&b]);
            b.rings.sync_rx();
        }
        let mut at = first;
        while at != ring.tail() {
            let slot = ring.slot(at);
            ring.set_slot(at, slot.buf_idx, slot.len, NS_BUF_CHANGED);
            at = ring.next(at);
        }
        ring.set_head(at);
        ring.set_cur(at);
        b.rings.sync_rx();
        while at != first {
            at = ring.prev(at);
            assert_eq!(ring.slot(at).flags, 0, "slot {at} of {count} from {first}");
        }
    }
}

/// S-FLAGS: NS_INDIRECT is for switches; a NIC sends the buffer, and takes off what it consumes.
#[test]
fn an_indirect_slot_is_sent_from_its_buffer() {
    if skip_without_root("an_indirect_slot_is_sent_from_its_buffer") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    let ring = a.rings.tx.ring();
    let buf = ring.slot(0).buf_idx;
    ring.buf(buf).unwrap().write(0, &frame(1, 60));
    ring.set_slot_ptr(0, 0xdead_beef);
    a.rings.put(&[(buf, 60, NS_INDIRECT | NS_BUF_CHANGED | NS_REPORT)]);
    wait([&b]);
    assert_eq!(b.rings.receive(), [frame(1, 60)]);
    assert_eq!((ring.slot(0).flags, ring.slot(0).ptr), (NS_INDIRECT, 0xdead_beef));
    assert_eq!(dropped(&a.rings.tx), [0; 3]);
}

/// S-SYNC-9: a slot cannot have more than its buffer, which ends where the next one's headroom
/// begins. A packet with a slot that says so is lost whole, wherever in it that slot is.
#[test]
fn a_slot_that_is_longer_than_its_buffer_loses_its_packet() {
    if skip_without_root("a_slot_that_is_longer_than_its_buffer_loses_its_packet") {
        return;
    }
    let wire = Wire::new();
    wire.set_mtu(9000);
    let [a, b] = nics(&wire);
    let ring = a.rings.tx.ring();
    let most = 1792;
    let good = frame(1, most);
    let wrong: [&[u16]; 6] =
        [&[1793], &[2048], &[u16::MAX], &[1793, 60], &[60, 2048, 60], &[1792, 1792, 1793]];
    for (lost, lengths) in (1..).zip(wrong) {
        let slots = (0..).zip(lengths).map(|(n, &len)| {
            let buf = ring.slot(ring.advance(ring.head(), n)).buf_idx;
            ring.buf(buf).unwrap().write(0, &good);
            (buf, len, if n as usize + 1 < lengths.len() { NS_MOREFRAG } else { 0 })
        });
        let slots: Vec<_> = slots.collect();
        let first = ring.head();
        a.rings.put(&slots);
        assert_eq!(ring.slot(first).len, lengths[0], "what the program said stays");
        let buf = ring.slot(ring.head()).buf_idx;
        ring.buf(buf).unwrap().write(0, &good);
        a.rings.put(&[(buf, most as u16, 0)]);
        wait([&b]);
        assert_eq!(b.rings.receive(), [good.as_slice()], "{lengths:?}");
        assert_eq!(dropped(&a.rings.tx), [0, lost, 0], "{lengths:?}");
    }
    assert_eq!(a.rings.room(), ring.num_slots() - 1);
}

/// A kernel that does not take packets of several buffers gets none of them.
#[test]
fn without_fragments_a_packet_of_several_slots_is_lost() {
    if skip_without_root("without_fragments_a_packet_of_several_slots_is_lost") {
        return;
    }
    let wire = Wire::new();
    let a = Nic::without_frags(&wire.a, "a0", &region(), 0);
    let b = Nic::without_frags(&wire.b, "b0", &region(), 0);
    let ring = a.rings.tx.ring();
    let first = first_buffer(0, Dir::Tx);
    for number in 0..4 {
        ring.buf(first + number).unwrap().write(0, &frame(number, 60));
    }
    let more = NS_MOREFRAG;
    a.rings.put(&[(first, 60, 0), (first + 1, 60, more), (first + 2, 60, 0), (first + 3, 60, 0)]);
    let mut frames = Vec::new();
    while frames.len() < 2 {
        wait([&b]);
        frames.extend(b.rings.receive());
    }
    assert_eq!(frames, [frame(0, 60), frame(3, 60)]);
    assert_eq!(dropped(&a.rings.tx), [0, 1, 0]);
}

const MASK: u64 = 0xffff;

fn with_offsets(kring: &Kring, max: u32) {
    Offsets { mask: MASK, max, gap: 0 }.note(kring);
}

/// S-OFF-5, sending: data is read at the offset, as far as the buffer goes; S-OFF-4: at no greater
/// one than agreed.
#[test]
fn data_is_sent_from_the_offset() {
    if skip_without_root("data_is_sent_from_the_offset") {
        return;
    }
    let wire = Wire::new();
    wire.set_mtu(2000);
    let [a, b] = nics(&wire);
    with_offsets(&a.rings.tx, 1700);
    let ring = a.rings.tx.ring();
    let send = |ptr: u64, offset: usize, len: u16| {
        let at = ring.head();
        let buf = ring.slot(at).buf_idx;
        let bytes = frame(len.into(), 1792 - offset);
        ring.buf(buf).unwrap().write(0, &vec![0xaa; 1792]);
        ring.buf(buf).unwrap().write(offset, &bytes);
        ring.set_slot_ptr(at, ptr);
        a.rings.put(&[(buf, len, 0)]);
        wait([&b]);
        let frames = b.rings.receive();
        assert_eq!(frames, [&bytes[..len.into()]], "{ptr:x}, {len}");
    };
    for offset in [0, 1, 64, 1700] {
        // Bits that are not the mask's mean nothing.
        send(0xabc_0000 | offset, offset as usize, 60);
        send(offset, offset as usize, 1792 - offset as u16);
    }
    send(1701, 1700, 60);
    send(MASK, 1700, 60);

    // There is no room for so much at the end of the buffer.
    with_offsets(&a.rings.tx, 1792);
    ring.set_slot_ptr(ring.head(), 1779);
    a.rings.put(&[(2, 60, 0)]);
    ring.set_slot_ptr(ring.head(), 1792);
    a.rings.put(&[(2, 60, 0)]);
    assert_eq!(dropped(&a.rings.tx), [0, 2, 0]);
}

/// S-OFF-5, receiving: what arrives is where the slot says, or at the greatest offset, and then the
/// slot says that. What has no room there comes with length 0.
#[test]
fn data_is_received_at_the_offset() {
    if skip_without_root("data_is_received_at_the_offset") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    with_offsets(&b.rings.rx, 700);
    let ring = b.rings.rx.ring();
    let cases = [(0, 0, 1500), (1, 1, 1500), (300, 300, 1492), (300, 300, 1493), (9999, 700, 1000)];
    for (number, (asked, at, length)) in (0..).zip(cases) {
        let i = ring.head();
        ring.set_slot_ptr(i, 0xabc_0000 | asked);
        a.rings.send(number..number + 1, length);
        while ring.tail() == i {
            wait([&b]);
            b.rings.sync_rx();
        }
        let slot = ring.slot(i);
        assert_eq!(slot.ptr, 0xabc_0000 | at);
        let bytes = take_at(&b.rings, i, at as u32);
        match at as usize + length <= 1792 {
            true => assert_eq!(bytes, frame(number, length)),
            false => assert_eq!((bytes, dropped(&b.rings.rx)), (vec![], [0, 1, 0])),
        }
        ring.set_head(ring.next(i));
        ring.set_cur(ring.next(i));
    }
    assert_eq!(dropped(&b.rings.rx), [0, 1, 0]);
}

fn take_at(rings: &Rings, at: u32, offset: u32) -> Vec<u8> {
    let ring = rings.rx.ring();
    let slot = ring.slot(at);
    let mut bytes = vec![0; slot.len.into()];
    ring.buf(slot.buf_idx).unwrap().skip(offset).unwrap().copy_to(bytes.len(), &mut bytes);
    bytes
}
