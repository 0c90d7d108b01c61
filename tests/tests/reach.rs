//! The memory that a port of an interface takes: that of the queues that programs have, and room for others. Buffers beyond
//! it are as good (S-MEM-4).

use std::time::Duration;

use ringway::{Control, NS_BUF_CHANGED, Port, Slot};
use ringway_testkit::{Netns, skip_without_root};
use ringway_tests::{
    frame::{self, Seen},
    isolated,
    wire::wire,
};

const LIMIT: Duration = Duration::from_secs(30);

/// Buffers of a queue: those of its two rings, and the spare ones of each.
const QUEUE: u64 = 2 * (1024 + 128);
const BUFFER: u64 = 2048;

/// Bytes of the port's region that are in memory, which are those that have been touched or pinned.
fn resident(port: &Port) -> u64 {
    let stat = rustix::fs::fstat(port.binding().region().memfd()).expect("a memfd");
    stat.st_blocks as u64 * 512
}

/// Buffers of region 1 that are taken.
fn taken() -> u64 {
    let regions = Control::connect().and_then(|control| control.regions()).expect("a daemon");
    let global = regions.iter().find(|region| region.mem_id == 1).expect("it is in use");
    u64::from(global.bufs - global.free_bufs)
}

/// What `docs/shared-memory.md` says that each queue takes.
#[test]
fn a_port_takes_memory_for_the_queues_that_it_has() {
    if skip_without_root("a_port_takes_memory_for_the_queues_that_it_has") {
        return;
    }
    isolated("a_port_takes_memory_for_the_queues_that_it_has", |_| {
        let netns = Netns::quiet("rwm");
        netns.run(
            "ip link add n0 numrxqueues 8 numtxqueues 8 type veth \
                 peer name n1 numrxqueues 8 numtxqueues 8 &&
             ip link set n0 up && ip link set n1 up",
        );
        let open = |name: &str| netns.enter(|| Port::open(name)).expect("it can be opened");
        // Beside buffers: huge pages that begin and end elsewhere, rings, and interfaces.
        let others = 6 << 20;
        let one = open("netmap:n0-3");
        assert!((QUEUE..QUEUE + 10).contains(&taken()), "{} are taken", taken());
        let bytes = resident(&one);
        assert!(bytes <= 4 * QUEUE * BUFFER + others, "{bytes} bytes for one queue");
        let more = open("netmap:n0-4");
        assert!((2 * QUEUE..2 * QUEUE + 10).contains(&taken()), "{} are taken", taken());
        let bytes = resident(&more);
        assert!(bytes <= 8 * QUEUE * BUFFER + others, "{bytes} bytes for two queues");
        // All that is left may be asked for.
        let all = netns.enter(|| Port::options().extra_bufs(100_000).open("netmap:n0-5"));
        assert_eq!(all.expect("it can be opened").take_extra_bufs().len(), 100_000);
    });
}

/// Two programs have an interface; the second has buffers that the sockets of the first do not reach.
#[test]
fn buffers_that_a_socket_does_not_reach_are_as_good() {
    if skip_without_root("buffers_that_a_socket_does_not_reach_are_as_good") {
        return;
    }
    isolated("buffers_that_a_socket_does_not_reach_are_as_good", |_| {
        const FRAMES: u64 = 5000;
        let (a, b, _pair) = wire();
        let first = [(&a, "netmap:n0"), (&b, "netmap:n1")]
            .map(|(netns, name)| netns.enter(|| Port::open(name)).expect("it can be opened"));
        let mut second = [(&a, "netmap:n0"), (&b, "netmap:n1")].map(|(netns, name)| {
            let options = || Port::options().extra_bufs(30_000);
            netns.enter(|| options().open(name)).expect("it can be opened")
        });
        let mut extra = second.each_mut().map(|port| {
            let mut bufs = port.take_extra_bufs();
            assert_eq!(bufs.len(), 30_000);
            // The last ones of the region are farthest away.
            bufs.sort_unstable();
            bufs.split_off(bufs.len() - 2000)
        });
        let [sender, receiver] = &mut second;
        let (src, mut bytes, mut spare) = (frame::mac(1, 0), Vec::new(), Vec::new());
        let (mut sent, mut next, mut foreign) = (0, 0, 0);
        let beyond = *extra[1].first().expect("there are some");
        while next < FRAMES {
            let mut tx = sender.tx(0);
            tx.sync();
            let mut slots = tx.slots();
            while slots.held() > 0 && sent < FRAMES && sent < next + 32 {
                frame::build(&mut bytes, frame::BROADCAST, src, 1, sent);
                let mut slot = slots.get(0);
                if slot.buf_idx < beyond - 4000
                    && let Some(buf) = extra[0].pop()
                {
                    slot.buf_idx = buf;
                }
                slots.set(0, Slot { len: bytes.len() as u16, flags: NS_BUF_CHANGED, ..slot });
                slots.write(0, 0, &bytes);
                slots.advance(1);
                sent += 1;
            }
            tx.sync();
            if !receiver.wait_rx(Some(LIMIT)).expect("it is there") {
                panic!("{next} frames of {FRAMES} have arrived, {sent} were sent");
            }
            let mut rx = receiver.rx(0);
            let mut slots = rx.slots();
            while slots.held() > 0 {
                let slot = slots.get(0);
                let mut data = vec![0; slot.len.into()];
                slots.read(0, &mut data);
                match frame::look(&data, &mut spare) {
                    Seen::Ours { flow: 1, number } => {
                        assert_eq!(number, next);
                        next += 1;
                        foreign += u64::from(slot.buf_idx >= beyond);
                    }
                    other => assert_eq!(other, Seen::Foreign),
                }
                if slot.buf_idx < beyond
                    && let Some(buf) = extra[1].pop()
                {
                    slots.set(0, Slot { buf_idx: buf, flags: NS_BUF_CHANGED, ..slot });
                }
                slots.advance(1);
            }
            rx.sync();
        }
        assert!(foreign > FRAMES / 2, "{foreign} came into buffers out of reach");
        assert!(extra[0].len() < 2000 - 1000, "all slots of the sender are");
        drop(first);
    });
}
