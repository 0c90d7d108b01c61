//! A program of PF_RING, which is written in C and knows nothing of Ringway: it counts what Ringway's own sender sends, or
//! several do, which share it as members of a cluster.

use std::io;
use std::time::Duration;

use crate::bench::Bench;
use crate::c_program;
use crate::pcap;
use crate::record::Road;
use crate::roles::{self, Role, Seat};
use crate::traffic;

const PROGRAM: &str = "examples/c/pfring.c";

/// Seconds that the program goes on beside the other's warm-up and counting: that is over first.
const BESIDE: f64 = 1.0;

/// The rate at which packets are received, in millions a second, by all members together.
pub fn once(bench: &Bench, road: Road, common: &[String]) -> io::Result<f64> {
    let (header, members) = match road {
        Road::PfringPipeParsed | Road::PfringValeParsed => ("parsed", "1"),
        Road::PfringPipeCluster => ("short", "4"),
        _ => ("short", "1"),
    };
    let pipe = || format!("netmap:{}", traffic::PIPE[1]);
    let (device, mut role) = match road {
        Road::PfringPipe | Road::PfringPipeParsed => (pipe(), vec!["pipe-tx", "--udp=1"]),
        // So many flows that each member has as many.
        Road::PfringPipeCluster => (pipe(), vec!["pipe-tx", "--udp=64"]),
        _ => (traffic::short_port(), vec!["vale-tx", "--receivers=1", "--udp=1"]),
    };
    role.extend(common.iter().map(String::as_str));
    let folder = bench.scratch.folder("pfring")?;
    let program = c_program::build_with(&folder, PROGRAM, &["-lpfring"])?;
    let seconds = bench.warm_up.as_secs_f64() + bench.counting.as_secs_f64() + BESIDE;
    let seconds = seconds.ceil().to_string();
    let arguments = [device.as_str(), &seconds, header, members];
    let mut program = c_program::start(Seat::default(), &bench.daemon, &program, &arguments)?;
    program.until_ready()?;
    let other = Role::start(Seat::on(bench.cpu(0)), &bench.daemon, &role)?;
    roles::run(vec![other], bench.warm_up, bench.counting)?;
    c_program::number_behind("rx_mpps", &program.finish()?)
}

/// Packets a second that the program counts at `device`, behind the filter of libpcap's programs, of what `sender`
/// sends there.
pub fn listen(
    bench: &Bench,
    seat: Seat,
    device: &str,
    sender: Role,
    [warm_up, counting]: [Duration; 2],
) -> io::Result<f64> {
    let program = c_program::build_with(&bench.scratch.folder("pfring")?, PROGRAM, &["-lpfring"])?;
    let daemon = bench.scratch.folder("ringwayd-near")?;
    let seconds = ((warm_up + counting).as_secs_f64() + BESIDE).ceil().to_string();
    let arguments = [device, &seconds, "short", "1", pcap::FILTER];
    let mut program = c_program::start(seat, &daemon, &program, &arguments)?;
    program.until_ready()?;
    roles::run(vec![sender], warm_up, counting)?;
    Ok(c_program::number_behind("rx_mpps", &program.finish()?)? * 1e6)
}
