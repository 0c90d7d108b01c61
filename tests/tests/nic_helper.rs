//! The parts of a system daemon: a broker that may do nothing to interfaces, and a helper that may, sees no
//! client, and can be killed at any moment.

use std::{
    collections::BTreeMap, fs, io::Write, os::unix::net::UnixDatagram, path::Path,
    process::Command, thread, time::Duration,
};

use ringway::{Control, Error, Port, PortShape};
use ringway_testkit::{Netns, NicState, Proc, Snapshot, VethPair, skip_without_root};
use ringway_tests::{
    GROUP, Home, OnDrop, Pair, Random, as_nobody, ends, inside, isolated_with_system,
    one_at_a_time,
    resources::{descriptors, resources},
    started_by, until,
};
use rustix::{
    fs::{CWD, Mode, mkfifoat},
    process::{Pid, Signal, kill_process},
};

const LIMIT: Duration = Duration::from_secs(30);
/// Longer than all rounds take.
const HANGS: Duration = Duration::from_secs(600);
const KILLS: u32 = 20;
/// The random moment after a request has begun: any up to this, in nanoseconds.
const AT_START: u64 = 60_000_000;

/// Processes whose parent is `parent`, by their names.
fn children(parent: u32) -> BTreeMap<String, u32> {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let list = list.unwrap_or_default();
    let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    pids.filter_map(|pid| Some((name(pid)?.trim_end().to_owned(), pid))).collect()
}

fn launcher(daemon: &Proc) -> u32 {
    until("there is a launcher", || {
        let children = children(daemon.pid());
        children.get("ringwayd-launch").copied().ok_or(format!("{children:?}"))
    })
}

/// What sets interfaces up, and what is asked about them meanwhile.
const HELPERS: [&str; 2] = ["ringwayd-nic", "ringwayd-quick"];

fn helper(launcher: u32) -> u32 {
    helper_of(launcher, HELPERS[0])
}

fn helper_of(launcher: u32, name: &str) -> u32 {
    until("there is a helper", || {
        let children = children(launcher);
        children.get(name).copied().ok_or(format!("{children:?}"))
    })
}

struct World {
    here: Netns,
    there: Netns,
    _cable: VethPair,
}

impl World {
    fn new() -> World {
        let (here, there) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let cable = here.veth_queues(&there, "h0", "h1", 2);
        World { here, there, _cable: cable }
    }

    fn daemon(&self, home: &Home) -> Proc {
        let users = "nic_users = ['65534']\n";
        home.system_daemon_with(GROUP, 0o660, users, |daemon| inside(&self.here, daemon))
    }
}

/// The fields of a thread's `status` that tell what it may do.
fn privileges(status: &str) -> BTreeMap<&str, &str> {
    let fields = status.lines().filter_map(|line| line.split_once(":\t"));
    fields
        .filter(|(name, _)| name.starts_with("Cap") || *name == "Seccomp" || *name == "NoNewPrivs")
        .collect()
}

