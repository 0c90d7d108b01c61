//! Network interfaces on a switch: ping, TCP and a file between two network namespaces.

use std::process::Command;

use crate::{
    Result, Row,
    command::{output, ringway, sh},
    print,
    sys::mortal,
};

/// The argument with which this program runs itself inside the namespaces.
pub const INSIDE: &str = "--inside";

/// Runs [`show`] in mount, network and process namespaces of its own. They go with their
/// first process, and with them every interface, daemon and file that it made.
pub fn run_inside() -> Result<()> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.arg(std::env::current_exe()?).arg(INSIDE);
    // The daemon's directory too: `/run` in there is nobody else's.
    command.env("RINGWAY_DIR", "/run/ringway").env_remove("RINGWAY_SOCKET");
    let status = mortal(command).status().map_err(|e| format!("unshare: {e}"))?;
    if status.success() { Ok(()) } else { Err("the part with network interfaces failed".into()) }
}

/// Inside: builds the network, and sends through it.
pub fn show() -> Result<()> {
    sh(NETWORK)?;
    output(ringway(&["switch", "attach", "vale0", "veth-a", "veth-b"])?)?;
    print(vec![ping()?, tcp()?, file()?]);
    println!("\n  $ ringway switch stats");
    for line in output(ringway(&["switch", "stats"])?)?.lines() {
        println!("  {line}");
    }
    output(ringway(&["switch", "delete", "vale0"])?)?;
    Ok(())
}

/// Two namespaces, each with one end of a veth pair; the other ends stay here.
const NETWORK: &str = "
    mount -t tmpfs tmpfs /run && mount -t sysfs sysfs /sys
    ip link set lo up
    for side in a b; do
        ip netns add $side
        ip link add veth-$side type veth peer name eth0 netns $side
        ip link set veth-$side up
        ip -n $side link set lo up
        ip -n $side link set eth0 up
    done
    ip -n a addr add 192.0.2.1/24 dev eth0
    ip -n b addr add 192.0.2.2/24 dev eth0
";

fn ping() -> Result<Row> {
    let said = sh("ip netns exec a ping -q -c 20 -i 0.05 -W 2 192.0.2.2")?;
    let times = said.lines().last().and_then(|line| line.split('/').nth(4)).unwrap_or("?");
    let lost = said.split(", ").find(|part| part.contains("loss")).unwrap_or("? loss");
    Ok(Row::new("ping", format!("{times} ms on average, {lost}")))
}

fn tcp() -> Result<Row> {
    let said = sh("
        ip netns exec b iperf3 -s -1 -D -I /run/iperf3.pid
        until ip netns exec b ss -ltnH 'sport = 5201' | grep -q .; do :; done
        ip netns exec a iperf3 -c 192.0.2.2 -t 3 -J
    ")?;
    let report: serde_json::Value = serde_json::from_str(&said)?;
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0);
    Ok(Row::new("TCP (iperf3)", format!("{:.2} Gbit/s", rate / 1e9)))
}

fn file() -> Result<Row> {
    let said = sh("
        head -c 67108864 /dev/urandom > /run/sent
        ip netns exec b python3 -c '
import socket
s = socket.create_server((\"192.0.2.2\", 7))
print(\"ready\", flush=True)
c, _ = s.accept()
with open(\"/run/received\", \"wb\") as f:
    while data := c.recv(1 << 16): f.write(data)
' > /run/ready &
        until grep -q ready /run/ready 2>/dev/null; do :; done
        ip netns exec a bash -c 'cat /run/sent > /dev/tcp/192.0.2.2/7'
        wait
        sha256sum < /run/sent; sha256sum < /run/received
    ")?;
    let sums: Vec<&str> = said.lines().collect();
    match sums[..] {
        [sent, received] if sent == received => {
            let sum = sent.get(..16).unwrap_or(sent);
            Ok(Row::new("file of 64 MiB", format!("SHA-256 matches at the far end ({sum}…)")))
        }
        _ => Err(format!("the file has changed on its way: {said}").into()),
    }
}
