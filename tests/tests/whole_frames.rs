//! What a stack leaves to hardware, on the worker's path: frames of up to 64 KiB pass whole between attached
//! interfaces and programs' ports with virtio-net headers.

use std::{
    fs::File,
    io::{Read, Write},
    net::{IpAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use ringway::{Control, Port};
use ringway_proto::PortTotals;
use ringway_testkit::{Netns, VethPair, skip_without_root};
use ringway_tests::{isolated, one_at_a_time, packet, until};
use ringway_vnet::Header;

const LIMIT: Duration = Duration::from_secs(30);

/// Bytes of a file that is sent.
const FILE: usize = 20 << 20;

/// A container on a switch of its own.
struct Container {
    netns: Netns,
    _wire: VethPair,
}

/// `c0` on `vale0`, and `c1` on `vale1`, each the other's neighbour.
fn containers(here: &Netns, control: &Control) -> [Container; 2] {
    [0, 1].map(|number| {
        let netns = Netns::quiet("rww");
        let wire = here.veth(&netns, &format!("c{number}"), "eth0");
        let (own, other) = (number + 1, 2 - number);
        netns.run(&format!(
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1
             ip link set eth0 address 02:00:00:00:00:0{own} && ip link set lo up
             ip addr add 10.8.0.{own}/24 dev eth0 && ip link set eth0 up
             ip neigh replace 10.8.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0"
        ));
        here.enter(|| {
            control.switch_attach(&format!("vale{number}"), &format!("c{number}"), false).unwrap()
        });
        Container { netns, _wire: wire }
    })
}

fn port(control: &Control, name: &str, header_len: u32) -> Port {
    let port = Port::options().tx_slots(1024).rx_slots(1024).accept_header().open(name).unwrap();
    control.set_header_len(name, header_len).unwrap();
    port
}

/// What a program saw of the frames that it passed on.
#[derive(Default)]
struct Seen {
    end: AtomicBool,
    /// Frames that are segments yet to be made, and the longest of all, with its header.
    large: AtomicU64,
    longest: AtomicU64,
    /// Headers that are not as a stack's TCP has them.
    odd: AtomicU64,
}

impl Seen {
    /// Passes everything on between two ports until the end, and looks at it.
    fn forward(&self, mut ports: [Port; 2], header_len: usize) {
        while !self.end.load(Relaxed) {
            let [a, b] = &mut ports;
            let moved = self.pass(a, b, header_len) + self.pass(b, a, header_len);
            if moved == 0 {
                thread::yield_now();
            }
        }
    }

    fn pass(&self, from: &mut Port, to: &mut Port, header_len: usize) -> usize {
        let (mut rx, mut tx) = (from.rx(0), to.tx(0));
        rx.sync();
        tx.sync();
        let slots = rx.whole(tx.space());
        let (mut frames, mut bytes, mut first) = (tx.batch(slots), 0, true);
        for frame in rx.batch(slots) {
            if first && header_len > 0 {
                self.look(&frame.to_vec(), header_len);
            }
            (bytes, first) = (bytes + frame.len() as u64, !frame.more_fragments());
            assert!(frame.forward_copy(&mut frames.next().unwrap()));
            if first {
                self.longest.fetch_max(bytes, Relaxed);
                bytes = 0;
            }
        }
        drop(frames);
        tx.sync();
        slots
    }

    fn look(&self, bytes: &[u8], header_len: usize) {
        let header = Header::parse(&bytes[..header_len]).unwrap();
        if header.gso_type == 0 {
            return;
        }
        self.large.fetch_add(1, Relaxed);
        let is_right = (header.gso_type, header.gso_size, header.csum_start, header.csum_offset)
            == (1, 1448, 34, 16);
        self.odd.fetch_add((!is_right).into(), Relaxed);
    }
}

/// Ends the forwarding, also when what goes on meanwhile fails.
struct Until<'a>(&'a Seen);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.end.store(true, Relaxed);
    }
}

