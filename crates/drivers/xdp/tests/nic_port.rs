//! NICs on a bridge: two namespaces talk through a third.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::nic::region;
use common::{Wire, frame_queue, recv, wait_for_link, wait_readable};
use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::{Doorbell, Kring};
use ringway_nic_setup::{
    AttachMode, Error, Interface, Mode, PortAttachment, XdpProgram, in_netns, open_nic_port_as,
};
use ringway_region::{Region, RingInit};
use ringway_switch_port::{Drops, PacketIo, PortIndex};
use ringway_testkit::{Netns, VethPair, frame, skip_without_root};
use ringway_vale::{Bridge, PortConfig, PortCounters, RingPort, TxSide};
use ringway_xdp::{FrameQueue, NicPort};

/// `a` and `b` hang on the interfaces `m0` and `m1` of the namespace in the middle.
struct Stage {
    bridge: Option<Bridge>,
    ports: [PortIndex; 2],
    counters: [Arc<PortCounters>; 2],
    _wires: [VethPair; 2],
    a: Netns,
    b: Netns,
    middle: Netns,
}

fn open(netns: &Netns, name: &str) -> Result<NicPort<PortAttachment>, Error> {
    let open = || {
        let modes = Mode::preference(AttachMode::Native);
        open_nic_port_as(&Interface::by_name(name)?, AttachMode::Native, modes, false)
    };
    in_netns(netns.fd().as_fd(), open).unwrap()
}

impl Stage {
    fn new(queues: u32) -> Stage {
        Stage::with_mtu(queues, 1500)
    }

    fn with_mtu(queues: u32, mtu: u32) -> Stage {
        let [a, b, middle] = ["na", "nb", "nm"].map(Netns::new);
        for netns in [&a, &b, &middle] {
            netns.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
        }
        let wires = [
            middle.veth_queues(&a, "m0", "e0", queues),
            middle.veth_queues(&b, "m1", "e0", queues),
        ];
        for (netns, address) in [(&a, "10.9.0.1"), (&b, "10.9.0.2")] {
            netns.run(&format!("ip addr add {address}/24 dev e0"));
        }
        for (netns, name) in [(&a, "e0"), (&b, "e0"), (&middle, "m0"), (&middle, "m1")] {
            netns.run(&format!("ip link set {name} mtu {mtu}"));
        }
        let bridge = Bridge::start("nic-port").unwrap();
        let counters = [Arc::default(), Arc::default()];
        let attach = |name, counters: &Arc<PortCounters>| {
            let port = open(&middle, name).unwrap();
            bridge.attach(Box::new(port), PortConfig::default(), counters.clone()).unwrap()
        };
        let ports = [attach("m0", &counters[0]), attach("m1", &counters[1])];
        Stage { bridge: Some(bridge), ports, counters, _wires: wires, a, b, middle }
    }

    /// One UDP datagram from `a` to `b` and back; again, if one is lost.
    fn talk(&self) {
        let far = self.b.enter(|| UdpSocket::bind("10.9.0.2:7").unwrap());
        let near = self.a.enter(|| UdpSocket::bind("10.9.0.1:0").unwrap());
        near.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        near.connect("10.9.0.2:7").unwrap();
        let echo = std::thread::spawn(move || {
            let mut bytes = [0; 64];
            loop {
                let (n, from) = far.recv_from(&mut bytes).unwrap();
                if n == 0 {
                    return;
                }
                // Refused once the other socket has gone.
                let _ = far.send_to(&bytes[..n], from);
            }
        });
        let mut bytes = [0; 64];
        let answered = (0..50).any(|_| {
            near.send(b"hello").unwrap();
            near.recv(&mut bytes).is_ok_and(|n| bytes[..n] == *b"hello")
        });
        // From its own namespace, the echo hears this whatever the bridge does.
        self.b.enter(|| UdpSocket::bind("10.9.0.2:0").unwrap().send_to(&[], "10.9.0.2:7")).unwrap();
        echo.join().unwrap();
        assert!(answered, "no answer");
    }

