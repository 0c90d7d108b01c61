//! Only some of what an interface receives: a filter, or single queues. The kernel keeps the rest,
//! and its sockets do not notice.

use std::{
    collections::BTreeSet,
    net::UdpSocket,
    path::Path,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use ringway::{Control, Filter, FilterInfo, OpenOptions, Port, PortInfo};
use ringway_testkit::{Netns, Proc, Snapshot, VethPair, skip_without_root};
use ringway_tests::{
    Home,
    c::{Language::C11, Library::*},
    compile, ends, inside, isolated, one_at_a_time, until,
};
use rustix::process::{Pid, Signal, kill_process};

/// Nothing that is sent on a veth pair is lost, so what does not come in this time never does.
const LIMIT: Duration = Duration::from_secs(30);
const HERE: &str = "10.6.0.1";
const THERE: &str = "10.6.0.2";
/// What UDP's payload follows.
const HEADERS: usize = 14 + 20 + 8;

/// A host whose interface `n0` programs have, and one that sends to it by `n1`.
struct Hosts {
    here: Netns,
    there: Netns,
    pair: VethPair,
    /// What the first host's stack receives, on two ports.
    stack: [UdpSocket; 2],
}

const PORTS: [u16; 2] = [53, 54];

fn udp(netns: &Netns, address: (&str, u16)) -> UdpSocket {
    let socket = netns.enter(|| UdpSocket::bind(address).unwrap());
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    socket
}

impl Hosts {
    fn new(queues: u32) -> Hosts {
        let (here, there) = (Netns::quiet("rwf"), Netns::quiet("rwf"));
        let pair = here.veth_queues(&there, "n0", "n1", queues);
        here.run(&format!("ip addr add {HERE}/24 dev n0"));
        there.run(&format!("ip addr add {THERE}/24 dev n1"));
        let stack = PORTS.map(|port| udp(&here, (HERE, port)));
        Hosts { here, there, pair, stack }
    }

    fn open(&self, options: OpenOptions, spec: &str) -> Port {
        self.here.enter(|| options.open(spec)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A sender of the other host; each is a flow.
    fn sender(&self) -> UdpSocket {
        udp(&self.there, (THERE, 0))
    }

    /// The hosts need not ask for each other's address, where one could not answer.
    fn introduce(&self) {
        let mac = |netns: &Netns, name| netns.run(&format!("cat /sys/class/net/{name}/address"));
        let (here, there) = (mac(&self.here, "n0"), mac(&self.there, "n1"));
        self.there.run(&format!("ip neigh add {HERE} dev n1 lladdr {here}"));
        self.here.run(&format!("ip neigh add {THERE} dev n0 lladdr {there}"));
    }

    fn control<T: Send>(&self, f: impl FnOnce(&Control) -> T + Send) -> T {
        self.here.enter(|| f(&Control::connect().unwrap()))
    }

    fn info(&self) -> PortInfo {
        self.control(|control| control.ports().unwrap()).pop().unwrap()
    }

    fn filter(&self) -> FilterInfo {
        self.info().filters.pop().unwrap()
    }

    fn end(self, before: Snapshot, home: &Home) {
        until("n0 is the stack's again", || match self.here.run("ip -d link") {
            text if text.contains("prog/xdp") || text.contains("rwrecv") => Err(text),
            _ => Ok(()),
        });
        let sender = self.sender();
        send(&sender, 0, 1234);
        assert_eq!(hear(&self.stack[0]), 1234);
        home.assert_left();
        self.pair.delete();
        drop((self.here, self.there));
        before.assert_clean();
    }
}

fn filter(expression: &str) -> Filter {
    Filter::new(expression).unwrap()
}

fn send(from: &UdpSocket, port: usize, number: u32) {
    from.send_to(&number.to_be_bytes(), (HERE, PORTS[port])).unwrap();
}

fn hear(socket: &UdpSocket) -> u32 {
    let mut bytes = [0; 4];
    assert_eq!(socket.recv(&mut bytes).unwrap(), 4);
    u32::from_be_bytes(bytes)
}

/// Whether something has come.
fn overhear(socket: &UdpSocket) -> Result<(), String> {
    socket.set_nonblocking(true).unwrap();
    let heard = socket.recv(&mut [0; 4]);
    socket.set_nonblocking(false).unwrap();
    heard.map(drop).map_err(|e| e.to_string())
}

/// The numbers in what is there, in all rings.
fn take(port: &mut Port) -> Vec<u32> {
    let mut numbers = Vec::new();
    for ring in 0..port.rx_rings() {
        port.rx(ring).sync();
        for frame in port.rx(ring).batch(1024) {
            let number = frame.to_vec()[HEADERS..HEADERS + 4].try_into().unwrap();
            numbers.push(u32::from_be_bytes(number));
        }
    }
    numbers
}

/// The next `count` numbers.
fn receive(port: &mut Port, count: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        assert!(port.wait_rx(Some(LIMIT)).unwrap(), "{} of {count} have come", numbers.len());
        numbers.extend(take(port));
    }
    numbers
}

/// In which a filter and what it leaves are apart: in the XDP program, and beside the traffic control.
const MODES: [&str; 2] = ["copy", "packet"];

fn run_in_modes(test: &str, body: impl Fn(&Home, &str)) {
    run(test, |home| MODES.iter().for_each(|mode| body(home, mode)));
}

fn run(test: &str, body: impl FnOnce(&Home)) {
    if skip_without_root(test) {
        return;
    }
    let _turn = one_at_a_time();
    isolated(test, body);
}

/// To either port a hundred, one for one; and a ping, which needs ARP.
fn divides(hosts: &Hosts, port: &mut Port) {
    let sender = hosts.sender();
    for number in 0..100 {
        send(&sender, 0, number);
        send(&sender, 1, number);
        assert_eq!(hear(&hosts.stack[1]), number);
    }
    assert_eq!(receive(port, 100), (0..100).collect::<Vec<_>>());
    hosts.there.ping(&format!("-c 3 -i 0.01 -w 30 {HERE}"));
}

#[test]
fn what_matches_comes_and_the_rest_stays() {
    run_in_modes("what_matches_comes_and_the_rest_stays", |home, mode| {
        let before = Snapshot::take();
        let hosts = Hosts::new(1);
        let options = Port::options().rx_only().filter(filter("udp dst port 53"));
        let mut port = hosts.open(options, &format!("netmap:n0@mode={mode}"));
        divides(&hosts, &mut port);
        let FilterInfo { text, queues, matched, taken, passed, .. } = hosts.filter();
        assert_eq!((text.as_str(), &queues[..]), ("udp dst port 53", &[0][..]));
        assert_eq!((matched, taken), (100, 100));
        assert!(passed >= 103, "{passed}");

        // By somebody else, by name; by the program; and not at all.
        hosts.control(|control| control.set_filter("netmap:n0", Some(filter("icmp")))).unwrap();
        send(&hosts.sender(), 0, 7);
        assert_eq!(hear(&hosts.stack[0]), 7);
        assert_eq!(hosts.filter().matched, 0);
        port.set_filter(filter("udp").one_in(2)).unwrap();
        let sender = hosts.sender();
        for number in 0..10 {
            send(&sender, 0, number);
        }
        // Each CPU takes its first.
        let mut numbers: BTreeSet<_> = receive(&mut port, 5).into_iter().collect();
        until("all frames are counted", || match hosts.filter().matched {
            10 => Ok(()),
            other => Err(format!("{other}")),
        });
        numbers.extend(take(&mut port));
        let left = 10 - numbers.len();
        numbers.extend((0..left).map(|_| hear(&hosts.stack[0])));
        assert_eq!(numbers, (0..10).collect());
        port.clear_filter().unwrap();
        assert!(hosts.info().filters.is_empty());
        send(&sender, 1, 8);
        assert_eq!(receive(&mut port, 1), [8]);
        drop(port);
        hosts.end(before, home);
    });
}

#[test]
fn a_filter_works_with_tx_rings_open_too() {
    run_in_modes("a_filter_works_with_tx_rings_open_too", |home, mode| {
        let before = Snapshot::take();
        let hosts = Hosts::new(1);
        let spec = format!("netmap:n0@filter=udp dst port 53@sample=1@mode={mode}");
        let mut port = hosts.open(Port::options(), &spec);
        // With tx rings open the stack's answers go nowhere, its ears work.
        hosts.introduce();
        let sender = hosts.sender();
        send(&sender, 1, 5);
        assert_eq!(hear(&hosts.stack[1]), 5);
        send(&sender, 0, 6);
        assert_eq!(receive(&mut port, 1), [6]);
        drop(port);
        hosts.there.run("ip neigh flush dev n1");
        hosts.end(before, home);
    });
}

/// What the stack sends, and matches, comes up in host rings; the rest leaves at once.
#[test]
fn filters_of_host_rings() {
    run("filters_of_host_rings", |home| {
        let before = Snapshot::take();
        let hosts = Hosts::new(1);
        let near = udp(&hosts.here, (HERE, 0));
        let far = PORTS.map(|port| udp(&hosts.there, (THERE, port)));
        let say = |port: usize, number: u32| {
            near.send_to(&number.to_be_bytes(), (THERE, PORTS[port])).unwrap();
        };
        hosts.introduce();
        let divides = |port: &mut Port| {
            for number in 0..20 {
                say(0, number);
                say(1, number);
                assert_eq!(hear(&far[1]), number);
            }
            assert_eq!(receive(port, 20), (0..20).collect::<Vec<_>>());
        };

        let mut port = hosts.open(Port::options(), "netmap:n0^@filter=udp dst port 53");
        divides(&mut port);
        let FilterInfo { text, queues, host, matched, taken, passed, .. } = hosts.filter();
        assert_eq!((text.as_str(), queues.len(), host), ("udp dst port 53", 0, true));
        assert_eq!((matched, taken), (20, 20));
        assert!(passed >= 20, "{passed}");
        // Whether somebody sends by the interface makes no difference.
        let sender = hosts.open(Port::options(), "netmap:n0/T");
        divides(&mut port);

        // By name, by the program, and not at all.
        hosts.control(|c| c.set_filter("netmap:n0^", Some(filter("udp dst port 54")))).unwrap();
        say(0, 7);
        assert_eq!(hear(&far[0]), 7);
        say(1, 8);
        assert_eq!(receive(&mut port, 1), [8]);
        port.set_filter(filter("ip6")).unwrap();
        say(1, 9);
        assert_eq!(hear(&far[1]), 9);
        port.clear_filter().unwrap();
        say(1, 10);
        assert_eq!(receive(&mut port, 1), [10]);
        drop(sender);
        until("the stack sends again", || {
            say(1, 11);
            overhear(&far[1])
        });

        // A filter goes with the last that has the rings.
        port.set_filter(filter("udp")).unwrap();
        drop(port);
        until("the filter has gone", || {
            say(0, 12);
            overhear(&far[0])
        });
        hosts.end(before, home);
    });
}

#[test]
fn a_change_under_traffic_loses_nothing() {
    run_in_modes("a_change_under_traffic_loses_nothing", |home, mode| {
        let before = Snapshot::take();
        let hosts = Hosts::new(1);
        let options = Port::options().rx_only().filter(filter("udp"));
        let mut port = hosts.open(options, &format!("netmap:n0@mode={mode}"));
        let changes = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let sender = hosts.sender();
                // No more at a time than rings hold.
                for first in (0..).step_by(100).take_while(|_| changes.load(Relaxed) < 12) {
                    (first..first + 100).for_each(|number| send(&sender, 0, number));
                    assert_eq!(receive(&mut port, 100), (first..first + 100).collect::<Vec<_>>());
                }
            });
            let filters = ["udp dst port 53", "dst host 10.6.0.1", "udp"];
            for expression in filters.into_iter().cycle().take(12) {
                let filter = Some(filter(expression));
                hosts.control(|control| control.set_filter("netmap:n0", filter)).unwrap();
                changes.fetch_add(1, Relaxed);
            }
        });
        drop(port);
        hosts.end(before, home);
    });
}