#[test]
fn the_broker_has_no_privileges_and_the_helper_no_client() {
    const NAME: &str = "the_broker_has_no_privileges_and_the_helper_no_client";
    if skip_without_root(NAME) {
        return;
    }
    let _turn = one_at_a_time();
    isolated_with_system(NAME, HANGS, |home| {
        let before = Snapshot::take();
        let world = World::new();
        let daemon = world.daemon(home);
        // All kinds of threads: workers of switches, what watches the helper, what rings doorbells.
        let control = Control::connect().unwrap();
        world.here.enter(|| control.interface_new("p0", PortShape::default())).unwrap();
        world.here.enter(|| control.switch_attach("valeh", "p0", true)).unwrap();
        let mine = world.here.enter(|| Port::open("netmap:h0-0")).unwrap();
        let hold = home.system_traffic(&["hold", "netmap:h0-1"]);
        let theirs = Proc::spawn(inside(&world.here, as_nobody(hold)));
        theirs.wait_for("open", LIMIT);

        let none = "0000000000000000";
        let threads = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap().flatten();
        let mut seen = 0;
        for thread in threads {
            let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
            let may = privileges(&status);
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                assert_eq!(may[set], none, "{status}");
            }
            assert_eq!((may["Seccomp"], may["NoNewPrivs"]), ("2", "1"), "{status}");
            seen += 1;
        }
        assert!(seen >= 3, "{seen} threads");

        let launcher = launcher(&daemon);
        let helpers = HELPERS.map(|name| helper_of(launcher, name));
        for helper in helpers {
            let status = fs::read_to_string(format!("/proc/{helper}/status")).unwrap();
            let may = privileges(&status);
            // NET_ADMIN, NET_RAW, IPC_LOCK, SYS_ADMIN, BPF.
            assert_eq!(may["CapPrm"], "0000008000207000", "{status}");
            assert_eq!((may["Seccomp"], may["NoNewPrivs"]), ("2", "1"), "{status}");
            // Of what it has set up it keeps nothing. It has no socket but the one that leads to the broker, twice, since a
            // thread hangs that up when the broker has ended; and the descriptor by which this is told.
            let has = descriptors(helper);
            assert_eq!(has.get("socket"), Some(&2), "{has:?}");
            let kept =
                ["anon_inode", "/memfd", "net"].map(|kind| has.get(kind).copied().unwrap_or(0));
            assert_eq!(kept, [1, 0, 0], "{has:?}");
        }
        assert_eq!(descriptors(launcher).get("socket"), Some(&1));
        let status = fs::read_to_string(format!("/proc/{launcher}/status")).unwrap();
        let may = privileges(&status);
        assert_eq!((may["Seccomp"], may["NoNewPrivs"]), ("2", "1"), "{status}");

        drop((mine, theirs));
        world.here.enter(|| control.switch_detach("valeh", "p0")).unwrap();
        world.here.enter(|| control.interface_delete("p0")).unwrap();
        drop(control);
        daemon.signal(Signal::TERM);
        let (status, said) = daemon.wait();
        assert!(status.success(), "{said}");
        assert!(helpers.iter().all(|&helper| ends(helper, LIMIT)) && ends(launcher, LIMIT));
        drop(world);
        before.assert_clean();
    });
}

/// Requests of a daemon that have a thread of their own now.
fn at_work(daemon: &Proc) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "set-up").count()
}

/// While interfaces are set up for one program, others ask about theirs; and what is about no interface needs
/// no helper at all, wherever it comes from, also while an interface is looked up.
#[test]
fn nobody_waits_for_the_helper_but_for_interfaces() {
    const NAME: &str = "nobody_waits_for_the_helper_but_for_interfaces";
    if skip_without_root(NAME) {
        return;
    }
    let _turn = one_at_a_time();
    isolated_with_system(NAME, HANGS, |home| {
        let before = Snapshot::take();
        let world = World::new();
        let daemon = world.daemon(home);
        let launcher = launcher(&daemon);
        let control = Control::connect().unwrap();
        let helpers = HELPERS.map(|name| Pid::from_raw(helper_of(launcher, name) as i32).unwrap());
        let signal = |helper, what| kill_process(helper, what).unwrap();
        let ask = || {
            let port = Port::open("valeh:p").unwrap();
            assert_eq!(control.switches().unwrap().len(), 1);
            drop(port);
            assert_eq!(control.switches().unwrap().len(), 0);
            let ends = ["netmap:p{1", "netmap:p}1"].map(|end| Port::open(end).unwrap());
            assert_eq!(control.ports().unwrap().len(), 2);
            drop(ends);
            assert_eq!(control.ports().unwrap().len(), 0);
        };
        thread::scope(|scope| {
            let _go_on = OnDrop(|| helpers.iter().for_each(|&helper| signal(helper, Signal::CONT)));
            signal(helpers[0], Signal::STOP);
            let opens = scope.spawn(|| world.here.enter(|| Port::open("netmap:h0").map(drop)));
            ask();
            // This thread is in another network namespace than the daemon, which asks a helper for it.
            let error = Port::open("netmap:rwnosuch").unwrap_err().to_string();
            assert!(error.contains("no such network interface"), "{error}");
            signal(helpers[1], Signal::STOP);
            // There is one of that name, so the daemon asks where this thread is.
            let looks = scope.spawn(|| Port::open("netmap:lo").map(drop));
            // Three threads set the interface up, and one looks.
            until("both are at work", || match at_work(&daemon) {
                4 => Ok(()),
                n => Err(format!("{n} threads")),
            });
            ask();
            assert!(!opens.is_finished() && !looks.is_finished());
            helpers.iter().for_each(|&helper| signal(helper, Signal::CONT));
            opens.join().unwrap().unwrap();
            let _ = looks.join().unwrap();
        });
        drop(control);
        daemon.signal(Signal::TERM);
        let (status, said) = daemon.wait();
        assert!(status.success(), "{said}");
        drop(world);
        before.assert_clean();
    });
}

