//! The name: which subsystem, and which of its ports.

use crate::Error;

/// Bytes of a name, at most: what a request has room for.
pub const NAME_MAX: usize = 63;

/// What ends a name; `-` only where a [ring](ends_at) may follow.
const ENDS: &[u8] = b"-*^~/@";

fn in_identifier(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Reads `netmap:NAME` or `vale<switch>:<port>`. Returns the name as requests carry it
/// (without `netmap:`, with `vale<switch>:`; 1 to 63 bytes), and what follows it.
pub fn header(spec: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    if let Some(base) = spec.strip_prefix(b"netmap:") {
        return name(base);
    }
    let switch = spec.strip_prefix(b"vale").ok_or(Error::Subsystem)?;
    match switch.iter().find(|byte| !in_identifier(byte)) {
        Some(b':') => split(spec),
        _ => Err(Error::Subsystem),
    }
}

/// Reads the name of an interface or of a pipe, without `netmap:`. Returns it and what follows.
///
/// Names are made of letters, digits, `_`, `.` and `-`: the original takes anything here, but its
/// users are told to expect that `netmap:vale0:0` and `netmap:eth0&` are refused.
pub fn name(base: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let (name, rest) = split(base)?;
    let mut parent = name.iter().take_while(|byte| !is_pipe(byte));
    if parent.all(|byte| in_identifier(byte) || b".-".contains(byte)) {
        Ok((name, rest))
    } else {
        Err(Error::Character)
    }
}

fn is_pipe(byte: &u8) -> bool {
    matches!(byte, b'{' | b'}')
}

/// Whether a name ends before `rest`.
///
/// To the original every `-` ends it. Interfaces have names like `veth-a` and `br-1a2b3c`: a `-` that no
/// number of a ring follows is part of the name.
fn ends_at(rest: &[u8]) -> bool {
    let [b'-', behind @ ..] = rest else {
        return rest.first().is_some_and(|byte| ENDS.contains(byte));
    };
    let word = behind.iter().take_while(|byte| in_identifier(byte));
    word.clone().all(u8::is_ascii_digit)
}

/// Splits where a name ends, and looks at its length and at the id of a pipe.
fn split(spec: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let end = (0..spec.len()).find(|at| ends_at(&spec[*at..])).unwrap_or(spec.len());
    let (name, rest) = spec.split_at(end);
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(Error::Length);
    }
    if let Some(at) = name.iter().position(is_pipe) {
        let id = &name[at + 1..];
        // `p{-3` is for the registry to refuse.
        if !id.iter().all(in_identifier) || (id.is_empty() && rest.is_empty()) {
            return Err(Error::Pipe);
        }
    }
    Ok((name, rest))
}
