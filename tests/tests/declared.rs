//! What the system daemon's configuration declares: it is there after a boot, a kill and a container's restart, and
//! another reading of the configuration changes what differs, and nothing else.

use std::{
    fs,
    io::ErrorKind,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use ringway::{
    BridgeInfo, Control, Declared, Forwarding, Port, PortSettings, RateLimit, SourceAddresses, Vlan,
};
use ringway_testkit::{Netns, Proc, VethPair, skip_without_root};
use ringway_tests::{GROUP, Home, ends, inside, isolated_with_system, resources::resources, until};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);
const HANGS: Duration = Duration::from_secs(300);

/// Two VLANs, and the host's stack in one of them.
const DECLARED: &str = r#"
[[switch]]
name = "vale0"
ageing = 60

[[switch.port]]
interface = "c1"
access = 10

[[switch.port]]
interface = "c2"
access = 10

[[switch.port]]
interface = "c3"
access = 20

[[switch.port]]
name = "up"
user = "nobody"
trunk = "10,20"
addresses = ["02:00:00:00:00:09 vlan 10"]
"#;

/// The daemon's host, and three containers whose interfaces it has as `c1`, `c2` and `c3`.
struct World {
    here: Netns,
    containers: [Netns; 3],
    cables: [Option<VethPair>; 3],
}

impl World {
    fn new(home: &Home) -> World {
        let here = Netns::quiet("rwh");
        let containers = ["rw1", "rw2", "rw3"].map(Netns::quiet);
        home.install(&[("ringway", "ringway-cli")]);
        let mut world = World { here, containers, cables: [None, None, None] };
        (0..3).for_each(|at| world.start(at));
        world
    }

    /// A container starts, or starts again.
    fn start(&mut self, at: usize) {
        let number = at + 1;
        let container = &self.containers[at];
        let cable = self.here.veth(container, &format!("c{number}"), "eth0");
        container.run(&format!("ip addr add 10.9.0.{number}/24 dev eth0"));
        self.cables[at] = Some(cable);
    }

    fn daemon(&self, home: &Home, more: &str) -> Proc {
        home.system_daemon_with(GROUP, 0o660, more, |daemon| inside(&self.here, daemon))
    }

    /// A daemon whose configuration declares the switches, which are there by now.
    fn as_declared(&self, home: &Home) -> (Proc, Control) {
        let daemon = self.daemon(home, DECLARED);
        let control = Control::connect().unwrap();
        attached(&control);
        (daemon, control)
    }

