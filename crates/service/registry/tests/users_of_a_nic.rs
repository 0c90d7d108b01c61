//! The lives of two users' ports of one interface, in any order: opened by any of its names, filtered,
//! closed, with queues and with host rings, while the interface comes and goes, is renamed, and moves.
//! Beside them goes a plain model, which says what must be granted, and what must be refused. Whatever
//! happens, nothing ends the registry (trust rule 7), and in the end nothing is left.

mod common;

use common::{World, all, one_at_a_time, select};
use libc::{EBUSY, ENXIO};
use proptest::{collection::vec, prelude::*, sample::select as one_of};
use ringway_proto::{Filter, Request, RingSelection, RxSelector};
use ringway_region::Sizes;
use ringway_registry::{Caller, Handle, Registry, Settings};
use ringway_testkit::{Netns, isolate_thread, skip_without_root};

/// Another user, besides this process's.
const SOMEBODY: u32 = 12345;
/// Its name at first, the one that it is given, and its alternative name.
const NAMES: [&str; 3] = ["n0", "m0", "another0"];

#[derive(Clone, Debug)]
enum Op {
    Open {
        somebody: bool,
        name: &'static str,
        rings: RingSelection,
    },
    Close(usize),
    /// The one who asks need not have the interface open.
    Filter {
        somebody: bool,
        name: &'static str,
        host: bool,
        set: bool,
    },
    Attach,
    Detach,
    /// The registry looks.
    Look,
    /// The interface is made if there is none, else deleted.
    Vanish,
    Rename,
    Alternative,
    /// Into another namespace, or back.
    Move,
    Down,
}

fn op() -> impl Strategy<Value = Op> {
    let name = || prop_oneof![4 => Just(NAMES[0]), 1 => Just(NAMES[1]), 2 => Just(NAMES[2])];
    let rings = one_of(vec![
        RingSelection::All,
        RingSelection::One(0),
        RingSelection::One(1),
        RingSelection::Host,
        RingSelection::Host,
        RingSelection::AllAndHost,
    ]);
    prop_oneof![
        8 => (any::<bool>(), name(), rings)
            .prop_map(|(somebody, name, rings)| Op::Open { somebody, name, rings }),
        6 => any::<usize>().prop_map(Op::Close),
        3 => (any::<bool>(), name(), any::<bool>(), any::<bool>())
            .prop_map(|(somebody, name, host, set)| Op::Filter { somebody, name, host, set }),
        1 => Just(Op::Attach),
        1 => Just(Op::Detach),
        2 => Just(Op::Look),
        2 => Just(Op::Vanish),
        1 => Just(Op::Rename),
        1 => Just(Op::Alternative),
        1 => Just(Op::Move),
        1 => Just(Op::Down),
    ]
}

/// What an administrator sees of the interface.
#[derive(Default)]
struct Link {
    there: bool,
    renamed: bool,
    alternative: bool,
    moved: bool,
    /// It has changed since it was last without users.
    changed: bool,
}

impl Link {
    fn name(&self) -> &'static str {
        NAMES[usize::from(self.renamed)]
    }

    /// Whether the caller's namespace has it under that name.
    fn is_called(&self, name: &str) -> bool {
        let called = name == self.name() || name == NAMES[2] && self.alternative;
        self.there && !self.moved && called
    }
}

struct Life {
    world: World,
    here: Netns,
    away: Netns,
    link: Link,
    open: Vec<Handle>,
    /// It was attached to a switch: then that is who has it.
    attached: bool,
}

impl Life {
    fn new() -> Life {
        isolate_thread();
        let sizes = Sizes { buf_num: 16384, ..Sizes::GLOBAL };
        let settings = Settings { global_region: sizes, nic_slots: 256, ..Settings::default() };
        let world = World { registry: Registry::new(settings), caller: Caller::myself() };
        let (here, away) = (Netns::root(), Netns::quiet("rwl"));
        Life { world, here, away, link: Link::default(), open: Vec::new(), attached: false }
    }

    fn become_user(&mut self, somebody: bool) {
        self.world.caller = Caller::myself();
        if somebody {
            self.world.caller.uid = SOMEBODY;
        }
    }

    /// What the rules say of a request to open; `None`: it depends on who else has what, or on what the
    /// registry has heard yet.
    fn judge(&self, name: &str) -> Option<Result<(), i32>> {
        match self.link.is_called(name) {
            _ if self.link.changed => None,
            false => Some(Err(ENXIO)),
            true if self.open.is_empty() && !self.attached => Some(Ok(())),
            true => None,
        }
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match *op {
            Op::Open { somebody, name, rings } => {
                self.become_user(somebody);
                let answer = self.world.register(name, select(rings));
                let short = answer.as_ref().map(drop).map_err(|e| *e);
                match self.judge(name) {
                    Some(expected) => prop_assert_eq!(short, expected, "{} {:?}", name, rings),
                    None if !self.link.changed => {
                        prop_assert!(matches!(short, Ok(()) | Err(EBUSY)), "{:?}", short);
                    }
                    None => {}
                }
                self.open.extend(answer.ok().map(|(handle, _)| handle));
            }
            Op::Close(n) if !self.open.is_empty() => {
                let handle = self.open.remove(n % self.open.len());
                self.world.registry.close(handle);
            }
            Op::Filter { somebody, name, host, set } => {
                self.become_user(somebody);
                let insns = ringway_filter::Program::everything().insns().to_vec();
                let filter = set.then(|| Filter { text: "everything".into(), insns, one_in: 1 });
                let rings = if host { RxSelector::Host } else { RxSelector::Queues };
                let request = Request::SetFilter { name: name.into(), rings, filter };
                let answer = self.world.ask(request);
                if self.open.is_empty() && !self.link.changed {
                    prop_assert!(answer.is_err(), "nobody has it open");
                }
            }
            Op::Attach => {
                self.become_user(false);
                self.attached |= self.world.attach(&format!("vale0:{}", self.link.name())).is_ok();
            }
            Op::Detach => {
                self.become_user(false);
                for name in NAMES {
                    let _ = self.world.detach(&format!("vale0:{name}"));
                }
            }
            Op::Look => self.world.registry.handle_events(),
            _ => self.change(op),
        }
        if self.open.is_empty() && self.link.changed {
            self.settle();
        }
        Ok(())
    }

