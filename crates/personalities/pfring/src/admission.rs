//! Which packets a ring takes, and what is read of each.
//!
//! ```text
//!   a packet --> share of the cluster --> VLAN --> rules --> sampling --> channels --> the program
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

use ringway_live_capture::{Checksum, Direction, Metadata, abi::pcap_pkthdr};

use crate::{
    abi::*,
    bounce::Bounced,
    cluster::Member,
    hash::default_hash,
    parse,
    ring::{Ring, lock, try_lock},
    rules::{Looked, Outlet, Rules},
    sampling::{Random, Sampling},
    source::Source,
};

/// What a program has asked for; all of it can change at any time.
pub struct Admission {
    /// Anything but a short header, and a look at the direction and BPF.
    pub is_asked: AtomicBool,
    vlan: AtomicU64,
    channels: AtomicU64,
    sampling: Mutex<Sampling>,
    pub rules: Mutex<Rules>,
    pub has_rules: AtomicBool,
    pub cluster: Mutex<Option<Member>>,
    /// A member that takes its share of all packets.
    has_member: AtomicBool,
    samples: AtomicBool,
    /// Packets that went out by a rule or the reflector, and that did not.
    pub forwarded: AtomicU64,
    pub not_forwarded: AtomicU64,
}

/// No VLAN is asked for.
const ANY: u64 = u64::MAX;

impl Admission {
    /// With long headers, a ring looks at each packet.
    pub fn new(sources: &[Source], is_long: bool) -> Admission {
        let plain = |source: &Source| source.vlan.is_none() && source.channels == u64::MAX;
        Admission {
            is_asked: AtomicBool::new(is_long || !sources.iter().all(plain)),
            vlan: AtomicU64::new(ANY),
            channels: AtomicU64::new(u64::MAX),
            sampling: Mutex::new(Sampling::new(0)),
            rules: Mutex::default(),
            has_rules: AtomicBool::new(false),
            cluster: Mutex::default(),
            has_member: AtomicBool::new(false),
            samples: AtomicBool::new(false),
            forwarded: AtomicU64::new(0),
            not_forwarded: AtomicU64::new(0),
        }
    }

    pub fn set_vlan(&self, vlan: u16) {
        self.vlan.store(if vlan == ANY_VLAN { ANY } else { vlan.into() }, Relaxed);
        self.is_asked.store(true, Relaxed);
    }

    pub fn vlan(&self) -> Option<u64> {
        Some(self.vlan.load(Relaxed)).filter(|vlan| *vlan != ANY)
    }

    pub fn channels(&self) -> u64 {
        self.channels.load(Relaxed)
    }

    pub fn sampling_rate(&self) -> Option<u32> {
        try_lock(&self.sampling).map(|sampling| sampling.rate())
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
        let takes = member.as_ref().is_some_and(|member| !member.is_shared_out);
        self.has_member.store(takes, Relaxed);
        *lock(&self.cluster) = member;
        if takes {
            self.is_asked.store(true, Relaxed);
        }
    }

    /// Is none any more.
    pub fn take_member(&self) -> Option<Member> {
        self.has_member.store(false, Relaxed);
        lock(&self.cluster).take()
    }

    /// Counts a packet that was to go out by a rule, or by the reflector.
    pub fn count_forwarded(&self, sent: bool) {
        let counter = if sent { &self.forwarded } else { &self.not_forwarded };
        counter.fetch_add(1, Relaxed);
    }

    pub fn set_sampling(&self, rate: u32) {
        *lock(&self.sampling) = Sampling::new(rate);
        self.samples.store(rate > 1, Relaxed);
        self.is_asked.store(true, Relaxed);
    }
}

/// What belongs to the thread that reads.
pub struct Reader {
    /// Of the packet that was read last; its end is as it was where headers are short.
    pub header: pfring_pkthdr,
    /// Bytes that there are of it, of which the program gets as many as it has asked for.
    pub captured: u32,
    /// A packet that was looked at and not taken.
    pub kept: Option<Place>,
    /// The source that it is of.
    pub kept_of: usize,
    /// The packet that the program got last, for bounces.
    pub last: Option<Place>,
    /// The source that is asked first, of several.
    pub turn: usize,
    pub bounced: Option<Bounced>,
    /// Devices that packets were bounced to.
    pub outlets: Vec<(i32, Outlet)>,
    /// A packet that rules look at, and what was read of it for a short header.
    bytes: Vec<u8>,
    parsed: pkt_parsing_info,
    random: Random,
}

/// Where a packet lies, until the next is read from its source.
#[derive(Clone, Copy)]
pub struct Place(pub *const u8);

// SAFETY: an address of memory that is mapped as long as the ring is open; the ring's lock says whose turn it is.
unsafe impl Send for Place {}

impl Place {
    /// A copy of what was captured: so many bytes.
    pub fn bytes(self, count: u32) -> Vec<u8> {
        let mut bytes = vec![0; count as usize];
        // SAFETY: so many bytes were captured there, and it stays until the next packet is read.
        unsafe { std::ptr::copy_nonoverlapping(self.0, bytes.as_mut_ptr(), bytes.len()) };
        bytes
    }
}

impl Reader {
    pub fn new(seed: u32) -> Reader {
        Reader {
            header: pfring_pkthdr::default(),
            captured: 0,
            kept: None,
            kept_of: 0,
            last: None,
            turn: 0,
            bounced: None,
            outlets: Vec::new(),
            bytes: Vec::new(),
            parsed: pkt_parsing_info::default(),
            random: Random::new(seed),
        }
    }
}