    /// A command beside the daemon: whether it succeeds, and what it says.
    fn run(&self, home: &Home, program: &str, args: &[&str]) -> (bool, String) {
        let mut command = home.system_command(home.bin().join(program));
        command.args(args);
        let output = inside(&self.here, command).output().expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Whether a datagram of one container reaches another, which is tried until it does, or until `enough`.
    fn reaches(&self, from: usize, to: usize, enough: Duration) -> bool {
        let address = format!("10.9.0.{}:7", to + 1);
        let receiver = self.containers[to].enter(|| UdpSocket::bind(&address)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let source = format!("10.9.0.{}:0", from + 1);
        let sender = self.containers[from].enter(|| UdpSocket::bind(&source)).unwrap();
        let begin = Instant::now();
        while begin.elapsed() < enough {
            // Refused as long as the address is not resolved.
            let _ = sender.send_to(b"to the other one", &address);
            match receiver.recv(&mut [0; 64]) {
                Ok(_) => return true,
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock, "{e}"),
            }
        }
        false
    }

    fn assert_as_declared(&self) {
        assert!(self.reaches(0, 1, LIMIT), "the first two are in one VLAN");
        assert!(!self.reaches(0, 2, Duration::from_millis(200)), "the third is in another");
    }
}

fn config(home: &Home) -> PathBuf {
    home.path().join("ringwayd.toml")
}

/// Has the daemon read another configuration: `DECLARED` with something replaced. Returns what it says of it.
fn reload(home: &Home, daemon: &Proc, declared: &str) -> String {
    let text = fs::read_to_string(config(home)).unwrap();
    let keys = text.split("\n[[").next().unwrap();
    fs::write(config(home), format!("{keys}\n{declared}")).unwrap();
    let before = daemon.output().len();
    daemon.signal(Signal::HUP);
    until("the configuration is read", || {
        let said = daemon.output()[before..].to_owned();
        let is_read = said.contains("is read again") || said.contains("stays as it was");
        if is_read && said.ends_with('\n') { Ok(said) } else { Err(said) }
    })
}

fn switch(control: &Control, name: &str) -> Option<BridgeInfo> {
    control.switches().unwrap().into_iter().find(|switch| switch.name == name)
}

fn vlan(control: &Control, port: &str) -> Option<Vlan> {
    let ports = switch(control, "vale0").into_iter().flat_map(|switch| switch.ports);
    ports.into_iter().find(|it| it.name == port).map(|port| port.vlan)
}

fn declared(control: &Control, port: &str) -> Option<Declared> {
    let ports = switch(control, "vale0").into_iter().flat_map(|switch| switch.ports);
    ports.into_iter().find(|it| it.name == port).map(|port| port.declared)
}

/// All interfaces are there.
fn attached(control: &Control) {
    attached_on(control, "vale0");
}

fn attached_on(control: &Control, name: &str) {
    until("all is attached", || {
        let ports = switch(control, name).map(|switch| switch.ports).unwrap_or_default();
        let absent = ports.iter().filter(|port| port.absent && port.attachment.is_some());
        let absent: Vec<_> = absent.filter_map(|port| port.mode.as_deref()).collect();
        if !ports.is_empty() && absent.is_empty() { Ok(()) } else { Err(absent.join("; ")) }
    });
}

fn end(daemon: Proc, signal: Signal) {
    daemon.signal(signal);
    assert!(ends(daemon.pid(), LIMIT), "{signal:?} does not end it");
}

/// At boot, after a kill, after a boot without what the last daemon wrote, and when a container starts again.
#[test]
fn what_is_declared_is_there() {
    if skip_without_root("what_is_declared_is_there") {
        return;
    }
    isolated_with_system("what_is_declared_is_there", HANGS, |home| {
        let mut world = World::new(home);
        // One container starts late.
        let late = world.cables[1].take();
        drop(late);
        let daemon = world.daemon(home, DECLARED);
        let control = Control::connect().unwrap();
        let waits = |absence: &str| {
            until("it waits for the second", || {
                let ports = switch(&control, "vale0").into_iter().flat_map(|switch| switch.ports);
                let second = ports.into_iter().find(|port| port.name == "vale0:c2");
                let mode = second.and_then(|port| port.mode).unwrap_or_default();
                let waits = mode.starts_with(absence) && mode.contains("no such network interface");
                if waits { Ok(()) } else { Err(mode) }
            });
        };
        // What was never there is told apart from what has gone.
        waits("not there yet: ");
        world.start(1);
        attached(&control);
        world.cables[1] = None;
        waits("not back yet: ");
        // `--check` names it, too, unless it is not to be there any more.
        let check = |text: &str| {
            fs::write(config(home), text).unwrap();
            let path = config(home);
            let (good, said) = world.run(home, "ringwayd", &["--check", path.to_str().unwrap()]);
            assert!(good, "{said}");
            said
        };
        let text = fs::read_to_string(config(home)).unwrap();
        let said = check(&text.replace("\"c2\"", "\"c9\""));
        assert!(said.contains("would change: detach vale0:c2"), "{said}");
        assert!(!said.contains("not attached"), "{said}");
        let said = check(&text);
        assert!(said.contains("not attached: vale0:c2 ("), "{said}");
        assert!(said.contains("switches are as declared otherwise"), "{said}");
        world.start(1);
        attached(&control);
        let path = config(home);
        let (_, said) = world.run(home, "ringwayd", &["--check", path.to_str().unwrap()]);
        assert!(said.contains("switches are as declared\n"), "{said}");
        world.assert_as_declared();
        assert_eq!(declared(&control, "vale0:c2"), Some(Declared::Yes));
        let statics = control.switch_addresses("vale0").unwrap();
        let of_up = statics.iter().find(|it| it.port == "vale0:up").unwrap();
        assert!(of_up.vlan == 10 && of_up.age_seconds.is_none() && of_up.absent);

        // A container that starts again, twice, with the same interface's name.
        for _ in 0..2 {
            world.cables[0] = None;
            world.start(0);
            until("it is attached again", || match vlan(&control, "vale0:c1") {
                Some(Vlan::Access(10)) => Ok(()),
                other => Err(format!("{other:?}")),
            });
            attached(&control);
            world.assert_as_declared();
        }

        end(daemon, Signal::KILL);
        let (daemon, _control) = world.as_declared(home);
        world.assert_as_declared();

        // As after a boot.
        end(daemon, Signal::TERM);
        fs::remove_file(home.system_socket().with_extension("state")).unwrap();
        let (daemon, _control) = world.as_declared(home);
        world.assert_as_declared();

        // What is not declared any more while there is no daemon is not set up again.
        end(daemon, Signal::TERM);
        let daemon = world.daemon(home, "");
        let control = Control::connect().unwrap();
        assert!(control.switches().unwrap().is_empty());
        end(daemon, Signal::TERM);
    });
}

/// Only what differs is changed, and what flows through the rest is not touched.
#[test]
fn another_reading_changes_what_differs() {
    if skip_without_root("another_reading_changes_what_differs") {
        return;
    }
    isolated_with_system("another_reading_changes_what_differs", HANGS, |home| {
        let world = World::new(home);
        let (daemon, control) = world.as_declared(home);
        world.assert_as_declared();
        let places = |control: &Control| {
            let ports = switch(control, "vale0").unwrap().ports;
            ports.into_iter().map(|port| (port.name, port.index)).collect::<Vec<_>>()
        };
        let places_before = places(&control);

        // Datagrams go from the first to the second all the time: each arrives.
        let to = world.containers[1].enter(|| UdpSocket::bind("10.9.0.2:9")).unwrap();
        to.set_read_timeout(Some(LIMIT)).unwrap();
        let from = world.containers[0].enter(|| UdpSocket::bind("10.9.0.1:0")).unwrap();
        let crosses = |number: u32| {
            from.send_to(&number.to_be_bytes(), "10.9.0.2:9").unwrap();
            let mut bytes = [0; 4];
            assert_eq!((to.recv(&mut bytes).unwrap(), bytes), (4, number.to_be_bytes()));
        };
        crosses(0);

        // An address of the third that is added by hand, in its VLAN.
        let fdb = |args: &[&str]| {
            let args = [&["switch", "fdb"], args, &["--vlan", "20"]].concat();
            let (good, said) = world.run(home, "ringway", &args);
            assert!(good, "{said}");
        };
        fdb(&["add", "vale0", "02:00:00:00:00:07", "c3"]);

        // The third gets a rate, and joins the others.
        let other = DECLARED
            .replace("access = 20", "access = 10\nrate = 100_000_000")
            .replace("ageing = 60", "ageing = 90");
        let said = reload(home, &daemon, &other);
        for part in ["change how vale0 forwards", "change how vale0:c3 takes part"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!said.contains("c1") && !said.contains("c2"), "{said}");
        let idle = "vale0:c3: its static address 02:00:00:00:00:07 in VLAN 20 has no effect";
        assert!(said.contains(idle), "{said}");
        let path = config(home);
        let (_, checked) = world.run(home, "ringwayd", &["--check", path.to_str().unwrap()]);
        assert!(checked.contains(&format!("note: {idle}")), "{checked}");
        fdb(&["del", "vale0", "02:00:00:00:00:07"]);
        crosses(1);
        assert_eq!(places(&control), places_before);
        assert!(world.reaches(0, 2, LIMIT), "it is in the same VLAN now");
        let now = switch(&control, "vale0").unwrap();
        assert_eq!(now.forwarding, Forwarding::Learning { ageing_seconds: 90 });
        let third = now.ports.iter().find(|port| port.name == "vale0:c3").unwrap();
        assert_eq!(third.rate, Some(RateLimit::new(100_000_000)));

        // A second time there is nothing to do.
        let said = reload(home, &daemon, &other);
        assert!(!said.contains("as declared"), "{said}");

        // An error says where it is, and changes nothing.
        let wrong = other.replace("ageing = 90", "aging = 90");
        let said = reload(home, &daemon, &wrong);
        let line = 1 + fs::read_to_string(config(home))
            .unwrap()
            .lines()
            .position(|line| line.starts_with("aging"))
            .unwrap();
        assert!(said.contains(&format!("line {line}: unknown field `aging`")), "{said}");
        assert!(!said.contains("as declared:"), "{said}");
        let (good, said) =
            world.run(home, "ringwayd", &["--check", config(home).to_str().unwrap()]);
        assert!(!good && said.contains(&format!("line {line}")), "{said}");

        // What is done by hand is told apart, and goes only where it contradicts.
        let by_hand = PortSettings { isolated: Some(true), ..PortSettings::default() };
        control.switch_port("vale0:c1", by_hand).unwrap();
        assert_eq!(declared(&control, "vale0:c1"), Some(Declared::Changed));
        world.here.run("ip link add h0 type veth peer name h1");
        world.here.run("ip link set h0 up");
        let (good, said) = world.run(home, "ringway", &["switch", "attach", "vale0", "h0"]);
        assert!(good, "{said}");
        assert_eq!(declared(&control, "vale0:h0"), Some(Declared::No));
        let (_, said) = world.run(home, "ringway", &["switch", "list"]);
        assert!(said.contains("changed by hand") && said.contains("; by hand)"), "{said}");
        fs::write(
            config(home),
            fs::read_to_string(config(home)).unwrap().replace("aging", "ageing"),
        )
        .unwrap();
        let (good, said) =
            world.run(home, "ringwayd", &["--check", config(home).to_str().unwrap()]);
        assert!(good && said.contains("would change: change how vale0:c1 takes part"), "{said}");
        let said = reload(home, &daemon, &other);
        assert!(said.contains("change how vale0:c1 takes part"), "{said}");
        assert_eq!(declared(&control, "vale0:c1"), Some(Declared::Yes));
        assert_eq!(declared(&control, "vale0:h0"), Some(Declared::No));
        crosses(2);

        // An interface that moves to another switch, and a port that is not declared any more.
        let moved = other.split("[[switch.port]]\ninterface = \"c3\"").next().unwrap();
        let moved =
            format!("{moved}[[switch]]\nname = \"vale1\"\n[[switch.port]]\ninterface = \"c3\"");
        let said = reload(home, &daemon, &moved);
        for part in ["detach vale0:c3", "make vale1", "attach vale1:c3"] {
            assert!(said.contains(part), "{said}");
        }
        until("it has moved", || {
            let there = switch(&control, "vale1").map(|switch| switch.ports).unwrap_or_default();
            let modes: Vec<_> = there.into_iter().filter_map(|port| port.mode).collect();
            if modes == ["kernel"] { Ok(()) } else { Err(format!("{modes:?}")) }
        });
        let statics = control.switch_addresses("vale0").unwrap();
        assert!(statics.iter().all(|it| it.port != "vale0:up"), "{statics:?}");
        crosses(3);

        // Nothing is declared: what was set up by hand stays.
        let said = reload(home, &daemon, "");
        assert!(said.contains("let vale0 go") && said.contains("detach vale0:c1"), "{said}");
        let names: Vec<_> =
            switch(&control, "vale0").unwrap().ports.into_iter().map(|port| port.name).collect();
        assert_eq!(names, ["vale0:h0"]);
        assert!(switch(&control, "vale1").is_none());
        end(daemon, Signal::TERM);
    });
}

/// What is declared is found by its name, when it is read again as when a daemon starts.
#[test]
fn interfaces_that_have_swapped_names_are_as_declared_again() {
    const TEST: &str = "interfaces_that_have_swapped_names_are_as_declared_again";
    if skip_without_root(TEST) {
        return;
    }
    isolated_with_system(TEST, HANGS, |home| {
        let world = World::new(home);
        let (daemon, control) = world.as_declared(home);
        world.here.run(
            "ip link set c2 down && ip link set c3 down &&
             ip link set c2 name was2 && ip link set c3 name c2 && ip link set was2 name c3 &&
             ip link set c2 up && ip link set c3 up",
        );
        let check = || {
            let path = config(home);
            let (good, said) = world.run(home, "ringwayd", &["--check", path.to_str().unwrap()]);
            assert!(good, "{said}");
            said
        };
        let said = until("the new names are known", || {
            let said = check();
            let both = ["c2", "c3"].iter().all(|it| said.contains(&format!("detach vale0:{it}\n")));
            if both { Ok(said) } else { Err(said) }
        });
        for (port, now) in [("c2", "c3"), ("c3", "c2")] {
            let note = format!("vale0:{port}: its interface is called {now} now; to keep it there");
            assert!(said.contains(&note), "{said}");
            assert!(said.contains(&format!("would change: attach vale0:{port}\n")), "{said}");
        }
        let said = reload(home, &daemon, DECLARED);
        assert!(said.contains("vale0:c2: its interface is called c3 now"), "{said}");
        attached(&control);
        assert!(world.reaches(0, 2, LIMIT), "what is called c2 now is in the VLAN of c1");
        assert!(!world.reaches(0, 1, Duration::from_millis(200)), "what was c2 is in another");
        until("all is told", || {
            let said = check();
            if said.contains("switches are as declared\n") { Ok(()) } else { Err(said) }
        });
        end(daemon, Signal::TERM);
    });
}

/// What a daemon starts with it can read again, and the next daemon reads its state.
#[test]
fn a_large_configuration_is_read_again() {
    const TEST: &str = "a_large_configuration_is_read_again";
    if skip_without_root(TEST) {
        return;
    }
    isolated_with_system(TEST, HANGS, |home| {
        let world = World::new(home);
        let program = format!("1000{},6 0 0 1", ",0 0 0 0".repeat(999));
        let filter = format!("{{ expression = 'x', bytecode = '{program}' }}");
        let mut text = String::new();
        for switch in 0..2 {
            text += &format!("[[switch]]\nname = 'vale{switch}'\n");
            for port in 0..200 {
                text += &format!("[[switch.port]]\nname = 'p{port}'\n");
                text += &format!("filter_in = {filter}\nfilter_out = {filter}\n");
            }
        }
        let daemon = world.daemon(home, &text);
        let said = reload(home, &daemon, &text.replace("name = 'p0'", "name = 'q0'"));
        assert!(said.contains("take the declared settings from vale1:p0"), "{said}");
        assert!(said.contains("is read again"), "{said}");
        end(daemon, Signal::TERM);
        let daemon = world.daemon(home, "");
        let control = Control::connect().unwrap();
        assert!(control.switches().unwrap().is_empty());
        until("what the last one had declared was known", || {
            let said = daemon.output();
            if said.contains("let vale0 go") { Ok(()) } else { Err(said) }
        });
        end(daemon, Signal::TERM);
    });
}

/// A command that changes what is declared says where that is, because the next reading sets it back.
#[test]
fn changes_of_what_is_declared_are_told() {
    if skip_without_root("changes_of_what_is_declared_are_told") {
        return;
    }
    isolated_with_system("changes_of_what_is_declared_are_told", HANGS, |home| {
        let world = World::new(home);
        let (daemon, control) = world.as_declared(home);
        let place = |name: &str| {
            let text = fs::read_to_string(config(home)).unwrap();
            let is_it = |line: &str| line.ends_with(&format!(" = \"{name}\""));
            let line = 1 + text.lines().position(is_it).unwrap();
            format!("{}: line {line}", config(home).display())
        };
        assert_eq!(switch(&control, "vale0").unwrap().declared_at, Some(place("vale0")));
        let run = |args: &str| {
            let args: Vec<_> = ["switch"].into_iter().chain(args.split(' ')).collect();
            let (good, said) = world.run(home, "ringway", &args);
            assert!(good, "{args:?}: {said}");
            said
        };

        // What is no change of it, or takes one back, is nothing to tell.
        for args in [
            "port vale0:c1 --access 10",
            "forward vale0 learning --ageing 60",
            "fdb add vale0 02:00:00:00:00:08 c1 --vlan 10",
            "fdb del vale0 02:00:00:00:00:08 --vlan 10",
            "new vale5",
            "delete vale5",
        ] {
            assert_eq!(run(args), "", "{args}");
        }
        for (args, is) in [
            ("port vale0:c1 --isolated", "vale0:c1 is otherwise than declared"),
            ("fdb flush vale0 --static --json", "vale0 is otherwise than declared"),
            ("forward vale0 learning --ageing 5", "vale0 is otherwise than declared"),
            ("fdb del vale0 02:00:00:00:00:09 --vlan 10", "vale0 is otherwise than declared"),
            ("detach vale0 c1", "vale0:c1 is declared"),
            ("delete vale0", "vale0 is declared"),
        ] {
            let declared = is.split(' ').next().unwrap().rsplit(':').next().unwrap();
            let (place, said) = (place(declared), run(args));
            assert!(said.contains(&format!("{is} ({place}): the daemon ")), "{args}: {said}");
            if args.starts_with("detach") {
                let now = switch(&control, "vale0").map(|it| it.declared);
                assert_eq!(now, Some(Declared::Changed));
            }
            let in_json = format!("\"declared_at\":\"{place}\"");
            assert_eq!(said.contains(&in_json), args.contains("--json"), "{args}: {said}");
            reload(home, &daemon, DECLARED);
            attached(&control);
            assert_eq!(switch(&control, "vale0").map(|it| it.declared), Some(Declared::Yes));
        }
        end(daemon, Signal::TERM);
    });
}

/// Open ports of programs lose what is not declared any more, and keep what a user has changed.
#[test]
fn what_is_declared_no_more_is_as_at_first() {
    if skip_without_root("what_is_declared_no_more_is_as_at_first") {
        return;
    }
    isolated_with_system("what_is_declared_no_more_is_as_at_first", HANGS, |home| {
        let world = World::new(home);
        let switch_alone =
            "[[switch]]\nname = \"vale0\"\nforward = \"flood\"\none_address = true\n";
        let port = |name: &str| {
            format!("[[switch.port]]\nname = \"{name}\"\naccess = 10\nrate = 100_000_000\n")
        };
        let both = format!("{switch_alone}{}{}", port("a"), port("b"));
        let daemon = world.daemon(home, &both);
        let control = Control::connect().unwrap();
        let open = ["vale0:a", "vale0:b"].map(|name| Port::open(name).unwrap());
        let settings = |at: usize| {
            let ports = switch(&control, "vale0").unwrap().ports;
            let port = ports.into_iter().find(|port| port.name == open[at].name()).unwrap();
            (port.vlan, port.rate.is_some(), port.sources, port.storm)
        };
        let declared = (Vlan::Access(10), true, SourceAddresses::One, None);
        assert_eq!([settings(0), settings(1)], [declared.clone(), declared.clone()]);

        // One port, which a user has changed, and its switch stays.
        let by_hand = PortSettings { storm: Some(Some(9)), ..PortSettings::default() };
        control.switch_port("vale0:b", by_hand.clone()).unwrap();
        let text = fs::read_to_string(config(home)).unwrap();
        let renamed = text.replace("name = \"b\"", "name = \"c\"");
        fs::write(config(home), renamed).unwrap();
        let path = config(home);
        let (_, said) = world.run(home, "ringwayd", &["--check", path.to_str().unwrap()]);
        assert!(said.contains("would change: take the declared settings from vale0:b\n"), "{said}");
        let said = reload(home, &daemon, &format!("{switch_alone}{}", port("a")));
        assert!(said.contains("as declared: take the declared settings from vale0:b"), "{said}");
        let at_first = (Vlan::Unaware, false, SourceAddresses::One, Some(9));
        assert_eq!([settings(0), settings(1)], [declared, at_first]);

        // The switch.
        control.switch_port("vale0:a", by_hand).unwrap();
        let said = reload(home, &daemon, "");
        assert!(said.contains("let vale0 go with its last port, without"), "{said}");
        let at_first = (Vlan::Unaware, false, SourceAddresses::Any, Some(9));
        assert_eq!(settings(0), at_first);
        let now = switch(&control, "vale0").unwrap();
        assert_eq!((now.forwarding, now.one_address), (Forwarding::default(), false));
        drop(open);
        until("it goes with its last port", || match switch(&control, "vale0") {
            Some(there) => Err(format!("{there:?}")),
            None => Ok(()),
        });
        end(daemon, Signal::TERM);
    });
}

/// Declared ports that swap buffers are in one region, and packets pass between them while that changes.
#[test]
fn declared_ports_swap_buffers() {
    if skip_without_root("declared_ports_swap_buffers") {
        return;
    }
    isolated_with_system("declared_ports_swap_buffers", HANGS, |home| {
        let world = World::new(home);
        let port = |name: &str, settings: &str| {
            format!("[[switch.port]]\nname = \"{name}\"\n{settings}\n")
        };
        let swaps = "swap_buffers = true";
        let switch_alone = "[[switch]]\nname = \"vale0\"\n";
        let both = format!("{switch_alone}{}{}", port("a", swaps), port("b", swaps));
        let daemon = world.daemon(home, &both);
        let control = Control::connect().unwrap();
        let [mut a, mut b, other] =
            ["vale0:a", "vale0:b", "vale1:a"].map(|name| Port::open(name).unwrap());
        let regions = control.ports().unwrap();
        let region = |port: &Port| {
            let found = regions.iter().find(|info| info.name == port.name());
            found.map(|info| info.mem_id).unwrap()
        };
        assert_eq!(region(&a), region(&b));
        assert_ne!(region(&a), region(&other));
        let mut pass = |rounds: std::ops::Range<u32>| {
            for round in rounds {
                let [to_b, to_a] = [[2, 1], [1, 2]].map(|[to, from]| {
                    let mut frame = vec![0; 1514];
                    (frame[0], frame[5], frame[6], frame[11]) = (2, to, 2, from);
                    frame[14..18].copy_from_slice(&round.to_ne_bytes());
                    frame
                });
                for (from, frame) in [(&mut a, &to_b), (&mut b, &to_a)] {
                    assert!(from.tx(0).push(frame));
                    from.tx(0).sync();
                }
                for (to, frame) in [(&mut a, to_a), (&mut b, to_b)] {
                    until("the frame arrives", || {
                        let (_, mut rx) = to.split();
                        rx[0].sync();
                        let arrived = rx[0].batch(2).map(|slot| slot.to_vec()).collect::<Vec<_>>();
                        match arrived.as_slice() {
                            [] => Err("nothing".to_string()),
                            [arrived] => {
                                assert_eq!(*arrived, frame);
                                Ok(())
                            }
                            more => panic!("{more:?}"),
                        }
                    });
                }
            }
        };
        pass(0..3000);
        reload(home, &daemon, &format!("{switch_alone}{}", port("a", swaps)));
        pass(3000..4000);
        reload(home, &daemon, &both);
        pass(4000..7000);
        end(daemon, Signal::TERM);
    });
}

/// Files beside the configuration add to it, and `ringway switch save` writes one.
#[test]
fn what_is_saved_declares_the_same() {
    if skip_without_root("what_is_saved_declares_the_same") {
        return;
    }
    isolated_with_system("what_is_saved_declares_the_same", HANGS, |home| {
        let world = World::new(home);
        let daemon = world.daemon(home, "");
        let run = |args: &[&str]| {
            let (good, said) = world.run(home, "ringway", args);
            assert!(good, "{args:?}: {said}");
            said
        };
        run(&["switch", "new", "vale0", "--one-address"]);
        run(&["switch", "attach", "vale0", "c1", "--host"]);
        run(&["switch", "attach", "vale0", "c2@mode=packet", "c3@mode=generic"]);
        run(&["switch", "port", "vale0:c1", "--trunk", "10,20-29", "--native", "1"]);
        run(&["switch", "port", "vale0:c1^", "--access", "10", "--storm", "100pps"]);
        run(&["switch", "port", "vale0:c2", "--access", "20", "--max-addresses", "5"]);
        run(&["switch", "port", "vale0:c2", "--rate", "10Mbit/s", "--filter-in", "arp or ip"]);
        run(&["switch", "port", "vale0:c2", "--storm-broadcast", "9", "--storm-multicast", "8"]);
        run(&["switch", "port", "vale0:c1", "--multicast-router", "always"]);
        run(&["switch", "port", "vale0:c1", "--storm-unknown=7", "--storm-unknown-burst=70"]);
        run(&["switch", "port", "vale0:c3", "--mac", "02:00:00:00:00:01,02:00:00:00:00:02"]);
        run(&["switch", "port", "vale0:c3", "--isolated", "--group-forward", "0x4000"]);
        run(&["switch", "port", "vale0:c3", "--lossless=50", "--filter-out", "not udp"]);
        for port in ["vale0:c1", "vale0:c1^"] {
            let (good, said) =
                world.run(home, "ringway", &["switch", "port", port, "--swap-buffers"]);
            assert!(!good && said.contains("the setting is for ports of programs"), "{said}");
        }
        run(&["switch", "fdb", "add", "vale0", "02:00:00:00:00:05", "c2", "--vlan", "20"]);
        run(&["switch", "forward", "vale0", "learning", "--ageing", "33"]);
        run(&["switch", "new", "vale1"]);
        run(&["switch", "forward", "vale1", "flood"]);
        let before = run(&["switch", "save"]);
        assert_eq!(run(&["switch", "save", "vale0"]).matches("[[switch]]").count(), 1);

        let folder = config(home).with_extension("d");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("saved.toml"), &before).unwrap();
        let said = reload(home, &daemon, "");
        // It becomes declared, and nothing changes.
        assert!(!said.contains("as declared"), "{said}");
        end(daemon, Signal::TERM);
        fs::remove_file(home.system_socket().with_extension("state")).unwrap();
        let daemon = world.daemon(home, "");
        attached(&Control::connect().unwrap());
        assert_eq!(run(&["switch", "save"]), before);

        // Two files that declare one switch.
        fs::write(folder.join("other.toml"), "[[switch]]\nname = 'vale1'\n").unwrap();
        let (good, said) =
            world.run(home, "ringwayd", &["--check", config(home).to_str().unwrap()]);
        assert!(
            !good && said.contains("saved.toml: line") && said.contains("other.toml"),
            "{said}"
        );
        // What is no list is for the operator's own file.
        fs::write(folder.join("other.toml"), "mode = '0666'\n").unwrap();
        let (good, said) =
            world.run(home, "ringwayd", &["--check", config(home).to_str().unwrap()]);
        assert!(!good && said.contains("other.toml: line 1: unknown field `mode`"), "{said}");
        end(daemon, Signal::TERM);
    });
}

