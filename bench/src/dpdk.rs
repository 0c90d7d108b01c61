//! The peers of pipes and switches: DPDK's memif, and its vhost-user against virtio-user, each
//! between two [`Testpmd`] processes, one sending and one receiving.
//!
//! testpmd writes the headers of what it sends, and reads nothing of what it receives. A driver copies.

use std::path::Path;
use std::time::Duration;
use std::{io, thread};

use crate::hugepages;
use crate::roles::Seat;
use crate::testpmd::Testpmd;

/// One way to connect two testpmd processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    devices: Devices,
    /// Packets in a burst, on both sides.
    pub burst: usize,
    /// Packet buffers of a process.
    buffers: usize,
    /// Buffers that each thread keeps at hand.
    cache: usize,
}

/// What both processes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Devices {
    /// The sender listens on the socket. Rings have 2^`ring` slots.
    Memif { ring: u32, zero_copy: bool },
    /// vhost-user sends, virtio-user receives.
    VhostUser { queue: u32, packed: bool },
}

/// memif as it comes: rings of 2^10 slots, bursts of 32.
pub const MEMIF_DEFAULT: Link = Link {
    devices: Devices::Memif { ring: 10, zero_copy: false },
    burst: 32,
    buffers: 16384,
    cache: 250,
};

/// memif as it was best where it was searched first. Small rings often run nearly empty, and then both sides wait for
/// the same cache lines.
pub const MEMIF_TUNED: Link = Link {
    devices: Devices::Memif { ring: 13, zero_copy: false },
    burst: 256,
    buffers: 16384,
    cache: 512,
};

/// The same of vhost-user.
pub const VHOST_USER: Link = Link {
    devices: Devices::VhostUser { queue: 4096, packed: true },
    burst: 256,
    buffers: 16384,
    cache: 512,
};

impl Link {
    /// All that are tried before this machine's best is measured.
    pub fn candidates(self) -> Vec<Link> {
        let devices: Vec<Devices> = match self.devices {
            Devices::Memif { .. } => [10, 12, 13, 14]
                .iter()
                .flat_map(|&ring| [false, true].map(|zero_copy| Devices::Memif { ring, zero_copy }))
                .collect(),
            Devices::VhostUser { .. } => [256, 1024, 4096]
                .iter()
                .flat_map(|&queue| [false, true].map(|packed| Devices::VhostUser { queue, packed }))
                .collect(),
        };
        let with = |devices| [32, 64, 256, 512].map(|burst| Link { devices, burst, ..self });
        devices.into_iter().flat_map(with).collect()
    }

    /// The settings that matter, in testpmd's words.
    pub fn settings(&self) -> String {
        let Link { burst, buffers, cache, .. } = self;
        let [sender, receiver] = self.devices("");
        format!(
            "{} --vdev={sender} to --vdev={receiver}, --burst={burst} \
             --total-num-mbufs={buffers} --mbcache={cache}",
            hugepages::eal()
        )
    }

    /// That of the sender and that of the receiver. `socket` is its path, in their words, or nothing.
    fn devices(&self, socket: &str) -> [String; 2] {
        match self.devices {
            Devices::Memif { ring, zero_copy } => {
                let socket = match socket {
                    "" => String::new(),
                    path => format!(",socket-abstract=no,socket={path}"),
                };
                let zero_copy = if zero_copy { ",zero-copy=yes" } else { "" };
                [
                    format!("net_memif0,role=server,rsize={ring}{socket}"),
                    format!("net_memif0,role=client,rsize={ring}{zero_copy}{socket}"),
                ]
            }
            Devices::VhostUser { queue, packed } => {
                let path = |name: &str| match socket {
                    "" => String::new(),
                    path => format!(",{name}={path}"),
                };
                let packed = u32::from(packed);
                [
                    format!("net_vhost0{}", path("iface")),
                    format!(
                        "net_virtio_user0,packed_vq={packed},mrg_rxbuf=0,in_order=1,\
                         queue_size={queue}{}",
                        path("path")
                    ),
                ]
            }
        }
    }

    /// Sends packets of `size` bytes for `counting`, after `warm_up`, from a process on
    /// `cpus[0]` to one on `cpus[1]`; returns the rate of those received in millions a second.
    /// The sockets live in `folder`.
    pub fn measure(
        &self,
        folder: &Path,
        cpus: [usize; 2],
        size: usize,
        warm_up: Duration,
        counting: Duration,
    ) -> io::Result<f64> {
        let length = format!("--txpkts={size}");
        let [sends, receives] = self.devices(&folder.join("socket").to_string_lossy());
        let mut sender =
            self.start(folder, "sender", cpus[0], sends, &["--forward-mode=txonly", &length])?;
        let mut receiver =
            self.start(folder, "receiver", cpus[1], receives, &["--forward-mode=rxonly"])?;
        receiver.ask("start")?;
        sender.ask("start")?;
        receiver.wait_for_packets()?;
        thread::sleep(warm_up);
        receiver.received()?;
        thread::sleep(counting);
        Ok(receiver.received()?.rate / 1e6)
    }

    fn start(
        &self,
        folder: &Path,
        name: &'static str,
        cpu: usize,
        device: String,
        mode: &[&str],
    ) -> io::Result<Testpmd> {
        let burst = format!("--burst={}", self.burst);
        let buffers = format!("--total-num-mbufs={}", self.buffers);
        let cache = format!("--mbcache={}", self.cache);
        let options = [&[burst.as_str(), &buffers, &cache], mode].concat();
        Testpmd::start(name, folder, Seat::on(cpu), &[device], &options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_no_path() {
        for link in [MEMIF_DEFAULT, MEMIF_TUNED, VHOST_USER] {
            assert!(!link.settings().contains("socket"), "{}", link.settings());
            let all: Vec<_> = link.candidates().iter().map(Link::settings).collect();
            assert!(all.iter().collect::<std::collections::HashSet<_>>().len() == all.len());
        }
    }
}
