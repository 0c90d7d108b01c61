//! Out of the object that a compiler makes: the function that was asked for, and those that it calls, linked
//! into one program.
//!
//! Functions are in sections `xdp` or `xdp/NAME` (also `xdp.frags`), those that they call in `.text`. A call is
//! relocated (R_BPF_64_32) where it leaves its section.

use std::collections::HashMap;

use object::{
    Architecture, BinaryFormat, Object, ObjectSection, ObjectSymbol, RelocationFlags,
    RelocationTarget, SectionIndex, SymbolKind, elf::R_BPF_64_32,
};
use ringway_filter::Ebpf;

use crate::{
    Error, Program,
    program::{CALL, LOCAL},
};

const INSN: u64 = size_of::<Ebpf>() as u64;

/// A function: its section, and its bytes there.
#[derive(Clone)]
struct Function<'a> {
    name: &'a str,
    section: SectionIndex,
    start: u64,
    end: u64,
}

impl Program {
    /// The program of that name in an object, or the only one.
    ///
    /// # Errors
    /// What is wrong with the object, and those of [`Program::new`].
    pub fn from_elf(bytes: &[u8], name: Option<&str>) -> Result<Program, Error> {
        let no_object = |problem: &dyn ToString| Error::NoObject(problem.to_string());
        let file = object::File::parse(bytes).map_err(|e| no_object(&e))?;
        if file.format() != BinaryFormat::Elf || file.architecture() != Architecture::Bpf {
            return Err(no_object(&"it is for another machine"));
        }
        if file.is_little_endian() != cfg!(target_endian = "little") {
            return Err(no_object(&"it is in the other byte order"));
        }
        let functions = functions(&file);
        let first = entry(&file, &functions, name)?;
        Linker { file, functions, linked: Vec::new(), places: HashMap::new() }.link(first)
    }
}

fn functions<'a>(file: &object::File<'a>) -> Vec<Function<'a>> {
    let function = |symbol: object::Symbol<'a, '_>| {
        let start = symbol.address();
        let (name, section) = (symbol.name().ok()?, symbol.section_index()?);
        let end = start.checked_add(symbol.size())?;
        let is_one = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        is_one.then_some(Function { name, section, start, end })
    };
    file.symbols().filter_map(function).collect()
}

/// The place of the function among all.
fn entry(
    file: &object::File<'_>,
    functions: &[Function<'_>],
    name: Option<&str>,
) -> Result<usize, Error> {
    let is_program = |function: &Function<'_>| {
        let section = file.section_by_index(function.section);
        let section = section.ok().and_then(|section| section.name().ok().map(str::to_owned));
        let kind = section.as_deref().map(|name| name.split('/').next().unwrap_or(name));
        matches!(kind, Some("xdp" | "xdp.frags"))
    };
    let programs: Vec<(usize, &str)> = functions
        .iter()
        .enumerate()
        .filter(|(_, function)| is_program(function))
        .map(|(at, function)| (at, function.name))
        .collect();
    let names = || programs.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    match (&programs[..], name) {
        ([], _) => Err(Error::NoFunction),
        (&[(one, _)], None) => Ok(one),
        (_, None) => Err(Error::Several(names())),
        (_, Some(wanted)) => {
            let found = programs.iter().find(|(_, name)| *name == wanted);
            let none = || Error::NoSuch { name: wanted.into(), others: names() };
            found.map(|(at, _)| *at).ok_or_else(none)
        }
    }
}

struct Linker<'a> {
    file: object::File<'a>,
    functions: Vec<Function<'a>>,
    linked: Vec<Ebpf>,
    /// Where functions begin among what is linked.
    places: HashMap<usize, usize>,
}

