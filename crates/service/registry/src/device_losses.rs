//! What an interface, its driver and its queueing discipline have lost since a port of it was opened.

use std::iter;

use ringway_nic_setup::{Interface, LossCounter, growth, losses};
use ringway_proto::{Cause, DeviceCounter, Error, Result};

use crate::{
    caller::Caller, netns::OpenNetns, page::page, port::PortId, registry::Registry,
    setup_error::nic_error, subject::Subject,
};

/// Bytes of a counter in a list, at most: its name, which may not be UTF-8, and numbers.
const COUNTER_BYTES: usize = 3 * 32 + 16;

/// What the stack has sent by the interface while programs, or a switch, had it for sending and its host rings were not open: the
/// stack counts it as sent.
const OF_STACK: &str = "stack_dropped";

/// The counters as they were at first, and how to read them again.
pub(crate) struct DeviceLosses {
    /// Held so that the namespace, and the number that it is known by, stay.
    netns: OpenNetns,
    interface: Interface,
    /// `None`: they could not be read.
    before: Option<Vec<LossCounter>>,
}

impl DeviceLosses {
    /// `stack_dropped`: what the stack has lost so far.
    pub fn new(
        netns: OpenNetns,
        interface: Interface,
        before: Option<Vec<LossCounter>>,
        stack_dropped: u64,
    ) -> DeviceLosses {
        let before = before.map(|before| with_stack(before, stack_dropped));
        DeviceLosses { netns, interface, before }
    }

    /// What the interface is called.
    pub fn interface_name(&self) -> &str {
        &self.interface.name
    }

    /// The inode number of its network namespace.
    pub fn netns(&self) -> Option<u64> {
        self.netns.inode()
    }

    /// It has another name now, by which its driver is asked.
    pub fn rename(&mut self, name: &str) {
        self.interface.name = name.into();
    }

    /// Descriptors that it takes up.
    pub fn descriptors(&self) -> usize {
        self.netns.descriptors()
    }
}

impl Registry {
    /// A page of the counters of losses that have grown since the port was opened. They are read each time, for
    /// which a driver may take its time.
    pub(crate) fn device_counters(
        &mut self,
        caller: &Caller,
        id: PortId,
        from: u32,
    ) -> Result<(Vec<DeviceCounter>, Option<u32>)> {
        let port = self.ports.get(id).ok_or_else(|| Error::absent("the port has gone"))?;
        let Some(own) = port.backend.device_losses().filter(|_| !port.gone) else {
            return Ok((Vec::new(), None));
        };
        let before = own.before.as_ref().ok_or_else(|| {
            Error::new(Cause::Unsupported, "its counters could not be read when it was opened")
                .at(&port.name)
        })?;
        let (netns, interface) = (own.netns.clone(), own.interface.clone());
        let read = move || netns.inside(|| losses(&interface).map_err(nic_error)).flatten();
        let account = self.settings.accounts.of(caller.uid);
        let stack_dropped = port.backend.stack_dropped(self);
        let now = self.deferred.off_loop(Subject::Counters(account), read)??;
        Ok(page_of_grown(before, &with_stack(now, stack_dropped), from))
    }
}

/// The counters of a device, behind that of its stack: there may be more of them later.
fn with_stack(of_device: Vec<LossCounter>, dropped: u64) -> Vec<LossCounter> {
    let of_stack = LossCounter { name: OF_STACK.into(), driver: false, count: dropped };
    iter::once(of_stack).chain(of_device).collect()
}

/// Those that have grown of the counters from place `from` of the first look on: a counter that begins to grow
/// between two pages moves no other.
fn page_of_grown(
    before: &[LossCounter],
    now: &[LossCounter],
    from: u32,
) -> (Vec<DeviceCounter>, Option<u32>) {
    let told = growth(before, now).skip_while(|(place, _)| *place < from).map(|(place, grown)| {
        let LossCounter { name, driver, count } = grown;
        (place, DeviceCounter { name, driver, count })
    });
    page(told, |_| COUNTER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever begins to grow between two pages, each counter is told once, and those that have grown before
    /// are all told.
    #[test]
    fn a_counter_that_begins_to_grow_moves_no_other() {
        let counter =
            |n: u32, count| LossCounter { name: format!("{n}_drops"), driver: true, count };
        let counters = |grown: &dyn Fn(u32) -> bool| -> Vec<LossCounter> {
            (0..5000).map(|n| counter(n, u64::from(grown(n)))).collect()
        };
        let before = counters(&|_| false);
        let odd = counters(&|n| n % 2 == 1);
        let all = counters(&|_| true);
        for (first, then) in [(&odd, &all), (&all, &odd)] {
            let (mut told, mut from, mut now) = (Vec::new(), Some(0), first);
            while let Some(begin) = from {
                let (page, next) = page_of_grown(&before, now, begin);
                told.extend(page.into_iter().map(|counter| counter.name));
                assert!(begin > 0 || next.is_some(), "there are several pages");
                (from, now) = (next, then);
            }
            let places: Vec<u32> =
                told.iter().map(|name| name.trim_end_matches("_drops").parse().unwrap()).collect();
            let again = places.windows(2).find(|pair| pair[0] >= pair[1]);
            assert_eq!(again, None, "a counter is told once more");
            let missed = (1..5000).step_by(2).find(|odd| places.binary_search(odd).is_err());
            assert_eq!(missed, None, "a counter is not told");
        }
    }
}
