//! SIGKILL in mid-traffic, at random moments: the others go on and lose nothing, nothing is left.

use std::{sync::atomic::Ordering::Relaxed, thread, time::Duration};

use ringway::{Control, Error, Lossless, Port, PortSettings};
use ringway_testkit::{Proc, Snapshot};
use ringway_tests::{
    Home, OnDrop, Pair, Random, ends, isolated_for, kills, kills_limit, one_at_a_time,
    resources::{descriptors, mapped_memfds, resources},
    stream::{Progress, announce, receive, send},
    until,
};
use rustix::process::{Pid, Signal, kill_process};

/// Shares of the kills: of a client, and of a daemon.
const CLIENTS: u32 = 160;
const DAEMONS: u32 = 40;

/// Longer than all rounds take.
const HANGS: Duration = Duration::from_secs(300);
/// Longer than a client takes to get going.
const LIMIT: Duration = Duration::from_secs(30);
/// The random moment after a victim is seen to be in mid-traffic: any up to this.
const MOMENT: u64 = 5_000_000;

/// A client that dies, and what its partner in this process is to do for it.
#[derive(Clone, Copy, Debug)]
enum Victim {
    ValeSender,
    ValeReceiver,
    PipeSender,
    PipeReceiver,
    /// While it is killed, others wait for it.
    LosslessReceiver,
    /// It takes from the pipe's partner, and sends to the switch's.
    Forwarder,
    /// It sees what the uninvolved receive.
    Monitor,
}

impl Victim {
    const ALL: [Victim; 7] = [
        Victim::ValeSender,
        Victim::ValeReceiver,
        Victim::PipeSender,
        Victim::PipeReceiver,
        Victim::LosslessReceiver,
        Victim::Forwarder,
        Victim::Monitor,
    ];

    /// Its arguments, and what it says when it works. `own` is a flow that no other has.
    fn role(self, own: &str) -> ([&str; 3], &'static str) {
        const BRIDGED: &str = "1";
        match self {
            Victim::ValeSender => (["send", "valek:vs", own], "going"),
            Victim::ValeReceiver => (["receive", "valek:vr", BRIDGED], "going"),
            Victim::PipeSender => (["send", "k}1", own], "going"),
            Victim::PipeReceiver => (["receive", "k}2", BRIDGED], "going"),
            Victim::LosslessReceiver => (["receive", "valek:vl", BRIDGED], "going"),
            Victim::Forwarder => (["join", "k}2", "valek:vf"], "joined"),
            Victim::Monitor => (["receive", "valek:y/r", own], "going"),
        }
    }

    /// The flow that the partner, of those with that progress, is to receive.
    fn shows(self, own: u32) -> Option<(usize, u32)> {
        match self {
            Victim::ValeSender => Some((0, own)),
            Victim::PipeSender => Some((2, own)),
            Victim::Forwarder => Some((0, PIPED)),
            _ => None,
        }
    }
}

/// The flow of the partner that sends over the bridge, and over the pipe.
const BRIDGED: u32 = 1;
const PIPED: u32 = 2;
/// The flow of the uninvolved on the bridge, and on a pipe.
const ASIDE: [u32; 2] = [3, 4];
/// Victims' flows are above.
const VICTIMS: u32 = 1000;

/// Of a port that loses nothing as long as its program is not stopped.
fn lossless() -> PortSettings {
    let lossless = Lossless { patience_ms: LIMIT.as_millis() as u32 };
    PortSettings { lossless: Some(Some(lossless)), ..PortSettings::default() }
}

/// The uninvolved have lost nothing.
fn assert_nothing_lost(control: &Control) {
    let ports = control.ports().unwrap();
    let aside = ports.iter().filter(|p| ["valek:x", "valek:y", "k{3", "k}3"].contains(&&*p.name));
    let mut seen = 0;
    for port in aside {
        for ring in control.rings(port).unwrap() {
            let lost = [ring.bad_index, ring.bad_slot, ring.too_long, ring.ring_full];
            assert_eq!(lost, [0; 4], "{}: {ring:?}", port.name);
            seen += 1;
        }
    }
    assert!(seen >= 8, "{ports:?}");
}

