//! `-X`: what is in a slot.

use crate::tools::log::say;
use ringway::Slot;
use std::fmt::Write;

/// Shows a slot and its bytes.
pub fn dump(ring: &str, cur: u32, slot: &Slot, bytes: &[u8]) {
    let Slot { buf_idx, len, flags, .. } = slot;
    say!("ring {ring} cur {cur:5} [buf {buf_idx:6} flags 0x{flags:04x} len {len:5}]");
    for (row, bytes) in bytes.chunks(16).enumerate() {
        say!("{}", line(16 * row, bytes));
    }
}

/// Offset, hexadecimal, and what of it can be printed.
fn line(offset: usize, bytes: &[u8]) -> String {
    let (mut hex, mut text) = (String::new(), String::new());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x} ");
        text.push(if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' });
    }
    format!("{offset:5}: {hex:<48}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stay_where_they_are() {
        assert_eq!(
            line(16, b"0123456789abcde\n"),
            "   16: 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 0a 0123456789abcde."
        );
        assert_eq!(line(0, b"\xffA"), format!("    0: ff 41 {:42}.A", ""));
    }
}
