//! Which output a packet goes to.

use super::Presence;
use ringway::{Cluster, ClusterType, Headers, flow_hash};
use ringway_balance::{Choice, Choose, scaled};
use std::str::FromStr;
use std::time::Duration;

/// What shares out by a [`Chooser`].
pub type Balancer = ringway_balance::Balancer<Chooser>;

/// What decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// netmap's: a good hash of both ends.
    Flow,
    /// PF_RING's.
    Cluster(ClusterType),
    /// PF_RING's type 13: the output of the source address, and that of the destination.
    BothAddresses,
}

/// PF_RING's name for it.
const BOTH_ADDRESSES: &str = "ip-with-dup";

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Method, Self::Err> {
        match text {
            "flow" => Ok(Method::Flow),
            BOTH_ADDRESSES => Ok(Method::BothAddresses),
            other => {
                let kind = other.parse::<ClusterType>();
                kind.map(Method::Cluster).map_err(|e| format!("{e}, {BOTH_ADDRESSES}, or flow"))
            }
        }
    }
}

pub struct Chooser {
    method: Method,
    outputs: usize,
    cluster: Cluster,
    /// Outputs that are to get packets, if not all are: the others' share is theirs.
    present: Vec<usize>,
    absent: Vec<bool>,
    presence: Option<Presence>,
}

impl Chooser {
    pub fn new(method: Method, outputs: usize) -> Chooser {
        let kind = match method {
            Method::Flow => ClusterType::FiveTuple,
            Method::Cluster(kind) => kind,
            Method::BothAddresses => ClusterType::TwoTuple,
        };
        let cluster = Cluster::new(kind, outputs as u32);
        let absent = vec![false; outputs];
        Chooser { method, outputs, cluster, present: Vec::new(), absent, presence: None }
    }

    /// The share of outputs without a program at the other end goes to the others.
    pub fn with_presence(self, presence: Option<Presence>) -> Chooser {
        Chooser { presence, ..self }
    }

    /// From now on the share of absent outputs goes to the others, as long as there are any.
    pub fn set_absent(&mut self, absent: impl Iterator<Item = bool>) {
        self.absent = absent.collect();
        self.present = (0..self.outputs).filter(|output| !self.absent[*output]).collect();
        if self.present.is_empty() {
            self.absent.fill(false);
        }
    }

    fn of_headers(&mut self, headers: &Headers, now: Duration) -> usize {
        let output = self.cluster.queue(headers, now) as usize;
        // By addresses: those that fragments have too.
        self.present(output, || ClusterType::TwoTuple.hash(headers))
    }

    /// An output, or, if it is absent, another by the hash.
    fn present(&self, output: usize, hash: impl Fn() -> u32) -> usize {
        if !self.absent[output] {
            return output;
        }
        self.present[scaled(mixed(hash()), self.present.len())]
    }
}

impl Choose for Chooser {
    #[inline]
    fn refresh(&mut self) {
        if let Some(absent) = self.presence.as_mut().and_then(Presence::news) {
            self.set_absent(absent.into_iter());
        }
    }

    #[inline]
    fn choose_at_once(&mut self, head: &[u8]) -> Option<usize> {
        let all_present = self.present.is_empty() || self.present.len() == self.outputs;
        match self.method {
            Method::Cluster(_) if all_present => {
                self.cluster.queue_at_once(head).map(|queue| queue as usize)
            }
            _ => None,
        }
    }

    #[inline]
    fn choose(&mut self, bytes: &[u8], now: Duration) -> Choice {
        match self.method {
            Method::Flow => {
                let flow = flow_hash(bytes);
                let output = scaled(flow.hash, self.outputs);
                let output = self.present(output, || flow.hash);
                let (hash, is_ip) = (flow.hash, flow.is_ip);
                Choice { output: Some(output), also: None, spills: false, hash, is_ip }
            }
            Method::Cluster(_) => {
                let (output, is_ip) = self.cluster.queue_of(bytes, now);
                // By addresses: those that fragments have too.
                let by_addresses = || ClusterType::TwoTuple.hash(&Headers::parse(bytes));
                let output = self.present(output as usize, by_addresses);
                Choice { output: Some(output), also: None, spills: false, hash: 0, is_ip }
            }
            Method::BothAddresses => {
                let headers = Headers::parse(bytes);
                let mut one = Headers::default();
                let network = headers.tunnel.map_or(headers.network, |tunnel| tunnel.network);
                let [output, other] = [1, 0].map(|without| {
                    one.network = network;
                    one.network.fragment = None;
                    one.network.addresses[without] = [0; 16];
                    self.of_headers(&one, now)
                });
                let also = (other != output).then_some(other);
                let is_ip = headers.network.version != 0;
                Choice { output: Some(output), also, spills: false, hash: 0, is_ip }
            }
        }
    }
}

