//! SIGKILL among users of network interfaces, 200 times at random moments: the others go on, and the
//! interfaces are as they were.

use std::{
    sync::atomic::Ordering::Relaxed,
    thread,
    time::{Duration, Instant},
};

use ringway::{Cause, Control, Error, Port, PortShape};
use ringway_testkit::{Netns, NicState, Proc, Snapshot, VethPair, skip_without_root};
use ringway_tests::{
    GROUP, Home, OnDrop, Pair, Random, as_nobody, ends, inside, isolated_with_system, kills,
    kills_limit, one_at_a_time,
    resources::{descriptors, mapped_memfds, resources},
    stream::{Progress, receive, send},
    until,
};
use rustix::process::Signal;

/// Shares of the kills: of a client, and of a daemon.
const CLIENTS: u32 = 160;
const DAEMONS: u32 = 40;

/// Longer than a client takes to get going.
const LIMIT: Duration = Duration::from_secs(30);
/// Longer than all rounds take.
const HANGS: Duration = Duration::from_secs(900);
/// The random moment after a victim is seen to be in mid-traffic: any up to this, in nanoseconds.
const IN_TRAFFIC: u64 = 5_000_000;
/// The same after its start, where nobody waits for traffic.
const AT_START: u64 = 60_000_000;

/// The flows of the uninvolved; victims' are above.
const ASIDE: [u32; 3] = [1, 2, 3];
const VICTIMS: u32 = 1000;

/// The host whose interfaces programs have, and one at the other ends of the cables.
struct World {
    here: Netns,
    there: Netns,
    _cables: Vec<VethPair>,
}

/// Interfaces of the first host; those of the other end in 1.
const INTERFACES: [&str; 4] = ["q0", "s0", "e0", "z0"];

impl World {
    fn new() -> World {
        let (here, there) = (Netns::quiet("rwk"), Netns::quiet("rwk"));
        let cables = [("q", 4), ("s", 1), ("e", 1), ("z", 1)].map(|(name, queues)| {
            here.veth_queues(&there, &format!("{name}0"), &format!("{name}1"), queues)
        });
        // The stacks know each other: whoever asks for an address in a moment when nobody is there
        // asks again a second later.
        let mac = |netns: &Netns, name| netns.run(&format!("cat /sys/class/net/{name}/address"));
        let macs = [mac(&here, "s0"), mac(&there, "s1")];
        for (netns, name, own, other, mac) in
            [(&here, "s0", 1, 2, &macs[1]), (&there, "s1", 2, 1, &macs[0])]
        {
            netns.run(&format!(
                "ip addr add 10.8.0.{own}/24 dev {name} &&
                 ip neigh add 10.8.0.{other} lladdr {} dev {name} nud permanent",
                mac.trim()
            ));
        }
        World { here, there, _cables: cables.into() }
    }

    fn daemon(&self, home: &Home) -> Proc {
        let users = "nic_users = ['65534']\n";
        home.system_daemon_with(GROUP, 0o660, users, |daemon| inside(&self.here, daemon))
    }

    fn open(&self, here: &str, there: &str) -> Result<[Port; 2], Error> {
        let here = self.here.enter(|| Port::open(here))?;
        Ok([here, self.there.enter(|| Port::open(there))?])
    }

    /// The sockets of queues that were used stay there for the next program, as long as others are in use:
    /// from here on those of the queues that victims have.
    fn open_idle_queues(&self) -> Result<(), Error> {
        for queue in [0, 1] {
            self.open(&format!("netmap:q0-{queue}"), &format!("netmap:q1-{queue}"))?;
        }
        Ok(())
    }

    /// Starts a client at the first host, root's or an ordinary user's.
    fn client(&self, home: &Home, root: bool, args: &[&str]) -> Proc {
        let traffic = home.system_traffic(args);
        Proc::spawn(inside(&self.here, if root { traffic } else { as_nobody(traffic) }))
    }

    /// Lets the stacks talk until the result is dropped.
    fn ping(&self) -> Ping {
        let mut ping = self.there.command("ping");
        ping.args(["-i", "0.005", "10.8.0.1"]);
        Ping(Proc::spawn(ping))
    }
}

