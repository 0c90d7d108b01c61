//! What goes on all the time: each worker does one thing after another, at random.

use std::{collections::BTreeMap, fmt, thread, time::Duration};

use ringway::{Control, Error, Filter, Forwarding, Interest, PortShape};
use ringway_testkit::Proc;
use ringway_tests::{Pair, Random, as_nobody, inside};
use rustix::{io::Errno, process::Signal};

use crate::world::{ATTACHABLE, BRIDGES, CABLES, LOOSE, PERSISTENT, World, port_of};

type Worker = fn(&World, &mut Random, &mut Tally);

/// Each on a thread of its own.
pub const WORKERS: [Worker; 5] = [links, clients, clients, changes, ports];

/// How often what was done, and how often what was refused.
#[derive(Default)]
pub struct Tally(BTreeMap<String, [u64; 2]>);

impl Tally {
    fn count<T>(&mut self, what: &str, result: &Result<T, Error>) {
        self.0.entry(what.into()).or_default()[usize::from(result.is_err())] += 1;
        let Err(error) = result else { return };
        // All else is refused because of what others do at the moment.
        let errno = Errno::from_raw_os_error(ringway_errno::errno(error.cause()));
        let unexpected = [Errno::PROTO, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::PERM];
        assert!(!unexpected.contains(&errno), "{what}: {error}");
        self.0.entry(format!("  {errno}")).or_default()[1] += 1;
    }

    pub fn add(&mut self, other: Tally) {
        for (what, counts) in other.0 {
            let sum = self.0.entry(what).or_default();
            (0..2).for_each(|i| sum[i] += counts[i]);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, [done, not])| writeln!(f, "{what}: {done}, not: {not}"))
    }
}

fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn pause(random: &mut Random, most: Duration) {
    thread::sleep(Duration::from_nanos(random.below(most.as_nanos() as u64)));
}

/// A link goes down and up, has another MTU, or is unplugged and comes again.
fn links(world: &World, random: &mut Random, tally: &mut Tally) {
    let side = random.below(2) as usize;
    let name = format!("{}{side}", one_of(random, &CABLES).0);
    match random.below(8) {
        0 => {
            // Frames that are too long for a program are no reason to refuse this, but may be.
            let mtu = 576 + random.below(3000);
            world.hosts[side].try_run(&format!("ip link set {name} mtu {mtu}"));
            tally.count("MTUs", &Ok(()));
        }
        1 | 2 => {
            world.unplug(side);
            pause(random, Duration::from_millis(30));
            world.plug_in();
            tally.count("interfaces deleted and made", &Ok(()));
        }
        _ => {
            world.hosts[side].run(&format!("ip link set {name} down"));
            pause(random, Duration::from_millis(20));
            world.hosts[side].run(&format!("ip link set {name} up"));
            tally.count("links down and up", &Ok(()));
        }
    }
    pause(random, Duration::from_millis(20));
}

/// Ports of an interface: what follows its name, and whether there are rings to send and to receive.
const PORTS: [(&str, bool, bool); 12] = [
    ("", true, true),
    ("-0", true, true),
    ("-1", true, true),
    ("-0/T", true, false),
    ("-0/R", false, true),
    ("~0", false, true),
    ("^", true, true),
    ("*", true, true),
    ("@mode=generic", true, true),
    ("@mode=packet", true, true),
    ("@filter=ether proto 0x88b5", true, true),
    ("/R@filter=udp@sample=2", false, true),
];

/// A port, the host that has it, and whether there are rings to send and to receive.
fn any_port(random: &mut Random) -> (String, usize, bool, bool) {
    let side = random.below(2) as usize;
    let cables: Vec<_> = CABLES.iter().map(|(name, _)| *name).chain([LOOSE]).collect();
    match random.below(8) {
        0 => (format!("{}:c{}", one_of(random, &BRIDGES), random.below(3)), side, true, true),
        1 => (format!("netmap:{}^", one_of(random, &PERSISTENT)), side, true, true),
        _ => {
            let (rest, sends, receives) = one_of(random, &PORTS);
            (format!("netmap:{}{side}{rest}", one_of(random, &cables)), side, sends, receives)
        }
    }
}

