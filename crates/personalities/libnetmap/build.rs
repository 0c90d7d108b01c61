//! Builds the one variadic function, and says what `libnetmap.so` brings along.

fn main() {
    println!("cargo::rerun-if-changed=src/ferror.c");
    println!("cargo::rerun-if-changed=../../../include");
    cc::Build::new()
        .file("src/ferror.c")
        .include("../../../include")
        .std("c11")
        .warnings(true)
        .extra_warnings(true)
        .compile("netmap_ferror");

    // A filter, not merely a dependency: the loader puts a filtered library in front of the one
    // that names it. So it comes before libc for a program that is linked to libnetmap.so alone,
    // and the program's own calls of `poll` and `ioctl` reach it; a plain dependency would come
    // after libc. It is looked for beside libnetmap.so first.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--filter=libringway_preload.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--enable-new-dtags");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnetmap.so");
}
