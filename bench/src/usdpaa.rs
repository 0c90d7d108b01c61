//! A reflector of USDPAA, which is written in C and knows nothing of Ringway: a thread that polls sends back what Ringway's own
//! sender sends, by way of frame queues and callbacks. What comes back is not read.

use std::io;
use std::path::Path;
use std::thread;

use crate::bench::Bench;
use crate::c_program;
use crate::roles::{self, Role, Seat};
use crate::traffic;

const PROGRAM: &str = "examples/c/usdpaa_hello.c";
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The rate at which packets are sent back, in millions a second.
pub fn once(bench: &Bench, common: &[String]) -> io::Result<f64> {
    let port = traffic::short_port();
    let mut role = vec!["vale-tx", "--receivers=1", "--udp=1"];
    role.extend(common.iter().map(String::as_str));
    let headers = format!("-I{PROJECT}/include/usdpaa");
    let flags = [&headers, "-include", "usdpaa/little_endian.h", "-lusdpaa", "-lpthread"];
    let program = c_program::build_with(&bench.scratch.folder("usdpaa")?, PROGRAM, &flags)?;
    let seconds = bench.counting.as_secs().max(1).to_string();
    let file = |name: &str| format!("{PROJECT}/dist/usdpaa/{name}");
    let [policies, config] = ["usdpaa_policy_hash_ipv4.xml", "usdpaa_config_one.xml"].map(file);
    let ports = format!("RINGWAY_USDPAA_PORTS=fm0-10g0={port}");
    let program = program.to_string_lossy();
    let arguments = [&ports, &*program, "-n", "1", "-t", &seconds, "-p", &policies, "-c", &config];
    thread::scope(|scope| {
        let run = || c_program::run(Seat::default(), &bench.daemon, Path::new("env"), &arguments);
        let program = scope.spawn(run);
        let other = Role::start(Seat::on(bench.cpu(1)), &bench.daemon, &role)?;
        // The program counts from its first packet on.
        roles::run(vec![other], bench.warm_up, 2 * bench.counting)?;
        let printed = program.join().map_err(|_| io::Error::other("the thread has panicked"))??;
        c_program::number_behind("rx_mpps", &printed)
    })
}
