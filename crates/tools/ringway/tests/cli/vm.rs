//! `ringway vm attach`: machines on a switch, by guests that are part of the test.

use crate::home::{Home, LIMIT, find, finish};
use crate::log::System;
use ringway_testkit::Proc;
use ringway_vhost::guest::{Guest, Setup};
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, recv,
    socket_with,
};
use rustix::process::Signal;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const HEADER: [u8; 12] = [0; 12];

/// A machine's port, and what it says.
struct Port {
    name: &'static str,
    socket: PathBuf,
    proc: Proc,
}

impl Port {
    fn open(home: &Home, name: &'static str) -> Port {
        let socket = home.dir.join(name);
        let path = socket.display().to_string();
        let proc = home.open(&["vm", "attach", "vale0", name, "--socket", &path]);
        Port { name, socket, proc }
    }

    /// A guest that has the port's card, and is up.
    fn boot(&self, setup: Setup) -> Guest {
        let before = self.times("up");
        let guest = Guest::over(setup, UnixStream::connect(&self.socket).unwrap()).unwrap();
        self.until("up", before + 1);
        guest
    }

    fn times(&self, state: &str) -> usize {
        self.proc.output().matches(&format!(r#""state":"{state}""#)).count()
    }

    fn until(&self, state: &str, times: usize) {
        let what = format!("{} is {state}", self.name);
        until(&what, || (self.times(state) >= times).then_some(()).ok_or(self.proc.output()));
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) if Instant::now() > deadline => panic!("{what}: not so far; {why}"),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// What a ring of a port has dropped by now: too short, too long, ring full.
fn ring_drops(home: &Home, port: &str, receives: bool) -> [u64; 3] {
    let rings = home.json(&["ports", "--rings"]);
    let ring = rings.iter().find(|ring| ring["port"] == port && ring["receives"] == receives);
    let ring = ring.unwrap_or_else(|| panic!("{rings:?}"));
    ["too_short", "too_long", "ring_full"].map(|reason| ring[reason].as_u64().unwrap())
}

/// A frame to everybody.
fn frame(number: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![number; len];
    frame[..6].fill(0xff);
    frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}

/// Sends frames until one of them arrives: what was sent before the other was there is lost.
fn until_arrives(from: &mut Guest, to: &mut Guest, number: u8, len: usize) {
    let sent = frame(number, len);
    until("a frame arrives", || {
        while to.offer_buffer(0, 2048) {}
        from.send(0, &[&HEADER, sent.as_slice()].concat(), 1000);
        from.reap(0);
        let arrived = std::iter::from_fn(|| to.receive(0)).any(|frame| frame[12..] == sent);
        arrived.then_some(()).ok_or("nothing".into())
    });
}

/// Each frame arrives, once and in order.
fn assert_arrive(from: &mut Guest, to: &mut Guest) {
    let lens = [60, 1514, 9000, 61, 300, 2036, 2048, 4096];
    let mut arrived = Vec::new();
    for (number, len) in (0..).zip(lens) {
        while to.offer_buffer(0, 2048) {}
        assert!(from.send(0, &[&HEADER, frame(number, len).as_slice()].concat(), 1000));
        until("a frame arrives", || {
            from.reap(0);
            // Not those that were sent again before.
            let new = std::iter::from_fn(|| to.receive(0))
                .filter(|frame| lens.contains(&(frame.len() - 12)));
            arrived.extend(new);
            while to.offer_buffer(0, 2048) {}
            let is_there = arrived.len() > usize::from(number);
            is_there.then_some(()).ok_or_else(|| format!("{} frames", arrived.len()))
        });
    }
    let sent = (0..).zip(lens).map(|(number, len)| frame(number, len));
    assert!(arrived.iter().map(|frame| frame[12..].to_vec()).eq(sent));
}

#[test]
fn machines_and_programs_on_a_switch() {
    let home = Home::new();
    let ports = ["one", "other"].map(|name| Port::open(&home, name));
    for port in home.json(&["ports"]) {
        assert_eq!(port["slots"], serde_json::json!([1024, 4096]), "{port}");
    }
    let packed = Setup { packed: true, events: true, indirect: true, ..Setup::default() };
    let mut one = ports[0].boot(Setup::default());
    let mut other = ports[1].boot(packed);
    assert_arrive(&mut one, &mut other);
    assert_arrive(&mut other, &mut one);
    // A program.
    let receiver = home.open(&["recv", "vale0:program", "--count", "1"]);
    while one.offer_buffer(0, 2048) {}
    assert!(one.send(0, &[&HEADER, frame(9, 60).as_slice()].concat(), 2048));
    assert_eq!(find(&finish(receiver), "summary")["packets"], 1);
    until("the other machine has it, too", || {
        while other.offer_buffer(0, 2048) {}
        other.receive(0).ok_or("nothing".into())
    });
    home.json(&["gen", "vale0:program", "--count", "40"]);
    let mut received = [0; 2];
    until("all have arrived", || {
        for (guest, received) in [&mut one, &mut other].into_iter().zip(&mut received) {
            while guest.offer_buffer(0, 2048) {}
            *received += std::iter::from_fn(|| guest.receive(0)).count();
        }
        (received == [40; 2]).then_some(()).ok_or(format!("{received:?}"))
    });
    // A machine is switched off and on again, with another system.
    drop(one);
    ports[0].until("disconnected", 1);
    let mut one = ports[0].boot(packed);
    assert_arrive(&mut one, &mut other);
    for Port { proc, socket, .. } in ports {
        proc.signal(Signal::INT);
        let said = finish(proc);
        let summaries: Vec<_> = said.iter().filter(|line| line["type"] == "summary").collect();
        assert!(summaries.len() == 2 && summaries.iter().all(|line| line["packets"] != 0));
        assert!(!socket.exists());
    }
    home.is_left_clean();
}

/// At the end each drop is told where it was, with its reason.
#[test]
fn drops_are_told_by_reason() {
    let home = Home::new();
    let port = Port::open(&home, "alone");
    let mut guest = port.boot(Setup::default());
    // Its monitor asks for a frame, too.
    guest.announce([2, 0, 0, 0, 0, 9]).unwrap();
    // No frame; and a frame for which there is no other port.
    for bytes in [&[1; 5][..], &frame(1, 60)] {
        assert!(guest.send(0, &[&HEADER, bytes].concat(), 1000));
    }
    let mut back = 0;
    until("both are taken", || {
        back += guest.reap(0);
        (back == 2).then_some(()).ok_or(format!("{back}"))
    });
    until("the port's ring has the drop", || {
        let dropped = ring_drops(&home, "vale0:alone", false);
        (dropped == [1, 0, 0]).then_some(()).ok_or(format!("{dropped:?}"))
    });
    port.proc.signal(Signal::INT);
    let said = finish(port.proc);
    let drops = |kind: &str, reason: &str| find(&said, kind)[reason].as_u64();
    assert_eq!(drops("drops", "no_destination"), Some(2));
    assert_eq!(drops("summary", "packets"), Some(2));
    assert_eq!(find(&said, "drops")["port"], "vale0:alone");
    // Once.
    assert_eq!((drops("drops", "too_short"), drops("summary", "drops")), (Some(0), Some(3)));
    assert_eq!(drops("machine_drops", "too_short"), Some(1));
    assert_eq!(drops("machine_drops", "no_buffers"), Some(0));
}

/// What a port's worker has put into its ring, and the machine has not got, is told at the end: what came before the
/// machine's driver was up, and what waited when the run ended. The first is among the drops of the port's ring meanwhile.
#[test]
fn frames_for_a_machine_that_is_away_are_told() {
    let home = Home::new();
    let port = Port::open(&home, "alone");
    let received = |frames: u64| {
        until("the frames are at the port", || {
            let stats = home.json(&["switch", "stats"]);
            let ours = stats.iter().find(|line| line["port"] == "vale0:alone");
            let count = ours.map(|line| line["received_packets"].as_u64());
            (count == Some(Some(frames))).then_some(()).ok_or(format!("{stats:?}"))
        });
    };
    home.json(&["gen", "vale0:program", "--count", "5"]);
    received(5);
    let mut guest = port.boot(Setup::default());
    while guest.offer_buffer(0, 2048) {}
    home.json(&["gen", "vale0:program", "--count", "3"]);
    let mut got = 0;
    until("the machine has what came later", || {
        got += std::iter::from_fn(|| guest.receive(0)).count();
        (got == 3).then_some(()).ok_or(format!("{got}"))
    });
    assert_eq!(ring_drops(&home, "vale0:alone", true), [0, 0, 5]);
    drop(guest);
    port.until("disconnected", 1);
    home.json(&["gen", "vale0:program", "--count", "4"]);
    received(12);
    port.proc.signal(Signal::INT);
    let said = finish(port.proc);
    assert_eq!(find(&said, "machine_drops")["not_taken"], 9);
    assert_eq!(find(&said, "drops")["ring_full"], 0);
    let summaries: Vec<_> = said.iter().filter(|line| line["type"] == "summary").collect();
    assert_eq!((&summaries[1]["packets"], &summaries[1]["drops"]), (&3.into(), &9.into()));
}

/// What a machine has sent before its monitor stops the queue, or goes, is sent on, whether or not it was looked at by then.
#[test]
fn what_was_sent_before_a_message_is_sent() {
    const FRAMES: u64 = 50;
    let home = Home::new();
    let port = Port::open(&home, "alone");
    for (round, stops) in [(1, true), (2, false)] {
        let mut guest = port.boot(Setup::default());
        port.proc.stop();
        for _ in 0..FRAMES {
            assert!(guest.send(0, &[&HEADER, frame(1, 60).as_slice()].concat(), 1000));
        }
        if stops {
            guest.stop(1).unwrap();
        }
        drop(guest);
        port.proc.signal(Signal::CONT);
        port.until("disconnected", round);
    }
    port.proc.signal(Signal::INT);
    let said = finish(port.proc);
    assert_eq!(find(&said, "summary")["packets"], 2 * FRAMES);
    assert_eq!(find(&said, "machine_drops")["not_taken"], 0);
}

/// The pid of a home's private daemon.
fn daemon(home: &Home) -> i32 {
    let dir = home.dir.display().to_string();
    let mut found = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        (line.contains("--private") && line.contains(&dir)).then_some(pid)
    });
    found.next().expect("there is a daemon")
}

/// A machine does not notice but by frames that are lost.
#[test]
fn a_port_outlives_its_daemon() {
    let home = Home::new();
    let ports = ["one", "other"].map(|name| Port::open(&home, name));
    // With headers in front of the port's frames, and without.
    let with = Setup { features: 0x1983, ..Setup::default() };
    let [mut one, mut other] =
        [(&ports[0], with), (&ports[1], Setup::default())].map(|(port, setup)| port.boot(setup));
    assert_arrive(&mut one, &mut other);
    for number in 1..3 {
        let pid = rustix::process::Pid::from_raw(daemon(&home)).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        until_arrives(&mut one, &mut other, number, 700);
        until_arrives(&mut other, &mut one, number, 700);
    }
    assert_arrive(&mut one, &mut other);
    assert_arrive(&mut other, &mut one);
    assert!(ports.iter().all(|port| port.times("disconnected") == 0));
    assert!(ports[0].proc.output().contains("is opened again"));
}

/// The monitor's next message is answered, with the machine's frames where they are.
fn assert_answered(guest: &Guest) {
    guest.socket().set_read_timeout(Some(LIMIT)).unwrap();
    guest.stop(1).unwrap();
    assert_eq!(guest.stopped_at().unwrap(), 0);
    guest.set_up(1, 0).unwrap();
}

/// A machine whose monitor waits for an answer stands still: it is answered while there is no daemon, and while the daemon
/// is stopped, and what has gone is let go.
#[test]
fn a_monitor_is_answered_without_a_daemon() {
    let system = System::new();
    let daemon = Proc::spawn(system.daemon(&[]));
    system.wait();
    let socket = system.home.dir.join("one");
    let streamed = system.home.dir.join("streamed");
    let open = |name: &str, kind: &str, path: &Path| {
        let path = path.display().to_string();
        let proc =
            Proc::spawn(system.command(&["vm", "attach", "vale0", name, kind, &path, "--json"]));
        proc.wait_for(r#""type":"open""#, LIMIT);
        proc
    };
    let proc = open("one", "--socket", &socket);
    let stream = open("streamed", "--stream", &streamed);
    let port = Port { name: "one", socket, proc };
    let machine = Streamed::connect(&streamed);
    stream.wait_for(r#""state":"up""#, LIMIT);
    // It would change the header of the port's frames.
    daemon.stop();
    let setup = Setup { features: 0x1983, ..Setup::default() };
    let guest = Guest::over(setup, UnixStream::connect(&port.socket).unwrap()).unwrap();
    assert_answered(&guest);
    assert_eq!(port.times("up"), 0, "its frames would have the wrong header");
    daemon.signal(Signal::CONT);
    port.until("up", 1);
    daemon.kill();
    for proc in [&port.proc, &stream] {
        proc.wait_for("ringwayd has ended", LIMIT);
    }
    assert_answered(&guest);
    drop((guest, machine));
    port.until("disconnected", 1);
    stream.wait_for(r#""state":"disconnected""#, LIMIT);
    let guest = Guest::over(setup, UnixStream::connect(&port.socket).unwrap()).unwrap();
    assert_answered(&guest);
    let daemon = Proc::spawn(system.daemon(&[]));
    port.until("up", 2);
    daemon.kill();
    // At the end there is no daemon either.
    for proc in [port.proc, stream] {
        proc.signal(Signal::TERM);
        finish(proc);
    }
}

/// Where a daemon has ended, and the next takes connections and answers nothing, as a stopped one does: monitors are answered,
/// the run can be ended, and when that daemon goes, the one after it has the port.
#[test]
fn a_daemon_that_is_stopped_holds_up_no_monitor() {
    let system = System::new();
    let open = |name: &'static str| {
        let socket = system.home.dir.join(name);
        let path = socket.display().to_string();
        let args = ["vm", "attach", "vale0", name, "--socket", &path, "--json"];
        let proc = Proc::spawn(system.command(&args));
        proc.wait_for(r#""type":"open""#, LIMIT);
        Port { name, socket, proc }
    };
    let daemon = Proc::spawn(system.daemon(&[]));
    system.wait();
    let (port, other) = (open("one"), open("other"));
    let [guest, _other] = [&port, &other].map(|port| port.boot(Setup::default()));
    daemon.kill();
    let _ = fs::remove_file(&system.socket);
    let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let stopped = socket_with(kind.0, kind.1, kind.2, None).unwrap();
    bind(&stopped, &SocketAddrUnix::new(&system.socket).unwrap()).unwrap();
    listen(&stopped, 8).unwrap();
    // Both have asked for their ports.
    let asked = [(); 2].map(|()| {
        let connection = accept(&stopped).unwrap();
        assert!(recv(&connection, &mut [0; 1][..], RecvFlags::PEEK).unwrap().0 > 0);
        connection
    });
    assert_answered(&guest);
    other.proc.signal(Signal::TERM);
    finish(other.proc);
    assert!(!other.socket.exists());
    fs::remove_file(&system.socket).unwrap();
    drop((stopped, asked));
    let _daemon = Proc::spawn(system.daemon(&[]));
    let opened = || port.proc.output().matches(r#""type":"open""#).count();
    until("the port is open again", || (opened() == 2).then_some(()).ok_or(port.proc.output()));
    port.proc.signal(Signal::TERM);
    finish(port.proc);
}

/// What has a guest's memory is confined, in all its threads. What is beside it has nothing of the guest's, and ends with it.
#[test]
fn the_process_that_has_a_guests_memory_is_confined() {
    let home = Home::new();
    let port = Port::open(&home, "one");
    let _guest = port.boot(Setup { features: 0x1983, ..Setup::default() });
    let pid = port.proc.pid();
    let is_confined = |status: &str| {
        let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
        let has_none = |set| status.contains(&format!("{set}:\t0000000000000000\n"));
        status.contains("Seccomp:\t2\n")
            && status.contains("NoNewPrivs:\t1\n")
            && sets.into_iter().all(has_none)
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    // A thread may have ended meanwhile.
    let found =
        tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    let statuses: Vec<_> = found.collect();
    assert!(!statuses.is_empty() && statuses.iter().all(|status| is_confined(status)));
    let maps = |pid: &str| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(maps(&pid.to_string()).contains("memfd:guest"));
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let children: Vec<_> = children.split_whitespace().map(str::to_owned).collect();
    assert_eq!(children.len(), 2);
    for child in &children {
        assert!(!maps(child).contains("memfd:"), "{child}");
    }
    let socket = port.socket.clone();
    port.proc.signal(Signal::TERM);
    finish(port.proc);
    assert!(!socket.exists());
    for child in children {
        let process = format!("/proc/{child}/stat");
        until("the process beside it has ended", || match fs::read_to_string(&process) {
            Ok(stat) if !stat.contains(") Z") => Err(stat),
            _ => Ok(()),
        });
    }
}

/// Killed at any moment, it leaves a file that is in nobody's way.
#[test]
fn a_port_that_was_killed_is_opened_again() {
    let home = Home::new();
    let witness = Port::open(&home, "witness");
    let mut other = witness.boot(Setup::default());
    for _ in 0..3 {
        let port = Port::open(&home, "one");
        let mut one = port.boot(Setup::default());
        until_arrives(&mut one, &mut other, 1, 60);
        port.proc.kill();
        assert!(port.socket.exists());
    }
    let path = home.dir.join("witness").display().to_string();
    let failure = home.failure(&["vm", "attach", "vale0", "two", "--socket", &path]);
    assert!(failure.contains("another process listens there"), "{failure}");
    let path = home.dir.join("two").display().to_string();
    let failure = home.failure(&["vm", "attach", "vale0", "witness", "--socket", &path]);
    assert!(failure.contains("vale0:witness"), "{failure}");
    assert!(!home.dir.join("two").exists(), "its socket goes with it");
    let failure = home.failure(&["vm", "attach", "eth0", "two", "--socket", &path]);
    assert!(failure.contains("not the name of a switch"), "{failure}");
}

/// A port has one monitor. Another is refused at once, by vhost-user and by a stream, and the user is told; when the first
/// has gone, the next is served.
#[test]
fn another_monitor_is_refused() {
    let home = Home::new();
    let port = Port::open(&home, "one");
    let witness = Port::open(&home, "witness");
    let path = home.dir.join("stream");
    let text = path.display().to_string();
    let stream = home.open(&["vm", "attach", "vale0", "streamed", "--stream", &text]);
    let mut machine = Streamed::connect(&path);
    stream.wait_for(r#""state":"up""#, LIMIT);
    let mut one = port.boot(Setup::default());
    let mut other = witness.boot(Setup::default());
    for (socket, proc) in [(&port.socket, &port.proc), (&path, &stream)] {
        for _ in 0..3 {
            let mut refused = UnixStream::connect(socket).unwrap();
            refused.set_read_timeout(Some(LIMIT)).unwrap();
            // Each is closed, whether or not it says something meanwhile.
            let _ = refused.write_all(&[0; 8]);
            let ended = refused.read(&mut [0; 16]);
            assert!(
                matches!(&ended, Ok(0))
                    || ended.as_ref().is_err_and(|e| e.kind() == ErrorKind::ConnectionReset),
                "{ended:?}"
            );
        }
        proc.wait_for("another monitor has tried to connect, and was refused", LIMIT);
        assert_eq!(proc.output().matches("another monitor").count(), 1, "it is told once");
    }
    assert_arrive(&mut one, &mut other);
    machine.send(&frame(7, 60));
    until("the stream's frame arrives", || {
        while other.offer_buffer(0, 2048) {}
        let is_it = |frame: Vec<u8>| frame[12..] == self::frame(7, 60);
        std::iter::from_fn(|| other.receive(0)).any(is_it).then_some(()).ok_or("nothing".into())
    });
    for _ in 0..4 {
        // As a machine that is started again: the port may not have noticed yet that the first has gone.
        drop(one);
        one = port.boot(Setup::default());
        assert_arrive(&mut one, &mut other);
    }
}

/// What connects and says nothing is in no monitor's way, however often, and is not taken for one; nor is the look of
/// another command for what is at the path.
#[test]
fn silent_connections_are_no_monitors() {
    let home = Home::new();
    let port = Port::open(&home, "one");
    let path = port.socket.display().to_string();
    let failure = home.failure(&["vm", "attach", "vale0", "two", "--socket", &path]);
    assert!(failure.contains("another process listens there"), "{failure}");
    let mut held = Vec::new();
    for i in 0..300 {
        let silent = UnixStream::connect(&port.socket).unwrap();
        if i % 100 == 0 {
            held.push(silent);
        }
    }
    let mut one = port.boot(Setup::default());
    let witness = Port::open(&home, "witness");
    let mut other = witness.boot(Setup::default());
    assert_arrive(&mut one, &mut other);
    assert_eq!((port.times("connected"), port.times("disconnected")), (1, 0));
    drop(held);
    // By a stream the machine need not say anything, but what has gone is not waited for.
    let path = home.dir.join("stream");
    let text = path.display().to_string();
    let stream = home.open(&["vm", "attach", "vale0", "streamed", "--stream", &text]);
    stream.signal(Signal::STOP);
    for _ in 0..100 {
        drop(UnixStream::connect(&path).unwrap());
    }
    let mut machine = Streamed::connect(&path);
    stream.signal(Signal::CONT);
    other.reap(0);
    let sent = frame(8, 60);
    until("a frame arrives", || {
        other.reap(0);
        other.send(0, &[&HEADER, sent.as_slice()].concat(), 1000);
        stream.output().contains(r#""state":"up""#).then_some(()).ok_or(stream.output())
    });
    assert!(other.send(0, &[&HEADER, sent.as_slice()].concat(), 1000));
    assert!(machine.receive() == sent);
    assert_eq!(stream.output().matches(r#""state":"connected""#).count(), 1);
}

/// Connections that have said something and gone are no monitors; those that say what none may are let go without a pause, and
/// not each is told.
#[test]
fn a_flood_of_connections_has_an_end() {
    const TIMES: usize = 300;
    let home = Home::new();
    let port = Port::open(&home, "one");
    let connect = |word: u8| {
        let mut socket = UnixStream::connect(&port.socket).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        socket.write_all(&[word; 12]).unwrap();
        socket
    };
    port.proc.stop();
    (0..TIMES).for_each(|_| drop(connect(1)));
    port.proc.signal(Signal::CONT);
    drop(port.boot(Setup::default()));
    port.until("disconnected", 1);
    assert_eq!(port.times("connected"), 1, "{}", port.proc.output());
    for _ in 0..TIMES {
        let ended = connect(7).read(&mut [0; 16]);
        let is_reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
        assert!(matches!(&ended, Ok(0)) || ended.as_ref().is_err_and(is_reset), "{ended:?}");
    }
    assert!(port.times("connected") < TIMES, "{}", port.proc.output());
    port.proc.signal(Signal::TERM);
    port.proc.wait_for(" times more", LIMIT);
}

/// A machine that spoils its queues, a monitor that says what none may, memory that is taken away: the
/// neighbours go on, and the user is told.
#[test]
fn hostile_machines_have_neighbours() {
    let home = Home::new();
    let ports = ["one", "other", "bad"].map(|name| Port::open(&home, name));
    let [mut one, mut other] = [0, 1].map(|i| ports[i].boot(Setup::default()));
    let bad = &ports[2];
    // A frame that comes behind the end of the queue.
    let guest = bad.boot(Setup::default());
    let (rings, _) = guest.rings(1);
    guest.write(rings + 16 * 64 + 2, &9000u16.to_le_bytes());
    guest.kick_at_once(1);
    bad.proc.wait_for("queue 1 is not used any more", LIMIT);
    assert_arrive(&mut one, &mut other);
    // Memory that goes.
    guest.resize(0).unwrap();
    // These fail where it was noticed meanwhile.
    let _ = guest.stop(1).and_then(|()| guest.set_up(1, 0));
    guest.kick_at_once(1);
    bad.proc.wait_for("the machine's memory was taken away", LIMIT);
    assert_arrive(&mut one, &mut other);
    drop(guest);
    bad.until("disconnected", 1);
    // No message at all.
    let mut socket = UnixStream::connect(&bad.socket).unwrap();
    socket.write_all(&[7; 64]).unwrap();
    bad.proc.wait_for("none of vhost-user's messages", LIMIT);
    bad.until("disconnected", 2);
    assert_arrive(&mut other, &mut one);
    let mut guest = bad.boot(Setup::default());
    until_arrives(&mut guest, &mut one, 5, 100);
}

/// A monitor that listens is connected to, also when it comes later.
#[test]
fn a_monitor_that_listens() {
    let home = Home::new();
    let path = home.dir.join("monitor");
    let text = path.display().to_string();
    let proc = home.open(&["vm", "attach", "vale0", "one", "--socket", &text, "--connect"]);
    proc.wait_for("monitor: No such file or directory (os error 2); it is tried again", LIMIT);
    for round in 1..3 {
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let (socket, _) = listener.accept().unwrap();
        fs::remove_file(&path).unwrap();
        drop(listener);
        let guest = Guest::over(Setup::default(), socket).unwrap();
        let ups = || proc.output().matches(r#""state":"up""#).count();
        until("it is up", || (ups() == round).then_some(()).ok_or(proc.output()));
        drop(guest);
    }
    proc.signal(Signal::TERM);
    let said = finish(proc);
    let features = &said.iter().find(|line| line["state"] == "up").unwrap()["features"];
    assert_eq!(features, "mergeable buffers");
    assert_eq!(find(&said, "open")["port"], "vale0:one");
}

/// A machine whose frames come by a stream.
struct Streamed(UnixStream);

impl Streamed {
    fn connect(path: &Path) -> Streamed {
        let socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        Streamed(socket)
    }

    fn send(&mut self, frame: &[u8]) {
        let length = (frame.len() as u32).to_be_bytes();
        self.0.write_all(&[&length, frame].concat()).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut frame).unwrap();
        frame
    }
}

/// Frames of all sizes pass between machines by streams and by vhost-user, also where a length comes in pieces.
/// While the monitor does not read, the port drops what does not fit.
#[test]
fn frames_by_a_stream() {
    let home = Home::new();
    let path = home.dir.join("stream");
    let text = path.display().to_string();
    let proc = home.open(&["vm", "attach", "vale0", "streamed", "--stream", &text]);
    let port = Port::open(&home, "other");
    let mut other = port.boot(Setup::default());
    let connect = || Streamed::connect(&path);
    let mut machine = connect();
    until("it is up", || {
        proc.output().contains(r#""state":"up""#).then_some(()).ok_or(proc.output())
    });
    for (number, len) in (0..).zip([60, 1514, 9000, 14, 40_000, 2048, 2049]) {
        let sent = frame(number, len);
        while other.offer_buffer(0, 2048) {}
        machine.send(&sent);
        let arrived = until("a frame arrives", || other.receive(0).ok_or("nothing".into()));
        assert!(arrived[12..] == sent, "{len} bytes");
        assert!(other.send(0, &[&HEADER, sent.as_slice()].concat(), 2000));
        assert!(machine.receive() == sent, "{len} bytes");
        other.reap(0);
    }
    // Byte by byte; two at once.
    let sent = frame(9, 100);
    let bytes = [&100u32.to_be_bytes()[..], &sent].concat();
    while other.offer_buffer(0, 2048) {}
    bytes.iter().for_each(|byte| machine.0.write_all(&[*byte]).unwrap());
    machine.0.write_all(&bytes.repeat(2)).unwrap();
    for _ in 0..3 {
        let arrived = until("a frame arrives", || other.receive(0).ok_or("nothing".into()));
        assert!(arrived[12..] == sent);
    }
    // What is not read is lost at the port, and what is read is whole.
    for number in 0..200 {
        let sent = frame(number, 9000);
        until("it is sent", || {
            other.reap(0);
            other
                .send(0, &[&HEADER, sent.as_slice()].concat(), 2000)
                .then_some(())
                .ok_or("full".into())
        });
    }
    let end = frame(255, 77);
    until("all is sent", || {
        other.reap(0);
        other.send(0, &[&HEADER, end.as_slice()].concat(), 2000).then_some(()).ok_or("full".into())
    });
    machine.0.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut length = [0; 4];
    let mut received = 0;
    while machine.0.read_exact(&mut length).is_ok() {
        let mut arrived = vec![0; u32::from_be_bytes(length) as usize];
        machine.0.read_exact(&mut arrived).unwrap();
        assert!(arrived == end || arrived == frame(arrived[20], 9000));
        received += 1;
    }
    assert!(received > 20, "{received}");
    // A frame that is too short, and a length that no frame has.
    machine.send(&[1; 13]);
    machine.0.write_all(&u32::MAX.to_be_bytes()).unwrap();
    proc.wait_for("a frame of 4294967295 bytes is announced", LIMIT);
    let mut machine = connect();
    while other.offer_buffer(0, 2048) {}
    machine.send(&sent);
    let arrived = until("a frame arrives", || other.receive(0).ok_or("nothing".into()));
    assert!(arrived[12..] == sent);
    drop(machine);
    proc.signal(Signal::INT);
    let said = finish(proc);
    assert_eq!(find(&said, "summary")["drops"], 1);
}

/// All that a machine has sent before its monitor went is sent on, or told.
#[test]
fn what_a_stream_has_sent_before_its_end_is_told() {
    const FRAMES: u64 = 20_000;
    let home = Home::new();
    let path = home.dir.join("stream");
    let text = path.display().to_string();
    let proc = home.open(&["vm", "attach", "vale0", "streamed", "--stream", &text]);
    let port = Port::open(&home, "other");
    let mut machine = Streamed::connect(&path);
    let sent = frame(1, 60);
    let bytes = [&60u32.to_be_bytes()[..], &sent].concat().repeat(FRAMES as usize);
    machine.0.write_all(&bytes).unwrap();
    drop(machine);
    proc.wait_for(r#""state":"disconnected""#, LIMIT);
    proc.signal(Signal::INT);
    let said = finish(proc);
    let count = |kind: &str, field: &str| find(&said, kind)[field].as_u64().unwrap();
    assert_eq!(count("summary", "packets") + count("machine_drops", "not_taken"), FRAMES);
    drop(port);
}

/// A port drops by its VLANs on both ways, and counts them together: the totals of the ways have them.
#[test]
fn drops_of_either_way_are_in_the_totals() {
    let home = Home::new();
    let path = home.dir.join("stream");
    let text = path.display().to_string();
    let proc = home.open(&["vm", "attach", "vale0", "streamed", "--stream", &text]);
    let port = Port::open(&home, "other");
    assert!(home.run(&["switch", "port", "vale0:streamed", "--access", "10"]).status.success());
    let mut machine = Streamed::connect(&path);
    let mut sent = frame(1, 60);
    sent[12..16].copy_from_slice(&[0x81, 0, 0, 20]);
    (0..10).for_each(|_| machine.send(&sent));
    drop(machine);
    proc.wait_for(r#""state":"disconnected""#, LIMIT);
    proc.signal(Signal::INT);
    let said = finish(proc);
    assert_eq!(find(&said, "drops")["vlan"], 10);
    let summaries: Vec<_> = said.iter().filter(|line| line["type"] == "summary").collect();
    let fields = |at: usize| ["packets", "drops", "drops_either_way"].map(|it| &summaries[at][it]);
    assert_eq!(fields(0), [10, 0, 10]);
    assert_eq!(fields(1), [0, 0, 10]);
    drop(port);
}

/// What a user of `vm attach` can do is what is said.
#[test]
fn what_cannot_be_had_says_what_can() {
    let home = Home::new();
    let port = Port::open(&home, "one");
    let other = home.dir.join("other").display().to_string();
    let said = home.failure(&["vm", "attach", "vale0", "one", "--socket", &other]);
    assert!(said.contains("vale0:one: in use by another program, and a machine"), "{said}");
    assert!(said.contains("name another port") && !said.contains("exclusive"), "{said}");
    let long = home.dir.join("s".repeat(108)).display().to_string();
    for connect in [&["--connect"][..], &[]] {
        let args = [&["vm", "attach", "vale0", "two", "--socket", &long], connect].concat();
        let said = home.failure(&args);
        assert!(said.contains("107 at most; name a shorter one"), "{said}");
    }
    drop(port);
}

/// A monitor that goes on saying what is refused does not fill a log.
#[test]
fn refused_messages_are_a_line_a_second() {
    const TIMES: usize = 3000;
    const REFUSED: u64 = 1;
    let home = Home::new();
    let port = Port::open(&home, "bad");
    let mut socket = UnixStream::connect(&port.socket).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    // A message of vhost-user: its number, version 1 and whether an answer is wanted, its length, what it says.
    let mut say = |number: u32, is_answered: bool, bytes: &[u8]| {
        let flags = 1 | u32::from(is_answered) << 3;
        let head = [number, flags, bytes.len() as u32].map(u32::to_le_bytes).concat();
        socket.write_all(&[&head, bytes].concat()).unwrap();
        // All that is asked for here has eight bytes.
        let mut answer = [0; 12 + 8];
        if is_answered || matches!(number, 1 | 15) {
            socket.read_exact(&mut answer).unwrap();
        }
        u64::from_le_bytes(answer[12..].try_into().unwrap())
    };
    // What the back end can do, and that it answers, is agreed upon.
    say(1, false, &[]);
    let can = say(15, false, &[]);
    say(16, false, &can.to_le_bytes());
    assert!((0..TIMES).all(|_| say(99, true, &[]) == REFUSED));
    drop(socket);
    let said = port.proc.wait_for(" times more", LIMIT);
    let lines = said.lines().filter(|line| line.contains("was refused")).count();
    assert!((2..TIMES / 10).contains(&lines), "{lines} lines: {said}");
}
