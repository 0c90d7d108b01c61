//! VLANs, against a model that works on whole frames: who receives what, with which tag, and
//! what is counted.

mod common;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use common::{BROADCAST, Client, barrier, bytes, header, mac};
use proptest::{collection::vec, prelude::*, sample::select};
use ringway_abi::NS_MOREFRAG;
use ringway_vale::{Bridge, PortConfig, PortCounters, Vlan};

const PORTS: usize = 5;
const VIDS: [u16; 4] = [1, 2, 300, 4094];

fn vlan() -> impl Strategy<Value = Vlan> {
    let vid = || select(&VIDS);
    let trunk = (prop::collection::btree_set(vid(), 0..4), prop::option::of(vid()));
    prop_oneof![
        1 => Just(Vlan::Unaware),
        2 => vid().prop_map(Vlan::Access),
        2 => trunk.prop_map(|(allowed, native)| Vlan::Trunk { allowed, native }),
    ]
}

#[derive(Clone, Debug)]
enum Op {
    Send { from: usize, dst: u8, tags: Vec<u16>, len: usize, cut: usize },
    Configure { port: usize, vlan: Vlan },
}

fn op() -> impl Strategy<Value = Op> {
    // Priority and drop eligibility above the number.
    let vid = prop_oneof![8 => select(&VIDS), 1 => Just(0), 1 => Just(4095)];
    let tci = (vid, 0u16..16).prop_map(|(vid, priority)| priority << 12 | vid);
    let send = (0..PORTS, 0..PORTS as u8 + 1, vec(tci, 0..3), 0usize..100, 14usize..60);
    prop_oneof![
        20 => send.prop_map(|(from, dst, tags, len, cut)| Op::Send { from, dst, tags, len, cut }),
        1 => (0..PORTS, vlan()).prop_map(|(port, vlan)| Op::Configure { port, vlan }),
    ]
}

/// The first tag, if there is one.
fn tci(frame: &[u8]) -> Option<u16> {
    (frame.get(12..14)? == [0x81, 0]).then(|| u16::from_be_bytes([frame[14], frame[15]]))
}

/// The VLAN of a frame that comes from such a port, unless it must not.
fn ingress(vlan: &Vlan, frame: &[u8]) -> Option<u16> {
    match (vlan, tci(frame).unwrap_or(0) & 0xfff) {
        (_, 4095) => None,
        (Vlan::Unaware, vid) => Some(vid),
        (Vlan::Access(own), 0) => Some(*own),
        (Vlan::Access(_), _) => None,
        (Vlan::Trunk { native, .. }, 0) => *native,
        (Vlan::Trunk { allowed, .. }, vid) => allowed.contains(&vid).then_some(vid),
    }
}

/// Whether a port receives the frames of a VLAN with their tags, if it does at all.
fn egress(vlan: &Vlan, vid: u16) -> Option<bool> {
    match vlan {
        Vlan::Unaware => Some(vid != 0),
        Vlan::Access(own) => (vid == *own).then_some(false),
        Vlan::Trunk { native, .. } if *native == Some(vid) => Some(false),
        Vlan::Trunk { allowed, .. } => allowed.contains(&vid).then_some(true),
    }
}

/// The frame as it arrives, unless it must not.
fn dressed(frame: &[u8], vid: u16, tagged: bool) -> Option<Vec<u8>> {
    let mut frame = frame.to_vec();
    match (tagged, tci(&frame)) {
        (true, None) => {
            frame.splice(12..12, [0x81, 0, (vid >> 8) as u8, vid as u8]);
        }
        (true, Some(tci)) => {
            let named = tci & 0xf000 | vid;
            frame.splice(14..16, named.to_be_bytes());
        }
        (false, Some(_)) if vid != 0 => {
            frame.drain(12..16);
            return self::tci(&frame).is_none().then_some(frame);
        }
        (false, _) => {}
    }
    Some(frame)
}

struct World {
    bridge: Bridge,
    clients: Vec<Client>,
    counters: Vec<Arc<PortCounters>>,
    vlans: Vec<Vlan>,
    /// Where an address of a VLAN is.
    table: HashMap<([u8; 6], u16), usize>,
    drops: Vec<u64>,
}

impl World {
    fn new(vlans: Vec<Vlan>) -> World {
        let bridge = Bridge::start("vale-vlan").unwrap();
        let clients: Vec<_> = vlans.iter().map(|_| Client::new([1, 1], [64, 64], 0)).collect();
        let config = |vlan: &Vlan| PortConfig { vlan: vlan.clone(), ..PortConfig::default() };
        let attach = |(client, vlan): (&Client, _)| client.attach_as(&bridge, config(vlan)).1;
        let counters = clients.iter().zip(&vlans).map(attach).collect();
        let (table, drops) = (HashMap::new(), vec![0; vlans.len()]);
        World { bridge, clients, counters, vlans, table, drops }
    }

    fn configure(&mut self, port: usize, vlan: Vlan) {
        let config = PortConfig { vlan: vlan.clone(), ..PortConfig::default() };
        assert!(self.bridge.configure(port as u8, config));
        if std::mem::replace(&mut self.vlans[port], vlan.clone()) != vlan {
            self.table.retain(|_, at| *at != port);
        }
    }