#[test]
fn a_filter_outlives_the_daemon_as_long_as_its_program() {
    run_in_modes("a_filter_outlives_the_daemon_as_long_as_its_program", |home, mode| {
        let before = Snapshot::take();
        let hosts = Hosts::new(1);
        let options = Port::options().rx_only().filter(filter("udp dst port 53"));
        let mut port = hosts.open(options, &format!("netmap:n0@mode={mode}"));
        let daemon = home.daemon();
        kill_process(Pid::from_raw(daemon as i32).unwrap(), Signal::KILL).unwrap();
        assert!(ends(daemon, LIMIT));
        divides(&hosts, &mut port);
        assert!(port.set_filter(filter("tcp")).is_err());
        drop(port);
        // Its socket is still there: who comes next clears it away.
        hosts.control(|control| assert!(control.ports().unwrap().is_empty()));
        hosts.end(before, home);
    });
}

/// Flows that came to the program and to the stack; no flow came to both.
fn share(hosts: &Hosts, port: &mut Port) -> [BTreeSet<u32>; 2] {
    const FLOWS: u32 = 200;
    for number in 0..FLOWS {
        send(&hosts.sender(), 0, number);
    }
    let [mut ours, mut theirs] = [BTreeSet::new(), BTreeSet::new()];
    hosts.stack[0].set_nonblocking(true).unwrap();
    until("every flow has come", || {
        ours.extend(take(port));
        let mut bytes = [0; 4];
        while hosts.stack[0].recv(&mut bytes).is_ok() {
            theirs.insert(u32::from_be_bytes(bytes));
        }
        match ours.len() + theirs.len() {
            200 => Ok(()),
            some => Err(format!("{some} of {FLOWS} flows")),
        }
    });
    hosts.stack[0].set_nonblocking(false).unwrap();
    assert!(ours.is_disjoint(&theirs));
    [ours, theirs]
}

