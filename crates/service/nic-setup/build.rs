//! Compiles the BPF programs with clang into `OUT_DIR`, where `program.rs`, `host.rs`,
//! `ingress_drop.rs` and `switch.rs` embed them.
#![allow(clippy::disallowed_methods, reason = "cargo tells a build script by variables")]

use std::path::Path;
use std::process::{Command, exit};

/// Each with the instructions that it may have: what kernels before 5.12 do not know, the third alone.
const PROGRAMS: [(&str, &str); 4] =
    [("redirect", "v1"), ("host", "v1"), ("ingress_drop", "v1"), ("switch", "v3")];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let out_dir = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    for (program, instructions) in PROGRAMS {
        compile(&clang, program, instructions, Path::new(&out_dir));
    }
}

fn compile(clang: &str, program: &str, instructions: &str, out_dir: &Path) {
    let source = format!("bpf/{program}.bpf.c");
    let status = Command::new(clang)
        .args([
            "-target",
            "bpf",
            &format!("-mcpu={instructions}"),
            "-O2",
            "-g",
            "-Wall",
            "-Werror",
            "-c",
            &source,
            "-o",
        ])
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
