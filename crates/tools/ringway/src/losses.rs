//! What is lost at the port of an interface, by each of those that count: its rings, its sockets, its device.
//!
//! They are several views of the same frames, which are never added up: what finds a socket's ring full is among the
//! drops of the port's ring, and may be among those of the interface and of its driver.

use ringway::{Control, DeviceCounter, KernelCounters, Port, PortInfo, PortKind, RingInfo};
use ringway_live_capture::namespace::is_named_here;
use serde::Serialize;
use std::fmt;

use crate::drops::Drops;

/// Since the port was opened.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Losses {
    /// What its rings count, with the kernel's part.
    pub drops: Option<Drops>,
    /// What its AF_XDP sockets count.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::described::Kernel>"))]
    pub sockets: Option<KernelCounters>,
    /// What has grown of the counters of the interface and its driver; `None`: it is not known.
    #[cfg_attr(test, schemars(with = "Option<Vec<crate::schema::described::Device>>"))]
    pub device: Option<Vec<DeviceCounter>>,
}

impl Losses {
    /// Of an interface's port; of any other there are none.
    pub fn at(port: &PortInfo, control: &Control) -> Losses {
        if port.kind != PortKind::Nic {
            return Losses::default();
        }
        // One that has gone meanwhile has none.
        let rings = control.rings(port).unwrap_or_default();
        let sum = |a: Drops, b: Drops| a.merge(b, |a, b| a + b);
        let drops = rings.iter().map(Drops::of_ring).fold(Drops::default(), sum);
        Losses {
            drops: Some(drops),
            sockets: of_sockets(&rings),
            device: control.device_counters(port).ok(),
        }
    }

    /// For people: the drops of the rings, if any.
    pub fn of_rings(&self) -> Option<String> {
        self.drops.filter(|drops| drops.total() > 0).map(|drops| drops.to_string())
    }

    /// The same of the device.
    pub fn of_device(&self) -> Option<String> {
        self.device.as_deref().and_then(of_device)
    }
}

/// The counter of what the machine's stack has lost, which is nothing of a program's: `ringway ports` tells it.
const OF_STACK: &str = "stack_dropped";

/// Follows what the device of an open port counts.
pub struct DeviceBook {
    /// When it was opened here: others may have had it before.
    before: Vec<DeviceCounter>,
}

impl DeviceBook {
    /// Begins at zero.
    pub fn open(port: &Port) -> DeviceBook {
        DeviceBook { before: counters(port).unwrap_or_default() }
    }

    /// What has grown since [`DeviceBook::open`]; `None`: nothing, or it is not known.
    pub fn read(&self, port: &Port) -> Option<DeviceLosses> {
        let counters = grown(counters(port)?, &self.before);
        (!counters.is_empty()).then(|| DeviceLosses { port: port.name().into(), counters })
    }
}

/// Of an interface's port that is open, by its daemon, which may have ended.
fn counters(port: &Port) -> Option<Vec<DeviceCounter>> {
    if port.kind() != PortKind::Nic || port.is_shut() {
        return None;
    }
    let control = Control::connect_running().ok()?;
    let is_it = |info: &PortInfo| {
        info.kind == PortKind::Nic
            && info.mem_id == port.mem_id()
            && is_named_here(info, port.name())
    };
    control.device_counters(&control.ports().ok()?.into_iter().find(is_it)?).ok()
}

/// What counters have more than `before`, but for that of the stack.
fn grown(now: Vec<DeviceCounter>, before: &[DeviceCounter]) -> Vec<DeviceCounter> {
    let since = |now: DeviceCounter| {
        let is_it = |it: &&DeviceCounter| (&it.name, it.driver) == (&now.name, now.driver);
        let before = before.iter().find(is_it).map_or(0, |before| before.count);
        DeviceCounter { count: now.count.saturating_sub(before), ..now }
    };
    let grown = now.into_iter().map(since);
    grown.filter(|counter| counter.count > 0 && counter.name != OF_STACK).collect()
}

/// What the device of an open port has counted in a run with it, for the end of it.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "device")]
pub struct DeviceLosses {
    port: String,
    #[cfg_attr(test, schemars(with = "Vec<crate::schema::described::Device>"))]
    counters: Vec<DeviceCounter>,
}

