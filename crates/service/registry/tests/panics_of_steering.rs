//! Requests to steer flows, and others meanwhile, that panic, wherever that is: what is steered is undone with
//! its connection, and not before, and the janitor is told of it.
//!
//! No virtual interface has an RSS table or flow rules, so `tests/c/rss_nic.c` stands in for one: it is
//! preloaded into a process of the test's own.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

mod common;

use std::{
    collections::BTreeSet,
    env, fs, io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use common::{
    World,
    asked::{Asked, close_all},
    faults::{at_each_step, close_at_each_step, quiet, register},
    select,
};
use ringway_nic_setup::steer::Plan;
use ringway_proto::{Cause, Flow, Request, RingSelection};
use ringway_region::Sizes;
use ringway_registry::{Caller, Done, Handle, Janitor, Registry, Settings, Subject};
use ringway_testkit::{Folder, Netns, isolate_thread, skip_without_root};

/// Places of the RSS table, and of rules, as `rss_nic.c` has them.
const TABLE: usize = 16;
const RULES: usize = 8;
const QUEUES: u32 = 4;
/// The file with the state of the NIC, as a process of the test's own finds it.
const STATE: &str = "RSS_NIC";

/// What the janitor would undo.
#[derive(Default)]
struct Notes {
    all: Mutex<BTreeSet<u64>>,
    /// It takes no note.
    is_full: AtomicBool,
}

impl Notes {
    fn all(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Janitor for Notes {
    fn remember(&self, number: u64, _: &Plan, _: Option<BorrowedFd<'_>>) -> io::Result<()> {
        if self.is_full.load(Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.all().insert(number);
        Ok(())
    }

    fn forget(&self, number: u64) {
        self.all().remove(&number);
    }
}

/// A registry, and a NIC whose flows can be steered, `n0`.
struct Steerable {
    world: World,
    notes: Arc<Notes>,
    state: PathBuf,
}

impl Steerable {
    fn new(state: PathBuf) -> Steerable {
        isolate_thread();
        Netns::root().run("ip link add n0 up type veth peer name n1 && ip link set n1 up");
        // Less to be pinned, and to be freed.
        let global_region = Sizes { buf_num: 2048, ..Sizes::GLOBAL };
        let settings = Settings { nic_slots: 64, global_region, ..Settings::default() };
        let mut world = World { registry: Registry::new(settings), caller: Caller::myself() };
        let notes = Arc::new(Notes::default());
        world.registry.set_janitor(notes.clone());
        // What the first request opens for all that follow.
        let (handle, _) = world.open("n0");
        world.registry.close(handle);
        Steerable { world, notes, state }
    }

    fn steered(&mut self) -> Handle {
        let handle = self.world.registry.open();
        let answer = self.world.registry.call(handle, &self.world.caller, steer(2));
        answer.unwrap_or_else(|error| panic!("{error}"));
        handle
    }
}

fn steer(queue: u16) -> Request {
    let flows = ["udp dst port 53", "tcp src host 10.0.0.1"];
    let flow = |text: &str| text.parse::<Flow>().expect("it is a flow");
    Request::Steer { interface: "n0".into(), queue, flows: flows.map(flow).into() }
}

/// The NIC as its driver comes up.
fn fresh() -> Vec<u8> {
    let table = (0..QUEUES).cycle().take(TABLE);
    table.chain([0; 1 + 2 * RULES]).flat_map(u32::to_ne_bytes).collect()
}

/// Builds the stand-in.
fn stand_in(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/c/rss_nic.c");
    let library = folder.join("rss_nic.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    assert!(compiler.status().expect("there is a compiler").success());
    library
}

#[test]
fn steering() {
    if skip_without_root("steering") {
        return;
    }
    let Some(state) = env::var_os(STATE) else {
        let folder = Folder::new();
        let state = folder.path().join("nic");
        fs::write(&state, fresh()).unwrap();
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        command.args(["steering", "--exact", "--nocapture"]);
        command.env("LD_PRELOAD", stand_in(folder.path())).env(STATE, state);
        let output = command.output().expect("it is there");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    };
    sweep(Steerable::new(state.into()));
}

fn sweep(mut of: Steerable) {
    let _turn = quiet();
    let (state, notes) = (of.state.clone(), of.notes.clone());
    let untouched = || assert!(fs::read(&state).unwrap() == fresh() && notes.all().is_empty());

    let steps = at_each_step(&mut of.world, steer(2), |_| untouched());
    assert!(steps > 1, "{steps}");
    let steps = close_at_each_step(&mut of.world, |w| {
        untouched();
        let handle = w.registry.open();
        w.registry.call(handle, &w.caller, steer(2)).unwrap_or_else(|error| panic!("{error}"));
        assert!(fs::read(&state).unwrap() != fresh() && notes.all().len() == 1);
        handle
    });
    assert!(steps > 0);
    untouched();

    end_in_each_state(&mut of);
    untouched();

    // Others' requests, which are refused, or panic, leave it in force.
    let handle = of.steered();
    let steered = fs::read(&state).unwrap();
    let in_force = || assert!(fs::read(&state).unwrap() == steered && notes.all().len() == 1);
    let other = of.world.registry.open();
    let refused = of.world.registry.call(other, &of.world.caller, steer(1)).unwrap_err();
    assert_eq!(refused.cause, Cause::Busy);
    of.world.registry.close(other);
    in_force();
    let open = register("n0", select(RingSelection::One(0)));
    at_each_step(&mut of.world, open, |_| in_force());
    of.world.registry.close(handle);
    untouched();
    of.world.assert_empty();
}

/// The client goes, or the work fails, when its name is looked up and when flows are steered: then they are not,
/// and another may steer them.
fn end_in_each_state(of: &mut Steerable) {
    for is_steered in [false, true] {
        for ending in 0..5 {
            let mut asked = Asked::new(&mut of.world, steer(2));
            let work = match is_steered {
                true => asked.opens(&mut of.world),
                false => asked.work(&mut of.world),
            };
            assert_eq!(matches!(work.subject(), Subject::Interface(..)), is_steered);
            let Asked { handle, mut progress, request } = asked;
            let registry = &mut of.world.registry;
            match ending {
                // The client goes before the work is done, when it is done, and when its result is there.
                0 => {
                    registry.end(progress);
                    registry.discard(work.run());
                }
                1 => {
                    let done = work.run();
                    assert_eq!(of.notes.all().len(), usize::from(is_steered));
                    registry.end(progress);
                    registry.discard(done);
                }
                2 => {
                    progress.put(work.run());
                    registry.end(progress);
                }
                // It is lost, and it fails.
                3 => {
                    registry.discard(Done::lost(work.subject().clone()));
                    registry.end(progress);
                }
                _ => {
                    of.notes.is_full.store(true, Relaxed);
                    progress.put(work.run());
                    let mut asked = Asked { handle, request, progress };
                    let error = asked.finish(&mut of.world).unwrap_err();
                    assert!(error.to_string().contains("undo it later"), "{error}");
                    of.notes.is_full.store(false, Relaxed);
                }
            }
            of.world.registry.close(handle);
            close_all(&mut of.world);
            assert!(fs::read(&of.state).unwrap() == fresh() && of.notes.all().is_empty());
        }
    }
    let handle = of.steered();
    of.world.registry.close(handle);
}
