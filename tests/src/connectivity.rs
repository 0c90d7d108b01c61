//! Hosts that talk, with programs that everybody has.

use std::{process::Output, time::Duration};

use ringway_testkit::{Netns, Proc};

const LIMIT: Duration = Duration::from_secs(30);

/// Two hosts reach each other: ping (and so ARP), TCP and UDP at full speed, both ways; and nothing arrives
/// broken.
pub fn assert_connected(a: &Netns, b: &Netns, address_of_b: &str) {
    a.ping(&format!("-c 5 -i 0.05 -w 30 {address_of_b}"));
    // Longer than the MTU: in pieces.
    a.ping(&format!("-c 3 -i 0.05 -w 30 -s 4000 {address_of_b}"));
    for options in ["-t 1", "-t 1 -R", "-u -b 50M -t 1"] {
        // One for each: it is not ready at once for a second client.
        let mut server = b.command("iperf3");
        server.args(["-s", "-1", "--forceflush"]);
        let server = Proc::spawn(server);
        server.wait_for("listening", LIMIT);
        let line = format!("iperf3 -c {address_of_b} {options}");
        let Output { status, stdout, stderr } = a.try_run(&line);
        let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        println!("{line}: {}", text.lines().rev().nth(2).unwrap_or_default());
        assert!(status.success(), "{line}: {text}; the server: {}", server.output());
    }
    let bad = |netns: &Netns| {
        let counters = netns.run("cat /proc/net/snmp");
        let column = |protocol: &str, name: &str| -> u64 {
            let mut lines = counters.lines().filter(|l| l.starts_with(protocol));
            let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
            let at = names.split(' ').position(|n| n == name).expect("a column of that name");
            values.split(' ').nth(at).and_then(|v| v.parse().ok()).expect("a number")
        };
        column("Tcp:", "InCsumErrors")
            + column("Udp:", "InCsumErrors")
            + column("Icmp:", "InCsumErrors")
    };
    assert_eq!((bad(a), bad(b)), (0, 0), "wrong checksums");
}
