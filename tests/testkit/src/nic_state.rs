//! All that could be changed about an interface, read from the system as an administrator would.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::{Netns, sys::programs_at, tagging::find};

/// What is asked, and how: shell commands, with the interface's name in `$N`. What a device has not
/// got is an answer, too. Nothing here moves by itself: no statistics, no neighbours.
const QUESTIONS: [(&str, &str); 17] = [
    // Without the timers of a bridge: flags, promiscuity, MTU, MAC, XDP programs with their ids, queue and segment limits.
    ("link", r"ip -d link show dev $N | sed -E 's/_timer +[0-9.]+//g'"),
    ("links beside it", "ip -br link | cut -d ' ' -f 1"),
    ("addresses", "ip -br address show dev $N"),
    ("routes", "ip route show table all dev $N; ip -6 route show table all dev $N"),
    ("offloads", "ethtool -k $N"),
    ("channels", "ethtool -l $N"),
    ("rings", "ethtool -g $N"),
    ("coalescing", "ethtool -c $N"),
    ("RSS", "ethtool -x $N"),
    ("flow rules", "ethtool -n $N"),
    ("private flags", "ethtool --show-priv-flags $N"),
    ("qdiscs", "tc qdisc show dev $N"),
    ("tc ingress", "tc filter show dev $N ingress"),
    ("tc egress", "tc filter show dev $N egress; tc filter show dev $N"),
    (
        "sysfs",
        "cd /sys/class/net/$N && grep -s . gro_flush_timeout napi_defer_hard_irqs mtu flags \
         tx_queue_len threaded ifalias group proto_down",
    ),
    ("sysctls", "cd /proc/sys/net && grep -rs . ipv4/conf/$N ipv6/conf/$N | sort"),
    ("queues", "cd /sys/class/net/$N/queues && grep -rs . . | grep -v byte_queue_limits | sort"),
];

/// The hooks of programs that `tc` does not show.
const TCX: [(&str, u32); 2] = [("tcx ingress", 46), ("tcx egress", 47)];

/// The settings of an interface at a moment, and what hangs on it: to be compared with those of
/// another.
///
/// What happens at the far end of a veth pair shows, too: with an XDP program there, the kernel takes
/// offloads off this end, and changes its largest MTU.
///
/// ```no_run
/// # use ringway_testkit::{Netns, NicState};
/// # let netns = Netns::new("rwx");
/// let before = NicState::take(&netns, "n0");
/// // Use the interface.
/// before.assert_restored(&netns);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicState {
    interface: String,
    /// Each with what it is an answer to.
    lines: Vec<String>,
}

impl NicState {
    /// Of interface `name` of that namespace. Needs root. One that is not there has a state as well.
    pub fn take(netns: &Netns, name: &str) -> NicState {
        let mut script = format!("N={name}\n");
        for (what, command) in QUESTIONS {
            let _ = writeln!(script, "( {command} ) 2>&1 | sed 's/^/{what}: /'");
        }
        let answers = netns.run(&script);
        // `ip` says so now and then while some other namespace goes.
        let said =
            answers.lines().filter(|line| !line.ends_with("Peer netns reference is invalid."));
        let mut lines: Vec<String> = said.map(String::from).collect();
        lines.extend(netns.enter(|| tcx_programs(name)));
        NicState { interface: name.into(), lines }
    }

    /// What is different in `later`: a line each, `-` for what was and `+` for what is. Empty when
    /// they are equal.
    pub fn diff(&self, later: &NicState) -> String {
        let [before, after] = [self, later].map(|s| s.lines.iter().collect::<BTreeSet<_>>());
        let gone = before.difference(&after).map(|line| format!("- {line}\n"));
        let new = after.difference(&before).map(|line| format!("+ {line}\n"));
        let text: String = gone.chain(new).collect();
        match text.is_empty() && self != later {
            true => "the same lines in another order, or more often\n".into(),
            false => text,
        }
    }

    /// Panics, with the differences, when the interface does not become again what it was at `self`.
    ///
    /// The kernel lets go of sockets and links some time after their last holder has gone and tells
    /// nobody when, so this looks again for up to a minute.
    pub fn assert_restored(&self, netns: &Netns) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let now = NicState::take(netns, &self.interface);
            if now == *self {
                return;
            }
            let diff = self.diff(&now);
            assert!(Instant::now() < deadline, "{} is not as it was:\n{diff}", self.interface);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The programs at the hooks of the traffic control, for the calling thread's namespace.
fn tcx_programs(name: &str) -> Vec<String> {
    // There is nothing at interface 0.
    let ifindex = find(name).unwrap_or(0);
    let programs = |(what, hook)| {
        let line = move |id| format!("{what}: bpf program {id}");
        programs_at(ifindex, hook).into_iter().map(line)
    };
    TCX.into_iter().flat_map(programs).collect()
}
