//! A filter of a NIC port: which of the frames that come in are led to the program, and how many
//! there were.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringway_filter::{Insn, Program};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::operation::MakeFilter;
use crate::parcel::Fd;
use crate::{Error, helper, sys};

/// The counters in the filter's map, one set a CPU; each is a `u64` at its number times eight.
#[derive(Clone, Copy)]
pub(crate) enum Counter {
    Matched,
    Taken,
    Passed,
    /// Matches still to be left out before the next is taken.
    Skip,
}

const COUNTERS: usize = 4;

impl Counter {
    /// In bytes, from the start of the set.
    pub fn offset(self) -> i16 {
        8 * self as i16
    }
}

/// A filter expression with its sampling, and the counters that belong to it. Kernel 5.18 and newer
/// for filters that ask for a frame's length.
#[derive(Serialize, Deserialize)]
pub struct Filter {
    #[serde(serialize_with = "insns", deserialize_with = "checked")]
    pub(crate) program: Program,
    pub(crate) one_in: u32,
    counters: Fd,
}

fn insns<S: Serializer>(program: &Program, to: S) -> Result<S::Ok, S::Error> {
    program.insns().serialize(to)
}

fn checked<'de, D: Deserializer<'de>>(from: D) -> Result<Program, D::Error> {
    Program::new(Vec::<Insn>::deserialize(from)?).map_err(D::Error::custom)
}

/// What a filter counts in.
pub(crate) fn counters_here(interface: &str) -> Result<OwnedFd, Error> {
    sys::percpu_array(8 * COUNTERS as u32).map_err(Error::refused(
        interface,
        "there is no memory for a filter's counters",
        "free memory, or raise the limit of open files",
    ))
}

/// What became of the frames that a filter has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterCounters {
    /// Matched.
    pub matched: u64,
    /// Matched, and taken for the program: one in so many.
    pub taken: u64,
    /// Left to the stack: not matched, not in the sample, or of a queue that the program has left to the stack.
    pub passed: u64,
}

impl Filter {
    /// Of what matches `program`, one frame in `one_in` is taken: each CPU takes the first that it
    /// sees, and then every so many. 0 is 1.
    pub fn new(interface: &str, program: Program, one_in: u32) -> Result<Filter, Error> {
        let counters = helper::run(MakeFilter { interface: interface.into() })?;
        Ok(Filter { program, one_in: one_in.max(1), counters })
    }

    pub(crate) fn map(&self) -> BorrowedFd<'_> {
        self.counters.as_fd()
    }

    /// The counters, since the filter was made.
    pub fn counters(&self) -> io::Result<FilterCounters> {
        let sets = sys::percpu_value::<COUNTERS>(self.map())?;
        let sum = |counter: Counter| sets.iter().filter_map(|set| set.get(counter as usize)).sum();
        Ok(FilterCounters {
            matched: sum(Counter::Matched),
            taken: sum(Counter::Taken),
            passed: sum(Counter::Passed),
        })
    }
}
