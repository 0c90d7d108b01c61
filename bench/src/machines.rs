//! Virtual machines on a switch: DPDK's virtio-user is the machines' card, since nothing here runs a guest at full speed.
//! The peer is a testpmd that forwards between two vhost-user ports.
//!
//! ```text
//!   testpmd, virtio-user ==socket== [ vm attach, switch, vm attach ] ==socket== testpmd, virtio-user
//!                                   [ or testpmd, vhost to vhost   ]
//! ```

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command};
use std::time::Duration;
use std::{env, thread};

use crate::bench::Bench;
use crate::hugepages;
use crate::record::{Contestant, Road};
use crate::roles::{self, Held, Role, Seat};
use crate::testpmd::Testpmd;
use crate::traffic;

/// The machines' switch, which has nothing else on it.
const SWITCH: &str = "valemachines";
/// The address of what receives.
const RECEIVER: &str = "02:00:00:00:00:00";
/// What each testpmd has besides: packet buffers, and how many of them a thread keeps at hand.
const BUFFERS: [&str; 2] = ["--total-num-mbufs=32768", "--mbcache=512"];

/// How the machines are, and where what joins them runs if that is a testpmd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machines {
    /// Slots of their queues, and whether those are packed rings.
    queue: usize,
    packed: bool,
    /// Packets in a burst.
    burst: usize,
    /// On which of the CPUs sender, forwarder and receiver stay; `None`: on any.
    seats: Option<[usize; 3]>,
}

/// Before others are tried.
pub const UNTUNED: Machines = Machines { queue: 1024, packed: false, burst: 64, seats: None };

impl Machines {
    /// All that are tried before the best is measured.
    pub fn candidates(self) -> Vec<Machines> {
        let seats = [None, Some([0, 0, 1]), Some([0, 1, 1]), Some([0, 1, 0])];
        let with = |seats| {
            [(256, false, 32), (4096, false, 32), (4096, false, 256), (4096, true, 256)]
                .map(|(queue, packed, burst)| Machines { queue, packed, burst, seats })
        };
        seats.into_iter().flat_map(with).collect()
    }

    /// The settings that matter, in testpmd's words.
    pub fn settings(&self) -> String {
        let ([buffers, cache], Machines { queue, burst, seats, .. }) = (BUFFERS, self);
        let seats = match seats {
            None => "on any CPU".to_owned(),
            Some([sender, forwarder, receiver]) => {
                format!("sender {sender}, receiver {receiver}, a forwarder {forwarder}")
            }
        };
        let (eal, card) = (hugepages::eal(), self.card("", ""));
        format!(
            "{eal} --vdev={card} --burst={burst} --rxd={queue} --txd={queue} {buffers} {cache}, {seats}"
        )
    }

    fn card(&self, path: &str, more: &str) -> String {
        let (packed, queue) = (u8::from(self.packed), self.queue);
        format!(
            "net_virtio_user0{path},packed_vq={packed},mrg_rxbuf=0,in_order=1,queue_size={queue}{more}"
        )
    }