#[test]
fn killed_clients_leave_nothing() {
    let _turn = one_at_a_time();
    isolated_for("killed_clients_leave_nothing", kills_limit(HANGS), |home| {
        let mut random = Random::seeded();
        let before = Snapshot::take();
        let control = Control::connect().unwrap();
        let daemon = home.daemon();

        let open = |name| Port::open(name).unwrap();
        let partners = [open("valek:pr"), open("valek:ps"), open("k{1"), open("k{2")];
        let [mut bridge_rx, mut bridge_tx, mut pipe_rx, mut pipe_tx] = partners;
        // While no victim takes the bridged flow, it must not flood the uninvolved.
        announce(&mut bridge_rx, BRIDGED);
        let progress: [Progress; 4] = Default::default();
        let aside =
            [Pair::open("valek:x", "valek:y", ASIDE[0]), Pair::open("k{3", "k}3", ASIDE[1])];
        let aside_progress: [Progress; 2] = Default::default();
        for port in ["valek:x", "valek:y"] {
            control.switch_port(port, lossless()).unwrap();
        }
        let baseline = resources(daemon, &control);

        thread::scope(|scope| {
            // However this ends, the partners must stop, or the scope waits for them for ever.
            let _stop = OnDrop(|| {
                progress.iter().chain(&aside_progress).for_each(|p| p.stop.store(true, Relaxed));
            });
            scope.spawn(|| receive(&mut bridge_rx, &progress[0]).unwrap());
            scope.spawn(|| send(&mut bridge_tx, BRIDGED, &progress[1]).unwrap());
            scope.spawn(|| receive(&mut pipe_rx, &progress[2]).unwrap());
            scope.spawn(|| send(&mut pipe_tx, PIPED, &progress[3]).unwrap());
            for (pair, progress) in aside.into_iter().zip(&aside_progress) {
                scope.spawn(move || {
                    let mut pair = pair.unwrap();
                    while !progress.stop.load(Relaxed) {
                        progress.frames.fetch_add(pair.exchange().unwrap(), Relaxed);
                    }
                });
            }

            for round in 0..kills(CLIENTS) {
                let victim = Victim::ALL[random.below(Victim::ALL.len() as u64) as usize];
                let flow = VICTIMS + round;
                let own = flow.to_string();
                let (args, word) = victim.role(&own);
                let process = Proc::spawn(home.traffic(&args));
                process.wait_for(word, LIMIT);
                if matches!(victim, Victim::LosslessReceiver) {
                    control.switch_port(args[1], lossless()).unwrap();
                }
                if let Some((partner, flow)) = victim.shows(flow) {
                    until("the partner receives", || match progress[partner].flow.load(Relaxed) {
                        now if now == u64::from(flow) => Ok(()),
                        other => Err(format!("round {round}, {victim:?}: frames of flow {other}")),
                    });
                }
                thread::sleep(Duration::from_nanos(random.below(MOMENT)));
                process.signal(Signal::KILL);
                let (_, output) = process.wait();
                assert!(!output.contains("wrong"), "round {round}, {victim:?}: {output}");

                let was: Vec<u64> = aside_progress.iter().map(|p| p.frames.load(Relaxed)).collect();
                until("the uninvolved go on", || {
                    let now = aside_progress.iter().map(|p| p.frames.load(Relaxed));
                    match now.zip(&was).all(|(now, was)| now >= was + 100) {
                        true => Ok(()),
                        false => Err(format!("round {round}, {victim:?}: {was:?}")),
                    }
                });
                until(&format!("all is as before: {baseline}"), || {
                    match resources(daemon, &control) {
                        now if now == baseline => Ok(()),
                        now => Err(format!("round {round}, {victim:?}: {now}")),
                    }
                });
            }
            assert_nothing_lost(&control);
        });
        assert_eq!(home.daemon(), daemon);
        let sent: Vec<u64> = progress.iter().map(|p| p.frames.load(Relaxed)).collect();
        println!("frames of the partners: {sent:?}");
        drop(control);
        before.assert_clean();
    });
}

#[test]
fn killed_daemons_leave_nothing() {
    let _turn = one_at_a_time();
    isolated_for("killed_daemons_leave_nothing", kills_limit(HANGS), |home| {
        let mut random = Random::seeded();
        let before = Snapshot::take();
        // Whatever the runtime opens once is open after this.
        kill_a_daemon(home, &mut random, 0);
        let me = std::process::id();
        let baseline = (descriptors(me), mapped_memfds(me));
        for round in 1..kills(DAEMONS) {
            kill_a_daemon(home, &mut random, round);
        }
        assert_eq!((descriptors(me), mapped_memfds(me)), baseline);
        before.assert_clean();
    });
}

/// Kills the daemon under a bridge and a pipe between two processes: the pipe goes on, the
/// bridge's clients learn it, and a new daemon serves them.
fn kill_a_daemon(home: &Home, random: &mut Random, round: u32) {
    let mut sender = Port::open("d{1").unwrap();
    let mut pair = Pair::open("valed:x", "valed:y", 1).unwrap();
    let receiver = Proc::spawn(home.traffic(&["receive", "d}1", "2"]));
    let daemon = home.daemon();
    let (piped, bridged) = (Progress::default(), Progress::default());

    let error = thread::scope(|scope| {
        let _stop = OnDrop(|| piped.stop.store(true, Relaxed));
        scope.spawn(|| send(&mut sender, 2, &piped).unwrap());
        let exchange = scope.spawn(|| -> Result<(), Error> {
            loop {
                bridged.frames.fetch_add(pair.exchange()?, Relaxed);
            }
        });
        receiver.wait_for("going", LIMIT);
        until("the bridge works", || match bridged.frames.load(Relaxed) {
            0 => Err("nothing arrives".into()),
            _ => Ok(()),
        });
        thread::sleep(Duration::from_nanos(random.below(MOMENT)));
        kill_process(Pid::from_raw(daemon as i32).expect("a process"), Signal::KILL).unwrap();
        assert!(ends(daemon, LIMIT));

        let error = exchange.join().expect("no wrong frame").expect_err("its daemon has gone");
        // Only the receiver's taking lets the sender go on.
        let was = piped.frames.load(Relaxed);
        until("the pipe goes on without the daemon", || match piped.frames.load(Relaxed) {
            now if now > was + 5000 => Ok(()),
            now => Err(format!("round {round}: {now} frames after {was}")),
        });
        error
    });
    assert!(matches!(error, Error::Gone { .. }), "round {round}: {error:?}");
    drop(pair);

    let mut pair = Pair::open("valed:x", "valed:y", 1).unwrap();
    pair.exchange_some(64).unwrap();
    assert_ne!(home.daemon(), daemon);
    receiver.signal(Signal::KILL);
    let (_, output) = receiver.wait();
    assert!(!output.contains("wrong"), "round {round}: {output}");
    drop(pair);
    home.assert_left();
}