    /// Sockets in `a` and `b`, connected, for datagrams of a length that no chunk holds.
    fn large_datagrams(&self) -> [UdpSocket; 2] {
        let far = self.b.enter(|| UdpSocket::bind("10.9.0.2:9").unwrap());
        far.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let near = self.a.enter(|| UdpSocket::bind("10.9.0.1:9").unwrap());
        near.connect("10.9.0.2:9").unwrap();
        [near, far]
    }

    /// Sends `megabytes` from `a` to `b` by `streams` TCP connections at once, and compares.
    fn transfer(&self, streams: u16, megabytes: usize) {
        let pattern = |stream: u16| -> Vec<u8> {
            (0..megabytes << 20).map(|i| (i * 31 + i / 251 + usize::from(stream)) as u8).collect()
        };
        std::thread::scope(|scope| {
            for stream in 0..streams {
                let port = 5000 + stream;
                let listener = self.b.enter(|| TcpListener::bind(("10.9.0.2", port)).unwrap());
                let sender = self.a.enter(|| TcpStream::connect(("10.9.0.2", port)).unwrap());
                let receiver = listener.accept().unwrap().0;
                scope.spawn(move || {
                    let mut sender = sender;
                    sender.write_all(&pattern(stream)).unwrap();
                });
                scope.spawn(move || {
                    let (mut receiver, mut bytes) = (receiver, Vec::new());
                    receiver.read_to_end(&mut bytes).unwrap();
                    assert!(bytes == pattern(stream), "stream {stream} arrives as it was sent");
                });
            }
        });
    }
}

#[test]
fn hosts_talk_through_a_bridge_of_nics() {
    if skip_without_root("hosts_talk_through_a_bridge_of_nics") {
        return;
    }
    let mut stage = Stage::new(1);
    stage.talk();
    stage.transfer(1, 32);
    let flags = stage.middle.run("ip -d link show m0");
    assert!(flags.contains("promiscuity 1") && flags.contains("xdp"), "{flags}");

    // Detaching updates the counters, and gives the NIC back.
    let bridge = stage.bridge.take().unwrap();
    for port in stage.ports {
        bridge.detach(port);
    }
    let [a, b] = stage.counters.each_ref().map(|counters| counters.totals());
    assert!(a.sent_bytes > 32 << 20 && b.received_bytes > 32 << 20, "{a:?} {b:?}");
    for drops in [a.drops, b.drops] {
        assert_eq!((drops.bad_slot, drops.too_short, drops.too_long), (0, 0, 0));
    }
    wait_for_link(&stage.middle, "m0", |shown| {
        shown.contains("promiscuity 0") && !shown.contains("xdp")
    });
}

#[test]
fn all_queues_of_a_nic_are_served() {
    if skip_without_root("all_queues_of_a_nic_are_served") {
        return;
    }
    let stage = Stage::new(2);
    stage.talk();
    stage.transfer(8, 4);
}

/// Frames wait while the link is down, more come, and all goes on when it is up.
#[test]
fn a_bridge_goes_on_after_a_link_was_down() {
    if skip_without_root("a_bridge_goes_on_after_a_link_was_down") {
        return;
    }
    let stage = Stage::new(1);
    stage.talk();
    stage.middle.run("ip link set m1 down");
    let near = stage.a.enter(|| UdpSocket::bind("10.9.0.1:0").unwrap());
    stage.a.run("ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev e0");
    for _ in 0..5000 {
        near.send_to(&[1; 100], "10.9.0.2:9").unwrap();
    }
    stage.a.run("ip neigh del 10.9.0.2 dev e0");
    stage.middle.run("ip link set m1 up");
    stage.talk();
    stage.transfer(1, 4);
}

