//! The way from a stack to this process: `pair.rs`.

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;

use common::{copy, wait_readable};
use ringway_nic_setup::{
    Error, Interface, Mode, OuterEnd, PairConfig, PrivatePair, XdpProgram, Xsk, XskConfig, in_netns,
};
use ringway_testkit::{Netns, skip_without_root};
use ringway_xdp::{FrameMemory, FrameQueue, RingSizes, Umem};

const CONFIG: PairConfig<'_> =
    PairConfig { name: "out0", mtu: 1500, mac: None, queues: 1, outer: OuterEnd::Device };

fn make(netns: &Netns, config: &PairConfig<'_>) -> Result<PrivatePair, Error> {
    in_netns(netns.fd().as_fd(), || PrivatePair::new(config)).unwrap()
}

/// The Internet checksum of `bytes`: 0 where a right one is among them.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    !(sum as u16).wrapping_add((sum >> 16) as u16)
}

/// What the stack sends through the outer end arrives, with its checksum, in pieces of the MTU.
#[test]
fn what_the_stack_sends_arrives_complete() {
    if skip_without_root("what_the_stack_sends_arrives_complete") {
        return;
    }
    let netns = Netns::new("xp");
    netns.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    let pair = make(&netns, &CONFIG).unwrap();
    let open = |inner: &Interface| {
        let umem = Umem::anonymous(64, 2048).unwrap();
        let mut program = XdpProgram::attach(inner)?;
        let config = XskConfig {
            interface: inner,
            queue: 0,
            memory: FrameMemory::of_umem(&umem),
            chunk_size: 2048,
            sizes: RingSizes { fill: 64, completion: 64, rx: 64, tx: 64 },
            frags: false,
            modes: Mode::preference(program.mode()),
        };
        let xsk = Xsk::open(&config)?;
        program.set_queue(0, &xsk.socket)?;
        Ok((FrameQueue::new(xsk.socket, umem).unwrap(), program))
    };
    let (mut frames, _program) = pair.inside(open).unwrap();

    netns.run(
        "ip addr add 10.8.0.1/24 dev out0 && ip link set out0 up &&
         ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev out0",
    );
    let socket = netns.enter(|| UdpSocket::bind("10.8.0.1:0").unwrap());
    socket.send_to(&[7; 4000], "10.8.0.2:9").unwrap();
    let mut lengths = Vec::new();
    while lengths.len() < 3 {
        wait_readable(&frames);
        frames.recv(16, |frame| {
            let bytes = copy(frame.data);
            assert_eq!(bytes[12..14], [8, 0], "nothing but what we have sent");
            assert_eq!(checksum(&bytes[14..34]), 0);
            lengths.push(frame.data.size());
        });
    }
    assert_eq!(lengths, [1514, 1514, 4008 - 2960 + 34]);

    // One that is not in pieces has a checksum of its own.
    socket.send_to(&[7; 1000], "10.8.0.2:9").unwrap();
    wait_readable(&frames);
    frames.recv(1, |frame| {
        let bytes = copy(frame.data);
        let (addresses, udp) = (&bytes[26..34], &bytes[34..]);
        let pseudo = [addresses, &[0, 17], &udp[4..6], udp].concat();
        assert_eq!(checksum(&pseudo), 0);
    });
}

#[test]
fn both_ends_go_together() {
    if skip_without_root("both_ends_go_together") {
        return;
    }
    let netns = Netns::new("xp");
    let pair = make(&netns, &CONFIG).unwrap();
    assert!(netns.run("ip -br link").contains("out0"));
    match make(&netns, &CONFIG) {
        Err(Error::Refused { cause, .. }) => {
            assert_eq!(cause.raw_os_error(), Some(libc::EEXIST));
        }
        other => panic!("{other:?}"),
    }
    drop(pair);
    assert!(!netns.run("ip -br link").contains("out0"));

    // Without a word to anybody: as when the process is killed.
    let internal = PairConfig { outer: OuterEnd::Internal, ..CONFIG };
    let pair = make(&netns, &internal).unwrap();
    let state = netns.run("ip -br link show out0");
    assert!(state.contains("UP") && state.contains("NOARP"), "{state}");
    netns.run("ip link del out0");
    drop(pair);
}

/// The kernel clears up namespaces a moment after their last process has ended.
#[test]
fn what_a_killed_daemon_has_left_is_waited_for() {
    if skip_without_root("what_a_killed_daemon_has_left_is_waited_for") {
        return;
    }
    let (netns, killed) = (Netns::new("xp"), Netns::new("xp"));
    let left = netns.veth(&killed, "out0", "inner0");
    drop(killed);
    let pair = make(&netns, &PairConfig { outer: OuterEnd::Internal, ..CONFIG }).unwrap();
    drop(pair);
    drop(left);
}
