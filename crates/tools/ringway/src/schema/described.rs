//! The form in JSON of what is printed and has its type in another crate, or none. The tests in `tests/cli` hold it against
//! what is printed.

#![expect(dead_code, reason = "for their forms")]

use schemars::JsonSchema;

/// What a command that changes something shows of it afterwards.
#[derive(JsonSchema)]
#[schemars(rename = "now", untagged)]
pub enum Now {
    Address(crate::switch::fdb::Line<'static>),
    LogLevel(LogLevel),
    Mirror(crate::switch::mirrors::Line<'static>),
    Port(crate::ports::Line<'static>),
    Switch(crate::switch::Switch<'static>),
    Actions(Vec<crate::action::Line<'static>>),
    Filters(Vec<crate::filter::Line<'static>>),
}

/// The least important events that the daemon's log has.
#[derive(JsonSchema)]
#[schemars(rename = "log_level")]
pub struct LogLevel {
    pub level: String,
}

/// An action program and what has become of the frames that it has seen, for display.
#[derive(JsonSchema)]
#[schemars(rename = "PortAction")]
pub struct Action {
    /// What the user calls it.
    pub text: String,
    /// Receive queues that it is for.
    pub queues: Vec<u32>,
    /// The interfaces that it may redirect to.
    pub redirects: Vec<String>,
    /// Frames that were left to the port, whose filter may leave them to the stack.
    pub passed: u64,
    /// Frames that are gone: dropped, aborted, or with a verdict that means nothing.
    pub dropped: u64,
    /// Frames that were sent by the same interface.
    pub sent: u64,
    /// Frames that were left to the stack.
    pub to_stack: u64,
    /// Frames that were sent by the other interfaces.
    pub redirected: u64,
}

/// A filter and what it has counted, for display.
#[derive(JsonSchema)]
#[schemars(rename = "PortFilter")]
pub struct Filter {
    /// As the user wrote it.
    pub text: String,
    /// Of what matches, one in so many.
    pub one_in: u32,
    /// Receive queues that it is for.
    pub queues: Vec<u32>,
    /// It is for the host rings: what the stack sends.
    pub host: bool,
    /// Frames that matched.
    pub matched: u64,
    /// Those of them that the program was given.
    pub taken: u64,
    /// Frames that were left to the stack.
    pub passed: u64,
}

/// A ring and what it has counted since it was made, for display. What programs can write to is told
/// as it stands there.
#[derive(JsonSchema)]
pub struct Ring {
    /// Whether it receives; else it sends.
    pub receives: bool,
    /// Whether it is a host ring.
    pub host: bool,
    /// Among those of its kind.
    pub index: u16,
    /// How many handles have it.
    pub users: u32,
    /// How many slots it has.
    pub slots: u32,
    /// Slots with packets, as of the last sync: sent and not taken yet, or received and not released by
    /// the program. Fewer than it has slots.
    pub fill: u32,
    /// Packets that went through it; where another process takes them, slots: a packet that is longer than a
    /// buffer counts several times.
    pub packets: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Resets because `head` or `cur` were outside the program's slots.
    pub bad_index: u64,
    /// Slots with a buffer or a length that cannot be, with the kernel's part.
    pub bad_slot: u64,
    /// Packets that did not fit, with the kernel's part.
    pub too_long: u64,
    /// Packets for which there was no free slot, with the kernel's part.
    pub ring_full: u64,
    /// Packets of less than 14 bytes.
    pub too_short: u64,
    /// Packets with a header for offloads that cannot be.
    pub bad_offload: u64,
    /// System calls made to have it served.
    pub kicks: u64,
    /// What the kernel has counted on the queue of an interface, where it is an AF_XDP socket's.
    pub kernel: Option<Kernel>,
}

/// The counters of an AF_XDP socket, under the kernel's names (`struct xdp_statistics`): of one
/// direction, those of the other are 0.
#[derive(JsonSchema)]
#[schemars(rename = "SocketCounters")]
pub struct Kernel {
    /// Frames dropped for other reasons.
    pub rx_dropped: u64,
    /// Descriptors of the fill ring that were refused.
    pub rx_invalid_descs: u64,
    /// Descriptors of the tx ring that were refused.
    pub tx_invalid_descs: u64,
    /// Frames dropped because the rx ring was full.
    pub rx_ring_full: u64,
    /// Times that no buffer was left to receive into: where the kernel copies, each cost a frame. In zero copy the driver
    /// looks ahead, and none need be lost.
    pub rx_fill_ring_empty_descs: u64,
    /// Times that there was nothing to send.
    pub tx_ring_empty_descs: u64,
}

/// A counter of a network interface, or of its driver, that stands for losses, and has grown since the port was
/// opened, for display. A frame may be in several of them, and among what rings count.
#[derive(JsonSchema)]
#[schemars(rename = "DeviceCounter")]
pub struct Device {
    /// The kernel's name of it (`struct rtnl_link_stats64`), or the driver's.
    pub name: String,
    /// It is the driver's (`ethtool -S`); else the interface's, where `rx_dropped` and `tx_dropped` may have
    /// frames that the stack has dropped.
    pub driver: bool,
    /// By how much it has grown.
    pub count: u64,
}

/// What `ringway steer` has changed.
#[derive(JsonSchema)]
pub struct Steered {
    /// Places of the RSS table that were moved away from the queue.
    pub moved: u32,
    /// Places of the RSS table.
    pub table: u32,
    /// Whether flow rules had to be turned on.
    pub rules_turned_on: bool,
    /// Each flow and the place of its rule.
    pub rules: Vec<(String, u32)>,
}

/// How often something took how long.
#[derive(JsonSchema)]
pub struct Durations {
    /// For each bound of the histograms of `ringway metrics` how often it took so long at most, and longer than the bound before; last, how
    /// often it took longer than all of them.
    pub counts: Vec<u64>,
    /// Microseconds of all together.
    pub micros: u64,
}

/// Whether the daemon's configuration declares something.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Declared {
    /// No: it was set up by hand.
    No,
    /// As it is.
    Yes,
    /// Otherwise than it is: it has been changed by hand since the configuration was read.
    Changed,
}

/// Nanoseconds: the least, the mean and the greatest time, and those that so many percent do not exceed.
#[derive(JsonSchema)]
pub struct Distribution {
    pub min: u64,
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    #[schemars(rename = "p99.9")]
    pub p99_9: u64,
    #[schemars(rename = "p99.99")]
    pub p99_99: u64,
    pub max: u64,
}
