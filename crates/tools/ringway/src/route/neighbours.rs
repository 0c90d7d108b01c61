//! The neighbour table of a port: Ethernet addresses by IPv4 address, and the packets that wait for an ARP reply.

use crate::endpoint::Mac;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

/// Neighbours that are known or asked for, and packets that wait for one, at most.
const MOST: usize = 4096;
const WAITING: usize = 16;

/// Nanoseconds: between two questions for one neighbour; until one that was heard of is asked for again, and
/// until it counts as gone; until a packet that waits is too old to be of use.
const SECOND: u64 = 1_000_000_000;
const ASK: u64 = SECOND;
const REFRESH: u64 = 30 * SECOND;
const GONE: u64 = 120 * SECOND;
const STALE: u64 = 3 * SECOND;

#[derive(Debug, Default)]
struct Neighbour {
    mac: Option<Mac>,
    /// When it was heard of, and asked for, last.
    heard: u64,
    asked: Option<u64>,
    /// Packets, and when they came.
    waiting: VecDeque<(u64, Vec<u8>)>,
}

impl Neighbour {
    fn mac(&self, now: u64) -> Option<Mac> {
        self.mac.filter(|_| now < self.heard + GONE)
    }

    /// Whether nothing is known of it any more, and nothing is expected.
    fn is_forgotten(&self, now: u64) -> bool {
        self.mac(now).is_none() && self.asked.is_none_or(|asked| now >= asked + STALE)
    }
}

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub mac: Option<Mac>,
    pub is_to_be_asked: bool,
}

#[derive(Debug, Default)]
pub struct Neighbours {
    all: HashMap<Ipv4Addr, Neighbour>,
    /// The one that was found last, as long as nothing has to be done for it: most packets go there.
    last: Option<(Ipv4Addr, Mac, u64)>,
    /// When those that are forgotten were looked for.
    swept: u64,
    /// Packets that have waited in vain.
    lost: u64,
}

/// Packets that were held, and have not come out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub waiting: u64,
    /// They have waited in vain.
    pub lost: u64,
}

impl Neighbours {
    /// Looks a neighbour up. If it is to be asked for, the caller does that now.
    #[inline]
    pub fn find(&mut self, address: Ipv4Addr, now: u64) -> Found {
        match self.last {
            Some((last, mac, until)) if last == address && now < until => {
                Found { mac: Some(mac), is_to_be_asked: false }
            }
            _ => self.look_up(address, now),
        }
    }

    fn look_up(&mut self, address: Ipv4Addr, now: u64) -> Found {
        if !self.all.contains_key(&address) && !self.has_room(now) {
            return Found::default();
        }
        let neighbour = self.all.entry(address).or_default();
        let mac = neighbour.mac(now);
        let is_fresh = mac.is_some() && now < neighbour.heard + REFRESH;
        if let (Some(mac), true) = (mac, is_fresh) {
            self.last = Some((address, mac, neighbour.heard + REFRESH));
        }
        let is_to_be_asked = !is_fresh && neighbour.asked.is_none_or(|asked| now >= asked + ASK);
        if is_to_be_asked {
            neighbour.asked = Some(now);
        }
        Found { mac, is_to_be_asked }
    }

    /// Whether there is room for another; makes some, but not all the time.
    fn has_room(&mut self, now: u64) -> bool {
        if self.all.len() >= MOST && now >= self.swept + ASK {
            self.swept = now;
            let lost = &mut self.lost;
            self.all.retain(|_, neighbour| {
                let is_kept = !neighbour.is_forgotten(now);
                *lost += if is_kept { 0 } else { neighbour.waiting.len() as u64 };
                is_kept
            });
        }
        self.all.len() < MOST
    }

    /// Keeps a packet until its neighbour is known; the oldest goes when there are too many. False: it was not
    /// kept, because the neighbour is not asked for.
    pub fn hold(&mut self, address: Ipv4Addr, packet: &[u8], now: u64) -> bool {
        let Some(neighbour) = self.all.get_mut(&address) else { return false };
        if neighbour.waiting.len() == WAITING {
            neighbour.waiting.pop_front();
            self.lost += 1;
        }
        neighbour.waiting.push_back((now, packet.to_vec()));
        true
    }

    /// A neighbour says its address. `is_new`: it matters, even if nobody asked for it. Returns the packets that
    /// have waited for it and are still of use.
    pub fn learn(&mut self, address: Ipv4Addr, mac: Mac, is_new: bool, now: u64) -> Vec<Vec<u8>> {
        self.last = None;
        let is_known = self.all.contains_key(&address) || (is_new && self.has_room(now));
        if !is_known {
            return Vec::new();
        }
        let neighbour = self.all.entry(address).or_default();
        (neighbour.mac, neighbour.heard, neighbour.asked) = (Some(mac), now, None);
        let mut waited = std::mem::take(&mut neighbour.waiting);
        let stale = waited.partition_point(|(came, _)| now >= came + STALE);
        self.lost += stale as u64;
        waited.drain(stale..).map(|(_, packet)| packet).collect()
    }