/// What was for an interface that is down, or whose far end is, does not leave when that is up again: it is old by
/// then. Each frame is received or dropped, once.
#[test]
fn what_was_for_a_link_that_is_down_is_lost() {
    if skip_without_root("what_was_for_a_link_that_is_down_is_lost") {
        return;
    }
    let stage = Stage::new(1);
    stage.talk();
    let far = stage.b.enter(|| UdpSocket::bind("10.9.0.2:9").unwrap());
    far.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let near = stage.a.enter(|| UdpSocket::bind("10.9.0.1:0").unwrap());
    // Known for good, so that no question is asked meanwhile.
    let mac = stage.b.run("cat /sys/class/net/e0/address");
    let bridge = stage.bridge.as_ref().unwrap();
    let totals = || {
        bridge.count();
        stage.counters.each_ref().map(|counters| counters.totals())
    };
    for (netns, name) in [(&stage.middle, "m1"), (&stage.b, "e0")] {
        stage.a.run(&format!("ip neigh replace 10.9.0.2 lladdr {} dev e0", mac.trim()));
        let before = totals()[0].sent_packets;
        netns.run(&format!("ip link set {name} down"));
        for _ in 0..100 {
            near.send_to(b"old", "10.9.0.2:9").unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        let lost = || totals()[1].drops.ring_full;
        while totals()[0].sent_packets < before + 100 || lost() % 100 != 0 {
            assert!(Instant::now() < deadline, "{:?}", totals());
        }
        assert!(lost() > 0, "{:?}", totals());
        netns.run(&format!("ip link set {name} up"));
        near.send_to(b"new", "10.9.0.2:9").unwrap();
        let mut bytes = [0; 64];
        let n = far.recv(&mut bytes).unwrap();
        assert_eq!(bytes[..n], *b"new");
        let [a, b] = totals();
        assert_eq!(a.sent_packets, b.received_packets + b.drops.ring_full, "{a:?} {b:?}");
        assert_eq!(a.sent_bytes, b.received_bytes + b.drops.ring_full * 45, "{a:?} {b:?}");
    }
}

/// A ring port that sends through a NIC, and who receives that.
struct Sender {
    bridge: Bridge,
    nic: PortIndex,
    counters: Arc<PortCounters>,
    region: Arc<Region>,
    kring: Kring,
    doorbell: Arc<Doorbell>,
    far: FrameQueue,
    _program: XdpProgram,
    _wire: Wire,
}

impl Sender {
    /// With a virtio-net header of `header_len` bytes.
    fn new(header_len: u8) -> Sender {
        let wire = Wire::new();
        let (program, far) = frame_queue(&wire.b, "b0");
        let region = region();
        let init = RingInit { dir: Dir::Tx, ringid: 0, num_slots: 8 };
        let kring = Kring::create(&region, 0, &init, &[2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        let doorbell = Arc::new(Doorbell::new().unwrap());
        let tx = TxSide::new(kring.clone(), Arc::new(Doorbell::new().unwrap()));
        let source = RingPort::new(vec![tx], Vec::new(), doorbell.clone(), Arc::default());
        let bridge = Bridge::start("sender").unwrap();
        let counters: Arc<PortCounters> = Arc::default();
        let nic = Box::new(open(&wire.a, "a0").unwrap());
        let nic = bridge.attach(nic, PortConfig::default(), counters.clone()).unwrap();
        let config = PortConfig { header_len, ..PortConfig::default() };
        bridge.attach(Box::new(source), config, Arc::default()).unwrap();
        Sender {
            bridge,
            nic,
            counters,
            region,
            kring,
            doorbell,
            far,
            _program: program,
            _wire: wire,
        }
    }

    /// Sends what is in up to seven slots, with these flags.
    fn send(&self, slots: &[(&[u8], u16)]) {
        for (i, (bytes, flags)) in (0..).zip(slots) {
            self.region.buf(2 + i).unwrap().write(0, bytes);
            self.kring.ring().set_slot(i, 2 + i, bytes.len() as u16, *flags);
        }
        let head = slots.len() as u32;
        self.kring.csb().app.publish(head, head);
        self.doorbell.notify();
    }
}

/// A packet that lies in several buffers leaves as one frame; one beyond the MTU not at all.
#[test]
fn a_packet_in_pieces_leaves_in_one() {
    if skip_without_root("a_packet_in_pieces_leaves_in_one") {
        return;
    }
    let mut sender = Sender::new(0);
    let whole = frame(7, 1000);
    let too_long = frame(8, 1600);
    sender.send(&[
        (&too_long, 0),
        (&whole[..33], NS_MOREFRAG),
        (&whole[33..700], NS_MOREFRAG),
        (&whole[700..], 0),
    ]);
    wait_readable(&sender.far);
    assert_eq!(recv(&mut sender.far), [whole]);
    sender.bridge.detach(sender.nic);
    let totals = sender.counters.totals();
    assert_eq!((totals.received_packets, totals.drops.too_long), (1, 1));
}

/// S-VHDR-3: what a sender leaves to hardware is done before the NIC has the frame.
#[test]
fn s_vhdr_3_large_frames_leave_in_segments() {
    if skip_without_root("s_vhdr_3_large_frames_leave_in_segments") {
        return;
    }
    let mut sender = Sender::new(12);
    let headers = 14 + 20 + 20;
    let mut large = frame(9, headers + 4000);
    large[12..headers].fill(0);
    (large[12], large[14], large[23], large[46]) = (0x08, 0x45, 6, 0x50);
    let tso = [1, 1, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0];
    sender.send(&[
        (&tso, NS_MOREFRAG),
        (&large[..1700], NS_MOREFRAG),
        (&large[1700..3400], NS_MOREFRAG),
        (&large[3400..], 0),
    ]);
    let mut segments = Vec::new();
    while segments.len() < 3 {
        wait_readable(&sender.far);
        segments.extend(recv(&mut sender.far));
    }
    assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [1514, 1514, headers + 1080]);
    let payload: Vec<u8> = segments.iter().flat_map(|s| &s[headers..]).copied().collect();
    assert_eq!(payload, large[headers..]);
}

/// Frames that no chunk holds are received and sent as several.
#[test]
fn hosts_with_a_large_mtu_talk_through_a_bridge() {
    if skip_without_root("hosts_with_a_large_mtu_talk_through_a_bridge") {
        return;
    }
    let stage = Stage::with_mtu(1, 9000);
    stage.talk();
    stage.transfer(1, 32);
    let [near, far] = stage.large_datagrams();
    let bytes: Vec<u8> = (0..8972).map(|i| (i % 251) as u8).collect();
    for _ in 0..100 {
        near.send(&bytes).unwrap();
        let mut received = vec![0; 9000];
        let n = far.recv(&mut received).unwrap();
        assert!(received[..n] == bytes);
    }
}

/// What nobody collects takes all chunks, and what comes then is counted, once.
#[test]
fn what_the_kernel_drops_is_counted() {
    if skip_without_root("what_the_kernel_drops_is_counted") {
        return;
    }
    let wire = Wire::new();
    let mut port = open(&wire.a, "a0").unwrap();
    wire.b.run("ip addr add 10.5.0.1/24 dev b0");
    wire.b.run("ip neigh add 10.5.0.2 lladdr 02:00:00:00:00:02 dev b0");
    let socket = wire.b.enter(|| UdpSocket::bind("10.5.0.1:9").unwrap());
    let (mut sent, mut drops) = (0, Drops::default());
    let deadline = Instant::now() + Duration::from_secs(60);
    while drops.ring_full == 0 {
        assert!(Instant::now() < deadline, "{sent} frames, and none was dropped");
        for _ in 0..1000 {
            // Refused only while too much is on its way.
            sent += u64::from(socket.send_to(&[1; 100], "10.5.0.2:9").is_ok());
        }
        port.count_lost(&mut drops);
    }
    assert!(
        drops.ring_full < sent && drops == Drops { ring_full: drops.ring_full, ..Drops::default() }
    );
}
