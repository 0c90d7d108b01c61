//! Names of ports as a user writes them.

use ringway_portspec::{Flags, Register, Rings};
use ringway_proto::{Monitor, Registration, RingSelection};

use crate::{
    error::Error,
    own_options::OwnOptions,
    spec_options::{self, Named},
};

/// A port specification, taken apart.
///
/// ```text
/// spec  := [ "netmap:" ] name [ "^" [N] | "*" | "-" N | "~" N ] [ "/" flags ] [ "@" memid ] option*
/// name  := "vale" id ":" port | interface | name "{" id | name "}" id
/// flags := x exclusive | R receive rings only | T transmit rings only | r t z monitors
/// option := "@conf:" key "=" number { "," key "=" number } | "@share=" spec
///         | "@filter=" expression | "@sample=" number
///         | "@mode=" ( "zerocopy" | "copy" | "generic" | "packet" ) | "@buffers=" number
///         | "@timestamps=" ( "hardware" | "software" ) | "@user=" ( name | number )
/// key   := [ "host_" ] [ "tx_" | "rx_" ] "rings" | [ "tx_" | "rx_" ] "slots"
/// ```
///
/// ```
/// let spec = ringway::PortSpec::parse("netmap:eth0-2/R")?;
/// assert_eq!(spec.name, "eth0");
/// assert_eq!(spec.registration.rings, ringway::RingSelection::One(2));
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The name, as the registry knows it.
    pub name: String,
    /// What the name says of the registration: rings, region, and how they are opened.
    pub registration: Registration,
    /// Specification of the port whose region this one is to be in.
    pub share: Option<String>,
    /// What netmap knows nothing of.
    pub own: OwnOptions,
}

impl PortSpec {
    /// Parses a specification. Errors say which part is wrong.
    pub fn parse(spec: &str) -> Result<PortSpec, Error> {
        let wrong = |problem: ringway_portspec::Error| Error::Name {
            name: spec.into(),
            problem: problem.to_string(),
        };
        let plain = spec.strip_prefix("netmap:").unwrap_or(spec);
        let name = plain.split('@').next().unwrap_or(plain);
        let (name, rest) = if name.contains(':') {
            ringway_portspec::header(plain.as_bytes())
        } else {
            ringway_portspec::name(plain.as_bytes())
        }
        .map_err(wrong)?;
        if name.starts_with(b"val")
            && !name.contains(&b'{')
            && !name.contains(&b'}')
            && !is_vale(name)
        {
            let problem = "a VALE port is named vale<switch>:<port>, at most 15 characters on each \
                           side, the switch of letters, digits and _";
            return Err(Error::Name { name: spec.into(), problem: problem.into() });
        }
        // To netmap this is a name, too.
        if name.ends_with(b":") || name.windows(2).any(|pair| matches!(pair, b":{" | b":}")) {
            let problem = "the port of the switch has no name; write vale0:a, with 1 to 15 bytes \
                           behind the colon";
            return Err(Error::Name { name: spec.into(), problem: problem.into() });
        }
        let (how, options) = ringway_portspec::register(rest, 0).map_err(wrong)?;
        let mut registration = registration(&how);
        let wrong = |problem| Error::Name { name: spec.into(), problem };
        let Named { share, own } =
            spec_options::apply(options, &mut registration).map_err(wrong)?;
        let name = String::from_utf8_lossy(name).into_owned();
        Ok(PortSpec { name, registration, share, own })
    }

    /// A port that programs have open, by its name, and which of its rings: a name says nothing else
    /// there.
    ///
    /// # Errors
    /// [`Error::Name`], also for flags and options: they are for a program that opens the port.
    #[doc(hidden)]
    pub fn parse_open(spec: &str) -> Result<(String, RingSelection), Error> {
        let PortSpec { name, registration, share, own } = PortSpec::parse(spec)?;
        let Registration { rings, without_tx, .. } = registration;
        // A receive ring alone is one of the receive rings.
        let plain = Registration { rings, without_tx, ..Registration::default() };
        if registration != plain || share.is_some() || own != OwnOptions::default() {
            let problem =
                "flags and options are for the program that opens the port; leave them out";
            return Err(Error::Name { name: spec.into(), problem: problem.into() });
        }
        Ok((name, rings))
    }

    /// Whether a name asks for one receive queue alone, `~N`.
    #[doc(hidden)]
    pub fn is_queue(spec: &str) -> bool {
        spec.split('@').next().is_some_and(|name| name.contains('~'))
    }
}

