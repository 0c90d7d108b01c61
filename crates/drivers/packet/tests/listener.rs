//! Frames that are read where the kernel has put them, beside the stack.

mod common;

use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{Port, Wire};
use ringway_packet::{
    Geometry, LinkWatch, Listen, Listener, has_lost_interface, socket, take_drops,
};
use ringway_testkit::{frame, skip_without_root, tagged};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

const GEOMETRY: Geometry = Geometry { block_size: 64 << 10, blocks: 8 };

/// A ring that fills up, and whose blocks are handed over when they are full.
const SMALL: Geometry = Geometry { block_size: 16 << 10, blocks: 4 };
/// How long anything here may take on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(30);
const HOURS: u32 = 10_000_000;

fn listen(wire: &Wire, outgoing: bool) -> (OwnedFd, Listener) {
    listen_with(wire, outgoing, GEOMETRY, 1)
}

fn listen_with(
    wire: &Wire,
    outgoing: bool,
    geometry: Geometry,
    patience_ms: u32,
) -> (OwnedFd, Listener) {
    let ifindex = wire.b.run("cat /sys/class/net/b0/ifindex").trim().parse().unwrap();
    let listen = Listen { ifindex, geometry, patience_ms, outgoing, promiscuous: true };
    wire.b.enter(|| listen.begin().unwrap())
}

/// What was told of a frame.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    bytes: Vec<u8>,
    length: u32,
    tagged: bool,
    time: [u32; 2],
    outgoing: bool,
    without_checksum: bool,
}

/// Up to `most` frames of one block; `None` if there is none yet.
fn walk(listener: &mut Listener, most: usize) -> Option<(Vec<Told>, ControlFlow<()>)> {
    let mut told = Vec::new();
    let flow = listener.walk(|heard| {
        let mut bytes = vec![0; heard.data.size() as usize];
        heard.data.copy_to(bytes.len(), &mut bytes);
        told.push(Told {
            bytes,
            length: heard.length,
            tagged: heard.tagged,
            time: heard.time(),
            outgoing: heard.is_outgoing(),
            without_checksum: heard.is_without_checksum(),
        });
        if told.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Some((told, flow))
}

/// That many frames; panics after half a minute, which only a bug takes.
fn walk_all(socket: &OwnedFd, listener: &mut Listener, count: usize) -> Vec<Told> {
    let deadline = Instant::now() + LIMIT;
    let mut all = Vec::new();
    while all.len() < count {
        assert!(Instant::now() < deadline, "only {} frames are heard", all.len());
        match walk(listener, usize::MAX) {
            Some((told, _)) => all.extend(told),
            None => {
                let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
                poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&limit)).unwrap();
            }
        }
    }
    all
}

#[test]
fn frames_are_heard_as_they_are_on_the_wire() {
    if skip_without_root("frames_are_heard_as_they_are_on_the_wire") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let (socket, mut listener) = listen(&wire, false);
    let mut sent: Vec<_> = (0..100).map(|i| frame(i, 14 + 15 * i as usize)).collect();
    sent.push(tagged(&frame(1000, 1514), 0x8100, 0x6007));
    sent.push(tagged(&frame(1001, 60), 0x88a8, 9));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let before = now();
    sent.iter().for_each(|frame| a.send(frame));
    let heard = walk_all(&socket, &mut listener, sent.len());
    let after = now();
    for (told, bytes) in heard.iter().zip(&sent) {
        assert_eq!(told.bytes, *bytes);
        assert_eq!(told.length as usize, bytes.len());
        assert_eq!(told.tagged, bytes[12..14] != [0x88, 0xb5]);
        assert!(!told.outgoing && !told.without_checksum);
        let time = Duration::new(told.time[0].into(), told.time[1]);
        assert!((before..=after).contains(&time), "{time:?}");
    }
    assert_eq!(heard.len(), sent.len());
    assert_eq!(take_drops(socket.as_fd()).unwrap(), 0);
}

/// What this machine sends is heard if that is asked for, with what is left to hardware.
#[test]
fn what_is_sent_is_heard_if_it_is_wanted() {
    if skip_without_root("what_is_sent_is_heard_if_it_is_wanted") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    wire.b.run("ip addr add 10.5.0.1/24 dev b0");
    wire.b.run("ip neigh add 10.5.0.2 lladdr 02:00:00:00:00:02 dev b0");
    let sender = wire.b.enter(|| UdpSocket::bind("10.5.0.1:9").unwrap());
    let (all, mut hears_all) = listen(&wire, true);
    let (incoming, mut hears_incoming) = listen(&wire, false);
    sender.send_to(&[7; 100], "10.5.0.2:9").unwrap();
    a.send(&frame(1, 60));
    let told = walk_all(&all, &mut hears_all, 2);
    assert_eq!(told[0].bytes[42..], [7; 100]);
    assert!(told[0].outgoing && told[0].without_checksum);
    assert!(told[1].bytes == frame(1, 60) && !told[1].outgoing && !told[1].without_checksum);
    let told = walk_all(&incoming, &mut hears_incoming, 1);
    assert_eq!(told[0].bytes, frame(1, 60));
}

