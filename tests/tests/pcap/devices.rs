//! Programs that ask the kernel about the device that they capture from: a port is an Ethernet
//! interface that is up.

use ringway::ethernet_address;

use super::*;

/// The answers to what a program in C asks of a device by its name, but for addresses and indices.
#[test]
fn a_port_is_an_interface_that_is_up() {
    if skip_without_root("devices::a_port_is_an_interface_that_is_up") {
        return;
    }
    isolated("devices::a_port_is_an_interface_that_is_up", |home| {
        install(home);
        let program = link(home, "tests/c/pcap_device.c", C11, &[]);
        let ask = |netns: Option<&Netns>, device: &str| {
            succeeds(run(home, netns, &format!("{} {device}", program.display())))
        };
        // By another name, an interface is what it is: each of these has a value of its own.
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        netns.run("ip link set n0 mtu 1400 txqueuelen 77 && ip addr add 10.5.0.1/20 broadcast 10.5.9.9 dev n0");
        for device in ["netmap:n0", "netmap:n0/rt"] {
            assert_eq!(ask(Some(&netns), device), ask(Some(&netns), "n0"), "{device}");
        }
        // By a monitor's name, others keep what they have.
        for (device, said, is_up) in [("netmap:n0/rt", "EPERM", true), ("netmap:n0", "done", false)]
        {
            assert_eq!(ask(Some(&netns), &format!("{device} down")), format!("down: {said}\n"));
            assert_eq!(netns.run("ip link show dev n0 up").is_empty(), !is_up, "{device}");
        }

        for device in ["vale0:a", "netmap:x{1"] {
            let address = ethernet_address(device.trim_start_matches("netmap:"));
            let address = address.map(|byte| format!("{byte:02x}")).join(":");
            let said = ask(None, device);
            let wanted = format!(
                "flags up broadcast running multicast\nhwaddr 1 {address}\nmtu 1500\nmetric 0\ntxqlen 1000\n\
                 addr EADDRNOTAVAIL\nnetmask EADDRNOTAVAIL\nbroadaddr EADDRNOTAVAIL\ndstaddr EADDRNOTAVAIL\n\
                 ethtool EOPNOTSUPP\nset flags: 0\nindex and name: the same\n\
                 sysfs directory EACCES\nsysfs address {address}\nsysfs mtu 1500\nsysfs operstate up\nsysfs type 1\n"
            );
            let link = format!("1 {address}, up running, mtu 1500, txqlen 1000");
            let by = ["name", "name", "name", "alternative name", "index"];
            let links: String = by.iter().map(|by| format!("link by {by}: {link}\n")).collect();
            assert_eq!(said, wanted + &links, "{device}");
        }
        let said = ask(None, "nosuch0");
        assert!(said.starts_with("flags ENODEV\nhwaddr ENODEV\n"), "{said}");
        assert!(said.contains("link by name: ENODEV\n"), "{said}");
        // A program that many scripts ask.
        let said = succeeds(run(home, None, "ip -d link show dev vale0:a"));
        let address = ethernet_address("vale0:a").map(|byte| format!("{byte:02x}")).join(":");
        let shown = ["vale0:a: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500", "link/ether", &address];
        assert!(shown.iter().all(|part| said.contains(part)), "{said}");
    });
}

/// A host at the port that answers ARP requests for an address, and opens and refuses connections
/// by TCP, until it is stopped.
fn answer(port: &mut Port, ends: &std::sync::atomic::AtomicBool) {
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
    while !ends.load(std::sync::atomic::Ordering::Relaxed) {
        let _ = port.wait(Interest::Rx, Some(Duration::from_millis(100)));
        let frames: Vec<_> = port.rx(0).batch(usize::MAX).map(|frame| frame.to_vec()).collect();
        for mut frame in frames {
            let is_asked = frame[12..14] == [8, 6] && frame[20..22] == [0, 1];
            if is_asked && frame[38..42] == [10, 0, 0, 2] {
                let asker: Vec<u8> = frame[22..32].to_vec();
                frame[..6].copy_from_slice(&asker[..6]);
                frame[6..12].copy_from_slice(&MAC);
                frame[21] = 2;
                frame[22..28].copy_from_slice(&MAC);
                frame[28..32].copy_from_slice(&[10, 0, 0, 2]);
                frame[32..42].copy_from_slice(&asker);
                assert!(port.tx(0).push(&frame));
            }
        }
        port.tx(0).sync();
    }
}