impl Ring {
    /// Whether the ring takes a packet, whose header is the reader's then.
    #[inline]
    pub fn admit(
        &self,
        reader: &mut Reader,
        source: &Source,
        header: &pcap_pkthdr,
        data: *const u8,
        metadata: Metadata,
    ) -> bool {
        reader.captured = header.caplen;
        let full = &mut reader.header;
        let seconds = (header.seconds as u64).wrapping_mul(1_000_000_000);
        let time = seconds.wrapping_add(header.fraction as u64);
        // Packets that were found at once have one time.
        if { full.timestamp_ns } != time {
            full.timestamp_ns = time;
            full.tv_sec = header.seconds;
            full.tv_usec = header.fraction / 1000;
        }
        full.caplen = header.caplen.min(self.caplen);
        full.len = header.len;
        full.flags = 0;
        full.rx_direction = (metadata.direction == Direction::In).into();
        full.if_index = source.index;
        full.pkt_hash = 0;
        if self.admission.is_asked.load(Relaxed) {
            return self.look_closer(reader, source, header.caplen, data, metadata).is_some();
        }
        true
    }

    #[inline(never)]
    fn look_closer(
        &self,
        reader: &mut Reader,
        source: &Source,
        captured: u32,
        data: *const u8,
        metadata: Metadata,
    ) -> Option<()> {
        let mut window = [0; ringway_flow::PARSED_BYTES];
        let count = window.len().min(captured as usize);
        // Other processes may change it where it is.
        // SAFETY: so many bytes were captured there; what others write meanwhile is copied as it is.
        unsafe { std::ptr::copy_nonoverlapping(data, window.as_mut_ptr(), count) };
        let asked = &self.admission;
        let time = reader.header.timestamp_ns;
        // First: most packets of a cluster are other members', and cost no more than this.
        if asked.has_member.load(Relaxed)
            && lock(&asked.cluster)
                .as_mut()
                .is_some_and(|member| !member.takes(&window[..count], time))
        {
            return None;
        }
        let vlan = asked.vlan.load(Relaxed);
        let mask = asked.channels.load(Relaxed) & source.channels;
        let has_rules = asked.has_rules.load(Relaxed);
        let of_vlan = vlan != ANY || source.vlan.is_some();
        if !(self.is_long() || of_vlan || has_rules || mask != u64::MAX) {
            return self.is_sampled(&mut reader.random).then_some(());
        }
        let Reader { header: full, parsed, bytes, random, .. } = reader;
        // Where headers are short, their end stays as it was.
        let info = if self.is_long() { &mut full.parsed_pkt } else { parsed };
        let flags = parse::capture(&window[..count], info);
        let has_vlan = |vlan: u16| match vlan {
            0 => info.offset.vlan == 0,
            id => id == info.vlan_id || id == info.qinq_vlan_id,
        };
        if vlan != ANY && !has_vlan(vlan as u16) || source.vlan.is_some_and(|id| !has_vlan(id)) {
            return None;
        }
        if has_rules && !self.judge(bytes, info, source.index, (data, captured, full.len))
            || !self.is_sampled(random)
        {
            return None;
        }
        let hash = default_hash(info);
        if mask != u64::MAX && mask & (1 << self.channel(source, hash)) == 0 {
            return None;
        }
        if self.is_long() {
            (full.flags, full.pkt_hash) = (flags | flags_of(metadata), hash);
            full.bounce_interface = UNKNOWN_INTERFACE;
        }
        Some(())
    }

    /// Whether a packet is one of the sample.
    fn is_sampled(&self, random: &mut Random) -> bool {
        let asked = &self.admission;
        !asked.samples.load(Relaxed) || lock(&asked.sampling).takes(|rate| random.below(rate))
    }

    /// Whether the rules take a packet; does what else they say.
    fn judge(
        &self,
        bytes: &mut Vec<u8>,
        info: &mut pkt_parsing_info,
        if_index: i32,
        (data, captured, length): (*const u8, u32, u32),
    ) -> bool {
        bytes.resize(captured as usize, 0);
        // SAFETY: so many bytes were captured there; what others write meanwhile is copied as it is.
        unsafe { std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr(), bytes.len()) };
        let verdict = lock(&self.admission.rules).judge(&Looked {
            info,
            if_index,
            bytes,
            now: Instant::now(),
        });
        info.last_matched_rule_id = verdict.rule_id.map_or(0xffff, i32::from);
        for transmission in verdict.transmissions {
            if transmission.bounce && bytes.len() >= 12 {
                let (destination, source) = bytes.split_at_mut(6);
                destination.swap_with_slice(&mut source[..6]);
            }
            // What is longer than the kernel hands out does not go out cut.
            let outlet = transmission.outlet.filter(|_| captured == length);
            self.admission.count_forwarded(outlet.is_some_and(|outlet| outlet.send(bytes).is_ok()));
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

/// The flags of a long header for what the kernel says of VLAN tag and checksum.
fn flags_of(metadata: Metadata) -> u32 {
    let checksum = match metadata.checksum {
        Checksum::Unknown => 0,
        Checksum::NotComputed => CHECKSUM_OFFLOAD,
        Checksum::Verified => CHECKSUM_OFFLOAD | CHECKSUM_OK,
    };
    if metadata.tag_was_stripped { checksum | VLAN_HWACCEL } else { checksum }
}
