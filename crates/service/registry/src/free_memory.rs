//! Memory is freed, which takes time for much of it.

use std::thread;

/// Bytes in memory beyond which freeing them holds up the thread that does it: for about a millisecond.
const LARGE: u64 = 4 << 20;

/// Drops what holds `bytes` bytes in memory. The kernel frees pages one by one, so a thread of its own
/// drops many of them: the daemon's loop does not wait.
pub(crate) fn free<T: Send + 'static>(bytes: u64, memory: T) -> Option<thread::JoinHandle<()>> {
    if bytes < LARGE {
        return None;
    }
    // Where there can be no thread, we free it ourselves.
    thread::Builder::new().name("free".into()).spawn(move || drop(memory)).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::Ordering::Relaxed};

    use ringway_region::{Layout, Region, Sizes};

    use super::*;

    #[test]
    fn nobody_waits_for_many_pages_to_be_freed() {
        let (layout, page) = (Layout::new(&Sizes::PRIVATE, 0).unwrap(), 4096);
        let with_pages = |pages: u64| {
            let region = Region::create(2, layout).unwrap();
            let probe = region.holder_probe().unwrap();
            let map = region.retire();
            for n in 0..pages {
                map.bytes()[(n * page) as usize].store(1, Relaxed);
            }
            assert_eq!(probe.resident(), pages * page);
            let map = Arc::new(map);
            (probe.resident(), Arc::downgrade(&map), map)
        };
        // Of the same size, but for what was used.
        let (bytes, seen, few) = with_pages(100);
        assert!(free(bytes, few).is_none() && seen.strong_count() == 0);
        let (bytes, seen, many) = with_pages(2000);
        free(bytes, many).expect("a thread").join().unwrap();
        assert_eq!(seen.strong_count(), 0);
    }
}