/// A walk that breaks off goes on behind the frame that was seen last; its block is the kernel's again when
/// all was seen.
#[test]
fn a_block_is_given_back_when_all_was_seen() {
    if skip_without_root("a_block_is_given_back_when_all_was_seen") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let (socket, mut listener) = listen_with(&wire, false, SMALL, HOURS);
    assert_eq!((listener.returned(), listener.filled()), (0, 0));
    assert!(walk(&mut listener, 1).is_none());
    // More than the ring holds: the first of these are there, and the others lost when all have come.
    let received = || {
        let packets = wire.b.run("cat /sys/class/net/b0/statistics/rx_packets");
        packets.trim().parse::<usize>().unwrap()
    };
    let before = received();
    let sent: Vec<_> = (0..100).map(|i| frame(i, 1400)).collect();
    sent.iter().for_each(|frame| a.send(frame));
    let deadline = Instant::now() + LIMIT;
    while received() < before + sent.len() {
        assert!(Instant::now() < deadline, "frames are on their way for ever");
    }
    let blocks = u64::from(SMALL.blocks);
    assert_eq!(listener.filled(), blocks);
    let mut seen = Vec::new();
    for block in 0..blocks {
        assert!(!listener.take_crowded(), "it was asked before");
        loop {
            let (told, flow) = walk(&mut listener, 1).unwrap();
            assert_eq!(listener.filled(), blocks);
            if flow.is_continue() {
                assert!(told.is_empty());
                break;
            }
            assert_eq!(listener.returned(), block);
            seen.extend(told);
            // The last frame stays until here.
            listener.give_back();
            if listener.returned() > block {
                break;
            }
        }
        assert_eq!(listener.returned(), block + 1);
        assert!(listener.take_crowded(), "it was full");
    }
    let lost = take_drops(socket.as_fd()).unwrap() as usize;
    assert_eq!(seen.len() + lost, sent.len());
    assert!(lost > 0 && seen.iter().zip(&sent).all(|(told, sent)| told.bytes == *sent));
    assert_eq!(take_drops(socket.as_fd()).unwrap(), 0, "they are told once");
}

/// The block of a lone frame is handed over when its time is over.
#[test]
fn a_lone_frame_is_no_crowd() {
    if skip_without_root("a_lone_frame_is_no_crowd") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let (socket, mut listener) = listen_with(&wire, false, SMALL, 1);
    for n in 1..=u64::from(SMALL.blocks) + 1 {
        a.send(&frame(n as u32, 60));
        assert_eq!(walk_all(&socket, &mut listener, 1)[0].bytes, frame(n as u32, 60));
        assert!(!listener.take_crowded());
        assert_eq!((listener.returned(), listener.filled()), (n, n));
        listener.give_back();
        assert_eq!(listener.returned(), n, "there is nothing to give back");
    }
}

/// A wait for an interface that is down ends, and it is no error; an interface that has gone is noticed.
#[test]
fn an_interface_that_is_down_is_looked_after() {
    if skip_without_root("an_interface_that_is_down_is_looked_after") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let (socket, _listener) = listen(&wire, false);
    let watch = LinkWatch::default();
    assert_eq!(watch.take_error(socket.as_fd()), Ok(()));
    assert_eq!(watch.longest_wait(), None);
    assert!(!has_lost_interface(socket.as_fd()));
    wire.b.run("ip link set b0 down");
    assert_eq!(watch.take_error(socket.as_fd()), Ok(()));
    assert_eq!(watch.longest_wait(), Some(Duration::from_millis(100)));
    assert!(!has_lost_interface(socket.as_fd()));
    watch.heard();
    assert_eq!(watch.longest_wait(), None);
    assert!(!has_lost_interface(socket::new().unwrap().as_fd()), "it has never had one");
    wire.b.run("ip link del b0");
    assert!(has_lost_interface(socket.as_fd()));
    assert!(matches!(watch.take_error(socket.as_fd()), Ok(()) | Err(Errno::NODEV)));
}

/// Where frames have no Ethernet headers, nobody listens.
#[test]
fn interfaces_without_ethernet_headers_are_refused() {
    if skip_without_root("interfaces_without_ethernet_headers_are_refused") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let on = |ifindex| {
        let listen = Listen {
            ifindex,
            geometry: GEOMETRY,
            patience_ms: 1,
            outgoing: true,
            promiscuous: false,
        };
        wire.b.enter(|| listen.begin().map(drop).map_err(|error| error.raw_os_error()))
    };
    assert_eq!(on(1), Ok(()), "the loopback has some");
    wire.b.run("ip tuntap add t0 mode tun");
    let tun = wire.b.run("cat /sys/class/net/t0/ifindex").trim().parse().unwrap();
    assert_eq!(on(tun), Err(Some(libc::EAFNOSUPPORT)));
    assert_eq!(on(9999), Err(Some(libc::ENODEV)));
}

/// An interface is promiscuous as long as a socket holds it so, and the kernel's own setting is left alone.
#[test]
fn sockets_hold_an_interface_promiscuous() {
    if skip_without_root("sockets_hold_an_interface_promiscuous") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let ifindex = wire.b.run("cat /sys/class/net/b0/ifindex").trim().parse().unwrap();
    let holders = || {
        let shown = wire.b.run("ip -d link show b0");
        let (_, behind) = shown.split_once("promiscuity ").unwrap();
        behind.split(' ').next().unwrap().parse::<u32>().unwrap()
    };
    // A child that another test forks meanwhile holds the sockets, too, until it is another program.
    let back_to = |wanted: u32| {
        let since = Instant::now();
        while holders() != wanted {
            assert!(since.elapsed() < LIMIT, "{} holders, not {wanted}", holders());
        }
    };
    let before = holders();
    let held = wire.b.enter(|| socket::hold_promiscuous(ifindex).unwrap());
    let other = wire.b.enter(|| socket::new().unwrap());
    socket::join_promiscuous(other.as_fd(), ifindex).unwrap();
    assert_eq!(holders(), before + 2);
    socket::leave_promiscuous(other.as_fd(), ifindex).unwrap();
    assert_eq!(holders(), before + 1);
    drop(held);
    back_to(before);
    let listening = listen(&wire, false);
    assert_eq!(holders(), before + 1);
    drop(listening);
    back_to(before);
    assert_eq!(wire.b.enter(|| socket::driver("b0").unwrap()), "veth");
}
