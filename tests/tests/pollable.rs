//! The pollable descriptor of a port: readable while there is something to do, for every way to watch.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ringway::{Control, Error, Interest, PollablePort, Port};
use ringway_testkit::{Netns, skip_without_root};
use ringway_tests::{ends, isolated, one_at_a_time, wire::wire};
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    fd::{AsFd, AsRawFd, OwnedFd},
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, kill_process},
};

/// Longer than anything takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Wakes in a row, each at another moment.
const ROUNDS: u32 = 2000;

fn seconds(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

fn readable(fd: impl AsFd, limit: Duration) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    match poll(&mut fds, Some(&seconds(limit))).unwrap() {
        0 => false,
        _ => {
            assert_eq!(fds[0].revents(), PollFlags::IN);
            true
        }
    }
}

fn is_readable(port: &PollablePort) -> bool {
    readable(port, Duration::ZERO)
}

fn send(port: &mut Port, frames: usize) {
    for _ in 0..frames {
        assert!(port.tx(0).push(&[0xff; 60]));
    }
    port.tx(0).sync();
}

fn take(port: &mut Port, frames: usize) -> usize {
    port.rx(0).batch(frames).count()
}

/// Every step of a life: in the beginning, without packets, with some, with fewer, without.
fn follows_the_packets(mut from: Port, to: Port) {
    let mut to = to.into_pollable().unwrap();
    assert!(is_readable(&to), "nothing is known in the beginning");
    for _ in 0..3 {
        // What others have sent meanwhile, as a stack does, does not count.
        let quiet = Instant::now() + LIMIT;
        while to.prepare(Interest::Rx).unwrap() || is_readable(&to) {
            take(&mut to, usize::MAX);
            assert!(Instant::now() < quiet, "it never rests");
        }
        send(&mut from, 3);
        assert!(readable(&to, LIMIT), "three frames were sent");
        let deadline = Instant::now() + LIMIT;
        let mut taken = 0;
        while taken < 3 {
            if to.prepare(Interest::Rx).unwrap() {
                assert!(is_readable(&to), "{taken} frames of 3 were taken");
                assert_eq!(take(&mut to, 1), 1);
                taken += 1;
                assert!(is_readable(&to), "nothing was said since");
            }
            assert!(Instant::now() < deadline, "{taken} frames of 3");
        }
    }
    drop(to.into_port());
}

#[test]
fn a_pipes_descriptor_follows_the_packets() {
    isolated("a_pipes_descriptor_follows_the_packets", |_| {
        follows_the_packets(Port::open("w{1").unwrap(), Port::open("w}1").unwrap());
    });
}

#[test]
fn a_switch_ports_descriptor_follows_the_packets() {
    isolated("a_switch_ports_descriptor_follows_the_packets", |_| {
        follows_the_packets(Port::open("vale0:wa").unwrap(), Port::open("vale0:wb").unwrap());
    });
}

#[test]
fn an_interfaces_descriptor_follows_the_packets() {
    if skip_without_root("an_interfaces_descriptor_follows_the_packets") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("an_interfaces_descriptor_follows_the_packets", |_| {
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            let open = |netns: &Netns, name: &str| {
                netns.enter(|| Port::open(&format!("netmap:{name}@mode={mode}"))).unwrap()
            };
            follows_the_packets(open(&a, "n0"), open(&b, "n1"));
        }
    });
}

/// Room to send, and then both directions in turn: what is not asked for does not keep it readable.
#[test]
fn it_follows_what_is_asked_for() {
    isolated("it_follows_what_is_asked_for", |_| {
        let mut port = Port::open("w{2").unwrap().into_pollable().unwrap();
        let mut peer = Port::open("w}2").unwrap();
        assert!(port.prepare(Interest::Tx).unwrap(), "an empty ring has room");
        let room = port.tx(0).space();
        send(&mut port, room);
        assert!(!port.prepare(Interest::Tx).unwrap() && !is_readable(&port), "it is full");
        send(&mut peer, 1);
        assert!(!is_readable(&port), "nobody asked for packets");
        assert!(port.prepare(Interest::Both).unwrap() && is_readable(&port));
        assert_eq!(take(&mut port, 1), 1);
        assert!(!port.prepare(Interest::Both).unwrap() && !is_readable(&port));
        peer.rx(0).sync();
        assert_eq!(take(&mut peer, usize::MAX), room);
        peer.rx(0).sync();
        assert!(readable(&port, LIMIT), "there is room");
        assert!(port.prepare(Interest::Tx).unwrap());
        assert!(!port.prepare(Interest::Rx).unwrap() && !is_readable(&port), "no packets");
    });
}

