//! Whether the dynamic loader takes part in a program's start, and so loads what LD_PRELOAD names.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::{ffi::OsStrExt, fs::FileExt};
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

/// The program that runs a script.
pub fn interpreted_by(script: &Path) -> Option<PathBuf> {
    let start = start(script)?;
    interpreter(&start).map(|program| OsStr::from_bytes(program).into())
}

/// Whether a program loads no libraries. What cannot be read is left to the kernel to
/// refuse.
pub fn is_static(program: &Path) -> bool {
    start(program).is_some_and(|start| loads_nothing(&start) && !is_loader(program))
}

/// The names of the libraries that a program is linked to; none if it is no 64-bit ELF program.
pub fn needed(program: &Path) -> Vec<OsString> {
    let names = || needed_by(&File::open(program).ok()?, &start(program)?);
    names().unwrap_or_default()
}

fn needed_by(file: &File, start: &[u8]) -> Option<Vec<OsString>> {
    /// More than the tables of any program have.
    const MOST: u64 = 1 << 24;
    /// Bytes of an entry: a kind and a value.
    const ENTRY: usize = 16;
    if !is_elf(start) {
        return None;
    }
    let read = |at, size: u64| {
        let mut bytes = vec![0; usize::try_from(size.min(MOST)).ok()?];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    };
    let segments = segments(start)?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
    let dynamic = read(dynamic.offset, dynamic.size)?;
    let entries = || {
        let words = dynamic.chunks_exact(ENTRY).map(|entry| [word(entry, 0), word(entry, 8)]);
        words.take_while(|[kind, _]| *kind != Some(DT_NULL))
    };
    let value = |wanted| entries().find(|[kind, _]| *kind == Some(wanted))?[1];
    let (at, size) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
    let loaded = |segment: &&Segment| {
        segment.kind == PT_LOAD
            && at.checked_sub(segment.address).is_some_and(|at| at < segment.size)
    };
    let segment = segments.iter().find(loaded)?;
    let strings = read((at - segment.address).checked_add(segment.offset)?, size)?;
    let name = |at: u64| {
        let name = strings.get(usize::try_from(at).ok()?..)?.split(|byte| *byte == 0).next()?;
        Some(OsStr::from_bytes(name).to_owned())
    };
    let needed = entries().filter(|[kind, _]| *kind == Some(DT_NEEDED));
    Some(needed.filter_map(|[_, at]| name(at?)).collect())
}

/// More than has ever been seen before the end of the program headers.
const START: u64 = 1 << 16;

fn start(program: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(program).ok()?.take(START).read_to_end(&mut bytes).ok()?;
    Some(bytes)
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

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;

/// A part of a program's file.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// Whether this is the start of a 64-bit ELF file in this machine's byte order.
fn is_elf(start: &[u8]) -> bool {
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    start.get(..6) == Some(&[0x7f, b'E', b'L', b'F', 2, order])
}

/// Whether this is the start of such a program that names no dynamic loader.
fn loads_nothing(start: &[u8]) -> bool {
    let interprets = |segment: Segment| segment.kind == PT_INTERP;
    is_elf(start) && segments(start).is_some_and(|all| !all.into_iter().any(interprets))
}

/// The segments that the program headers list; `None` if they are not all there.
fn segments(start: &[u8]) -> Option<Vec<Segment>> {
    let at = usize::try_from(word(start, 32)?).ok()?;
    let size = u16::from_ne_bytes(*start.get(54..)?.first_chunk()?);
    let count = u16::from_ne_bytes(*start.get(56..)?.first_chunk()?);
    (0..usize::from(count))
        .map(|n| {
            let header = start.get(at.checked_add(n.checked_mul(size.into())?)?..)?;
            let kind = u32::from_ne_bytes(*header.first_chunk()?);
            let [offset, address, size] = [8, 16, 32].map(|at| word(header, at));
            Some(Segment { kind, offset: offset?, address: address?, size: size? })
        })
        .collect()
}

/// The eight bytes at `at`, as a number.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
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
            assert_eq!(loads_nothing(cut), cut.len() >= 64 + 56 + 40, "{end}");
        }
        assert!(!loads_nothing(b"#!/bin/sh\n"));
    }

    #[test]
    fn this_test_is_found_and_loads_libraries() {
        let own = std::env::current_exe().unwrap();
        assert!(!is_static(&own));
        assert!(needed(&own).iter().any(|library| library == "libc.so.6"));
        assert!(needed(Path::new("/proc/version")).is_empty());
        let (folder, name) = (own.parent().unwrap(), own.file_name().unwrap());
        assert_eq!(find(name, Some(folder.as_os_str())), Some(own.clone()));
        assert_eq!(find(OsStr::new("no such program"), Some(folder.as_os_str())), None);
        assert_eq!(interpreter(b"#! /bin/sh -e\nexit"), Some(&b"/bin/sh"[..]));
    }
}
