//! A member of the socket's group attacks a system daemon in every way that is known, one after the other;
//! innocent bystanders watch how long their requests take and their traffic stops meanwhile, and count
//! what they lose (trust rules 2, 5, 6 and 7).
//!
//! What they put up with is measured in units of what two threads notice at the same time that do without Ringway:
//! others may use the machine, and an attacker takes processor time as any program does.
//!
//! RINGWAY_ATTACK is a single attack to be run, RINGWAY_ATTACK_SECONDS how long each goes on, and
//! RINGWAY_ATTACK_BOUND_MS what bystanders put up with in any case: on a quiet machine that may be little.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    env,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use ringway::{Control, Lossless, Multicast, Port, PortSettings};
use ringway_testkit::{Netns, Proc, skip_without_root};
use ringway_tests::{
    GROUP, Home, NOBODY, OnDrop, as_nobody_with,
    attacks::{ATTACKS, LEAVES, WORKER_BOUND},
    become_another,
    bystanders::{Bystanders, Noticed},
    inside, isolated_with_system, one_at_a_time,
    resources::resources,
    until,
};
use rustix::process::Signal;

/// Longer than an attack takes to get going.
const LIMIT: Duration = Duration::from_secs(120);
/// Longer than all of them take, besides how long they are to go on.
const HANGS: Duration = Duration::from_secs(900);
/// What bystanders put up with in any case, in milliseconds.
const BOUND: u64 = 1000;
/// And, where that is more, as many times what threads notice at the same time that have nothing to do with the
/// daemon: a request takes some steps of several processes.
const MACHINE: u32 = 10;
/// How long each attack goes on, in seconds, once it has got going.
const WATCHED: u64 = 1;
/// A switch that root has made for all.
const SWITCH: &str = "valeby";
/// The attacker's interface, and the bystanders'.
const ATTACKED: &str = "x0";
const INTERFACE: &str = "n0";
/// As long as the attacker's interface is left alone, between two disturbances.
const WHOLE: Duration = Duration::from_millis(600);
/// Longer than the daemon tidies up between two looks.
const TIDY: Duration = Duration::from_secs(2);
/// What is said when an attack has got going, by this program or that.
const GOING: [&str; 3] = ["attacking: ", "scribbleing", "done"];
/// Of `misuse.py`, and how long bystanders' traffic may stop, if that is not as always.
const DESCRIPTORS: [(&str, &str, Option<Duration>); 4] = [
    ("carry", "doorbells that carry what takes an hour to close", None),
    ("shut", "doorbells, shut down", None),
    ("fill", "doorbells, filled", None),
    ("many", "hundreds of doorbells, each with a crowd that listens", Some(WORKER_BOUND)),
];

fn setting(name: &str, default: u64) -> u64 {
    let given = env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
}

/// The hosts at both ends of two cables.
struct World {
    here: Netns,
    there: Netns,
}

/// The attacker's cable, at this end.
const CABLE: &str = "ip link add x0 type veth peer x1 netns";

impl World {
    fn new() -> World {
        let (here, there) = (Netns::quiet("rwa"), Netns::quiet("rwa"));
        // It goes with its namespaces.
        std::mem::forget(here.veth(&there, INTERFACE, "n1"));
        let world = World { here, there };
        world.cable();
        world
    }

    /// The attacker's interface, new.
    fn cable(&self) {
        let there = self.there.name().expect("it is not the machine's");
        self.here.run(&format!(
            "{CABLE} {there} && ip link property add dev x0 altname x0alt && ip link set x0 up"
        ));
        self.there.run("ip link set x1 up");
    }

    /// Does to the attacker's interface what an administrator may, until told to stop.
    fn churn(&self, stop: &AtomicBool) {
        while !stop.load(Relaxed) {
            for line in [
                "ip link set x0 down && ip link set x0 up",
                "ip link set x0 down && ip link set x0 name x9 && ip link set x9 name x0 && ip link set x0 up",
                "ip link property del dev x0 altname x0alt && ip link property add dev x0 altname x0alt",
                "ip link del x0",
            ] {
                self.here.run(line);
            }
            self.cable();
            thread::sleep(WHOLE);
        }
    }

