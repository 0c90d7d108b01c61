//! Memory that nobody may touch: AddressSanitizer says who does.

use std::{ffi::c_void, ptr::NonNull};

use ringway_region::Region;

#[cfg(fuzzing)]
unsafe extern "C" {
    fn __asan_poison_memory_region(at: *const c_void, size: usize);
    fn __asan_unpoison_memory_region(at: *const c_void, size: usize);
}

// Where seeds are replayed there is no sanitizer, and nothing is guarded.
#[cfg(not(fuzzing))]
unsafe fn __asan_poison_memory_region(_at: *const c_void, _size: usize) {}
#[cfg(not(fuzzing))]
unsafe fn __asan_unpoison_memory_region(_at: *const c_void, _size: usize) {}

/// Guards buffers of a region for as long as it lives. It must go before the region.
pub struct Guard {
    at: NonNull<c_void>,
    size: usize,
}

impl Guard {
    /// Guards buffers `[from, to)`; all of them are the region's.
    pub fn new(region: &Region, from: u32, to: u32) -> Guard {
        let area = region.buffer_area();
        let each = region.layout().bufs.size as usize;
        let (from, size) = (from as usize * each, (to - from) as usize * each);
        let at: NonNull<c_void> = NonNull::from(&area[from..from + size]).cast();
        // SAFETY: it changes what the sanitizer thinks of these bytes, which are mapped.
        unsafe { __asan_poison_memory_region(at.as_ptr().cast_const(), size) };
        Guard { at, size }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: as above; the region is still there.
        unsafe { __asan_unpoison_memory_region(self.at.as_ptr().cast_const(), self.size) };
    }
}