/// Another hash, whose high bits depend on all bits of the first.
fn mixed(hash: u32) -> u32 {
    (u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of many flows, by their output.
    fn outputs(chooser: &mut Chooser) -> Vec<usize> {
        let packet = |port: u16| {
            let mut bytes = vec![0; 12];
            bytes.extend([
                8,
                0,
                0x45,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                64,
                17,
                0,
                0,
                10,
                0,
                0,
                (port >> 3) as u8,
            ]);
            bytes.extend([10, 1, 0, 1]);
            bytes.extend([port.to_be_bytes(), [0, 9]].as_flattened());
            bytes.extend([0; 22]);
            bytes
        };
        (0..1000)
            .map(|port| chooser.choose(&packet(port), Duration::ZERO).output)
            .map(|output| output.expect("each is somebody's"))
            .collect()
    }

    #[test]
    fn the_share_of_an_absent_output_goes_to_all_others_and_comes_back() {
        let five = Method::Cluster(ClusterType::FiveTuple);
        let turns = Method::Cluster(ClusterType::RoundRobin);
        for method in [Method::Flow, five, turns, Method::BothAddresses] {
            let mut chooser = Chooser::new(method, 4);
            let before = outputs(&mut chooser);
            chooser.set_absent([false, false, true, false].into_iter());
            let without = outputs(&mut chooser);
            let mut got = [0; 4];
            for (before, now) in before.iter().zip(&without) {
                assert!(*now != 2 && (*before == 2 || before == now), "{method:?}: {before} {now}");
                got[*now] += usize::from(*before == 2);
            }
            assert!([0, 1, 3].iter().all(|output| got[*output] > 0), "{method:?}: {got:?}");
            chooser.set_absent([false; 4].into_iter());
            assert_eq!(outputs(&mut chooser), before);
            // There is nobody to have it instead.
            chooser.set_absent([true; 4].into_iter());
            assert_eq!(outputs(&mut chooser), before);
        }
    }

    /// As PF_RING does it: each address by itself, and one copy where both have the same output.
    #[test]
    fn both_addresses_have_their_outputs() {
        let mut chooser = Chooser::new(Method::BothAddresses, 4);
        let mut choose = |source: u8, destination: u8| {
            let mut bytes = vec![0; 12];
            bytes.extend([8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0]);
            bytes.extend([[0, 0, 0, source], [0, 0, 0, destination]].concat());
            let Choice { output, also, .. } = chooser.choose(&bytes, Duration::ZERO);
            (output.expect("one"), also)
        };
        assert_eq!([choose(1, 2), choose(2, 1)], [(1, Some(2)), (2, Some(1))]);
        assert_eq!([choose(3, 7), choose(9, 5)], [(3, None), (1, None)]);
        chooser.set_absent([false, true, true, true].into_iter());
        let mut bytes = vec![0; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        let Choice { output, also, .. } = chooser.choose(&bytes, Duration::ZERO);
        assert_eq!((output, also), (Some(0), None), "the one that is there has it once");
        let other = chooser.choose(&[0xff; 60], Duration::ZERO);
        assert_eq!((other.also, other.is_ip), (None, false));
    }

    #[test]
    fn methods_are_read() {
        assert_eq!("flow".parse(), Ok(Method::Flow));
        assert_eq!("ip-with-dup".parse(), Ok(Method::BothAddresses));
        assert_eq!("2-tuple".parse(), Ok(Method::Cluster(ClusterType::TwoTuple)));
        assert!("".parse::<Method>().is_err());
    }
}
