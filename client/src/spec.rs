//! Names of ports as a user writes them.

use ringway_abi::{
    NR_EXCLUSIVE, NR_MONITOR_RX, NR_MONITOR_TX, NR_REG_ALL_NIC, NR_REG_NIC_SW, NR_REG_ONE_NIC,
    NR_REG_ONE_SW, NR_REG_SW, NR_RX_RINGS_ONLY, NR_TX_RINGS_ONLY, NR_ZCOPY_MON, nmreq_register,
};

use crate::error::Error;

/// A port specification, taken apart.
///
/// ```text
/// spec  := [ "netmap:" ] name [ "^" [N] | "*" | "-" N ] [ "/" flags ] [ "@" memid ]
/// name  := "vale" id ":" port | interface | name "{" id | name "}" id
/// flags := x exclusive | R receive rings only | T transmit rings only | r t z monitors
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
}

const LONGEST: usize = 63;

impl PortSpec {
    /// Parses a specification. Errors say which part is wrong.
    pub fn parse(spec: &str) -> Result<PortSpec, Error> {
        let wrong = |problem: &str| Error::Name { name: spec.into(), problem: problem.into() };
        let rest = spec.strip_prefix("netmap:").unwrap_or(spec);
        let end = rest.find(['-', '*', '^', '/', '@']).unwrap_or(rest.len());
        let (name, mut rest) = rest.split_at(end);
        if name.is_empty() || name.len() > LONGEST {
            return Err(wrong("a port's name has 1 to 63 characters: vale0:a, netmap:eth0, a{1"));
        }
        let mut reg = nmreq_register { nr_mode: NR_REG_ALL_NIC, ..Default::default() };
        let number = |rest: &mut &str| -> Option<u16> {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            *rest = tail;
            number.parse().ok().filter(|n| *n < 4095)
        };
        if let Some(tail) = rest.strip_prefix('^') {
            rest = tail;
            reg.nr_mode = NR_REG_SW;
            if rest.starts_with(|c: char| c.is_ascii_digit()) {
                reg.nr_mode = NR_REG_ONE_SW;
                reg.nr_ringid = number(&mut rest).ok_or_else(|| wrong("no such host ring"))?;
            }
        } else if let Some(tail) = rest.strip_prefix('*') {
            rest = tail;
            reg.nr_mode = NR_REG_NIC_SW;
        } else if let Some(tail) = rest.strip_prefix('-') {
            rest = tail;
            reg.nr_mode = NR_REG_ONE_NIC;
            reg.nr_ringid =
                number(&mut rest).ok_or_else(|| wrong("a ring number goes after the `-`"))?;
        }
        while !rest.is_empty() {
            if let Some(tail) = rest.strip_prefix('@') {
                rest = tail;
                reg.nr_mem_id = number(&mut rest)
                    .filter(|id| *id > 0)
                    .ok_or_else(|| wrong("the id of a region goes after the `@`"))?;
            } else if let Some(tail) = rest.strip_prefix('/') {
                let flags = tail.find('@').unwrap_or(tail.len());
                for flag in tail[..flags].chars() {
                    reg.nr_flags |= match flag {
                        'x' => NR_EXCLUSIVE,
                        'z' => NR_ZCOPY_MON,
                        't' => NR_MONITOR_TX,
                        'r' => NR_MONITOR_RX,
                        'R' => NR_RX_RINGS_ONLY,
                        'T' => NR_TX_RINGS_ONLY,
                        _ => return Err(wrong("the flags after `/` are x, z, t, r, R and T")),
                    };
                }
                rest = &tail[flags..];
            } else {
                return Err(wrong("only `/flags` and `@region` may follow the ring"));
            }
        }
        Ok(PortSpec { name: name.into(), reg })
    }
}

#[cfg(test)]
mod tests {
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
        let x = NR_EXCLUSIVE | NR_TX_RINGS_ONLY;
        assert_eq!(parse("netmap:e-2/Tx@3").unwrap(), ("e".into(), NR_REG_ONE_NIC, 2, x));
        assert_eq!(parse("netmap:e^").unwrap(), ("e".into(), NR_REG_SW, 0, 0));
        assert_eq!(parse("netmap:e^1").unwrap(), ("e".into(), NR_REG_ONE_SW, 1, 0));
        for bad in ["", "netmap:", "e-", "e-x", "e-5000", "e/q", "e@", "e@0", "e*1", "e^1x"] {
            assert_eq!(parse(bad).unwrap_err().errno(), libc::EINVAL, "{bad}");
        }
    }
}
