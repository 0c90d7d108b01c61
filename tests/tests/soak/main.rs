//! A soak: links flap, interfaces are deleted and made again, clients come and are killed, filters,
//! switches and persistent ports change, all at once, for `RINGWAY_SOAK_SECONDS` (20 unless set).
//!
//! Time is cut into epochs. After each the machine is put in order, everything must work, and the
//! daemon must hold what it held after the first.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

mod chaos;
mod world;

use std::{
    env, fs, thread,
    time::{Duration, Instant},
};

use ringway::Control;
use ringway_testkit::{Snapshot, skip_without_root};
use ringway_tests::{
    Random, isolated_with_system, one_at_a_time,
    resources::{kilobytes, own_memory, resources},
    until,
};
use rustix::process::Signal;

use chaos::{Tally, WORKERS};
use world::World;

/// Longer than putting in order and looking takes after all epochs.
const HANGS: Duration = Duration::from_secs(600);

/// Kilobytes of its own by which the daemon may grow after the first epoch: its allocator keeps some
/// of what was freed, and more when more was wanted at a time.
const DAEMON_GROWTH: u64 = 2 << 10;
/// The same for the kernel, of the whole machine, on which others work too.
const KERNEL_GROWTH: u64 = 1 << 20;
/// Network namespaces that others may make meanwhile.
const NAMESPACES: u64 = 64;

#[test]
fn nothing_leaks() {
    if skip_without_root("nothing_leaks") {
        return;
    }
    let _turn = one_at_a_time();
    let seconds = env::var("RINGWAY_SOAK_SECONDS").ok();
    let seconds =
        seconds.map_or(20, |text| text.parse().expect("RINGWAY_SOAK_SECONDS is a number"));
    let whole = Duration::from_secs(seconds);
    isolated_with_system("nothing_leaks", whole + HANGS, |home| soak(home, whole));
}

fn soak(home: &ringway_tests::Home, whole: Duration) {
    let epoch = (whole / 4).min(Duration::from_secs(10));
    let mut random = Random::seeded();
    let before = Snapshot::take();
    let world = World::new(home);
    let mut daemon = world.daemon();
    let control = Control::connect().unwrap();
    let mut tally = Tally::default();
    let mut first: Option<(String, Figures)> = None;
    let mut last = None;

    let start = Instant::now();
    let mut epochs = 0;
    while start.elapsed() < whole || epochs < 2 {
        let end = Instant::now() + epoch;
        thread::scope(|scope| {
            let workers = WORKERS.map(|worker| {
                let (mut random, world) = (Random::new(random.draw()), &world);
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    while Instant::now() < end {
                        worker(world, &mut random, &mut tally);
                    }
                    tally
                })
            });
            for worker in workers {
                tally.add(worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
            }
        });
        epochs += 1;
        assert!(daemon.is_running(), "the daemon has ended: {}", daemon.output());
        world.put_in_order(&control);
        world.assert_works(&mut random);
        let held = || resources(daemon.pid(), &control);
        match &first {
            None => first = Some((world.settled(held), Figures::read(daemon.pid()))),
            Some((baseline, _)) => {
                until(&format!("as after the first epoch: {baseline}"), || match held() {
                    now if now == *baseline => Ok(()),
                    now => Err(format!("epoch {epochs}: {now}")),
                })
            }
        }
        let figures = Figures::read(daemon.pid());
        println!("epoch {epochs}, {} s: {figures:?}", start.elapsed().as_secs());
        last = Some(figures);
    }
    println!("{tally}");
    let ((_, first), last) = (first.expect("one epoch at least"), last.expect("the same"));
    last.assert_not_much_more_than(&first);
    drop(control);
    daemon.signal(Signal::TERM);
    let (status, said) = daemon.wait();
    assert!(status.success(), "{said}");
    drop(world);
    before.assert_clean();
}

/// What could grow: kilobytes, but for the number of namespaces.
#[derive(Debug)]
struct Figures {
    daemon: u64,
    slab: u64,
    vmalloc: u64,
    shmem: u64,
    namespaces: u64,
}

impl Figures {
    fn read(daemon: u32) -> Figures {
        let machine = |name| kilobytes("/proc/meminfo", name);
        // Those that nobody has a name for are seen here alone.
        let slabs = fs::read_to_string("/proc/slabinfo").unwrap_or_default();
        let namespaces = slabs.lines().find(|line| line.starts_with("net_namespace "));
        let namespaces = namespaces.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        Figures {
            daemon: own_memory(daemon),
            slab: machine("SUnreclaim:"),
            vmalloc: machine("VmallocUsed:"),
            shmem: machine("Shmem:"),
            namespaces: namespaces.unwrap_or_default(),
        }
    }

    fn assert_not_much_more_than(&self, first: &Figures) {
        for (what, last, first, growth) in [
            ("the daemon's memory", self.daemon, first.daemon, DAEMON_GROWTH),
            ("the kernel's slabs", self.slab, first.slab, KERNEL_GROWTH),
            ("the kernel's mappings", self.vmalloc, first.vmalloc, KERNEL_GROWTH),
            ("shared memory", self.shmem, first.shmem, KERNEL_GROWTH),
            ("network namespaces", self.namespaces, first.namespaces, NAMESPACES),
        ] {
            assert!(last <= first + growth, "{what} went from {first} to {last}");
        }
    }
}
