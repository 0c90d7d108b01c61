//! Monitors of interfaces that no program has open: they listen beside the stack.

use std::net::TcpListener;

use super::*;

/// Both directions, and what an interface sends or receives alone.
#[test]
fn tcpdump_listens_beside_the_stack() {
    if skip_without_root("listen::tcpdump_listens_beside_the_stack") {
        return;
    }
    isolated("listen::tcpdump_listens_beside_the_stack", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut from_far = Source::Stack(PacketSocket::new(&b, "n1"));
        let mut from_here = Source::Stack(PacketSocket::new(&a, "n0"));
        for device in ["netmap:n0/rt", "netmap:n0/r"] {
            assert_tcpdump(home, Some(&a), device, &mut from_far);
        }
        for device in ["netmap:n0/rt", "netmap:n0/t"] {
            assert_tcpdump(home, Some(&a), device, &mut from_here);
        }
        // Of the other direction there is nothing: what comes first is of the one that is asked for.
        let frames = capture::frames();
        let first_is_arp = |device: &str, other: &mut Source, one: &mut Source| {
            let tcpdump = run(home, Some(&a), &format!("tcpdump -nn -e -i {device} -c 1"));
            tcpdump.wait_for("listening on", LIMIT);
            other.send(&frames[1..]);
            one.send(&frames[..1]);
            let said = succeeds(tcpdump);
            assert!(said.contains("ARP") && !said.contains("UDP"), "{device}: {said}");
        };
        first_is_arp("netmap:n0/r", &mut from_here, &mut from_far);
        first_is_arp("netmap:n0/t", &mut from_far, &mut from_here);
    });
}

/// The stack answers while a program listens, which sees question and answer.
#[test]
fn the_stack_keeps_what_is_listened_to() {
    if skip_without_root("listen::the_stack_keeps_what_is_listened_to") {
        return;
    }
    isolated("listen::the_stack_keeps_what_is_listened_to", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        a.run("ip address add 10.7.0.1/24 dev n0");
        b.run("ip address add 10.7.0.2/24 dev n1");
        let tcpdump = run(home, Some(&a), "tcpdump -nn -c 4 -i netmap:n0/rt icmp");
        tcpdump.wait_for("listening on", LIMIT);
        (0..2).for_each(|_| b.ping("-c 1 -w 30 10.7.0.1"));
        let said = succeeds(tcpdump);
        for what in ["echo request", "echo reply"] {
            assert_eq!(said.matches(what).count(), 2, "{said}");
        }
    });
}

/// A filter sees all of a packet of which the program wants the beginning, from the first packet
/// on.
#[test]
fn a_filter_looks_beyond_what_is_captured() {
    if skip_without_root("listen::a_filter_looks_beyond_what_is_captured") {
        return;
    }
    isolated("listen::a_filter_looks_beyond_what_is_captured", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        let line = "tcpdump -nn -i netmap:n0/rt -s 36 -c 40 -w written udp dst port 53";
        let tcpdump = run(home, Some(&a), line);
        tcpdump.wait_for("listening on", LIMIT);
        let mut query = vec![0; 60];
        query[..6].fill(0xff);
        query[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
        query[36..38].copy_from_slice(&53u16.to_be_bytes());
        source.send(&vec![query; 40]);
        let said = succeeds(tcpdump);
        assert!(said.contains("40 packets captured"), "{said}");
    });
}

/// Scanners send beside the stack, and hear its neighbour's answers.
#[test]
fn scanners_find_what_is_there() {
    if skip_without_root("listen::scanners_find_what_is_there") {
        return;
    }
    isolated("listen::scanners_find_what_is_there", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        a.run("ip address add 10.7.0.1/24 dev n0");
        b.run("ip address add 10.7.0.2/24 dev n1");
        let server = b.enter(|| TcpListener::bind("10.7.0.2:8080").expect("the port is free"));
        let said = succeeds(run(home, Some(&a), "nmap -n -sS -p 8080,8081 10.7.0.2"));
        let states = said.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.strip_suffix("/tcp")?, words.next()?))
        });
        assert_eq!(states.collect::<Vec<_>>(), [("8080", "open"), ("8081", "closed")], "{said}");
        let said = succeeds(run(home, Some(&a), "nping --tcp -c 2 -p 8080 10.7.0.2"));
        assert!(said.contains("Rcvd: 2") && said.contains("Lost: 0"), "{said}");
        drop(server);
    });
}