/// Whether a name that begins as those of switches' ports is one, its length aside.
fn is_vale(name: &[u8]) -> bool {
    let switch = name.split(|byte| *byte == b':').next();
    let id = switch.and_then(|switch| switch.strip_prefix(b"vale"));
    let is_good = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.contains(&b':') && id.is_some_and(|id| id.iter().all(is_good))
}

/// What the grammar has read, as a registration.
fn registration(how: &Register) -> Registration {
    let Register { rings, flags, mem_id } = *how;
    let Flags { exclusive, rx_only, tx_only, monitor_tx, monitor_rx, zero_copy_monitor } = flags;
    Registration {
        rings: match rings {
            Rings::All => RingSelection::All,
            Rings::Host => RingSelection::Host,
            Rings::AllAndHost => RingSelection::AllAndHost,
            Rings::One(ring) => RingSelection::One(ring),
            Rings::OneHost(ring) => RingSelection::OneHost(ring),
        },
        without_tx: rx_only,
        without_rx: tx_only,
        exclusive,
        monitor: Monitor { tx: monitor_tx, rx: monitor_rx, zero_copy: zero_copy_monitor },
        mem_id,
        ..Registration::default()
    }
}

#[cfg(test)]
mod tests {
    use ringway_proto::Cause;

    use super::*;

    #[test]
    fn open_ports_have_their_options_already() {
        for name in ["e", "netmap:e", "e-2", "e~2", "e/R", "e^", "e*", "vale0:a"] {
            assert!(PortSpec::parse_open(name).is_ok(), "{name}");
        }
        let extra = ["/t", "/x", "/T", "@3", "@filter=udp", "@sample=7", "@mode=zerocopy"];
        let more = ["@buffers=512", "@timestamps=software", "@user=root", "@share=vale0:a"];
        for extra in extra.into_iter().chain(more).chain(["@conf:slots=64"]) {
            let error = PortSpec::parse_open(&format!("netmap:e{extra}")).unwrap_err();
            assert!(error.to_string().contains("; leave them out"), "{extra}: {error}");
        }
    }

    #[test]
    fn parts() {
        let parse = |spec: &str| {
            PortSpec::parse(spec).map(|spec| {
                let Registration { rings, exclusive, without_tx, without_rx, .. } =
                    spec.registration;
                (spec.name, rings, [exclusive, without_tx, without_rx])
            })
        };
        let (all, plain) = (RingSelection::All, [false; 3]);
        assert_eq!(parse("vale0:a").unwrap(), ("vale0:a".into(), all, plain));
        assert_eq!(parse("eth0").unwrap(), ("eth0".into(), all, plain));
        assert_eq!(parse("netmap:p{1").unwrap(), ("p{1".into(), all, plain));
        assert_eq!(parse("netmap:vale0:a{b").unwrap(), ("vale0:a{b".into(), all, plain));
        let x = [true, false, true];
        assert_eq!(parse("netmap:e-2/Tx@3").unwrap(), ("e".into(), RingSelection::One(2), x));
        let one_queue = ("e".into(), RingSelection::One(4), [false, true, false]);
        assert_eq!(parse("netmap:e~4").unwrap(), one_queue);
        let own = PortSpec::parse("netmap:e~4@filter=udp port 53@sample=10").unwrap().own;
        assert_eq!((own.filter.as_deref(), own.sample), (Some("udp port 53"), Some(10)));
        assert_eq!(parse("netmap:e^").unwrap(), ("e".into(), RingSelection::Host, plain));
        assert_eq!(parse("netmap:e^1").unwrap(), ("e".into(), RingSelection::OneHost(1), plain));
        for bad in [
            "",
            "netmap:",
            "e-",
            "e~",
            "e~x",
            "e-/x",
            "e-5000",
            "e/q",
            "e@",
            "e@0",
            "e*1",
            "e^1x",
            "e@x",
            "e&",
            "e@buffers=many",
            "e@timestamps=ptp",
            "vale2:",
            "vale2",
            "vale2@conf:slots=64",
            "val:a",
            "vale\u{e9}:a",
            "vale:",
            "vale2:/R",
            "vale2:@conf:slots=64",
            "vale2:{1",
            "vale2:}1",
        ] {
            assert_eq!(parse(bad).unwrap_err().cause(), Cause::Invalid, "{bad}");
        }
    }
}