#[test]
fn single_queues() {
    run_in_modes("single_queues", |home, mode| {
        let before = Snapshot::take();
        let hosts = Hosts::new(4);
        // The sender's queue is chosen by the flow, for each packet anew.
        hosts
            .there
            .run("for q in 0 1 2 3; do echo 0 > /sys/class/net/n1/queues/tx-$q/xps_cpus; done");
        hosts.there.ping(&format!("-c 1 -w 30 {HERE}"));
        let mut port = hosts.open(Port::options(), &format!("netmap:n0~2@mode={mode}"));
        assert_eq!((port.tx_rings(), port.rx_rings(), port.rx_index(0)), (0, 1, Some(2)));
        assert_eq!(hosts.info().queues, [2]);
        let [ours, theirs] = share(&hosts, &mut port);
        assert!(!ours.is_empty() && !theirs.is_empty(), "{} and {}", ours.len(), theirs.len());

        // Of what comes in by this queue, nothing that matches.
        port.set_filter(filter("tcp")).unwrap();
        assert_eq!(hosts.filter().queues, [2]);
        let [ours, _] = share(&hosts, &mut port);
        assert!(ours.is_empty(), "{ours:?}");
        port.clear_filter().unwrap();

        let lead = |queue, lead| hosts.control(|c| c.redirect_queues("netmap:n0", &[queue], lead));
        lead(2, false).unwrap();
        assert!(hosts.info().queues.is_empty());
        let [ours, _] = share(&hosts, &mut port);
        assert!(ours.is_empty(), "{ours:?}");
        lead(2, true).unwrap();
        let [ours, _] = share(&hosts, &mut port);
        assert!(!ours.is_empty());

        // Another queue comes and goes; the first does not notice.
        let other = hosts.open(Port::options(), "netmap:n0~0");
        assert_eq!(hosts.info().queues, [0, 2]);
        drop(other);
        until("queue 0 is the stack's again", || match &hosts.info().queues[..] {
            [2] => Ok(()),
            other => Err(format!("{other:?}")),
        });
        let error = lead(1, true).unwrap_err().to_string();
        assert!(error.contains("n0~1"), "{error}");
        let filter = |spec: &str| hosts.control(|c| c.set_filter(spec, Some(filter("udp"))));
        let error = filter("netmap:n0-1").unwrap_err().to_string();
        assert!(error.contains("queue 1"), "{error}");
        let error = filter("netmap:n9").unwrap_err().to_string();
        assert!(error.contains("n9"), "{error}");
        drop(port);
        hosts.end(before, home);
    });
}

