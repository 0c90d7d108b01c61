//! An interface as a port of a bridge, without one.

mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::{IGNORED, Port, Wire};
use ringway_nic_setup::{Source, TxSocket, open_packet_port};
use ringway_packet::{KernelWay, PacketPort, socket};
use ringway_switch_port::{
    Burst, Configure, Delivered, Drops, PacketIo, Source as From, Unsent, Wake, under_test,
};
use ringway_testkit::{frame, skip_without_root, tagged};
use ringway_vnet::{
    Header,
    checksum::{finish, sum},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn ifindex(wire: &Wire) -> u32 {
    wire.b.run("cat /sys/class/net/b0/ifindex").trim().parse().unwrap()
}

fn open(wire: &Wire) -> PacketPort {
    let ifindex = ifindex(wire);
    let source = Source {
        interface: "b0",
        ifindex,
        queue: 0,
        queues: 1,
        ignored_mark: IGNORED,
        hardware_time: false,
    };
    wire.b.enter(|| open_packet_port(&source, 1514).unwrap())
}

const WAY: KernelWay = KernelWay::Interface(7);

/// The same by messages, as beside a program.
fn open_messages(wire: &Wire) -> PacketPort {
    let ifindex = ifindex(wire);
    wire.b.enter(|| {
        let rx = socket::new().unwrap();
        for option in [libc::PACKET_AUXDATA, libc::PACKET_VNET_HDR, libc::PACKET_IGNORE_OUTGOING] {
            socket::set_option(rx.as_fd(), libc::SOL_PACKET, option, &1).unwrap();
        }
        socket::bind(rx.as_fd(), ifindex, (libc::ETH_P_ALL as u16).to_be()).unwrap();
        let tx = TxSocket::open("b0", ifindex).unwrap();
        PacketPort::beside_program(rx, tx.fd, 1514, WAY).unwrap()
    })
}

/// Frames of one look, and how much was looked at. What they leave of it is released.
fn look(port: &mut PacketPort, limit: u32, drops: &mut Drops) -> (Vec<Vec<u8>>, u32) {
    under_test::look(port, 0, limit, drops)
}

/// Looks until there are that many; panics after half a minute, which only a bug takes.
fn collect_all(port: &mut PacketPort, count: usize, limit: u32, drops: &mut Drops) -> Vec<Vec<u8>> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut frames = Vec::new();
    while frames.len() < count {
        assert!(Instant::now() < deadline, "only {} frames arrive", frames.len());
        let (found, looked) = look(port, limit, drops);
        frames.extend(found);
        if looked == 0 {
            port.arm();
            let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
            let doorbell = PollFd::from_borrowed_fd(port.doorbell(), PollFlags::IN);
            poll(&mut [doorbell], Some(&limit)).unwrap();
            port.drain();
        }
    }
    frames
}

/// Has the port send frames at once; packets and bytes that it has taken.
fn deliver(port: &mut PacketPort, frames: &[Vec<u8>], drops: &mut Drops) -> (u64, u64) {
    let delivered = under_test::deliver(port, 0, frames, drops);
    port.flush(true);
    delivered
}

/// Frames of all lengths, and with tags, come as they are on the wire, whether in blocks or as messages.
#[test]
fn what_is_on_the_wire_is_collected() {
    if skip_without_root("what_is_on_the_wire_is_collected") {
        return;
    }
    let wire = Wire::new(1, 4000);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let lengths = (14..100).chain((100..=1514).step_by(101)).chain([1514, 2048, 2049, 4014]);
    let mut frames: Vec<_> = (0..).zip(lengths).map(|(i, length)| frame(i, length)).collect();
    frames.push(tagged(&frame(1000, 1514), 0x8100, 0x6007));
    frames.push(tagged(&frame(1001, 60), 0x88a8, 9));
    frames.push(tagged(&tagged(&frame(1002, 60), 0x8100, 3), 0x8100, 4));
    for open in [open, open_messages] {
        let mut port = open(&wire);
        let mut drops = Drops::default();
        for limit in [u32::MAX, 3000] {
            frames.iter().for_each(|frame| a.send(frame));
            assert!(collect_all(&mut port, frames.len(), limit, &mut drops) == frames);
        }
        assert_eq!(drops, Drops::default());
        port.count_lost(&mut drops);
        assert_eq!(drops, Drops::default());
    }
}

