//! The texts of `/proc/net/pf_ring`, label for label, without what only a ring in memory shared with a module has.

use std::{
    fmt::{Display, Write},
    sync::atomic::Ordering::Relaxed,
};

use crate::{
    abi::*,
    interface::Interface,
    ring::{Ring, try_lock},
};

/// Lines with labels of one width.
struct Lines {
    width: usize,
    text: String,
}

impl Lines {
    fn new(width: usize) -> Lines {
        Lines { width, text: String::new() }
    }

    fn line(&mut self, label: &str, value: impl Display) {
        // A string takes everything.
        let _ = writeln!(self.text, "{label:<width$}: {value}", width = self.width);
    }
}

/// Of the whole, where so many rings are open.
pub fn all(rings: usize) -> String {
    let mut lines = Lines::new(25);
    lines.line("PF_RING Version", "8.9.0 (ringway)");
    lines.line("Total rings", rings);
    lines.text.push('\n');
    lines.line("Standard (non ZC) Options", "");
    lines.line("Ring slots", SLOTS);
    lines.line("Slot version", SLOT_VERSION);
    lines.line("Capture TX", "Yes [RX+TX]");
    lines.line("IP Defragment", "No");
    lines.line("Socket Mode", "Standard");
    lines.line("Cluster Fragment Queue", 0);
    lines.line("Cluster Fragment Discard", 0);
    lines.text
}

/// Of an interface that so many rings are on.
pub fn interface(name: &str, rings: usize) -> String {
    let of = Interface::new(name);
    let of = of.as_ref();
    let flags = of.and_then(Interface::flags).unwrap_or(0);
    let address = of.and_then(Interface::address).unwrap_or_default();
    let mut lines = Lines::new(14);
    lines.line("Name", name);
    lines.line("Index", of.and_then(Interface::index).unwrap_or(0));
    lines.line("Address", address.map(|byte| format!("{byte:02X}")).join(":"));
    lines.line("Polling Mode", "NAPI");
    lines.line("Promisc", if flags & libc::IFF_PROMISC != 0 { "Enabled" } else { "Disabled" });
    lines.line("Type", if flags & libc::IFF_LOOPBACK != 0 { "Loopback" } else { "Ethernet" });
    lines.line("Family", "Standard NIC");
    lines.line("# Bound Sockets", rings);
    lines.line("TX Queues", of.map_or(1, Interface::tx_channels));
    lines.line("RX Queues", of.map_or(1, Interface::rx_channels));
    lines.text
}

/// Of a ring. `None` where it is changing.
pub fn ring(ring: &Ring) -> Option<String> {
    let mut lines = Lines::new(23);
    let mode = ring.mode.load(Relaxed);
    {
        let texts = try_lock(&ring.texts)?;
        lines.line("Bound Device(s)", texts.bound_to.as_ref().unwrap_or(&ring.device));
        lines.line("Active", u8::from(ring.is_enabled()));
        lines.line("Breed", "Standard");
        let application = texts.application.as_str();
        lines.line("Appl. Name", if application.is_empty() { "<unknown>" } else { application });
    }
    let name = |names: [&'static str; 3], at: i32| names[usize::try_from(at).unwrap_or(0).min(2)];
    lines.line(
        "Socket Mode",
        match mode {
            MANAGEMENT_ONLY => "Management only",
            mode => name(["RX+TX", "TX only", "RX only"], mode),
        },
    );
    let admission = &ring.admission;
    if mode != SEND_ONLY {
        let direction = ring.direction.load(Relaxed);
        lines.line("Capture Direction", name(["RX+TX", "RX only", "TX only"], direction));
        let rules = try_lock(&admission.rules)?;
        lines.line("Sampling Rate", admission.sampling_rate()?);
        lines.line("Filtering Sampling Rate", rules.sampling);
        lines.line("IP Defragment", "No");
        let is_filtered = try_lock(&ring.filter)?.is_some();
        lines.line("BPF Filtering", if is_filtered { "Enabled" } else { "Disabled" });
        lines.line("Sw Filt Hash Rules", rules.table.len());
        lines.line("Sw Filt WC Rules", rules.list.len());
        lines.line("Sw Filt Hash Match", rules.table.matched);
        lines.line("Sw Filt Hash Miss", rules.table.missed);
        lines.line("Sw Filt Hash Filtered", rules.table.filtered);
        lines.line("Hw Filt Rules", 0);
        lines.line("Poll Pkt Watermark", ring.watermark.load(Relaxed));
        lines.line("Num Poll Calls", ring.polls.load(Relaxed));
        lines.line("Poll Watermark Timeout", ring.watermark_timeout.load(Relaxed));
    }
    lines.line("Channel Id Mask", format_args!("0x{:016X}", admission.channels()));
    if let Some(vlan) = admission.vlan() {
        lines.line("VLAN Id", vlan);
    }
    if let Some(member) = try_lock(&admission.cluster)?.as_ref() {
        lines.line("Cluster Id", member.id);
    }
    lines.line("Slot Version", format_args!("{SLOT_VERSION} [8.9.0]"));
    lines.line("Min Num Slots", SLOTS);
    if mode != SEND_ONLY {
        let (read, lost) = (ring.received(), ring.lost());
        lines.line("Tot Packets", read + lost);
        lines.line("Tot Pkt Lost", lost);
        lines.line("Tot Insert", read);
        lines.line("Tot Read", read);
    }
    if mode != RECV_ONLY {
        let unsent: u64 = ring.sources.iter().map(|source| source.opened.unsent()).sum();
        lines.line("TX: Send Ok", ring.sent.load(Relaxed).saturating_sub(unsent));
        lines.line("TX: Send Errors", ring.send_errors.load(Relaxed) + unsent);
    }
    if mode != SEND_ONLY {
        lines.line("Reflect: Fwd Ok", admission.forwarded.load(Relaxed));
        lines.line("Reflect: Fwd Errors", admission.not_forwarded.load(Relaxed));
    }
    Some(lines.text)
}
