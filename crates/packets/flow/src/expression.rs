//! A flow as a user writes it: `udp dst port 53`, `tcp src host 10.0.0.1 dst port 80`.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// What follows the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
    /// Whatever.
    Any,
}

/// Packets that go to one queue. What is `None` is any.
///
/// ```text
/// flow     := protocol { part }
/// protocol := ( "tcp" | "udp" | "sctp" | "ip" ) [ "4" | "6" ]
/// part     := [ "src" | "dst" ] ( "host" address | "port" number )
/// ```
///
/// `src` and `dst` must be there: a NIC has no rules for "either". Without a version and an address
/// it is IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub protocol: Protocol,
    pub version6: bool,
    /// Source before destination.
    pub hosts: [Option<IpAddr>; 2],
    pub ports: [Option<u16>; 2],
}

/// Why a text is no flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flow `{text}`: {problem}; write for example `udp dst port 53`")]
pub struct FlowError {
    text: String,
    problem: &'static str,
}

impl FromStr for Flow {
    type Err = FlowError;

    fn from_str(text: &str) -> Result<Flow, FlowError> {
        parse(text).map_err(|problem| FlowError { text: text.into(), problem })
    }
}

fn parse(text: &str) -> Result<Flow, &'static str> {
    let mut words = text.split_whitespace();
    let first = words.next().ok_or("it is empty")?;
    let (name, mut version) = match first.strip_suffix(['4', '6']) {
        Some(name) => (name, Some(first.ends_with('6'))),
        None => (first, None),
    };
    let protocol = match name {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        "ip" => Protocol::Any,
        _ => return Err("it begins with tcp, udp, sctp or ip"),
    };
    let (mut hosts, mut ports) = ([None; 2], [None; 2]);
    while let Some(side) = words.next() {
        let side = match side {
            "and" => continue,
            "src" => 0,
            "dst" => 1,
            _ => return Err("say src or dst in front of host and port"),
        };
        match (words.next(), words.next()) {
            (Some("host"), Some(address)) => {
                let address: IpAddr = address.parse().map_err(|_| "that is no address")?;
                if version.is_some_and(|six| six != address.is_ipv6()) {
                    return Err("its addresses are of both versions of IP");
                }
                version = Some(address.is_ipv6());
                hosts[side] = Some(address);
            }
            (Some("port"), Some(_)) if protocol == Protocol::Any => {
                return Err("ports are those of tcp, udp and sctp");
            }
            (Some("port"), Some(port)) => {
                ports[side] = Some(port.parse().map_err(|_| "that is no port")?);
            }
            _ => return Err("after src and dst goes `host ADDRESS` or `port NUMBER`"),
        }
    }
    Ok(Flow { protocol, version6: version.unwrap_or(false), hosts, ports })
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
            Protocol::Any => "ip",
        };
        write!(f, "{protocol}{}", if self.version6 { 6 } else { 4 })?;
        for (side, (host, port)) in ["src", "dst"].iter().zip(self.hosts.iter().zip(&self.ports)) {
            if let Some(host) = host {
                write!(f, " {side} host {host}")?;
            }
            if let Some(port) = port {
                write!(f, " {side} port {port}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (text, full) in [
            ("udp dst port 53", "udp4 dst port 53"),
            ("tcp src host 10.0.0.1 and dst port 80", "tcp4 src host 10.0.0.1 dst port 80"),
            ("ip dst host fd00::1", "ip6 dst host fd00::1"),
            ("sctp6", "sctp6"),
        ] {
            let flow: Flow = text.parse().unwrap();
            assert_eq!(flow.to_string(), full);
            assert_eq!(full.parse(), Ok(flow));
        }
        for bad in [
            "",
            "icmp",
            "udp port 53",
            "udp dst",
            "udp dst port",
            "udp dst port x",
            "udp dst net 10.0.0.0",
            "ip dst port 53",
            "udp4 src host fd00::1",
            "udp src host fd00::1 dst host 10.0.0.1",
        ] {
            assert!(bad.parse::<Flow>().is_err(), "{bad}");
        }
    }
}
