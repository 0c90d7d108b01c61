//! Two hosts, four cables between them, and a system daemon.

use std::{collections::HashSet, sync::Mutex};

use ringway::{Control, Error, Port};
use ringway_testkit::{Netns, NicState, Proc, VethPair};
use ringway_tests::{GROUP, Home, Pair, Random, inside, until};

/// What the cables' ends are called, less the number of the host, and their queues.
pub const CABLES: [(&str, u32); 3] = [("f", 4), ("g", 1), ("z", 1)];
/// The cable that is taken away and comes again.
pub const LOOSE: &str = "d";
/// Bridges and persistent ports that come and go.
pub const BRIDGES: [&str; 2] = ["vale1", "vale2"];
pub const PERSISTENT: [&str; 2] = ["p0", "p1"];
/// What is attached to bridges: one end of a cable at most, so that no frame comes twice. A persistent port can be on
/// both bridges, and is a way from one to the other: the second stays on one bridge.
pub const ATTACHABLE: [&str; 4] = ["z0", "d1", "p0", "p1"];
const MTU: u32 = 1500;

pub struct World<'a> {
    pub home: &'a Home,
    pub hosts: [Netns; 2],
    _cables: Vec<VethPair>,
    untouched: Vec<[NicState; 2]>,
    /// Whether it is there; held while it is changed.
    pub loose: Mutex<bool>,
    /// What programs move frames on; see [`World::alone`].
    taken: Mutex<HashSet<String>>,
}

/// The right to move the cursors of a port's rings, until it is dropped.
pub struct Alone<'a> {
    taken: &'a Mutex<HashSet<String>>,
    port: String,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.taken.lock().unwrap().remove(&self.port);
    }
}

/// The interface or the switch's port that a name means, with all its rings.
pub fn port_of(spec: &str) -> &str {
    spec.split(['^', '*', '-', '@', '/', '~']).next().unwrap_or(spec)
}

impl<'a> World<'a> {
    pub fn new(home: &'a Home) -> World<'a> {
        let hosts = [Netns::quiet("rwo"), Netns::quiet("rwo")];
        let cables = CABLES.iter().enumerate().map(|(subnet, (name, queues))| {
            let [one, other] = [0, 1].map(|side| format!("{name}{side}"));
            let cable = hosts[0].veth_queues(&hosts[1], &one, &other, *queues);
            give_addresses(&hosts, name, subnet);
            cable
        });
        let cables = cables.collect();
        let mut world = World {
            home,
            hosts,
            _cables: cables,
            untouched: Vec::new(),
            loose: false.into(),
            taken: Mutex::default(),
        };
        world.untouched = CABLES.iter().map(|(name, _)| world.state(name)).collect();
        world.plug_in();
        world
    }

    fn state(&self, cable: &str) -> [NicState; 2] {
        [0, 1].map(|side| NicState::take(&self.hosts[side], &format!("{cable}{side}")))
    }

    pub fn daemon(&self) -> Proc {
        let users = "nic_users = ['65534']\n";
        self.home.system_daemon_with(GROUP, 0o660, users, |daemon| inside(&self.hosts[0], daemon))
    }

    pub fn open(&self, side: usize, spec: &str) -> Result<Port, Error> {
        self.hosts[side].enter(|| Port::open(spec))
    }

    /// Programs that open the same port share its rings, and a ring has one pair of cursors: two that
    /// move them move each other's back. `None`: another program moves frames on that port.
    pub fn alone(&self, spec: &str) -> Option<Alone<'_>> {
        let port = port_of(spec).to_owned();
        let is_free = self.taken.lock().unwrap().insert(port.clone());
        is_free.then(|| Alone { taken: &self.taken, port })
    }

    /// Takes the loose cable away, by either end.
    pub fn unplug(&self, side: usize) {
        let mut there = self.loose.lock().unwrap();
        if std::mem::replace(&mut *there, false) {
            self.hosts[side].run(&format!("ip link del {LOOSE}{side}"));
        }
    }

    pub fn plug_in(&self) {
        let mut there = self.loose.lock().unwrap();
        if !std::mem::replace(&mut *there, true) {
            let [one, other] = [0, 1].map(|side| format!("{LOOSE}{side}"));
            let cable = self.hosts[0].veth_queues(&self.hosts[1], &one, &other, 2);
            // It goes by `unplug`, or with its namespace.
            std::mem::forget(cable);
            give_addresses(&self.hosts, LOOSE, CABLES.len());
        }
    }

    /// All links up, nothing attached, no persistent ports.
    pub fn put_in_order(&self, control: &Control) {
        self.plug_in();
        for (cable, side) in self.ends() {
            self.hosts[side].run(&format!("ip link set {cable}{side} up mtu {MTU}"));
        }
        // What is not there cannot be taken away; that it is gone is looked at later.
        for host in &self.hosts {
            host.enter(|| {
                // A port on two switches leaves the one that it has joined last before the other.
                for bridge in [BRIDGES, BRIDGES].as_flattened() {
                    let cables = self.ends().map(|(cable, side)| format!("{cable}{side}"));
                    for name in cables.chain(PERSISTENT.map(String::from)) {
                        let _ = control.switch_detach(bridge, &name);
                    }
                    let _ = control.switch_delete(bridge);
                }
                // The daemon learns a little later that a client of theirs was killed.
                for name in PERSISTENT {
                    until("persistent ports are deleted", || {
                        let Err(error) = control.interface_delete(name) else { return Ok(()) };
                        match ringway_errno::errno(error.cause()) {
                            libc::EBUSY => Err(error.to_string()),
                            _ => Ok(()),
                        }
                    });
                }
            });
        }
    }

    fn ends(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let cables = CABLES.iter().map(|(name, _)| *name).chain([LOOSE]);
        cables.flat_map(|name| [(name, 0), (name, 1)])
    }

    /// Interfaces are as they were, stacks reach each other, and programs do.
    pub fn assert_works(&self, random: &mut Random) {
        // It is another one each time, and can be seen from the others.
        self.unplug(0);
        for states in &self.untouched {
            states.iter().zip(&self.hosts).for_each(|(state, host)| state.assert_restored(host));
        }
        self.plug_in();
        for (subnet, name) in CABLES.iter().map(|(name, _)| *name).chain([LOOSE]).enumerate() {
            until("the stacks reach each other", || {
                let ping = format!("ping -q -c 1 -W 1 10.5.{subnet}.2");
                let done = self.hosts[0].try_run(&ping);
                match done.status.success() {
                    true => Ok(()),
                    false => Err(format!("{name}: {}", String::from_utf8_lossy(&done.stdout))),
                }
            });
            let ends = [0, 1].map(|side| self.open(side, &format!("netmap:{name}{side}-0")));
            let ends = ends.map(|end| end.unwrap_or_else(|e| panic!("{name}: {e}")));
            Pair::of(ends, random.draw() as u32).exchange_some(64).unwrap();
        }
    }

    /// What is found twice in a row: what goes late has gone.
    pub fn settled(&self, look: impl Fn() -> String) -> String {
        let mut seen = look();
        let mut times = 0;
        until("nothing changes any more", || match look() {
            now if now == seen && times > 100 => Ok(now),
            now if now == seen => {
                times += 1;
                Err("too soon".into())
            }
            now => {
                (seen, times) = (now.clone(), 0);
                Err(now)
            }
        })
    }
}

fn give_addresses(hosts: &[Netns; 2], cable: &str, subnet: usize) {
    for (side, host) in hosts.iter().enumerate() {
        host.run(&format!("ip addr add 10.5.{subnet}.{}/24 dev {cable}{side}", side + 1));
    }
}
