//! How many uses of descriptors the calls of the calling thread have at this moment: for `fork` in a handler that has
//! interrupted such a call, which goes on in the child.

use std::cell::Cell;

// Without a destructor, so that it is there as long as the thread is.
thread_local!(static USES: Cell<u32> = const { Cell::new(0) });

/// A use begins: before it is counted.
#[inline]
pub fn begin() {
    // A handler that comes in between leaves it as it was.
    USES.set(USES.get().wrapping_add(1));
}

/// A use has ended: after it was counted.
#[inline]
pub fn end() {
    USES.set(USES.get().wrapping_sub(1));
}

/// Uses of the calling thread.
#[cfg(not(loom))]
pub fn count() -> u32 {
    USES.get()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_count() {
        let before = count();
        begin();
        assert_eq!(count(), before + 1);
        std::thread::spawn(|| assert_eq!(count(), 0)).join().unwrap();
        end();
        assert_eq!(count(), before);
    }
}
