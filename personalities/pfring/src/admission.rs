//! Which packets a ring takes, and what is read of each.
//!
//! ```text
//!   a packet --> VLAN --> share of the cluster --> rules --> sampling --> channels --> the program
//! ```
//!
//! Direction and BPF come before, where the packets come from.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use ringway_capture::abi::pcap_pkthdr;

use crate::{
    abi::*,
    bounce::Bounced,
    cluster::Member,
    hash::default_hash,
    parse,
    ring::{Ring, lock},
    rules::{Looked, Outlet, Rules},
    sampling::{Random, Sampling},
    source::Source,
};

/// What a program has asked for; all of it can change at any time.
pub struct Admission {
    /// Anything but a look at the direction and BPF.
    pub is_asked: AtomicBool,
    vlan: AtomicU64,
    channels: AtomicU64,
    sampling: Mutex<Sampling>,
    pub rules: Mutex<Rules>,
    pub has_rules: AtomicBool,
    pub cluster: Mutex<Option<Member>>,
    /// Packets that went out by a rule, and that did not.
    pub forwarded: AtomicU64,
    pub not_forwarded: AtomicU64,
}

/// No VLAN is asked for.
const ANY: u64 = u64::MAX;

impl Admission {
    pub fn new(sources: &[Source]) -> Admission {
        let plain = |source: &Source| source.vlan.is_none() && source.channels == u64::MAX;
        Admission {
            is_asked: AtomicBool::new(!sources.iter().all(plain)),
            vlan: AtomicU64::new(ANY),
            channels: AtomicU64::new(u64::MAX),
            sampling: Mutex::new(Sampling::new(0)),
            rules: Mutex::default(),
            has_rules: AtomicBool::new(false),
            cluster: Mutex::default(),
            forwarded: AtomicU64::new(0),
            not_forwarded: AtomicU64::new(0),
        }
    }

    pub fn set_vlan(&self, vlan: u16) {
        self.vlan.store(if vlan == ANY_VLAN { ANY } else { vlan.into() }, Relaxed);
        self.is_asked.store(true, Relaxed);
    }

    pub fn set_channels(&self, mask: u64) {
        self.channels.store(mask, Relaxed);
        self.is_asked.store(true, Relaxed);
    }

    /// Changes the rules.
    pub fn change<T>(&self, change: impl FnOnce(&mut Rules) -> T) -> T {
        let result = change(&mut lock(&self.rules));
        self.has_rules.store(true, Relaxed);
        self.is_asked.store(true, Relaxed);
        result
    }

    /// Becomes a member, or none.
    pub fn set_member(&self, member: Option<Member>) {
        *lock(&self.cluster) = member;
        self.is_asked.store(true, Relaxed);
    }

    pub fn set_sampling(&self, rate: u32) {
        *lock(&self.sampling) = Sampling::new(rate);
        self.is_asked.store(true, Relaxed);
    }
}

/// What belongs to the thread that reads.
pub struct Reader {
    /// A packet that was looked at and not taken.
    pub kept: Option<Held>,
    /// The source that is asked first, of several.
    pub turn: usize,
    /// The last one that the program got, for bounces.
    pub last: Option<Held>,
    pub bounced: Option<Bounced>,
    /// Devices that packets were bounced to.
    pub outlets: Vec<(i32, Outlet)>,
    /// A packet that rules look at.
    bytes: Vec<u8>,
    random: Random,
}

/// A packet that lies where it came, until the next is read from its source.
#[derive(Clone, Copy)]
pub struct Held {
    pub header: pfring_pkthdr,
    pub data: *const u8,
}

// SAFETY: an address of memory that is mapped as long as the ring is open; the ring's lock says whose turn it is.
unsafe impl Send for Held {}

impl Held {
    /// A copy of what was captured.
    pub fn bytes(&self) -> Vec<u8> {
        let count = self.header.caplen as usize;
        let mut bytes = vec![0; count];
        // SAFETY: so many bytes were captured there, and it stays until the next packet is read.
        unsafe { std::ptr::copy_nonoverlapping(self.data, bytes.as_mut_ptr(), count) };
        bytes
    }
}

impl Reader {
    pub fn new(seed: u32) -> Reader {
        Reader {
            kept: None,
            turn: 0,
            last: None,
            bounced: None,
            outlets: Vec::new(),
            bytes: Vec::new(),
            random: Random::new(seed),
        }
    }
}

