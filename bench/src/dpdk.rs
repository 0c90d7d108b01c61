//! The peers: DPDK's memif, and its vhost-user against virtio-user, each between two
//! `dpdk-testpmd` processes, one sending and one receiving.
//!
//! Neither needs hugepages or a PCI device: with `--no-huge` EAL backs its memory with a memfd,
//! which vhost-user can share with its peer. Each process has two EAL threads on one CPU, of which
//! the main one sleeps on standard input while the other polls.
//!
//! Packets are counted by testpmd itself: `show port stats` prints the rate since it was last
//! asked, measured with testpmd's own clock.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};
use std::{str, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::roles;

/// How long testpmd may take to start, to answer, or to connect to its peer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The end of every answer.
const PROMPT: &str = "testpmd> ";

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
        let socket = folder.join("socket");
        let lcores = format!("--lcores=(0)@{cpu},(1)@{cpu}");
        let prefix = format!("--file-prefix={name}");
        let device = format!("--vdev={}", device.replace("{}", &socket.to_string_lossy()));
        let burst = format!("--burst={}", self.burst);
        let buffers = format!("--total-num-mbufs={}", self.buffers);
        let cache = format!("--mbcache={}", self.cache);
        // stdbuf: testpmd's answers go to a pipe and must not wait in it.
        let eal = ["exec", "stdbuf", "-oL", "dpdk-testpmd", &lcores, &prefix, &device];
        let memory = ["--no-huge", "-m", "512", "--no-pci", "--no-telemetry"];
        let testpmd = ["--", "--interactive", &burst, &buffers, &cache];
        Testpmd::start(name, folder, cpu, &[&eal[..], &memory, &testpmd, mode].concat())
    }
}

/// A testpmd that takes commands; killed on drop.
struct Testpmd {
    name: &'static str,
    child: Child,
    commands: ChildStdin,
    answers: ChildStdout,
    /// What it writes to standard error, of interest only when it fails.
    log: PathBuf,
}

/// What a port has received.
struct Received {
    packets: u64,
    /// Packets a second since the last time it was asked.
    rate: f64,
}

impl Testpmd {
    fn start(
        name: &'static str,
        folder: &Path,
        cpu: usize,
        arguments: &[&str],
    ) -> io::Result<Testpmd> {
        let mut command = roles::command(Some(cpu), arguments)?;
        // EAL keeps its own files there too.
        command.env("RUNTIME_DIRECTORY", folder);
        let log = folder.join(format!("{name}.log"));
        command.stderr(File::create(&log)?);
        let mut child = command.spawn()?;
        let commands = child.stdin.take().expect("stdin is piped");
        let answers = child.stdout.take().expect("stdout is piped");
        let mut testpmd = Testpmd { name, child, commands, answers, log };
        testpmd.answer(PROMPT)?;
        Ok(testpmd)
    }

    fn ask(&mut self, command: &str) -> io::Result<String> {
        writeln!(self.commands, "{command}")?;
        self.answer(PROMPT)
    }

    fn received(&mut self) -> io::Result<Received> {
        writeln!(self.commands, "show port stats 0")?;
        // A line of # opens the table and one closes it, right before the prompt.
        let answer = self.answer(&format!("####\n{PROMPT}"))?;
        let number = |name| number_after(&answer, name).ok_or_else(|| self.error(name, &answer));
        Ok(Received { packets: number("RX-packets:")?, rate: number("Rx-pps:")? as f64 })
    }

    fn wait_for_packets(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.received()?.packets == 0 {
            if Instant::now() > deadline {
                return Err(self.error("a packet", ""));
            }
            // There is no event to wait for in another program's counters.
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Reads until what was read ends with `end`.
    fn answer(&mut self, end: &str) -> io::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut answer = Vec::new();
        let mut part = [0; 4096];
        loop {
            let text = str::from_utf8(&answer).unwrap_or_default().replace('\r', "");
            if text.ends_with(end) {
                return Ok(text);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            if poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], Some(&left))? == 0 {
                return Err(self.error(end, &text));
            }
            match self.answers.read(&mut part)? {
                0 => return Err(self.error(end, &text)),
                n => answer.extend_from_slice(&part[..n]),
            }
        }
    }

    fn error(&self, awaited: &str, seen: &str) -> io::Error {
        io::Error::other(format!(
            "dpdk-testpmd ({}): waited for {awaited:?} in vain, it printed:\n{seen}{}",
            self.name,
            fs::read_to_string(&self.log).unwrap_or_default()
        ))
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // Both fail when it has ended by itself: that is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    text.split_once(name)?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_a_table_of_statistics() {
        let table = "\n  RX-packets: 12         RX-missed: 0\n  Rx-pps:     21437   Rx-bps: 1\n";
        assert_eq!(number_after(table, "RX-packets:"), Some(12));
        assert_eq!(number_after(table, "Rx-pps:"), Some(21437));
        assert_eq!(number_after(table, "Tx-pps:"), None);
    }

    #[test]
    fn settings_name_no_path() {
        for link in [MEMIF_DEFAULT, MEMIF_TUNED, VHOST_USER] {
            assert!(!link.settings().contains("{}"), "{}", link.settings());
        }
    }
}
