//! What only hardware has, which answers as on an ordinary interface; and cards' times in packets' trailers, which
//! no packet here has.

use std::ffi::{c_char, c_int};

use super::of_ring;
use crate::{
    abi::*,
    argument::{Out, Text},
};

of_ring! {
    fn pfring_recv_burst(_packets: *mut unused, _most: u8, _wait: u8) -> c_int, else ERROR_GENERIC,
        |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_recv_chunk(_chunk: *mut unused, _info: *mut unused, _wait: u8) -> c_int, else ERROR_GENERIC,
        |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_recv_flow(_flow: *mut unused, _wait: u8) -> c_int, else ERROR_GENERIC, |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_set_packet_slicing(_level: c_int, _more: u32) -> c_int, else ERROR_GENERIC,
        |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_get_device_clock(_time: Out<timespec>) -> c_int, else ERROR_GENERIC, |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_set_device_clock(_time: Out<timespec>) -> c_int, else ERROR_GENERIC, |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_adjust_device_clock(_by: Out<timespec>, _sign: i8) -> c_int, else ERROR_GENERIC,
        |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_enable_hw_timestamp(_device: Text, _rx: u8, _tx: u8) -> c_int, else ERROR_GENERIC,
        |_ring| ERROR_NOT_SUPPORTED;
    fn pfring_set_default_hw_action(_action: c_int) -> c_int, else ERROR_GENERIC, |_ring| ERROR_NOT_SUPPORTED;
    // On an ordinary interface these succeed, and do nothing.
    fn pfring_add_hw_rule(_rule: *mut unused) -> c_int, else ERROR_GENERIC, |_ring| 0;
    fn pfring_remove_hw_rule(_id: u16) -> c_int, else ERROR_GENERIC, |_ring| 0;
    fn pfring_set_virtual_device(_info: *mut unused) -> c_int, else ERROR_GENERIC, |_ring| 0;
    fn pfring_set_master_id(_id: u32) -> c_int, else ERROR_GENERIC, |_ring| 0;
    fn pfring_set_master(_master: *mut unused) -> c_int, else ERROR_GENERIC, |_ring| 0;
    fn pfring_set_filtering_mode(_mode: c_int) -> c_int, else ERROR_GENERIC, |_ring| 0;
    fn pfring_sync_indexes_with_kernel() -> (), else (), |_ring| ();
    fn pfring_search_payload(_text: Text) -> c_int, else ERROR_GENERIC, |_ring| ERROR_INVALID_ARGUMENT;
}

/// Exports functions that find nothing.
macro_rules! nothing {
    ($(fn $name:ident($($arg:ident: $kind:ty),*) $(-> $result:ty = $value:expr)?;)*) => {$(
        /// # Safety
        /// It looks at none of its arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $kind),*) $(-> $result)? { $($value)? }
    )*};
}

nothing! {
    fn pfring_enable_hw_timestamp_debug();
    fn pfring_read_ixia_hw_timestamp(_packet: *mut u8, _length: u32, _time: Out<timespec>) -> c_int = ERROR_GENERIC;
    fn pfring_handle_ixia_hw_timestamp(_packet: *mut u8, _header: Out<pfring_pkthdr>) -> c_int = ERROR_GENERIC;
    fn pfring_read_metawatch_hw_timestamp(_packet: *mut u8, _length: u32, _time: Out<timespec>) -> c_int = ERROR_GENERIC;
    fn pfring_read_metawatch_device_info(
        _packet: *mut u8, _length: u32, _device: Out<u16>, _port: Out<u8>
    ) -> c_int = ERROR_GENERIC;
    fn pfring_handle_metawatch_hw_timestamp(_packet: *mut u8, _header: Out<pfring_pkthdr>) -> c_int = ERROR_GENERIC;
    fn pfring_read_arista_7150_keyframe(
        _packet: *mut u8, _length: u32, _time: Out<u64>, _ticks: Out<u32>
    ) -> c_int = ERROR_GENERIC;
    fn pfring_read_arista_7150_hw_timestamp(_packet: *mut u8, _length: u32, _time: Out<u64>) -> c_int = ERROR_GENERIC;
    fn pfring_handle_arista_hw_timestamp(_packet: *mut u8, _header: Out<pfring_pkthdr>) -> c_int = ERROR_GENERIC;
    fn pfring_read_vss_apcon_hw_timestamp(_packet: *mut u8, _length: u32, _time: Out<timespec>) -> c_int = ERROR_GENERIC;
    fn pfring_handle_vss_apcon_hw_timestamp(_packet: *mut u8, _header: Out<pfring_pkthdr>);
    fn pfring_thirdparty_lib_init(_name: *const c_char, _functions: *mut unused);
}