impl fmt::Display for DeviceLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = of_device(&self.counters).unwrap_or_else(|| "none".into());
        write!(f, "  lost by the device of {}: {counters}", self.port)
    }
}

/// Each ring has those of its direction.
fn of_sockets(rings: &[RingInfo]) -> Option<KernelCounters> {
    rings.iter().filter_map(|ring| ring.kernel).reduce(|a, b| KernelCounters {
        rx_dropped: a.rx_dropped + b.rx_dropped,
        rx_invalid_descs: a.rx_invalid_descs + b.rx_invalid_descs,
        tx_invalid_descs: a.tx_invalid_descs + b.tx_invalid_descs,
        rx_ring_full: a.rx_ring_full + b.rx_ring_full,
        rx_fill_ring_empty_descs: a.rx_fill_ring_empty_descs + b.rx_fill_ring_empty_descs,
        tx_ring_empty_descs: a.tx_ring_empty_descs + b.tx_ring_empty_descs,
    })
}

/// `rx_missed_errors 12; driver: rx_no_buffer_count 12`; `None`: nothing has grown.
fn of_device(counters: &[DeviceCounter]) -> Option<String> {
    let list = |driver: bool| {
        let its = counters.iter().filter(|counter| counter.driver == driver);
        its.map(|counter| format!("{} {}", counter.name, counter.count))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let parts = match (list(false), list(true)) {
        (interface, driver) if driver.is_empty() => interface,
        (interface, driver) if interface.is_empty() => format!("driver: {driver}"),
        (interface, driver) => format!("{interface}; driver: {driver}"),
    };
    (!parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_under_the_names_of_those_that_count() {
        let counter =
            |name: &str, driver, count| DeviceCounter { name: name.into(), driver, count };
        let (missed, no_buffer) =
            (counter("rx_missed_errors", false, 12), counter("rx_no_buffer_count", true, 5));
        let text = |counters: &[&DeviceCounter]| {
            of_device(&counters.iter().map(|&c| c.clone()).collect::<Vec<_>>())
        };
        assert_eq!(text(&[]), None);
        assert_eq!(text(&[&missed]).as_deref(), Some("rx_missed_errors 12"));
        assert_eq!(text(&[&no_buffer]).as_deref(), Some("driver: rx_no_buffer_count 5"));
        let both = "rx_missed_errors 12; driver: rx_no_buffer_count 5";
        assert_eq!(text(&[&missed, &no_buffer]).as_deref(), Some(both));
    }

    /// Of a port that others have had before; what the stack loses is no loss of a program.
    #[test]
    fn a_run_has_what_grew_in_it() {
        let counter =
            |name: &str, driver, count| DeviceCounter { name: name.into(), driver, count };
        let before = [counter("rx_dropped", false, 3), counter("rx_dropped", true, 5)];
        let now = |[interface, driver, stack]: [u64; 3]| {
            let counters = [
                counter("rx_dropped", false, interface),
                counter("rx_dropped", true, driver),
                counter("stack_dropped", false, stack),
            ];
            grown(counters.to_vec(), &before)
        };
        assert_eq!(now([3, 5, 9]), []);
        // It was opened again.
        assert_eq!(now([2, 4, 9]), []);
        assert_eq!(now([3, 7, 0]), [counter("rx_dropped", true, 2)]);
        let counters = now([13, 7, 9]);
        let text = DeviceLosses { port: "eth1".into(), counters }.to_string();
        assert_eq!(text, "  lost by the device of eth1: rx_dropped 10; driver: rx_dropped 2");
    }

    /// Each direction of a socket is in one ring.
    #[test]
    fn sockets_are_summed() {
        let ring = |kernel| RingInfo { kernel, ..RingInfo::default() };
        let rx = KernelCounters { rx_ring_full: 3, ..KernelCounters::default() };
        let tx = KernelCounters { tx_invalid_descs: 4, ..KernelCounters::default() };
        let sum = KernelCounters { rx_ring_full: 6, tx_invalid_descs: 4, ..rx };
        assert_eq!(
            of_sockets(&[ring(None), ring(Some(rx)), ring(Some(tx)), ring(Some(rx))]),
            Some(sum)
        );
        assert_eq!(of_sockets(&[ring(None)]), None);
    }
}
