//! Where metrics are served: a Unix socket, or an address that no other machine reaches.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    Loopback(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(format!(
                    "`{path}`: give the socket's path from / on: unix:/run/...sock"
                ));
            }
            return Ok(Address::Unix(path.into()));
        }
        let address: SocketAddr = text.parse().map_err(|_| {
            format!("`{text}` is no address; unix:/PATH, 127.0.0.1:PORT and [::1]:PORT are")
        })?;
        // 127.0.0.2 is no other machine's either; an IPv4 address in IPv6's form is looked at as what it is.
        let ip = match address.ip() {
            IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
            ip => ip,
        };
        if !ip.is_loopback() {
            return Err(format!(
                "{address} is reached by other machines, which metrics are not for: listen at 127.0.0.1:{port} or \
                 unix:/PATH, and let a proxy that asks for a password serve others",
                port = address.port()
            ));
        }
        Ok(Address::Loopback(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Loopback(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_alone_are_taken() {
        for text in ["127.0.0.1:9464", "127.1.2.3:0", "[::1]:9464", "unix:/run/x.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for (text, remedy) in [
            ("0.0.0.0:9464", "127.0.0.1:9464"),
            ("[::]:80", "127.0.0.1:80"),
            ("192.0.2.1:80", "unix:/PATH"),
            ("[2001:db8::1]:80", "proxy"),
            ("[::ffff:192.0.2.1]:80", "127.0.0.1:80"),
            ("localhost:80", "127.0.0.1:PORT"),
            ("127.0.0.1", "127.0.0.1:PORT"),
            ("9464", "[::1]:PORT"),
            ("unix:run/x.sock", "from /"),
            ("unix:", "from /"),
            ("/run/x.sock", "unix:/PATH"),
        ] {
            let said = text.parse::<Address>().unwrap_err();
            assert!(said.contains(remedy), "{text}: {said}");
        }
        assert!("[::ffff:127.0.0.1]:80".parse::<Address>().is_ok());
    }
}
