//! Clients that break every rule cost nobody but themselves (DESIGN's trust rules 1 to 3).

use std::{
    io::IoSlice,
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use ringway::{Control, Port};
use ringway_proto::{Request, VERSION};
use ringway_testkit::{Proc, lingering};
use ringway_tests::{Home, OnDrop, Pair, Random, connect, frame, isolated, until};
use rustix::{
    fd::{AsFd, OwnedFd},
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, sendmsg, socketpair,
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

fn say(socket: &OwnedFd, bytes: &[u8], fds: &[&OwnedFd]) -> Result<usize, rustix::io::Errno> {
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)
}

fn pair_of_sockets() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
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
            let mut random = Random::seeded();
            let mut bytes = vec![0; 4096];
            for round in 0..3000 {
                let socket = connect(&home.socket()).unwrap();
                let (mine, reply_to) = pair_of_sockets();
                for _ in 0..random.below(4) {
                    let len = random.below(if round % 10 == 0 { 4096 } else { 64 }) as usize;
                    random.fill(&mut bytes);
                    // The version byte, and a request's number that exists, lead further in.
                    bytes[0] = if random.below(4) == 0 { bytes[0] } else { 1 };
                    bytes[1] = if random.below(2) == 0 { bytes[1] } else { bytes[1] % 14 };
                    let fds: &[&OwnedFd] = match random.below(4) {
                        0 => &[],
                        1 => &[&reply_to],
                        2 => &[&reply_to, &mine],
                        _ => &[&reply_to; 64],
                    };
                    if say(&socket, &bytes[..len], fds).is_err() {
                        break; // The daemon has hung up already.
                    }
                }
            }
        });
    });
}

/// Thousands of connections, opened and closed, many at a time.
#[test]
fn many_connections() {
    isolated("many_connections", |home| {
        with_a_neighbour(home, "valel", |home| {
            for _ in 0..20 {
                let open: Vec<OwnedFd> =
                    (0..200).map(|_| connect(&home.socket()).unwrap()).collect();
                drop(open);
            }
        });
    });
}

/// A client that asks and asks and never reads an answer.
#[test]
fn answers_that_nobody_reads() {
    isolated("answers_that_nobody_reads", |home| {
        with_a_neighbour(home, "valem", |home| {
            let socket = connect(&home.socket()).unwrap();
            let (_unread, reply_to) = pair_of_sockets();
            let request =
                postcard::to_allocvec(&Request::Ports { from: 0 }).expect("it has a form");
            // The version goes before it.
            let question = [&[VERSION], &request[..]].concat();
            let mut asked = 0;
            until("ten thousand questions are asked", || {
                while say(&socket, &question, &[&reply_to]).is_ok() {
                    asked += 1;
                }
                if asked >= 10_000 { Ok(()) } else { Err(format!("{asked}")) }
            });
            // Also one who closes the place of the answer before it comes.
            for _ in 0..1000 {
                let (unread, reply_to) = pair_of_sockets();
                drop(unread);
                while say(&socket, &question, &[&reply_to]) == Err(rustix::io::Errno::AGAIN) {
                    thread::yield_now();
                }
            }
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
            let request =
                postcard::to_allocvec(&Request::Ports { from: 0 }).expect("it has a form");
            let question = [&[VERSION], &request[..]].concat();
            let mut others = Vec::new();
            // The daemon may be faster than we are to close it: then it is we who wait.
            let send = |socket: &OwnedFd, bytes: &[u8], fds: Vec<OwnedFd>| {
                // It may have hung up by now.
                let _ = say(socket, bytes, &fds.iter().collect::<Vec<_>>());
                thread::spawn(move || drop(fds));
            };
            let mut slow = || {
                let (slow, other) = lingering();
                others.push(other);
                slow
            };
            for _ in 0..ROUNDS {
                let connect = || connect(&home.socket()).unwrap();
                let (reply_end, _mine) = pair_of_sockets();
                // In the socket that the answer goes to.
                let (mine, holder) = pair_of_sockets();
                send(&mine, b"x", vec![slow(), slow()]);
                send(&connect(), &question, vec![holder]);
                // Where none is asked for.
                send(&connect(), &question, vec![reply_end, slow()]);
                // Behind what ends the connection, twice.
                for end in [&b"\0"[..], b""] {
                    let ended = connect();
                    send(&ended, end, vec![slow()]);
                    send(&ended, &question, vec![slow()]);
                }
                control.ports().expect("the daemon answers");
            }
            drop(others);
        });
    });
}
