//! Says how the library is linked, and gives it its other name.
#![allow(clippy::disallowed_methods, reason = "cargo tells a build script by variables")]

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

include!("../interpose/src/raw/names.rs");

const LIBRARY: &str = "libringway_preload.so";
/// What it was called when there was netmap alone: programs are linked to it by this name.
const OLD_NAME: &str = "libringway_netmap.so";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../interpose/src/raw/names.rs");
    for name in WRAPPED {
        // What the library calls by this name is the system call that it brings along. It must be
        // linked before the standard library is, which is among its callers.
        println!("cargo::rustc-cdylib-link-arg=-Wl,--wrap={name}");
        println!("cargo::rustc-cdylib-link-arg=-Wl,--undefined=__wrap_{name}");
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    // The constructors of other libraries may open devices: this library's comes first.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    // Whatever name a program was linked by, it asks for this one, and has the library once.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{LIBRARY}");
    if let Some(lld) = rust_lld() {
        println!("cargo::rustc-cdylib-link-arg=-B{}", lld.display());
        println!("cargo::rustc-cdylib-link-arg=-fuse-ld=lld");
        // Functions and constants with the same content are kept once: 12 KB. Nothing here compares
        // their addresses.
        println!("cargo::rustc-cdylib-link-arg=-Wl,--icf=all");
        println!("cargo::rustc-cdylib-link-arg=-Wl,--ignore-data-address-equality");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-O2");
    }
    old_name();
}

/// Where the linker is that comes with Rust, under the name by which a C compiler finds it. Some
/// distributions leave it out: then the library is a little larger.
fn rust_lld() -> Option<PathBuf> {
    let print = Command::new(env::var_os("RUSTC")?).args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(print.stdout).ok()?.trim_end());
    let host = env::var("HOST").ok()?;
    let lld = sysroot.join("lib/rustlib").join(host).join("bin/gcc-ld");
    lld.join("ld.lld").is_file().then_some(lld)
}

/// Beside the library, which Cargo puts into the profile's directory: three levels above this
/// script's. It is for programs that are linked to what was built here, and no reason to fail.
fn old_name() {
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    let Some(profile) = Path::new(&out).ancestors().nth(3) else { return };
    let link = profile.join(OLD_NAME);
    if fs::read_link(&link).is_ok_and(|to| to == Path::new(LIBRARY)) {
        return;
    }
    let _ = fs::remove_file(&link);
    let _ = symlink(LIBRARY, &link);
}