/// A set of epoll's in a set, by edges: whatever the moment at which a frame comes, its edge comes.
#[test]
fn no_edge_is_lost() {
    isolated("no_edge_is_lost", |_| {
        for [from, to] in [["w{3", "w}3"], ["vale0:ea", "vale0:eb"]] {
            let mut from = Port::open(from).unwrap();
            let mut to = Port::open(to).unwrap().into_pollable().unwrap();
            let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            let edges = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            epoll::add(&set, &to, epoll::EventData::new_u64(1), edges).unwrap();
            let (asked, asks) = std::sync::mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for round in asks {
                        // Some come while the other side is still looking, some when it sleeps.
                        for _ in 0..round % 1024 {
                            std::hint::spin_loop();
                        }
                        send(&mut from, 1);
                    }
                });
                for round in 0..ROUNDS {
                    asked.send(round * 7).unwrap();
                    while !to.prepare(Interest::Rx).unwrap() {
                        let nothing = epoll::EventFlags::empty();
                        let data = epoll::EventData::new_u64(0);
                        let mut events = [epoll::Event { flags: nothing, data }];
                        let heard = epoll::wait(&set, &mut events, Some(&seconds(LIMIT))).unwrap();
                        assert_eq!(heard, 1, "round {round}: a frame is there, and no edge");
                    }
                    assert_eq!(take(&mut to, usize::MAX), 1);
                }
                drop(asked);
            });
        }
    });
}

/// A program may put another port in the place of the watched port, by `DerefMut`.
#[test]
fn another_port_is_watched_in_its_place() {
    isolated("another_port_is_watched_in_its_place", |_| {
        for [from, to, other] in [["w{7", "w}7", "w}8"], ["vale0:pa", "vale0:pb", "vale0:pc"]] {
            let mut from = Port::open(from).unwrap();
            let mut watched = Port::open(other).unwrap().into_pollable().unwrap();
            assert!(!watched.prepare(Interest::Rx).unwrap() && !is_readable(&watched));
            *watched = Port::open(to).unwrap();
            // The daemon rings the doorbells of a port that it closes.
            let control = Control::connect().unwrap();
            while control.ports().unwrap().iter().any(|port| port.name == other) {}
            assert!(!watched.prepare(Interest::Rx).unwrap() && !is_readable(&watched));
            send(&mut from, 1);
            assert!(readable(&watched, LIMIT), "{to}: a frame was sent");
            assert!(watched.prepare(Interest::Rx).unwrap());
        }
    });
}

/// Two ports that change places: each descriptor tells of the port that it has, and of no other.
#[test]
fn ports_may_change_places() {
    isolated("ports_may_change_places", |_| {
        let mut peers = ["w{9", "w{10"].map(|name| Port::open(name).unwrap());
        let mut ports =
            ["w}9", "w}10"].map(|name| Port::open(name).unwrap().into_pollable().unwrap());
        ports.iter_mut().for_each(|port| assert!(!port.prepare(Interest::Rx).unwrap()));
        let [one, other] = &mut ports;
        std::mem::swap::<Port>(one, other);
        for port in [&mut *one, &mut *other] {
            assert!(!port.prepare(Interest::Rx).unwrap() && !is_readable(port));
        }
        send(&mut peers[0], 1);
        assert!(readable(&*other, LIMIT) && !is_readable(one), "it has the other port now");
        assert!(other.prepare(Interest::Rx).unwrap());
    });
}

/// A `prepare` that fails leaves the descriptor readable, and the next one tries it again.
#[test]
fn what_cannot_be_watched_is_not_forgotten() {
    isolated("what_cannot_be_watched_is_not_forgotten", |_| {
        let mut from = Port::open("w{11").unwrap();
        let mut to = Port::open("w}11").unwrap().into_pollable().unwrap();
        // A file may wake 100 sets that are so far away (path_limits, fs/eventpoll.c).
        let watch = |_| {
            let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            epoll::add(&set, &to, epoll::EventData::new_u64(0), epoll::EventFlags::IN).unwrap();
            set
        };
        let sets: Vec<OwnedFd> = (0..101).map(watch).collect();
        for _ in 0..2 {
            let error = to.prepare(Interest::Rx).unwrap_err();
            assert!(matches!(error, Error::System { .. }), "{error}");
            assert!(is_readable(&to), "an error is something to look at");
        }
        drop(sets);
        assert!(!to.prepare(Interest::Rx).unwrap() && !is_readable(&to));
        send(&mut from, 1);
        assert!(readable(&to, LIMIT), "a frame was sent");
    });
}

/// What can never come is not waited for.
#[test]
fn a_direction_without_rings_is_refused() {
    isolated("a_direction_without_rings_is_refused", |_| {
        let port = Port::options().tx_only().open("vale0:t").unwrap();
        let mut port = port.into_pollable().unwrap();
        assert!(port.prepare(Interest::Tx).unwrap());
        let error = port.prepare(Interest::Rx).unwrap_err();
        assert!(error.to_string().contains("no receive rings"), "{error}");
    });
}

