//! System calls.
//!
//! Hooks use [`syscall`] on descriptors of ours. All other code in the library, the standard library's
//! included, calls libc's functions by name, and would meet those of a program that has some of its own:
//! so the linker puts what is in [`wrapped`] in their place (`--wrap`, see `crates/personalities/preload/build.rs`).

mod number;
mod wrapped;

pub use number::Number;

/// Makes a system call. Returns what the kernel does: a negative errno if it fails.
///
/// # Safety
/// As the system call.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn syscall(number: Number, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the kernel changes memory as the call says, the result, and two registers more.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number.0 as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a system call. Returns what the kernel does: a negative errno if it fails.
///
/// # Safety
/// As the system call.
#[cfg(target_arch = "aarch64")]
#[inline]
pub unsafe fn syscall(number: Number, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the kernel changes memory as the call says, and the result.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number.0,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}
