//! What a machine does with a network interface: what would stop if a program took all of its
//! frames.
//!
//! What uses an interface may be one on top of it, or one that it is a part of: a VLAN, a bridge, a
//! bond.

use crate::netlink::{self, Link};
use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt;

/// What sshd tells the programs of a session: addresses and ports of both ends.
const SESSION: &str = "SSH_CONNECTION";

/// Programs from this one up to the session's, at most.
const ANCESTORS: usize = 32;

/// What an interface is used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceUse {
    pub interface: String,
    /// Addresses with their prefixes, and the interfaces that have them.
    addresses: Vec<(String, String)>,
    has_default_route: bool,
    /// Routes by gateways, the default one aside.
    routes: usize,
    /// The bridge or bond, say, whose part it is.
    master: Option<(String, String)>,
    /// The other end of the user's own session.
    session: Option<IpAddr>,
}

/// The two ends of a session: this machine's, and the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Session {
    local: IpAddr,
    peer: IpAddr,
}

impl InterfaceUse {
    /// Of an interface of this network namespace; `None`: there is none of that name.
    pub fn of(interface: &str) -> io::Result<Option<InterfaceUse>> {
        let links = netlink::links()?;
        let Some(link) = links.iter().find(|link| link.name == interface) else { return Ok(None) };
        let ways = above(link, &links);
        let is_way = |index: &u32| ways.contains(index);
        let name = |index: u32| {
            links.iter().find(|link| link.index == index).map(|link| link.name.clone())
        };
        // Each interface that is up has a link-local one, which nothing depends on.
        let is_local = |ip: IpAddr| matches!(ip, IpAddr::V6(v6) if is_link_local(v6));
        let addresses = netlink::addresses()?;
        let addresses: Vec<_> = addresses.into_iter().filter(|a| is_way(&a.link)).collect();
        let routes = netlink::routes()?;
        let routes = || routes.iter().filter(|route| route.links.iter().any(is_way));
        let carries = |session: &Session| {
            let is_here = addresses.iter().any(|a| a.address == session.local);
            is_here
                || netlink::link_to(session.peer).ok().flatten().is_some_and(|link| is_way(&link))
        };
        let session = session().filter(carries).map(|session| session.peer);
        let master = link.master.and_then(|index| links.iter().find(|link| link.index == index));
        Ok(Some(InterfaceUse {
            interface: interface.into(),
            addresses: addresses
                .iter()
                .filter(|a| !is_local(a.address))
                .filter_map(|a| Some((format!("{}/{}", a.address, a.prefix), name(a.link)?)))
                .collect(),
            has_default_route: routes().any(|route| route.is_default),
            routes: routes().filter(|route| !route.is_default && route.has_gateway).count(),
            master: master.map(|master| (master.name.clone(), master.kind.clone())),
            session,
        }))
    }

    /// Whether the machine does nothing with it.
    pub fn is_none(&self) -> bool {
        self.addresses.is_empty()
            && !self.has_default_route
            && self.routes == 0
            && self.master.is_none()
            && self.session.is_none()
    }

    /// Whether its loss may leave the user, or the machine, without a way to mend it.
    pub fn is_vital(&self) -> bool {
        self.has_default_route || self.session.is_some()
    }
}

/// What uses it, as a list for people.
impl fmt::Display for InterfaceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if let Some(peer) = self.session {
            words.push(format!("your own session from {peer}"));
        }
        if self.has_default_route {
            words.push("the default route".into());
        }
        for (address, of) in &self.addresses {
            let on = if *of == self.interface { String::new() } else { format!(" on {of}") };
            words.push(format!("the address {address}{on}"));
        }
        if self.routes > 0 {
            words.push(format!("routes ({})", self.routes));
        }
        if let Some((master, kind)) = &self.master {
            let kind = if kind.is_empty() { "master" } else { kind };
            words.push(format!("its part in the {kind} {master}"));
        }
        f.write_str(&words.join(", "))
    }
}

/// The interface and all that is on top of it, by their indices. (The other end of a veth pair is
/// told like what is below.)
fn above(link: &Link, links: &[Link]) -> Vec<u32> {
    let mut found = vec![link.index];
    let mut at = 0;
    while let Some(&index) = found.get(at) {
        let is_on = |link: &&Link| link.lower == Some(index) && link.kind != "veth";
        let here = links.iter().find(|link| link.index == index);
        let next = links.iter().filter(is_on).map(|link| link.index);
        let next: Vec<u32> = next.chain(here.and_then(|link| link.master)).collect();
        let new: Vec<u32> = next.into_iter().filter(|index| !found.contains(index)).collect();
        found.extend(new);
        at += 1;
    }
    found
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

/// The session that this program was started in. `sudo` takes the variable from programs, so it may
/// be a program further up that has it still.
fn session() -> Option<Session> {
    if let Some(own) = env::var_os(SESSION) {
        return parse(&String::from_utf8_lossy(own.as_bytes()));
    }
    let mut pid = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    for _ in 0..ANCESTORS {
        let at = pid.filter(|pid| *pid > 1)?;
        let variables = fs::read(format!("/proc/{at}/environ")).unwrap_or_default();
        let mut variables = variables.split(|byte| *byte == 0);
        let value = variables
            .find_map(|variable| variable.strip_prefix(SESSION.as_bytes())?.strip_prefix(b"="));
        if let Some(value) = value {
            return parse(&String::from_utf8_lossy(value));
        }
        let stat = fs::read_to_string(format!("/proc/{at}/stat")).ok()?;
        // Behind the name, which may have spaces and brackets, are the state and the parent.
        let (_, behind) = stat.rsplit_once(')')?;
        pid = behind.split_whitespace().nth(1)?.parse().ok();
    }
    None
}

/// `PEER PORT LOCAL PORT`. A scope behind an address says what is seen by the address here.
fn parse(variable: &str) -> Option<Session> {
    let mut fields = variable.split_whitespace();
    let mut address = || fields.next()?.split('%').next()?.parse::<IpAddr>().ok();
    let peer = address()?;
    let _port = fields.next();
    let mut address = || fields.next()?.split('%').next()?.parse::<IpAddr>().ok();
    Some(Session { peer: peer.to_canonical(), local: address()?.to_canonical() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_as_sshd_writes_it() {
        let session = |peer: &str, local: &str| {
            Some(Session { peer: peer.parse().unwrap(), local: local.parse().unwrap() })
        };
        for (text, expected) in [
            ("10.0.0.2 51234 10.0.0.1 22", session("10.0.0.2", "10.0.0.1")),
            ("fe80::2%eth0 51234 fe80::1%eth0 22", session("fe80::2", "fe80::1")),
            ("::ffff:10.0.0.2 1 ::ffff:10.0.0.1 22", session("10.0.0.2", "10.0.0.1")),
            ("", None),
            ("UNKNOWN", None),
            ("10.0.0.2 51234", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_on_top_of_an_interface_uses_it() {
        let link = |index, kind: &str, master, lower| Link {
            index,
            name: format!("i{index}"),
            kind: kind.into(),
            master,
            lower,
        };
        let links = [
            link(1, "", None, None),
            link(2, "", Some(4), None),
            link(3, "vlan", Some(5), Some(4)),
            link(4, "bond", None, None),
            link(5, "bridge", None, None),
            link(6, "veth", Some(5), Some(7)),
            link(7, "veth", None, Some(6)),
        ];
        let mut ways = above(&links[1], &links);
        ways.sort_unstable();
        assert_eq!(ways, [2, 3, 4, 5]);
        assert_eq!(above(&links[6], &links), [7]);
        assert_eq!(above(&links[0], &links), [1]);
    }
}