    /// Does to the interface what an administrator may.
    fn change(&mut self, op: &Op) {
        let Link { there, renamed, alternative, moved, .. } = self.link;
        let name = self.link.name();
        let place = if moved { &self.away } else { &self.here };
        match op {
            Op::Vanish if there => {
                place.run(&format!("ip link del {name}"));
                self.link = Link { changed: true, ..Link::default() };
                return;
            }
            Op::Vanish => {
                self.here.run(
                    "ip link add n0 numrxqueues 2 numtxqueues 2 up type veth peer name n1 && \
                     ip link set n1 up",
                );
                self.link.there = true;
            }
            Op::Rename if there => {
                let new = NAMES[usize::from(!renamed)];
                place.run(&format!(
                    "ip link set {name} down && ip link set {name} name {new} && ip link set {new} up"
                ));
                self.link.renamed = !renamed;
            }
            Op::Alternative if there => {
                let verb = if alternative { "del" } else { "add" };
                place.run(&format!("ip link property {verb} dev {name} altname {}", NAMES[2]));
                self.link.alternative = !alternative;
            }
            Op::Move if there => {
                let target = match moved {
                    false => self.away.name().expect("it has a name").to_owned(),
                    // The test's thread has a namespace of its own, not the process.
                    true => return,
                };
                self.here.run(&format!("ip link set {name} netns {target}"));
                self.link.moved = true;
            }
            Op::Down if there => drop(place.run(&format!("ip link set {name} down"))),
            _ => return,
        }
        self.link.changed = true;
    }

    /// When nobody has it open, the registry forgets what it knew of it.
    fn settle(&mut self) {
        self.become_user(false);
        for name in NAMES {
            let _ = self.world.detach(&format!("vale0:{name}"));
        }
        self.attached = false;
        self.world.registry.handle_events();
        self.link.changed = !self.world.ports().is_empty();
        if self.link.there {
            let place = if self.link.moved { &self.away } else { &self.here };
            place.run(&format!("ip link set {} up", self.link.name()));
        }
    }

    fn end(mut self) {
        for handle in std::mem::take(&mut self.open) {
            self.world.registry.close(handle);
        }
        self.settle();
        if self.link.there {
            let place = if self.link.moved { &self.away } else { &self.here };
            let name = self.link.name();
            let link = place.run(&format!("ip -d link show {name}"));
            assert!(!link.contains("prog/xdp"), "a program is left: {link}");
            // It works as at the beginning.
            if !self.link.moved {
                let (handle, _) = self.world.register(name, all()).expect("it is free");
                self.world.registry.close(handle);
            }
            place.run(&format!("ip link del {name}"));
        }
        self.world.registry.handle_events();
        self.world.assert_empty();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn two_users_of_an_interface_that_comes_and_goes(ops in vec(op(), 1..30)) {
        if !skip_without_root("two_users_of_an_interface_that_comes_and_goes") {
            let _turn = one_at_a_time();
            let mut life = Life::new();
            life.change(&Op::Vanish);
            life.link.changed = false;
            for op in &ops {
                life.step(op)?;
            }
            life.end();
        }
    }
}

/// All orders of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// A queue for each of two users, and the host rings for one of them, by its name and by its alternative
/// name: opened in any order and closed in any order.
#[test]
fn queues_and_host_rings_of_two_users_in_all_orders() {
    if skip_without_root("queues_and_host_rings_of_two_users_in_all_orders") {
        return;
    }
    let _turn = one_at_a_time();
    let mut life = Life::new();
    life.change(&Op::Vanish);
    life.change(&Op::Alternative);
    for (i, opening) in ORDERS.into_iter().enumerate() {
        for (j, closing) in ORDERS.into_iter().enumerate() {
            // Each order of closing comes with either.
            let somebody_has_stack = (i + j) % 2 == 1;
            let mut names = [NAMES[0], NAMES[2]];
            names.rotate_left(usize::from(somebody_has_stack));
            let parts = [
                (false, names[0], RingSelection::One(0)),
                (true, names[1], RingSelection::One(1)),
                (somebody_has_stack, names[0], RingSelection::Host),
            ];
            let mut handles = [None; 3];
            for part in opening {
                let (somebody, name, rings) = parts[part];
                life.become_user(somebody);
                let answer = life.world.register(name, select(rings));
                let told = format!("{name} {rings:?}, opened {opening:?}, closed {closing:?}");
                handles[part] = Some(answer.expect(&told).0);
            }
            for part in closing {
                life.world.registry.close(handles[part].expect("it is open"));
            }
            life.world.assert_empty();
        }
    }
    let link = life.here.run(&format!("ip -d link show {}", NAMES[0]));
    assert!(!link.contains("prog/xdp"), "a program is left: {link}");
    life.end();
}