/// Gives both an address of IPv6, `fd08::1` and `fd08::2`, and some inside of tunnels: `10.9.0.1` and `.2`; `10.9.1.1` with
/// the checksum of the outer UDP; `fd09::1` inside of IPv6.
fn add_addresses(containers: &[Container; 2]) {
    for (own, other, container) in [(1, 2, &containers[0]), (2, 1, &containers[1])] {
        container.netns.run(&format!(
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=0
             ip addr add fd08::{own}/64 dev eth0 nodad
             ip neigh replace fd08::{other} lladdr 02:00:00:00:00:0{other} dev eth0
             ip link add vx0 type vxlan id 7 remote 10.8.0.{other} dstport 4789 dev eth0
             ip link add vx1 type vxlan id 8 remote 10.8.0.{other} dstport 4790 udpcsum dev eth0
             ip link add vx2 type vxlan id 9 remote fd08::{other} dstport 4791 dev eth0
             ip addr add 10.9.0.{own}/24 dev vx0 && ip link set vx0 up
             ip addr add 10.9.1.{own}/24 dev vx1 && ip link set vx1 up
             ip addr add fd09::{own}/64 dev vx2 nodad && ip link set vx2 up"
        ));
    }
}

/// Random bytes to each other's address, `network` and a number, both ways at once; every byte arrives.
fn exchange_files(containers: &[Container; 2], network: &str) {
    let [one, other] = [0u8, 1].map(|number| {
        let mut random = File::open("/dev/urandom").unwrap();
        let mut file = vec![0; FILE];
        random.read_exact(&mut file).unwrap();
        let [to, from] = [number, 1 - number].map(usize::from).map(|at| &containers[at].netns);
        let address: IpAddr = format!("{network}{}", number + 1).parse().unwrap();
        let listener = to.enter(|| TcpListener::bind((address, 77)).unwrap());
        let sender = from.enter(|| TcpStream::connect((address, 77)).unwrap());
        let receiver = listener.accept().unwrap().0;
        receiver.set_read_timeout(Some(LIMIT)).unwrap();
        sender.set_write_timeout(Some(LIMIT)).unwrap();
        (file, sender, receiver)
    });
    thread::scope(|scope| {
        for (file, mut sender, mut receiver) in [one, other] {
            let sent = file.clone();
            scope.spawn(move || sender.write_all(&sent).unwrap());
            scope.spawn(move || {
                let mut received = Vec::new();
                receiver.read_to_end(&mut received).unwrap();
                assert!(received == file, "{} bytes arrive, or others", received.len());
            });
        }
    });
}

/// With headers of each length on both sides of a program, or of different ones, whose receiver the switch
/// then gives its own.
#[test]
fn a_program_with_headers_passes_whole_frames_on() {
    if skip_without_root("a_program_with_headers_passes_whole_frames_on") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_program_with_headers_passes_whole_frames_on", |_| {
        let control = Control::connect().unwrap();
        let here = Netns::quiet("rww");
        let containers = containers(&here, &control);
        for header_len in [12, 10, 0] {
            let ports = ["vale0:p", "vale1:q"].map(|name| port(&control, name, header_len));
            let seen = Seen::default();
            thread::scope(|scope| {
                scope.spawn(|| seen.forward(ports, header_len as usize));
                let _until = Until(&seen);
                exchange_files(&containers, "10.8.0.");
            });
            let (large, longest) = (seen.large.load(Relaxed), seen.longest.load(Relaxed));
            match header_len {
                0 => assert!(longest <= 1514, "{longest} bytes without a header"),
                _ => assert!(longest > 10_000 && large > 100, "{large}, {longest} bytes"),
            }
            assert_eq!(seen.odd.load(Relaxed), 0, "of {large}");
        }
    });
}

