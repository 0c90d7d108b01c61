//! A client process for tests, which runs until it is killed.
//!
//! ```text
//! traffic hold PORT...         opens the ports; says "open"
//! traffic close PORT...        opens the ports, and closes them
//! traffic send PORT FLOW       says "open", sends numbered frames; says "going" after 1100
//! traffic push PORT FLOW       the same, and never waits
//! traffic receive PORT FLOW    says "open", checks numbered frames; says "going" after 500
//! traffic join PORT PORT       forwards between two ports; says "joined"
//! traffic echo PORT            answers frames, also of the next daemon; says "open" each time
//! traffic scribble PORT [receive] writes random bytes over its region; says "scribbleing"
//! ```
//!
//! Errors are printed, and the exit status is 1.

use std::{process::ExitCode, sync::atomic::Ordering::Relaxed, thread, time::Duration};

use ringway::{Error, Interest, Port, Prepared, prepare};
use ringway_tests::{
    echo::echo,
    scribbler::scribble,
    stream::{Progress, announce, push, receive, send},
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["hold", ref ports @ ..] => hold(ports),
        ["close", ref ports @ ..] => open(ports).map(drop),
        ["send", port, flow] => run(port, number(flow), 1100, send_flow),
        ["push", port, flow] => run(port, number(flow), 1100, push),
        ["receive", port, flow] => run(port, number(flow), 500, receive_flow),
        ["join", one, other] => join(one, other),
        ["echo", port] => echo(port),
        ["scribble", port] => scribble(port, false),
        ["scribble", port, "receive"] => scribble(port, true),
        _ => panic!("see the head of this program for its arguments"),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    println!("error {}: {error}", ringway_errno::errno(error.cause()));
    ExitCode::FAILURE
}

fn number(text: &str) -> u32 {
    text.parse().expect("a flow is a number")
}

fn open(ports: &[&str]) -> Result<Vec<Port>, Error> {
    ports.iter().map(|port| Port::open(port)).collect()
}

fn hold(ports: &[&str]) -> Result<(), Error> {
    let _ports = open(ports)?;
    println!("open");
    loop {
        thread::park();
    }
}

fn join(one: &str, other: &str) -> Result<(), Error> {
    let mut ports = [Port::open(one)?, Port::open(other)?];
    println!("joined");
    loop {
        let [a, b] = &mut ports;
        if forward(a, b) + forward(b, a) > 0 {
            continue;
        }
        // Where there are packets, it is room for them that is lacking.
        let full = ports.each_mut().map(|port| port.rx(0).available() > 0);
        let wanted = |own, other| match (full[own], full[other]) {
            (false, false) => Some(Interest::Rx),
            (false, true) => Some(Interest::Both),
            (true, true) => Some(Interest::Tx),
            (true, false) => None,
        };
        let wanted = [wanted(0, 1), wanted(1, 0)];
        let pairs = ports.iter_mut().zip(wanted);
        let mut waiters: Vec<_> = pairs.filter_map(|(port, w)| Some(port.waiter(w?))).collect();
        if let Prepared::Armed(armed) = prepare(&mut waiters[..]) {
            let _ = armed.sleep(None);
        }
        for (port, wanted) in ports.iter().zip(wanted) {
            wanted.map_or(Ok(()), |interest| port.check(interest))?;
        }
    }
}

/// Moves what there is room for from the one port's first ring to the other's; how much.
fn forward(from: &mut Port, to: &mut Port) -> usize {
    let (mut rx, mut tx) = (from.rx(0), to.tx(0));
    let room = rx.available().min(tx.space());
    for (frame, mut slot) in rx.batch(room).zip(tx.batch(room)) {
        frame.forward(&mut slot);
    }
    tx.sync();
    rx.sync();
    room
}

type Work = fn(&mut Port, u32, &Progress) -> Result<(), Error>;

fn send_flow(port: &mut Port, flow: u32, progress: &Progress) -> Result<(), Error> {
    send(port, flow, progress)
}

fn receive_flow(port: &mut Port, flow: u32, progress: &Progress) -> Result<(), Error> {
    announce(port, flow);
    receive(port, progress)
}

fn run(port: &str, flow: u32, enough: u64, work: Work) -> Result<(), Error> {
    let mut port = Port::open(port)?;
    println!("open");
    let progress = Progress::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            while progress.frames.load(Relaxed) < enough && !progress.stop.load(Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            println!("going");
        });
        let result = work(&mut port, flow, &progress);
        progress.stop.store(true, Relaxed);
        result
    })
}