/// The stack at the far end sends many frames in one, without their checksums: a program gets frames as on a wire,
/// and the stack what it would have got.
#[test]
fn many_frames_in_one() {
    run("many_frames_in_one", |home| {
        let before = Snapshot::take();
        let hosts = Hosts::new(1);
        hosts.introduce();
        let spec = "netmap:n0@mode=packet@filter=tcp";
        let mut port = hosts.open(Port::options().rx_only(), spec);
        // Ten datagrams in one frame, whose payload lies apart from the headers; the filter asks for the payload.
        port.set_filter(filter("udp dst port 53 and udp[8:4] = 0x61616161")).unwrap();
        let many = |letter: char| {
            hosts.there.run(&format!(
                "python3 -c \"import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(17, 103, 1000)
s.sendto(b'{letter}' * 10000, ('{HERE}', 53))\""
            ));
        };
        many('a');
        let mut frames = Vec::new();
        while frames.len() < 10 {
            assert!(port.wait_rx(Some(LIMIT)).unwrap(), "{} have come", frames.len());
            port.rx(0).sync();
            frames.extend(port.rx(0).batch(64).map(|frame| frame.to_vec()));
        }
        for frame in &frames {
            assert_eq!(frame.len(), HEADERS + 1000);
            assert!(frame[HEADERS..].iter().all(|byte| *byte == b'a'));
            assert_eq!(udp_sum(frame), 0xffff, "the checksum is done");
        }
        many('b');
        let mut bytes = [0; 2000];
        for _ in 0..10 {
            assert_eq!(hosts.stack[0].recv(&mut bytes).unwrap(), 1000);
            assert!(bytes[..1000].iter().all(|byte| *byte == b'b'));
        }
        drop(port);
        hosts.end(before, home);
    });
}