    /// What has become of the packets that were held, but for those that [`learn`](Self::learn) has returned.
    pub fn held(&self, now: u64) -> Held {
        let mut held = Held { waiting: 0, lost: self.lost };
        for (came, _) in self.all.values().flat_map(|neighbour| &neighbour.waiting) {
            match now < came + STALE {
                true => held.waiting += 1,
                false => held.lost += 1,
            }
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

    fn asked() -> Found {
        Found { mac: None, is_to_be_asked: true }
    }

    fn known(is_to_be_asked: bool) -> Found {
        Found { mac: Some(MAC), is_to_be_asked }
    }

    #[test]
    fn one_that_does_not_answer_is_asked_once_a_second() {
        let mut neighbours = Neighbours::default();
        assert_eq!(neighbours.find(ADDRESS, 0), asked());
        assert_eq!(neighbours.find(ADDRESS, ASK - 1), Found::default());
        assert_eq!(neighbours.find(ADDRESS, ASK), asked());
    }

    #[test]
    fn one_that_is_known_is_asked_for_again_in_time_and_gone_when_it_does_not_answer() {
        let mut neighbours = Neighbours::default();
        assert_eq!(neighbours.learn(ADDRESS, MAC, true, 0).len(), 0);
        assert_eq!(neighbours.find(ADDRESS, REFRESH - 1), known(false));
        assert_eq!(neighbours.find(ADDRESS, REFRESH), known(true));
        assert_eq!(neighbours.find(ADDRESS, REFRESH + 1), known(false));
        assert_eq!(neighbours.find(ADDRESS, REFRESH + ASK), known(true));
        assert_eq!(neighbours.find(ADDRESS, GONE), asked());
        assert_eq!(neighbours.learn(ADDRESS, MAC, false, GONE).len(), 0);
        assert_eq!(neighbours.find(ADDRESS, GONE + 1), known(false));
    }

    #[test]
    fn another_mac_takes_over_at_once() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(ADDRESS, Mac([4; 6]), true, 0);
        assert_eq!(neighbours.find(ADDRESS, 1).mac, Some(Mac([4; 6])));
        neighbours.learn(ADDRESS, MAC, false, 2);
        assert_eq!(neighbours.find(ADDRESS, 3), known(false));
    }

    #[test]
    fn what_nobody_asked_for_is_not_learned() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(ADDRESS, MAC, false, 0);
        assert_eq!(neighbours.find(ADDRESS, 0), asked());
    }

    #[test]
    fn packets_wait_in_their_order_and_not_for_ever() {
        let mut neighbours = Neighbours::default();
        assert!(!neighbours.hold(ADDRESS, &[0], 0));
        neighbours.find(ADDRESS, 0);
        assert!(neighbours.hold(ADDRESS, &[99], 0));
        for number in 0..=WAITING as u8 {
            assert!(neighbours.hold(ADDRESS, &[number], 1));
        }
        let waited = neighbours.learn(ADDRESS, MAC, false, 2).concat();
        assert_eq!(waited, (1..=WAITING as u8).collect::<Vec<_>>());
        assert_eq!(neighbours.learn(ADDRESS, MAC, false, 2).len(), 0);
        neighbours.find(ADDRESS, GONE + 2);
        neighbours.hold(ADDRESS, &[1], GONE + 2);
        neighbours.hold(ADDRESS, &[2], GONE + 3);
        let late = neighbours.learn(ADDRESS, MAC, false, GONE + 2 + STALE);
        assert_eq!(late, [[2]]);
    }

    /// Each packet that was held waits, has come out, or is lost.
    #[test]
    fn packets_that_wait_in_vain_are_counted() {
        let mut neighbours = Neighbours::default();
        let held = |neighbours: &Neighbours, now| {
            let Held { waiting, lost } = neighbours.held(now);
            (waiting, lost)
        };
        // Too many for one neighbour.
        neighbours.find(ADDRESS, 0);
        (0..=WAITING).for_each(|_| assert!(neighbours.hold(ADDRESS, &[0], 0)));
        assert_eq!(held(&neighbours, 1), (WAITING as u64, 1));
        // Too old, before and after the neighbour is heard of.
        neighbours.hold(ADDRESS, &[0], STALE);
        assert_eq!(held(&neighbours, STALE), (1, WAITING as u64 + 1));
        assert_eq!(neighbours.learn(ADDRESS, MAC, false, STALE).len(), 1);
        assert_eq!(held(&neighbours, STALE), (0, WAITING as u64 + 1));
        // Forgotten, to make room for another neighbour.
        let others = (1..MOST as u32).map(Ipv4Addr::from_bits);
        others.for_each(|other| assert!(neighbours.find(other, STALE).is_to_be_asked));
        neighbours.hold(Ipv4Addr::from_bits(1), &[0], STALE);
        neighbours.find(Ipv4Addr::from_bits(MOST as u32), 3 * STALE);
        assert!(!neighbours.all.contains_key(&Ipv4Addr::from_bits(1)));
        assert_eq!(held(&neighbours, 3 * STALE), (0, WAITING as u64 + 2));
    }

    /// A host that looks for hosts fills no memory, and those that are known stay.
    #[test]
    fn there_is_a_most() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(ADDRESS, MAC, true, 0);
        for number in 0..10_000u32 {
            neighbours.find(Ipv4Addr::from_bits(number), 1);
        }
        assert_eq!(neighbours.all.len(), MOST);
        assert_eq!(neighbours.find(Ipv4Addr::from_bits(9999), 2), Found::default());
        assert!(!neighbours.hold(Ipv4Addr::from_bits(9999), &[1], 2));
        assert_eq!(neighbours.find(Ipv4Addr::from_bits(9999), STALE + 1), asked());
        assert_eq!(neighbours.all.len(), 2);
        assert_eq!(neighbours.find(ADDRESS, STALE + 2), known(false));
    }
}
