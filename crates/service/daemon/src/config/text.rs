//! Values that the configuration has as text, and filters.

use ringway_proto::{Filter, Insn};
use serde::Deserialize;

/// What is written as text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String", bound = "T: Read")]
pub(super) struct Text<T>(pub T);

pub(super) trait Read: Sized {
    fn read(text: &str) -> Result<Self, String>;
}

impl<T: Read> TryFrom<String> for Text<T> {
    type Error = String;

    fn try_from(text: String) -> Result<Text<T>, String> {
        T::read(&text).map(Text)
    }
}

/// A filter expression with the program that it was compiled to: the daemon reads no expressions.
/// `ringway switch save` writes both.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct FilterText {
    /// For people.
    expression: String,
    /// The number of instructions, and each, `code jt jf k`, with commas between them: as iptables' `bpf` match
    /// has them.
    #[cfg_attr(test, schemars(with = "String", regex(pattern = super::described::BYTECODE)))]
    bytecode: Text<Bytecode>,
}

impl FilterText {
    pub fn filter(&self) -> Filter {
        let FilterText { expression, bytecode: Text(Bytecode(insns)) } = self;
        Filter { text: expression.clone(), insns: insns.clone(), one_in: 1 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Bytecode(Vec<Insn>);

impl Read for Bytecode {
    fn read(text: &str) -> Result<Bytecode, String> {
        let mut parts = text.split(',');
        let count: Option<usize> = parts.next().and_then(|count| count.trim().parse().ok());
        let insn = |text: &str| {
            let mut numbers = text.split_whitespace();
            let insn = Insn {
                code: numbers.next()?.parse().ok()?,
                jt: numbers.next()?.parse().ok()?,
                jf: numbers.next()?.parse().ok()?,
                k: numbers.next()?.parse().ok()?,
            };
            numbers.next().is_none().then_some(insn)
        };
        let insns: Option<Vec<_>> = parts.map(insn).collect();
        match insns {
            Some(insns) if count == Some(insns.len()) => Ok(Bytecode(insns)),
            _ => Err("not the bytecode of a filter: `ringway switch save` writes it".into()),
        }
    }
}
