//! The mark in front of a frame that a program has sent to the stack, where a generic XDP program looks at
//! all that the stack receives: so it knows such a frame from those of the wire, and lets it pass.
//!
//! A neighbour on the wire that knew it could send past the program into the stack. So it is random, for
//! each interface and each opening, and known to the kernel's programs alone; without host rings there is
//! none.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::sys;

/// 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark([u8; 16]);

impl Mark {
    pub(crate) fn new() -> io::Result<Mark> {
        let mut bytes = sys::random()?;
        // The first word of no mark is zero: that means that there is none.
        while bytes[..8] == [0; 8] {
            bytes = sys::random()?;
        }
        Ok(Mark(bytes))
    }

    /// As the XDP program compares them with what is in front of a frame.
    pub(crate) fn doubles(self) -> [u64; 2] {
        let [a, b, c, d] = self.words();
        [sys::whole([a, b]), sys::whole([c, d])]
    }

    /// As the program that puts it there has it.
    pub(crate) fn words(self) -> [u32; 4] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.0;
        [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]].map(u32::from_ne_bytes)
    }
}

/// It is a secret.
impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mark(..)")
    }
}
