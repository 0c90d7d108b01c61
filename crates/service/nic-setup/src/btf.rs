//! The kernel's own types (BTF), as far as it takes to call one of its functions.
//!
//! The format is that of `Documentation/bpf/btf.rst`. Nothing is kept of the megabytes: one walk over
//! the types finds the function.

use std::{fs, io};

const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
/// Bytes of a type, without what belongs to its kind.
const TYPE: usize = 12;
const FUNCTION: u32 = 12;

/// The number of the kernel's function `name`, by which a program calls it. Kernels without
/// CONFIG_DEBUG_INFO_BTF tell of none.
pub(crate) fn function(name: &str) -> io::Result<u32> {
    let btf = fs::read(FILE)?;
    find(&btf, name).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("the kernel has no function {name}"))
    })
}

fn find(btf: &[u8], name: &str) -> Option<u32> {
    let word = |at: usize| Some(u32::from_ne_bytes(btf.get(at..at + 4)?.try_into().ok()?));
    if btf.get(..2)? != MAGIC.to_ne_bytes() {
        return None;
    }
    // Both parts begin so many bytes behind the header.
    let part = |at| {
        let start = (word(4)? as usize).checked_add(word(at)? as usize)?;
        btf.get(start..start.checked_add(word(at + 4)? as usize)?)
    };
    let (mut types, names) = (part(8)?, part(16)?);
    let is_name = |at: u32| {
        let rest = names.get(at as usize..).and_then(|names| names.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    };
    for number in 1.. {
        let [at, info] = [0, 4].map(|at| types.get(at..at + 4)?.try_into().ok());
        let (at, info) = (u32::from_ne_bytes(at?), u32::from_ne_bytes(info?));
        let kind = info >> 24 & 0x1f;
        if kind == FUNCTION && is_name(at) {
            return Some(number);
        }
        types = types.get(TYPE + behind(kind, info as usize & 0xffff)?..)?;
    }
    None
}

/// Bytes behind a type of that kind, with so many members.
fn behind(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, enumerations of 64 bits.
        4 | 5 | 15 | 19 => 12 * members,
        // Enumerations, prototypes.
        6 | 13 => 8 * members,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type of this kind, with so many members.
    fn kind(name: u32, kind: u32, members: u32) -> Vec<u8> {
        let words = [name, kind << 24 | members, 0];
        let more = behind(kind, members as usize).unwrap();
        [words.map(u32::to_ne_bytes).concat(), vec![0xff; more]].concat()
    }

    fn btf(types: &[Vec<u8>], names: &[u8]) -> Vec<u8> {
        let types = types.concat();
        let lengths = [24, 0, types.len(), types.len(), names.len()];
        let words = lengths.map(|length| (length as u32).to_ne_bytes()).concat();
        let start = [&MAGIC.to_ne_bytes()[..], &[1, 0]].concat();
        [&start[..], &words, &types, names].concat()
    }

    #[test]
    fn a_function_is_found_behind_all_kinds_of_types() {
        let others = (1..20).filter(|kind| *kind != FUNCTION).map(|of| kind(1, of, 3));
        let functions = [8, 5, 1].map(|name| kind(name, FUNCTION, 1));
        let types: Vec<_> = others.chain(functions).collect();
        let btf = btf(&types, b"\0one\0two2\0");
        assert_eq!(
            (find(&btf, "one"), find(&btf, "two2"), find(&btf, "two")),
            (Some(21), Some(20), None)
        );
        for length in 0..btf.len() {
            let found = find(&btf[..length], "one");
            assert_eq!(found, None, "of {length} bytes");
        }
    }

    #[test]
    fn unknown_kinds_end_the_search() {
        let types = [
            kind(1, 2, 0),
            [0u32, 31 << 24, 0].map(u32::to_ne_bytes).concat(),
            kind(1, FUNCTION, 0),
        ];
        assert_eq!(find(&btf(&types, b"\0one\0"), "one"), None);
    }
}
