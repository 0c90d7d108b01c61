//! Programs of libpcap, PF_RING and USDPAA go on with the next daemon: they open their ports again by themselves, lose nothing
//! that had come before, and count on.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{collections::BTreeSet, ops::Range, path::Path, process::Command, time::Duration};

use ringway::{Control, Port};
use ringway_testkit::{Proc, skip_without_root};
use ringway_tests::{
    GROUP, Home,
    c::{Language::C11, Library, link},
    compile, ends, isolated_for, isolated_with_system, until,
    usdpaa::{build, config, with_files},
};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(60);
/// Longer than all goes on.
const HANGS: Duration = Duration::from_secs(300);
/// Frames for which a ring has room.
const FEW: u32 = 100;
/// More frames than it has slots.
const MANY: u32 = 6000;
/// The program's device, and the port at the other end.
const DEVICE: &str = "vale0:a";
const FAR: &str = "vale0:far";
/// Says what a library does.
const TOLD: &str = "ringwayd has ended";

/// A program, and how it receives.
#[derive(Clone, Copy, Debug)]
enum Case {
    Pcap(&'static str),
    PfRing(&'static str),
    /// Its arguments, and the line after which it is ready.
    Usdpaa(&'static str, &'static [&'static str], &'static str),
}

use Case::*;

const CASES: [Case; 12] = [
    Pcap("loop"),
    Pcap("dispatch"),
    Pcap("nonblock"),
    Pcap("next"),
    Pcap("select"),
    // A monitor of the far port.
    Pcap("listen"),
    PfRing("recv"),
    PfRing("loop"),
    PfRing("poll"),
    PfRing("select"),
    // Its threads poll all the time; they sleep.
    Usdpaa("usdpaa_hello", &["-n", "1"], "Hit Ctrl-C"),
    Usdpaa("usdpaa_reflector", &["-n", "-b", "0:0:1024", "0..0"], "Thread uid:0 alive"),
];

impl Case {
    fn is_usdpaa(self) -> bool {
        matches!(self, Usdpaa(..))
    }

    fn listens(self) -> bool {
        matches!(self, Pcap("listen"))
    }

    /// Whether the program waits until it can send what it has received.
    fn waits_to_send(self) -> bool {
        matches!(self, Pcap("next") | PfRing("recv" | "poll" | "select"))
    }

    fn device(self) -> &'static str {
        if self.listens() { FAR } else { DEVICE }
    }

    /// The name under which the daemon knows the program's port.
    fn port(self) -> &'static str {
        if self.listens() { "vale0:far/" } else { DEVICE }
    }

    fn command(self, home: &Home) -> Command {
        let own = |program: &Path| command(home, program);
        let mut command = match self {
            Pcap(how) => {
                home.install(&[("libringway_pcap.so", "ringway-pcap")]);
                let mut command = own(&link(home, "tests/c/going_on_pcap.c", C11, &["-lpcap"]));
                command.env("LD_PRELOAD", home.bin().join("libringway_pcap.so"));
                command.args([self.device(), how]);
                command
            }
            PfRing(how) => {
                home.install(&[("libpfring.so", "ringway-libpfring")]);
                let libraries = &["-lpfring", "-lpthread"];
                let mut command = own(&link(home, "tests/c/going_on_pfring.c", C11, libraries));
                command.args([DEVICE, how]);
                command
            }
            Usdpaa(program, args, _) => {
                let program = build(home, &format!("examples/c/{program}.c"), &[]);
                let ports = format!("fm0-10g0={DEVICE}");
                let mut command =
                    with_files(own(&program), &ports, &config(home, &["fm0 10G 0 5"]));
                command.args(args);
                command
            }
        };
        command.env("RINGWAY_VERBOSE", "1");
        command
    }

    fn start(self, home: &Home) -> Proc {
        self.start_patient(home, None)
    }

    /// The same, with so many seconds of patience.
    fn start_patient(self, home: &Home, patience: Option<&str>) -> Proc {
        let mut command = self.command(home);
        patience.map(|seconds| command.env("RINGWAY_PATIENCE", seconds));
        let program = Proc::spawn(command);
        let ready = if let Usdpaa(.., ready) = self { ready } else { "ready" };
        program.wait_for(ready, LIMIT);
        program
    }

    /// Ends it by a signal, which ends its wait; what it has printed.
    fn end(self, program: Proc) -> String {
        program.signal(if self.is_usdpaa() { Signal::INT } else { Signal::TERM });
        assert!(ends(program.pid(), LIMIT), "{self:?} does not end: {}", program.output());
        let (status, said) = program.wait();
        let bad: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with("not ok") || line.starts_with("wrong"))
            .collect();
        assert!(status.success() && bad.is_empty(), "{self:?}: {status} {bad:?}");
        said
    }
}

