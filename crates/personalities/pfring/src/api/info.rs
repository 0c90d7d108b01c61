//! What a ring is, and what it has counted.

use std::ffi::c_int;

use super::of_ring;
use crate::{
    abi::*,
    argument::{Bytes, Out, Text},
    devices,
    errno::fails,
    interface::Interface,
    name::index_of,
    ring::{Ring, lock},
};

/// The interface of a ring on one.
fn interface(ring: &Ring) -> Option<Interface> {
    Interface::new(ring.sources.first()?.interface()?)
}

of_ring! {
    fn pfring_stats(stats: Out<pfring_stat>) -> c_int, else ERROR_GENERIC, |ring| {
        let of_ring = ring.stats();
        // The third counter is hardware's, and left alone.
        let shunt = stats.get().map_or(0, |stats| stats.shunt);
        stats.put_some(Some(pfring_stat { shunt, ..of_ring }))
    };
    fn pfring_version(version: Out<u32>) -> c_int, else ERROR_GENERIC, |_ring| version.put_some(Some(VERSION));
    fn pfring_get_ring_id() -> u32, else 0, |ring| ring.id;
    fn pfring_get_num_rx_channels() -> u8, else 1, |ring| ring.sources.first().map_or(1, |source| source.queues);
    fn pfring_get_slot_header_len() -> u16, else 0xffff, |ring| ring.slot_header_len();
    fn pfring_get_caplen() -> c_int, else ERROR_GENERIC, |ring| ring.caplen as c_int;
    fn pfring_get_link_type() -> c_int, else ERROR_GENERIC, |_ring| 1;
    fn pfring_get_link_status() -> c_int, else ERROR_GENERIC, |ring| match ring.sources.first() {
        None => -1,
        Some(_) => match interface(ring) {
            Some(interface) => interface.flags().map_or(-1, |flags| (flags & libc::IFF_RUNNING != 0).into()),
            None => 1,
        },
    };
    fn pfring_get_interface_speed() -> u32, else 0, |ring| interface(ring).map_or(0, |interface| interface.speed());
    fn pfring_get_mtu_size() -> c_int, else 0, |ring| ring.mtu() as c_int;
    fn pfring_get_bound_device_address(address: Out<[u8; 6]>) -> c_int, else ERROR_GENERIC, |ring| {
        let of_port = ring.sources.first().filter(|source| source.is_port);
        let of_port = of_port.map(|source| ringway::ethernet_address(source.name.trim_start_matches("netmap:")));
        address.put_some(interface(ring).and_then(|interface| interface.address()).or(of_port))
    };
    fn pfring_get_bound_device_ifindex(index: Out<c_int>) -> c_int, else ERROR_GENERIC,
        |ring| index.put_some(ring.sources.first().map(|source| source.index));
    fn pfring_get_device_ifindex(device: Text, index: Out<c_int>) -> c_int, else ERROR_GENERIC, |_ring| {
        let Some(name) = device.get() else { return fails(ERROR_GENERIC, libc::EINVAL) };
        let found = match ringway_live_capture::name::is_port(&name) {
            true => Some(index_of(&name)),
            false => Interface::new(&name).and_then(|interface| interface.index()),
        };
        index.put_some(found)
    };
    fn pfring_get_card_settings(settings: Out<pfring_card_settings>) -> c_int, else ERROR_GENERIC, |_ring| {
        let _ = settings;
        ERROR_NOT_SUPPORTED
    };
    fn pfring_set_application_name(name: Text) -> c_int, else ERROR_GENERIC, |ring| match name.get() {
        Some(name) if name.len() <= 63 => {
            lock(&ring.texts).application = name.into_owned();
            ring.publish();
            0
        }
        _ => fails(ERROR_GENERIC, libc::EINVAL),
    };
    fn pfring_set_application_stats(text: Text) -> c_int, else ERROR_GENERIC, |ring| match text.get() {
        Some(text) if text.len() <= 1023 => ring.files.write_statistics(&text).map_or_else(
            |error| fails(ERROR_GENERIC, error.raw_os_error().unwrap_or(libc::EIO)),
            |()| 0,
        ),
        _ => fails(ERROR_GENERIC, libc::EINVAL),
    };
    fn pfring_get_appl_stats_file_name(path: Bytes, length: u32) -> Bytes, else Bytes::NULL, |ring| {
        let name = ring.files.statistics().map(|name| name.to_string_lossy().into_owned());
        match name {
            Some(name) if path.print(length, &name) < length as c_int => path,
            _ => Bytes::NULL,
        }
    };
    fn pfring_set_bound_dev_name(name: Text) -> c_int, else ERROR_GENERIC, |ring| match name.get() {
        Some(name) => {
            lock(&ring.texts).bound_to = Some(name.into_owned());
            ring.publish();
            0
        }
        None => fails(ERROR_GENERIC, libc::EINVAL),
    };
}

/// # Safety
/// As PF_RING says: room for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_version_noring(version: Out<u32>) {
    version.put(VERSION);
}

/// # Safety
/// As PF_RING says: a name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_get_ethtool_link_speed(name: Text) -> u32 {
    let interface = name.get().and_then(|name| Interface::new(&name));
    interface.map_or(0, |interface| interface.speed())
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_findalldevs() -> *mut pfring_if_t {
    devices::list()
}

/// # Safety
/// As PF_RING says: a list of `pfring_findalldevs`, given back once.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_freealldevs(list: *mut pfring_if_t) {
    // SAFETY: the caller's promise.
    unsafe { devices::free(list) };
}

/// # Safety
/// As PF_RING says: room for so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_format_numbers(
    value: f64,
    buffer: Bytes,
    length: u32,
    decimals: u8,
) -> Bytes {
    buffer.print(length, &crate::numbers::format(value, decimals != 0));
    buffer
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn gmt_to_local(time: libc::time_t) -> i32 {
    // SAFETY: room for a broken-down time, and a number.
    unsafe {
        let at = if time == 0 { libc::time(std::ptr::null_mut()) } else { time };
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&at, &mut local).is_null() { 0 } else { local.tm_gmtoff as i32 }
    }
}
