//! How long a program waits for a port of an interface: from its request to a port that it can use.
//!
//! Most of it the kernel waits for all processors, twice: when an XDP program is attached to the interface, and when
//! a program is attached to what its stack sends, each with the lock of all interfaces held. So two such grace
//! periods, one after the other, are measured beside it.

use std::io::{self, Read};
use std::thread;
use std::time::{Duration, Instant};

use ringway::Port;

use crate::bench::Bench;
use crate::c_program::number_behind;
use crate::nic::stage::Stage;
use crate::roles::{self, Seat};
use crate::sys;

const WORD: &str = "milliseconds";

/// After a port was closed, the kernel takes its interface apart for a while.
const REST: Duration = Duration::from_millis(300);

/// Milliseconds: of the first port of a daemon that is there, or of one more.
pub fn once(bench: &Bench, first: bool) -> io::Result<f64> {
    let stage = Stage::new(1, 1)?;
    let arguments: &[&str] = if first { &["open"] } else { &["open", "--again"] };
    let seat = Seat::default().inside(&stage.near);
    let daemon = bench.scratch.folder("opening")?;
    let mut child = roles::command(seat, arguments)?.env("RINGWAY_DIR", daemon).spawn()?;
    let mut output = String::new();
    child.stdout.take().expect("stdout is piped").read_to_string(&mut output)?;
    child.wait()?;
    number_behind(WORD, &output)
}

/// The process that opens it.
pub fn play(again: bool) -> io::Result<()> {
    let open = |name| Port::open(name).map_err(io::Error::other);
    // It keeps the daemon, and has memory of its own.
    let _daemon = open("vale0:bench")?;
    if again {
        drop(open("netmap:near0")?);
        thread::sleep(REST);
    }
    let begin = Instant::now();
    let port = open("netmap:near0")?;
    println!("{WORD} {:.3}", begin.elapsed().as_secs_f64() * 1e3);
    drop(port);
    Ok(())
}

/// Milliseconds that it takes to open a port of a switch and to close it: of so many, all of which are open at a time.
pub fn many(bench: &Bench, count: usize) -> io::Result<f64> {
    let count = format!("--count={count}");
    let arguments = ["open-many", &count];
    let mut child = roles::command(Seat::default(), &arguments)?;
    let mut child = child.env("RINGWAY_DIR", bench.scratch.folder("opening")?).spawn()?;
    let mut output = String::new();
    child.stdout.take().expect("stdout is piped").read_to_string(&mut output)?;
    child.wait()?;
    number_behind(WORD, &output)
}

/// The process that opens them.
pub fn play_many(count: usize) -> io::Result<()> {
    // It keeps the daemon.
    let _daemon = Port::open("bench{3").map_err(io::Error::other)?;
    let begin = Instant::now();
    let open = |number| Port::open(&format!("valebench:many{number}"));
    let ports = (0..count).map(open).collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    drop(ports);
    println!("{WORD} {:.4}", begin.elapsed().as_secs_f64() * 1e3 / count as f64);
    Ok(())
}

/// Milliseconds of two grace periods of the kernel's RCU in a row.
pub fn grace_periods() -> io::Result<f64> {
    let begin = Instant::now();
    sys::await_processors()?;
    sys::await_processors()?;
    Ok(begin.elapsed().as_secs_f64() * 1e3)
}