/// A client process comes, works for a while, and is killed.
fn clients(world: &World, random: &mut Random, tally: &mut Tally) {
    let (port, side, sends, receives) = any_port(random);
    let flow = (random.draw() as u32).to_string();
    let stack = format!("{}^", port_of(&port));
    let alone = world.alone(&port);
    let args = match random.below(4) {
        _ if alone.is_none() => vec!["hold", &port],
        0 if sends && receives && port.starts_with("netmap:") && !port.ends_with(['^', '*']) => {
            vec!["join", &port, &stack]
        }
        0 | 1 => vec!["hold", &port],
        2 if sends => vec!["send", &port, &flow],
        _ if receives => vec!["receive", &port, &flow],
        _ => vec!["send", &port, &flow],
    };
    let command = world.home.system_traffic(&args);
    let command = if random.below(2) == 0 { command } else { as_nobody(command) };
    let process = Proc::spawn(inside(&world.hosts[side], command));
    pause(random, Duration::from_millis(150));
    process.signal(one_of(random, &[Signal::KILL, Signal::TERM, Signal::INT]));
    let (_, output) = process.wait();
    for word in ["wrong", "panicked"] {
        assert!(!output.contains(word), "{args:?}: {output}");
    }
    let what = format!("clients that {}", args[0]);
    let counts = tally.0.entry(what).or_default();
    counts[usize::from(output.contains("error"))] += 1;
}

/// Filters, queues, switches and persistent ports change.
fn changes(world: &World, random: &mut Random, tally: &mut Tally) {
    let host = &world.hosts[random.below(2) as usize];
    host.enter(|| change(random, tally));
    pause(random, Duration::from_millis(5));
}

fn change(random: &mut Random, tally: &mut Tally) {
    let control = Control::connect().expect("the daemon takes connections");
    let spec = format!("netmap:{}{}", one_of(random, &CABLES).0, random.below(2));
    let bridge = one_of(random, &BRIDGES);
    let (what, result) = match random.below(10) {
        0 => {
            let text = one_of(random, &["udp", "ether proto 0x88b5", "tcp port 80 or icmp", "arp"]);
            let filter = Filter::new(text).expect("it compiles").one_in(1 + random.below(3) as u32);
            ("filters set", control.set_filter(&spec, Some(filter)))
        }
        1 => ("filters cleared", control.set_filter(&spec, None)),
        2 => {
            let (queue, lead) = (random.below(4) as u16, random.below(2) == 0);
            ("queues led", control.redirect_queues(&spec, &[queue], lead))
        }
        3 | 4 => {
            let (name, stack) = (one_of(random, &ATTACHABLE), random.below(2) == 0);
            let bridge = bridge_of(name, bridge);
            ("attached", control.switch_attach(bridge, name, stack).map(drop))
        }
        5 => {
            let name = one_of(random, &ATTACHABLE);
            ("detached", control.switch_detach(bridge_of(name, bridge), name))
        }
        6 => {
            let name = one_of(random, &PERSISTENT);
            ("persistent ports made", control.interface_new(name, PortShape::default()).map(drop))
        }
        7 => ("persistent ports deleted", control.interface_delete(one_of(random, &PERSISTENT))),
        8 => {
            let forwarding = match random.below(2) {
                0 => Forwarding::Flood,
                _ => Forwarding::default(),
            };
            ("forwarding chosen", control.switch_forward(bridge, forwarding))
        }
        _ => ("looks", control.ports().and(control.switches()).map(drop)),
    };
    tally.count(what, &result);
}

/// Where it is attached when `bridge` was drawn.
fn bridge_of(name: &str, bridge: &'static str) -> &'static str {
    if name == PERSISTENT[1] { BRIDGES[1] } else { bridge }
}

/// Ports are opened and closed in this process, faster than processes come and go.
fn ports(world: &World, random: &mut Random, tally: &mut Tally) {
    if random.below(8) == 0 {
        let pair = Pair::open("vale3:x", "vale3:y", random.draw() as u32);
        tally.count("pairs on a switch", &pair.and_then(|mut pair| pair.exchange()));
        return;
    }
    let (spec, side, sends, _) = any_port(random);
    let opened = world.open(side, &spec);
    tally.count("ports opened", &opened);
    let Ok(mut port) = opened else { return };
    let alone = world.alone(&spec);
    if sends && alone.is_some() {
        port.tx(0).push(&[0xff; 60]);
    }
    port.poll(Interest::Both);
    pause(random, Duration::from_millis(10));
    port.poll(Interest::Both);
}