/// What is opened while the helper dies.
const PORTS: [&str; 7] = [
    "netmap:h0",
    "netmap:h0@mode=generic",
    "netmap:h0@mode=packet",
    "netmap:h0*",
    "netmap:h0^",
    "netmap:h0@filter=udp",
    "netmap:h0-1@filter=ip and tcp@sample=2",
];

/// One of those requests in turn, and what undoes it.
fn ask(world: &World, round: u32) -> Result<(), Error> {
    let kinds = PORTS.len() as u32 + 2;
    world.here.enter(|| -> Result<(), Error> {
        match PORTS.get((round % kinds) as usize) {
            Some(spec) => Port::open(spec).map(drop),
            None if round % kinds == kinds - 1 => {
                let control = Control::connect()?;
                control.switch_attach("valeh", "h0", true)?;
                control.switch_detach("valeh", "h0")
            }
            None => {
                let control = Control::connect()?;
                control.interface_new("p1", PortShape::default())?;
                control.interface_delete("p1")
            }
        }
    })
}

#[test]
fn a_killed_helper_costs_what_it_was_doing() {
    const NAME: &str = "a_killed_helper_costs_what_it_was_doing";
    if skip_without_root(NAME) {
        return;
    }
    let _turn = one_at_a_time();
    isolated_with_system(NAME, HANGS, |home| {
        let mut random = Random::seeded();
        let before = Snapshot::take();
        let world = World::new();
        let untouched = NicState::take(&world.here, "h0");
        let daemon = world.daemon(home);
        let launcher = launcher(&daemon);
        let control = Control::connect().unwrap();
        // Whatever is opened once is open from here on.
        (0..PORTS.len() as u32 + 2).for_each(|round| ask(&world, round).unwrap());
        let baseline = resources(daemon.pid(), &control);
        let mut failed = 0;
        for round in 0..KILLS {
            let victim = helper(launcher);
            let moment = Duration::from_nanos(random.below(AT_START));
            let result = thread::scope(|scope| {
                let asked = scope.spawn(|| ask(&world, round));
                thread::sleep(moment);
                kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL).unwrap();
                asked.join().unwrap()
            });
            if let Err(error) = result {
                let text = error.to_string();
                assert!(
                    text.contains("sets interfaces up") && text.contains("try again"),
                    "{text}"
                );
                failed += 1;
            }
            assert!(ends(victim, LIMIT));
            // One that has ended is in its parent's list a moment longer.
            until("there is another helper", || match helper(launcher) {
                other if other != victim => Ok(()),
                _ => Err(format!("only {victim}")),
            });
            // The next request is served, by another helper: at once, or when the kernel has cleared away
            // what the first had begun.
            until("the next request is served", || {
                ask(&world, round).map_err(|error| format!("round {round}: {error}"))
            });
            until(&format!("all is as before: {baseline}"), || {
                match resources(daemon.pid(), &control) {
                    now if now == baseline => Ok(()),
                    now => Err(format!("round {round}: {now}")),
                }
            });
            untouched.assert_restored(&world.here);
        }
        println!("{failed} of {KILLS} requests failed");
        // What is open goes on without the helper, and is closed by the next one.
        let _end = OnDrop(|| daemon.signal(Signal::KILL));
        let port = world.here.enter(|| Port::open("netmap:h0*")).unwrap();
        let victim = helper(launcher);
        kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL).unwrap();
        assert!(ends(victim, LIMIT));
        drop(port);
        until(&format!("all is as before: {baseline}"), || {
            match resources(daemon.pid(), &control) {
                now if now == baseline => Ok(()),
                now => Err(now),
            }
        });
        untouched.assert_restored(&world.here);
        drop(control);
        daemon.signal(Signal::TERM);
        drop(world);
        before.assert_clean();
    });
}