/// A command that has this process's daemon.
fn command(home: &Home, program: &Path) -> Command {
    match std::env::var_os("RINGWAY_SOCKET") {
        Some(_) => home.system_command(program),
        None => home.command(program),
    }
}

/// A frame of a flow, with a number; or another, which the programs' filter leaves out.
fn frame(number: u32, is_udp: bool) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let protocol = if is_udp { 17 } else { 1 };
    frame.extend([0x45, 0, 0, 46, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 1, 0, 2]);
    frame.extend([3, 232, 0, 7, 0, 26, 0, 0]);
    frame.extend(number.to_le_bytes());
    frame.resize(60, 0);
    frame
}

/// The other end.
struct Far {
    port: Port,
    next: u32,
    back: BTreeSet<u32>,
}

impl Far {
    fn new() -> Far {
        // Much comes back at once.
        let port = Port::options().rx_slots(4096).open(FAR).unwrap();
        Far { port, next: 0, back: BTreeSet::new() }
    }

    /// Sends so many frames that follow each other, and waits until the switch has them.
    fn send(&mut self, count: u32) -> Range<u32> {
        let numbers = self.next..self.next + count;
        self.next = numbers.end;
        for number in numbers.clone() {
            let frame = frame(number, true);
            while !self.port.tx(0).push(&frame) {
                assert!(self.port.wait_tx(Some(LIMIT)).unwrap(), "no room");
            }
        }
        self.port.tx(0).sync();
        numbers
    }

    fn look(&mut self) {
        self.port.poll(ringway::Interest::Rx);
        for frame in self.port.rx(0).batch(usize::MAX) {
            let frame = frame.to_vec();
            assert_eq!(frame[..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], "it comes back");
            self.back.insert(u32::from_le_bytes(frame[42..46].try_into().unwrap()));
        }
    }

    /// Sends frames, which the program gets, and sends back; and another, which it does not want.
    fn exchange(&mut self, case: Case, program: &Proc) {
        if !case.is_usdpaa() {
            assert!(self.port.tx(0).push(&frame(u32::MAX, false)));
        }
        let sent = self.send(50);
        until("frames are received and sent", || {
            self.look();
            let (got, said) = (got(case, program), program.output());
            let is_back = case.listens() || sent.clone().all(|number| self.back.contains(&number));
            let is_there = got.is_none_or(|got| sent.clone().all(|number| got.contains(&number)));
            match is_back && is_there {
                true => Ok(()),
                false => Err(format!("{case:?}: {sent:?} of {:?}: {said}", self.back.last())),
            }
        });
    }

    /// Sends so many to a program that is stopped, and waits until they are in its ring, or lost there; how many are in it.
    fn fill(&mut self, case: Case, program: &Proc, count: u32) -> (Range<u32>, u64) {
        program.stop();
        self.fill_ring(case, count)
    }

    fn fill_ring(&mut self, case: Case, count: u32) -> (Range<u32>, u64) {
        let control = Control::connect_running().unwrap();
        let before = arrived(&control, case);
        let sent = self.send(count);
        until("the frames are in the ring", || {
            let [held, lost] = arrived(&control, case);
            let (held, lost) = (held - before[0], lost - before[1]);
            match held + lost == u64::from(count) {
                true => Ok((sent.clone(), held)),
                false => Err(format!("{case:?}: {held} and {lost} of {count}")),
            }
        })
    }

