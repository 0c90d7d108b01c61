//! The two cards of a guest: one here, the other in a namespace, with addresses.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringway_testkit::Netns;

use crate::card::{Card, Made};

/// Longer than a card's link takes, and than a slow guest.
pub const LIMIT: Duration = Duration::from_secs(30);

/// How often is looked for what the kernel tells nobody.
const LOOK: Duration = Duration::from_millis(50);

/// The addresses of both ends.
pub const ADDRESSES: [&str; 2] = ["10.7.0.1", "10.7.0.2"];

/// The MAC addresses, as on QEMU's command line.
const MACS: [&str; 2] = ["52:54:00:00:00:01", "52:54:00:00:00:02"];

/// Two interfaces on one cable.
pub struct Cable {
    pub card: Card,
    /// The namespace of this process, and the interface there, which Ringway opens.
    pub here: Netns,
    pub near: String,
    /// The other end, which has the kernel's stack.
    pub there: Netns,
    pub far: String,
}

/// Looks until `found` gives something.
pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> Result<T, String> {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = found() {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(format!("waited in vain: {what}"));
        }
        std::thread::sleep(LOOK);
    }
}

/// What joins received frames, by the names of `ethtool -k`.
pub const LRO: &str = "large-receive-offload";
const JOINS: [&str; 2] = [LRO, "rx-gro-hw"];

/// The interface here with that address.
fn with_mac(mac: &str) -> Option<String> {
    let interfaces = fs::read_dir("/sys/class/net").ok()?.flatten();
    let mut names = interfaces.map(|one| one.file_name().to_string_lossy().into_owned());
    names.find(|name| {
        let address = fs::read_to_string(format!("/sys/class/net/{name}/address"));
        address.is_ok_and(|address| address.trim() == mac)
    })
}

impl Cable {
    /// Loads the card's driver, and gives both ends addresses. Their stacks say nothing by themselves.
    pub fn new(card: Card) -> Result<Cable, String> {
        let here = Netns::root();
        here.run("ip link set lo up; sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
        here.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
        let there = Netns::quiet("far");
        let place = there.name().expect("it was made");
        let [near, far] = match card.made {
            Made::ByGuest(script) => {
                let [near, far] = MACS;
                here.run(&format!("set -e; NEAR={near} FAR={far} FAR_NETNS={place}; {script}"));
                ["near".into(), "far".into()]
            }
            Made::ByQemu { module, .. } => {
                here.run(&format!("modprobe {module}"));
                let both = || Some([with_mac(MACS[0])?, with_mac(MACS[1])?]);
                let [near, far] = until("both cards have a driver", both)?;
                here.run(&format!("ip link set {far} netns {place}"));
                [near, far]
            }
        };
        let cable = Cable { card, here, near, there, far };
        cable.set_up_far();
        cable.set_up_near();
        cable.wait_up()?;
        Ok(cable)
    }

    fn set_up(&self, netns: &Netns, interface: &str, own: usize, other: usize) {
        netns.run(&format!(
            "ip addr replace {}/24 dev {interface} && ip link set {interface} up &&
             ip neigh replace {} lladdr {} dev {interface}",
            ADDRESSES[own], ADDRESSES[other], MACS[other]
        ));
    }

    /// The interface here is up, with its address.
    pub fn set_up_near(&self) {
        self.set_up(&self.here, &self.near, 0, 1);
    }

    /// The same of the other end.
    pub fn set_up_far(&self) {
        self.set_up(&self.there, &self.far, 1, 0);
    }

    /// Both ends take frames of this MTU from now on.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), String> {
        for (netns, interface) in [(&self.there, &self.far), (&self.here, &self.near)] {
            let set = netns.try_run(&format!("ip link set {interface} mtu {mtu}"));
            if !set.status.success() {
                return Err(String::from_utf8_lossy(&set.stderr).trim().into());
            }
        }
        Ok(())
    }

    /// Turns off what joins received frames in the card here; which that was.
    pub fn turn_joins_off(&self) -> Vec<&'static str> {
        let is_on = |name: &&str| self.joins(name);
        let on: Vec<_> = JOINS.into_iter().filter(is_on).collect();
        on.iter().for_each(|name| self.turn(name, "off"));
        on
    }

    /// Turns such features on.
    pub fn turn_on(&self, joins: &[&str]) {
        joins.iter().for_each(|name| self.turn(name, "on"));
    }

    /// Whether the card here joins received frames.
    pub fn joins_on(&self) -> bool {
        JOINS.iter().any(|name| self.joins(name))
    }

    /// Whether the card here has such a feature on.
    pub fn joins(&self, name: &str) -> bool {
        let shown = self.here.run(&format!("ethtool -k {}", self.near));
        shown.lines().any(|line| line.trim().starts_with(&format!("{name}: on")))
    }

    fn turn(&self, name: &str, to: &str) {
        // One that is fixed stays.
        let _ = self.here.try_run(&format!("ethtool -K {} {name} {to}", self.near));
    }

    /// Waits until both ends have a carrier, and the stack sends: a card that is reset has neither for a
    /// while.
    pub fn wait_up(&self) -> Result<(), String> {
        let is_up = |netns: &Netns, interface: &str| {
            let link = netns.try_run(&format!("ip -o -d link show dev {interface}"));
            let said = String::from_utf8_lossy(&link.stdout);
            // A bond by LACP has a carrier with the first of its two members.
            let is_whole = !said.contains(" ad_num_ports ") || said.contains(" ad_num_ports 2 ");
            // Tunnels have no carrier to speak of.
            is_whole && (said.contains(" state UP ") || said.contains(" state UNKNOWN "))
        };
        let waited = until("both ends are up", || {
            let up = is_up(&self.here, &self.near) && is_up(&self.there, &self.far);
            up.then_some(())
        });
        waited.map_err(|error| {
            let links = self.here.run("ip -o link; dmesg | tail -n 8");
            format!("{error}: {}{links}", self.there.run("ip -o link"))
        })
    }

    /// Waits until the near end answers pings of the other's stack.
    pub fn wait_ping(&self) -> Result<(), String> {
        self.wait_up()?;
        let ping = format!("ping -q -c 1 -W 1 {}", ADDRESSES[0]);
        until("a ping is answered", || self.there.try_run(&ping).status.success().then_some(()))
    }

    /// The device that the near end is, in sysfs; `None` for one that is no hardware. With its driver.
    pub fn device(&self) -> Option<(String, PathBuf)> {
        // virtio's network device lies on one of its own, which is bound in the same way.
        let device = format!("/sys/class/net/{}/device", self.near);
        let name = fs::read_link(&device).ok()?.file_name()?.to_string_lossy().into_owned();
        Some((name, fs::canonicalize(format!("{device}/driver")).ok()?))
    }

    /// Whether the near end is there, under its name.
    pub fn is_there(&self) -> bool {
        with_mac(MACS[0]).is_some_and(|name| name == self.near)
    }
}