/// Of the pseudo header and all of a UDP datagram: ones, if its checksum is right.
fn udp_sum(frame: &[u8]) -> u16 {
    let (addresses, datagram) = (&frame[26..34], &frame[34..]);
    let words = addresses.chunks(2).chain(datagram.chunks(2));
    let words = words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let sum = words.sum::<u32>() + 17 + datagram.len() as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum + (sum >> 16)) as u16
}

/// A program that has all that an interface receives in packet mode gets no filter later.
#[test]
fn packet_mode_without_a_filter_is_given_none() {
    run("packet_mode_without_a_filter_is_given_none", |home| {
        let before = Snapshot::take();
        let hosts = Hosts::new(1);
        let port = hosts.open(Port::options(), "netmap:n0@mode=packet");
        let error = port.set_filter(filter("udp")).unwrap_err().to_string();
        assert!(error.contains("netmap:n0@filter=udp"), "{error}");
        drop(port);
        hosts.end(before, home);
    });
}

/// What C programs ask for: within the names that each interface for them takes, or by the
/// environment where a name cannot.
#[test]
fn c_programs_have_filters() {
    run("c_programs_have_filters", |home| {
        let before = Snapshot::take();
        let hosts = Hosts::new(1);
        hosts.introduce();
        home.install(&[("libnetmap.so", "ringway-libnetmap")]);
        let listen = compile(home, "tests/c/listen.c", C11, Linked);
        let plain = compile(home, "tests/c/listen.c", C11, Preloaded);
        let libnetmap = compile(home, "tests/c/libnetmap_listen.c", C11, Libnetmap);
        let own = "@filter=udp dst port 53@sample=1@mode=generic";
        let (all, whole) = (format!("netmap:n0/R{own}"), format!("n0{own}"));
        let ways: [(&Path, &str, &str); 5] = [
            (&listen, "nm_open", &all),
            (&listen, "request", &whole),
            (&libnetmap, "open", &all),
            (&libnetmap, "clone", &all),
            (&plain, "nm_open", "netmap:n0/R"),
        ];
        for (program, way, name) in ways {
            let mut command = home.command(program);
            command.args([way, name, "20"]);
            if program == plain {
                command.env("LD_PRELOAD", home.library());
                command.env("RINGWAY_FILTER", "udp dst port 53").env("RINGWAY_NIC_MODE", "generic");
            }
            let listener = Proc::spawn(inside(&hosts.here, command));
            listener.wait_for("ready", LIMIT);
            assert_eq!(hosts.filter().text, "udp dst port 53", "{way}");
            assert_eq!(hosts.info().mode.as_deref().map(|m| &m[..7]), Some("generic"), "{way}");
            let sender = hosts.sender();
            for number in 0..20 {
                send(&sender, 1, number);
                assert_eq!(hear(&hosts.stack[1]), number);
                send(&sender, 0, number);
            }
            assert!(ends(listener.pid(), LIMIT), "{way}: {}", listener.output());
            let (status, output) = listener.wait();
            assert!(status.success(), "{way}: {output}");
            let expected: String = (0..20).map(|number| format!("53 {number}\n")).collect();
            assert_eq!(output, format!("ready\n{expected}"), "{way}");
        }
        hosts.end(before, home);
    });
}

