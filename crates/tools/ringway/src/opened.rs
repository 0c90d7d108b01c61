//! What a user is told of a port that is open.

use crate::port_notes;
use ringway::{FileSpec, Port, PortKind, RingSelection};
use serde::Serialize;
use std::fmt::{self, Display};

/// A port is open and ready.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "open")]
pub struct Opened {
    port: String,
    kind: String,
    region: u16,
    tx_rings: usize,
    rx_rings: usize,
    /// The user whose the switch is, if it is another than this one, and not root.
    #[serde(skip_serializing_if = "Option::is_none")]
    switch_owner: Option<u32>,
}

impl Opened {
    pub fn new(port: &Port) -> Opened {
        port_notes::without_id(port);
        Opened {
            port: shown_name(port),
            kind: kind_of(port.name(), port.kind()),
            region: port.mem_id(),
            tx_rings: port.tx_rings(),
            rx_rings: port.rx_rings(),
            switch_owner: port.binding().switch_owner(),
        }
    }

    /// Of an interface that is listened to beside its stack: it has no rings, and takes no memory
    /// of a region.
    pub fn listening(name: &str) -> Opened {
        let (port, kind, switch_owner) = (name.into(), "listener".into(), None);
        Opened { port, kind, region: 0, tx_rings: 0, rx_rings: 0, switch_owner }
    }
}

impl Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Opened { port, kind, region, tx_rings, rx_rings, .. } = self;
        write!(f, "{port} is open ({kind}, region {region}, {tx_rings} tx and {rx_rings} rx rings)")
    }
}

/// The name of a port as its user wrote it: an interface and the stack behind it are one port of the daemon's.
pub fn shown_name(port: &Port) -> String {
    let name = port.name();
    match port.binding().registration().rings {
        RingSelection::Host => format!("{name}^"),
        RingSelection::OneHost(ring) => format!("{name}^{ring}"),
        _ => name.into(),
    }
}

/// What people call the kind of a port: the daemon knows nothing of capture files, whose rings it leaves
/// to the program that has them open.
pub fn kind_of(name: &str, kind: PortKind) -> String {
    match kind {
        PortKind::Null if FileSpec::is_file(name) => "file".into(),
        kind => kind.to_string(),
    }
}
