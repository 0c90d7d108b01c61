//! Which pages of the guest have been written: what live migration copies once more.

use std::{fs::File, io};

use crate::sys::Map;

/// Bytes of a page of the protocol's.
const PAGE: u64 = 4096;

/// The monitor's bitmap, a bit for each page from the guest's address 0 on.
#[derive(Debug)]
pub(crate) struct DirtyLog {
    map: Map,
    offset: u64,
    /// Pages that it has bits for.
    pages: u64,
}

impl DirtyLog {
    /// A bitmap of `size` bytes from `offset` in a file.
    pub fn new(file: &File, offset: u64, size: u64) -> io::Result<DirtyLog> {
        let overflow = io::ErrorKind::InvalidInput;
        let end = offset.checked_add(size).ok_or(overflow)?;
        let pages = size.checked_mul(8).ok_or(overflow)?;
        Ok(DirtyLog { map: Map::new(file, end)?, offset, pages })
    }

    /// Notes that `len` bytes have been written: before this, so that what finds the bit finds the bytes. What has no bit is
    /// not noted.
    pub fn mark(&self, guest: u64, len: u64) {
        let Some(last) = len.checked_sub(1).and_then(|more| guest.checked_add(more)) else {
            return;
        };
        for page in guest / PAGE..=(last / PAGE).min(self.pages.saturating_sub(1)) {
            // The bitmap's words are touched as the monitor touches them: atomically.
            let word = self.map.buf(self.offset + page / 32 * 4, 4);
            if let Some([word]) = word.and_then(|word| word.words::<1>(0)) {
                let bit = (1u32 << (page % 32)).to_le();
                word.fetch_or(bit, std::sync::atomic::Ordering::Release);
            }
        }
    }

    pub fn is_lost(&self) -> bool {
        self.map.is_lost()
    }
}