/// A look has so many frames at most, and so many bytes but for the last frame; the others stay.
#[test]
fn a_look_is_bounded() {
    if skip_without_root("a_look_is_bounded") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let received = || {
        let packets = wire.b.run("cat /sys/class/net/b0/statistics/rx_packets");
        packets.trim().parse::<usize>().unwrap()
    };
    for open in [open, open_messages] {
        let mut port = open(&wire);
        let mut drops = Drops::default();
        let sent: Vec<_> = (0..200).map(|i| frame(i, 100)).collect();
        for (limit, most) in [(u32::MAX, 128), (1000, 10), (1001, 11), (1, 1)] {
            let before = received();
            sent.iter().for_each(|frame| a.send(frame));
            let deadline = Instant::now() + Duration::from_secs(30);
            while received() < before + sent.len() {
                assert!(Instant::now() < deadline, "frames are on their way for ever");
            }
            let mut found = Vec::new();
            let mut largest = 0;
            while found.len() < sent.len() {
                let (frames, looked) = look(&mut port, limit, &mut drops);
                assert!(frames.len() <= most, "{} of {most}", frames.len());
                assert!(looked as usize >= frames.len());
                largest = largest.max(frames.len());
                if looked == 0 {
                    port.arm();
                    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
                    let doorbell = PollFd::from_borrowed_fd(port.doorbell(), PollFlags::IN);
                    assert_eq!(poll(&mut [doorbell], Some(&limit)), Ok(1));
                    port.drain();
                }
                found.extend(frames);
            }
            assert!(found == sent);
            // By messages it is 32 at once; a block may be handed over before it is full, but not all are.
            assert!(most > 11 || largest == most, "{largest} of {most}");
        }
        assert_eq!(drops, Drops::default());
    }
}

/// Messages are asked for until there are fewer than there may be, and then when there is word of more.
#[test]
fn messages_are_asked_for_when_there_may_be_some() {
    if skip_without_root("messages_are_asked_for_when_there_may_be_some") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let mut port = open_messages(&wire);
    let received = || {
        let packets = wire.b.run("cat /sys/class/net/b0/statistics/rx_packets");
        packets.trim().parse::<usize>().unwrap()
    };
    let before = received();
    let send = |numbers: std::ops::Range<u32>| {
        let end = before + numbers.end as usize;
        numbers.for_each(|i| a.send(&frame(i, 60)));
        let deadline = Instant::now() + Duration::from_secs(30);
        while received() < end {
            assert!(Instant::now() < deadline, "frames are on their way for ever");
        }
    };
    let mut drops = Drops::default();
    let mut all = |port: &mut PacketPort| {
        let (mut count, mut looked) = (0, 1);
        while looked > 0 {
            let frames;
            (frames, looked) = look(port, u32::MAX, &mut drops);
            count += frames.len();
        }
        count
    };
    send(0..100);
    assert_eq!(all(&mut port), 100);
    send(100..101);
    assert_eq!(all(&mut port), 0, "it has no word of that");
    port.expect();
    assert_eq!(all(&mut port), 1);
    send(101..103);
    port.drain();
    assert_eq!(all(&mut port), 2);
}

