//! The machine that the figures were measured on.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Everything a reader needs to judge a figure. What the machine does not tell is left out.
#[derive(Debug, Deserialize, Serialize)]
pub struct Machine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// CPUs that this process may use.
    pub cores: usize,
    pub kernel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Load average of the minute before the run: what else the machine had to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The frequency governor of the first CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Whether DPDK had huge pages, or what it had in their place.
    pub eal: String,
    /// Versions of the peers' packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dpdk: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libxdp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_vswitch: Option<String>,
    /// Ringway's commit, and whether it had changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Start of the run, UTC, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
}

impl Machine {
    /// The first thing that differs of those that figures depend on: what it is, here and there. What one of the two does
    /// not tell is left out.
    pub fn difference(&self, other: &Machine) -> Option<(&'static str, String, String)> {
        let told = |machine: &Machine| {
            [
                ("the processor", machine.cpu.clone()),
                ("processors:", Some(machine.cores.to_string())),
                ("the kernel", Some(machine.kernel.clone())),
                ("the system", machine.system.clone()),
                ("the governor", machine.governor.clone()),
                ("DPDK", machine.dpdk.clone()),
                ("libxdp", machine.libxdp.clone()),
                ("Open vSwitch", machine.open_vswitch.clone()),
            ]
        };
        let pairs = told(self).into_iter().zip(told(other));
        pairs
            .filter_map(|((what, one), (_, two))| Some((what, one?, two?)))
            .find(|all| all.1 != all.2)
    }

    /// Takes over the versions of peers that were not there before.
    pub fn learn_peers(&mut self, now: &Machine) {
        for (own, now) in [
            (&mut self.dpdk, &now.dpdk),
            (&mut self.libxdp, &now.libxdp),
            (&mut self.open_vswitch, &now.open_vswitch),
        ] {
            *own = own.take().or_else(|| now.clone());
        }
    }

    /// Describes this machine, now.
    pub fn describe() -> Machine {
        let uname = rustix::system::uname();
        Machine {
            cpu: field("/proc/cpuinfo", "model name", ':'),
            cores: crate::cpu::allowed().len(),
            kernel: uname.release().to_string_lossy().into_owned(),
            memory_mib: field("/proc/meminfo", "MemTotal", ':')
                .and_then(|total| total.split(' ').next()?.parse::<u64>().ok())
                .map(|kib| kib / 1024),
            load: fs::read_to_string("/proc/loadavg")
                .ok()
                .and_then(|load| load.split(' ').next()?.parse().ok()),
            governor: fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .ok()
                .map(|governor| governor.trim().to_owned()),
            system: field("/etc/os-release", "PRETTY_NAME", '='),
            eal: crate::hugepages::eal().to_owned(),
            libxdp: output("dpkg-query", &["-W", "-f=${Version}", "libxdp1"]),
            open_vswitch: crate::open_vswitch::version(),
            commit: output(
                "git",
                &["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty"],
            ),
            dpdk: output("dpkg-query", &["-W", "-f=${Version}", "dpdk-dev"]),
            date: output("date", &["-u", "+%FT%TZ"]),
        }
    }
}

/// The value of the first line `name<separator>value` in a file.
fn field(path: &str, name: &str, separator: char) -> Option<String> {
    fs::read_to_string(path).ok()?.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
