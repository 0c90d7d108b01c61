//! The program tcpdump, which writes all that comes to /dev/null: on a pipe, and on an interface beside its stack; by Ringway's
//! libpcap or the system's.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::Bench;
use crate::c_program::{self, Through};
use crate::nic::stage::Stage;
use crate::record::{Contestant, Payload, Road, Subject, Unit};
use crate::roles::{self, Role, Seat};
use crate::study::Study;
use crate::traffic;

/// Bytes of a packet.
const SIZE: usize = 64;

/// What comes behind the device: how much the library buffers (KiB), to where it writes, and as which user.
const OPTIONS: [&str; 7] = ["-n", "-B", "16384", "-w", "/dev/null", "-Z", "root"];

/// What it says when all is open.
const READY: &str = "listening on";

/// All of them; none where there is no tcpdump.
pub fn subjects() -> Vec<Subject> {
    let mut version = Command::new("tcpdump");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        return Vec::new();
    }
    use Contestant::{RingwayPcap, SystemPcap};
    let rows = [
        (Study::Paths, Road::PipeTcpdump, RingwayPcap),
        (Study::Interfaces, Road::VethTcpdump, RingwayPcap),
        (Study::Interfaces, Road::VethTcpdump, SystemPcap),
    ];
    let subject = |(study, road, contestant)| Subject {
        size: Some(SIZE),
        payload: Some(Payload::Touched),
        settings: Some(format!("tcpdump -i {} {}", device(road, contestant), OPTIONS.join(" "))),
        ..Subject::new(study, road, contestant, Unit::Mpps)
    };
    rows.map(subject).into()
}

fn device(road: Road, contestant: Contestant) -> String {
    match (road, contestant) {
        (Road::PipeTcpdump, _) => traffic::pipe_end(),
        (_, Contestant::SystemPcap) => "near0".into(),
        _ => "netmap:near0/rt".into(),
    }
}

/// Which process has which CPU.
pub fn cpus([zero, one]: [usize; 2]) -> String {
    let shared = if zero == one { ", which both share" } else { "" };
    format!("sender {zero}, tcpdump {one}{shared}")
}

/// Millions of packets that it captures in a second.
pub fn once(bench: &Bench, road: Road, contestant: Contestant) -> io::Result<f64> {
    let (sender_seat, seat) = (Seat::on(bench.cpu(0)), Seat::on(bench.cpu(1)));
    let size = format!("--size={SIZE}");
    let stage = (road == Road::VethTcpdump).then(|| Stage::new(1, 1)).transpose()?;
    let (seat, daemon) = match &stage {
        Some(stage) => {
            stage.hold_back()?;
            (seat.inside(&stage.near), bench.scratch.folder("ringwayd-near")?)
        }
        None => (seat, bench.daemon.clone()),
    };
    let mut tcpdump = Tcpdump::start(seat, &daemon, &device(road, contestant), contestant)?;
    let sender = match &stage {
        Some(stage) => {
            let generator = ["nic", "generator", "send", &size, "far0"];
            let far = bench.scratch.folder("ringwayd-far")?;
            Role::start(sender_seat.inside(&stage.far), &far, &generator)?
        }
        None => {
            let pipe = ["pipe-tx", "--udp=1", &size, "--batch=256"];
            Role::start(sender_seat, &bench.daemon, &pipe)?
        }
    };
    let mut sender = vec![sender];
    roles::begin(&mut sender, bench.warm_up)?;
    let (begin, before) = tcpdump.captured()?;
    thread::sleep(bench.counting);
    let (end, after) = tcpdump.captured()?;
    roles::end(sender)?;
    Ok((after - before) / (end - begin).as_secs_f64() / 1e6)
}

/// A tcpdump that runs. It is killed when this is dropped.
struct Tcpdump {
    child: Child,
    says: BufReader<ChildStderr>,
}

impl Tcpdump {
    fn start(
        seat: Seat,
        daemon: &Path,
        device: &str,
        contestant: Contestant,
    ) -> io::Result<Tcpdump> {
        let through = match contestant {
            Contestant::SystemPcap => Through::Nothing,
            _ => Through::Pcap,
        };
        let preload: Option<PathBuf> = c_program::library_of(through)?;
        let preload = preload.map(|library| format!("LD_PRELOAD={}", library.display()));
        let mut arguments = vec!["exec", "--", "env"];
        arguments.extend(preload.as_deref());
        arguments.extend(["tcpdump", "-i", device]);
        arguments.extend(OPTIONS);
        let mut command = roles::command(seat, &arguments)?;
        let mut child = command.env("RINGWAY_DIR", daemon).stderr(Stdio::piped()).spawn()?;
        let says = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut tcpdump = Tcpdump { child, says };
        while !tcpdump.line()?.contains(READY) {}
        // It is open then; what is left is a moment until it reads.
        thread::sleep(Duration::from_millis(50));
        Ok(tcpdump)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.says.read_line(&mut line)? {
            0 => Err(io::Error::other("tcpdump has ended early")),
            _ => Ok(line),
        }
    }

    /// How many packets it has captured so far, and when it was asked.
    fn captured(&mut self) -> io::Result<(Instant, f64)> {
        kill_process(Pid::from_child(&self.child), Signal::USR1)?;
        let asked = Instant::now();
        loop {
            let line = self.line()?;
            if let Some(number) = captured(&line) {
                return Ok((asked, number));
            }
        }
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // Both fail when it has ended by itself: that is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number in what tcpdump says when it is asked: `tcpdump: 12 packets captured, …`.
fn captured(line: &str) -> Option<f64> {
    let (before, _) = line.split_once(" packet").filter(|(_, rest)| rest.contains("captured"))?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tcpdump_says_is_read() {
        let line = "tcpdump: 12 packets captured, 14 packets received by filter, 0 packets dropped";
        assert_eq!(captured(line), Some(12.0));
        assert_eq!(captured("1 packet captured\n"), Some(1.0));
        assert_eq!(captured("tcpdump: listening on near0"), None);
    }
}
