//! The headers of a packet: as the capture reads them for long headers and rules ([`capture`]), and as
//! `pfring_parse_pkt` reads them for a program ([`program`]). Both have rules of their own; what they have in common
//! is in `wire.rs`.

mod capture;
mod program;
#[cfg(test)]
mod tests;
mod wire;

pub use capture::capture;
pub use program::program;
