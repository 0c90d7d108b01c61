//! Whose a packet is, by the queue's number: that of the queue's member, or of the next one's if it has gone.

use std::time::Duration;

use ringway_balance::{Choice, Choose};
use ringway_flow::{Cluster, Headers};

use super::{QUEUES, ROUND_ROBIN, WITH_DUPLICATES, cluster, file::Shared};

/// The output of each queue; no such number for what is nobody's.
type Outputs = [u8; QUEUES as usize];
const NOBODY: u8 = u8::MAX;

/// Shares out as a cluster's file says.
pub struct Sharing {
    shared: Shared,
    cluster: Cluster,
    outputs: Outputs,
    /// Whether [`Choose::choose_at_once`] may choose; see [`is_at_once`].
    at_once: bool,
}

impl Sharing {
    pub fn new(shared: Shared) -> Sharing {
        let outputs = [NOBODY; QUEUES as usize];
        Sharing { shared, cluster: cluster(shared), outputs, at_once: is_at_once(shared) }
    }

    /// From now on as the file says, among outputs for these queues, in the order of the outputs.
    pub fn set(&mut self, shared: Shared, queues: &[u32]) {
        if shared != self.shared {
            (self.shared, self.cluster) = (shared, cluster(shared));
            self.at_once = is_at_once(shared);
        }
        self.outputs = outputs(shared.used, queues);
    }

    fn output(&self, queue: u32) -> Option<usize> {
        let output = self.outputs[queue as usize % QUEUES as usize];
        (output != NOBODY).then_some(output.into())
    }

    /// The output of the source's address, and that of the destination's.
    #[inline(never)]
    fn with_duplicate(&self, bytes: &[u8], spills: bool) -> Choice {
        let headers = Headers::parse(bytes);
        let is_ip = headers.network.version != 0;
        let network = headers.tunnel.map_or(headers.network, |tunnel| tunnel.network);
        let queues = self.shared.queues;
        let [one, other] = network.address_sums().map(|sum| self.output(sum % queues));
        let also = other.filter(|_| one.is_some() && one != other);
        Choice { output: one.or(other), also, spills, hash: 0, is_ip }
    }
}

/// Whether a packet has one member, and which one depends on its headers alone.
fn is_at_once(shared: Shared) -> bool {
    !matches!(shared.kind, ROUND_ROBIN | WITH_DUPLICATES) && !shared.is_relaxed()
}

impl Choose for Sharing {
    #[inline]
    fn choose_at_once(&mut self, head: &[u8]) -> Option<usize> {
        let queue = if self.at_once { self.cluster.queue_at_once(head)? } else { return None };
        self.output(queue)
    }

    #[inline]
    fn choose(&mut self, bytes: &[u8], now: Duration) -> Choice {
        let spills = self.shared.kind == ROUND_ROBIN || self.shared.is_relaxed();
        if self.shared.kind == ROUND_ROBIN {
            // What the packet is does not matter.
            let queue = self.cluster.queue(&Headers::default(), now);
            return Choice { output: self.output(queue), also: None, spills, hash: 0, is_ip: true };
        }
        if self.shared.kind == WITH_DUPLICATES {
            return self.with_duplicate(bytes, spills);
        }
        let (queue, is_ip) = self.cluster.queue_of(bytes, now);
        Choice { output: self.output(queue), also: None, spills, hash: 0, is_ip }
    }
}

/// Each queue that was `used` has its output, or that of the next queue that has one.
fn outputs(used: u64, queues: &[u32]) -> Outputs {
    let at = |queue: u32| queues.iter().position(|with| *with == queue);
    std::array::from_fn(|queue| {
        let queue = queue as u32;
        if used >> queue & 1 == 0 {
            return NOBODY;
        }
        let mut next = (queue..QUEUES).chain(0..queue);
        next.find_map(at).map_or(NOBODY, |output| output as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_has_what_was_anothers_and_nobody_what_never_was() {
        let of = |used, queues: &[u32]| outputs(used, queues)[..5].to_vec();
        assert_eq!(of(0b111, &[0, 1, 2]), [0, 1, 2, NOBODY, NOBODY]);
        assert_eq!(of(0b111, &[0, 2]), [0, 1, 1, NOBODY, NOBODY]);
        assert_eq!(of(0b111, &[1]), [0, 0, 0, NOBODY, NOBODY]);
        assert_eq!(of(0b10101, &[4, 0]), [1, NOBODY, 0, NOBODY, 0]);
        assert_eq!(of(0b11, &[]), [NOBODY; 5]);
    }

    #[test]
    fn what_is_chosen_at_once_is_what_is_chosen() {
        let mut udp = vec![0; 12];
        udp.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 3]);
        udp.extend([0, 7, 0, 9, 0, 8, 0, 0]);
        let mut chosen = 0;
        for kind in 0..16 {
            let shared = Shared { kind, options: 0, queues: 3, device: 0, used: 0b101 };
            let mut sharing = Sharing::new(shared);
            sharing.set(shared, &[2, 0]);
            for (protocol, port) in (0..255).flat_map(|n| [(6, n), (17, n), (132, n), (1, n)]) {
                (udp[23], udp[35]) = (protocol, port);
                let at_once = sharing.choose_at_once(&udp);
                chosen += u32::from(at_once.is_some());
                let Some(output) = at_once else { continue };
                let Choice { output: other, also, spills, is_ip, .. } =
                    sharing.choose(&udp, Duration::ZERO);
                assert_eq!((Some(output), None, false, true), (other, also, spills, is_ip));
            }
            assert_eq!(sharing.choose_at_once(&udp[..37]), None, "there is more to look at");
        }
        assert!(chosen > 1000, "{chosen}");
    }

    #[test]
    fn turns_and_duplicates() {
        let shared = |kind| Shared { kind, options: 0, queues: 3, device: 0, used: 0b111 };
        let mut turns = Sharing::new(shared(ROUND_ROBIN));
        turns.set(shared(ROUND_ROBIN), &[0, 1, 2]);
        let mut turn = || turns.choose(&[0; 60], Duration::ZERO).output;
        assert_eq!([turn(), turn(), turn(), turn()], [Some(0), Some(1), Some(2), Some(0)]);
        let mut both = Sharing::new(shared(WITH_DUPLICATES));
        both.set(shared(WITH_DUPLICATES), &[0, 1, 2]);
        let mut of = |source: u8, destination: u8| {
            let mut bytes = vec![0; 12];
            bytes.extend([8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0]);
            bytes.extend([[0, 0, 0, source], [0, 0, 0, destination]].concat());
            let choice = both.choose(&bytes, Duration::ZERO);
            (choice.output, choice.also)
        };
        assert_eq!([of(1, 2), of(2, 2)], [(Some(1), Some(2)), (Some(2), None)]);
    }
}