/// What is saved says for which user a port is declared: also for the switch's owner, and where nothing else is chosen of
/// the port; and of no port that is declared for all, though a user has it open.
#[test]
fn what_is_saved_says_whose_ports_are() {
    const TEST: &str = "what_is_saved_says_whose_ports_are";
    if skip_without_root(TEST) {
        return;
    }
    const USERS: &str = r#"
[[switch]]
name = "vale0"
owner = "nobody"

[[switch.port]]
name = "db"
user = "nobody"
access = 10

[[switch.port]]
name = "kept"
user = "1234"

[[switch.port]]
name = "open"
isolated = true

[[switch]]
name = "vale1"

[[switch.port]]
name = "admin"
user = "root"
"#;
    isolated_with_system(TEST, HANGS, |home| {
        let world = World::new(home);
        let daemon = world.daemon(home, USERS);
        let run = |args: &[&str]| {
            let (good, said) = world.run(home, "ringway", args);
            assert!(good, "{args:?}: {said}");
            said
        };
        let said = run(&["switch", "list"]);
        for (port, uid) in [("vale0:db", 65534), ("vale0:kept", 1234), ("vale1:admin", 0)] {
            assert!(said.contains(&format!("{port} (")), "{said}");
            assert!(said.contains(&format!("declared for user {uid}")), "{said}");
        }
        assert_eq!(said.matches("declared for").count(), 3, "{said}");
        // Root may have what is declared for another user, and for all.
        let ports = ["vale0:db", "vale0:open"].map(|name| Port::open(name).unwrap());
        let saved = run(&["switch", "save"]);
        for port in [
            "name = \"db\"\nuser = \"65534\"\naccess = 10\n",
            "name = \"kept\"\nuser = \"1234\"\n",
            "name = \"open\"\nisolated = true\n",
            "name = \"admin\"\nuser = \"0\"\n",
        ] {
            assert!(format!("{saved}\n").contains(port), "{port}: {saved}");
        }
        drop(ports);
        let said = reload(home, &daemon, &saved);
        assert!(!said.contains("as declared"), "{said}");
        assert_eq!(run(&["switch", "save"]), saved);
        end(daemon, Signal::TERM);
    });
}

