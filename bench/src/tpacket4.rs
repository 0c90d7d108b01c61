//! A program of AF_PACKET V4, which is written in C and knows nothing of Ringway: it receives and drops what Ringway's own
//! sender sends, or transmits to Ringway's own receiver.

use std::io;
use std::thread;

use crate::bench::Bench;
use crate::c_program;
use crate::record::Road;
use crate::roles::{self, Role, Seat};
use crate::traffic;

const PROGRAM: &str = "examples/c/tpacket4.c";

/// Seconds that the program goes on beside the other's warm-up and counting: that is over first.
const BESIDE: f64 = 1.0;

/// The rate at which packets are received, in millions a second. The program, which looks at its ring all the time, and
/// the thread that fills that are where the kernel puts them.
pub fn once(bench: &Bench, road: Road, common: &[String]) -> io::Result<f64> {
    let (mode, port, mut role) = match road {
        Road::Tpacket4PipeRx => ("rxdrop", traffic::PIPE[1].into(), vec!["pipe-tx"]),
        Road::Tpacket4PipeTx => ("txpush", traffic::PIPE[0].into(), vec!["pipe-rx"]),
        Road::Tpacket4ValeRx => ("rxdrop", traffic::short_port(), vec!["vale-tx", "--receivers=1"]),
        _ => ("txpush", traffic::short_port(), vec!["vale-rx", "--index=0"]),
    };
    role.extend(common.iter().map(String::as_str));
    let program = c_program::build(&bench.scratch.folder("tpacket4")?, PROGRAM)?;
    let seconds = bench.warm_up.as_secs_f64() + bench.counting.as_secs_f64() + BESIDE;
    let seconds = seconds.to_string();
    let arguments = [mode, &port, &seconds];
    thread::scope(|scope| {
        let run = || c_program::run(Seat::default(), &bench.daemon, &program, &arguments);
        let program = scope.spawn(run);
        let other = Role::start(Seat::on(bench.cpu(0)), &bench.daemon, &role)?;
        let counts = roles::run(vec![other], bench.warm_up, bench.counting)?;
        let printed = program.join().map_err(|_| io::Error::other("the thread has panicked"))??;
        match mode {
            "rxdrop" => c_program::number_behind("rx_mpps", &printed),
            _ => Ok(counts[0].mpps()),
        }
    })
}
