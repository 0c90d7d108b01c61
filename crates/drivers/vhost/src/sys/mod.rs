//! The guest's memory as this process has it: mappings, and numbers in them that both sides change.
#![allow(unsafe_code)]

mod map;
mod part;

pub(crate) use map::Map;
pub(crate) use part::Part;
