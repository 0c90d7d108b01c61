//! libpcap's own machine.

use std::ffi::{c_uint, c_void};

use ringway_filter::Insn;

/// Whether libpcap takes `packet` for a match of a valid filter.
pub fn pcap_matches(insns: &[Insn], packet: &[u8]) -> bool {
    type Filter = unsafe extern "C" fn(*const Insn, *const u8, c_uint, c_uint) -> c_uint;
    // SAFETY: libpcap and its function are there, or the test fails; the function reads a filter
    // that ends within `insns`, and `packet` as far as it is told.
    unsafe {
        let library = libc::dlopen(c"libpcap.so.0.8".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "libpcap0.8 is missing");
        let function = libc::dlsym(library, c"bpf_filter".as_ptr());
        assert!(!function.is_null());
        let filter: Filter = std::mem::transmute::<*mut c_void, Filter>(function);
        let len = packet.len() as c_uint;
        filter(insns.as_ptr(), packet.as_ptr(), len, len) != 0
    }
}
