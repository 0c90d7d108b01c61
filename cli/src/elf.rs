//! Whether the dynamic loader takes part in a program's start, and so loads what LD_PRELOAD names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file that execvp(3) would run.
pub fn find(program: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let runs = |file: &PathBuf| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    let mut files = std::env::split_paths(path?).map(|folder| folder.join(program));
    files.find(|file| file.is_file() && runs(file))
}

/// Whether a program is one that loads no libraries. A script is what its interpreter is. What cannot
/// be read is left to the kernel to refuse.
pub fn is_static(program: &Path) -> bool {
    let Some(start) = start(program) else { return false };
    match interpreter(&start) {
        Some(interpreter) => start_of(interpreter).is_some_and(|start| loads_nothing(&start)),
        None => loads_nothing(&start) && !is_loader(program),
    }
}

/// More than has ever been seen before the end of the program headers.
const START: u64 = 1 << 16;

fn start(program: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(program).ok()?.take(START).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn start_of(program: &[u8]) -> Option<Vec<u8>> {
    start(Path::new(OsStr::from_bytes(program)))
}

/// The first word behind `#!`.
fn interpreter(start: &[u8]) -> Option<&[u8]> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())
}

/// The dynamic loader, which names no other, can be called with a program.
fn is_loader(program: &Path) -> bool {
    let name = program.file_name().map_or(&[][..], OsStr::as_bytes);
    name.starts_with(b"ld-") || name.starts_with(b"ld.so")
}

const PT_INTERP: u32 = 3;

/// Whether this is the start of a 64-bit ELF program that names no dynamic loader.
fn loads_nothing(start: &[u8]) -> bool {
    // ELF, 64 bits, in this machine's byte order.
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if start.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 2, order]) {
        return false;
    }
    let Some(headers) = program_headers(start) else { return false };
    !headers.into_iter().any(|kind| kind == PT_INTERP)
}

/// The kinds of the program headers; `None` if they are not all there.
fn program_headers(start: &[u8]) -> Option<Vec<u32>> {
    let at = usize::try_from(u64::from_ne_bytes(*start.get(32..)?.first_chunk()?)).ok()?;
    let size = u16::from_ne_bytes(*start.get(54..)?.first_chunk()?);
    let count = u16::from_ne_bytes(*start.get(56..)?.first_chunk()?);
    (0..usize::from(count))
        .map(|n| {
            let header = at.checked_add(n.checked_mul(size.into())?)?;
            Some(u32::from_ne_bytes(*start.get(header..)?.first_chunk()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of these kinds of headers.
    fn elf(kinds: &[u32]) -> Vec<u8> {
        let order = if cfg!(target_endian = "little") { 1 } else { 2 };
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, order];
        bytes.resize(64, 0);
        bytes[32..40].copy_from_slice(&64u64.to_ne_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_ne_bytes());
        bytes[56..58].copy_from_slice(&(kinds.len() as u16).to_ne_bytes());
        for kind in kinds {
            bytes.extend(kind.to_ne_bytes());
            bytes.resize(bytes.len() + 52, 0);
        }
        bytes
    }

    #[test]
    fn what_names_no_loader_loads_nothing() {
        assert!(loads_nothing(&elf(&[6, 1, 1])));
        assert!(!loads_nothing(&elf(&[6, PT_INTERP, 1])));
        for end in 0..200 {
            let cut = &elf(&[6, 1])[..end.min(elf(&[6, 1]).len())];
            assert_eq!(loads_nothing(cut), cut.len() >= 64 + 56 + 4, "{end}");
        }
        assert!(!loads_nothing(b"#!/bin/sh\n"));
    }

    #[test]
    fn this_test_is_found_and_loads_libraries() {
        let own = std::env::current_exe().unwrap();
        assert!(!is_static(&own));
        let (folder, name) = (own.parent().unwrap(), own.file_name().unwrap());
        assert_eq!(find(name, Some(folder.as_os_str())), Some(own.clone()));
        assert_eq!(find(OsStr::new("no such program"), Some(folder.as_os_str())), None);
        assert_eq!(interpreter(b"#! /bin/sh -e\nexit"), Some(&b"/bin/sh"[..]));
    }
}