impl<'a> Linker<'a> {
    /// Links this function and all that it calls.
    fn link(mut self, first: usize) -> Result<Program, Error> {
        let (mut waiting, mut calls) = (vec![first], Vec::new());
        while let Some(next) = waiting.pop() {
            if self.places.contains_key(&next) {
                continue;
            }
            self.places.insert(next, self.linked.len());
            let made = self.append(next)?;
            waiting.extend(made.iter().map(|(_, callee)| *callee));
            calls.extend(made);
            if self.linked.len() > crate::MAX_INSNS {
                return Err(Error::Length(self.linked.len()));
            }
        }
        for (at, callee) in calls {
            if let (Some(insn), Some(&place)) = (self.linked.get_mut(at), self.places.get(&callee))
            {
                insn.immediate = place as i32 - at as i32 - 1;
            }
        }
        Program::new(self.linked)
    }

    /// Appends a function. The result is its calls: where each is, and which function it is to.
    fn append(&mut self, which: usize) -> Result<Vec<(usize, usize)>, Error> {
        let broken = || Error::NoObject("a function is not where the object says".into());
        let function = self.functions.get(which).cloned().ok_or_else(broken)?;
        let section = self.file.section_by_index(function.section).map_err(|_| broken())?;
        let (start, length) = (function.start, function.end - function.start);
        let bytes = section.data_range(start, length).ok().flatten().ok_or_else(broken)?;
        let (raw, rest) = bytes.as_chunks::<8>();
        if start % INSN != 0 || !rest.is_empty() {
            return Err(broken());
        }
        let targets = self.relocated(&function)?;
        let mut calls = Vec::new();
        for (number, raw) in (0..).zip(raw) {
            let insn = insn(raw);
            let at = start + number * INSN;
            if insn.code == CALL && insn.source() == LOCAL {
                let (section, base) = targets.get(&at).copied().unwrap_or((function.section, at));
                let distance = (i64::from(insn.immediate) + 1) * INSN as i64;
                let target = base.checked_add_signed(distance);
                let callee = self
                    .functions
                    .iter()
                    .position(|other| other.section == section && Some(other.start) == target);
                let undefined =
                    || Error::Undefined { function: function.name.into(), symbol: String::new() };
                calls.push((self.linked.len(), callee.ok_or_else(undefined)?));
            }
            self.linked.push(insn);
        }
        Ok(calls)
    }

    /// By the place of a call in the function, what its distance is counted from.
    fn relocated(
        &self,
        function: &Function<'a>,
    ) -> Result<HashMap<u64, (SectionIndex, u64)>, Error> {
        let mut targets = HashMap::new();
        let Ok(section) = self.file.section_by_index(function.section) else { return Ok(targets) };
        for (at, relocation) in section.relocations() {
            if !(function.start..function.end).contains(&at) {
                continue;
            }
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let Ok(symbol) = self.file.symbol_by_index(symbol) else { continue };
            let shown = || {
                let section = symbol.section_index().map(|at| self.file.section_by_index(at));
                let section = section.and_then(Result::ok);
                let of_section = || section.as_ref().and_then(|section| section.name().ok());
                let name = symbol.name().ok().filter(|name| !name.is_empty());
                name.or_else(of_section).unwrap_or("?").to_owned()
            };
            let function = || function.name.to_owned();
            let is_call =
                matches!(relocation.flags(), RelocationFlags::Elf { r_type: R_BPF_64_32 });
            if !is_call {
                return Err(Error::Data { function: function(), symbol: shown() });
            }
            let Some(section) = symbol.section_index() else {
                let symbol = format!(" ({})", shown());
                return Err(Error::Undefined { function: function(), symbol });
            };
            targets.insert(at, (section, symbol.address()));
        }
        Ok(targets)
    }
}

fn insn(raw: &[u8; 8]) -> Ebpf {
    let [code, registers, o0, o1, i0, i1, i2, i3] = *raw;
    let offset = i16::from_ne_bytes([o0, o1]);
    Ebpf { code, registers, offset, immediate: i32::from_ne_bytes([i0, i1, i2, i3]) }
}