/// The launcher cannot be had again: it was forked while the daemon had the capabilities.
#[test]
fn without_helper_and_launcher_the_daemon_says_so_and_the_rest_goes_on() {
    const NAME: &str = "without_helper_and_launcher_the_daemon_says_so_and_the_rest_goes_on";
    if skip_without_root(NAME) {
        return;
    }
    let _turn = one_at_a_time();
    isolated_with_system(NAME, HANGS, |home| {
        let before = Snapshot::take();
        let world = World::new();
        let untouched = NicState::take(&world.here, "h0");
        let daemon = world.daemon(home);
        let control = Control::connect().unwrap();
        let here = world.here.enter(|| Port::open("netmap:h0-0")).unwrap();
        let there = world.there.enter(|| Port::open("netmap:h1-0")).unwrap();
        let mut nics = Pair::of([here, there], 1);
        let mut switched = Pair::open("valeh:x", "valeh:y", 2).unwrap();

        let launcher = launcher(&daemon);
        for victim in [launcher, helper(launcher)] {
            kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL).unwrap();
            assert!(ends(victim, LIMIT));
        }
        let told = daemon.wait_for("to set up more, restart the daemon", LIMIT);
        assert!(told.contains("(ringwayd-launch) has ended: what is set up goes on"), "{told}");
        assert!(
            told.contains("its helper ringwayd-nic has ended, and there is no other"),
            "{told}"
        );

        home.install(&[("ringway", "ringway-cli")]);
        let doctor = home.system_command(home.bin().join("ringway"));
        let said = inside(&world.here, doctor).arg("doctor").output().unwrap().stdout;
        let said = String::from_utf8_lossy(&said);
        let is_said = |line: &str| {
            line.starts_with("warning daemon ") && line.contains("(ringwayd-launch) has ended")
        };
        assert!(said.lines().any(is_said), "{said}");

        nics.exchange_some(64).unwrap();
        switched.exchange_some(64).unwrap();
        Pair::open("valeh:v", "valeh:w", 3).unwrap().exchange_some(64).unwrap();
        drop(nics);
        until("the interfaces are free", || match is_unused("h0") && is_unused("h1") {
            true => Ok(()),
            false => Err(format!("{:?}", control.ports().unwrap())),
        });
        for round in 0..PORTS.len() as u32 + 2 {
            let text = ask(&world, round).expect_err("nothing sets it up").to_string();
            assert!(text.contains("what starts it has ended; restart the daemon"), "{text}");
        }
        untouched.assert_restored(&world.here);
        drop((switched, control));
        daemon.signal(Signal::TERM);
        let (status, said) = daemon.wait();
        assert!(status.success(), "{said}");

        let daemon = world.daemon(home);
        until("the next daemon sets up", || ask(&world, 0).map_err(|e| e.to_string()));
        daemon.signal(Signal::TERM);
        drop(world);
        before.assert_clean();
    });
}

