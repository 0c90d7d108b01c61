//! What the registry asks of a worker, one command after another.

use std::sync::{Arc, mpsc};

use ringway_abi::Dir;
use ringway_fastpath::FastPath;
use ringway_kring::{Doorbell, Offsets};

use crate::{
    config::PortConfig,
    counters::PortCounters,
    draining::{Left, Remainder},
    forwarding::Function,
    multicast::{GroupPage, Multicast},
    switch_mirror::SwitchMirror,
    table::{AddressFilter, LearnedAddress, StaticAddress},
};
use ringway_switch_port::{Port, PortIndex, PortMirrors};

/// Some of the addresses that a bridge has learned, and where the next are.
pub type LearnedPage = (Vec<LearnedAddress>, Option<usize>);

/// A command, most with where to send the answer.
pub enum Command {
    Attach(Box<dyn Port>, PortConfig, Arc<PortCounters>, mpsc::Sender<Option<PortIndex>>),
    Configure(PortIndex, PortConfig, mpsc::Sender<bool>),
    ConfigureAll(Vec<(PortIndex, PortConfig)>, mpsc::Sender<()>),
    SetOffsets(PortIndex, Dir, usize, Option<Offsets>, mpsc::Sender<()>),
    Leave {
        index: PortIndex,
        successor: Option<Box<dyn Port>>,
        remainder: Remainder,
        left: Left,
        answer: mpsc::Sender<bool>,
    },
    Use(Box<Function>, mpsc::Sender<()>),
    SetMirrors(PortIndex, PortMirrors, mpsc::Sender<()>),
    Share(Arc<FastPath>, mpsc::Sender<()>),
    Count(mpsc::Sender<()>),
    Learned {
        from: usize,
        most: usize,
        answer: mpsc::Sender<LearnedPage>,
    },
    SetStatics(Vec<StaticAddress>, mpsc::Sender<()>),
    Statics(mpsc::Sender<Vec<StaticAddress>>),
    Flush(AddressFilter, mpsc::Sender<usize>),
    SetMulticast(Multicast, mpsc::Sender<()>),
    Groups {
        from: usize,
        most: usize,
        answer: mpsc::Sender<GroupPage>,
    },
    SetSwitchMirrors(Vec<SwitchMirror>, mpsc::Sender<()>),
    SwitchMirrors(mpsc::Sender<Vec<SwitchMirror>>),
    Poll(Vec<usize>, mpsc::Sender<()>),
    Stop,
}

/// Commands that wait for the worker, which sleeps on the doorbell.
pub type Mailbox = ringway_kring::Mailbox<Command, Doorbell>;