    fn bystanders(&self) -> Bystanders {
        let mut bystanders = Bystanders::default();
        bystanders.exchange_bytes();
        bystanders.ask(&format!("{SWITCH}:asks"), become_another);
        // A switch that is made and goes.
        bystanders.ask("valeasks:p", become_another);
        bystanders.exchange("a pipe", 1, || {
            become_another();
            Ok([Port::open("by{1")?, Port::open("by}1")?])
        });
        bystanders.exchange("lossless ports of the attacked switch", 2, || {
            become_another();
            Ok([Port::open("valeby:a")?, Port::open("valeby:b")?])
        });
        let nic = |netns: &Netns, name| netns.enter(|| Port::open(name));
        let ports = [nic(&self.here, "netmap:n0"), nic(&self.there, "netmap:n1")];
        bystanders.exchange("an interface", 3, || {
            let [here, there] = ports;
            Ok([here?, there?])
        });
        let control = Control::connect().expect("the daemon answers");
        let lossless = || Some(Some(Lossless::default()));
        for port in ["valeby:a", "valeby:b"] {
            until("the bystanders' ports are there", || {
                let settings = PortSettings { lossless: lossless(), ..PortSettings::default() };
                control.switch_port(port, settings).map_err(|e| e.to_string())
            });
        }
        bystanders
    }
}

/// An attacker's program, which has got going.
fn start(program: Command) -> (Proc, String) {
    let mut attacker = Proc::spawn(program);
    let begin = Instant::now();
    let got = until_going(&mut attacker, begin);
    (attacker, got)
}