/// A stack leaves checksums to the interface, which a veth pair does not compute: they are completed, or
/// a header says what is to be.
#[test]
fn checksums_are_completed() {
    if skip_without_root("checksums_are_completed") {
        return;
    }
    let wire = Wire::new(1, 1500);
    wire.a.run("ip addr add 10.5.0.1/24 dev a0");
    wire.a.run("ip neigh add 10.5.0.2 lladdr 02:00:00:00:00:02 dev a0");
    let socket = wire.a.enter(|| UdpSocket::bind("10.5.0.1:9").unwrap());
    for (open, header) in [(open as fn(&Wire) -> PacketPort, 0), (open_messages, 12)] {
        let mut port = open(&wire);
        let mut drops = Drops::default();
        for length in [1usize, 2, 777, 1472] {
            let payload: Vec<u8> = (0..length).map(|i| (i * 3) as u8).collect();
            assert_eq!(socket.send_to(&payload, "10.5.0.2:9").unwrap(), length);
            let mut frames = collect_all(&mut port, 1, u32::MAX, &mut drops);
            // In messages, the receiver is told what is to be done.
            if header > 0 {
                let told = ringway_vnet::Header::parse(&frames[0][..header]).unwrap();
                assert_eq!([told.flags as u16, told.csum_start, told.csum_offset], [1, 34, 6]);
                frames[0].drain(..header);
                ringway_vnet::consume(&told, &mut frames[0], 1514, &mut []).unwrap();
            }
            let udp = &frames[0][34..42 + length];
            assert_eq!(udp[8..], payload);
            let pseudo = sum(&frames[0][26..34]) + sum(&[0, 17]) + sum(&udp[4..6]);
            assert_eq!(finish(pseudo + sum(udp)), [0; 2], "{length} bytes: {udp:02x?}");
        }
        assert_eq!(drops, Drops::default());
    }
}

/// What is delivered is sent, but for what an interface cannot send, which is counted.
#[test]
fn what_is_delivered_is_on_the_wire() {
    if skip_without_root("what_is_delivered_is_on_the_wire") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let mut port = open(&wire);
    let mut drops = Drops::default();
    let long = tagged(&frame(900, 1514), 0x8100, 7);
    let frames: Vec<_> = [14, 15, 20, 21, 60, 1514]
        .into_iter()
        .map(|length| frame(length as u32, length))
        .chain([long.clone()])
        .collect();
    let bytes = frames.iter().map(|frame| frame.len() as u64).sum();
    assert_eq!(deliver(&mut port, &frames, &mut drops), (7, bytes));
    assert!(a.receive_all(7) == frames);
    assert_eq!(drops, Drops::default());

    let odd = [frame(1, 13), frame(2, 1519), frame(3, 60)];
    assert_eq!(deliver(&mut port, &odd, &mut drops), (1, 60));
    assert!(a.receive_all(1) == odd[2..]);
    assert_eq!(drops, Drops { too_short: 1, too_long: 1, ..Drops::default() });

    // Only this tag's bytes come on top: the kernel would refuse the others.
    let provider = tagged(&frame(4, 1514), 0x88a8, 7);
    let [much, more] = [1515, 4000].map(|length| tagged(&frame(4, length), 0x8100, 7));
    let longer = [frame(4, 1515), frame(4, 1518), provider, much, more, frame(5, 60)];
    assert_eq!(deliver(&mut port, &longer, &mut drops), (1, 60));
    assert!(a.receive_all(1) == [frame(5, 60)]);
    assert_eq!(drops, Drops { too_short: 1, too_long: 6, ..Drops::default() });

    port.set_max_frame(100);
    let frames = [frame(6, 100), frame(7, 101), tagged(&frame(8, 100), 0x8100, 7)];
    assert_eq!(deliver(&mut port, &frames, &mut drops), (2, 204));
    assert!(a.receive_all(2) == [frames[0].clone(), frames[2].clone()]);
    assert_eq!(drops, Drops { too_short: 1, too_long: 7, ..Drops::default() });

    // The interface has learned of a shorter MTU before the switch has.
    port.set_max_frame(1514);
    wire.a.run("ip link set a0 mtu 1000");
    wire.b.run("ip link set b0 mtu 1000");
    assert_eq!(deliver(&mut port, &[frame(9, 1514), frame(9, 60)], &mut drops), (2, 1574));
    assert!(a.receive_all(1) == [frame(9, 60)]);
    let refused = Delivered { packets: 1, bytes: 1514 };
    assert_eq!(port.unsent(&mut drops), Unsent { refused, ..Unsent::default() });
    assert_eq!(port.unsent(&mut drops), Unsent::default());
    assert_eq!(drops, Drops { too_short: 1, too_long: 8, ..Drops::default() });
    assert_eq!((port.tx_rings(), port.rx_rings(), port.receives()), (1, 1, true));
    assert_eq!((port.kernel_way(), open_messages(&wire).kernel_way()), (None, Some(WAY)));
}

