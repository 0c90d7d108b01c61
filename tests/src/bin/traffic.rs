//! A client process for tests, which runs until it is killed.
//!
//! ```text
//! traffic hold PORT...         opens the ports; says "open"
//! traffic send PORT FLOW       sends numbered frames; says "going" after 1100
//! traffic receive PORT FLOW    checks numbered frames; says "going" after 500
//! traffic spoil PORT [receive] writes random bytes over its region; says "spoiling"
//! ```
//!
//! Errors are printed, and the exit status is 1.

use std::{process::ExitCode, sync::atomic::Ordering::Relaxed, thread, time::Duration};

use ringway::{Error, Port};
use ringway_tests::{
    spoil::spoil,
    stream::{Progress, announce, receive, send},
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["hold", ref ports @ ..] => hold(ports),
        ["send", port, flow] => run(port, number(flow), 1100, send_flow),
        ["receive", port, flow] => run(port, number(flow), 500, receive_flow),
        ["spoil", port] => spoil(port, false),
        ["spoil", port, "receive"] => spoil(port, true),
        _ => panic!("see the head of this program for its arguments"),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    println!("error {}: {error}", error.errno());
    ExitCode::FAILURE
}

fn number(text: &str) -> u32 {
    text.parse().expect("a flow is a number")
}

fn hold(ports: &[&str]) -> Result<(), Error> {
    let _ports = ports.iter().map(|port| Port::open(port)).collect::<Result<Vec<_>, _>>()?;
    println!("open");
    loop {
        thread::park();
    }
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
