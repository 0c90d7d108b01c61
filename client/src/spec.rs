//! Names of ports as a user writes them.

use ringway_abi::nmreq_register;

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
/// assert_eq!(spec.reg.nr_ringid, 2);
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The name, as the registry knows it.
    pub name: String,
    /// Mode, ring, flags and region of the registration.
    pub reg: nmreq_register,
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
        let (how, options) = ringway_portspec::register(rest, 0).map_err(wrong)?;
        let mut reg = nmreq_register::default();
        how.apply(&mut reg);
        let wrong = |problem| Error::Name { name: spec.into(), problem };
        let Named { share, own } = spec_options::apply(options, &mut reg).map_err(wrong)?;
        let name = String::from_utf8_lossy(name).into_owned();
        Ok(PortSpec { name, reg, share, own })
    }
}

#[cfg(test)]
mod tests {
    use ringway_abi::{
        NR_EXCLUSIVE, NR_REG_ALL_NIC, NR_REG_ONE_NIC, NR_REG_ONE_SW, NR_REG_SW, NR_RX_RINGS_ONLY,
        NR_TX_RINGS_ONLY,
    };

    use super::*;

    #[test]
    fn parts() {
        let parse = |spec: &str| {
            PortSpec::parse(spec).map(|s| (s.name, s.reg.nr_mode, s.reg.nr_ringid, s.reg.nr_flags))
        };
        let all = NR_REG_ALL_NIC;
        assert_eq!(parse("vale0:a").unwrap(), ("vale0:a".into(), all, 0, 0));
        assert_eq!(parse("eth0").unwrap(), ("eth0".into(), all, 0, 0));
        assert_eq!(parse("netmap:p{1").unwrap(), ("p{1".into(), all, 0, 0));
        assert_eq!(parse("netmap:vale0:a{b").unwrap(), ("vale0:a{b".into(), all, 0, 0));
        let x = NR_EXCLUSIVE | NR_TX_RINGS_ONLY;
        assert_eq!(parse("netmap:e-2/Tx@3").unwrap(), ("e".into(), NR_REG_ONE_NIC, 2, x));
        let one_queue = ("e".into(), NR_REG_ONE_NIC, 4, NR_RX_RINGS_ONLY);
        assert_eq!(parse("netmap:e~4").unwrap(), one_queue);
        let own = PortSpec::parse("netmap:e~4@filter=udp port 53@sample=10").unwrap().own;
        assert_eq!((own.filter.as_deref(), own.sample), (Some("udp port 53"), Some(10)));
        assert_eq!(parse("netmap:e^").unwrap(), ("e".into(), NR_REG_SW, 0, 0));
        assert_eq!(parse("netmap:e^1").unwrap(), ("e".into(), NR_REG_ONE_SW, 1, 0));
        for bad in [
            "",
            "netmap:",
            "e-",
            "e~",
            "e~x",
            "e-x",
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
        ] {
            assert_eq!(parse(bad).unwrap_err().errno(), libc::EINVAL, "{bad}");
        }
    }
}
