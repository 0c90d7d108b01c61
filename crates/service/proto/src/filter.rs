//! Which of the frames that an interface receives a program wants.

use ringway_filter::Insn;
use serde::{Deserialize, Serialize};

/// Which frames a program wants of the queues that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// As the user wrote it, for display.
    pub text: String,
    /// The same in classic BPF.
    pub insns: Vec<Insn>,
    /// Of what matches, one in so many; 0 is 1.
    pub one_in: u32,
}

impl Filter {
    /// Bytes of the text, at most.
    pub const MAX_TEXT: usize = 4096;
}

/// Receive rings of an interface that programs have open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RxSelector {
    /// Those of the interface itself.
    Queues,
    /// One of them.
    Queue(u16),
    /// Those of the stack behind it.
    Host,
}
