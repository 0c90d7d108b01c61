//! Compiles the XDP program with clang into `OUT_DIR`, where `program.rs` embeds it.

use std::path::PathBuf;
use std::process::{Command, exit};

const SOURCE: &str = "bpf/redirect.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let out_dir = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let object = PathBuf::from(out_dir).join("redirect.bpf.o");

    let status = Command::new(&clang)
        .args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror", "-c", SOURCE, "-o"])
        .arg(&object)
        .status();
    let failure = match status {
        Ok(status) if status.success() => return,
        Ok(status) => format!("`{clang}` could not compile {SOURCE} for BPF ({status})"),
        Err(e) => format!(
            "cannot run `{clang}`, which compiles the XDP program {SOURCE}: {e}; \
             install it with `apt-get install clang`, or name another one in CLANG"
        ),
    };
    println!("cargo::error={failure}");
    exit(1);
}