    /// Waits until the program has received so many of these.
    fn see(&mut self, case: Case, program: &Proc, sent: &Range<u32>, held: u64) {
        until("what had come is received", || {
            self.look();
            match got(case, program) {
                Some(got) if (got.range(sent.clone()).count() as u64) < held => {
                    Err(format!("{case:?}: {held} of {sent:?}: {}", program.output()))
                }
                _ => Ok(()),
            }
        });
    }
}

/// Frames that have come to the program's ring, and those that had no room there.
fn arrived(control: &Control, case: Case) -> [u64; 2] {
    let ports = control.ports().unwrap();
    let port = ports.iter().find(|port| port.name.starts_with(case.port()));
    let rings = control.rings(port.expect("the program has it open")).unwrap();
    let rings = rings.iter().filter(|ring| ring.receives);
    let arrived = rings.clone().map(|ring| ring.packets + u64::from(ring.fill));
    let lost = rings.map(|ring| ring.ring_full);
    let switches = control.switches().unwrap();
    let ports = switches.iter().flat_map(|switch| &switch.ports);
    let on_switch = ports.filter(|port| port.name == case.port());
    [arrived.sum(), lost.chain(on_switch.map(|port| port.totals.drops.ring_full)).sum()]
}

/// The numbers that a program has printed, if it prints any.
fn got(case: Case, program: &Proc) -> Option<BTreeSet<u32>> {
    let said = program.output();
    let numbers = said.lines().filter_map(|line| line.strip_prefix("got ")?.parse().ok());
    (!case.is_usdpaa()).then(|| numbers.collect())
}

/// Which daemon it is.
struct Daemon<'a> {
    home: &'a Home,
    system: Option<Proc>,
}

impl Daemon<'_> {
    fn start(home: &Home, is_system: bool) -> Daemon<'_> {
        let system = is_system.then(|| home.system_daemon(GROUP, 0o660));
        Daemon { home, system }
    }

    fn kill(&mut self, signal: Signal) {
        let pid = self.system.as_ref().map_or_else(|| self.home.daemon(), Proc::pid);
        kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
        assert!(ends(pid, LIMIT), "{signal:?} does not end the daemon");
    }

    /// The next one; the first client starts a private daemon.
    fn next(&mut self) {
        if let Some(before) = self.system.take() {
            before.wait();
            self.system = Some(self.home.system_daemon(GROUP, 0o660));
        }
    }
}

fn is_open(case: Case) {
    until("the program has opened its port again", || {
        let ports = Control::connect().unwrap().ports().unwrap();
        let is_its = |name: &str| name.starts_with(case.port());
        match ports.iter().any(|port| is_its(&port.name) && port.users > 0) {
            true => Ok(()),
            false => Err(format!("{case:?}: {ports:?}")),
        }
    });
}

/// The two numbers that a program prints of its packets: received, and lost.
fn counted(case: Case, said: &str) -> [u64; 2] {
    let words = |line: &str| -> Vec<u64> {
        line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
    };
    let prefix = if case.is_usdpaa() { "interface 0: " } else { "stats " };
    let line = said.lines().find_map(|line| line.strip_prefix(prefix));
    let numbers = words(line.unwrap_or_else(|| panic!("{case:?}: no counters: {said}")));
    [numbers[0], numbers[1]]
}