/// What a header says is left to do is done by the interface, or told to the other side; how long the frame is does
/// not matter then.
#[test]
fn frames_are_delivered_with_their_headers() {
    if skip_without_root("frames_are_delivered_with_their_headers") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let mut port = open(&wire);
    assert!(port.takes_headers());
    let payload: Vec<u8> = (0..4000).map(|i| (i * 3) as u8).collect();
    for (length, gso_type, expected) in [(300, 0, vec![300]), (4000, 5, vec![1400, 1400, 1200])] {
        let udp = 8 + length as u16;
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0]);
        frame.extend((20 + udp).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 5, 0, 1, 10, 5, 0, 2]);
        let checksum = finish(sum(&frame[14..34]));
        frame[24..26].copy_from_slice(&checksum);
        frame.extend([0, 7, 0, 9]);
        frame.extend(udp.to_be_bytes());
        let pseudo = finish(sum(&frame[26..34]) + sum(&[0, 17]) + sum(&udp.to_be_bytes()));
        frame.extend(pseudo.map(|byte| !byte));
        frame.extend(&payload[..length]);
        let gso_size = if gso_type == 0 { 0 } else { 1400 };
        let header = Header {
            flags: 1,
            gso_type,
            hdr_len: 42,
            gso_size,
            csum_start: 34,
            csum_offset: 6,
            num_buffers: 0,
        };
        let mut bytes = [&header.emit()[..Header::SHORT], &frame].concat();
        let from = From { header_len: Header::SHORT as u8, ..From::default() };
        let mut burst = Burst::default().recycle(from);
        burst.push_private(&mut bytes);
        burst.end_frame();
        burst.read_headers();
        let mut drops = Drops::default();
        let delivered = port.deliver(0, &burst.frames, &burst, &mut drops);
        port.flush(true);
        assert_eq!((delivered.packets, drops), (1, Drops::default()));
        let found = a.receive_all(expected.len());
        assert_eq!(found.iter().map(|got| got.len() - 42).collect::<Vec<_>>(), expected);
        assert!(found.iter().flat_map(|got| &got[42..]).eq(&payload[..length]));
        for got in found {
            let pseudo = sum(&got[26..34]) + sum(&[0, 17]) + sum(&got[38..40]);
            assert_eq!(finish(pseudo + sum(&got[34..])), [0; 2]);
        }
    }
}

/// More than wait at once go out all the same; without a link, none is sent then or later, and each is counted once.
#[test]
fn frames_do_not_wait_for_the_link() {
    if skip_without_root("frames_do_not_wait_for_the_link") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let a = Port::new(&wire.a, "a0", 0, 1);
    let mut port = open(&wire);
    let mut drops = Drops::default();
    let frames: Vec<_> = (0..600).map(|i| frame(i, 60)).collect();
    assert_eq!(deliver(&mut port, &frames, &mut drops), (600, 600 * 60));
    assert!(a.receive_all(600) == frames);
    assert_eq!((port.unsent(&mut drops), drops), Default::default());

    let all = Delivered { packets: 600, bytes: 600 * 60 };
    wire.b.run("ip link set b0 down");
    assert_eq!(deliver(&mut port, &frames, &mut drops), (600, 600 * 60));
    assert_eq!(port.unsent(&mut drops), Unsent { refused: all, ..Unsent::default() });
    assert_eq!(drops, Drops { ring_full: 600, ..Drops::default() });
    wire.b.run("ip link set b0 up");
    assert_eq!(deliver(&mut port, &[frame(700, 60)], &mut drops), (1, 60));
    assert!(a.receive_all(1) == [frame(700, 60)]);

    // The far end is down: that may be a lack of room, until the port hears more.
    wire.a.run("ip link set a0 down");
    assert_eq!(deliver(&mut port, &frames[..3], &mut drops), (3, 180));
    let three = Delivered { packets: 3, bytes: 180 };
    assert_eq!(port.unsent(&mut drops), Unsent { waiting: three, ..Unsent::default() });
    // Its doorbell rings when it is time to try again.
    port.drain();
    port.arm();
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    let doorbell = PollFd::from_borrowed_fd(port.doorbell(), PollFlags::IN);
    assert_eq!(poll(&mut [doorbell], Some(&limit)), Ok(1));
    port.discard();
    assert_eq!(port.unsent(&mut drops), Unsent { refused: three, ..Unsent::default() });
    assert_eq!(drops, Drops { ring_full: 603, ..Drops::default() });
}

