//! libpcap's own machine.

use std::{
    ffi::{c_uint, c_void},
    sync::OnceLock,
};

use ringway_filter::Insn;

type Filter = unsafe extern "C" fn(*const Insn, *const u8, c_uint, c_uint) -> c_uint;

fn bpf_filter() -> Filter {
    static FILTER: OnceLock<Filter> = OnceLock::new();
    // SAFETY: libpcap and its function are there, or the test fails; the function is of that type.
    *FILTER.get_or_init(|| unsafe {
        let library = libc::dlopen(c"libpcap.so.0.8".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "libpcap0.8 is missing");
        let function = libc::dlsym(library, c"bpf_filter".as_ptr());
        assert!(!function.is_null());
        std::mem::transmute::<*mut c_void, Filter>(function)
    })
}

/// What a valid filter returns in libpcap for a packet of `length` bytes, of which `packet` has all or the
/// first.
pub fn pcap_run(insns: &[Insn], packet: &[u8], length: u32) -> u32 {
    let filter = bpf_filter();
    // SAFETY: the function reads a filter that ends within `insns`, and `packet` as far as it is told.
    unsafe { filter(insns.as_ptr(), packet.as_ptr(), length, packet.len() as c_uint) }
}

/// Whether libpcap takes `packet` for a match of a valid filter.
pub fn pcap_matches(insns: &[Insn], packet: &[u8]) -> bool {
    pcap_run(insns, packet, packet.len() as u32) != 0
}
