//! Whole frames, in however many slots.

use std::time::Duration;

use ringway::Port;

/// Longer than any test waits.
const LIMIT: Duration = Duration::from_secs(30);

/// The next frame that `port` receives by its first ring.
pub fn receive(port: &mut Port) -> Vec<u8> {
    port.wait_rx(Some(LIMIT)).expect("the port is there");
    let mut bytes = Vec::new();
    loop {
        let mut rx = port.rx(0);
        let Some(frame) = rx.batch(1).next() else { panic!("no packet, or one without end") };
        bytes.extend(frame.to_vec());
        if !frame.more_fragments() {
            return bytes;
        }
    }
}