struct Ping(Proc);

impl Ping {
    /// Waits until another `count` replies have come.
    fn goes_on(&self, count: usize, what: &str) {
        let replies = || self.0.output().matches("bytes from").count();
        let was = replies();
        until(what, || match replies() {
            now if now >= was + count => Ok(()),
            now => Err(format!("{now} replies after {was}; it said {}", tail(&self.0.output()))),
        });
    }
}

fn tail(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

/// What a victim does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Receive,
    Send,
    /// Between the interface and its stack.
    Bridge,
}
use Task::{Bridge, Receive, Send};

/// What each does on which port, and the port at the other end of the cable.
const TASKS: [(Task, &str, &str); 15] = [
    (Receive, "netmap:q0-0", "netmap:q1-0/T"),
    (Receive, "netmap:q0~1", "netmap:q1-1/T"),
    (Send, "netmap:q0-1", "netmap:q1-1/R"),
    (Receive, "netmap:s0", "netmap:s1/T"),
    (Send, "netmap:s0", "netmap:s1/R"),
    (Bridge, "netmap:s0", ""),
    (Receive, "netmap:s0~0", "netmap:s1/T"),
    (Receive, "netmap:s0@filter=ether proto 0x88b5", "netmap:s1/T"),
    (Receive, "netmap:s0/R@filter=not ip@sample=3", "netmap:s1/T"),
    (Receive, "netmap:s0@mode=generic", "netmap:s1/T"),
    (Send, "netmap:s0@mode=generic", "netmap:s1/R"),
    (Bridge, "netmap:s0@mode=generic", ""),
    (Receive, "netmap:s0@mode=packet", "netmap:s1/T"),
    (Send, "netmap:s0@mode=packet", "netmap:s1/R"),
    (Bridge, "netmap:s0@mode=packet", ""),
];

/// A client that dies.
#[derive(Debug)]
struct Victim {
    round: u32,
    task: Task,
    port: &'static str,
    partner: &'static str,
    root: bool,
    /// Whether it is given the time to get going.
    going: bool,
}

impl Victim {
    fn pick(round: u32, random: &mut Random) -> Victim {
        let (task, port, partner) = TASKS[round as usize % TASKS.len()];
        let [root, going] = [random.below(2) == 0, random.below(4) != 0];
        Victim { round, task, port, partner, root, going }
    }

    fn flow(&self) -> u32 {
        VICTIMS + self.round
    }

    fn start(&self, home: &Home, world: &World) -> Proc {
        let flow = self.flow().to_string();
        let args = match self.task {
            Receive => vec!["receive", self.port, &flow],
            Send => vec!["send", self.port, &flow],
            Bridge => vec!["join", self.port, "netmap:s0^"],
        };
        world.client(home, self.root, &args)
    }

    /// Lets it work, and kills it.
    fn run(&self, home: &Home, world: &World, random: &mut Random) {
        let (word, moment) = match (self.going, self.task) {
            (false, _) => (None, AT_START),
            (true, Bridge) => (Some("joined"), IN_TRAFFIC),
            (true, _) => (Some("going"), IN_TRAFFIC),
        };
        let ping = (self.task == Bridge).then(|| world.ping());
        let partner = Progress::default();
        thread::scope(|scope| {
            let _stop = OnDrop(|| partner.stop.store(true, Relaxed));
            if ping.is_none() {
                let port = world.there.enter(|| Port::open(self.partner));
                let mut port = port.unwrap_or_else(|e| panic!("{self:?}: {e}"));
                let partner = &partner;
                scope.spawn(move || match self.task {
                    Receive => send(&mut port, self.flow(), partner).unwrap(),
                    _ => receive(&mut port, partner).unwrap(),
                });
            }
            let process = self.start(home, world);
            if let Some(word) = word {
                process.wait_for(word, LIMIT);
            }
            if self.going && self.task == Send {
                until("the partner receives", || match partner.flow.load(Relaxed) {
                    now if now == u64::from(self.flow()) => Ok(()),
                    other => Err(format!("{self:?}: frames of flow {other}")),
                });
            }
            if self.going
                && let Some(ping) = &ping
            {
                ping.goes_on(3, "the stacks talk through the program");
            }
            thread::sleep(Duration::from_nanos(random.below(moment)));
            process.signal(Signal::KILL);
            let (_, output) = process.wait();
            for word in ["wrong", "error", "panicked"] {
                assert!(!output.contains(word), "{self:?}: {output}");
            }
            if let Some(ping) = &ping {
                ping.goes_on(3, &format!("{self:?}: the stacks talk without the program"));
            }
        });
    }
}

