//! Filters of ports: which frames pass, against a model that has whole frames.

mod common;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use common::{BROADCAST, Client, barrier, bytes, header, mac};
use proptest::{collection::vec, prelude::*, sample::select};
use ringway_abi::NS_MOREFRAG;
use ringway_filter::{Insn, Program};
use ringway_vale::{Bridge, PortConfig, PortCounters, PortFilter, Vlan};

/// What a filter asks of a frame.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// So many bytes, from there, are this number.
    Has { at: u32, width: u32, value: u32 },
    /// It is longer.
    Longer(u32),
}

impl Rule {
    fn filter(self) -> Option<Arc<PortFilter>> {
        let insn = |code, jf, k| Insn { code, jt: 0, jf, k };
        let (load, test) = match self {
            Rule::Has { at, width, value } => {
                let code = [0x30, 0x28, 0x20][width as usize / 2];
                (insn(code, 0, at), insn(0x15, 1, value))
            }
            Rule::Longer(length) => (insn(0x80, 0, 0), insn(0x25, 1, length)),
        };
        let program = Program::new(vec![load, test, insn(6, 0, 1), insn(6, 0, 0)]).unwrap();
        Some(Arc::new(PortFilter { text: String::new(), program }))
    }

    fn matches(self, frame: &[u8]) -> bool {
        match self {
            Rule::Has { at, width, value } => {
                let bytes = frame.get(at as usize..(at + width) as usize);
                let number = |bytes: &[u8]| bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b));
                bytes.is_some_and(|bytes| number(bytes) == value)
            }
            Rule::Longer(length) => frame.len() > length as usize,
        }
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    // As the frames below have their bytes: most rules match some.
    let value = |at: u32, width| (0..width).fold(0, |n, i| n << 8 | (at + i) & 0xff);
    let has = (10u32..70, select(&[1u32, 2, 4]), any::<bool>(), 0u32..5).prop_map(
        move |(at, width, exact, shift)| Rule::Has {
            at,
            width,
            value: if exact { value(at, width) } else { value(at + shift, width) },
        },
    );
    let tag = (1u32..4).prop_map(|vid| Rule::Has { at: 14, width: 2, value: vid });
    prop_oneof![6 => has, 1 => tag, 1 => (30u32..80).prop_map(Rule::Longer)]
}

#[derive(Clone, Debug)]
struct Sent {
    length: usize,
    tag: Option<u8>,
    /// Where its slots begin.
    cuts: BTreeSet<usize>,
}

impl Sent {
    /// Each byte behind the addresses is its own place.
    fn bytes(&self) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..self.length).map(|at| at as u8).collect();
        frame[..14].copy_from_slice(&header(BROADCAST, mac(9)));
        if let Some(vid) = self.tag {
            frame[12..16].copy_from_slice(&[0x81, 0, 0, vid]);
        }
        frame
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let cuts = prop::collection::btree_set(20usize..70, 0..3);
    (18usize..80, prop::option::of(1u8..4), cuts).prop_map(|(length, tag, cuts)| Sent {
        length,
        tag,
        cuts,
    })
}

fn vlan() -> impl Strategy<Value = Vlan> {
    let trunk = |native| Vlan::Trunk { allowed: [1, 2, 3].into(), native };
    select(vec![Vlan::Unaware, Vlan::Access(1), Vlan::Access(2), trunk(None), trunk(Some(1))])
}

struct World {
    bridge: Bridge,
    clients: Vec<Client>,
    counters: Vec<Arc<PortCounters>>,
}

impl World {
    fn new(configs: Vec<PortConfig>) -> World {
        let bridge = Bridge::start("vale-access").unwrap();
        let clients: Vec<_> = configs.iter().map(|_| Client::new([1, 1], [64, 64], 0)).collect();
        let attach = |(client, config): (&Client, PortConfig)| client.attach_as(&bridge, config).1;
        let counters = clients.iter().zip(configs).map(attach).collect();
        World { bridge, clients, counters }
    }

    fn send(&self, from: usize, header_len: u8, sent: &Sent) {
        let mut bytes = vec![0; header_len.into()];
        bytes.extend(sent.bytes());
        let cuts = sent.cuts.iter().map(|cut| cut + usize::from(header_len));
        let mut at = 0;
        for end in cuts.filter(|cut| *cut < bytes.len()).chain([bytes.len()]) {
            let more = if end < bytes.len() { NS_MOREFRAG } else { 0 };
            self.clients[from].fill(0, &bytes[at..end], (end - at) as u16, more, None);
            at = end;
        }
        self.clients[from].tx_sync(0);
        self.clients[from].drained(0);
        barrier(&self.bridge);
    }

    fn received(&self, at: usize) -> Vec<Vec<u8>> {
        bytes(self.clients[at].receive(0, usize::MAX))
    }

    fn denied(&self, at: usize) -> u64 {
        self.counters[at].totals().drops.denied
    }
}