#[test]
fn programs_that_ask_about_the_device_run_on_a_switch() {
    isolated("devices::programs_that_ask_about_the_device_run_on_a_switch", |home| {
        install(home);
        // A scanner: its request has the port's address, and the answer comes to it.
        let mut host = Port::open("vale0:host").unwrap();
        let ends = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| answer(&mut host, &ends));
            let line = "arp-scan -I vale0:a --arpspa=10.0.0.1 --plain 10.0.0.2";
            let (status, said) = run(home, None, line).wait();
            ends.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(status.success() && said.contains("02:00:00:00:00:09"), "{said}");
        });

        // One that loads libpcap while it runs.
        let line = "masscan --adapter vale0:m --adapter-ip 10.0.0.1 --adapter-mac 02:00:00:00:00:01 \
                    --router-mac 02:00:00:00:00:09 10.0.0.2 -p 81 --wait 0";
        let masscan = run(home, None, line);
        let got = receive(&mut host, 1);
        assert_eq!((&got[0][30..34], &got[0][36..38]), (&[10, 0, 0, 2][..], &[0, 81][..]));
        succeeds(masscan);

        // A sniffer that makes room for what the device's MTU says.
        let line = "ettercap -T -q -u -i vale0:e -w sniffed.pcap";
        let ettercap = run(home, None, &format!("{line} < /dev/zero"));
        ettercap.wait_for("Starting Unified sniffing", LIMIT);
        until("ettercap sniffs", || {
            Source::port("vale0:b").send(&capture::frames());
            let sniffed = fs::metadata(home.path().join("sniffed.pcap")).map(|file| file.len());
            if sniffed.is_ok_and(|bytes| bytes > 24) { Ok(()) } else { Err(String::new()) }
        });
        ettercap.signal(Signal::KILL);
        ettercap.wait();

        // Flows: of a device that is down there would be none.
        let argus = run(home, None, "argus -X -i vale0:f -w flows");
        until("argus writes flows", || {
            Source::port("vale0:b").send(&capture::frames());
            let flows = fs::metadata(home.path().join("flows")).map(|file| file.len());
            if flows.is_ok_and(|bytes| bytes > 256) { Ok(()) } else { Err(String::new()) }
        });
        argus.signal(Signal::INT);
        argus.wait();
    });
}

/// The list of devices has the addresses of an interface whose port is open: arp-scan takes its own from there.
#[test]
fn a_port_of_an_interface_is_listed_with_its_addresses() {
    if skip_without_root("devices::a_port_of_an_interface_is_listed_with_its_addresses") {
        return;
    }
    isolated("devices::a_port_of_an_interface_is_listed_with_its_addresses", |home| {
        install(home);
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        netns.run("ip addr add 10.5.0.1/20 broadcast 10.5.15.255 dev n0");
        let far = PacketSocket::of_all(&netns, "n1");
        let line = "arp-scan -I netmap:n0 --plain --retry=1 --timeout=50 10.5.0.2";
        let said = succeeds(run(home, Some(&netns), line));
        assert!(!said.contains("Could not obtain IP address"), "{said}");
        let is_request = |frame: &Vec<u8>| frame[12..14] == [8, 6];
        let hear = || far.hear_within(LIMIT).unwrap().bytes;
        let request = std::iter::repeat_with(hear).find(is_request).unwrap();
        assert_eq!(request[28..32], [10, 5, 0, 1]);
    });
}

