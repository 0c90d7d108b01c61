//! Queues that an interface has got since its port was opened: the port has no rings for them, and its programs do not
//! get what they receive.

use std::ops::Range;

use ringway_nic_setup::Interface;

/// How many queues an interface had when its port was opened, and has.
pub(crate) struct QueueCount {
    rings: u32,
    receiving: u32,
}

impl QueueCount {
    pub fn of(interface: &Interface) -> QueueCount {
        QueueCount { rings: interface.rx_queues, receiving: interface.rx_queues }
    }

    /// So many receive by now.
    pub fn set_receiving(&mut self, receiving: u32) {
        self.receiving = receiving;
    }

    /// Those that receive and have no ring.
    pub fn without_rings(&self) -> Range<u32> {
        self.rings..self.receiving.max(self.rings)
    }
}

/// What a user should know of queues without rings, if there are any.
pub(crate) fn describe(queues: &Range<u32>, remedy: &str) -> Option<String> {
    let last = queues.end.checked_sub(1).filter(|_| !queues.is_empty())?;
    Some(if queues.start == last {
        format!(
            "queue {last} has no ring: it was added later, and what it receives goes to the stack; {remedy}"
        )
    } else {
        format!(
            "queues {}-{last} have no rings: they were added later, and what they receive goes to the stack; \
             {remedy}",
            queues.start
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_ring_is_named() {
        let of = |rings, receiving| QueueCount { rings, receiving }.without_rings();
        let text = |queues| describe(&queues, "reopen");
        assert_eq!((text(of(2, 2)), text(of(4, 2))), (None, None));
        assert!(text(of(2, 3)).unwrap().starts_with("queue 2 has no ring: it was"));
        assert!(text(of(2, 4)).unwrap().starts_with("queues 2-3 have no rings: they were"));
    }
}
