//! A network's gateway: a veth pair of which one end is on the switch, and the other has the gateway's
//! addresses in the host's stack. It comes with the first container that needs it, and goes with the last.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use rustix::io::Errno;

use crate::{
    error::{Error, Kind},
    link::{self, Link, Pair, USUAL_MTU},
    lock::Lock,
    names,
    netlink::Netlink,
    switch::{Daemon, Place},
};

pub struct Gateway<'a> {
    pub network: &'a str,
    /// The end in the host's stack.
    pub interface: String,
    pub mtu: Option<u32>,
}

impl Gateway<'_> {
    /// Makes it, or completes it if it is there.
    pub fn ensure(
        &self,
        netlink: &Netlink,
        daemon: &Daemon,
        place: &Place,
        addresses: &[IpNet],
    ) -> Result<Link, Error> {
        let _lock = Lock::of(self.network)?;
        let port = names::gateway_port(self.network);
        let alias = names::gateway_alias(self.network);
        let interface = &*self.interface;
        let refused = || Error::link(interface);
        let look = |name: &str| link::find(netlink, name).map_err(Error::link(name));
        let is_new = match look(interface)? {
            Some(link) if link.alias == alias => false,
            Some(_) => {
                let problem =
                    format!("{interface} is there, and is no gateway of {}", self.network);
                let remedy = "name another one (`hostInterface`; with podman, --interface-name)";
                return Err(Error::new(Kind::Config, problem, remedy));
            }
            None => true,
        };
        let complete = || -> Result<Link, Error> {
            if is_new {
                let pair =
                    Pair { here: interface, there: &port, netns: None, mtu: self.mtu, mac: None };
                pair.make(netlink).map_err(refused())?;
            }
            let missing =
                |name: &str| Error::new(Kind::Link, format!("{name} has gone"), "try again");
            let own = look(interface)?.ok_or_else(|| missing(interface))?;
            self.check_mtu(own.mtu)?;
            let end = look(&port)?.ok_or_else(|| missing(&port))?;
            if is_new {
                link::silence(netlink, end.index).map_err(Error::link(&port))?;
                link::set_alias(netlink, end.index, &alias).map_err(Error::link(&port))?;
                link::set_alias(netlink, own.index, &alias).map_err(refused())?;
            }
            if daemon.find(&port)?.is_none() {
                daemon.attach(place, &port, None)?;
            }
            for link in [&end, &own] {
                link::set_up(netlink, link.index).map_err(Error::link(&link.name))?;
            }
            for address in addresses {
                match link::add_address(netlink, own.index, *address) {
                    Err(e) if link::is(&e, Errno::EXIST) => {}
                    result => result.map_err(Error::link(format!("{interface}: {address}")))?,
                }
            }
            Ok(own)
        };
        complete().inspect_err(|_| {
            if is_new {
                let _ = remove(netlink, Some(daemon), self.network, interface);
            }
        })
    }
}

impl Gateway<'_> {
    /// Refuses a container whose long frames the gateway would not take.
    fn check_mtu(&self, there: u32) -> Result<(), Error> {
        let wanted = self.mtu.unwrap_or(USUAL_MTU);
        if wanted <= there {
            return Ok(());
        }
        let Gateway { network, interface, .. } = self;
        let problem = format!(
            "the gateway of {network}, {interface}, has an MTU of {there}, and this container is to have \
             {wanted}: its long frames would be lost"
        );
        let remedy = format!(
            "set mtu to {there}, or stop the network's other containers first: the gateway goes with the last"
        );
        Err(Error::new(Kind::Config, problem, remedy))
    }
}

/// Removes it if the network has no containers in this namespace.
pub fn remove_if_unused(
    netlink: &Netlink,
    daemon: Option<&Daemon>,
    network: &str,
) -> Result<(), Error> {
    let _lock = Lock::of(network)?;
    let (prefix, gateway) = (names::alias_prefix(network), names::gateway_alias(network));
    let links = link::links(netlink).map_err(Error::link("interfaces"))?;
    if links.iter().any(|link| is_containers(link, network, &prefix)) {
        return Ok(());
    }
    let port = names::gateway_port(network);
    let own = links.iter().find(|link| link.alias == gateway && link.name != port);
    match own {
        Some(own) => remove(netlink, daemon, network, &own.name),
        // It is not there; but a daemon may wait for it.
        None => daemon.map_or(Ok(()), |daemon| daemon.detach(&port)),
    }
}