impl Ring {
    /// The header of a packet, if the ring takes it.
    #[inline]
    pub fn admit(
        &self,
        reader: &mut Reader,
        source: &Source,
        header: &pcap_pkthdr,
        data: *const u8,
    ) -> Option<pfring_pkthdr> {
        let mut full = pfring_pkthdr {
            tv_sec: header.seconds,
            tv_usec: header.fraction / 1000,
            caplen: header.caplen.min(self.caplen),
            len: header.len,
            timestamp_ns: (header.seconds as u64)
                .wrapping_mul(1_000_000_000)
                .wrapping_add(header.fraction as u64),
            rx_direction: (self.direction.load(Relaxed) != TX_ONLY).into(),
            if_index: source.index,
            bounce_interface: UNKNOWN_INTERFACE,
            ..Default::default()
        };
        if self.is_long() || self.admission.is_asked.load(Relaxed) {
            self.look_closer(reader, source, &mut full, header.caplen, data)?;
        }
        Some(full)
    }

    #[inline(never)]
    fn look_closer(
        &self,
        reader: &mut Reader,
        source: &Source,
        full: &mut pfring_pkthdr,
        captured: u32,
        data: *const u8,
    ) -> Option<()> {
        let mut window = [0; ringway_flow::PARSED_BYTES];
        let count = window.len().min(captured as usize);
        // Other processes may change it where it is.
        // SAFETY: so many bytes were captured there; volatile reads of what others write are what they are.
        unsafe { std::ptr::copy_nonoverlapping(data, window.as_mut_ptr(), count) };
        let (info, flags) = parse::capture(&window[..count]);
        full.flags |= flags;
        full.parsed_pkt = info;
        full.pkt_hash = default_hash(&info);
        let has_vlan = |vlan: u16| match vlan {
            0 => info.offset.vlan == 0,
            id => id == info.vlan_id || id == info.qinq_vlan_id,
        };
        let vlan = self.admission.vlan.load(Relaxed);
        if vlan != ANY && !has_vlan(vlan as u16) || source.vlan.is_some_and(|id| !has_vlan(id)) {
            return None;
        }
        if lock(&self.admission.cluster)
            .as_mut()
            .is_some_and(|member| !member.takes(&window[..count]))
        {
            return None;
        }
        if self.admission.has_rules.load(Relaxed) && !self.judge(reader, full, captured, data) {
            return None;
        }
        let random = &mut reader.random;
        if !lock(&self.admission.sampling).takes(|rate| random.below(rate)) {
            return None;
        }
        let mask = self.admission.channels.load(Relaxed) & source.channels;
        if mask != u64::MAX && mask & (1 << self.channel(source, full.pkt_hash)) == 0 {
            return None;
        }
        Some(())
    }

    /// Whether the rules take a packet; does what else they say.
    fn judge(
        &self,
        reader: &mut Reader,
        full: &mut pfring_pkthdr,
        captured: u32,
        data: *const u8,
    ) -> bool {
        let bytes = &mut reader.bytes;
        bytes.resize(captured as usize, 0);
        // SAFETY: so many bytes were captured there; what others write meanwhile is copied as it is.
        unsafe { std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr(), bytes.len()) };
        let info = full.parsed_pkt;
        let verdict = lock(&self.admission.rules).judge(&Looked {
            info: &info,
            if_index: full.if_index,
            bytes,
            now: Instant::now(),
        });
        full.parsed_pkt.last_matched_rule_id = verdict.rule_id.map_or(0xffff, i32::from);
        for transmission in verdict.transmissions {
            if transmission.bounce && bytes.len() >= 12 {
                let (destination, source) = bytes.split_at_mut(6);
                destination.swap_with_slice(&mut source[..6]);
            }
            let sent =
                transmission.outlet.is_some_and(|outlet| outlet.send(&self.sources, bytes).is_ok());
            let counter =
                if sent { &self.admission.forwarded } else { &self.admission.not_forwarded };
            counter.fetch_add(1, Relaxed);
        }
        verdict.takes
    }

    /// The queue that a packet came by.
    fn channel(&self, source: &Source, hash: u32) -> u32 {
        match self.rehashes.load(Relaxed) {
            true => hash % u32::from(source.queues),
            false => 0,
        }
    }
}
