//! Panics where a test wants them: at the n-th step of what changes the books.
//!
//! Without the feature `faults` a step is nothing.

#[cfg(feature = "faults")]
use std::cell::Cell;

#[cfg(feature = "faults")]
thread_local! {
    static STEPS: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Something is about to be changed.
#[inline]
pub(crate) fn step() {
    #[cfg(feature = "faults")]
    STEPS.with(|steps| {
        let left = steps.take();
        assert_ne!(left, Some(0), "{FAULT}");
        steps.set(left.map(|left| left - 1));
    });
}

/// What such a panic says.
#[cfg(feature = "faults")]
pub const FAULT: &str = "a fault, as the test asked for";

/// From now on this thread panics, once, when it has done `steps` steps.
#[cfg(feature = "faults")]
pub fn panic_after(steps: u32) {
    STEPS.with(|left| left.set(Some(steps)));
}

/// It does so no more. False: it has.
#[cfg(feature = "faults")]
pub fn no_panic() -> bool {
    STEPS.with(Cell::take).is_some()
}
