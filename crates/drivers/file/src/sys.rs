//! The local time, as strftime(3) writes it: the unsafe code of this crate.
#![allow(unsafe_code)]

use std::{
    ffi::CString,
    time::{SystemTime, UNIX_EPOCH},
};

/// The longest that a time may be written.
const LONGEST: usize = 4096;

/// `pattern` with its conversions (`%Y`, `%H` …) replaced by a time in the local time zone. `None`: it has a
/// zero byte, or becomes longer than any path.
pub fn local_time(pattern: &[u8], time: SystemTime) -> Option<Vec<u8>> {
    let pattern = CString::new(pattern).ok()?;
    if pattern.is_empty() {
        return Some(Vec::new());
    }
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = libc::time_t::try_from(seconds).ok()?;
    let mut text = vec![0u8; LONGEST];
    // SAFETY: `tm` is made of numbers and a pointer that may be null: zeros are a valid value.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both point to values of this function; localtime_r writes to the second only, and what its
    // `tm_zone` points to lives as long as the process.
    if unsafe { libc::localtime_r(&seconds, &mut local) }.is_null() {
        return None;
    }
    // SAFETY: it writes at most as many bytes as the vector has, and both texts are as C wants them.
    let length =
        unsafe { libc::strftime(text.as_mut_ptr().cast(), text.len(), pattern.as_ptr(), &local) };
    text.truncate(length);
    (length > 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn conversions_are_replaced() {
        let noon = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let year = local_time(b"x-%Y-%%.pcap", noon);
        assert_eq!(year.as_deref(), Some(&b"x-2001-%.pcap"[..]));
        assert_eq!(local_time(b"plain", noon).as_deref(), Some(&b"plain"[..]));
        assert_eq!(local_time(b"", noon).as_deref(), Some(&b""[..]));
        assert_eq!(local_time(b"a\0b", noon), None);
        assert_eq!(local_time(&b"%c".repeat(4096), noon), None);
    }
}
