//! Clients that break every rule cost nobody but themselves (DESIGN's trust rules 1 to 3).

use std::{
    io::IoSlice,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use ringway::{Control, Port};
use ringway_proto::{Request, VERSION};
use ringway_testkit::Proc;
use ringway_tests::{
    Home, OnDrop, Pair, Random,
    attacks::{connections, garbage, slow_to_close, unread_answers},
    connect, frame, isolated, until,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        SocketAddrUnix, SocketFlags, SocketType, bind, connect as connect_socket, recv, sendmsg,
        socket, socketpair,
    },
};

const LIMIT: Duration = Duration::from_secs(60);
/// Frames that the others exchange while it goes on.
const ENOUGH: u64 = 20_000;

/// Drops of a port, and what it sent.
fn drops(control: &Control, port: &str) -> Option<ringway::BridgePortInfo> {
    let bridges = control.switches().expect("the daemon answers");
    bridges.into_iter().flat_map(|bridge| bridge.ports).find(|info| info.name == port)
}

/// Random bytes all over a sender's region: the others' frames arrive whole, and the sender's
/// errors are counted.
#[test]
fn a_sender_of_garbage() {
    isolated("a_sender_of_garbage", |home| {
        let control = Control::connect().unwrap();
        let daemon = home.daemon();
        let mut pairs = [
            Pair::open("valeh:a", "valeh:b", 1).unwrap(),
            Pair::open("valeh:c", "valeh:d", 2).unwrap(),
        ];
        let mut hostile = Proc::spawn(home.traffic(&["scribble", "valeh:hostile"]));
        hostile.wait_for("scribbleing", LIMIT);
        let (mut bad_slots, mut bad_indices) = (0, 0);
        until("its errors are counted", || {
            for pair in &mut pairs {
                pair.exchange_some(ENOUGH / 4).expect("the daemon serves");
            }
            let info = drops(&control, "valeh:hostile").ok_or("the hostile has gone")?;
            let drops = info.totals.drops;
            (bad_slots, bad_indices) = (drops.bad_slot, drops.bad_index);
            match bad_slots > 0 && bad_indices > 0 {
                true => Ok(()),
                false => Err(format!("{:?}", info.totals)),
            }
        });
        for pair in &mut pairs {
            pair.exchange_some(ENOUGH).unwrap();
        }
        println!("the hostile's bad slots: {bad_slots}, bad indices: {bad_indices}");
        for port in ["valeh:a", "valeh:b", "valeh:c", "valeh:d"] {
            let drops = drops(&control, port).expect("it is open").totals.drops;
            assert_eq!((drops.bad_slot, drops.bad_index), (0, 0), "{port}");
        }
        assert!(hostile.is_running(), "it harmed itself only, and ended: {}", hostile.output());
        hostile.kill();
        assert_eq!(home.daemon(), daemon);
    });
}

/// Random bytes all over a receiver's region, while the whole bridge floods it.
#[test]
fn a_receiver_of_garbage() {
    isolated("a_receiver_of_garbage", |home| {
        let control = Control::connect().unwrap();
        let daemon = home.daemon();
        let mut pair = Pair::open("valei:a", "valei:b", 1).unwrap();
        let hostile = Proc::spawn(home.traffic(&["scribble", "valei:hostile", "receive"]));
        hostile.wait_for("scribbleing", LIMIT);

        let (stop, flooded) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut port = Port::open("valei:flood").unwrap();
                let mut bytes = Vec::new();
                while !stop.load(Relaxed) {
                    let number = flooded.fetch_add(1, Relaxed);
                    frame::build(&mut bytes, frame::BROADCAST, frame::mac(9, 0), 9, number);
                    if port.tx(0).push(&bytes) && number % 32 == 0 {
                        port.tx(0).sync();
                        // A pause, in which the pair's own frames find room.
                        thread::yield_now();
                    }
                    port.wait_tx(Some(LIMIT)).unwrap();
                }
            });
            let _stop = OnDrop(|| stop.store(true, Relaxed));
            pair.exchange_some(ENOUGH).unwrap();
            until("it was flooded", || match drops(&control, "valei:hostile") {
                Some(info) if info.totals.drops.ring_full + info.totals.drops.bad_slot > 0 => {
                    println!("the hostile: {:?}", info.totals);
                    Ok(())
                }
                other => Err(format!("{other:?}")),
            });
        });
        assert_eq!(home.daemon(), daemon);
        hostile.kill();
    });
}