/// A daemon that is started again when it fails has all back by that.
#[test]
fn a_managed_daemon_ends_with_its_launcher() {
    const NAME: &str = "a_managed_daemon_ends_with_its_launcher";
    if skip_without_root(NAME) {
        return;
    }
    let _turn = one_at_a_time();
    isolated_with_system(NAME, HANGS, |home| {
        let world = World::new();
        let manager = UnixDatagram::bind(home.path().join("manager")).unwrap();
        manager.set_read_timeout(Some(LIMIT)).unwrap();
        let daemon = home.system_daemon_with(GROUP, 0o660, "", |daemon| {
            let mut daemon = inside(&world.here, daemon);
            daemon.env("NOTIFY_SOCKET", home.path().join("manager"));
            daemon
        });
        Control::connect().unwrap().switch_new("vale7", false).unwrap();
        let launcher = launcher(&daemon);
        kill_process(Pid::from_raw(launcher as i32).unwrap(), Signal::KILL).unwrap();
        let (status, said) = daemon.wait();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("what starts its helpers (ringwayd-launch) has ended"), "{said}");
        let mut told = [0; 4096];
        loop {
            let length = manager.recv(&mut told).expect("the manager is told");
            if told[..length].starts_with(b"STOPPING=1") {
                break;
            }
        }

        let daemon = world.daemon(home);
        let switches = Control::connect().unwrap().switches().unwrap();
        assert!(switches.iter().any(|switch| switch.name == "vale7"), "{switches:?}");
        until("the next daemon sets up", || ask(&world, 0).map_err(|e| e.to_string()));
        daemon.signal(Signal::TERM);
    });
}

/// What programs receive by, at the interface whose other end sends.
const RECEIVERS: [&str; 5] = [
    "netmap:h0@mode=copy",
    "netmap:h0@mode=generic",
    "netmap:h0@mode=packet",
    "netmap:h0@filter=ether proto 0x88b5",
    "netmap:h0/R@filter=not ip@sample=3",
];

/// The broker may not enter it: it has the helper do so.
#[test]
fn interfaces_of_another_namespace_are_set_up_there() {
    const NAME: &str = "interfaces_of_another_namespace_are_set_up_there";
    if skip_without_root(NAME) {
        return;
    }
    let _turn = one_at_a_time();
    isolated_with_system(NAME, HANGS, |home| {
        let before = Snapshot::take();
        let world = World::new();
        let untouched = NicState::take(&world.here, "h0");
        let users = "nic_users = ['65534']\n";
        let daemon = home.system_daemon_with(GROUP, 0o660, users, |daemon| daemon);
        let send = home.system_traffic(&["send", "netmap:h1/T", "1"]);
        let sender = Proc::spawn(inside(&world.there, send));
        for root in [true, false] {
            let start = |args: &[&str]| {
                let traffic = home.system_traffic(args);
                let traffic = if root { traffic } else { as_nobody(traffic) };
                Proc::spawn(inside(&world.here, traffic))
            };
            for port in RECEIVERS {
                let receiver = start(&["receive", port, "1"]);
                receiver.wait_for("going", LIMIT);
                receiver.signal(Signal::KILL);
                let (_, output) = receiver.wait();
                assert!(!output.contains("wrong"), "{port}: {output}");
                until("the interface is as it was", || match is_unused("h0") {
                    true => Ok(()),
                    false => Err(port.to_owned()),
                });
            }
            let bridge = start(&["join", "netmap:h0", "netmap:h0^"]);
            bridge.wait_for("joined", LIMIT);
            bridge.signal(Signal::KILL);
            assert!(ends(bridge.pid(), LIMIT));
        }
        sender.signal(Signal::KILL);
        assert!(ends(sender.pid(), LIMIT));

        // veth copies.
        let error = world.here.enter(|| Port::open("netmap:h0@mode=zerocopy")).unwrap_err();
        assert!(error.to_string().contains("cannot be had"), "{error}");
        let control = Control::connect().unwrap();
        until("the interface is free", || {
            world
                .here
                .enter(|| control.switch_attach("valeh", "h0", true))
                .map_err(|e| e.to_string())
        });
        world.here.enter(|| control.switch_detach("valeh", "h0")).unwrap();
        world.here.enter(|| control.interface_new("p2", PortShape::default())).unwrap();
        world.here.run("ip link show p2");
        world.here.enter(|| control.interface_delete("p2")).unwrap();
        let here = world.here.run("ip -br link");
        assert!(!here.contains("p2") && !here.contains("rwhost"), "{here}");
        untouched.assert_restored(&world.here);
        drop(control);
        daemon.signal(Signal::TERM);
        drop(world);
        before.assert_clean();
    });
}

