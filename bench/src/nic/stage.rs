//! Where an experiment takes place: two network namespaces and the veth pairs between them.
//!
//! ```text
//!   far                 near
//!   far0 ============== near0     the contestant receives here
//!   far1 ============== near1     and forwards to here
//! ```

use std::io;

use crate::netns::Netns;

/// Makes the kernel collect packets for 20 µs before it hands them on, the best of those tried: one
/// wake-up for many, but 100 µs overrun a veth's ring of 256.
pub const TUNING: &str = "gro_flush_timeout=20000 napi_defer_hard_irqs=1";

/// A `tc` filter that selects a flow: what it does not match passes.
pub const TC_FILTER: &str = "u32 match ip protocol 17 0xff match ip dport 53 0xffff \
                             action mirred egress redirect dev lo";

/// Gone with the processes in it, however the benchmark ends.
pub struct Stage {
    /// Where the contestant is.
    pub near: Netns,
    /// Where its packets come from and go to.
    pub far: Netns,
}

impl Stage {
    /// Makes `pairs` veth pairs with `queues` queues each way. Who sends from the far side without a
    /// contestant's help is held back by a queue, not by losing packets.
    pub fn new(pairs: usize, queues: usize) -> io::Result<Stage> {
        let stage = Stage { near: Netns::new()?, far: Netns::new()? };
        let queues = format!("numrxqueues {queues} numtxqueues {queues}");
        let far = stage.far.path();
        let each = |line: &dyn Fn(usize) -> String| (0..pairs).map(line).collect::<String>();
        stage.near.run(&each(&|i| {
            format!(
                "ip link add near{i} {queues} type veth peer name far{i} {queues} netns {far}\n\
                 ip link set near{i} up\n"
            )
        }))?;
        stage.far.run(&each(&|i| format!("ip link set far{i} up\n")))?;
        Ok(stage)
    }

    /// Has what is sent from the far side wait in a queue while the near side is busy.
    pub fn hold_back(&self) -> io::Result<()> {
        self.far.run("tc qdisc add dev far0 root pfifo limit 1000")
    }

    /// Has the far end of the second pair speak once, from the address that all packets are sent to: a switch learns where
    /// that is. Then it has another, or its stack would look at what comes.
    pub fn speak(&self) -> io::Result<()> {
        self.far.run(
            "own=$(cat /sys/class/net/far1/address)\n\
             ip link set far1 address 02:00:00:00:00:00\n\
             ip addr add 198.18.1.1/24 dev far1\n\
             ping -c 1 -W 0.1 198.18.1.2 >/dev/null 2>&1 || true\n\
             ip addr flush dev far1\n\
             ip link set far1 address $own\n",
        )
    }

    /// Adds [`TC_FILTER`] to what the near side receives.
    pub fn filter(&self) -> io::Result<()> {
        self.near.run(&format!(
            "tc qdisc add dev near0 clsact\n\
             tc filter add dev near0 ingress protocol ip {TC_FILTER}"
        ))
    }

    /// Sets [`TUNING`] on both ends of the first pair.
    pub fn tune(&self) -> io::Result<()> {
        for (netns, interface) in [(&self.near, "near0"), (&self.far, "far0")] {
            let set = |setting: &str| {
                let (name, value) = setting.split_once('=').expect("TUNING is made of settings");
                format!("echo {value} > /sys/class/net/{interface}/{name}\n")
            };
            netns.run(&TUNING.split(' ').map(set).collect::<String>())?;
        }
        Ok(())
    }
}