/// What is declared is in the daemon's network namespace: an interface of another one, of the same name, is not it, and is
/// not saved as if it were.
#[test]
fn an_interface_elsewhere_is_not_the_declared_one() {
    const TEST: &str = "an_interface_elsewhere_is_not_the_declared_one";
    if skip_without_root(TEST) {
        return;
    }
    isolated_with_system(TEST, HANGS, |home| {
        let world = World::new(home);
        let mut daemon = world.daemon(home, "");
        let run = |args: &[&str]| {
            let (good, said) = world.run(home, "ringway", args);
            assert!(good, "{args:?}: {said}");
            said
        };
        let check = |path: &Path| {
            let (good, said) = world.run(home, "ringwayd", &["--check", path.to_str().unwrap()]);
            assert!(good, "{said}");
            said
        };
        // The first container's own `c2`, which stands for an interface of that name beside the daemon.
        let elsewhere = &world.containers[0];
        let name = elsewhere.name().unwrap();
        let _cable = elsewhere.veth(&world.containers[2], "c2", "other");
        let mut attach = home.system_command(home.bin().join("ringway"));
        attach.args(["switch", "attach", "vale0", "c2", "--host"]);
        assert!(inside(elsewhere, attach).status().unwrap().success());
        run(&["switch", "attach", "vale0", "c1"]);
        run(&["switch", "port", "vale0:c2", "--access", "20"]);
        run(&["switch", "port", "vale0:c2^", "--access", "20"]);

        let said = run(&["switch", "save"]);
        let why = format!("vale0:c2: in namespace {name}: cannot be declared");
        assert!(said.contains(&format!("\n# {why}")), "{said}");
        assert!(said.contains(&format!("{why}, and is left out")), "{said}");
        assert!(said.contains("interface = \"c1\"") && !said.contains("\"c2"), "{said}");

        // A declaration of that name is another interface.
        let declared = home.path().join("declared.toml");
        let socket = format!("socket = \"{}\"", home.system_socket().display());
        let switch = "[[switch]]\nname = 'vale0'\n[[switch.port]]\ninterface = 'c2'\nhost = true\naccess = 20\n";
        fs::write(&declared, format!("{socket}\n{switch}")).unwrap();
        let said = check(&declared);
        for change in ["detach vale0:c2", "attach vale0:c2"] {
            assert!(said.contains(&format!("would change: {change}\n")), "{said}");
        }
        reload(home, &daemon, switch);
        attached(&Control::connect().unwrap());
        assert!(check(&declared).contains("switches are as declared"));

        // What was attached by hand to another switch stays there until it is detached.
        let of_another = switch.replace("vale0", "vale1").replace("c2", "c1");
        fs::write(&declared, format!("{socket}\n{switch}{of_another}")).unwrap();
        let remedy = "`ringway switch detach vale0 c1`";
        let later = format!("attach vale1:c1 when vale0:c1 was detached, which {remedy} does");
        let said = check(&declared);
        assert!(said.contains(&format!("would change: {later}\n")), "{said}");
        assert!(!said.contains("would change: attach vale1:c1\n"), "{said}");
        let said = reload(home, &daemon, &format!("{switch}{of_another}"));
        assert!(said.contains(&format!("as declared: {later}")), "{said}");
        let said = check(&declared);
        assert!(said.contains("not attached: vale1:c1: it is on a switch as vale0:c1"), "{said}");
        assert!(said.contains(remedy), "{said}");
        run(&["switch", "detach", "vale0", "c1"]);
        attached_on(&Control::connect().unwrap(), "vale1");
        let said = check(&declared);
        assert!(said.contains("switches are as declared\n"), "{said}");
        end(daemon, Signal::TERM);
        daemon = world.daemon(home, &format!("{switch}{of_another}"));
        let control = Control::connect().unwrap();
        ["vale0", "vale1"].iter().for_each(|name| attached_on(&control, name));
        assert!(check(&declared).contains("switches are as declared\n"));
        end(daemon, Signal::TERM);
    });
}