proptest! {
    /// Ports 1 and 2 are alike, but that the first has a filter for what it gets. So are 3 and 4, with headers.
    #[test]
    fn a_port_gets_what_its_filter_matches(
        rule in rule(),
        vlan in vlan(),
        from in vlan(),
        header_len in select(&[0u8, 10, 12]),
        frames in vec(sent(), 1..6),
    ) {
        let config = |header_len, vlan: &Vlan| PortConfig {
            header_len,
            vlan: vlan.clone(),
            ..PortConfig::default()
        };
        let filtered = |config| PortConfig { filter_out: rule.filter(), ..config };
        let world = World::new(vec![
            config(header_len, &from),
            filtered(config(0, &vlan)),
            config(0, &vlan),
            filtered(config(12, &vlan)),
            config(12, &vlan),
        ]);
        frames.iter().for_each(|sent| world.send(0, header_len, sent));
        for (at, begin) in [(1, 0), (3, 12)] {
            let all = world.received(at + 1);
            let expected: Vec<_> =
                all.iter().filter(|frame| rule.matches(&frame[begin..])).cloned().collect();
            prop_assert_eq!(world.denied(at), (all.len() - expected.len()) as u64);
            prop_assert_eq!(world.received(at), expected);
            prop_assert_eq!(world.denied(at + 1), 0);
        }
        prop_assert_eq!(world.denied(0), 0);
    }

    /// What it does not match is not learned either.
    #[test]
    fn a_port_sends_what_its_filter_matches(
        rule in rule(),
        header_len in select(&[0u8, 10, 12]),
        frames in vec(sent(), 1..6),
    ) {
        let world = World::new(vec![
            PortConfig { header_len, filter_in: rule.filter(), ..PortConfig::default() },
            PortConfig::default(),
        ]);
        frames.iter().for_each(|sent| world.send(0, header_len, sent));
        let all: Vec<_> = frames.iter().map(Sent::bytes).collect();
        let expected: Vec<_> = all.iter().filter(|frame| rule.matches(frame)).cloned().collect();
        let totals = world.counters[0].totals();
        prop_assert_eq!(totals.drops.denied, (all.len() - expected.len()) as u64);
        prop_assert_eq!(totals.sent_packets, all.len() as u64);
        prop_assert_eq!(totals.known, u64::from(!expected.is_empty()));
        prop_assert_eq!(world.received(1), expected);
    }
}

/// Another filter holds from the next frame on, and so does none.
#[test]
fn filters_come_and_go() {
    let world = World::new(vec![PortConfig::default(), PortConfig::default()]);
    let sent = Sent { length: 60, tag: None, cuts: BTreeSet::new() };
    let none = Rule::Longer(60).filter();
    let all = Rule::Longer(59).filter();
    for (filters, come) in [
        ([&None, &None], 1),
        ([&none, &None], 0),
        ([&all, &None], 1),
        ([&None, &none], 0),
        ([&all, &all], 1),
        ([&None, &None], 1),
    ] {
        let [filter_in, filter_out] = filters.map(Clone::clone);
        let with_in = PortConfig { filter_in, ..PortConfig::default() };
        let with_out = PortConfig { filter_out, ..PortConfig::default() };
        assert!(world.bridge.configure(0, with_in));
        assert!(world.bridge.configure(1, with_out));
        world.send(0, 0, &sent);
        assert_eq!(world.received(1).len(), come, "{filters:?}");
    }
    assert_eq!([world.denied(0), world.denied(1)], [1, 1]);
}

/// A sender that changes its frames while they are on their way: what a filter has let pass is what arrives.
#[test]
fn what_is_looked_at_is_what_arrives() {
    const FRAMES: usize = 20_000;
    const AT: usize = 40;
    let rule = Rule::Has { at: AT as u32, width: 1, value: 1 };
    for (filter_in, filter_out) in [(rule.filter(), None), (None, rule.filter())] {
        let world = World::new(vec![
            PortConfig { filter_in, ..PortConfig::default() },
            PortConfig { filter_out, ..PortConfig::default() },
        ]);
        let (stop, region) = (AtomicBool::new(false), world.clients[0].region.clone());
        let (come, other) = thread::scope(|scope| {
            scope.spawn(|| {
                // All buffers of the sending ring.
                let bufs: Vec<_> = (2..66).map(|index| region.buf(index).unwrap()).collect();
                while !stop.load(Relaxed) {
                    for value in [1, 2] {
                        bufs.iter().for_each(|buf| {
                            buf.write(AT, &[value]);
                        });
                    }
                }
            });
            let mut frame = header(BROADCAST, mac(1)).to_vec();
            frame.resize(60, 1);
            let (mut come, mut other) = (0, 0);
            for _ in 0..FRAMES / 32 {
                for _ in 0..32 {
                    world.clients[0].fill(0, &frame, 60, 0, None);
                }
                world.clients[0].tx_sync(0);
                world.clients[0].drained(0);
                for received in world.received(1) {
                    come += 1;
                    other += usize::from(received[AT] != 1);
                }
            }
            stop.store(true, Relaxed);
            (come, other)
        });
        assert!(come > 0, "none has passed");
        assert_eq!(other, 0, "of {come}");
    }
}
