//! Any bytes, anywhere in the memory of two hostile ports, while a bridge serves them: its worker
//! comes to rest, nobody touches what is not his to touch, and of an honest port's memory nothing
//! changes but the slots that it receives in.
//!
//! The input is a list of records of 16 bytes. Each is something that a hostile program does to
//! its rings, slots, buffers or control blocks; or that the registry has the worker do. The first
//! says how large the buffers are.
#![no_main]

#[path = "slots/guard.rs"]
mod guard;
#[path = "slots/honest.rs"]
mod honest;
#[path = "slots/program.rs"]
mod program;
#[path = "slots/scribble.rs"]
mod scribble;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use libfuzzer_sys::fuzz_target;
use ringway_abi::Dir;
use ringway_filter::{Insn, Program as FilterProgram};
use ringway_kring::Offsets;
use ringway_vale::{
    Clock, FloodLimit, Forwarding, Lossless, PortConfig, PortFilter, RateLimit, SourceAddresses,
    StaticAddress, SteppedBridge, Vlan,
};

use crate::{honest::Honest, program::Program};

/// Rounds after which a worker has nothing more to do, as long as nobody does anything: where senders wait for
/// a lossless port in turn, a round may move no more than one packet, and to one of three ports.
const ENOUGH: usize = 3 * 2 * program::SENT as usize;
/// Records looked at, so that an input ends soon.
const LONGEST: usize = 256;

#[derive(Clone, Copy)]
struct Record {
    what: u8,
    port: u8,
    ring: u8,
    at: u8,
    number: u32,
    word: u64,
}

impl Record {
    fn read(bytes: &[u8; 16]) -> Record {
        let [what, port, ring, at, a, b, c, d, word @ ..] = *bytes;
        let (number, word) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(word));
        Record { what, port, ring, at, number, word }
    }

    fn dir(&self) -> Dir {
        if self.ring & 1 == 0 { Dir::Tx } else { Dir::Rx }
    }

    /// Offsets as the registry grants them, in buffers of `size` bytes.
    fn offsets(&self, size: u32) -> Option<Offsets> {
        let mask = u64::MAX >> (self.at & 63);
        let max = (self.number % (size + 1)).min(mask as u32);
        (self.word & 1 == 0).then_some(Offsets { mask, max, gap: (self.word >> 32) as u32 })
    }

    fn config(&self) -> PortConfig {
        let vid = |word: u64| (word % 4094) as u16 + 1;
        let vlan = match self.word & 3 {
            0 | 1 => Vlan::Unaware,
            2 => Vlan::Access(vid(self.word >> 2)),
            _ => Vlan::Trunk {
                allowed: (0..4).map(|i| vid(self.word >> (12 * i))).collect(),
                native: (self.word & 4 != 0).then_some(vid(self.word >> 40)),
            },
        };
        let lossless = (self.ring & 1 != 0).then_some(Lossless { patience_ms: self.number >> 16 });
        PortConfig {
            header_len: [0, 10, 12][usize::from(self.at) % 3],
            max_frame: self.number & 0xffff,
            vlan,
            lossless,
            sources: match self.ring & 6 {
                2 => SourceAddresses::One,
                4 => SourceAddresses::Only(vec![[2, 0, 0, 0, 0, self.at]]),
                _ => SourceAddresses::Any,
            },
            is_interface: self.ring & 8 != 0,
            leads_on: self.ring & 16 != 0,
            group_forward: self.number as u16,
            multicast_router: self.at & 2 != 0,
            unblocked: (self.word >> 56) as u32,
            is_down: self.ring & 32 != 0,
            isolated: self.ring & 64 != 0,
            swap_buffers: self.at & 4 != 0,
            filter_in: (self.at & 16 != 0).then(|| self.filter()),
            filter_out: (self.at & 32 != 0).then(|| self.filter()),
            max_addresses: (self.at & 8 != 0).then_some(1 + u16::from(self.at >> 4)),
            rate: (self.ring & 128 != 0).then_some(RateLimit {
                bits_per_second: self.word >> 20,
                burst_bytes: self.number.into(),
            }),
            storm: (self.at & 4 != 0).then_some(self.number >> 8),
            storm_kinds: [1, 2, 64].map(|bit| {
                (self.at & bit != 0).then_some(FloodLimit {
                    frames_per_second: self.number >> 16,
                    burst_frames: self.number & 0xffff,
                })
            }),
        }
    }

    /// Of frames that have a bit of this number at a place.
    fn filter(&self) -> Arc<PortFilter> {
        let insn = |code, jf, k| Insn { code, jt: 0, jf, k };
        let load = insn(0x30, 0, u32::from(self.ring));
        let test = insn(0x45, 1, self.number & 0xff);
        let insns = vec![load, test, insn(6, 0, 1), insn(6, 0, 0)];
        let program = FilterProgram::new(insns).expect("it ends");
        Arc::new(PortFilter { text: String::new(), program })
    }

    fn static_address(&self) -> StaticAddress {
        StaticAddress { mac: program::mac(self.port), vlan: 0, port: self.ring }
    }

    fn forwarding(&self) -> Forwarding {
        match self.at & 3 {
            0 => Forwarding::Learning { ageing_seconds: self.number },
            1 => Forwarding::Static {
                addresses: vec![(program::mac(self.port), self.ring)],
                flood_unknown: self.word & 1 != 0,
            },
            2 => Forwarding::Hash { over: vec![self.ring, self.port], back: Some(2) },
            _ => Forwarding::Flood,
        }
    }
}

fn run(bytes: &[u8]) {
    let time = Arc::new(AtomicU64::new(0));
    let clock = time.clone();
    let clock = Clock::new(move || clock.load(Relaxed));
    let mut bridge = SteppedBridge::new(&Forwarding::default(), clock).unwrap();
    let mut records = bytes.as_chunks().0.iter().take(LONGEST).map(Record::read);
    let Some(first) = records.next() else { return };
    let mut hostile = [first.at, first.port].map(|which| Program::new(which, first.ring));
    let mut honest = Honest::new();
    for port in [hostile[0].port(), hostile[1].port(), honest.port()] {
        bridge.attach(port, PortConfig::default()).unwrap();
    }

    for record in records {
        let index = record.port % 2;
        let program = &mut hostile[usize::from(index)];
        match record.what % 16 {
            0 => program.scribble(&record),
            1 => program.set_slot(&record),
            2 => program.set_bytes(&record),
            3 => program.publish(&record),
            4 | 5 => program.send(&record),
            6 => drop(bridge.round()),
            7 => assert!(!(0..ENOUGH).all(|_| bridge.round()), "the worker goes on and on"),
            8 => bridge.flush_idle(),
            9 => drop(time.fetch_add(u64::from(record.number) % 5000, Relaxed)),
            10 => drop(bridge.configure(record.port % 3, record.config())),
            11 => {
                let offsets = record.offsets(program.data_size());
                bridge.set_offsets(index, record.dir(), usize::from(record.ring >> 1), offsets);
            }
            12 => bridge.set_mirrors(index, program.mirrors(&record)),
            13 => program.sync(&record),
            14 => honest.release(record.at),
            _ => {
                bridge.set_forwarding(&record.forwarding());
                if record.word & 2 != 0 {
                    bridge.set_static_addresses(vec![record.static_address()]);
                }
            }
        }
    }
    (0..3).for_each(|index| drop(bridge.detach(index)));
    honest.check();
}

fuzz_target!(|bytes: &[u8]| run(bytes));
