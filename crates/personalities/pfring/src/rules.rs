//! Rules: which packets a ring takes, and what else is done with each.
//!
//! ```text
//!   a packet --> table.rs: rules between two ends --> decided?  yes --> taken, or not
//!                                                       no
//!                                                        \--> list.rs: the others, by their numbers
//! ```

mod abi;
mod list;
mod outlet;
mod table;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Instant};

pub use abi::*;
pub use outlet::{Outlet, offer};
pub use table::Key;

use crate::{
    abi::pkt_parsing_info,
    hash::default_hash,
    rules::{list::List, table::Table},
};

/// What a rule says, numbered as `rule_action_behaviour`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Forward,
    Drop,
    Continue,
    Stop,
    ForwardAndAdd,
    Transmit { bounce: bool, go_on: bool },
}

impl Action {
    pub fn of(number: i32) -> Option<Action> {
        use Action::*;
        let transmit = |bounce, go_on| Some(Transmit { bounce, go_on });
        match number {
            0 => Some(Forward),
            1 => Some(Drop),
            2 => Some(Continue),
            3 => Some(Stop),
            4 => Some(ForwardAndAdd),
            5 => transmit(false, false),
            6 => transmit(false, true),
            7 => transmit(true, false),
            8 => transmit(true, true),
            _ => None,
        }
    }
}

/// A packet that goes out by a rule.
pub struct Transmission {
    /// `None`: the device is not there.
    pub outlet: Option<Arc<Outlet>>,
    /// With its addresses swapped.
    pub bounce: bool,
}

/// A packet for the rules.
pub struct Looked<'a> {
    pub info: &'a pkt_parsing_info,
    pub if_index: i32,
    /// From its first byte.
    pub bytes: &'a [u8],
    pub now: Instant,
}

/// What the rules say of a packet.
#[derive(Default)]
pub struct Verdict {
    pub takes: bool,
    pub rule_id: Option<u16>,
    pub transmissions: Vec<Transmission>,
}

/// The rules of a ring.
pub struct Rules {
    pub table: Table,
    pub list: List,
    /// What becomes of a packet that none matches.
    pub accepts: bool,
    /// Of ten times so many packets that the table drops, ten pass; 0 for none.
    pub sampling: u32,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { table: Table::default(), list: List::default(), accepts: true, sampling: 0 }
    }
}

impl Rules {
    pub fn judge(&mut self, packet: &Looked<'_>) -> Verdict {
        let mut verdict = Verdict { takes: self.accepts, ..Verdict::default() };
        if self.table.judge(packet, self.sampling, &mut verdict) {
            return verdict;
        }
        if self.list.judge(packet, default_hash(packet.info), &mut verdict) {
            self.table.forward(packet);
        }
        verdict
    }
}
