//! The built-in forwarding functions, and how one of them is chosen.

use ringway_switch_port::PortIndex;
use serde::{Deserialize, Serialize};

use crate::{
    fixed::Fixed,
    function::{Forward, Mac, Packet, Verdict},
    learning::Learning,
    spread::Spread,
};

/// The built-in forwarding functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forwarding {
    /// Learns the source addresses of a port; floods groups and what it has not learned
    /// (S-VALE-6, S-VALE-7).
    Learning {
        /// An address that was not seen for so long is forgotten; 0: never.
        ageing_seconds: u32,
    },
    /// Knows where addresses are, and learns nothing.
    Static {
        addresses: Vec<(Mac, PortIndex)>,
        /// What happens to an unknown address: flooded, or dropped. Groups are flooded.
        flood_unknown: bool,
    },
    /// Spreads packets over ports so that a flow, in both directions, stays on one.
    Hash {
        /// The ports that share the packets of all others.
        over: Vec<PortIndex>,
        /// Where the packets of those go; dropped if nowhere.
        back: Option<PortIndex>,
    },
    /// Everything to everybody, like a hub.
    Flood,
}

impl Default for Forwarding {
    fn default() -> Self {
        Forwarding::Learning { ageing_seconds: 300 }
    }
}

/// The function that a bridge runs: the built-in ones by their types, so that the loop over
/// the packets is compiled for each.
pub(crate) enum Function {
    Learning(Learning),
    Static(Fixed),
    Hash(Spread),
    Flood(Hub),
    Own(Box<dyn Forward>),
}

impl Function {
    pub fn new(forwarding: &Forwarding) -> Function {
        match forwarding {
            Forwarding::Learning { ageing_seconds } => {
                Function::Learning(Learning::new(*ageing_seconds))
            }
            Forwarding::Static { addresses, flood_unknown } => {
                Function::Static(Fixed::new(addresses, *flood_unknown))
            }
            Forwarding::Hash { over, back } => Function::Hash(Spread::new(over, *back)),
            Forwarding::Flood => Function::Flood(Hub),
        }
    }

    pub fn as_dyn(&mut self) -> &mut dyn Forward {
        match self {
            Function::Learning(f) => f,
            Function::Static(f) => f,
            Function::Hash(f) => f,
            Function::Flood(f) => f,
            Function::Own(f) => &mut **f,
        }
    }
}

/// Floods all.
pub(crate) struct Hub;

impl Forward for Hub {
    #[inline]
    fn decide(&mut self, _: &Packet<'_>) -> Verdict {
        Verdict::Flood
    }
}