/// The port of an interface has the network of that; one without an address has none, as an interface without.
#[test]
fn a_port_has_the_network_of_its_interface() {
    if skip_without_root("devices::a_port_has_the_network_of_its_interface") {
        return;
    }
    isolated("devices::a_port_has_the_network_of_its_interface", |home| {
        install(home);
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        netns.run("ip addr add 10.5.0.1/20 dev n0");
        let script = "\
import ctypes, socket, sys
library = ctypes.CDLL('libpcap.so')
for name in sys.argv[1:]:
    net, mask, text = ctypes.c_uint(), ctypes.c_uint(), ctypes.create_string_buffer(256)
    code = library.pcap_lookupnet(name.encode(), ctypes.byref(net), ctypes.byref(mask), text)
    address = lambda number: socket.inet_ntoa(int(number.value).to_bytes(4, sys.byteorder))
    print(name, code, address(net), address(mask), text.value.decode())
";
        fs::write(home.path().join("lookupnet.py"), script).unwrap();
        let names = ["netmap:n0", "netmap:n0/rt", "netmap:nosuch", "vale0:q", "n1"];
        let line = format!("python3 lookupnet.py {}", names.join(" "));
        let said = succeeds(run(home, Some(&netns), &line));
        let wanted = "\
netmap:n0 0 10.5.0.0 255.255.240.0 \n\
netmap:n0/rt 0 10.5.0.0 255.255.240.0 \n\
netmap:nosuch -1 0.0.0.0 0.0.0.0 SIOCGIFADDR: nosuch: No such device\n\
vale0:q -1 0.0.0.0 0.0.0.0 vale0:q: no IPv4 address assigned\n\
n1 -1 0.0.0.0 0.0.0.0 n1: no IPv4 address assigned\n";
        assert_eq!(said, wanted);
    });
}

#[test]
fn a_monitor_that_is_to_send_says_why_not() {
    if skip_without_root("devices::a_monitor_that_is_to_send_says_why_not") {
        return;
    }
    isolated("devices::a_monitor_that_is_to_send_says_why_not", |home| {
        install(home);
        let program = link(home, "tests/c/pcap_cannot_send.c", C11, &["-lpcap"]);
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        let _port = Port::open("vale0:a").unwrap();
        let line = format!("{} netmap:n0/rt vale0:a vale0:a/t", program.display());
        succeeds(run(home, Some(&netns), &line));
    });
}

/// A program that loads libpcap while it runs has ports, whatever it calls the library.
#[test]
fn a_libpcap_that_is_loaded_has_ports() {
    isolated("devices::a_libpcap_that_is_loaded_has_ports", |home| {
        install(home);
        let script = "\
import ctypes, sys
for name in sys.argv[1:]:
    library = ctypes.CDLL(name)
    library.pcap_create.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(library.pcap_create(b'vale0:d', ctypes.create_string_buffer(256)))
    print(name, library.pcap_activate(handle))
    library.pcap_close(handle)
";
        fs::write(home.path().join("load.py"), script).unwrap();
        let system = format!("/usr/lib/{}-linux-gnu/libpcap.so", std::env::consts::ARCH);
        let names = ["libpcap.so", "libpcap.so.1", "libpcap.so.0.8", &system];
        let said = succeeds(run(home, None, &format!("python3 load.py {}", names.join(" "))));
        let wanted: String = names.iter().map(|name| format!("{name} 0\n")).collect();
        assert_eq!(said, wanted);
    });
}

/// A handle that is open needs no descriptor more, whatever it is asked for.
#[test]
fn handles_work_where_no_descriptor_is_left() {
    isolated("devices::handles_work_where_no_descriptor_is_left", |home| {
        install(home);
        let program = link(home, "tests/c/pcap_full_table.c", C11, &["-lpcap"]);
        let frames = capture::frames();
        for (device, other) in [("vale0:a", "vale0:b"), ("netmap:x{1", "x}1")] {
            let mut source = Source::port(other);
            let line = format!("{} '{device}' {}", program.display(), frames.len());
            let program = run(home, None, &line);
            for step in ["ready", "again"] {
                program.wait_for(&format!("{step}: 0"), LIMIT);
                source.send(&frames);
            }
            let said = succeeds(program);
            let wanted = "full: 1\nsetnonblock: 0\ngetnonblock: 1\ndispatch of nothing: 0\nready: 0\n\
                          nonblocking: 1\nsetnonblock: 0\ngetnonblock: 0\nagain: 0\nblocking: 1\n\
                          setfilter: 0\nsetdirection: 0\ninject: 60\nstats: 0\nloop: -2\n";
            assert_eq!(said, wanted, "{device}");
        }
    });
}
