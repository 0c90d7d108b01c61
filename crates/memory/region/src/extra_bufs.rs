//! The list of extra buffers: a netif names the first, and each begins with the index of the next
//! (S-MEM-9).
//!
//! The list is the client's: it writes it when it is granted the buffers, and takes from it and adds to
//! it as it likes. The registry walks it when the client has gone, to see what has come back.

use crate::{netif::NetifView, pool::Span, region::Region};

/// Head of a list that the client has yet to write: all buffers are as they were granted.
const UNLISTED: u32 = 1;

impl NetifView {
    /// Registry: these many extra buffers are granted.
    pub fn grant_extra_bufs(&self, count: u32) {
        self.set_bufs_head(if count == 0 { 0 } else { UNLISTED });
    }

    /// Client: lists the extra buffers that it was granted.
    pub fn list_extra_bufs(&self, region: &Region, granted: &[Span]) {
        let mut next = 0u32;
        for index in granted.iter().rev().flat_map(|span| span.indices_down()) {
            if let Some(buf) = region.buf(index) {
                buf.store(0, next.to_ne_bytes());
                next = index;
            }
        }
        self.set_bufs_head(next);
    }

    /// What has become of the extra buffers that were granted.
    pub fn extra_bufs(&self) -> ExtraBufs {
        match self.bufs_head() {
            UNLISTED => ExtraBufs::AsGranted,
            head => ExtraBufs::Listed { head },
        }
    }
}

/// What has become of extra buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraBufs {
    /// The client has never listed them, so it has not used any either.
    AsGranted,
    /// They are in a list, of which this is the first.
    Listed {
        /// Its index; any number at all.
        head: u32,
    },
}

/// The extra buffer behind buffer `index` in its list. `None`: there is no such buffer.
pub fn next_extra_buf(region: &Region, index: u32) -> Option<u32> {
    region.buf(index)?.read(0).map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Layout, RingOffsets, Sizes};

    #[test]
    fn what_is_listed_is_what_was_granted() {
        let layout = Layout::new(&Sizes::PRIVATE, 0).unwrap();
        let region = Arc::new(Region::create(2, layout).unwrap());
        let netif = NetifView::new(&region, 0).unwrap();
        netif.init("x", 0, &RingOffsets::default());
        assert_eq!(netif.extra_bufs(), ExtraBufs::Listed { head: 0 });
        netif.grant_extra_bufs(5);
        assert_eq!(netif.extra_bufs(), ExtraBufs::AsGranted);
        let granted = [Span { first: 7, count: 3 }, Span { first: 2, count: 2 }];
        netif.list_extra_bufs(&region, &granted);
        let ExtraBufs::Listed { head } = netif.extra_bufs() else { panic!("it is not listed") };
        let list = std::iter::successors(Some(head), |&index| next_extra_buf(&region, index));
        assert_eq!(list.collect::<Vec<_>>(), [7, 8, 9, 2, 3, 0]);
    }
}
