//! Two containers, network namespaces with a veth pair each, on a switch or on a Linux bridge: what their
//! stacks exchange with each other and with the host's, by iperf3 and ping.
//!
//! ```text
//!   one            host                two
//!   eth0 === h0 [ switch or bridge ] h1 === eth0
//! ```

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use ringway::{Control, Interest, Port, Prepared, prepare};
use serde_json::Value;

use crate::bench::Bench;
use crate::netns::Netns;
use crate::open_vswitch::{self, Ports};
use crate::record::{Contestant, Road};
use crate::roles::{self, Held, Seat};

const SWITCH: &str = "vale0";
const ADDRESS: &str = "10.1.0.2";
const HOST: &str = "10.1.0.3/24";
/// Within a tunnel between the two.
const INNER: &str = "10.2.0.2";
/// Bytes of a datagram's data that make a frame of 64 bytes, with its frame check sequence.
const SMALL: &str = "18";
/// Streams of one run that has several.
pub const STREAMS: usize = 8;
const PINGS: &str = "500";

/// One run, in the road's unit.
pub fn once(bench: &Bench, road: Road, contestant: Contestant) -> io::Result<f64> {
    let [host, one, two] = [Netns::new()?, Netns::new()?, Netns::new()?];
    let [first, second] = [one.path(), two.path()];
    host.run(&format!(
        "ip link add h0 type veth peer name eth0 netns {first}\n\
         ip link add h1 type veth peer name eth0 netns {second}\n\
         ip link set h0 up\nip link set h1 up\n"
    ))?;
    for (netns, own, other) in [(&one, 1, 2), (&two, 2, 1)] {
        netns.run(&format!(
            "ip link set lo up\nip addr add 10.1.0.{own}/24 dev eth0\nip link set eth0 up\n\
             ip link add tunnel type vxlan id 7 dstport 4789 local 10.1.0.{own} \
             remote 10.1.0.{other} dev eth0\n\
             ip addr add 10.2.0.{own}/24 dev tunnel\nip link set tunnel up\n"
        ))?;
    }
    let with_host = matches!(road, Road::HostTcpOut | Road::HostTcpIn | Road::HostPing);
    let (_joined, own) = match contestant {
        Contestant::LinuxBridge => {
            host.run(
                "ip link add br0 type bridge\nip link set br0 up\n\
                 ip link set h0 master br0\nip link set h1 master br0\n",
            )?;
            (vec![], "br0")
        }
        Contestant::OpenVswitch => {
            let ports = vswitch_ports(road).ok_or(io::ErrorKind::Unsupported)?;
            if ports == Ports::AfXdp {
                for netns in [&one, &two] {
                    netns.run("ethtool -K eth0 tx off >/dev/null")?;
                }
            }
            let folder = bench.scratch.folder("open-vswitch")?;
            (open_vswitch::join(&host, &folder, ports, &["h0", "h1"])?, "br0")
        }
        _ => {
            let arguments: &[&str] = match road {
                Road::ContainersProgram => &["join", "--program"],
                _ if with_host => &["join", "h0", "h1", "--host"],
                _ => &["join", "h0", "h1"],
            };
            (vec![join(&host, &bench.scratch.folder("containers")?, arguments)?], "h0")
        }
    };
    if with_host {
        host.run(&format!("ip addr add {HOST} dev {own}\n"))?;
    }
    let from = if with_host { &host } else { &one };
    // It takes whole seconds, and 0 for no end.
    let seconds = format!("{:.0}", (bench.warm_up + bench.counting).as_secs_f64().ceil());
    let streams = STREAMS.to_string();
    let time = ["-t", seconds.as_str()];
    let iperf = |address: &str, more: &[&str]| {
        iperf3(from, &two, &[&["-c", address, "-J"], &time[..], more].concat())
    };
    let gigabits = |result: Value| number(&result, "/end/sum_received/bits_per_second", 1e9);
    match road {
        Road::ContainersTcp | Road::ContainersProgram => gigabits(iperf(ADDRESS, &[])?),
        Road::ContainersTcpStreams => gigabits(iperf(ADDRESS, &["-P", &streams])?),
        Road::ContainersVxlan => gigabits(iperf(INNER, &[])?),
        Road::ContainersUdp => {
            let result = iperf(ADDRESS, &["-u", "-b", "0", "-l", SMALL])?;
            let packets = number(&result, "/end/sum/packets", 1e6)?;
            let lost = number(&result, "/end/sum/lost_packets", 1e6)?;
            Ok((packets - lost) / number(&result, "/end/sum/seconds", 1.0)?)
        }
        Road::HostTcpOut => gigabits(iperf(ADDRESS, &[])?),
        Road::HostTcpIn => gigabits(iperf(ADDRESS, &["-R"])?),
        _ => ping(from),
    }
}

/// How Open vSwitch is fastest there; `None` where it is not measured.
pub fn vswitch_ports(road: Road) -> Option<Ports> {
    match road {
        Road::ContainersTcp | Road::ContainersTcpStreams => Some(Ports::Segments),
        Road::ContainersUdp | Road::ContainersPing => Some(Ports::AfXdp),
        _ => None,
    }
}

