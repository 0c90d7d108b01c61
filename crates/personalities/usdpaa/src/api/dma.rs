//! Memory for buffers.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

use crate::{
    argument::{Out, Text},
    dma::{ALLOC, Map, create, find, find_ref, totals},
    print,
};

/// The map of the inline functions that name none: the program sets it.
#[unsafe(no_mangle)]
pub static mut dma_mem_generic: *mut Map = ptr::null_mut();

/// # Safety
/// As USDPAA says: a name, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_create(flags: u32, map_name: Text, len: usize) -> *mut Map {
    let name = map_name.get();
    match create(flags, name.as_deref(), len) {
        Ok(map) => map.ptr(),
        Err(reason) => {
            print::aside(&format!("dma_mem_create: {reason}"));
            ptr::null_mut()
        }
    }
}

/// # Safety
/// As USDPAA says: a map of `dma_mem_create`, whose memory nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_destroy(map: *mut Map) {
    if let Some(map) = find_ref(map) {
        map.destroy();
    }
}

/// # Safety
/// As USDPAA says: a map of `dma_mem_create`, and room for what is asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_params(
    map: *mut Map,
    flags: Out<u32>,
    map_name: Out<*const c_char>,
    len: Out<usize>,
) {
    let Some(map) = find_ref(map) else { return };
    let inner = map.inner();
    flags.put(inner.flags);
    map_name.put(if inner.name.is_empty() { ptr::null() } else { inner.name.as_ptr().cast() });
    len.put(map.length());
}

/// # Safety
/// As USDPAA says: a map of `dma_mem_create`, and room for its length, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_raw(map: *mut Map, len: Out<usize>) -> *mut c_void {
    match find_ref(map) {
        Some(map) if map.inner().flags & ALLOC == 0 => {
            len.put(map.length());
            ptr::with_exposed_provenance_mut(map.address())
        }
        _ => ptr::null_mut(),
    }
}

/// # Safety
/// As USDPAA says: a map of `dma_mem_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_memalign(
    map: *mut Map,
    boundary: usize,
    size: usize,
) -> *mut c_void {
    let boundary = boundary.max(1);
    let Some(map) = find_ref(map).filter(|_| boundary.is_power_of_two()) else {
        return ptr::null_mut();
    };
    let place = map.inner().take(boundary, size);
    place.map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

/// # Safety
/// As USDPAA says: a map of `dma_mem_create`, and what `dma_mem_memalign` gave of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_free(map: *mut Map, ptr: *mut c_void) {
    if let Some(map) = find_ref(map) {
        map.inner().give(ptr as usize);
    }
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_findv(v: *mut c_void) -> *mut Map {
    find(v as usize).map_or(ptr::null_mut(), Map::ptr)
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_findp(p: u64) -> *mut Map {
    find(p as usize).map_or(ptr::null_mut(), Map::ptr)
}

/// # Safety
/// As USDPAA says: a map of `dma_mem_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_print(map: *mut Map) {
    let Some(map) = find_ref(map) else { return };
    let inner = map.inner();
    let (free, taken) = inner.counts();
    print::aside(&format!(
        "dma_mem at {:#x}: {} bytes, {free} free, {taken} allocated places",
        map.address(),
        map.length()
    ));
}

/// # Safety
/// As USDPAA says: room for what is asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mem_query(free_bytes: Out<u64>, total_bytes: Out<u64>) -> c_int {
    let (free, total) = totals();
    free_bytes.put(free);
    total_bytes.put(total);
    0
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_set_mask(_dev: *mut c_void, _mask: u64) -> c_int {
    0
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_map_single(
    _dev: *mut c_void,
    cpu_addr: *mut c_void,
    _size: usize,
    _direction: c_int,
) -> u64 {
    find(cpu_addr as usize).map_or(0, |_| cpu_addr as u64)
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_mapping_error(_dev: *mut c_void, dma_addr: u64) -> c_int {
    if dma_addr == 0 { -1 } else { 0 }
}