/// Those that must not notice: two programs of root's, two with another user's between them, and one
/// that reaches an interface over a switch.
fn uninvolved(world: &World) -> Result<[Pair; 3], Error> {
    let mut between_queues = Pair::of(world.open("netmap:q0-3", "netmap:q1-3")?, ASIDE[0]);
    world.open_idle_queues()?;
    between_queues.exchange_some(64)?;
    let ends = ["netmap:e1", "netmap:q1-2"].map(|spec| world.there.enter(|| Port::open(spec)));
    let [one, other] = ends;
    let through_another = Pair::of([one?, other?], ASIDE[1]);
    let control = Control::connect()?;
    world.here.enter(|| control.switch_attach("valek", "z0", false))?;
    let over_a_switch = Pair::of(world.open("valek:z", "netmap:z1")?, ASIDE[2]);
    Ok([between_queues, through_another, over_a_switch])
}

#[test]
fn killed_clients_leave_interfaces_as_they_were() {
    if skip_without_root("killed_clients_leave_interfaces_as_they_were") {
        return;
    }
    let _turn = one_at_a_time();
    isolated_with_system(
        "killed_clients_leave_interfaces_as_they_were",
        kills_limit(HANGS),
        |home| {
            let mut random = Random::seeded();
            let before = Snapshot::take();
            let world = World::new();
            let untouched = INTERFACES.map(|name| NicState::take(&world.here, name));
            let untouched_s1 = NicState::take(&world.there, "s1");
            let daemon = world.daemon(home);
            let bystander = world.client(home, false, &["join", "netmap:e0", "netmap:q0-2"]);
            bystander.wait_for("joined", LIMIT);
            let mut pairs = uninvolved(&world).unwrap();
            pairs.iter_mut().for_each(|pair| pair.exchange_some(64).unwrap());
            let control = Control::connect().unwrap();
            let baseline = resources(daemon.pid(), &control);
            let busy = INTERFACES.map(|name| NicState::take(&world.here, name));

            let progress: [Progress; 3] = Default::default();
            let frames = || progress.each_ref().map(|p| p.frames.load(Relaxed));
            let start = Instant::now();
            thread::scope(|scope| {
                let _stop = OnDrop(|| progress.iter().for_each(|p| p.stop.store(true, Relaxed)));
                for (mut pair, progress) in pairs.into_iter().zip(&progress) {
                    scope.spawn(move || {
                        while !progress.stop.load(Relaxed) {
                            progress.frames.fetch_add(pair.exchange().unwrap(), Relaxed);
                            // Victims shall get the most of the machine.
                            thread::sleep(Duration::from_millis(5));
                        }
                    });
                }
                for round in 0..kills(CLIENTS) {
                    let victim = Victim::pick(round, &mut random);
                    victim.run(home, &world, &mut random);
                    // One that was killed while it took over another user's has closed that.
                    world.open_idle_queues().unwrap();
                    let was = frames();
                    until("the uninvolved go on", || {
                        match frames().iter().zip(was).all(|(now, was)| *now >= was + 100) {
                            true => Ok(()),
                            false => Err(format!("{victim:?}: {was:?}, {:?}", frames())),
                        }
                    });
                    until(&format!("all is as before: {baseline}"), || {
                        match resources(daemon.pid(), &control) {
                            now if now == baseline => Ok(()),
                            now => Err(format!("{victim:?}: {now}")),
                        }
                    });
                    let at = INTERFACES.iter().position(|name| victim.port.contains(name));
                    busy[at.expect("on an interface")].assert_restored(&world.here);
                }
            });
            println!("frames of the uninvolved: {:?}; {:?}", frames(), start.elapsed());
            bystander.kill();
            drop(control);
            daemon.signal(Signal::TERM);
            let (status, said) = daemon.wait();
            assert!(status.success(), "{said}");
            untouched.iter().for_each(|state| state.assert_restored(&world.here));
            untouched_s1.assert_restored(&world.there);
            drop(world);
            before.assert_clean();
        },
    );
}