/// A tag that the kernel keeps beside a packet is where it was on the wire, for the filter too.
#[test]
fn tags_are_in_what_is_listened_to() {
    if skip_without_root("listen::tags_are_in_what_is_listened_to") {
        return;
    }
    isolated("listen::tags_are_in_what_is_listened_to", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let tagged =
            |id: u8, frame: &Vec<u8>| [&frame[..12], &[0x81, 0, 0, id], &frame[12..]].concat();
        let frames: Vec<Vec<u8>> = capture::frames()[..7]
            .iter()
            .flat_map(|frame| [frame.clone(), tagged(7, frame), tagged(8, frame)])
            .collect();
        file(home, "sent.pcap", &frames);
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        for filter in ["vlan 7", "vlan 8 and icmp", "not vlan 7"] {
            let how = "-nn -e -t -vv -XX";
            let said = plain(home, &format!("tcpdump {how} -r sent.pcap '{filter}' 2>/dev/null"));
            let count = said.lines().filter(|line| line.contains("ethertype")).count();
            assert!(count > 0, "{filter}: {said}");
            let line = format!("tcpdump {how} -i netmap:n0/r -c {count} '{filter}' > printed");
            let tcpdump = run(home, Some(&a), &line);
            tcpdump.wait_for("listening on", LIMIT);
            source.send(&frames);
            succeeds(tcpdump);
            assert_eq!(fs::read_to_string(home.path().join("printed")).unwrap(), said, "{filter}");
        }
    });
}

/// The frames in a capture file.
fn written(home: &Home, name: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(home.path().join(name)).unwrap_or_default();
    let mut rest = bytes.get(24..).unwrap_or_default();
    let mut frames = Vec::new();
    while let Some(header) = rest.get(..16) {
        let length = u32::from_ne_bytes(header[8..12].try_into().unwrap()) as usize;
        let Some(frame) = rest.get(16..16 + length) else { break };
        frames.push(frame.to_vec());
        rest = &rest[16 + length..];
    }
    frames
}

/// The guide's table of filters on tagged frames: a monitor of an unused interface has what the
/// system's library has of the interface, and a port has the frames that the filter matches as they
/// are.
#[test]
fn filters_on_tagged_frames_do_as_the_guide_says() {
    if skip_without_root("listen::filters_on_tagged_frames_do_as_the_guide_says") {
        return;
    }
    isolated("listen::filters_on_tagged_frames_do_as_the_guide_says", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let icmp = capture::frames().into_iter().find(|frame| capture::is_icmp(frame)).unwrap();
        let tagged = |tags: &[u8]| [&icmp[..12], tags, &icmp[12..]].concat();
        let frames = [
            icmp.clone(),
            tagged(&[0x81, 0, 0, 5]),
            tagged(&[0x81, 0, 0, 0]),
            tagged(&[0x88, 0xa8, 0, 5]),
            tagged(&[0x81, 0, 0, 5, 0x81, 0, 0, 6]),
            tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]),
        ];
        // Rows of the table: what the kernel has as the filter sees it, and what a port has.
        let table = [
            ("icmp", [0, 1, 2, 3].as_slice(), [0].as_slice()),
            ("not icmp", &[4, 5], &[1, 2, 3, 4, 5]),
            ("vlan", &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]),
            ("vlan 5", &[1, 3, 4, 5], &[1, 3, 4, 5]),
            ("not vlan", &[0], &[0]),
            ("vlan and icmp", &[1, 2, 3], &[1, 2, 3]),
            ("vlan 5 and vlan 6", &[4, 5], &[4, 5]),
        ];
        let mut port = Source::port("vale3:b");
        let mut far = Source::Stack(PacketSocket::new(&b, "n1"));
        for (filter, by_kernel, as_it_is) in table {
            let devices = [("n0", by_kernel), ("netmap:n0/r", by_kernel), ("vale3:a", as_it_is)];
            let captures = devices.map(|(device, wanted)| {
                // Twice what is wanted, of frames that are sent twice: no other has room in
                // between.
                let count = 2 * wanted.len();
                let name = device.replace(['/', ':'], "-");
                let line = format!("tcpdump -w {name} -c {count} -i {device} '{filter}'");
                let tcpdump = run(home, Some(&a), &line);
                tcpdump.wait_for("listening on", LIMIT);
                (name, wanted, tcpdump)
            });
            for source in [&mut port, &mut far] {
                source.send(&frames);
                source.send(&frames);
            }
            for (name, wanted, tcpdump) in captures {
                succeeds(tcpdump);
                let seen = written(home, &name);
                let seen = seen.iter().map(|frame| frames.iter().position(|known| known == frame));
                let wanted = wanted.iter().chain(wanted).map(|number| Some(*number));
                let [seen, wanted] = [seen.collect::<Vec<_>>(), wanted.collect()];
                assert_eq!(seen, wanted, "{filter} on {name}");
            }
        }
    });
}

