//! Compiles the BPF programs with clang into `OUT_DIR`, where `program.rs`, `host.rs`,
//! `ingress_drop.rs` and `switch.rs` embed them.
#![allow(clippy::disallowed_methods, reason = "cargo tells a build script by variables")]

use std::path::Path;
use std::process::{Command, exit};

/// Each object with its source, the instructions that it may have (`v3`: of kernel 5.12 and newer), and what is left out
/// of it.
const PROGRAMS: [(&str, &str, &str, Option<&str>); 5] = [
    ("redirect", "redirect", "v1", None),
    ("host", "host", "v1", None),
    ("ingress_drop", "ingress_drop", "v1", None),
    ("switch", "switch", "v3", None),
    ("switch_unfiltered", "switch", "v3", Some("WITHOUT_FILTERS")),
];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let out_dir = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    for (object, source, instructions, without) in PROGRAMS {
        let object = Path::new(&out_dir).join(format!("{object}.bpf.o"));
        compile(&clang, source, instructions, without, &object);
    }
}

fn compile(clang: &str, program: &str, instructions: &str, without: Option<&str>, object: &Path) {
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
        .arg(object)
        .args(without.map(|name| format!("-D{name}")))
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
