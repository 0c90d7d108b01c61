//! testpmd on interfaces, by DPDK's two ways to a kernel's interface.

use std::io;
use std::path::Path;

use crate::hugepages;
use crate::roles::Seat;
use crate::testpmd::Testpmd;

/// A driver of DPDK's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pmd {
    AfXdp,
    AfPacket,
}

/// Packets in a burst, where the experiment does not say: as many as the drivers handle at once.
const BURST: usize = 64;

const BUFFERS: [&str; 2] = ["--total-num-mbufs=16384", "--mbcache=512"];

/// What a testpmd does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Send,
    Receive,
    /// From the first interface to the last one, which may be the same.
    Forward,
}

impl Pmd {
    /// The options that matter, in testpmd's words.
    pub fn settings(self, burst: Option<usize>) -> String {
        format!(
            "{} --vdev={} --burst={} {}",
            hugepages::eal(),
            self.device(0, "IFACE"),
            burst.unwrap_or(BURST),
            BUFFERS.join(" ")
        )
    }

    fn device(self, number: usize, interface: &str) -> String {
        match self {
            Pmd::AfXdp => format!("net_af_xdp{number},iface={interface}"),
            Pmd::AfPacket => {
                format!("net_af_packet{number},iface={interface},framecnt=2048,qdisc_bypass=1")
            }
        }
    }
}

/// The testpmds of an experiment.
pub struct Peer<'a> {
    pub pmd: Pmd,
    /// Where they keep their files.
    pub folder: &'a Path,
    /// Bytes in a packet that they send.
    pub size: usize,
    /// Packets in a burst, if it matters.
    pub burst: Option<usize>,
}

impl Peer<'_> {
    /// Starts one on `interfaces`.
    pub fn start(
        &self,
        name: &'static str,
        seat: Seat,
        interfaces: &[&str],
        mode: Mode,
    ) -> io::Result<Testpmd> {
        let devices: Vec<_> =
            (0..).zip(interfaces).map(|(i, name)| self.pmd.device(i, name)).collect();
        let mode = match mode {
            Mode::Send => "txonly",
            Mode::Receive => "rxonly",
            Mode::Forward => "io",
        };
        // An interface that is alone is its own pair.
        let topology = if interfaces.len() == 1 { "loop" } else { "paired" };
        let options = [
            format!("--forward-mode={mode}"),
            format!("--port-topology={topology}"),
            format!("--txpkts={}", self.size),
            format!("--burst={}", self.burst.unwrap_or(BURST)),
        ];
        let options: Vec<_> = options.iter().map(String::as_str).chain(BUFFERS).collect();
        Testpmd::start(name, self.folder, seat, &devices, &options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_what_is_set() {
        assert_eq!(
            Pmd::AfPacket.settings(Some(1)),
            "--no-huge --vdev=net_af_packet0,iface=IFACE,framecnt=2048,qdisc_bypass=1 --burst=1 \
             --total-num-mbufs=16384 --mbcache=512"
        );
    }
}
