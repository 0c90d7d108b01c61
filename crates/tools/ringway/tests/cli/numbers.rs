//! Numbers that are shown are those of what they stand beside.

use crate::home::{Home, LIMIT, find, finish, lines};
use ringway_testkit::{Netns, PacketSocket, Proc, frame, skip_without_root};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::Instant;

/// Asks again until it is so.
fn until(what: impl Fn() -> Result<(), Value>) {
    let deadline = Instant::now() + LIMIT;
    while let Err(seen) = what() {
        assert!(Instant::now() < deadline, "{seen}");
    }
}

/// What an MTU keeps a bridge from sending is lost on the way there, as too long; whatever the mode.
#[test]
fn losses_of_a_bridge_stand_at_their_direction() {
    if skip_without_root("cli::numbers::losses_of_a_bridge_stand_at_their_direction") {
        return;
    }
    for mode in ["copy", "generic", "packet"] {
        let home = Home::new();
        let [near, far] = [(); 2].map(|()| Netns::quiet("nu"));
        let _pairs = [near.veth(&far, "nua", "nub"), near.veth(&far, "nuc", "nud")];
        for (netns, name) in [(&near, "nua"), (&far, "nub")] {
            netns.run(&format!("ip link set {name} mtu 9000"));
        }
        let [a, c] = ["nua", "nuc"].map(|name| format!("netmap:{name}@mode={mode}"));
        let bridge = Proc::spawn(home.command_in(&near, &["bridge", &a, &c, "--json"]));
        bridge.wait_for(r#""zero_copy""#, LIMIT);
        let (sender, receiver) = (PacketSocket::new(&far, "nub"), PacketSocket::new(&far, "nud"));
        for (number, length) in (0..).zip([60, 3000, 3000, 3000, 60]) {
            sender.send(&frame(number, length));
        }
        // Those that fit have passed: so have the others.
        for number in [0, 4] {
            assert_eq!(receiver.hear().bytes, frame(number, 60), "{mode}");
        }
        bridge.signal(Signal::INT);
        let printed = finish(bridge);
        let of = |kind: &str, key: &str, name: &str| {
            let mut all = printed.iter().filter(|line| line["type"] == kind);
            all.find(|line| line[key] == name)
                .unwrap_or_else(|| panic!("{name}: {printed:?}"))
                .clone()
        };
        let drops = |label| of("summary", "label", label)["drops"].clone();
        assert_eq!((drops("nua -> nuc"), drops("nuc -> nua")), (3.into(), 0.into()), "{mode}");
        let there = of("drops", "port", "nuc");
        assert_eq!((&there["too_long"], &there["ring_full"]), (&3.into(), &0.into()), "{mode}");
        home.is_left_clean();
    }
}

/// Whatever index the rings have come to.
#[test]
fn a_ring_of_an_interface_is_as_full_as_it_has_packets() {
    if skip_without_root("cli::numbers::a_ring_of_an_interface_is_as_full_as_it_has_packets") {
        return;
    }
    for mode in ["copy", "packet"] {
        let home = Home::new();
        let [near, far] = [(); 2].map(|()| Netns::quiet("nf"));
        let _pair = near.veth(&far, "nfa", "nfb");
        let port = format!("netmap:nfa@mode={mode}");
        let receiver =
            Proc::spawn(home.command_in(&near, &["recv", &port, "--count", "101", "--json"]));
        receiver.wait_for(r#""type":"open""#, LIMIT);
        let sender = PacketSocket::new(&far, "nfb");
        (0..100).for_each(|number| sender.send(&frame(number, 60)));
        let ring = || {
            let rings = home.json(&["ports", "--rings"]);
            let is_it = |ring: &Value| {
                ring["receives"] == true && ring["host"] == false && ring["port"] == "nfa"
            };
            rings.into_iter().find(is_it).expect("a ring")
        };
        until(|| if ring()["packets"] == 100 { Ok(()) } else { Err(ring()) });
        // The program releases what it has taken with its next sync.
        until(|| if ring()["fill"] == 0 { Ok(()) } else { Err(ring()) });
        sender.send(&frame(100, 60));
        finish(receiver);
        home.is_left_clean();
    }
}

#[test]
fn rings_of_a_switchs_port_count_bytes() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b", "--count", "100"]);
    let sender = home.open(&["gen", "vale0:a", "--count", "1000000", "--rate", "1k"]);
    until(|| {
        let rings = home.json(&["ports", "--rings"]);
        let mut sent = rings.iter().filter(|ring| ring["port"] == "vale0:a");
        let ring = sent.find(|ring| ring["receives"] == false).cloned().unwrap_or_default();
        let [packets, bytes] = ["packets", "bytes"].map(|what| ring[what].as_u64().unwrap_or(0));
        // The worker may have taken less than the program has sent.
        if bytes > 0 && bytes % 60 == 0 && bytes <= packets * 60 { Ok(()) } else { Err(ring) }
    });
    finish(receiver);
    sender.signal(Signal::INT);
    finish(sender);
    home.is_left_clean();
}

/// A capture file of one frame from each of these addresses, with VLAN 7 for the odd ones.
fn addresses(count: u16) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for number in 0..count {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0]);
        frame.extend(number.to_be_bytes());
        if number % 2 == 1 {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend([0x88, 0xb5]);
        frame.resize(60, 0);
        for word in [u32::from(number), 0, 60, 60] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

#[test]
fn a_switch_shows_what_it_has_learned() {
    const COUNT: u16 = 600;
    let home = Home::new();
    let file = home.dir.join("addresses.pcap");
    fs::write(&file, addresses(COUNT)).unwrap();
    let receiver = home.open(&["recv", "vale0:b"]);
    let trunk = ["switch", "port", "vale0:b", "--trunk", "7", "--native", "1"];
    assert!(home.run(&trunk).status.success());
    assert!(home.json(&["switch", "fdb", "vale0"]).is_empty());
    // It stays there, and with it what was learned of it.
    let persistent = home.open(&["recv", "vale0:a"]);
    assert!(
        home.run(&["switch", "port", "vale0:a", "--trunk", "7", "--native", "1"]).status.success()
    );
    home.json(&["replay", "vale0:a", file.to_str().unwrap(), "--speed", "0"]);
    let known = home.json(&["switch", "fdb", "vale0"]);
    // In a few places more addresses than fit may have met.
    assert!((590..=600).contains(&known.len()), "{}", known.len());
    for line in &known {
        let address = line["address"].as_str().unwrap();
        let number = u16::from_str_radix(&address[12..].replace(':', ""), 16).unwrap();
        let vlan = if number % 2 == 1 { 7 } else { 1 };
        assert!(address.starts_with("02:00:00:00:") && number < COUNT, "{line}");
        assert_eq!((&line["port"], &line["vlan"]), (&"vale0:a".into(), &vlan.into()), "{line}");
        assert!(line["age_s"].as_u64().unwrap() < LIMIT.as_secs(), "{line}");
    }
    let told = |name: &str, what: &str| {
        let ports = home.json(&["switch", "stats", "vale0"]);
        ports.iter().find(|port| port["port"] == name).expect("a port")[what].clone()
    };
    assert_eq!(told("vale0:a", "known"), known.len());
    assert_eq!(told("vale0:b", "known"), 0);
    let some = |of: &[&str]| home.json(&[&["switch", "fdb", "vale0"], of].concat()).len();
    let of_vlans = some(&["--vlan", "1"]) + some(&["--vlan", "7"]);
    assert_eq!([some(&["--port", "a"]), of_vlans], [known.len(); 2]);
    assert_eq!([some(&["--port", "b"]), some(&["--vlan", "9"])], [0; 2]);
    let text = String::from_utf8(home.run(&["switch", "stats"]).stdout).unwrap();
    assert!(text.contains(&format!("{} known", known.len())), "{text}");
    let text = String::from_utf8(home.run(&["switch", "fdb", "vale0"]).stdout).unwrap();
    assert!(text.starts_with("02:00:00:00:00:0"), "{text}");
    assert!(text.contains(" dev a vlan 1 updated ") && text.contains(" master vale0\n"), "{text}");
    for proc in [persistent, receiver] {
        proc.signal(Signal::INT);
        finish(proc);
    }
    home.is_left_clean();
}

/// What others have called something moves no cursor, and turns no letters round.
#[test]
fn texts_of_others_are_escaped() {
    let home = Home::new();
    // No port is called this, as the refusal says.
    let name = "vale0:a\u{202e}b c";
    for args in
        [&["switch", "fdb", name, "--json"][..], &["switch", "fdb", name], &["doctor", name]]
    {
        let output = home.run(args);
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains('\u{202e}'), "{said:?}");
        assert!(said.contains("202e"), "{said}");
    }
    let output = home.run(&["switch", "fdb", name, "--json"]);
    let said = lines(std::str::from_utf8(&output.stderr).unwrap());
    assert!(find(&said, "error")["text"].as_str().unwrap().contains('\u{202e}'), "{said:?}");
}
