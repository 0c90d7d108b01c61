//! libpcap's functions that have to know whose a handle is. Each does its work for ours, and passes what is the
//! system library's on to it; what concerns no handle at all is passed on in `system`.

mod devices;
mod info;
mod open;
mod options;
mod read;
mod savefile;
mod write;

/// Does one thing for a handle of ours and another for one of the system's. What a program asks of a handle
/// that it has closed fails.
macro_rules! whose {
    ($p:expr, $ours:expr, $closed:expr, $theirs:expr) => {
        match $crate::handles::find($p) {
            $crate::handles::Whose::Ours(handle) => $ours(handle),
            $crate::handles::Whose::Closed => $closed,
            $crate::handles::Whose::Theirs => $theirs,
        }
    };
}
use whose;
