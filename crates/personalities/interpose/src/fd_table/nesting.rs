//! How many uses of descriptors the calls of the calling thread have at this moment.
//!
//! It is for `fork` in a handler that has interrupted such a call, which goes on in the child. Every call counts, so
//! the count lies where it takes an instruction or two, and not a call as a thread-local variable of a library does: at a
//! fixed distance from the thread's pointer, for which this library has to be there when the program starts, as it is.

#[cfg(not(loom))]
pub use in_thread::{begin, count, end};

#[cfg(loom)]
pub fn begin() {}

#[cfg(loom)]
pub fn end() {}

#[cfg(not(loom))]
mod in_thread {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.ringway_nesting,\"awT\",@nobits",
        ".p2align 2",
        ".globl ringway_nesting",
        ".hidden ringway_nesting",
        ".type ringway_nesting,@object",
        ".size ringway_nesting,4",
        "ringway_nesting:",
        ".zero 4",
        ".popsection",
    );

    /// A use begins: before it is counted.
    #[inline]
    pub fn begin() {
        add(1);
    }

    /// A use has ended: after it was counted.
    #[inline]
    pub fn end() {
        add(-1);
    }

    /// A handler that comes in between leaves the word as it was.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn add(by: i32) {
        // SAFETY: the word above, of which each thread has its own.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + ringway_nesting@gottpoff]",
                "add dword ptr fs:[{at}], {by:e}",
                at = out(reg) _,
                by = in(reg) by,
                options(nostack),
            );
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline]
    fn add(by: i32) {
        // SAFETY: the word above, of which each thread has its own.
        unsafe {
            asm!(
                "mrs {thread}, tpidr_el0",
                "adrp {at}, :gottprel:ringway_nesting",
                "ldr {at}, [{at}, :gottprel_lo12:ringway_nesting]",
                "ldr {now:w}, [{thread}, {at}]",
                "add {now:w}, {now:w}, {by:w}",
                "str {now:w}, [{thread}, {at}]",
                thread = out(reg) _,
                at = out(reg) _,
                now = out(reg) _,
                by = in(reg) by,
                options(nostack, preserves_flags),
            );
        }
    }

    /// Uses of the calling thread.
    #[cfg(target_arch = "x86_64")]
    pub fn count() -> u32 {
        let now;
        // SAFETY: as in `add`.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + ringway_nesting@gottpoff]",
                "mov {now:e}, dword ptr fs:[{at}]",
                at = out(reg) _,
                now = lateout(reg) now,
                options(nostack, preserves_flags, readonly),
            );
        }
        now
    }

    /// Uses of the calling thread.
    #[cfg(target_arch = "aarch64")]
    pub fn count() -> u32 {
        let now;
        // SAFETY: as in `add`.
        unsafe {
            asm!(
                "mrs {thread}, tpidr_el0",
                "adrp {at}, :gottprel:ringway_nesting",
                "ldr {at}, [{at}, :gottprel_lo12:ringway_nesting]",
                "ldr {now:w}, [{thread}, {at}]",
                thread = out(reg) _,
                at = out(reg) _,
                now = lateout(reg) now,
                options(nostack, preserves_flags, readonly),
            );
        }
        now
    }
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
