//! Whether there is a daemon, what programs and which kernel run, and how long requests take.

use super::family::{Family, Labels};
use super::scrape::{LeftOut, Scrape};

pub fn families(scrape: Option<&Scrape>) -> Vec<Family> {
    let is_up = scrape.is_some();
    let nothing = Scrape::default();
    let scrape = scrape.unwrap_or(&nothing);
    let daemon = &scrape.daemon;
    let mut build = Family::gauge("ringway_build_info", "The versions of the programs");
    let none = Labels::new();
    build.put(&none, &[("program", "ringway"), ("version", env!("CARGO_PKG_VERSION"))], 1_u64);
    if is_up {
        build.put(&none, &[("program", "ringwayd"), ("version", &daemon.version)], 1_u64);
    }
    let mut kernel = Family::gauge("ringway_kernel_info", "The kernel that runs");
    let uname = rustix::system::uname();
    let [release, machine] = [uname.release(), uname.machine()].map(|text| text.to_string_lossy());
    kernel.put(&none, &[("release", &release), ("machine", &machine)], 1_u64);
    let mut started = Family::gauge(
        "ringway_daemon_start_time_seconds",
        "When the daemon started, in seconds since 1970",
    );
    let mut limit = Family::gauge(
        "ringway_memory_per_user_limit_bytes",
        "Bytes of rings and buffers that a user may ask for at once",
    );
    let mut conflicts = Family::gauge(
        "ringway_name_conflicts",
        "Names that were asked for lately and are for other users",
    );
    let mut left_out = Family::gauge(
        "ringway_left_out",
        "How much there is that has no metrics, because it is too many",
    );
    let mut requests = Family::histogram(
        "ringway_request_duration_seconds",
        "Time from when the daemon has read a request to its answer",
    );
    if is_up {
        started.put(&none, &[], daemon.started);
        limit.put(&none, &[], daemon.memory_per_user);
        conflicts.put(&none, &[], scrape.name_conflicts);
        let LeftOut { switches, switch_ports, ports, device_counters, users } = scrape.left_out;
        for (what, count) in [
            ("switches", switches),
            ("switch_ports", switch_ports),
            ("ports", ports),
            ("device_counters", device_counters),
            ("users", users),
        ] {
            left_out.put(&none, &[("what", what)], count);
        }
        for (kind, times) in &daemon.requests {
            requests.put(&none, &[("request", kind)], times.clone());
        }
    }
    let up =
        Family::gauge("ringway_up", "1 if the daemon has answered, 0 if it has not").with(is_up);
    vec![up, build, kernel, started, limit, conflicts, left_out, requests]
}
