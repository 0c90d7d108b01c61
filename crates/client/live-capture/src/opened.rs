//! What an activated handle reads from.

use std::{ffi::c_int, os::fd::RawFd, sync::Arc};

use ringway::Error;
use ringway_filter::Insn;

use crate::{
    abi::*,
    live::{End, HandingOut, Live, Reading},
    metadata::Metadata,
    send::SendError,
    signals::Signals,
    tap::Tap,
};

/// A port, or an interface that no program has open.
pub enum Opened {
    Port(Arc<Live>),
    Tap(Box<Tap>),
}

/// Functions that both have.
macro_rules! both {
    ($(fn $name:ident(&self $(, $arg:ident: $kind:ty)*) $(-> $result:ty)?;)*) => {
        impl Opened {$(
            pub fn $name(&self $(, $arg: $kind)*) $(-> $result)? {
                match self {
                    Opened::Port(live) => live.$name($($arg),*),
                    Opened::Tap(tap) => tap.$name($($arg),*),
                }
            }
        )*}
    };
}

both! {
    fn snaplen(&self) -> u32;
    fn nanoseconds(&self) -> bool;
    fn buffer_size(&self) -> c_int;
    fn fd(&self) -> RawFd;
    fn set_direction(&self, direction: c_int);
    fn stats(&self) -> pcap_stat;
    fn inject(&self, packet: &[u8], nonblocking: bool) -> Result<(), SendError>;
}

impl Opened {
    /// From the next packet on, what this valid program says.
    ///
    /// # Errors
    /// Those of [`Live::set_filter`].
    pub fn set_filter(&self, insns: &[Insn], signals: &Signals) -> Result<(), Error> {
        match self {
            Opened::Port(live) => live.set_filter(insns, signals),
            Opened::Tap(tap) => {
                tap.set_filter(insns, signals);
                Ok(())
            }
        }
    }

    /// Packets that were to be sent, and that no daemon has taken.
    pub fn unsent(&self) -> u64 {
        match self {
            Opened::Port(live) => live.unsent(),
            Opened::Tap(_) => 0,
        }
    }

    /// [`Live::queued`]; of an interface that no program has open, the kernel does not say.
    pub fn queued(&self) -> u32 {
        match self {
            Opened::Port(live) => live.queued(),
            Opened::Tap(_) => 0,
        }
    }

    /// Counters, without a wait for a read that is under way: `None` where that has them.
    pub fn try_stats(&self) -> Option<pcap_stat> {
        match self {
            Opened::Port(live) => live.try_stats(),
            Opened::Tap(tap) => Some(tap.stats()),
        }
    }

    /// Whether the next read gives packets of a port that was closed since they came, and no others.
    pub fn has_early(&self) -> bool {
        matches!(self, Opened::Port(live) if live.has_early())
    }

    /// The program is going to watch the descriptor.
    pub fn watch(&self) -> RawFd {
        match self {
            Opened::Port(live) => live.watch(),
            Opened::Tap(tap) => tap.fd(),
        }
    }

    /// [`Live::hold`]; what a tap keeps has not been given back to the kernel, and keeps its descriptor readable.
    pub fn hold(&self) {
        if let Opened::Port(live) = self {
            live.hold();
        }
    }

    /// [`Live::settle`]
    pub fn settle(&self) {
        if let Opened::Port(live) = self {
            live.settle();
        }
    }

    /// What has come to an interface that no program has open is not for the next reads.
    pub fn forget_earlier(&self) {
        if let Opened::Tap(tap) = self {
            tap.forget_earlier();
        }
    }

    /// The thread is going to read for a function of the program's.
    pub fn handing_out(&self) -> Option<HandingOut> {
        match self {
            Opened::Port(live) => Some(HandingOut::of(live)),
            Opened::Tap(_) => None,
        }
    }

    /// Gives `sink` the next of the packets that a read of one packet, which keeps it, has left: such a read would
    /// give the same, and more slowly. False where a [`read`](Self::read) is to find out what there is.
    #[inline]
    pub fn read_run(
        &self,
        signals: &Signals,
        sink: impl FnOnce(&pcap_pkthdr, *const u8, Metadata),
    ) -> bool {
        match self {
            Opened::Port(live) => live.read_run(signals, sink),
            Opened::Tap(_) => false,
        }
    }

    #[inline]
    pub fn read(
        &self,
        reading: Reading<'_>,
        sink: impl FnMut(&pcap_pkthdr, *const u8, Metadata),
    ) -> Result<u32, End> {
        match self {
            Opened::Port(live) if live.has_early() => live.read_early(reading, sink),
            Opened::Port(live) => live.read(reading, sink),
            Opened::Tap(tap) => tap.read(reading, sink),
        }
    }
}