/// The kernel takes no filter with a loop: that is run here, for every packet.
#[test]
fn what_the_kernel_does_not_filter_is_filtered_here() {
    if skip_without_root("listen::what_the_kernel_does_not_filter_is_filtered_here") {
        return;
    }
    isolated("listen::what_the_kernel_does_not_filter_is_filtered_here", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        let frames = capture::frames();
        let udp = frames[1].clone();
        let icmp = frames.into_iter().find(|frame| capture::is_icmp(frame)).unwrap();
        // Each turn is a block of the ring, and more.
        const TURNS: usize = 5;
        let how = format!("-nn -l --immediate-mode -c {TURNS}");
        let tcpdump =
            run(home, Some(&a), &format!("tcpdump {how} -i netmap:n0/r 'ip protochain 1'"));
        tcpdump.wait_for("listening on", LIMIT);
        for turn in 1..=TURNS {
            source.send(&[udp.clone(), icmp.clone()]);
            until("it is seen", || match tcpdump.output() {
                said if said.matches("ICMP").count() == turn => Ok(()),
                said => Err(said),
            });
        }
        let said = succeeds(tcpdump);
        assert!(!said.contains("UDP"), "{said}");
    });
}

/// What found no room in the ring is told: nothing is lost that is not.
#[test]
fn what_is_not_heard_is_counted() {
    if skip_without_root("listen::what_is_not_heard_is_counted") {
        return;
    }
    isolated("listen::what_is_not_heard_is_counted", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        let tcpdump = run(home, Some(&a), "tcpdump -B 512 -i netmap:n0/r -w written udp");
        tcpdump.wait_for("listening on", LIMIT);
        tcpdump.stop();
        // Each takes more than its 1514 bytes, of 512 KiB.
        let long = capture::frames().pop().unwrap();
        source.send(&vec![long; 1000]);
        tcpdump.signal(Signal::CONT);
        // What fits is read when the program goes on; it is ended when it has caught up.
        until("the last is written", || {
            source.send(&[capture::frames().remove(1)]);
            let said = plain(home, "tcpdump -nn -r written 2>/dev/null | tail -n 1 || true");
            if said.contains("length 9") { Ok(()) } else { Err(said) }
        });
        tcpdump.signal(Signal::INT);
        let said = succeeds(tcpdump);
        let number = |what: &str| -> u64 {
            let line =
                said.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{said}"));
            line.split(' ').next().unwrap().parse().unwrap()
        };
        let (captured, received, dropped) = (
            number("packets captured"),
            number("packets received by filter"),
            number("packets dropped by kernel"),
        );
        assert!(dropped > 500 && captured > 100, "{said}");
        assert_eq!(captured + dropped, received, "{said}");
        assert!(received > 1000, "{said}");
    });
}

/// One that goes when it is down already, which the kernel does not tell, ends a program that waits for packets.
#[test]
fn an_interface_that_goes_ends_the_wait() {
    if skip_without_root("listen::an_interface_that_goes_ends_the_wait") {
        return;
    }
    isolated("listen::an_interface_that_goes_ends_the_wait", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let tcpdump = run(home, Some(&a), "tcpdump -i netmap:n0/r");
        tcpdump.wait_for("listening on", LIMIT);
        let wakes = || -> Result<u64, String> {
            let status = fs::read_to_string(format!("/proc/{}/status", tcpdump.pid()));
            let status = status.map_err(|error| error.to_string())?;
            let line =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.and_then(|count| count.trim().parse().ok()).ok_or(status)
        };
        let before = wakes().unwrap();
        a.run("ip link set n0 down");
        // It hears of it, and goes on: the interface may come up again.
        until("it has looked", || match wakes()? {
            now if now > before + 1 => Ok(()),
            now => Err(now.to_string()),
        });
        a.run("ip link delete n0");
        let (status, said) = tcpdump.wait();
        assert!(!status.success() && said.contains("the interface has gone"), "{said}");
    });
}

/// What another network namespace has open is neither monitored by its name nor in the way.
#[test]
fn interfaces_of_one_name_are_told_apart() {
    if skip_without_root("listen::interfaces_of_one_name_are_told_apart") {
        return;
    }
    isolated("listen::interfaces_of_one_name_are_told_apart", |home| {
        install(home);
        let both = [(); 2].map(|()| Netns::quiet("rwp"));
        let pairs = both.each_ref().map(|netns| netns.veth(netns, "n0", "n1"));
        let [a, b] = &both;
        let other = a.enter(|| Port::open("netmap:n0")).unwrap();
        let tcpdump = run(home, Some(b), "tcpdump -nn -e -i netmap:n0 -c 1 ether proto 0x88b5");
        tcpdump.wait_for("listening on", LIMIT);
        let mut far = b.enter(|| Port::open("netmap:n1")).unwrap();
        let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb5], &[0; 46]].concat();
        assert!(far.tx(0).push(&frame));
        far.tx(0).sync();
        let said = succeeds(tcpdump);
        assert!(said.contains("02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff"), "{said}");
        drop((other, far, pairs));
    });
}
