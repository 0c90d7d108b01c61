//! Where the known packets of a test come from.

use std::time::Duration;

use ringway::Port;
use ringway_testkit::PacketSocket;

/// Longer than a ring takes to have room.
const LIMIT: Duration = Duration::from_secs(30);

/// A port, or the stack's side of an interface.
pub enum Source {
    Port(Box<Port>),
    Stack(PacketSocket),
}

impl Source {
    pub fn port(name: &str) -> Source {
        Source::Port(Box::new(Port::open(name).unwrap()))
    }

    pub fn send(&mut self, frames: &[Vec<u8>]) {
        match self {
            Source::Port(port) => {
                for frame in frames {
                    while !port.tx(0).push(frame) {
                        assert!(port.wait_tx(Some(LIMIT)).unwrap(), "no room");
                    }
                }
                port.tx(0).sync();
            }
            Source::Stack(socket) => frames.iter().for_each(|frame| socket.send(frame)),
        }
    }
}