/// Of IPv6, and inside of a tunnel, which no header can tell of.
#[test]
fn other_networks_pass_a_program_with_headers() {
    if skip_without_root("other_networks_pass_a_program_with_headers") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("other_networks_pass_a_program_with_headers", |_| {
        let control = Control::connect().unwrap();
        let here = Netns::quiet("rww");
        let containers = containers(&here, &control);
        add_addresses(&containers);
        let networks =
            [("fd08::", true), ("10.9.0.", false), ("10.9.1.", false), ("fd09::", false)];
        for (network, stays_whole) in networks {
            let ports = ["vale0:p", "vale1:q"].map(|name| port(&control, name, 12));
            let seen = Seen::default();
            thread::scope(|scope| {
                scope.spawn(|| seen.forward(ports, 12));
                let _until = Until(&seen);
                exchange_files(&containers, network);
                let ping = format!("ping -q -i 0.2 -c 3 -w 20 -s 60000 {network}2");
                containers[0].netns.run(&ping);
            });
            let (large, longest) = (seen.large.load(Relaxed), seen.longest.load(Relaxed));
            let is_whole = large > 100 && longest > 10_000;
            assert_eq!(is_whole, stays_whole, "{network}: {large}, {longest} bytes");
            let drops = totals(&control, "vale0:c0").drops;
            assert_eq!((drops.too_long, drops.bad_offload), (0, 0), "{network}");
        }
    });
}

fn totals(control: &Control, name: &str) -> PortTotals {
    let switches = control.switches().unwrap();
    let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
    ports.find(|port| port.name == name).unwrap_or_else(|| panic!("there is no {name}")).totals
}

/// TCP or UDP over IPv4 of so many bytes, for the container.
fn packet_of(protocol: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0];
    frame.extend(((length - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 8, 0, 9, 10, 8, 0, 1, 0, 7, 0, 9]);
    frame.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.resize(length, 0x77);
    frame
}

/// Every field of a header with odd values, before frames that it is right or wrong of: each arrives in some
/// form, or is counted; the kernel refuses none, and loses none of what it is given.
#[test]
fn a_program_cannot_have_the_kernel_lose_frames() {
    if skip_without_root("a_program_cannot_have_the_kernel_lose_frames") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_program_cannot_have_the_kernel_lose_frames", |_| {
        let control = Control::connect().unwrap();
        let here = Netns::quiet("rww");
        let containers = containers(&here, &control);
        let mut hostile = port(&control, "vale0:p", 12);
        let there = || -> u64 {
            let text = containers[0].netns.run("cat /sys/class/net/eth0/statistics/rx_packets");
            text.trim().parse().unwrap()
        };
        let losses = |totals: &PortTotals| {
            let drops = &totals.drops;
            drops.bad_offload + drops.too_long + drops.too_short + drops.ring_full
        };
        // The switch knows where the container is.
        containers[0].netns.try_run("ping -c 1 -W 1 10.8.0.9");
        let (begun, before) = (there(), totals(&control, "vale0:c0").received_packets);
        for protocol in [6, 17] {
            for (length, flags, gso_type) in [54, 1514, 4000].into_iter().flat_map(|length| {
                [0, 1, 3, 4].into_iter().flat_map(move |flags| {
                    [0, 1, 2, 3, 4, 5, 0x81].map(move |gso_type| (length, flags, gso_type))
                })
            }) {
                for (gso_size, csum_start, csum_offset) in
                    [(1448, 34, 16), (0, 34, 6), (1, 14, 16), (65535, 1513, 0), (100, 65535, 65535)]
                {
                    let header = Header {
                        flags,
                        gso_type,
                        hdr_len: gso_size,
                        gso_size,
                        csum_start,
                        csum_offset,
                        num_buffers: 0,
                    };
                    let frame = [&header.emit()[..], &packet_of(protocol, length)].concat();
                    let [own, others] = ["vale0:p", "vale0:c0"].map(|name| totals(&control, name));
                    packet::send(&mut hostile, &frame);
                    until("the frame arrives, or is counted", || {
                        let now = ["vale0:p", "vale0:c0"].map(|name| totals(&control, name));
                        let [p, c] = &now;
                        let is_seen = c.received_packets > others.received_packets
                            || losses(p) + losses(c) > losses(&own) + losses(&others);
                        if is_seen {
                            Ok(())
                        } else {
                            Err(format!("{header:?} of {length}: {now:?}"))
                        }
                    });
                }
            }
        }
        let now = totals(&control, "vale0:c0");
        assert_eq!(now.drops.ring_full, 0, "the kernel has refused some");
        until("all that was sent arrives", || {
            let (arrived, sent) = (there() - begun, now.received_packets - before);
            if arrived == sent { Ok(()) } else { Err(format!("{arrived} of {sent}")) }
        });
    });
}
