//! testpmd on interfaces, by DPDK's two ways to a kernel's interface.

use std::io;
use std::path::Path;

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
    pub fn settings(self) -> String {
        format!(
            "--no-huge --vdev={} --burst={BURST} --total-num-mbufs=16384 --mbcache=512",
            self.device(0, "IFACE")
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

    /// Starts a testpmd on `interfaces`, which is to send packets of `size` bytes, in bursts of
    /// `burst`.
    pub fn start(
        self,
        name: &'static str,
        folder: &Path,
        seat: Seat,
        interfaces: &[&str],
        mode: Mode,
        size: usize,
        burst: Option<usize>,
    ) -> io::Result<Testpmd> {
        let devices: Vec<_> =
            interfaces.iter().enumerate().map(|(i, name)| self.device(i, name)).collect();
        let mode = match mode {
            Mode::Send => "--forward-mode=txonly",
            Mode::Receive => "--forward-mode=rxonly",
            Mode::Forward => "--forward-mode=io",
        };
        // An interface that is alone is its own pair.
        let topology = if interfaces.len() == 1 { "loop" } else { "paired" };
        let options = [
            format!("--burst={}", burst.unwrap_or(BURST)),
            format!("--txpkts={size}"),
            format!("--port-topology={topology}"),
        ];
        let fixed = ["--total-num-mbufs=16384", "--mbcache=512", mode];
        let options = [&options.each_ref().map(String::as_str)[..], &fixed].concat();
        Testpmd::start(name, folder, seat, &devices, &options)
    }
}
