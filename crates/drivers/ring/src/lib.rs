//! Drivers that need nothing but rings: no kernel, no privileges, no system call but to
//! wake a sleeper.
//!
//! | driver | its rings |
//! | --- | --- |
//! | [`Null`] | move nothing |
//! | [`Sink`] | swallow what is sent, and deliver nothing |
//! | [`PipeTx`], [`PipeRx`] | are each other's: slots pass between two rings of one region |
//! | [`Monitor`] | are filled by the party that moves the packets of another port |
//! | [`WorkerServed`] | are worked on by somebody else: a bridge worker in the daemon |
//!
//! [`fetch_indirect`] brings packets into the region that a program has left outside.
#![deny(unsafe_code)]

mod indirect;
mod monitor;
mod null;
mod pipe;
mod served;
mod sys;

pub use indirect::fetch as fetch_indirect;
pub use monitor::Monitor;
pub use null::{Null, Sink};
pub use pipe::{PipeRx, PipeTx};
pub use served::WorkerServed;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringway_abi::Dir;
    use ringway_kring::Kring;
    use ringway_region::{Layout, Region, RingInit, Sizes};

    /// A transmit and a receive ring of 16 slots, without buffers.
    pub fn rings() -> [Kring; 2] {
        let sizes = Sizes::private([1, 1], [16, 16], 0, 0);
        let region = Arc::new(Region::create(7, Layout::new(&sizes, 0).unwrap()).unwrap());
        let make = |object, dir| {
            let init = RingInit { dir, ringid: 0, num_slots: 16 };
            Kring::create(&region, object, &init, &[]).unwrap()
        };
        [make(0, Dir::Tx), make(1, Dir::Rx)]
    }

    /// What a program does before a sync.
    pub fn move_to(kring: &Kring, head: u32, cur: u32) {
        kring.ring().set_head(head);
        kring.ring().set_cur(cur);
    }
}
