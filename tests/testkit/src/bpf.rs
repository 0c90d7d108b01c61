//! Programs for BPF, as clang compiles them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Compiles `source`, which may include the project's headers, into an object in `folder`. `CLANG` names another
/// compiler.
pub fn bpf_object(folder: &Path, source: &Path) -> PathBuf {
    let object = folder.join(source.file_stem().expect("a source has a name")).with_extension("o");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let mut compiler = Command::new(clang);
    compiler.args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror"]);
    // Assembly has no use for it.
    compiler.arg("-Wno-unused-command-line-argument").arg("-I");
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include")).arg("-c").arg(source);
    let output = compiler.arg("-o").arg(&object).output();
    let output = output.unwrap_or_else(|e| panic!("cannot start {compiler:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler:?}: {}\n{said}", output.status);
    object
}