#[test]
fn killed_daemons_leave_interfaces_as_they_were() {
    if skip_without_root("killed_daemons_leave_interfaces_as_they_were") {
        return;
    }
    let _turn = one_at_a_time();
    isolated_with_system(
        "killed_daemons_leave_interfaces_as_they_were",
        kills_limit(HANGS),
        |home| {
            let mut random = Random::seeded();
            let before = Snapshot::take();
            let world = World::new();
            let untouched = INTERFACES.map(|name| NicState::take(&world.here, name));
            let start = Instant::now();
            let me = std::process::id();
            let mut baseline = None;
            for round in 0..kills(DAEMONS) {
                kill_a_daemon(home, &world, &mut random, round);
                untouched.iter().for_each(|state| state.assert_restored(&world.here));
                // Whatever the runtime opens once is open after the first round.
                let now = (descriptors(me), mapped_memfds(me));
                assert_eq!(baseline.get_or_insert_with(|| now.clone()), &now, "round {round}");
            }
            println!("{:?}", start.elapsed());
            drop(world);
            before.assert_clean();
        },
    );
}

/// All kinds of users of interfaces.
struct Users {
    /// Of root's: they go on without the daemon.
    pair: Pair,
    ping: Ping,
    /// Another user's: it learns of the daemon's end.
    theirs: Proc,
    others: [Proc; 2],
}

fn settle(home: &Home, world: &World, flow: u32) -> Result<Users, Error> {
    let flow = flow.to_string();
    let theirs = world.client(home, false, &["receive", "netmap:q0-1", &flow]);
    let bridge = world.client(home, true, &["join", "netmap:s0", "netmap:s0^"]);
    let sender = home.system_traffic(&["send", "netmap:q1-1/T", &flow]);
    let sender = Proc::spawn(inside(&world.there, sender));
    let pair = Pair::of(world.open("netmap:q0-3", "netmap:q1-3")?, ASIDE[0]);
    world.here.enter(|| -> Result<(), Error> {
        let control = Control::connect()?;
        // The daemon before this one may have had them: then they come back by themselves.
        let set_up = |result: Result<(), Error>| match result {
            Err(error) if [Cause::Exists, Cause::Busy].contains(&error.cause()) => Ok(()),
            result => result,
        };
        set_up(control.interface_new("p1", PortShape::default()).map(drop))?;
        set_up(control.switch_attach("valek", "p1", true).map(drop))?;
        set_up(control.switch_attach("valek", "z0", true).map(drop))
    })?;
    Ok(Users { pair, ping: world.ping(), theirs, others: [bridge, sender] })
}

/// Kills the daemon among its users: root's go on, others learn of it.
fn kill_a_daemon(home: &Home, world: &World, random: &mut Random, round: u32) {
    let daemon = world.daemon(home);
    let kill = |moment| {
        thread::sleep(Duration::from_nanos(moment));
        daemon.signal(Signal::KILL);
        assert!(ends(daemon.pid(), LIMIT));
    };
    // While they come, or when all are there.
    if random.below(3) == 0 {
        let moment = random.below(2 * AT_START);
        thread::scope(|scope| {
            // Whatever becomes of them.
            scope.spawn(|| drop(settle(home, world, VICTIMS + round)));
            kill(moment);
        });
        return;
    }
    let mut users = settle(home, world, VICTIMS + round).unwrap();
    users.pair.exchange_some(64).unwrap();
    users.others[0].wait_for("joined", LIMIT);
    users.theirs.wait_for("going", LIMIT);
    users.ping.goes_on(3, "the stacks talk through the program");
    kill(random.below(IN_TRAFFIC));
    users.pair.exchange_some(200).unwrap();
    users.ping.goes_on(3, "the program goes on without the daemon");
    let (status, output) = users.theirs.wait();
    assert!(!status.success() && output.contains("ringwayd"), "round {round}: {output}");
}
