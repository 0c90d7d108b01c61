//! What is asked of the kernel about memory.

use std::ffi::c_void;

/// Asks for huge pages in the whole pages of `bytes`. It is advice: the kernel may have none.
pub fn advise_huge_pages(bytes: &mut [u8]) {
    let page = rustix::param::page_size();
    let start = bytes.as_mut_ptr().align_offset(page);
    let Some(whole) = bytes.get_mut(start..) else { return };
    let length = whole.len() / page * page;
    let first = whole.as_mut_ptr().cast::<c_void>();
    // SAFETY: the pages are all within memory that is borrowed exclusively, and the advice changes nothing of
    // what is in it.
    let _ = unsafe { rustix::mm::madvise(first, length, rustix::mm::Advice::LinuxHugepage) };
}