/// Whether no program has a port of the interface.
fn is_unused(interface: &str) -> bool {
    let control = Control::connect().expect("the daemon answers");
    let ports = control.ports().expect("the daemon answers");
    ports.iter().all(|port| port.name != interface)
}

/// The daemon as the service manager starts it, whose journal is the socket in this folder. The machine's users are what
/// is written into the pipe there.
fn in_journal(folder: &Path, daemon: &Command) -> Command {
    const SCRIPT: &str = "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && \
        mount --bind \"$1/users\" /etc/passwd && \
        mount --bind \"$1\" /run/systemd/journal && shift && \
        JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec \"$@\"";
    let folder = folder.to_str().expect("the folder's name is text");
    started_by(daemon, &["unshare", "--mount", "sh", "-c", SCRIPT, "sh", folder])
}

/// What a process of the daemon's beside the broker logs has its fields in the journal, too: of one that reads the
/// configuration, and whose broker has ended when it has.
#[test]
fn lines_of_other_processes_have_fields() {
    if skip_without_root("lines_of_other_processes_have_fields") {
        return;
    }
    isolated_with_system("lines_of_other_processes_have_fields", HANGS, |home| {
        let folder = home.path().join("journal");
        fs::create_dir(&folder).unwrap();
        let journal = UnixDatagram::bind(folder.join("socket")).unwrap();
        journal.set_read_timeout(Some(LIMIT)).unwrap();
        let until_told = |text: &str| {
            let mut bytes = [0; 4096];
            loop {
                let length = journal.recv(&mut bytes).expect(text);
                let event = String::from_utf8_lossy(&bytes[..length]).into_owned();
                if event.contains(text) {
                    return event;
                }
            }
        };
        let users = folder.join("users");
        mkfifoat(CWD, &users, Mode::RUSR | Mode::WUSR).unwrap();
        let daemon = home.system_daemon_with(GROUP, 0o660, "subuid = false\n", |daemon| {
            in_journal(&folder, &daemon)
        });
        until_told("RINGWAY_KIND=daemon-start\n");
        let config = home.path().join("ringwayd.toml");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("nic_users = ['alice']\n{text}")).unwrap();
        daemon.signal(Signal::HUP);
        // It is open when the process looks for the user.
        let open = move || fs::File::options().write(true).open(&users).unwrap();
        let first = open();
        daemon.signal(Signal::KILL);
        assert!(ends(daemon.pid(), LIMIT));
        // It looks more than once.
        thread::spawn(move || {
            let mut fifo = first;
            loop {
                let _ = fifo.write_all(b"alice:x:1234:1234::/:/bin/sh\n");
                drop(fifo);
                fifo = open();
            }
        });
        let event = until_told("MESSAGE=Configuration: ");
        for field in ["PRIORITY=3\n", "RINGWAY_KIND=process\n", "RINGWAY_CAUSE=System(32)\n"] {
            assert!(event.contains(field), "{event}");
        }
    });
}
