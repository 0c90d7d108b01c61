//! Filter expressions, as `pcap-filter(7)` describes them, by the libpcap of this machine.
//!
//! It is loaded when the first expression is compiled: programs that filter nothing do without it.

use std::ffi::CString;

use crate::{Error, Program, sys};

/// Compiles an expression for Ethernet frames; an empty one matches everything.
///
/// ```no_run
/// let filter = ringway_filter::compile("udp port 53")?;
/// # Ok::<(), ringway_filter::Error>(())
/// ```
pub fn compile(expression: &str) -> Result<Program, Error> {
    let wrong = |problem: String| Error::Expression { expression: expression.into(), problem };
    let text = CString::new(expression).map_err(|_| wrong("it has a zero byte".into()))?;
    Program::new(sys::compile(&text)?.map_err(wrong)?)
}