/// Whether it is the attached end of a container of the network. While it is made it has no alias.
fn is_containers(link: &Link, network: &str, prefix: &str) -> bool {
    link.alias.starts_with(prefix)
        || link.alias.is_empty() && link.name.starts_with(&names::container_prefix(network))
}

fn remove(
    netlink: &Netlink,
    daemon: Option<&Daemon>,
    network: &str,
    interface: &str,
) -> Result<(), Error> {
    let port = names::gateway_port(network);
    let detached = daemon.map_or(Ok(()), |daemon| daemon.detach(&port));
    if let Some(link) = link::find(netlink, interface).map_err(Error::link(interface))? {
        link::remove(netlink, link.index).map_err(Error::link(interface))?;
    }
    detached
}

/// The address that a gateway has in a container's subnet: what the IPAM plugin has said, or the first of the
/// subnet.
pub fn address(container: IpNet, said: Option<IpAddr>) -> Result<IpNet, Error> {
    let gateway = in_subnet(container.trunc(), said)?;
    if gateway.addr() == container.addr() {
        let problem = format!("{} is the container's, and the gateway's too", gateway.addr());
        return Err(Error::new(
            Kind::Config,
            problem,
            "set the gateway in `ipam`, or another range",
        ));
    }
    Ok(gateway)
}

/// The same of a subnet.
pub fn in_subnet(subnet: IpNet, said: Option<IpAddr>) -> Result<IpNet, Error> {
    let address = said.or_else(|| first(subnet)).ok_or_else(|| {
        let problem = format!("there is no room for a gateway in {subnet}");
        Error::new(Kind::Config, problem, "choose a larger subnet, or do without a gateway")
    })?;
    if !subnet.contains(&address) || address == subnet.network() {
        let problem = format!("{address} is not an address of {subnet} for a gateway");
        return Err(Error::new(Kind::Config, problem, "choose another gateway"));
    }
    IpNet::new(address, subnet.prefix_len())
        .map_err(|e| Error::new(Kind::Config, format!("{address}: {e}"), ""))
}

/// The address behind that of the network itself, if another one is left.
fn first(subnet: IpNet) -> Option<IpAddr> {
    if subnet.max_prefix_len() - subnet.prefix_len() < 2 {
        return None;
    }
    Some(match subnet.network() {
        IpAddr::V4(v4) => Ipv4Addr::from(u32::from(v4) + 1).into(),
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) + 1).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_container_sends_more_than_its_gateway_takes() {
        let check =
            |mtu, there| Gateway { network: "red", interface: "gw0".into(), mtu }.check_mtu(there);
        for (mtu, there) in [(None, 1500), (Some(1400), 1500), (Some(9000), 9000)] {
            check(mtu, there).unwrap();
        }
        for (mtu, there) in [(None, 1400), (Some(9000), 1500)] {
            let error = check(mtu, there).unwrap_err();
            assert!(error.remedy.contains(&format!("set mtu to {there}")), "{error}");
        }
    }

    fn of(container: &str, said: Option<&str>) -> Result<String, Error> {
        let said = said.map(|said| said.parse().unwrap());
        address(container.parse().unwrap(), said).map(|net| net.to_string())
    }

    #[test]
    fn a_gateway_is_what_ipam_says_or_the_first_address() {
        assert_eq!(of("10.1.0.7/24", Some("10.1.0.254")).unwrap(), "10.1.0.254/24");
        assert_eq!(of("10.1.0.7/24", None).unwrap(), "10.1.0.1/24");
        assert_eq!(of("fd00::7/64", None).unwrap(), "fd00::1/64");
        for (container, said) in [
            ("10.1.0.7/32", None),
            ("10.1.0.7/31", None),
            ("10.1.0.7/24", Some("10.2.0.1")),
            ("10.1.0.7/24", Some("10.1.0.7")),
            ("10.1.0.1/24", None),
        ] {
            assert_eq!(of(container, said).unwrap_err().kind, Kind::Config, "{container} {said:?}");
        }
    }
}