/// A client that was there before, works on, and leaves no more behind than it should.
fn with_a_neighbour(home: &Home, vale: &str, disturb: impl FnOnce(&Home)) {
    let daemon_fds = |pid| std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count();
    let names = [format!("{vale}:a"), format!("{vale}:b")];
    let mut pair = Pair::open(&names[0], &names[1], 1).unwrap();
    let daemon = home.daemon();
    let before = daemon_fds(daemon);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = OnDrop(|| stop.store(true, Relaxed));
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                pair.exchange_some(64).expect("the neighbour is not disturbed");
            }
        });
        disturb(home);
    });
    pair.exchange_some(1000).unwrap();
    assert_eq!(home.daemon(), daemon);
    until("the daemon has let go of the disturbers", || match daemon_fds(daemon) {
        now if now <= before => Ok(()),
        now => Err(format!("{now} descriptors, {before} before")),
    });
}

/// Garbage on the daemon's socket, with descriptors and without.
#[test]
fn garbage_on_the_socket() {
    isolated("garbage_on_the_socket", |home| {
        with_a_neighbour(home, "valej", |home| {
            garbage(&home.socket(), &mut Random::seeded(), 3000);
        });
    });
}

/// Thousands of connections, opened and closed, many at a time.
#[test]
fn many_connections() {
    isolated("many_connections", |home| {
        with_a_neighbour(home, "valel", |home| {
            for _ in 0..20 {
                assert_eq!(connections(&home.socket(), 200), 200);
            }
        });
    });
}

/// A client that asks and asks and never reads an answer.
#[test]
fn answers_that_nobody_reads() {
    isolated("answers_that_nobody_reads", |home| {
        with_a_neighbour(home, "valem", |home| {
            assert_eq!(unread_answers(&home.socket(), 10_000), 10_000);
        });
    });
}

/// What takes an hour to close, wherever a client can put it: the daemon does not wait for it.
#[test]
fn what_takes_long_to_close() {
    const ROUNDS: usize = 50;
    isolated("what_takes_long_to_close", |home| {
        let control = Control::connect().unwrap();
        with_a_neighbour(home, "valen", |home| {
            slow_to_close(&home.socket(), ROUNDS, || {
                control.ports().expect("the daemon answers");
            });
        });
    });
}

/// A socket that leads to another program gets no answer: that program would take texts of a client's for the
/// daemon's own words, by the credentials that the kernel adds.
#[test]
fn answers_reach_no_other_program() {
    isolated("answers_reach_no_other_program", |home| {
        with_a_neighbour(home, "valeo", |home| {
            let unix = |kind| socket(AddressFamily::UNIX, kind, None).unwrap();
            let address = SocketAddrUnix::new(home.path().join("service")).unwrap();
            let service = unix(SocketType::DGRAM);
            bind(&service, &address).unwrap();
            // A socket of its own, and an end of a pair.
            let (paired, _other) =
                socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                    .unwrap();
            for deputy in [unix(SocketType::DGRAM), paired] {
                connect_socket(&deputy, &address).unwrap();
                let connection = connect(&home.socket()).unwrap();
                let asked = ask(&connection, &Request::Ports { from: 0 }, &deputy);
                assert_eq!(asked, Ok(()), "the daemon listens");
                let mut hangup = [PollFd::new(&connection, PollFlags::empty())];
                let heard = poll(&mut hangup, Some(&Timespec { tv_sec: 30, tv_nsec: 0 }));
                assert_eq!(heard, Ok(1), "the connection is ended");
            }
            let told =
                recv(&service, &mut [0u8; 4096], RecvFlags::DONTWAIT).map(|(_, length)| length);
            assert_eq!(told, Err(Errno::AGAIN), "the service was told something");
        });
    });
}

/// Sends a request whose answer goes to `reply_to`.
fn ask(connection: &OwnedFd, request: &Request, reply_to: &OwnedFd) -> Result<(), Errno> {
    let bytes = postcard::to_allocvec(request).unwrap();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [reply_to.as_fd()];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
    let message = [IoSlice::new(&[VERSION]), IoSlice::new(&bytes)];
    sendmsg(connection, &message, &mut ancillary, SendFlags::NOSIGNAL).map(drop)
}
