//! libpcap's two variables. A program that is not position-independent has copies of its own, which are made
//! before any code runs: so they are constants here.

use std::ffi::{CStr, c_char};

/// The version whose interface this is.
#[unsafe(no_mangle)]
pub static pcap_version: [u8; 7] = *b"1.10.3\0";

/// A name of an Ethernet protocol.
#[repr(C)]
pub struct eproto {
    name: *const c_char,
    number: u16,
}

// SAFETY: the names are constants.
unsafe impl Sync for eproto {}

const fn named(name: &'static CStr, number: u16) -> eproto {
    eproto { name: name.as_ptr(), number }
}

/// The names that filter expressions know, up to the null pointer.
#[unsafe(no_mangle)]
pub static eproto_db: [eproto; 13] = [
    named(c"aarp", 0x80f3),
    named(c"arp", 0x0806),
    named(c"atalk", 0x809b),
    named(c"decnet", 0x6003),
    named(c"ip", 0x0800),
    named(c"ip6", 0x86dd),
    named(c"lat", 0x6004),
    named(c"loopback", 0x9000),
    named(c"mopdl", 0x6001),
    named(c"moprc", 0x6002),
    named(c"rarp", 0x8035),
    named(c"sca", 0x6007),
    eproto { name: std::ptr::null(), number: 0 },
];
