//! Compiles the BPF programs with clang into `OUT_DIR`, where `program.rs`, `host.rs` and
//! `ingress_drop.rs` embed them.
#![allow(clippy::disallowed_methods, reason = "cargo tells a build script by variables")]

use std::path::Path;
use std::process::{Command, exit};

const PROGRAMS: [&str; 3] = ["redirect", "host", "ingress_drop"];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let out_dir = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    for program in PROGRAMS {
        compile(&clang, program, Path::new(&out_dir));
    }
}

fn compile(clang: &str, program: &str, out_dir: &Path) {
    let source = format!("bpf/{program}.bpf.c");
    let status = Command::new(clang)
        .args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror", "-c", &source, "-o"])
        .arg(out_dir.join(format!("{program}.bpf.o")))
        .status();
    let failure = match status {
        Ok(status) if status.success() => return,
        Ok(status) => format!("`{clang}` could not compile {source} for BPF ({status})"),
        Err(e) => format!(
            "cannot run `{clang}`, which compiles the BPF program {source}: {e}; \
             install it with `apt-get install clang`, or name another one in CLANG"
        ),
    };
    println!("cargo::error={failure}");
    exit(1);
}
