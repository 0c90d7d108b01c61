//! The modes in which an interface is driven.

use std::{fmt, str::FromStr};

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
    /// All of them, best first.
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
            if text == "kernel" {
                // `switch list` shows that word for an interface of a switch.
                let problem =
                    "is how a switch drives an interface in the mode packet, and if none is named";
                return format!(
                    "`kernel` {problem}; write packet, or no mode (modes are: {names})"
                );
            }
            format!("`{text}` is no mode of an interface; these are: {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for mode in NicMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let said = "kernel".parse::<NicMode>().unwrap_err();
        assert!(said.contains("write packet, or no mode"), "{said}");
        assert!("zero".parse::<NicMode>().unwrap_err().contains("zerocopy, copy"));
    }
}
