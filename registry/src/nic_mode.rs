//! The modes in which an interface is driven, and their choice.

use std::fmt;

use ringway_nic_setup::{AttachMode, Mode};
use ringway_proto::NicMode;
use ringway_region::Timestamps;

/// The mode of AF_XDP sockets, and how the XDP program is attached for them; `None` for AF_PACKET.
pub(crate) fn xdp(mode: NicMode) -> Option<(AttachMode, Mode)> {
    match mode {
        NicMode::ZeroCopy => Some((AttachMode::Native, Mode::ZeroCopy)),
        NicMode::Copy => Some((AttachMode::Native, Mode::Copy)),
        NicMode::Generic => Some((AttachMode::Generic, Mode::Generic)),
        NicMode::Packet => None,
    }
}

/// Those among `modes` that AF_XDP sockets have.
pub(crate) fn of_sockets(modes: &[NicMode]) -> Vec<Mode> {
    modes.iter().filter_map(|mode| xdp(*mode)).map(|(_, mode)| mode).collect()
}

/// The mode of an AF_XDP socket.
pub(crate) fn of_socket(mode: Mode) -> NicMode {
    match mode {
        Mode::ZeroCopy => NicMode::ZeroCopy,
        Mode::Copy => NicMode::Copy,
        Mode::Generic => NicMode::Generic,
    }
}

/// What a program wants of an interface that it opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeRequest {
    /// This mode and no other.
    pub mode: Option<NicMode>,
    /// These timestamps, or none.
    pub timestamps: Option<Timestamps>,
    /// Whether it may have an AF_PACKET socket, which reaches all interfaces of the namespace.
    pub may_have_packet: bool,
}

/// Modes that were not to be had, and why.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Vec<(Vec<NicMode>, String)>);

impl Refusals {
    /// The better modes that a socket was refused.
    pub fn of_socket(refused: &[(Mode, String)]) -> Refusals {
        let mut refusals = Refusals::default();
        for (mode, why) in refused {
            refusals.add(&[of_socket(*mode)], why);
        }
        refusals
    }

    /// And these, which were tried after.
    pub fn then(mut self, others: Refusals) -> Refusals {
        self.0.extend(others.0);
        self
    }

    pub fn add(&mut self, modes: &[NicMode], why: impl Into<String>) {
        self.0.push((modes.to_vec(), why.into()));
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (modes, why)) in self.0.iter().enumerate() {
            let names: Vec<_> = modes.iter().map(|mode| mode.name()).collect();
            write!(f, "{}not {}: {why}", if i == 0 { "" } else { "; " }, names.join(" or "))?;
        }
        Ok(())
    }
}

/// A mode with the reasons why it is no better one.
pub(crate) fn describe(mode: &str, refused: &Refusals) -> String {
    if refused.0.is_empty() { mode.into() } else { format!("{mode}; {refused}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        let mut refusals = Refusals::default();
        refusals.add(&[NicMode::ZeroCopy, NicMode::Copy], "no hook");
        refusals.add(&[NicMode::Generic], "no socket");
        assert_eq!(refusals.to_string(), "not zerocopy or copy: no hook; not generic: no socket");
    }
}
