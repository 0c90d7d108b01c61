//! The Ethernet address by which programs know a port that has none.

/// An address for the port of this name: always the same, of the range that anybody may use, and
/// not that of a port of another name. For APIs that have to name one: a switch learns addresses
/// from what is sent.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{ethernet_address, mac_text};
///
/// let port = Port::open("vale0:a")?;
/// let mut frame = [0xff; 60];
/// frame[6..12].copy_from_slice(&ethernet_address(port.name()));
/// println!("{} sends", mac_text(ethernet_address(port.name())));
/// # Ok::<(), ringway::Error>(())
/// ```
pub fn ethernet_address(port: &str) -> [u8; 6] {
    // FNV-1a.
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let [a, b, c, d] = port.bytes().fold(0x811c_9dc5, step).to_be_bytes();
    [0x02, 0x52, a, b, c, d]
}