/// A check whose reader goes ends as a program that SIGPIPE has ended; what cannot be written is an error.
#[test]
fn a_check_that_is_not_read_says_so_and_does_not_panic() {
    let home = Home::new();
    let path = config(&home);
    fs::write(&path, format!("socket = \"{}\"", home.system_socket().display())).unwrap();
    let check = |to: Stdio| {
        let mut command = home.system_command(home.bin().join("ringwayd"));
        let output = command.arg("--check").arg(&path).stdout(to).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(check(writer.into()), (Some(141), String::new()));
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let (status, said) = check(full.into());
    assert!(status == Some(1) && said.contains("No space left on device"), "{status:?}: {said}");
    assert!(said.starts_with("ringwayd: writing what was found: "), "{said}");
}

/// Permissions change by another reading; what takes a restart is named.
#[test]
fn another_reading_changes_who_may_what() {
    if skip_without_root("another_reading_changes_who_may_what") {
        return;
    }
    isolated_with_system("another_reading_changes_who_may_what", HANGS, |home| {
        let world = World::new(home);
        let daemon = world.daemon(home, "");
        let theirs = |args: &[&str]| {
            let mut command: Command = home.system_command(home.bin().join("ringway"));
            command.args(args);
            let command = inside(&world.here, ringway_tests::as_nobody(command));
            let (status, said) = Proc::spawn(command).wait();
            (status.success(), said)
        };
        let (good, said) = theirs(&["switch", "attach", "vale7", "c1"]);
        assert!(!good && said.contains("nic_users"), "{said}");
        let said = reload(home, &daemon, "");
        assert!(!said.contains("restart the daemon"), "{said}");
        let text = fs::read_to_string(config(home)).unwrap();
        let more = "nic_slots = 512\nnic_users = ['nobody']\nswitches_per_user = 1\n";
        fs::write(config(home), format!("{text}{more}[[reserve]]\nname = 'vale_x*'\n")).unwrap();
        daemon.signal(Signal::HUP);
        until("he may", || match theirs(&["switch", "attach", "vale7", "c1"]) {
            (true, said) => Ok(said),
            (false, said) => Err(said),
        });
        let (good, said) = theirs(&["switch", "new", "vale8"]);
        assert!(!good && said.contains("switches_per_user"), "{said}");
        let (good, said) = theirs(&["switch", "attach", "vale_x1", "c2"]);
        assert!(!good && said.contains("reserved"), "{said}");
        let said = daemon.output();
        assert!(said.contains("`nic_slots` is as it was before: restart"), "{said}");
        assert!(!said.contains("`nic_users`"), "{said}");
        let check = || {
            let path = config(home);
            world.run(home, "ringwayd", &["--check", path.to_str().unwrap()]).1
        };
        let said = check();
        assert!(said.contains("would take a restart: `nic_slots`\n"), "{said}");

        // It runs with what it was started with: a key that is as it was takes no restart.
        fs::write(config(home), &text).unwrap();
        let said = reload(home, &daemon, "");
        assert!(!said.contains("restart the daemon"), "{said}");
        assert!(!check().contains("restart"), "{}", check());
        let otherwise = "memory_per_user = 100\nmax_bridges = 9\n";
        fs::write(config(home), format!("{text}{otherwise}")).unwrap();
        let said = reload(home, &daemon, "");
        for key in ["memory_per_user", "max_bridges"] {
            assert!(said.contains(&format!("`{key}` is as it was before: restart")), "{said}");
            let said = check();
            assert!(said.contains(&format!("would take a restart: `{key}`\n")), "{said}");
        }
        let said = reload(home, &daemon, "");
        assert!(said.contains("`max_bridges` is as it was before"), "it still is: {said}");
        end(daemon, Signal::TERM);
    });
}

/// What a month brings: a reading each day, containers that start again, programs that come and go, a level that is
/// changed, and a daemon that is killed each week. After it there is as much as before.
#[test]
fn a_month_leaves_nothing() {
    const WEEKS: usize = 4;
    const DAYS: usize = 7;
    if skip_without_root("a_month_leaves_nothing") {
        return;
    }
    isolated_with_system("a_month_leaves_nothing", HANGS, |home| {
        let mut world = World::new(home);
        let other =
            DECLARED.replace("access = 20", "access = 30").replace("ageing = 60", "ageing = 90");
        let other = format!("{other}\n[[switch]]\nname = 'vale7'\n");
        let mut begun = Vec::new();
        for week in 0..WEEKS {
            let daemon = world.daemon(home, "");
            reload(home, &daemon, DECLARED);
            let control = Control::connect().unwrap();
            attached(&control);
            let mut used = Vec::new();
            for day in 0..DAYS {
                reload(home, &daemon, &other);
                assert!(switch(&control, "vale7").is_some(), "week {week}, day {day}");
                let level = if day % 2 == 0 { "debug" } else { "info" };
                assert!(world.run(home, "ringway", &["log", "--set-level", level]).0);
                let program = ringway::Port::open("vale7:program").unwrap();
                // The first asks anew where the second is; that the second is another, nobody would tell it.
                let again = [0, 2][day % 2];
                world.cables[again] = None;
                world.start(again);
                drop(program);
                reload(home, &daemon, DECLARED);
                attached(&control);
                assert!(world.reaches(0, 1, LIMIT), "week {week}, day {day}");
                used.push(resources(daemon.pid(), &control));
            }
            // The first day makes what is made once.
            assert_eq!(used[1], used[DAYS - 1], "week {week}");
            begun.push(used.swap_remove(1));
            drop(control);
            end(daemon, Signal::KILL);
        }
        assert_eq!(begun[0], begun[WEEKS - 1]);
    });
}