    fn seat(&self, bench: &Bench, process: usize) -> Seat<'static> {
        self.seats.map_or_else(Seat::default, |seats| Seat::on(bench.cpu(seats[process])))
    }

    /// Packets of `size` bytes from one machine to another, or to a program: millions a second, during the second of
    /// `times`.
    pub fn once(
        &self,
        bench: &Bench,
        road: Road,
        contestant: Contestant,
        size: usize,
        times: [Duration; 2],
    ) -> io::Result<f64> {
        let folder = bench.scratch.folder("machines")?;
        let sockets = ["one", "two"].map(|name| folder.join(name).to_string_lossy().into_owned());
        let machine = |name, number: usize, mode: &[&str]| {
            let mac = if number == 1 { format!(",mac={RECEIVER}") } else { String::new() };
            let device = self.card(&format!(",path={}", sockets[number]), &mac);
            self.start(name, &folder, self.seat(bench, number * 2), &[device], mode)
        };
        let (length, to) = (format!("--txpkts={size}"), format!("--eth-peer=0,{RECEIVER}"));
        let sends = ["--forward-mode=txonly", length.as_str(), to.as_str()];
        if road == Road::MachineToProgram {
            let program = ["vale-rx", "--index=0", "--batch=256", &format!("--size={size}")];
            let program = Role::start(Seat::default(), &bench.daemon, &program)?;
            let _port = attach(bench, traffic::SWITCH, "machine", &sockets[0])?;
            let mut sender = machine("sender", 0, &sends)?;
            sender.ask("start")?;
            return Ok(roles::run(vec![program], times[0], times[1])?[0].mpps());
        }
        let _joined = match contestant.is_ringway() {
            true => Joined::Ports(switch(bench, &sockets)?),
            false => Joined::Testpmd(self.forwarder(bench, &folder, &sockets)?),
        };
        let mut receiver = machine("receiver", 1, &["--forward-mode=rxonly"])?;
        let mut sender = machine("sender", 0, &sends)?;
        receiver.ask("start")?;
        sender.ask("start")?;
        receiver.wait_for_packets()?;
        thread::sleep(times[0]);
        receiver.received()?;
        thread::sleep(times[1]);
        Ok(receiver.received()?.rate / 1e6)
    }

    fn forwarder(
        &self,
        bench: &Bench,
        folder: &Path,
        sockets: &[String; 2],
    ) -> io::Result<Testpmd> {
        let devices: Vec<_> =
            (0..).zip(sockets).map(|(n, socket)| format!("net_vhost{n},iface={socket}")).collect();
        let mode = ["--forward-mode=io", "--auto-start"];
        self.start("forwarder", folder, self.seat(bench, 1), &devices, &mode)
    }

    fn start(
        &self,
        name: &'static str,
        folder: &Path,
        seat: Seat,
        devices: &[String],
        more: &[&str],
    ) -> io::Result<Testpmd> {
        let burst = format!("--burst={}", self.burst);
        let slots = ["rxd", "txd"].map(|of| format!("--{of}={}", self.queue));
        let own = [burst.as_str(), &slots[0], &slots[1]];
        let options = [&own, &BUFFERS[..], more].concat();
        Testpmd::start(name, folder, seat, devices, &options)
    }
}

/// What the machines are joined by, as long as it lives.
enum Joined {
    Testpmd(#[expect(dead_code, reason = "it is kept")] Testpmd),
    Ports(#[expect(dead_code, reason = "they are kept")] [Attached; 2]),
}

/// A port of a machine, and the pipe that it writes to.
struct Attached(#[expect(dead_code, reason = "they are kept")] (Held, BufReader<ChildStdout>));

/// A port of the switch for each, and the receiver's address is known.
fn switch(bench: &Bench, [sends, receives]: &[String; 2]) -> io::Result<[Attached; 2]> {
    let ports = [attach(bench, SWITCH, "one", sends)?, attach(bench, SWITCH, "two", receives)?];
    let said = ringway(bench, &["switch", "fdb", "add", SWITCH, RECEIVER, "two"])?.output()?;
    match said.status.success() {
        true => Ok(ports),
        false => Err(io::Error::other(String::from_utf8_lossy(&said.stderr).into_owned())),
    }
}

fn attach(bench: &Bench, switch: &str, port: &str, socket: &str) -> io::Result<Attached> {
    let arguments = ["vm", "attach", switch, port, "--socket", socket];
    let mut held = Held::new(ringway(bench, &arguments)?.spawn()?);
    let (mut output, mut line) = (BufReader::new(held.output()), String::new());
    output.read_line(&mut line)?;
    match line.contains("is open") {
        true => Ok(Attached((held, output))),
        false => Err(io::Error::other("the machine has no port; the message is above")),
    }
}

/// The command, of the same build.
fn ringway(bench: &Bench, arguments: &[&str]) -> io::Result<Command> {
    let own = env::current_exe()?.with_file_name("ringway").to_string_lossy().into_owned();
    let mut command =
        roles::command(Seat::default(), &[&["exec", "--", &own], arguments].concat())?;
    command.env("RINGWAY_DIR", &bench.daemon);
    Ok(command)
}
