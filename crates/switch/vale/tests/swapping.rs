//! Ports that swap buffers: what arrives is what was sent, no buffer is in two slots, and none is lost.

mod common;

use std::{collections::BTreeSet, iter};

use common::{BROADCAST, Client, Piece, barrier, header, mac};
use proptest::prelude::*;
use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_kring::{Kring, Offsets};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_switch_port::PortMirrors;
use ringway_vale::{Bridge, PortConfig, Vlan};

/// Where swapping begins, and one byte less.
const LONG: usize = 384;
const SHORT: usize = LONG - 1;

fn swapping() -> PortConfig {
    PortConfig { swap_buffers: true, ..PortConfig::default() }
}

fn frame(to: [u8; 6], from: u8, len: usize) -> Vec<u8> {
    let mut frame = header(to, mac(from)).to_vec();
    let begin = frame.len();
    frame.resize(len, from);
    frame[begin..]
        .iter_mut()
        .zip((0..=u8::MAX).cycle())
        .for_each(|(byte, n)| *byte = byte.wrapping_add(n));
    frame
}

/// Sends by the buffer that the slot has now, as programs do.
fn send(client: &Client, pieces: &[&[u8]]) {
    for (n, piece) in (1..).zip(pieces) {
        let view = client.tx[0].ring();
        let at = view.head();
        assert_ne!(at, view.tail());
        let index = view.slot(at).buf_idx;
        view.buf(index).unwrap().write(0, piece);
        let more = if n == pieces.len() { 0 } else { NS_MOREFRAG };
        view.set_slot(at, index, piece.len() as u16, more);
        view.set_head(view.next(at));
        view.set_cur(view.next(at));
    }
    client.tx_sync(0);
}

fn buffers(kring: &Kring) -> Vec<u32> {
    let view = kring.ring();
    (0..view.num_slots()).map(|at| view.slot(at).buf_idx).collect()
}

fn all_buffers(clients: &[Client]) -> Vec<u32> {
    let rings = clients.iter().flat_map(|client| client.tx.iter().chain(&client.rx));
    rings.flat_map(buffers).collect()
}

fn whole(pieces: Vec<Piece>) -> Vec<u8> {
    pieces.into_iter().flat_map(|(bytes, _)| bytes).collect()
}

/// Has the bridge learn where the clients are.
fn introduce(bridge: &Bridge, clients: &[Client]) {
    for (n, client) in (0..).zip(clients) {
        send(client, &[&frame(BROADCAST, n, 60)]);
        client.drained(0);
        barrier(bridge);
    }
    clients.iter().for_each(|client| drop(client.receive(0, usize::MAX)));
}

#[test]
fn buffers_change_hands() {
    let bridge = Bridge::start("vale-swap").unwrap();
    let clients: [Client; 2] = Client::neighbours([8, 8]);
    clients.iter().for_each(|client| drop(client.attach_as(&bridge, swapping())));
    introduce(&bridge, &clients);
    let [a, b] = &clients;
    let (sent_at, came_at) = (a.tx[0].ring().head(), b.rx[0].ring().head());
    let slots = || [a.tx[0].ring().slot(sent_at), b.rx[0].ring().slot(came_at)];
    let before = slots().map(|slot| slot.buf_idx);
    let sent = frame(mac(1), 0, 1514);
    send(a, &[&sent]);
    a.drained(0);
    let after = slots();
    assert_eq!(after.map(|slot| slot.buf_idx), [before[1], before[0]]);
    assert!(after.iter().all(|slot| slot.flags & NS_BUF_CHANGED != 0), "{after:?}");
    let received = b.receive(0, 9);
    assert_eq!(received.len(), 1);
    assert_eq!(received.into_iter().map(whole).next(), Some(sent));
}

