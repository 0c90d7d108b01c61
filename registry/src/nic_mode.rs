//! The modes in which an interface is driven, and their choice.

use std::{fmt, str::FromStr};

use ringway_region::Timestamps;
use ringway_xdp::{AttachMode, Mode, Xsk};
use serde::{Deserialize, Serialize};

/// How packets travel between an interface and the rings of its port, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NicMode {
    /// AF_XDP: the NIC reads and writes the region itself.
    ZeroCopy,
    /// AF_XDP: the kernel copies, in the driver's XDP path.
    Copy,
    /// AF_XDP: the kernel copies, in the stack.
    Generic,
    /// AF_PACKET, for interfaces without XDP.
    Packet,
}

impl NicMode {
    pub const ALL: [NicMode; 4] =
        [NicMode::ZeroCopy, NicMode::Copy, NicMode::Generic, NicMode::Packet];

    /// As a user writes it.
    pub fn name(self) -> &'static str {
        match self {
            NicMode::ZeroCopy => "zerocopy",
            NicMode::Copy => "copy",
            NicMode::Generic => "generic",
            NicMode::Packet => "packet",
        }
    }

    /// The mode of AF_XDP sockets, and how the XDP program is attached for them; `None` for AF_PACKET.
    pub(crate) fn xdp(self) -> Option<(AttachMode, Mode)> {
        match self {
            NicMode::ZeroCopy => Some((AttachMode::Native, Mode::ZeroCopy)),
            NicMode::Copy => Some((AttachMode::Native, Mode::Copy)),
            NicMode::Generic => Some((AttachMode::Generic, Mode::Generic)),
            NicMode::Packet => None,
        }
    }

    /// Those among `modes` that AF_XDP sockets have.
    pub(crate) fn of_sockets(modes: &[NicMode]) -> Vec<Mode> {
        modes.iter().filter_map(|mode| mode.xdp()).map(|(_, mode)| mode).collect()
    }
}

impl From<Mode> for NicMode {
    fn from(mode: Mode) -> NicMode {
        match mode {
            Mode::ZeroCopy => NicMode::ZeroCopy,
            Mode::Copy => NicMode::Copy,
            Mode::Generic => NicMode::Generic,
        }
    }
}

impl fmt::Display for NicMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for NicMode {
    type Err = String;

    fn from_str(text: &str) -> Result<NicMode, String> {
        let found = NicMode::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| {
            let names = NicMode::ALL.map(NicMode::name).join(", ");
            format!("`{text}` is no mode of an interface; these are: {names}")
        })
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
    pub fn of_socket(socket: &Xsk) -> Refusals {
        let mut refusals = Refusals::default();
        for (mode, why) in &socket.refused {
            refusals.add(&[(*mode).into()], why);
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
    fn names_and_reasons() {
        for mode in NicMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("zero".parse::<NicMode>().unwrap_err().contains("zerocopy, copy"));
        let mut refusals = Refusals::default();
        refusals.add(&[NicMode::ZeroCopy, NicMode::Copy], "no hook");
        refusals.add(&[NicMode::Generic], "no socket");
        assert_eq!(refusals.to_string(), "not zerocopy or copy: no hook; not generic: no socket");
    }
}