/// A daemon ends while the program has packets that it has not read, while it has none, and while its ring is too small.
/// The program ends before another daemon follows the last.
fn goes_on(home: &Home, case: Case, is_system: bool) {
    println!("{case:?}");
    let mut daemon = Daemon::start(home, is_system);
    let mut far = Far::new();
    let program = case.start(home);
    far.exchange(case, &program);
    let more = if case.is_usdpaa() { 300 } else { MANY };
    for (unread, signal) in [(FEW, Signal::KILL), (0, Signal::TERM), (more, Signal::KILL)] {
        let (sent, held) = far.fill(case, &program, unread);
        daemon.kill(signal);
        program.signal(Signal::CONT);
        // Though there is no daemon yet, unless the program waits to send what it has received.
        if !case.waits_to_send() {
            far.see(case, &program, &sent, held);
        }
        daemon.next();
        far.port = far.port.reopen(LIMIT).unwrap();
        is_open(case);
        far.see(case, &program, &sent, held);
        far.exchange(case, &program);
    }
    daemon.kill(Signal::KILL);
    let known = program.output().matches(TOLD).count();
    until("the program is without a daemon", || {
        let said = program.output();
        // A private daemon is there again at once.
        match said.matches(TOLD).count() > 3 {
            true => Ok(()),
            false => Err(format!("{case:?}: {known} times: {said}")),
        }
    });
    let said = case.end(program);
    assert!(!said.contains("failed"), "{case:?}: {said}");
    if let Usdpaa("usdpaa_reflector", ..) = case {
        return;
    }
    let [received, lost] = counted(case, &said);
    match case {
        Usdpaa(..) => assert_eq!(received, u64::from(far.next), "{case:?}: {said}"),
        // What came back to the far port is watched, too.
        Pcap("listen") => assert!(lost > 0 && received + lost == u64::from(far.next), "{said}"),
        _ => assert!(lost > 0 && received + lost == u64::from(far.next), "{case:?}: {lost}"),
    }
}

#[test]
fn programs_go_on_with_the_next_system_daemon() {
    if skip_without_root("programs_go_on_with_the_next_system_daemon") {
        return;
    }
    isolated_with_system("programs_go_on_with_the_next_system_daemon", HANGS, |home| {
        CASES.into_iter().for_each(|case| goes_on(home, case, true));
    });
}

#[test]
fn programs_go_on_with_the_next_private_daemon() {
    isolated_for("programs_go_on_with_the_next_private_daemon", HANGS, |home| {
        CASES.into_iter().for_each(|case| goes_on(home, case, false));
        // The last one was killed: another removes what that has left.
        drop(Port::open(FAR).unwrap());
    });
}

/// Without patience a program is told at once, with what to do about it.
#[test]
fn impatient_programs_are_told() {
    if skip_without_root("impatient_programs_are_told") {
        return;
    }
    isolated_with_system("impatient_programs_are_told", HANGS, |home| {
        for case in CASES {
            let mut daemon = Daemon::start(home, true);
            let mut far = Far::new();
            let program = case.start_patient(home, Some("0"));
            far.exchange(case, &program);
            daemon.kill(Signal::KILL);
            let told = match case {
                Usdpaa(..) => "usdpaa: fm0-10g0: cannot reach ringwayd",
                Pcap(_) => "failed vale0:",
                PfRing(_) => "failed -",
            };
            program.wait_for(told, LIMIT);
            let said = match case {
                Usdpaa(..) => case.end(program),
                _ => {
                    let (status, said) = program.wait();
                    assert!(status.success(), "{case:?}: {said}");
                    assert_eq!(counted(case, &said), [50, 0], "{case:?}: {said}");
                    said
                }
            };
            assert!(said.contains("start ringwayd") || said.contains("start it again"), "{said}");
        }
    });
}