/// A number of what iperf3 says, in units of so many.
fn number(result: &Value, at: &str, unit: f64) -> io::Result<f64> {
    let found = result.pointer(at).and_then(Value::as_f64);
    found.map(|number| number / unit).ok_or_else(|| {
        io::Error::other(format!("iperf3 says nothing of {at}: {}", result["error"]))
    })
}

/// Has a process of its own attach the interfaces, as long as it is there.
pub fn join(host: &Netns, daemon: &Path, arguments: &[&str]) -> io::Result<Held> {
    join_in(Seat::default().inside(host), daemon, arguments)
}

/// The same, in that seat.
pub fn join_in(seat: Seat, daemon: &Path, arguments: &[&str]) -> io::Result<Held> {
    let mut command = roles::command(seat, arguments)?;
    let mut held = Held::new(command.env("RINGWAY_DIR", daemon).spawn()?);
    let mut line = String::new();
    BufReader::new(held.output()).read_line(&mut line)?;
    match line.trim_end() {
        "ready" => Ok(held),
        _ => Err(io::Error::other("the interfaces could not be attached; the message is above")),
    }
}

/// That process.
pub fn play_join(interfaces: &[String], with_host: bool) -> io::Result<()> {
    let control = Control::connect().map_err(io::Error::other)?;
    for (number, interface) in interfaces.iter().enumerate() {
        let host = with_host && number == 0;
        control.switch_attach(SWITCH, interface, host).map_err(io::Error::other)?;
    }
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new())?;
    control.switch_delete(SWITCH).map_err(io::Error::other)
}

/// The same with each on a switch of its own. Two ports with virtio-net headers, and a program that passes frames on
/// between them, join the two.
pub fn play_program() -> io::Result<()> {
    let control = Control::connect().map_err(io::Error::other)?;
    let mut ports = Vec::new();
    for (switch, interface) in [(SWITCH, "h0"), ("vale1", "h1")] {
        control.switch_attach(switch, interface, false).map_err(io::Error::other)?;
        let name = format!("{switch}:program");
        let options = Port::options().accept_header().tx_slots(1024).rx_slots(1024);
        ports.push(options.open(&name).map_err(io::Error::other)?);
        control.set_header_len(&name, 12).map_err(io::Error::other)?;
    }
    println!("ready");
    let [a, b] = &mut ports[..] else { return Err(io::Error::other("two ports")) };
    // Until it is killed.
    loop {
        if pass(a, b) + pass(b, a) > 0 {
            continue;
        }
        let [of_a, of_b] =
            [b.rx(0).available(), a.rx(0).available()].map(|waiting| match waiting {
                0 => Interest::Rx,
                _ => Interest::Tx,
            });
        let mut waiters = [a.waiter(of_a), b.waiter(of_b)];
        if let Prepared::Armed(armed) = prepare(&mut waiters[..]) {
            armed.sleep(None)?;
        }
    }
}

/// Passes on what there is; how many slots.
fn pass(from: &mut Port, to: &mut Port) -> usize {
    let (mut rx, mut tx) = (from.rx(0), to.tx(0));
    rx.sync();
    tx.sync();
    let slots = rx.whole(tx.space());
    rx.forward(&mut tx, slots, true);
    tx.sync();
    slots
}

fn program(netns: &Netns, arguments: &[&str]) -> io::Result<Command> {
    roles::command(Seat::default().inside(netns), &[&["exec", "--"], arguments].concat())
}

/// What the client says, as JSON.
fn iperf3(from: &Netns, to: &Netns, arguments: &[&str]) -> io::Result<Value> {
    let mut server = program(to, &["iperf3", "-s", "-1", "--forceflush"])?;
    let mut server = Held::new(server.spawn()?);
    let mut lines = BufReader::new(server.output()).lines();
    while !lines.next().transpose()?.ok_or(io::ErrorKind::UnexpectedEof)?.contains("listening") {}
    let output = program(from, &[&["iperf3"], arguments].concat())?.output()?;
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// Microseconds of a round trip, the median.
fn ping(from: &Netns) -> io::Result<f64> {
    let mut command = program(from, &["ping", "-n", "-c", PINGS, "-i", "0.002", ADDRESS])?;
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut times: Vec<f64> = text.lines().filter_map(round_trip).collect();
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2);
    median.map(|ms| ms * 1e3).ok_or_else(|| io::Error::other("no ping was answered"))
}

/// Milliseconds in a line of ping.
fn round_trip(line: &str) -> Option<f64> {
    let (_, time) = line.split_once("time=")?;
    time.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_read() {
        let line = "64 bytes from 10.1.0.2: icmp_seq=2 ttl=64 time=0.058 ms";
        assert_eq!(round_trip(line), Some(0.058));
        assert_eq!(round_trip("rtt min/avg/max/mdev = 0.058/0.078/0.118/0.027 ms"), None);
    }
}