    /// Sends a frame, in two slots if it is longer than `cut`; returns who receives what.
    fn send(&self, from: usize, frame: &[u8], cut: usize) -> Vec<Vec<Vec<u8>>> {
        let (first, second) = frame.split_at(cut.min(frame.len()));
        let more = if second.is_empty() { 0 } else { NS_MOREFRAG };
        let client = &self.clients[from];
        client.fill(0, first, first.len() as u16, more, None);
        if more != 0 {
            client.fill(0, second, second.len() as u16, 0, None);
        }
        client.tx_sync(0);
        client.drained(0);
        barrier(&self.bridge);
        self.clients.iter().map(|client| bytes(client.receive(0, usize::MAX))).collect()
    }

    /// What is to be received.
    fn model(&mut self, from: usize, frame: &[u8], cut: usize) -> Vec<Vec<Vec<u8>>> {
        let mut received = vec![vec![]; self.vlans.len()];
        // Nobody looks at tags where no port is told about VLANs.
        let matters = self.vlans.iter().any(|vlan| *vlan != Vlan::Unaware);
        let whole = tci(frame).is_none() || cut.min(frame.len()) >= 18;
        let vid =
            if matters { ingress(&self.vlans[from], frame).filter(|_| whole) } else { Some(0) };
        let Some(vid) = vid else {
            self.drops[from] += 1;
            return received;
        };
        let address = |at: usize| <[u8; 6]>::try_from(&frame[at..at + 6]).unwrap();
        self.table.insert((address(6), vid), from);
        let known = self.table.get(&(address(0), vid)).copied();
        for to in (0..self.vlans.len()).filter(|to| *to != from && known.is_none_or(|k| k == *to)) {
            let Some(tagged) = egress(&self.vlans[to], vid) else { continue };
            match if matters { dressed(frame, vid, tagged) } else { Some(frame.to_vec()) } {
                Some(frame) => received[to].push(frame),
                None => self.drops[to] += 1,
            }
        }
        received
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn frames_stay_in_their_vlans(vlans in vec(vlan(), PORTS), ops in vec(op(), 1..40)) {
        let mut world = World::new(vlans);
        for op in ops {
            match op {
                Op::Configure { port, vlan } => world.configure(port, vlan),
                Op::Send { from, dst, tags, len, cut } => {
                    let dst = if usize::from(dst) < PORTS { mac(dst) } else { BROADCAST };
                    let mut frame = [dst, mac(from as u8)].concat();
                    for tci in tags {
                        frame.extend([&[0x81, 0], &tci.to_be_bytes()[..]].concat());
                    }
                    frame.extend([0x12, 0x34]);
                    frame.extend((0..len).map(|i| i as u8));
                    let expected = world.model(from, &frame, cut);
                    prop_assert_eq!(world.send(from, &frame, cut), expected);
                }
            }
            for (counters, drops) in world.counters.iter().zip(&world.drops) {
                prop_assert_eq!(counters.totals().drops.vlan, *drops);
            }
        }
    }
}

fn trunk(allowed: &[u16], native: Option<u16>) -> Vlan {
    Vlan::Trunk { allowed: allowed.iter().copied().collect::<BTreeSet<_>>(), native }
}

/// The whole way, by hand: access to trunk to access, and no way into another VLAN.
#[test]
fn a_tag_comes_on_and_goes_off() {
    let world = World::new(vec![
        Vlan::Access(10),
        trunk(&[10, 20], None),
        Vlan::Access(20),
        Vlan::Access(10),
    ]);
    let plain = [&header(BROADCAST, mac(0))[..], &[1, 2, 3]].concat();
    let tagged = |tci: u16| {
        let mut frame = plain.clone();
        frame.splice(12..12, [0x81, 0, (tci >> 8) as u8, tci as u8]);
        frame
    };
    let none = Vec::<Vec<u8>>::new;
    assert_eq!(world.send(0, &plain, 99), [none(), vec![tagged(10)], none(), vec![plain.clone()]]);
    // Priority 5 stays where there is a tag to carry it.
    let urgent = world.send(0, &tagged(0xa000), 99);
    assert_eq!(urgent[1], [tagged(0xa00a)]);
    assert_eq!(world.send(1, &tagged(0xa014), 99), [none(), none(), vec![plain.clone()], none()]);
    // A tag of one's own is no way into another VLAN.
    assert_eq!(world.send(0, &tagged(20), 99).concat(), none());
    assert_eq!(world.counters[0].totals().drops.vlan, 1);
}

/// The longest frame has no room for a tag (S-SYNC-9).
#[test]
fn a_frame_that_does_not_fit_with_its_tag_is_lost() {
    let world = World::new(vec![Vlan::Access(10), trunk(&[10], None)]);
    let mut frame = header(BROADCAST, mac(0)).to_vec();
    frame.resize(2044, 7);
    assert_eq!(world.send(0, &frame, 9999)[1][0].len(), 2048);
    frame.push(7);
    assert!(world.send(0, &frame, 9999)[1].is_empty());
    assert_eq!(world.counters[1].totals().drops.too_long, 1);
}