/// The members of a cluster find each other again, and share what one of them had not shared out yet.
#[test]
fn members_of_a_cluster_go_on() {
    if skip_without_root("members_of_a_cluster_go_on") {
        return;
    }
    isolated_with_system("members_of_a_cluster_go_on", HANGS, |home| {
        home.install(&[("libpfring.so", "ringway-libpfring")]);
        let libraries = &["-lpfring", "-lpthread"];
        let program = link(home, "tests/c/pfring_cluster.c", C11, libraries);
        let mut daemon = Daemon::start(home, true);
        let mut far = Far::new();
        let members: Vec<Proc> = (0..2)
            .map(|_| {
                let mut member = command(home, &program);
                // By packets in turn: each has half of them.
                member.args([DEVICE, "7", "1", "64"]).env("RINGWAY_VERBOSE", "1");
                let member = Proc::spawn(member);
                member.wait_for("ready", LIMIT);
                member
            })
            .collect();
        let see = |sent: Range<u32>| {
            until("members have all packets", || {
                let said = members.iter().map(Proc::output).collect::<String>();
                let is_there = |number: &u32| {
                    let digits = number.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
                    said.lines().any(|line| line.get(4 + 84..4 + 92) == Some(&digits))
                };
                match sent.clone().find(|number| !is_there(number)) {
                    None => Ok(()),
                    Some(missing) => Err(format!("{missing} of {sent:?}: {said}")),
                }
            });
        };
        see(far.send(60));
        for _ in 0..2 {
            members.iter().for_each(Proc::stop);
            let (sent, _) = far.fill_ring(Pcap("loop"), 60);
            daemon.kill(Signal::KILL);
            members.iter().for_each(|member| member.signal(Signal::CONT));
            see(sent);
            daemon.next();
            far.port = far.port.reopen(LIMIT).unwrap();
            is_open(Pcap("loop"));
            until("the members have pipes", || {
                let ports = Control::connect().unwrap().ports().unwrap();
                match ports.iter().filter(|port| port.name.starts_with("pf_ring_")).count() {
                    4 => Ok(()),
                    count => Err(format!("{count} ends of pipes")),
                }
            });
            see(far.send(60));
        }
        let mut received = 0;
        for member in members {
            member.signal(Signal::USR1);
            let said = member.wait_for("stats ", LIMIT);
            let [got, lost] = counted(Pcap("loop"), &said);
            assert_eq!(lost, 0, "{said}");
            received += got;
            member.signal(Signal::TERM);
            let (status, said) = member.wait();
            assert!(status.success(), "{said}");
        }
        assert_eq!(received, u64::from(far.next));
    });
}

/// What programs do whose rings are not opened behind their backs: they are told at once, have what was in their rings, and
/// open their ports again themselves.
fn assert_told(test: &str, source: &str, hows: &[&[&str]]) {
    if skip_without_root(test) {
        return;
    }
    isolated_with_system(test, HANGS, |home| {
        for library in [Library::Preloaded, Library::Linked] {
            let program = compile(home, source, C11, library);
            for how in hows {
                let mut daemon = Daemon::start(home, true);
                let mut far = Far::new();
                let mut command = command(home, &program);
                command.arg(DEVICE).args(*how);
                if library == Library::Preloaded {
                    command.env("LD_PRELOAD", home.library());
                }
                let program = Proc::spawn(command);
                program.wait_for("ready", LIMIT);
                let case = Pcap("loop");
                let sent = far.send(50);
                far.see(case, &program, &sent, 50);
                let (sent, held) = far.fill(case, &program, FEW);
                assert_eq!(held, u64::from(FEW));
                daemon.kill(Signal::KILL);
                program.signal(Signal::CONT);
                far.see(case, &program, &sent, held);
                program.wait_for("ended", LIMIT);
                daemon.next();
                program.signal(Signal::USR1);
                program.wait_for("again", LIMIT);
                far.port = far.port.reopen(LIMIT).unwrap();
                let sent = far.send(1);
                far.see(case, &program, &sent, 1);
                assert!(ends(program.pid(), LIMIT));
                let (status, said) = program.wait();
                assert!(status.success() && !said.contains("not ok"), "{how:?}: {said}");
            }
        }
    });
}

#[test]
fn netmap_programs_are_told() {
    let test = "netmap_programs_are_told";
    assert_told(test, "tests/c/going_on_netmap.c", &[&["poll"], &["sync"]]);
}

#[test]
fn tpacket4_programs_are_told() {
    assert_told("tpacket4_programs_are_told", "tests/c/going_on_tpacket4.c", &[&[]]);
}
