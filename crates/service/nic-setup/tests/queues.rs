//! What the stack sends by queue k arrives at host ring k: `host.rs`.

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;

use ringway_filter::Program;
use ringway_nic_setup::{
    EgressFilter, EgressRedirect, Error, Filter, HostEnd, Interface, Mode, XdpProgram, Xsk,
    XskConfig, in_netns,
};
use ringway_testkit::{Netns, skip_without_root};
use ringway_xdp::{FrameMemory, FrameQueue, RingSizes, Umem};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const QUEUES: u32 = 4;
const FLOWS: u16 = 64;
/// The first flow comes from here.
const PORT: u16 = 20_000;

/// All queues of an interface of the calling thread's namespace.
struct Queues {
    frames: Vec<FrameQueue>,
    _program: XdpProgram,
}

impl Queues {
    fn open(interface: &Interface) -> Result<Queues, Error> {
        let mut program = XdpProgram::attach(interface)?;
        let mut frames = Vec::new();
        for queue in 0..interface.queues() {
            let umem = Umem::anonymous(256, 2048).unwrap();
            let config = XskConfig {
                interface,
                queue,
                memory: FrameMemory::of_umem(&umem),
                chunk_size: 2048,
                sizes: RingSizes { fill: 128, completion: 128, rx: 128, tx: 128 },
                frags: false,
                modes: Mode::preference(program.mode()),
            };
            let xsk = Xsk::open(&config)?;
            program.set_queue(queue, &xsk.socket)?;
            frames.push(FrameQueue::new(xsk.socket, umem).unwrap());
        }
        Ok(Queues { frames, _program: program })
    }

    /// Where each flow arrives.
    fn sort(&mut self) -> BTreeMap<u16, u32> {
        let mut arrived = BTreeMap::new();
        while arrived.len() < FLOWS.into() {
            let mut fds: Vec<_> =
                self.frames.iter().map(|q| PollFd::new(q, PollFlags::IN)).collect();
            let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
            assert!(poll(&mut fds, Some(&limit)).unwrap() > 0, "{} flows", arrived.len());
            for (number, queue) in (0..).zip(&mut self.frames) {
                for frame in common::recv(queue) {
                    let from = u16::from_be_bytes([frame[34], frame[35]]);
                    if frame[12..14] == [8, 0] && frame[23] == 17 {
                        arrived.insert(from - PORT, number);
                    }
                }
            }
        }
        arrived
    }
}

#[test]
fn host_rings_are_queues() {
    if skip_without_root("host_rings_are_queues") {
        return;
    }
    let (a, b) = (Netns::quiet("xq"), Netns::quiet("xq"));
    let _wire = a.veth_queues(&b, "a0", "b0", QUEUES);
    a.run(
        "ip addr add 10.8.0.1/24 dev a0 && ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev a0",
    );
    // Not connected: such sockets do not remember a queue.
    let bind = |flow| UdpSocket::bind(("10.8.0.1", PORT + flow)).unwrap();
    let sockets: Vec<_> = a.enter(|| (0..FLOWS).map(bind).collect());
    let send = || {
        for socket in &sockets {
            socket.send_to(b"flow", "10.8.0.2:9").unwrap();
        }
    };
    let inside = |netns: &Netns, name: &str| {
        in_netns(netns.fd().as_fd(), || Queues::open(&Interface::by_name(name)?)).unwrap()
    };
    let mut far = inside(&b, "b0").unwrap();
    send();
    let queues = far.sort();
    let used: BTreeSet<_> = queues.values().collect();
    assert_eq!(used.len(), QUEUES as usize, "{queues:?}");

    for rings in [1, 2, 3, 4, 6] {
        let (interface, host, mut diversion) = a
            .enter(|| {
                let interface = Interface::by_name("a0")?;
                let host = HostEnd::new(&interface, rings)?;
                let diversion = EgressRedirect::begin(&interface)?;
                Ok::<_, Error>((interface, host, diversion))
            })
            .unwrap();
        let mut near = host.inside(Queues::open).unwrap();
        let expected: BTreeMap<_, _> =
            queues.iter().map(|(&flow, &queue)| (flow, queue % rings)).collect();
        let everything = Arc::new(Filter::new("a0", Program::everything(), 1).unwrap());
        let loaded = EgressFilter::of(&interface, &host, &everything).load().unwrap();
        for filter in [None, Some(&loaded)] {
            diversion.redirect(Some(&host), filter).unwrap();
            send();
            assert_eq!(near.sort(), expected, "{rings} rings, filter: {}", filter.is_some());
        }
        assert_eq!(everything.counters().unwrap().taken as usize, queues.len());
        diversion.end();
    }
    send();
    assert_eq!(far.sort(), queues);
}