/// What cannot be had is refused, with a sentence for those who ask.
#[test]
fn c_programs_hear_what_is_wrong() {
    run("c_programs_hear_what_is_wrong", |home| {
        let hosts = Hosts::new(1);
        home.install(&[("libnetmap.so", "ringway-libnetmap")]);
        let listen = compile(home, "tests/c/listen.c", C11, Linked);
        let libnetmap = compile(home, "tests/c/libnetmap_listen.c", C11, Libnetmap);
        for (list, sentence) in [
            ("@filter=udp dst prt 53", "prt"),
            ("@sample=x", "sample needs a number"),
            ("@mode=fast", "zerocopy"),
        ] {
            let netmap = format!("netmap:n0{list}");
            let plain = format!("n0{list}");
            for (program, way, name) in [
                (&listen, "nm_open", &netmap),
                (&listen, "request", &plain),
                (&libnetmap, "open", &netmap),
            ] {
                let mut command = home.command(program);
                command.args([way, name, "1"]).env("RINGWAY_VERBOSE", "1");
                let (status, output) = Proc::spawn(inside(&hosts.here, command)).wait();
                assert!(!status.success() && output.contains(sentence), "{way} {name}: {output}");
            }
        }
        let mut command = home.command(&listen);
        command.args(["nm_open", "netmap:p{1@mode=copy", "1"]).env("RINGWAY_VERBOSE", "1");
        let (status, output) = Proc::spawn(inside(&hosts.here, command)).wait();
        assert!(!status.success() && output.contains("interfaces alone have modes"), "{output}");
    });
}

/// What is no interface has its filter from the program that opens it, and no other.
#[test]
fn what_is_no_interface_is_given_no_filter() {
    let _turn = one_at_a_time();
    isolated("what_is_no_interface_is_given_no_filter", |_| {
        for spec in ["vale0:a", "p{0"] {
            let port = Port::options().filter(filter("udp")).open(spec).unwrap();
            let error = port.set_filter(filter("tcp")).unwrap_err();
            assert_eq!(
                ringway_errno::errno(error.cause()),
                rustix::io::Errno::OPNOTSUPP.raw_os_error()
            );
            assert!(error.to_string().contains("network interfaces"), "{error}");
        }
    });
}