/// The longest pause there is, which no clock can count.
#[test]
fn a_pause_may_have_any_length() {
    isolated("a_pause_may_have_any_length", |_| {
        let mut port = Port::open("vale0:p").unwrap().into_pollable().unwrap();
        port.shut();
        port.rest(Duration::MAX).unwrap();
        assert!(!is_readable(&port));
    });
}

/// A thread that knows nothing of the port watches a copy.
#[test]
fn another_thread_may_watch() {
    isolated("another_thread_may_watch", |_| {
        let mut from = Port::open("w{4").unwrap();
        let mut to = Port::open("w}4").unwrap().into_pollable().unwrap();
        let copy: OwnedFd = to.as_fd().try_clone_to_owned().unwrap();
        for _ in 0..100 {
            assert!(!to.prepare(Interest::Rx).unwrap());
            thread::scope(|scope| {
                let watcher = scope.spawn(|| readable(&copy, LIMIT));
                send(&mut from, 1);
                assert!(watcher.join().unwrap());
            });
            assert!(to.prepare(Interest::Rx).unwrap());
            take(&mut to, usize::MAX);
        }
    });
}

/// The end of the daemon is something to do.
#[test]
fn the_end_of_the_daemon_is_told() {
    isolated("the_end_of_the_daemon_is_told", |home| {
        let mut port = Port::open("vale0:wx").unwrap().into_pollable().unwrap();
        assert!(!port.prepare(Interest::Rx).unwrap() && !is_readable(&port));
        let daemon = home.daemon();
        kill_process(Pid::from_raw(daemon as i32).unwrap(), Signal::KILL).unwrap();
        assert!(ends(daemon, LIMIT));
        assert!(readable(&port, LIMIT));
        let error = port.prepare(Interest::Rx).unwrap_err();
        assert!(matches!(error, Error::Gone { .. }), "{error:?}");
        assert!(is_readable(&port), "it stays so");
        // The next daemon takes the dead one's place, and its socket along.
        drop(Port::open("vale0:wy").unwrap());
    });
}

/// Python's selectors and asyncio, on an inherited copy.
#[test]
fn python_waits_for_a_port() {
    const PROGRAM: &str = r#"
import asyncio, selectors, sys

port = int(sys.argv[1])
selector = selectors.DefaultSelector()
selector.register(port, selectors.EVENT_READ)

def say(what):
    print(what, flush=True)

say("idle" if not selector.select(0) else "readable")
say("readable" if selector.select(30) else "idle")
assert sys.stdin.readline() == "taken\n"
say("idle" if not selector.select(0) else "readable")

async def main():
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(port, came.set)
    await asyncio.wait_for(came.wait(), 30)
    say("readable")

asyncio.run(main())
"#;
    isolated("python_waits_for_a_port", |_| {
        let mut from = Port::open("w{5").unwrap();
        let mut to = Port::open("w}5").unwrap().into_pollable().unwrap();
        let copy = to.as_fd().try_clone_to_owned().unwrap();
        fcntl_setfd(&copy, FdFlags::empty()).unwrap();
        assert!(!to.prepare(Interest::Rx).unwrap());
        let mut python = Command::new("python3")
            .args(["-c", PROGRAM, &copy.as_raw_fd().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let mut said = BufReader::new(python.stdout.take().unwrap()).lines();
        let mut says = || said.next().expect("it has ended").unwrap();
        assert_eq!(says(), "idle");
        send(&mut from, 1);
        assert_eq!(says(), "readable");
        assert!(to.prepare(Interest::Rx).unwrap());
        take(&mut to, 1);
        assert!(!to.prepare(Interest::Rx).unwrap());
        python.stdin.take().unwrap().write_all(b"taken\n").unwrap();
        assert_eq!(says(), "idle");
        send(&mut from, 1);
        assert_eq!(says(), "readable");
        assert!(python.wait().unwrap().success());
    });
}

/// The example of the client's feature `async`, as a user builds it.
#[test]
fn the_tokio_example_runs() {
    isolated("the_tokio_example_runs", |home| {
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        let mut build = Command::new(cargo);
        // target/PROFILE/deps/TEST
        let program = std::env::current_exe().unwrap();
        let target =
            program.ancestors().nth(3).expect("tests lie three levels below it").to_owned();
        build.args(["build", "--quiet", "--profile", "quick", "-p", "ringway"]);
        build.args(["--features", "async", "--example", "async", "--target-dir"]).arg(&target);
        build.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("RUSTFLAGS");
        assert!(build.status().unwrap().success());
        for ports in [["vale0:asks", "vale0:answers"], ["w{6", "w}6"]] {
            let run = home.command(target.join("quick/examples/async")).args(ports).output();
            let output = run.unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{output:?}");
            assert!(said.contains("1000 questions were answered"), "{said}");
        }
    });
}
