//! When frames were received: eight bytes that the XDP program writes in front of each, as metadata,
//! which the kernel brings with the frame into the socket's memory: there they are where a [region has
//! them](Timestamps). A program of a switch writes them while a monitor watches the interface: the worker
//! sets a word that the program reads.
//!
//! Those of the hardware take a program that is loaded for one interface, which asks the driver:
//! `Documentation/networking/xdp-rx-metadata.rst`, kernel 6.3 and newer. Those of software are the
//! time when the program runs: kernel 6.1.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use ringway_filter::{Assembler, CONTEXT, Label, Operand, STACK, Size, jump, reg::*};
use ringway_region::Timestamps;
use serde::{Deserialize, Serialize};

use crate::generate::MD_DATA;
use crate::{Error, Interface, btf, genl};

/// Bytes in front of a frame.
const BYTES: u32 = 8;

/// Offset in `struct xdp_md`.
const MD_DATA_META: i16 = 8;
/// Helpers of the kernel.
const XDP_ADJUST_META: u32 = 54;
const KTIME_GET_TAI_NS: u32 = 208;

/// Where the function leaves the time, below what a filter uses.
const TIME: i16 = -STACK - 8;

/// What a program writes in front of frames.
#[derive(Clone, Copy)]
pub(crate) struct Stamp<'a> {
    pub clock: Clock,
    /// Only while this [word](crate::sys::shared_word) is not 0.
    pub on_demand: Option<BorrowedFd<'a>>,
}

impl Stamp<'_> {
    /// As [`Clock::stamp`], if it is wanted.
    pub fn put_on(self, asm: &mut Assembler, lead: Label) {
        if let Some(wanted) = self.on_demand {
            asm.set_map_value(R1, wanted.as_raw_fd());
            asm.load(Size::Word, R1, R1, 0);
            asm.branch(jump::EQ, R1, Operand::Constant(0), lead);
        }
        self.clock.stamp(asm, lead);
    }
}

/// How a program learns the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Clock {
    /// By the function of the kernel's that has this number.
    Function(u32),
    Helper,
}

impl Clock {
    /// Finds the clock. The calling thread is in the interface's network namespace.
    pub fn find(interface: &Interface, asked: Timestamps) -> Result<Clock, Error> {
        if asked == Timestamps::Software {
            return Ok(Clock::Helper);
        }
        let refused = |what: &'static str, cause| Error::Refused {
            interface: interface.name.clone(),
            what: Cow::from(what),
            cause,
            remedy: "open it without timestamps, or with those of software".into(),
        };
        if !genl::tells_rx_time(interface.index) {
            let unsupported = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            return Err(refused(
                "its driver tells XDP programs no hardware timestamps",
                unsupported,
            ));
        }
        btf::function("bpf_xdp_metadata_rx_timestamp").map(Clock::Function).map_err(|e| {
            refused("hardware timestamps take Linux 6.3 with CONFIG_DEBUG_INFO_BTF", e)
        })
    }

    /// Whether a program with it is for one interface alone, and for its driver's hook.
    pub fn is_bound(self) -> bool {
        matches!(self, Clock::Function(_))
    }

    /// Writes the time in front of the frame, 0 where there is none; goes to `lead` without a word
    /// where there is no room. What posted the chunk has put 0 there.
    fn stamp(self, asm: &mut Assembler, lead: Label) {
        asm.set(R1, Operand::Register(CONTEXT));
        asm.set(R2, Operand::Constant(BYTES.wrapping_neg()));
        asm.call(XDP_ADJUST_META);
        asm.branch(jump::NE, R0, Operand::Constant(0), lead);
        // R7 survives the calls. The verifier wants to see that there is room.
        asm.load(Size::Word, R7, CONTEXT, MD_DATA_META);
        asm.load(Size::Word, R2, CONTEXT, MD_DATA);
        asm.set(R3, Operand::Register(R7));
        asm.add(R3, Operand::Constant(BYTES));
        asm.branch_wide(jump::GT, R3, Operand::Register(R2), lead);
        match self {
            Clock::Helper => {
                asm.call(KTIME_GET_TAI_NS);
                asm.set(R1, Operand::Register(R0));
            }
            Clock::Function(number) => {
                let none = asm.label();
                asm.store(Size::Double, R10, TIME, Operand::Constant(0));
                asm.set(R1, Operand::Register(CONTEXT));
                asm.set(R2, Operand::Register(R10));
                asm.add(R2, Operand::Constant(TIME as u32));
                asm.call_function(number);
                asm.set(R1, Operand::Constant(0));
                asm.branch(jump::NE, R0, Operand::Constant(0), none);
                asm.load(Size::Double, R1, R10, TIME);
                asm.place(none);
            }
        }
        asm.store(Size::Double, R7, 0, Operand::Register(R1));
    }
}

/// Takes the time away from in front of a frame that goes to the stack: there frames that differ in
/// it are not joined.
pub(crate) fn take_off(asm: &mut Assembler) {
    asm.set(R1, Operand::Register(CONTEXT));
    asm.set(R2, Operand::Constant(BYTES));
    asm.call(XDP_ADJUST_META);
}