/// What keeps a packet from being swapped: it is copied then, and arrives all the same.
#[test]
fn all_else_is_copied() {
    let offsets = Offsets { mask: 0xffff, max: 64, gap: 0 };
    let tagged = PortConfig { vlan: Vlan::Access(7), ..swapping() };
    let trunk =
        PortConfig { vlan: Vlan::Trunk { allowed: [7].into(), native: None }, ..swapping() };
    type Case<'a> = (&'a str, [PortConfig; 2], usize, Option<[Option<Offsets>; 2]>);
    let cases: [Case<'_>; 7] = [
        ("nothing", [swapping(), swapping()], LONG, None),
        ("it is short", [swapping(), swapping()], SHORT, None),
        ("the sender's choice", [PortConfig::default(), swapping()], LONG, None),
        ("the receiver's choice", [swapping(), PortConfig::default()], LONG, None),
        ("a tag that is added", [tagged, trunk], LONG, None),
        ("the sender's offsets", [swapping(), swapping()], LONG, Some([Some(offsets), None])),
        ("the receiver's offsets", [swapping(), swapping()], LONG, Some([None, Some(offsets)])),
    ];
    for (what, configs, len, offsets) in cases {
        let bridge = Bridge::start("vale-swap-not").unwrap();
        let clients: [Client; 2] = Client::neighbours([8, 8]);
        for (client, config) in clients.iter().zip(configs) {
            let (place, _) = client.attach_as(&bridge, config);
            if let Some([tx, rx]) = offsets {
                bridge.set_offsets(place, ringway_abi::Dir::Tx, 0, tx);
                bridge.set_offsets(place, ringway_abi::Dir::Rx, 0, rx);
            }
        }
        if what != "a tag that is added" {
            introduce(&bridge, &clients);
        }
        let before = clients.each_ref().map(|client| [&client.tx[0], &client.rx[0]].map(buffers));
        let [a, b] = &clients;
        let sent = frame(mac(1), 0, len);
        send(a, &[&sent]);
        a.drained(0);
        let after = clients.each_ref().map(|client| [&client.tx[0], &client.rx[0]].map(buffers));
        assert_eq!(before != after, what == "nothing", "{what}");
        let received: Vec<_> = b.receive(0, 9).into_iter().map(whole).collect();
        assert_eq!(received.len(), 1, "{what}");
        assert!(received[0].ends_with(&sent[12..]), "{what}");
    }
}

/// Monitors see what was sent, and what was received.
#[test]
fn monitored_rings_copy() {
    for mode in [
        MirrorMode::CopySent,
        MirrorMode::SwapSent,
        MirrorMode::CopyReceived,
        MirrorMode::SwapReceived,
    ] {
        let bridge = Bridge::start("vale-swap-seen").unwrap();
        let [a, b, monitor]: [Client; 3] = Client::neighbours([8, 8]);
        let clients = [a, b];
        let places = clients.each_ref().map(|client| client.attach_as(&bridge, swapping()).0);
        introduce(&bridge, &clients);
        let mirror = Mirror::new(monitor.rx[0].clone(), monitor.rx_bell.clone(), mode);
        let mirrors = vec![Mirrors::from_iter([mirror])];
        let (place, mirrors) = match mode {
            MirrorMode::CopySent | MirrorMode::SwapSent => {
                (places[0], PortMirrors { tx: mirrors, rx: vec![] })
            }
            _ => (places[1], PortMirrors { tx: vec![], rx: mirrors }),
        };
        bridge.set_mirrors(place, mirrors);
        let sent = frame(mac(1), 0, 1514);
        let index = clients[0].tx[0].ring().slot(clients[0].tx[0].ring().head()).buf_idx;
        send(&clients[0], &[&sent]);
        clients[0].drained(0);
        let at = clients[1].rx[0].ring().head();
        assert_ne!(clients[1].rx[0].ring().slot(at).buf_idx, index, "{mode:?}");
        assert_eq!(clients[1].receive(0, 9).into_iter().map(whole).next().as_ref(), Some(&sent));
        // What the receiver has released is shown when the worker has looked.
        let seen = iter::from_fn(|| {
            barrier(&bridge);
            Some(monitor.receive(0, 9))
        });
        let seen = seen.flatten().map(whole).next();
        assert_eq!(seen, Some(sent), "{mode:?}");
    }
}

