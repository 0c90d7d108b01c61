//! PF_RING's functions. Each takes its arguments as they come, does what the ring can, and gives the result that
//! PF_RING gives.
//!
//! What only hardware has is in `hardware.rs`: it answers as PF_RING does on an ordinary interface.

mod clusters;
mod filters;
mod hardware;
mod info;
mod open;
mod receive;
mod rules;
mod send;
mod settings;
mod texts;

#[cfg(feature = "stepped")]
pub use receive::recv;

/// Exports functions of a ring, with the result that each has without one.
macro_rules! of_ring {
    ($(fn $name:ident($($arg:ident: $kind:ty),*) -> $result:ty, else $none:expr, |$ring:ident| $body:expr;)*) => {$(
        /// # Safety
        /// As PF_RING says: the ring is open, and each pointer is null or what its name says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(ring: $crate::argument::Handle $(, $arg: $kind)*) -> $result {
            match ring.get() {
                Some($ring) => $body,
                None => {
                    $crate::errno::set_errno(libc::EINVAL);
                    $none
                }
            }
        }
    )*};
}
use of_ring;
