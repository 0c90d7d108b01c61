//! What is measured, and how one run of it goes.

use std::env;
use std::io::{self, Read};
use std::process::{Child, Command};
use std::time::Duration;

use crate::dpdk::{self, Link};
use crate::record::{Contestant, Payload, Road, Subject, Unit};
use crate::roles::{self, Count, Role};
use crate::scratch::Scratch;
use crate::target::Target;

/// Packets in a sync where the experiment is not about the batch.
const BATCH: usize = 256;

/// How to run an experiment once.
enum Way {
    Pipe,
    Vale,
    Null,
    Dpdk(Link),
}

/// One line of the table.
pub struct Experiment {
    pub subject: Subject,
    pub target: Option<Target>,
    way: Way,
}

/// What every run of every experiment shares.
pub struct Bench {
    pub scratch: Scratch,
    /// CPUs to put processes on; one is used twice when there are too few.
    pub cpus: Vec<usize>,
    pub warm_up: Duration,
    pub counting: Duration,
}

impl Bench {
    /// The CPU for the experiment's n-th process.
    pub fn cpu(&self, process: usize) -> usize {
        self.cpus[process % self.cpus.len()]
    }
}

/// The whole plan, in the order of the table. The first memif is the one others are compared with.
pub fn experiments() -> Vec<Experiment> {
    let mut plan = Vec::new();
    for payload in [Payload::Untouched, Payload::Touched] {
        for batch in [1, 8, 64, 256] {
            plan.push(pipe(payload, batch));
        }
    }
    for receivers in [1, 3] {
        for size in [60, 508, 1514] {
            plan.push(vale(receivers, size));
        }
    }
    plan.push(null());
    plan.push(peer(Road::Memif, dpdk::MEMIF_TUNED));
    plan.push(peer(Road::Memif, dpdk::MEMIF_DEFAULT));
    plan.push(peer(Road::VhostUser, dpdk::VHOST_USER));
    plan
}

fn ringway(experiment: Road, unit: Unit) -> Subject {
    Subject {
        experiment,
        contestant: Contestant::Ringway,
        unit,
        size: None,
        batch: Some(BATCH),
        payload: None,
        receivers: None,
        settings: None,
    }
}

fn pipe(payload: Payload, batch: usize) -> Experiment {
    let target = match (payload, batch) {
        (Payload::Untouched, 256) => Some(Target::mpps(150.0)),
        (Payload::Untouched, 1) => Some(Target::mpps(25.0)),
        (Payload::Touched, 256) => Some(Target::mpps(80.0).and_memif_times(3.0)),
        _ => None,
    };
    let subject = Subject {
        size: Some(64),
        batch: Some(batch),
        payload: Some(payload),
        ..ringway(Road::Pipe, Unit::Mpps)
    };
    Experiment { subject, target, way: Way::Pipe }
}

fn vale(receivers: usize, size: usize) -> Experiment {
    let target = (receivers == 1 && size == 60).then(|| Target::mpps(35.0).and_memif_times(1.4));
    let subject =
        Subject { size: Some(size), receivers: Some(receivers), ..ringway(Road::Vale, Unit::Mpps) };
    Experiment { subject, target, way: Way::Vale }
}

fn null() -> Experiment {
    let subject = ringway(Road::Null, Unit::CyclesPerPacket);
    Experiment { subject, target: Some(Target::cycles(20.0)), way: Way::Null }
}

fn peer(experiment: Road, link: Link) -> Experiment {
    let subject = Subject {
        contestant: Contestant::Dpdk,
        size: Some(64),
        batch: Some(link.burst),
        settings: Some(link.settings()),
        ..ringway(experiment, Unit::Mpps)
    };
    Experiment { subject, target: None, way: Way::Dpdk(link) }
}

impl Experiment {
    /// Runs the experiment once; returns the figure in its unit.
    pub fn once(&self, bench: &Bench) -> io::Result<f64> {
        match &self.way {
            Way::Pipe => self.pipe_once(bench),
            Way::Vale => self.vale_once(bench),
            Way::Null => self.null_once(bench),
            Way::Dpdk(link) => link.measure(
                &bench.scratch.folder("dpdk")?,
                [bench.cpu(0), bench.cpu(1)],
                self.subject.size.unwrap_or(64),
                bench.warm_up,
                bench.counting,
            ),
        }
    }

    /// What sender and receivers need to know alike.
    fn traffic(&self) -> [String; 2] {
        let number = |n: Option<usize>| n.unwrap_or_default().to_string();
        [
            format!("--size={}", number(self.subject.size)),
            format!("--batch={}", number(self.subject.batch)),
        ]
    }

    fn pipe_once(&self, bench: &Bench) -> io::Result<f64> {
        let [size, batch] = self.traffic();
        let mut common = vec![size.as_str(), &batch];
        if self.subject.payload == Some(Payload::Touched) {
            common.push("--touch");
        }
        let receiver = Role::start(Some(bench.cpu(1)), &[&["pipe-rx"], &common[..]].concat())?;
        let sender = Role::start(Some(bench.cpu(0)), &[&["pipe-tx"], &common[..]].concat())?;
        let counts = roles::run(vec![receiver, sender], bench.warm_up, bench.counting)?;
        Ok(counts[0].mpps())
    }

    /// The rate of each receiver, on average: with several, every packet goes to all of them.
    fn vale_once(&self, bench: &Bench) -> io::Result<f64> {
        let [size, batch] = self.traffic();
        let receivers = self.subject.receivers.unwrap_or(1);
        let mut processes = Vec::new();
        for receiver in 0..receivers {
            let port = format!("--port=valebench:r{receiver}");
            processes
                .push(Role::start(Some(bench.cpu(1 + receiver)), &["vale-rx", &port, &batch])?);
        }
        let to = format!("--receivers={receivers}");
        processes.push(Role::start(
            Some(bench.cpu(0)),
            &["vale-tx", "--port=valebench:s", &to, &size, &batch],
        )?);
        let counts = roles::run(processes, bench.warm_up, bench.counting)?;
        Ok(counts[..receivers].iter().map(Count::mpps).sum::<f64>() / receivers as f64)
    }

    /// A C program measures itself, under the preload library as any netmap program would run.
    fn null_once(&self, bench: &Bench) -> io::Result<f64> {
        let built = env::current_exe()?;
        let beside = |name| built.with_file_name(name).to_string_lossy().into_owned();
        let (ringway, program) = (beside("ringway"), beside("ringway-bench-null"));
        let batch = self.subject.batch.unwrap_or(BATCH).to_string();
        let seconds = bench.counting.as_secs_f64().to_string();
        let output = finish(roles::command(
            Some(bench.cpu(0)),
            &["exec", &ringway, "run", "--", &program, &batch, &seconds],
        )?)?;
        let mut words = output.split_whitespace().skip_while(|&word| word != "cycles_per_packet");
        words.nth(1).and_then(|cycles| cycles.parse().ok()).ok_or_else(|| {
            io::Error::other(format!("{program} printed no cycles_per_packet: {output:?}"))
        })
    }
}

/// Runs `command` to its end and returns what it printed; killed when this fails.
fn finish(mut command: Command) -> io::Result<String> {
    struct Killed(Child);
    impl Drop for Killed {
        fn drop(&mut self) {
            // Both fail when it has ended by itself: that is the aim.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let mut child = Killed(command.spawn()?);
    let mut output = String::new();
    child.0.stdout.take().expect("stdout is piped").read_to_string(&mut output)?;
    match child.0.wait()? {
        status if status.success() => Ok(output),
        status => Err(io::Error::other(format!("{command:?}: {status}"))),
    }
}