/// Ports in different regions copy, although they are told to swap.
#[test]
fn regions_stay_apart() {
    let bridge = Bridge::start("vale-swap-apart").unwrap();
    let clients = [(); 2].map(|()| Client::new([1, 1], [8, 8], 0));
    clients.iter().for_each(|client| drop(client.attach_as(&bridge, swapping())));
    introduce(&bridge, &clients);
    let before = all_buffers(&clients);
    let sent = frame(mac(1), 0, 1514);
    send(&clients[0], &[&sent]);
    clients[0].drained(0);
    assert_eq!(all_buffers(&clients), before);
    assert_eq!(clients[1].receive(0, 9).into_iter().map(whole).next(), Some(sent));
}

/// Slots that name no buffer of the region, and one buffer in many slots.
#[test]
fn hostile_slots_harm_their_owner() {
    let bridge = Bridge::start("vale-swap-bad").unwrap();
    let clients: [Client; 2] = Client::neighbours([8, 8]);
    let counters: Vec<_> =
        clients.iter().map(|client| client.attach_as(&bridge, swapping()).1).collect();
    introduce(&bridge, &clients);
    let [a, b] = &clients;
    let bufs = a.region.layout().bufs.total;
    let view = b.rx[0].ring();
    for (n, index) in (1..).zip([bufs, u32::MAX]) {
        view.set_slot(view.head(), index, 0, 0);
        send(a, &[&frame(mac(1), 0, 1514)]);
        a.drained(0);
        barrier(&bridge);
        assert_eq!(counters[1].totals().drops.bad_slot, n, "the receiver's");
        assert!(b.receive(0, 9).is_empty());
    }
    view.set_slot(view.head(), 20, 0, 0);
    let sender = a.tx[0].ring();
    for (n, index) in (1..).zip([bufs, u32::MAX]) {
        let at = sender.head();
        sender.set_slot(at, index, 1514, 0);
        sender.set_head(sender.next(at));
        sender.set_cur(sender.next(at));
        a.tx_sync(0);
        a.drained(0);
        barrier(&bridge);
        assert_eq!(counters[0].totals().drops.bad_slot, n, "the sender's");
        sender.set_slot(at, 3, 0, 0);
    }
    for _ in 0..20 {
        let at = sender.head();
        sender.set_slot(at, 3, 1514, 0);
        send(a, &[&frame(mac(1), 0, 1514)]);
        a.drained(0);
        assert_eq!(b.receive(0, 9).len(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any traffic between three ports of one region and one of another: each receiver gets what a switch that
    /// copies would give it, and the buffers of the region are each in one slot.
    #[test]
    fn no_buffer_is_lost_or_doubled(
        chosen in [any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()],
        frames in prop::collection::vec(
            (0usize..4, prop_oneof![4 => 0u8..4, 1 => Just(9)], prop_oneof![60usize..2000, LONG - 2..LONG + 2],
             1usize..4), 1..60),
    ) {
        let bridge = Bridge::start("vale-swap-any").unwrap();
        let [a, b, c]: [Client; 3] = Client::neighbours([16, 64]);
        let clients = [a, b, c, Client::new([1, 1], [16, 64], 0)];
        for (client, swap_buffers) in clients.iter().zip(chosen) {
            client.attach_as(&bridge, PortConfig { swap_buffers, ..PortConfig::default() });
        }
        introduce(&bridge, &clients);
        let before: BTreeSet<u32> = all_buffers(&clients[..3]).into_iter().collect();
        let foreign = all_buffers(&clients[3..]);
        for (from, to, len, count) in frames {
            let sent = frame(if to == 9 { BROADCAST } else { mac(to) }, from as u8, len);
            let pieces: Vec<_> = sent.chunks(len.div_ceil(count)).collect();
            send(&clients[from], &pieces);
            clients[from].drained(0);
            barrier(&bridge);
            for (n, client) in clients.iter().enumerate() {
                let received: Vec<_> = client.receive(0, 99).into_iter().map(whole).collect();
                let is_for = n != from && (to == 9 || usize::from(to) == n);
                prop_assert_eq!(received, if is_for { vec![sent.clone()] } else { vec![] });
            }
        }
        let after = all_buffers(&clients[..3]);
        prop_assert_eq!(after.len(), before.len());
        prop_assert_eq!(after.into_iter().collect::<BTreeSet<u32>>(), before);
        prop_assert_eq!(all_buffers(&clients[3..]), foreign);
    }
}
