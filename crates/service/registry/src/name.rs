//! Port names, as they come in a request (S-REG-2, S-VALE-1, S-PIPE-1).

use ringway_proto::{Cause, Error, Result, is_printable};

/// What a name, without `netmap:` and ring suffixes, stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortName<'a> {
    /// `vale<id>:<port>`.
    Vale { bridge: &'a str, port: &'a str },
    /// `<parent>{<id>` or `<parent>}<id>`.
    Pipe { parent: &'a str, id: &'a str, master: bool },
    /// Anything else: a network interface, or a port of the registry's own with such a name.
    Plain(&'a str),
}

/// Longest name of an interface, and of each half of a VALE name, with the zero that ends it in C.
pub const IFNAMSIZ: usize = 16;

/// What is not part of the name of a switch's port, but says what is opened of it.
pub const NOT_IN_NAMES: [char; 5] = ['/', ':', '@', '{', '}'];

/// Longest name in a request (`NETMAP_REQ_IFNAMSIZ`).
const MAX_NAME: usize = 64;

/// Refuses what no program of the netmap API can ask for, and what would do things to the
/// terminal of a user who lists ports.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.len() >= MAX_NAME {
        return Err(Error::invalid(format!("a name has at most {} bytes", MAX_NAME - 1)));
    }
    if let Some(c) = name.chars().find(|c| !is_printable(*c)) {
        let code = u32::from(c);
        let problem = format!("a name has printable characters alone, and U+{code:04X} is none");
        return Err(Error::invalid(problem).at(name).remedy("leave it out"));
    }
    // What a library has read from bytes: several names would be this one.
    if name.contains(char::REPLACEMENT_CHARACTER) {
        return Err(Error::invalid("a name is UTF-8, and this one is not").at(name));
    }
    Ok(())
}

/// The name of the parent and the id, if this is the name of a pipe, and whether it is the master's.
fn pipe(name: &str) -> Option<((&str, &str), bool)> {
    let master = name.rsplit_once('{').map(|halves| (halves, true));
    master.or_else(|| name.rsplit_once('}').map(|halves| (halves, false)))
}

/// The name of a pipe's parent, if this is a pipe's.
pub(crate) fn pipe_parent(name: &str) -> Option<&str> {
    pipe(name).map(|((parent, _), _)| parent)
}

impl<'a> PortName<'a> {
    /// Parses a name. A name that begins with `val` and is no VALE name is `malformed`: the
    /// cause depends on the request (S-VALE-1).
    pub fn parse(name: &'a str, malformed: Cause) -> Result<PortName<'a>> {
        if let Some(((parent, id), master)) = pipe(name) {
            if parent.is_empty() || id.is_empty() {
                return Err(Error::invalid(
                    "a pipe is named PARENT{ID or PARENT}ID, with neither part empty",
                )
                .at(name));
            }
            return Ok(PortName::Pipe { parent, id, master });
        }
        if name.starts_with("val") {
            return PortName::vale(name).ok_or_else(|| {
                // netmap says the same of this as of all other names that are none, "Cannot
                // allocate memory".
                let too_long = name.split(':').any(|half| half.len() >= IFNAMSIZ);
                let is_made = malformed == Cause::NoRoom;
                Error::new(
                    if too_long && is_made { Cause::Invalid } else { malformed },
                    format!(
                        "{name}: a VALE port is named vale<switch>:<port>, at most 15 \
                         characters on each side, the switch of letters, digits and _"
                    ),
                )
            });
        }
        Ok(PortName::Plain(name))
    }

    fn vale(name: &str) -> Option<PortName<'_>> {
        let (bridge, port) = name.split_once(':')?;
        let id = bridge.strip_prefix("vale")?;
        let good = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        (good && bridge.len() < IFNAMSIZ && port.len() < IFNAMSIZ)
            .then_some(PortName::Vale { bridge, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_can_have() {
        for good in [&*"x".repeat(63), "vale0:b\u{fc}ro", "vale0:\u{939}\u{93f}"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["vale0:\x1b[2J", "eth0\0", "vale0:a\n", "vale0:\u{9b}2J", &"x".repeat(64)] {
            assert_eq!(check_name(bad).unwrap_err().cause, Cause::Invalid);
        }
        // What a library has made of bytes that are not UTF-8.
        assert!(check_name("vale0:\u{fffd}").unwrap_err().to_string().contains("UTF-8"));
        // Two that look alike, and one that a terminal shows in another order.
        for bad in ["vale0:a\u{200b}", "vale0:\u{202e}tor", "x{1\u{2066}", "y\u{e000}"] {
            let error = check_name(bad).unwrap_err();
            assert_eq!(error.cause, Cause::Invalid);
            assert!(error.to_string().contains("printable characters alone, and U+"), "{error}");
        }
    }

    #[test]
    fn names() {
        let parse = |name| PortName::parse(name, Cause::NoRoom);
        assert_eq!(parse("eth0"), Ok(PortName::Plain("eth0")));
        assert_eq!(parse("vale0:a"), Ok(PortName::Vale { bridge: "vale0", port: "a" }));
        assert_eq!(parse("vale:"), Ok(PortName::Vale { bridge: "vale", port: "" }));
        assert_eq!(
            parse("vale0:a{1"),
            Ok(PortName::Pipe { parent: "vale0:a", id: "1", master: true })
        );
        assert_eq!(parse("x}y"), Ok(PortName::Pipe { parent: "x", id: "y", master: false }));
        for bad in ["{1", "x{", "x}", "}"] {
            assert_eq!(parse(bad).unwrap_err().cause, Cause::Invalid, "{bad}");
        }
        for bad in ["val", "value:a", "vale-0:a", "vale0"] {
            assert_eq!(parse(bad).unwrap_err().cause, Cause::NoRoom, "{bad}");
        }
        for long in ["vale0:0123456789abcdef", "vale0123456789ab:p"] {
            assert_eq!(parse(long).unwrap_err().cause, Cause::Invalid, "{long}");
            let absent = PortName::parse(long, Cause::NoPort).unwrap_err();
            assert_eq!(absent.cause, Cause::NoPort, "{long}");
        }
    }
}