fn until_going(attacker: &mut Proc, begin: Instant) -> String {
    loop {
        let said = attacker.output();
        if GOING.iter().any(|word| said.contains(word)) {
            let got = said.lines().find_map(|line| line.strip_prefix(GOING[0]));
            return got.unwrap_or_default().to_owned();
        }
        assert!(attacker.is_running(), "the attacker has ended: {said}");
        assert!(begin.elapsed() < LIMIT, "the attacker does not get going: {said}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// An attack, with what it tries, and how long bystanders' traffic may stop, if that is not as always.
struct Attacking {
    name: &'static str,
    tries: &'static str,
    bound: Option<Duration>,
    program: Command,
}

/// All attacks.
fn programs(home: &Home) -> Vec<Attacking> {
    let misuse = DESCRIPTORS.map(|(what, tries, bound)| {
        let mut python = home.system_command("python3");
        python.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/misuse.py"));
        python.args([NOBODY, GROUP].map(|id| id.to_string()));
        python.args([what, &format!("{SWITCH}:attacker")]);
        Attacking { name: what, tries, bound, program: python }
    });
    let own = ATTACKS.iter().map(|attack| {
        let mut program = home.system_command(home.bin().join("attacker"));
        program.args([attack.name, SWITCH, ATTACKED]);
        let program = as_nobody_with(attack.capabilities, program);
        Attacking { name: attack.name, tries: attack.tries, bound: attack.bound, program }
    });
    let only = env::var("RINGWAY_ATTACK").ok();
    let chosen = |name: &str| only.as_ref().is_none_or(|only| only == name);
    misuse.into_iter().chain(own).filter(|it| chosen(it.name)).collect()
}

fn line(name: &str, noticed: Noticed, got: &str) -> String {
    let Noticed { request, traffic, lost, machine } = noticed;
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    let times = [request, traffic, machine].map(|time| format!("{:>11}", ms(time))).join(" ");
    format!("{name:<16} {times} {lost:>6}  {got}")
}

/// What the daemon holds when its threads that tidy up have gone, of which nobody tells.
fn settled(daemon: u32, control: &Control) -> String {
    let mut before = resources(daemon, control);
    loop {
        thread::sleep(TIDY);
        let now = resources(daemon, control);
        if now == before {
            return now;
        }
        before = now;
    }
}

#[test]
fn bystanders_notice_no_attack() {
    const NAME: &str = "bystanders_notice_no_attack";
    if skip_without_root(NAME) {
        return;
    }
    let _turn = one_at_a_time();
    let watched = Duration::from_secs(setting("RINGWAY_ATTACK_SECONDS", WATCHED));
    let bound = Duration::from_millis(setting("RINGWAY_ATTACK_BOUND_MS", BOUND));
    let attacks = ATTACKS.len() + DESCRIPTORS.len();
    isolated_with_system(NAME, HANGS + watched * attacks as u32, |home| {
        home.install(&[("attacker", "ringway-tests"), ("ringway", "ringway-cli")]);
        let world = World::new();
        let more = "nic_users = ['65534']\nmemory_per_user = 512\n";
        let mut daemon = home.system_daemon_with(GROUP, 0o660, more, |d| inside(&world.here, d));
        let control = Control::connect().expect("the daemon answers");
        control.switch_new(SWITCH, false).expect("root may");
        // Whatever is opened once is open after this.
        drop(world.bystanders());
        let untouched = settled(daemon.pid(), &control);

        let mut bystanders = world.bystanders();
        bystanders.go_on();
        let heads = ["request", "traffic", "machine"].map(|head| format!("{head:>11}")).join(" ");
        println!("{:<16} {heads} {:>6}", "attack", "lost");
        // Interfaces were opened meanwhile.
        println!("{}", line("opening ports", bystanders.noticed(), ""));
        bystanders.reset();
        let begin = Instant::now();
        while begin.elapsed() < watched {
            bystanders.go_on();
        }
        bystanders.go_on();
        println!("{}", line("none", bystanders.noticed(), ""));
        let mut noticed_something = Vec::new();
        for Attacking { name, tries, bound: own_bound, program } in programs(home) {
            if name == LEAVES {
                control.switch_multicast(SWITCH, Multicast::Querier).expect("root may");
            }
            bystanders.reset();
            let stop = AtomicBool::new(false);
            let got = thread::scope(|scope| {
                let _stop = OnDrop(|| stop.store(true, Relaxed));
                if name == "churn" {
                    scope.spawn(|| world.churn(&stop));
                }
                let (attacker, got) = start(inside(&world.here, program));
                let going = Instant::now();
                bystanders.go_on();
                while going.elapsed() < watched {
                    bystanders.go_on();
                }
                attacker.kill();
                got
            });
            bystanders.go_on();
            let noticed = bystanders.noticed();
            control.switch_multicast(SWITCH, Multicast::Flood).expect("root may");
            println!("{}", line(name, noticed, &got));
            assert!(daemon.is_running(), "{name}: the daemon ended: {}", daemon.output());
            let at_least = noticed.machine * MACHINE;
            let [bound, traffic] = [bound, own_bound.unwrap_or(bound)].map(|b| b.max(at_least));
            if noticed.request > bound || noticed.traffic > traffic || noticed.lost > 0 {
                let detail = bystanders.in_detail();
                let bounds = format!("bounds {bound:?}, {traffic:?}");
                noticed_something.push(format!("{name} ({tries}, {bounds}):\n{detail}"));
            }
        }
        drop(bystanders);
        until(&format!("all is as before: {untouched}"), || {
            match resources(daemon.pid(), &control) {
                now if now == untouched => Ok(()),
                now => Err(now),
            }
        });
        drop(control);
        daemon.signal(Signal::TERM);
        let (status, said) = daemon.wait();
        assert!(status.success() && !said.contains("panicked"), "{said}");
        let said = noticed_something.join("\n");
        assert!(noticed_something.is_empty(), "bystanders noticed:\n{said}");
    });
}
