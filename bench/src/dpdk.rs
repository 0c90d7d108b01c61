//! The peers of pipes and switches: DPDK's memif, and its vhost-user against virtio-user, each
//! between two [`Testpmd`] processes, one sending and one receiving.

use std::path::Path;
use std::time::Duration;
use std::{io, thread};

use crate::roles::Seat;
use crate::testpmd::Testpmd;

/// One way to connect two testpmd processes, tuned to be its best without hugepages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Device of the sender, which listens on the socket; `{}` is the socket's path.
    sender: &'static str,
    /// Device of the receiver.
    receiver: &'static str,
    /// Packets in a burst, on both sides.
    pub burst: usize,
    /// Packet buffers of a process.
    buffers: usize,
    /// Buffers that each thread keeps at hand.
    cache: usize,
}

/// memif as it comes: rings of 2^10 slots, bursts of 32.
pub const MEMIF_DEFAULT: Link = Link {
    sender: "net_memif0,role=server,socket-abstract=no,socket={}",
    receiver: "net_memif0,role=client,socket-abstract=no,socket={}",
    burst: 32,
    buffers: 16384,
    cache: 250,
};

/// memif with the ring and burst sizes that gave the most of those tried (rings of 2^8 to 2^14
/// slots, bursts of 32 to 512, 4096 to 65536 buffers, copying and `zero-copy=yes`, sending from the
/// server and from the client). Small rings often run nearly empty, and then both sides wait for
/// the same cache lines.
pub const MEMIF_TUNED: Link = Link {
    sender: "net_memif0,role=server,rsize=13,socket-abstract=no,socket={}",
    receiver: "net_memif0,role=client,rsize=13,socket-abstract=no,socket={}",
    burst: 256,
    buffers: 16384,
    cache: 512,
};

/// vhost-user sends, virtio-user receives: packed rings without mergeable buffers, used in order,
/// gave the most of the combinations tried, in either direction.
pub const VHOST_USER: Link = Link {
    sender: "net_vhost0,iface={}",
    receiver: "net_virtio_user0,packed_vq=1,mrg_rxbuf=0,in_order=1,queue_size=4096,path={}",
    burst: 256,
    buffers: 16384,
    cache: 512,
};

impl Link {
    /// The settings that matter, in testpmd's words.
    pub fn settings(&self) -> String {
        let Link { sender, receiver, burst, buffers, cache } = self;
        format!(
            "--no-huge --vdev={sender} to --vdev={receiver}, --burst={burst} \
             --total-num-mbufs={buffers} --mbcache={cache}"
        )
        .replace(",socket={}", "")
        .replace("iface={}", "")
        .replace(",path={}", "")
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
        let mut sender = self.start(
            folder,
            "sender",
            cpus[0],
            self.sender,
            &["--forward-mode=txonly", &length],
        )?;
        let mut receiver =
            self.start(folder, "receiver", cpus[1], self.receiver, &["--forward-mode=rxonly"])?;
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
        device: &str,
        mode: &[&str],
    ) -> io::Result<Testpmd> {
        let device = device.replace("{}", &folder.join("socket").to_string_lossy());
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
            assert!(!link.settings().contains("{}"), "{}", link.settings());
        }
    }
}