/// Frames that the other end is never going to take do not keep those behind them.
#[test]
fn frames_longer_than_the_other_end_takes_are_lost() {
    if skip_without_root("frames_longer_than_the_other_end_takes_are_lost") {
        return;
    }
    let wire = Wire::new(1, 1500);
    wire.a.run("ip link set a0 mtu 900");
    let a = Port::new(&wire.a, "a0", 0, 1);
    let mut port = open(&wire);
    let mut drops = Drops::default();
    let long = (0..100).map(|i| frame(i, 1000 + i as usize));
    let frames: Vec<_> = long.chain((100..200).map(|i| frame(i, 60))).collect();
    assert_eq!(deliver(&mut port, &frames, &mut drops).0, 200);
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut arrived = Vec::new();
    while arrived.len() < 100 {
        assert!(Instant::now() < deadline, "only {} arrive", arrived.len());
        port.flush(true);
        arrived.extend(a.receive());
    }
    assert!(arrived == frames[100..]);
    assert_eq!(port.unsent(&mut drops).refused.packets, 100);
    assert_eq!(drops, Drops { too_long: 100, ..Drops::default() });
}

/// An interface that goes down, and comes up again, wakes its worker, and does not keep it awake.
#[test]
fn who_has_gone_down_is_heard_once() {
    if skip_without_root("who_has_gone_down_is_heard_once") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let port = open(&wire);
    for state in ["down", "up"] {
        wire.b.run(&format!("ip link set b0 {state}"));
        let deadline = Instant::now() + Duration::from_secs(30);
        let rings = || {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::from_borrowed_fd(port.doorbell(), PollFlags::IN)], Some(&now))
                == Ok(1)
        };
        while rings() {
            assert!(Instant::now() < deadline, "{state}: its doorbell does not rest");
            port.drain();
        }
    }
}

/// What nobody collects fills the blocks, and what comes then is counted.
#[test]
fn what_the_kernel_drops_is_counted() {
    if skip_without_root("what_the_kernel_drops_is_counted") {
        return;
    }
    let wire = Wire::new(1, 1500);
    wire.a.run("ip addr add 10.5.0.1/24 dev a0");
    wire.a.run("ip neigh add 10.5.0.2 lladdr 02:00:00:00:00:02 dev a0");
    let mut port = open(&wire);
    let socket = wire.a.enter(|| UdpSocket::bind("10.5.0.1:9").unwrap());
    let (mut sent, mut drops) = (0, Drops::default());
    let deadline = Instant::now() + Duration::from_secs(60);
    while drops.ring_full == 0 {
        assert!(Instant::now() < deadline, "{sent} frames, and none was dropped");
        for _ in 0..1000 {
            // Refused only while too much is on its way.
            sent += u64::from(socket.send_to(&[1; 1400], "10.5.0.2:9").is_ok());
        }
        port.count_lost(&mut drops);
    }
    // Once.
    let before = drops.ring_full;
    port.count_lost(&mut drops);
    assert_eq!(drops, Drops { ring_full: before, ..Drops::default() });
    assert!(before < sent);
}
