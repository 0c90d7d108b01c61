//! `ringway doctor`: says what works on this machine, what does not, and what to do about it.

pub mod check;
mod host;
mod nic;
pub mod trial;

use crate::error::{Error, Result};
use crate::output::Output;
use check::{Check, Level, Need};
use host::{Host, OpenPort};
use serde::Serialize;
use std::fmt;

#[derive(clap::Args)]
#[command(after_help = "\
Each line says ok, warning or missing, and what to do if it is not ok. Pipes and VALE switches work
also if lines about NICs say missing; the exit status is 0 as long as those two work. A warning
about an interface counts the losses of its device since a program opened it: see `ringway ports
--help`.

With --try it opens the interface in each mode, and sends frames of many sizes to --peer and back:
16 of each size, up to the longest that the MTU allows. The peer is the other end of a veth pair, or
another port of this machine that a cable leads to; NETNS:IF is an interface in a network namespace
of `ip netns`. A table says for each mode and direction which sizes do not arrive, and what counters
have grown meanwhile; the exit status is 1 if there are any. Both interfaces are taken from the
stack for these seconds. If one of them has addresses or routes, is a part of another interface, or
carries your own connection, --force is needed.

Examples:
  ringway doctor
  ringway doctor eth0
  ringway doctor eth1 --try --peer eth2
  ringway doctor veth0 --try --peer blue:veth1
  ringway doctor --json | jq '.checks[] | select(.level != \"ok\")'")]
pub struct Args {
    /// Look at this interface alone, of all there are
    interface: Option<String>,

    #[command(flatten)]
    trial: trial::Args,
}

/// Everything that was found.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "diagnosis")]
pub struct Diagnosis {
    /// Pipes and VALE switches will work.
    usable: bool,
    checks: Vec<Check>,
}

/// Looks at the machine and prints the diagnosis.
///
/// Fails if something is missing that even pipes and VALE switches need, or a frame that was to be
/// tried does not arrive.
pub fn run(Args { interface, trial }: &Args) -> Result<()> {
    let host = Host::look(interface.as_deref());
    if let Some(interface) = interface
        && host.nics.is_empty()
    {
        return Err(Error::NoPort {
            port: interface.clone(),
            problem: "there is no such interface in this network namespace; `ip link` shows those there are",
        });
    }
    let diagnosis = diagnose(&host);
    Output::chosen().write(&diagnosis)?;
    let missing = diagnosis.checks.iter().filter(|check| check.breaks_everything());
    let causes: Vec<_> = missing.map(|check| check.sentence()).collect();
    if !causes.is_empty() {
        return Err(Error::Unusable(causes.join("; ")));
    }
    match interface {
        Some(interface) if trial.is_wanted() => trial.run(interface),
        _ => Ok(()),
    }
}

fn diagnose(host: &Host) -> Diagnosis {
    let mut checks = vec![
        check::kernel(&host.kernel),
        check::call(Need::Everything, "shared memory", "memfd with seals", &host.memfd),
        check::call(Need::Everything, "sockets", "Unix SOCK_SEQPACKET", &host.seqpacket),
        check::call(Need::Everything, "events", "eventfd", &host.eventfd),
        check::daemon_program(host.daemon_program.as_deref()),
        check::daemon_running(&host.daemon.0, &host.daemon.1, &host.private),
    ];
    checks.extend(host.degraded.as_deref().map(check::degraded));
    checks.extend(check::root(&host.kernel));
    // What this process may do matters only where it has a daemon of its own.
    match host.nic_grant {
        Some(granted) => checks.push(check::granted(granted)),
        None => checks.extend([
            check::af_xdp(&host.xdp_socket),
            check::capabilities(&host.status),
            check::bpf(&host.bpf, &host.uid_map),
            check::memlock(host.memlock, &host.status),
        ]),
    }
    checks.extend(check::names(&host.conflicts));
    checks.extend([check::hugepages(&host.meminfo), check::tun(&host.tun)]);
    checks.extend(host.nics.iter().map(|nic| nic::check(nic, &host.kernel)));
    for OpenPort { name, losses, added_queues } in &host.ports {
        checks.extend(losses.iter().map(|counters| nic::losses(name, counters)));
        if !added_queues.is_empty() {
            checks.push(nic::added_queues(name, added_queues));
        }
    }
    let usable = !checks.iter().any(Check::breaks_everything);
    Diagnosis { usable, checks }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let Check { level, name, detail, remedy, .. } = check;
            writeln!(f, "{level:<8}{name:<16}{detail}")?;
            if let Some(remedy) = remedy {
                writeln!(f, "{:24}-> {remedy}", "")?;
            }
        }
        let count = |level| self.checks.iter().filter(|check| check.level == level).count();
        write!(
            f,
            "Pipes and VALE switches {}; {}, {} missing.",
            if self.usable { "will work" } else { "will NOT work" },
            match count(Level::Warning) {
                1 => "1 warning".into(),
                warnings => format!("{warnings} warnings"),
            },
            count(Level::Missing),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_gets_a_diagnosis_for_people_and_machines() {
        let diagnosis = diagnose(&Host::look(None));
        let text = diagnosis.to_string();
        for name in ["kernel", "hugepages", "tun/tap", "daemon"] {
            assert!(text.contains(name), "{name} is not in:\n{text}");
        }
        let json = serde_json::to_value(&diagnosis).unwrap();
        assert_eq!(json["checks"].as_array().unwrap().len(), diagnosis.checks.len());
        assert!(json["usable"].is_boolean());
    }

    #[test]
    fn one_warning_is_one() {
        let warning = || Check::warning(Need::Nics, "x", "y", "z");
        let last = |checks| {
            let text = Diagnosis { usable: true, checks }.to_string();
            text.lines().last().unwrap_or_default().to_owned()
        };
        assert_eq!(last(vec![]), "Pipes and VALE switches will work; 0 warnings, 0 missing.");
        assert!(last(vec![warning()]).contains("; 1 warning, 0 missing."));
        assert!(last(vec![warning(), warning()]).contains("; 2 warnings, 0 missing."));
    }

    #[test]
    fn whatever_is_not_ok_has_a_remedy() {
        for check in diagnose(&Host::look(None)).checks {
            assert_eq!(check.level == Level::Ok, check.remedy.is_none(), "{}", check.name);
        }
    }
}
