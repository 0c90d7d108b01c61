//! What an action program may return beside the kernel's `XDP_ABORTED`, `XDP_DROP`, `XDP_PASS` and `XDP_TX`.
//! The header `net/ringway_xdp.h` has the same for C.

/// To the interface's stack, whatever the port's filter says. The kernel's own actions are 0 to 4.
pub const PASS_TO_KERNEL: u32 = 5;

/// Interfaces at most that one program redirects to.
pub const MAX_TARGETS: usize = 16;

const XDP_REDIRECT: u32 = 4;

/// Out of the interface with this number among those that the program was given; plain `XDP_REDIRECT` is the
/// first.
pub const fn redirect(target: u32) -> u32 {
    XDP_REDIRECT | target << 8
}
