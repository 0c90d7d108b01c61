//! Texts for the program: in its buffers for errors, and in handles, where `pcap_geterr` finds them.

use std::{
    ffi::{CStr, c_char},
    sync::atomic::{AtomicU8, Ordering::Relaxed},
};

use crate::abi::PCAP_ERRBUF_SIZE;

/// Writes a text into a buffer for errors, cut where it does not fit; nothing if the buffer is null.
///
/// # Safety
/// The buffer has 256 bytes, or is null.
pub unsafe fn store(errbuf: *mut c_char, text: &str) {
    if errbuf.is_null() {
        return;
    }
    let text = fitting(text);
    // SAFETY: no more than 255 bytes and the terminating zero.
    unsafe {
        errbuf.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        errbuf.add(text.len()).write(0);
    }
}

/// As much of a text as a buffer for errors holds, in whole characters.
fn fitting(text: &str) -> &[u8] {
    let mut end = text.len().min(PCAP_ERRBUF_SIZE - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

/// The text of a handle's last error. The program reads it while another of its threads may write it: a text
/// of both, perhaps, but never one without an end.
pub struct ErrorText([AtomicU8; PCAP_ERRBUF_SIZE]);

impl ErrorText {
    pub const fn new() -> ErrorText {
        ErrorText([const { AtomicU8::new(0) }; PCAP_ERRBUF_SIZE])
    }

    pub fn set(&self, text: &str) {
        let bytes = fitting(text).iter().copied().chain([0]);
        self.0.iter().zip(bytes).for_each(|(to, byte)| to.store(byte, Relaxed));
    }

    /// As C has it: it ends with a zero, at the last byte at the latest, and is valid as long as the handle.
    pub fn as_ptr(&self) -> *mut c_char {
        self.0.as_ptr().cast_mut().cast()
    }

    pub fn text(&self) -> String {
        let bytes = self.0.iter().map(|byte| byte.load(Relaxed)).take_while(|byte| *byte != 0);
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }
}

/// A C string as text.
///
/// # Safety
/// A C string, or null, which is an empty one.
pub unsafe fn text<'a>(string: *const c_char) -> std::borrow::Cow<'a, str> {
    if string.is_null() {
        return "".into();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = ErrorText::new();
        text.set(&"ä".repeat(200));
        assert_eq!(text.text(), "ä".repeat(127));
        text.set("short");
        assert_eq!(text.text(), "short");
    }
}
